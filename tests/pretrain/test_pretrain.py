"""Pretraining: the loop, what comes out of it, and going on with a model."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import elmokit
from elmokit import Elmo
from elmokit.errors import (
    ConfigError,
    InputError,
    ModelNotFoundError,
    UnsupportedModelError,
)
from elmokit.formats import read_model
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.nn import BiLM
from elmokit.nn.softmax import make_softmax
from elmokit.pretrain import start
from elmokit.pretrain import trainer as train
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.target_words import MARKS, first_biases
from elmokit.pretrain.objective import losses
from elmokit.pretrain.recipe import OptimizerSettings, Recipe, SoftmaxSettings
from elmokit.pretrain.run.folder import RunFolder, Start
from elmokit.pretrain.run.reporter import draw_training
from elmokit.pretrain.run.stopwatch import gpu_busy
from elmokit.pretrain.run.tally import Pace, Progress
from elmokit.pretrain.score import evaluate_model
from elmokit.pretrain.start import pretrain
from elmokit.pretrain.warm_start import token_vectors, with_words
from helpers.pretraining import NOUNS, SMALL, TRANSFORMER, recipe, reports, run, sentences

# Training


def test_sampled_first_and_full_then(text, tmp_path):
    """From full_from on, all words count."""
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


def test_pace():
    """The first steps take long and do not count; nothing is guessed where nothing need be."""
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


def test_the_rate_of_a_run_that_time_ends(text, tmp_path):
    """Its rise is a tenth of the run where that is shorter, as with epochs."""
    rates = []
    settings = recipe(training={"minutes": 0.05, "evaluate_every": 1.0})
    with pytest.MonkeyPatch.context() as patch:
        real = train.rate_at

        def rate_at(step, n_steps, *rest):
            rates.append((n_steps, real(step, n_steps, *rest)))
            return rates[-1][1]

        patch.setattr(train, "rate_at", rate_at)
        run(text, tmp_path / "run", settings)
    assert {n for n, _ in rates[:20]} == {None}
    assert len({n for n, _ in rates[20:]}) == 1
    expected = rates[-1][0]
    assert len(rates) / 5 < expected < 5 * len(rates)  # other processes may take the time


def test_the_rate_that_suits_a_model(text, tmp_path):
    """The wider the cells, the lower; one that is set stays."""

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


def test_how_busy_the_gpu_is(text, tmp_path, monkeypatch):
    """It is told where it is known, and where it is not, nothing happens."""
    device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "utilization", lambda device: 93)
    assert gpu_busy(device) == 0.93
    monkeypatch.setattr(torch.cuda, "utilization", lambda device: 1 / 0)
    assert gpu_busy(device) is None
    assert gpu_busy(torch.device("cpu")) is None
    lines = []
    monkeypatch.setattr("elmokit.pretrain.trainer.gpu_busy", lambda device: 0.93)
    settings = recipe(training={"epochs": 0.2})
    pretrain(*text, tmp_path / "run", settings, device="cpu", say=lines.append)
    assert any("GPU 93% busy" in line for line in lines)
    training = [r for r in reports(tmp_path / "run") if r["kind"] == "training"]
    assert training
    assert all(r["gpu_busy"] == 0.93 for r in training)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_biases_begin_as_frequencies(tmp_path, kind):
    """Before anything is learned, a word is as likely as it is frequent, or all are alike."""
    path = tmp_path / "text"
    path.write_text("a a a a b b c\na b d\n")
    corpus = prepare([path], tmp_path / "data", TextOptions(tokenized=True))
    words = [*MARKS, "a", "b", "c", "never"]
    config = replace(
        Recipe().model, vocabulary_size=7, softmax_cutoffs=(3, 5) if kind == "adaptive" else ()
    )
    softmax = make_softmax(config)
    found = first_biases(config, corpus, words)
    softmax.load_state_dict(
        softmax.state_dict() | {name.removeprefix(SOFTMAX): t for name, t in found.items()}
    )
    shares = softmax(torch.zeros(1, softmax.input_dim)).exp()[0]
    # each mark by one direction alone, 1 unknown, 5 + 3 + 1 words, and one that never occurs
    expected = torch.tensor([1, 1, 1, 5, 3, 1, 1]) / 13
    if kind == "adaptive":  # within a cluster, words have no biases
        expected[3:5] = expected[3:5].mean()
    torch.testing.assert_close(shares, expected)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_biases_of_another_softmax(text, tmp_path, kind):
    """They begin as frequencies only where nothing better is known."""
    run(text, tmp_path / "first", recipe(training={"epochs": 0.5}))
    model = read_model(str(tmp_path / "first" / "best"))
    settings = recipe(softmax={"kind": kind, "cutoffs": [5, 10]})
    corpus = prepare(text[0], tmp_path / "data", TextOptions(tokenized=True))
    words = [*model.vocabulary, "new"]
    base = start._base(settings, corpus, model, words, Start(None, True, None))
    if kind == "full":
        guessed = with_words(model, words, settings.softmax).tensors
        assert torch.equal(base.tensors[SOFTMAX + "bias"], guessed[SOFTMAX + "bias"])
    else:
        expected = first_biases(base.config, corpus, words)
        assert {k: v for k, v in base.tensors.items() if k.startswith(SOFTMAX)}.keys() == (
            expected.keys()
        )


def test_biases_from_zero(text, tmp_path):
    """With a rate of almost nothing, what a run begins with is what it ends with."""
    settings = {"training": {"epochs": 0.5}, "optimizer": {"learning_rate": 1e-12}}
    found = {}
    for name, frequencies in (("frequent", True), ("zero", False)):
        softmax = {"frequencies": frequencies}
        found[name] = run(text, tmp_path / name, recipe(softmax=softmax, **settings)).mean
    assert found["frequent"] < 0.7 * found["zero"]


@pytest.mark.parametrize("shares", [(1.0,), (0.0,), (1.0, 0.0)])
def test_picture_of_training(tmp_path, shares):
    """The loss among the words drawn is not that among all, and the two are not one line."""
    from matplotlib.figure import Figure

    folder = RunFolder(tmp_path)
    for step in range(20):
        drawn = bool(shares[step * len(shares) // 20])
        values = {"tokens": 1000 * step, "step": step}
        folder.report(kind="training", loss=9 - step / 4, sampled=drawn, **values)
        for whole in (False, True)[: 1 + (step == 19)]:
            folder.report(kind="evaluation", mean=20_000 / 1.3**step, whole=whole, **values)
    figures = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda self, path, dpi: figures.append(self))
        draw_training(folder)
    left, right = figures[0].axes
    assert [len(line.get_xdata()) for line in left.lines] == [20 // len(shares)] * len(shares)
    names = [] if left.legend_ is None else [t.get_text() for t in left.legend_.texts]
    among = {1.0: "among the words drawn", 0.0: "among all words"}
    assert names == ([among[share] for share in shares] if 1.0 in shares else [])
    assert len(right.lines[0].get_xdata()) == 20  # the last, by all of the text, is not in it
    assert right.get_ylabel() == f"validation perplexity, {20_000 / 1.3**19:.1f} at the end"


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
    again = evaluate_model(str(tmp_path / "run"), text[1], tokenized=True, device="cpu")
    assert again.mean == pytest.approx(found.mean, rel=1e-4)
    if kind == "adaptive":
        with pytest.raises(UnsupportedModelError, match="no adaptive softmax"):
            elmo.save(tmp_path / "published", format="bilm-tf")


def test_the_papers_recipe(text, tmp_path):
    values = recipe().to_dict()
    paper = Recipe.read(Path(__file__).parents[2] / "recipes" / "paper.toml")
    values["optimizer"] = paper.to_dict()["optimizer"]
    values["batch"] |= {"order": "stream", "steps": 20}
    values["softmax"] = paper.to_dict()["softmax"] | {"samples": 10}  # of 26 words
    assert paper.softmax.kind == "sampled"
    assert paper.model == Recipe.from_dict({"model": {"size": "original"}}).model
    assert run(text, tmp_path / "run", Recipe.from_dict(values)).mean < 8


def test_evaluation_is_the_scores_of_the_model(text, tmp_path):
    """Training and inference clip alike, and count alike."""
    settings = recipe(model={"context": {"cell_dim": 48, "projection_dim": 16, "cell_clip": 0.5,
                                         "proj_clip": 0.3}})  # fmt: skip
    found = run(text, tmp_path / "run", settings)
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    lines[0][1] = "never-seen"
    scored = elmo.perplexity(lines)
    text[1][0].write_text("\n".join(map(" ".join, lines)))
    again = evaluate_model(str(tmp_path / "run"), text[1], tokenized=True, device="cpu")
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


# In and out


def test_words_instead_of_characters(text, tmp_path):
    settings = Recipe.from_dict(recipe().to_dict() | {"encoder": "words"})
    found = run(text, tmp_path / "run", settings)
    assert found.mean < 5
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    vectors = elmo.encode([["cat", "xyzzy", "plugh"]], layers=0)[0]
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    np.testing.assert_array_equal(vectors[1], vectors[2])  # both unknown
    model = str(tmp_path / "run" / "best")
    with pytest.raises(ConfigError, match="recased is for models that read characters"):
        run(text, tmp_path / "on", recipe(training={"recased": 0.1}), init_from=model)


def test_export(text, tmp_path):
    run(text, tmp_path / "run", recipe())
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    elmo.save(tmp_path / "published", format="bilm-tf")
    again = Elmo.load(tmp_path / "published", device="cpu")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    for a, b in zip(elmo.encode(lines, "all"), again.encode(lines, "all"), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert again.perplexity(lines).mean == pytest.approx(elmo.perplexity(lines).mean, rel=1e-6)


def test_going_on_with_a_model(text, tmp_path):
    first = run(text, tmp_path / "first", recipe())
    other = [tmp_path / "other.txt"], [tmp_path / "other-valid.txt"]
    for paths, seed in zip(other, (5, 6), strict=True):
        lines = [s.replace("the", "a").replace("house", "castle") for s in sentences(200, seed)]
        paths[0].write_text("\n".join(lines))
    model = str(tmp_path / "first" / "best")
    before = evaluate_model(model, other[1], tokenized=True, device="cpu")
    kept = run(other, tmp_path / "kept", recipe(training={"epochs": 2}), init_from=model)
    assert kept.mean < before.mean / 2
    assert kept.unknown_rate == before.unknown_rate > 0
    changed = run(
        other,
        tmp_path / "changed",
        recipe(training={"epochs": 2}),
        init_from=model,
        new_vocabulary=True,
    )
    assert changed.unknown_rate == 0
    assert changed.mean < 6
    assert first.mean < 6


def test_going_on_with_fewer_words_than_are_drawn(text, tmp_path):
    """It is the model's vocabulary that counts, not that of the new text."""
    run(text, tmp_path / "first", recipe(training={"epochs": 1}))
    other = tmp_path / "other.txt"
    other.write_text("\n".join(f"word{i} word{i + 1} the cat" for i in range(300)))
    said = []
    settings = recipe(softmax={"kind": "sampled", "samples": 40}, training={"epochs": 1})
    pretrain([other], text[1], tmp_path / "run", settings, device="cpu", say=said.append,
             init_from=str(tmp_path / "first" / "best"))  # fmt: skip
    assert "only 26 words" in said[0]
    with pytest.raises(ConfigError, match="40 words cannot be drawn from 26"):
        losses.Negatives(26, 40)


