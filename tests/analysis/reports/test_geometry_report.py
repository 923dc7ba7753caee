"""Geometry as a table."""

import pytest

from elmokit.analysis.geometry import NAMES, PUBLISHED, Geometry, GeometryResult
from elmokit.analysis.reports.geometry_report import geometry_report


def test_published_figures_are_shown_for_three_layers():
    assert len(NAMES) == len(Geometry.__dataclass_fields__)
    for layer in PUBLISHED:
        adjusted = layer.self_similarity - layer.anisotropy
        assert layer.self_similarity_adjusted == pytest.approx(adjusted)
        adjusted = layer.intra_sentence - layer.anisotropy
        assert layer.intra_sentence_adjusted == pytest.approx(adjusted)
    report = geometry_report(GeometryResult(list(PUBLISHED), 9, 3, 2))
    assert report.shown()[0][1:] == ["0.008", "0.157", "0.136"] * 2
    report = geometry_report(GeometryResult(list(PUBLISHED[:2]), 9, 3, 2))
    assert report.columns == ["measure", "layer 0", "layer 1"]
