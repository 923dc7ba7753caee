"""When a run evaluates, on how many tokens, and what it reports."""

import pytest
import torch

from elmokit.config import published_size
from elmokit.pretrain import validation
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.training_batches import one_after_another
from elmokit.pretrain.objective.evaluation_plan import (
    FEWEST_TOKENS,
    MOST_TOKENS,
    EvaluationPlan,
    relative_cost,
)
from elmokit.pretrain.recipe_sections import SoftmaxSettings, TrainingSettings
from elmokit.pretrain.run.length import RunLength
from elmokit.pretrain.run.tally import Progress
from helpers.pretraining import recipe, reports, run, same_weights, sentences


@pytest.mark.parametrize("cost", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("total", [3_000, 26_000, 160_000, 5_000_000, 10**9])
def test_evaluations_during_training_take_a_tenth(total, cost):
    plan = EvaluationPlan(cost, 0.1, 300_000)
    n = plan.n_tokens(total)
    assert FEWEST_TOKENS <= n <= MOST_TOKENS
    at, last = [], 0.0
    for step in range(1, 1000):
        if plan.is_due(step / 1000, last, total, n):
            last = step / 1000
            at.append(last)
    assert len(at) <= 9
    assert cost * n * len(at) <= total / 9
    assert plan.tokens_left(0.9999, total, n) >= 300_000  # the end is in the estimate
    if total >= 10**8:
        assert n == MOST_TOKENS
        assert len(at) == 9


@pytest.mark.parametrize(
    ("minutes", "device", "tokens"),
    [(20, "cuda", MOST_TOKENS), (6000, "cpu", MOST_TOKENS), (1, "cpu", FEWEST_TOKENS)],
)
def test_a_run_with_a_time_limit_is_guessed_before_it_starts(minutes, device, tokens):
    """The evaluation of the model it starts from decides how many tokens all others use."""
    length = RunLength(TrainingSettings(minutes=minutes), 100, 10_000, device)
    assert EvaluationPlan(1.0, 0.1, 300_000).n_tokens(length.tokens(Progress())) == tokens
    now = Progress(step=1, tokens=1000, seconds=6.0 * minutes)  # a tenth is done
    assert length.tokens(now) == pytest.approx(10_000)


def test_relative_cost():
    """A full softmax costs a third, and a sample of it is cheaper to train than to evaluate."""
    config = published_size("small")
    config = type(config)(config.token_encoder, config.context, vocabulary_size=100_000)
    full, sampled = (relative_cost(config, SoftmaxSettings(kind)) for kind in ("full", "sampled"))
    assert full == pytest.approx(1 / 3)
    assert 1 < sampled < 3


def test_some_sentences_stand_for_all(tmp_path):
    """A part of the text has sentences of all lengths."""
    path = tmp_path / "text"
    path.write_text("\n".join(" ".join("ab"[: 1 + i % 2] * (1 + i % 30)) for i in range(2000)))
    corpus = prepare([path], tmp_path / "data", TextOptions("whitespace"))
    plan = one_after_another(corpus, 500, 4000)
    batches = [plan.batch(0, i) for i in range(plan.n_batches(0))]
    lengths = [int(n) for batch in batches for n in batch.lengths]
    assert 4000 <= sum(lengths) - len(lengths) < 4000 + 60
    assert len(set(lengths)) > 25
    whole = one_after_another(corpus, 500, 10**9)
    assert sum(whole.batch(0, i).total for i in range(whole.n_batches(0))) == (
        corpus.n_tokens + len(corpus)
    )


def test_the_last_evaluation_is_printed_once(text, tmp_path):
    said = []
    found = run(text, tmp_path / "run", recipe(training={"epochs": 1}), say=said.append)
    lines = [line for line in said if "perplexity" in line]
    assert sum(f"{found.mean:.2f}" in line for line in lines) == 2  # and in the result
    assert lines[-1] == f"perplexity {found.mean:.2f}; the model is {tmp_path / 'run' / 'best'}"
    assert [r["whole"] for r in reports(tmp_path / "run") if r["kind"] == "evaluation"][-1]
    steps = [line for line in said if "tokens/s" in line]
    assert all(line.endswith(" left") for line in steps)


def test_a_large_validation_text_is_read_once_at_the_end(text, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.pretrain.objective.evaluation_plan.FEWEST_TOKENS", 50)
    text[1][0].write_text("\n".join(sentences(500, seed=1)))
    found = run(text, tmp_path / "run", recipe(training={"epochs": 1}))
    evaluations = [r for r in reports(tmp_path / "run") if r["kind"] == "evaluation"]
    assert [r["n_tokens"] == 4500 for r in evaluations] == [False] * (len(evaluations) - 1) + [True]
    assert found.n_tokens == 4500
    assert len({r["n_tokens"] for r in evaluations[:-1]}) == 1


def evaluations(out):
    values = [r for r in reports(out) if r["kind"] == "evaluation"]
    return [(r["step"], r["mean"], r["whole"]) for r in values]


@pytest.mark.parametrize("tuned", [False, True])
def test_stopping_in_every_evaluation_changes_nothing(text, tmp_path, monkeypatch, tuned):
    """A resumed run makes up for the evaluation, so the best model is the same."""
    paths = {}
    if tuned:
        run(text, tmp_path / "first", recipe(training={"epochs": 1}))
        paths = {"init_from": str(tmp_path / "first" / "best")}
    settings = recipe(training={"epochs": 2})
    whole = run(text, tmp_path / "whole", settings, **paths)
    real, stops = validation.evaluate, []

    def stopping(model, feed, plan, stopped):
        stops.append(1)
        if len(stops) % 2:
            return None
        return real(model, feed, plan, stopped)

    def perplexity(self, max_tokens):
        found = before(self, max_tokens)
        if found is None:
            self._signal.asked = True
        return found

    before = validation.Validation._perplexity
    monkeypatch.setattr(validation, "evaluate", stopping)
    monkeypatch.setattr(validation.Validation, "_perplexity", perplexity)
    found, resume = None, False
    while found is None:
        assert len(stops) < 40
        found = run(text, tmp_path / "parts", settings, resume=resume, **({} if resume else paths))
        resume = True
    assert len(stops) > 6
    assert found == whole
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    assert evaluations(tmp_path / "whole") == evaluations(tmp_path / "parts")
    models = [(tmp_path / name / "best" / "model.safetensors") for name in ("whole", "parts")]
    assert models[0].read_bytes() == models[1].read_bytes()
    state = torch.load(tmp_path / "parts" / "last.pt", weights_only=True)["progress"]
    assert state["evaluated"] == state["step"]