def splits(out):
    """How the text of a run was split, and what its model says of it."""
    options = json.loads((out / "data" / "train" / "corpus.json").read_text())["options"]
    config = json.loads((out / "best" / "config.json").read_text())
    return options["tokenizer"], options["tokenized"], config["tokenizer"]


def test_the_tokenizer_is_the_models(text, tmp_path):
    short, first = {"epochs": 0.1}, tmp_path / "first"
    raw = recipe(text={"tokenized": False}, training=short)
    characters = recipe(text={"tokenized": False, "tokenizer": "characters"}, training=short)
    run(text, first, characters)
    assert splits(first) == ("characters", False, "characters")
    for name, settings, expected in (
        ("own", raw, ("characters", False, "characters")),
        ("other", characters.changed({"text": {"tokenizer": "english"}}),
         ("english", False, "english")),
        ("tokenised", recipe(training=short), ("whitespace", True, "whitespace")),
    ):  # fmt: skip
        run(text, tmp_path / name, settings, init_from=str(first / "best"))
        assert splits(tmp_path / name) == expected
    run(text, tmp_path / "again", raw, init_from=str(tmp_path / "tokenised" / "best"))
    assert splits(tmp_path / "again") == ("whitespace", False, "whitespace")
    run(text, tmp_path / "english", raw)
    assert splits(tmp_path / "english") == ("english", False, "english")
    config = first / "best" / "config.json"
    config.write_text(config.read_text().replace('"characters"', '"custom:mine"'))
    with pytest.raises(InputError, match="splits text by custom:mine, which is not known here"):
        run(text, tmp_path / "custom", raw, init_from=str(first / "best"))


