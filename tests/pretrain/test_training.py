"""Training: what models learn, with every order, softmax, encoder and context."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import elmokit
from elmokit import Elmo
from elmokit.errors import ConfigError, InputError, ModelNotFoundError, UnsupportedModelError
from elmokit.nn import BiLM
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.reporter import draw_training
from helpers.perplexity import evaluate_model
from helpers.pretraining import NOUNS, SMALL, TRANSFORMER, recipe, reports, run


def test_learns(text, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "elmokit.pretrain.run.reporter.draw_training", draw_training
    )  # here it counts
    found = run(text, tmp_path / "run", recipe(training={"epochs": 12, "evaluate_every": 0.5}))
    # the text has 10 · 5 · 10 · 5 sentences of 9 tokens and a mark: no model can be below this
    floor = math.exp(math.log(10 * 5 * 10 * 5) / 10)
    assert floor < found.mean < 1.4 * floor
    assert found.unknown_rate == 0
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert {
        "recipe.json",
        "vocabulary.txt",
        "metrics.jsonl",
        "training.png",
        "last.pt",
        "best",
    } <= names
    assert any("tfevents" in name for name in names)
    kinds = [report["kind"] for report in reports(tmp_path / "run")]
    assert kinds.count("evaluation") == 3
    shares = next(r["time"] for r in reports(tmp_path / "run") if "time" in r)
    assert set(shares) == {"data", "token encoder", "context", "softmax", "optimizer"}
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    best = elmo.substitutes("the cat sees the dog in the house .".split(), 1, k=10)
    assert {word for word, _ in best} == set(NOUNS)


@pytest.mark.parametrize("order", ["sentences", "stream", "documents"])
@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_every_order_and_softmax(text, tmp_path, order, kind):
    settings = recipe(
        batch={"order": order, "steps": 8},
        softmax={"kind": kind, "samples": 10, "cutoffs": [8, 16]},
        training={"epochs": 4},
    )
    found = run(text, tmp_path / "run", settings)
    assert found.mean < 6
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    assert elmo.perplexity(lines).mean == pytest.approx(found.mean, rel=1e-4)
    assert len(elmo.substitutes(lines[0], 1, k=5)) == 5
    again = evaluate_model(tmp_path / "run", text[1], tokenized=True)
    assert again.mean == pytest.approx(found.mean, rel=1e-4)
    if kind == "adaptive":
        with pytest.raises(UnsupportedModelError, match="has an adaptive softmax"):
            elmo.save(tmp_path / "published", format="bilm-tf")


def test_sampled_first_and_full_then(text, tmp_path):
    """From full_from on, the softmax is full."""
    settings = {"epochs": 1, "evaluate_every": 1.0}
    kinds = {
        "full": {"kind": "full"},
        "all": {"kind": "sampled", "samples": 5, "full_from": 0.0},
        "sampled": {"kind": "sampled", "samples": 5},
        "half": {"kind": "sampled", "samples": 5, "full_from": 0.5},
    }
    found = {
        name: run(text, tmp_path / name, recipe(training=settings, softmax=softmax)).mean
        for name, softmax in kinds.items()
    }
    assert found["all"] == found["full"]
    assert len(set(found.values())) == 3


def test_the_library_prints_nothing(text, tmp_path, capsys):
    run(text, tmp_path / "run", recipe(training={"epochs": 0.2}))
    assert capsys.readouterr().out == ""


def test_the_papers_recipe(text, tmp_path):
    values = recipe().to_dict()
    paper = Recipe.read(Path(__file__).parents[2] / "recipes" / "paper.toml")
    values["optimizer"] = paper.to_dict()["optimizer"]
    values["batch"] |= {"order": "stream", "steps": 20}
    values["softmax"] = paper.to_dict()["softmax"] | {"samples": 10}  # of 26 words
    assert paper.softmax.kind == "sampled"
    assert paper.model == Recipe.from_dict({"model": {"size": "original"}}).model
    assert run(text, tmp_path / "run", Recipe.from_dict(values)).mean < 8


def test_too_few_words_to_draw_from(text, tmp_path):
    said = []
    settings = recipe(softmax={"kind": "sampled"}, training={"epochs": 1})
    run(text, tmp_path / "run", settings, say=said.append)
    assert "only 26 words" in said[0]
    assert "using the full softmax" in said[0]


def test_evaluation_is_the_scores_of_the_model(text, tmp_path):
    """Training and inference agree on clipping and counting."""
    settings = recipe(model={"context": {"cell_dim": 48, "projection_dim": 16, "cell_clip": 0.5,
                                         "proj_clip": 0.3}})  # fmt: skip
    found = run(text, tmp_path / "run", settings)
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    lines[0][1] = "never-seen"
    scored = elmo.perplexity(lines)
    text[1][0].write_text("\n".join(map(" ".join, lines)))
    again = evaluate_model(tmp_path / "run", text[1], tokenized=True)
    assert again.forward == pytest.approx(scored.forward, rel=1e-5)
    assert again.backward == pytest.approx(scored.backward, rel=1e-5)
    assert again.mean == pytest.approx(scored.mean, rel=1e-5)
    assert again.unknown_rate == pytest.approx(scored.unknown_rate)
    assert again.n_tokens == sum(map(len, lines))
    assert found.mean != again.mean
    characters = sum(len(w) + 1 for s in lines for w in s)
    predicted = again.n_tokens + again.n_sentences
    bits = predicted * math.log2(again.mean) / characters
    assert again.bits_per_character == pytest.approx(bits)


def test_words_instead_of_characters(text, tmp_path):
    settings = Recipe.from_dict(recipe().to_dict() | {"encoder": "words"})
    found = run(text, tmp_path / "run", settings)
    assert found.mean < 5
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    vectors = elmo.encode([["cat", "xyzzy", "plugh"]], layers=0)[0]
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    np.testing.assert_array_equal(vectors[1], vectors[2])  # both unknown
    model = str(tmp_path / "run" / "best")
    with pytest.raises(ConfigError, match="recased needs a model that reads characters"):
        run(text, tmp_path / "on", recipe(training={"recased": 0.1}), init_from=model)


def test_a_forward_model(cli, text, tmp_path, recwarn):
    """Reports leave out the backward direction."""
    one_way = {"context": {"cell_dim": 48, "projection_dim": 16, "bidirectional": False}}
    said = []
    settings = recipe(model=SMALL["model"] | one_way, training={"epochs": 1})
    found = run(text, tmp_path / "run", settings, say=said.append)
    assert found.backward is None
    assert found.mean == found.forward
    assert not any("backward" in line or "nan" in line for line in said)
    metrics = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "forward" in metrics
    assert "backward" not in metrics
    assert "NaN" not in metrics
    done = cli("perplexity", text[1][0], "--model", tmp_path / "run")
    assert "perplexity forward" in done.stdout
    assert "backward" not in done.stdout


def test_a_transformer(text, tmp_path):
    settings = recipe(model=SMALL["model"] | TRANSFORMER, training={"epochs": 6})
    found = run(text, tmp_path / "run", settings)
    assert found.mean < 5
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    scored = elmo.perplexity(lines)
    assert found.forward == pytest.approx(scored.forward, rel=1e-4)
    assert found.backward == pytest.approx(scored.backward, rel=1e-4)
    # a sentence's vectors are its own, whatever else is in the batch
    lines = [line[: 1 + i % 9] for i, line in enumerate(lines)]
    for line, layers in zip(lines, elmo.encode(lines, "all"), strict=True):
        np.testing.assert_allclose(elmo.encode([line], "all")[0], layers, atol=1e-5)
    with pytest.raises(InputError, match="no state to carry"):
        elmo.encode(lines, state=elmokit.CarriedState())
    with pytest.raises(InputError, match="is for LSTMs"):
        Elmo.load(tmp_path / "run" / "best", device="cpu", quantize="int8")
    with pytest.raises(UnsupportedModelError, match="stores LSTMs only"):
        elmo.save(tmp_path / "published", format="bilm-tf")
    model = str(tmp_path / "run" / "best")
    with pytest.raises(ConfigError, match="order=stream carries a state .* a transformer has none"):
        run(text, tmp_path / "on", recipe(batch={"order": "stream"}), init_from=model)


@pytest.mark.parametrize("order", ["stream", "documents"])
def test_a_transformer_carries_no_state(order):
    with pytest.raises(ConfigError, match=f"order={order} carries a state .*; choose batch.order"):
        Recipe.from_dict({"model": TRANSFORMER, "batch": {"order": order}})


def test_a_transformer_looks_one_way():
    config = Recipe.from_dict({"model": TRANSFORMER}).model
    bilm = BiLM(config)
    for p in bilm.parameters():
        torch.nn.init.normal_(p, 0, 0.3)
    tokens, lengths = torch.randn(2, 7, 16), torch.tensor([7, 4])
    with torch.no_grad():
        before, _ = bilm(tokens, lengths)
        tokens[0, 3, 0] += 1  # all of it would be normalised away
        after, _ = bilm(tokens, lengths)
    changed = (before - after).abs().amax(-1)[2:] > 1e-6  # the layers above the first
    forward = ((before - after)[2, 0, :, :16].abs().amax(-1) > 1e-6).tolist()
    backward = ((before - after)[2, 0, :, 16:].abs().amax(-1) > 1e-6).tolist()
    assert forward == [False, False, False, True, True, True, True]
    assert backward == [True, True, True, True, False, False, False]
    assert not changed[:, 1].any()
    assert (after[1:, 1, 4:] == 0).all()


def test_export(text, tmp_path):
    run(text, tmp_path / "run", recipe())
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    elmo.save(tmp_path / "published", format="bilm-tf")
    again = Elmo.load(tmp_path / "published", device="cpu")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    for a, b in zip(elmo.encode(lines, "all"), again.encode(lines, "all"), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert again.perplexity(lines).mean == pytest.approx(elmo.perplexity(lines).mean, rel=1e-6)


def test_a_run_is_its_best_model(cli, text, tmp_path):
    out = tmp_path / "run"
    run(text, out, recipe(training={"epochs": 0.1}))
    vectors = Elmo.load(out / "best", device="cpu").encode([["the", "cat"]])[0]
    np.testing.assert_array_equal(Elmo.load(out, device="cpu").encode([["the", "cat"]])[0], vectors)
    assert cli("convert", out, tmp_path / "copy").returncode == 0
    assert run(text, tmp_path / "on", recipe(training={"epochs": 0.1}), init_from=str(out))
    shutil.rmtree(out / "best")
    with pytest.raises(ModelNotFoundError, match="a training run without a model so far; its firs"):
        Elmo.load(out)
