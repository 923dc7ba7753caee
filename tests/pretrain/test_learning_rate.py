"""The learning rate, and how the length of a run is estimated."""

import itertools
import math
from types import SimpleNamespace

import pytest

from elmokit.pretrain import trainer as train
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.recipe_sections import OptimizerSettings
from elmokit.pretrain.run.folder import RunFolder
from elmokit.pretrain.run.tally import Pace, Progress
from helpers.pretraining import SMALL, recipe, reports, run


def test_pace():
    """The first, slow steps do not count; without a time limit nothing is estimated."""
    progress = Progress(step=5, seconds=10.0)  # resumed
    pace = Pace(progress, minutes=2)
    for step in range(1, 31):
        progress.step += 1
        progress.seconds += 5.0 if step == 1 else 0.5
        pace.step()
        if step < 20:
            assert progress.expected == 0
    # 24.5 s after 20 steps, of which there will be two a second from there on
    assert progress.expected == 25 + 2 * (120 - 24.5)
    progress = Progress()
    pace = Pace(progress, None)
    for _ in range(30):
        pace.step()
    assert progress.expected == 0


def test_the_rate_of_a_run_with_a_time_limit(text, tmp_path, monkeypatch):
    """Warm-up takes at most a tenth of the estimated steps, as with epochs."""
    ticks, totals, real = itertools.count(), [], train.rate_at

    def rate_at(step, n_steps, *rest):
        totals.append(n_steps)
        return real(step, n_steps, *rest)

    # a clock that advances by 50 ms at each look: every step takes 50 ms
    clock = SimpleNamespace(perf_counter=lambda: 0.05 * next(ticks))
    monkeypatch.setattr(train, "time", clock)
    monkeypatch.setattr(train, "rate_at", rate_at)
    run(text, tmp_path / "run", recipe(training={"minutes": 0.05, "evaluate_every": 1.0}))
    assert set(totals[:20]) == {None}
    assert len(set(totals[20:])) == 1
    assert totals[-1] == pytest.approx(len(totals), abs=1)


def test_the_rate_that_suits_a_model(text, tmp_path):
    """The wider the cells, the lower the rate; an explicit rate is kept."""

    def rate(cell_dim, **settings):
        return OptimizerSettings(**settings).for_width(cell_dim).learning_rate

    assert rate(4096) == rate(4096, name="adamw") == rate(1024) / 2 == 0.175 / 64
    assert rate(1024, name="adagrad") == 0.2
    assert rate(1024, name="adagrad", learning_rate=0.3) == rate(4096, learning_rate=0.3) == 0.3
    assert Recipe().changed({"model": {"size": "original"}}).optimizer.learning_rate is None
    own = 0.175 / math.sqrt(SMALL["model"]["context"]["cell_dim"])
    settings = recipe(
        training={"epochs": 0.5},
        optimizer={"learning_rate": None, "warmup": 0, "schedule": "constant"},
    )
    run(text, tmp_path / "run", settings)
    wide = settings.changed({"model": {"context": {"cell_dim": 512}}})  # the model's sizes count
    run(text, tmp_path / "on", wide, init_from=str(tmp_path / "run" / "best"))
    run(text, tmp_path / "on", wide.changed({"training": {"epochs": 1}}), resume=True)
    for folder in (tmp_path / "run", tmp_path / "on"):
        assert {r["learning_rate"] for r in reports(folder) if r["kind"] == "training"} == {own}
        assert RunFolder(folder).recipe().optimizer.learning_rate == own