def test_evaluation_reads_text_as_the_run_did(text, tmp_path):
    text[1][0].write_text("the cat sees . The dog likes .\nthe king\n")
    found = run(text, tmp_path / "run", recipe(training={"epochs": 0.1}))
    assert (found.n_sentences, found.n_tokens) == (2, 10)
    again = evaluate_model(str(tmp_path / "run"), text[1], device="cpu")
    assert again.mean == pytest.approx(found.mean, rel=1e-4)
    assert again.n_sentences == 2
    for model, tokenizer in (("run/best", None), ("run", "whitespace")):
        split = evaluate_model(str(tmp_path / model), text[1], tokenizer, device="cpu")
        assert (split.n_sentences, split.n_tokens) == (3, 10)
    characters = evaluate_model(str(tmp_path / "run"), text[1], "characters", device="cpu")
    assert characters.n_tokens == 30


def test_rows_of_a_new_vocabulary(lm_folder):
    """Shared words keep their rows; a word left out gets one that its characters tell."""
    torch.manual_seed(0)
    base = read_model(lm_folder)
    names = [*MARKS, *(f"{a}{b}" for a in "abcdefgh" for b in ("cat", "dog", "bird", "fish"))]
    with_one = torch.cat([token_vectors(base, names), torch.ones(len(names), 1)], 1)
    rows = with_one @ torch.randn(9, 9) + 0.02 * torch.randn(len(names), 9)
    left_out = names.index("cdog")
    kept = [i for i in range(len(names)) if i != left_out]
    old = replace(
        base,
        config=replace(base.config, vocabulary_size=len(kept)),
        vocabulary=[names[i] for i in kept],
        tensors=base.tensors
        | {SOFTMAX + "weight": rows[kept, :8], SOFTMAX + "bias": rows[kept, 8]},
    )
    new = with_words(old, names, SoftmaxSettings("full")).check().tensors
    found = torch.cat([new[SOFTMAX + "weight"], new[SOFTMAX + "bias"][:, None]], 1)
    torch.testing.assert_close(found[kept], rows[kept])
    by_the_mean = (rows[kept].mean(0) - rows[left_out]).norm()
    assert (found[left_out] - rows[left_out]).norm() < 0.2 * by_the_mean
    adaptive = SoftmaxSettings("adaptive", cutoffs=(2,))
    assert with_words(old, names, adaptive).config.softmax_cutoffs == (2,)


def test_a_forward_model(cli, text, tmp_path, recwarn):
    """What it has not is left out."""
    one_way = {"context": {"cell_dim": 48, "projection_dim": 16, "bidirectional": False}}
    said = []
    settings = recipe(model=SMALL["model"] | one_way, training={"epochs": 1})
    found = pretrain(*text, tmp_path / "run", settings, device="cpu", say=said.append)
    assert found.backward is None
    assert found.mean == found.forward
    assert not any("backward" in line or "nan" in line for line in said)
    metrics = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "forward" in metrics
    assert "backward" not in metrics
    assert "NaN" not in metrics
    done = cli("evaluate", tmp_path / "run", text[1][0])
    assert "perplexity forward" in done.stdout
    assert "backward" not in done.stdout


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


# Transformers


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
    with pytest.raises(UnsupportedModelError, match="holds LSTMs alone"):
        elmo.save(tmp_path / "published", format="bilm-tf")
    model = str(tmp_path / "run" / "best")
    with pytest.raises(ConfigError, match="order=stream carries a state .* transformer does not"):
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
