"""The calculator: its formulas, and its defaults from the results of benchmarks."""

import json
import re

import pytest

from elmokit.cluster.cost_plan import DIMS, RATES, WRITE_RATE, plan_corpus
from elmokit.config import published_size
from elmokit.errors import InputError
from helpers.docs import ROOT


def test_formulas():
    found = plan_corpus(1e9, model="mine", rate=1000, dim=512, layers=2, units=10, price=0.5,
                        write_rate=2048e3, efficiency=0.5)  # fmt: skip
    # a token takes 1 ms to compute, and 2 × 512 × 2 bytes take 1 ms to write
    assert found.written_rate == pytest.approx(500)
    assert found.seconds == pytest.approx(1e9 / (500 * 10 * 0.5))
    assert found.unit_hours == pytest.approx(found.seconds * 10 / 3600)
    assert found.cost == pytest.approx(found.unit_hours * 0.5)
    assert found.storage_bytes == pytest.approx(1e9 * 2 * 512 * 2 * 0.85)
    gpu = plan_corpus(1e9, model="mine", unit="gpu", rate=1000, dim=512, layers=2, writers=4,
                      write_rate=1024e3)  # fmt: skip
    assert gpu.written_rate == pytest.approx(1000)
    assert plan_corpus(1e9, storage="pq", layers=1).storage_bytes == 64e9


def test_days_choose_the_number_of_machines():
    found = plan_corpus(1e12, model="original", days=30)
    assert found.seconds <= 30 * 86_400
    fewer = plan_corpus(1e12, model="original", units=found.units - 1)
    assert fewer.seconds > 30 * 86_400


@pytest.mark.parametrize("rate", [*RATES.values(), WRITE_RATE])
def test_rates_are_in_the_results_they_name(rate):
    page = (ROOT / re.match(r"[\w/.]+\.md", rate.source)[0]).read_text(encoding="utf-8")
    value = rate.per_second / (1e6 if rate is WRITE_RATE else 1)
    assert f"{value:,.0f}" in page


def test_widths_are_those_of_the_models():
    config = json.loads((ROOT / "src/elmokit/models/en/config.json").read_text())
    assert DIMS["en"] == 2 * config["context"]["projection_dim"]
    for name in ("small", "original"):
        assert DIMS[name] == published_size(name).context.output_dim


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "zh"}, "no rate was measured for the model 'zh' on cpu in float32; pass rate="),
        ({"model": "mine", "rate": 5}, "the width of the model 'mine' is not known; pass dim="),
        ({"units": 2, "days": 3}, "not both"),
        ({"unit": "tpu"}, "unit must be"),
        ({"efficiency": 2}, "efficiency must be"),
    ],
)
def test_wrong_values(options, message):
    with pytest.raises(InputError, match=message):
        plan_corpus(1e9, **options)
