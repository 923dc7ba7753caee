"""Perplexity by band as a table and lines."""

import math
from dataclasses import replace

import pytest

from elmokit.analysis.perplexity_bands import banded_perplexity
from elmokit.analysis.reports.perplexity_bands_report import bands_report
from helpers.models import SCORED_SENTENCES as SENTENCES


def test_a_forward_model(lm, monkeypatch, tmp_path):
    scores = [replace(s, backward=None, start=math.nan) for s in lm.score(SENTENCES)]
    lm.config = replace(lm.config, context=replace(lm.config.context, bidirectional=False))
    monkeypatch.setattr(lm, "stream_scores", lambda some: iter(scores))
    report = bands_report(banded_perplexity(lm, SENTENCES))
    for row in report.rows:
        assert math.isnan(row[4])
        assert row[5] == pytest.approx(row[3], nan_ok=True)
    report.write(tmp_path / "x")
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "forward" in svg
    assert "backward" not in svg
