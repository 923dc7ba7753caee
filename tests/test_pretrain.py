"""Pretraining: batches, softmaxes, the loop, resuming, several processes, the way in and out."""

import errno
import gzip
import itertools
import json
import lzma
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import zstandard

import elmokit
from elmokit import Elmo
from elmokit.data.batches import BEGIN, END, SentenceBatches, Share, StreamBatches
from elmokit.data.prepare import TextOptions, prepare
from elmokit.data.text_files import find_files, read_lines
from elmokit.errors import (
    ConfigError,
    FormatError,
    InputError,
    OutputError,
    UnsupportedModelError,
)
from elmokit.nn import BiLM, FullSoftmax
from elmokit.pretrain import losses
from elmokit.pretrain.recipe import Recipe, read_toml
from elmokit.pretrain.run_folder import RunFolder, Start
from elmokit.pretrain.score import evaluate_model
from elmokit.pretrain.start import pretrain
from elmokit.pretrain.train import TrainingError, make_batches

NOUNS = "cat dog bird fish horse cow king queen child doctor".split()
VERBS = "sees likes follows finds hears".split()
PLACES = "house garden river city forest".split()


def sentences(n, seed=0):
    rng = random.Random(seed)
    return [
        f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} the {rng.choice(NOUNS)} in the "
        f"{rng.choice(PLACES)} ."
        for _ in range(n)
    ]


SMALL = {
    "model": {
        "token_encoder": {"filters": [[1, 8], [2, 8], [3, 16]], "n_highway": 1},
        "context": {"cell_dim": 48, "projection_dim": 16},
    },
    "text": {"tokenized": True, "min_count": 1},
    "batch": {"tokens": 200},
    "softmax": {"kind": "full"},
    "optimizer": {"learning_rate": 0.01},
    "training": {"epochs": 2, "dropout": 0.1},
}


def recipe(**changes):
    values = json.loads(json.dumps(SMALL))
    for section, settings in changes.items():
        values.setdefault(section, {}).update(settings)
    return Recipe.from_dict(values)


@pytest.fixture
def text(tmp_path):
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text("\n".join(sentences(400)) + "\n")
    valid.write_text("\n".join(sentences(60, seed=1)) + "\n")
    return [train], [valid]


@pytest.fixture
def no_pictures(monkeypatch):
    """Of tests with many short runs, most of the time would go into drawing."""
    monkeypatch.setattr("elmokit.pretrain.reports.draw_training", lambda folder: None)


def run(text, out, settings, **keywords):
    return pretrain(*text, out, settings, device="cpu", say=lambda _: None, **keywords)


# Text to numbers


def test_files_of_every_kind(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = "one two\n\nthree ünïcödé\n".encode()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    (folder / "b.gz").write_bytes(gzip.compress(lines, mtime=0))
    (folder / "c.xz").write_bytes(lzma.compress(lines))
    (folder / "d.zst").write_bytes(zstandard.compress(lines[:5]) + zstandard.compress(lines[5:]))
    (folder / ".hidden").write_bytes(b"\xff")
    files = find_files([folder])
    assert [f.name for f in files] == ["a.txt", "b.gz", "c.xz", "d.zst"]
    for path in files:
        assert list(read_lines(path)) == ["one two", "", "three ünïcödé"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"fine\n\xff\xfe", "not UTF-8 text"),
        ("a.gz", gzip.compress(b"x" * 10_000, mtime=0)[:-20], "is it complete"),
        ("a.xz", lzma.compress(b"x" * 10_000)[:-20], "is it complete"),
        ("a.xz", b"no such thing", "is it complete"),
        ("a.zst", b"no such thing", "is it complete"),
        (
            "a.zst",
            zstandard.compress(random.Random(0).randbytes(10_000).hex().encode())[:-20],
            "is it",
        ),
    ],
)
def test_broken_files(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(read_lines(tmp_path / name))


def test_prepared_text(tmp_path):
    path = tmp_path / "text"
    path.write_text("Ann met Dr. Bo. He ran! The end\nwas near.\n\nAnn ran.\n")
    corpus = prepare([path], tmp_path / "data", TextOptions("english"))
    found, at = [], 0
    for n in corpus.lengths:
        found.append(" ".join(corpus.words[i] for i in corpus.tokens[at : at + n]))
        at += n
    assert found == ["Ann met Dr. Bo .", "He ran !", "The end", "was near .", "Ann ran ."]
    assert corpus.documents.tolist() == [0, 4]
    assert corpus.words[:3] == [".", "Ann", "ran"]
    assert corpus.counts[:3].tolist() == [3, 2, 2]
    before = (tmp_path / "data" / "tokens.bin").stat().st_mtime_ns
    prepare([path], tmp_path / "data", TextOptions("english"))
    assert (tmp_path / "data" / "tokens.bin").stat().st_mtime_ns == before  # used again
    prepare([path], tmp_path / "data", TextOptions("whitespace"))
    assert (tmp_path / "data" / "tokens.bin").stat().st_mtime_ns != before
    with open(path, "a") as file:
        file.write("More.\n")
    assert prepare([path], tmp_path / "data", TextOptions("whitespace")).n_words == 12


def test_several_processes_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.data.prepare._PIECE", 2000)
    path = tmp_path / "text"
    path.write_text("\n".join(sentences(200)) + "\n\n" + "\n".join(sentences(100)))
    one = prepare([path], tmp_path / "one", TextOptions(), 1)
    two = prepare([path], tmp_path / "two", TextOptions(), 2)
    for name in one.FILES[1:]:
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
    assert one.n_tokens == 300 * 9
    assert one.documents.tolist() == [0, 200]  # however the pieces fall


def test_damaged_corpus(tmp_path):
    path = tmp_path / "text"
    path.write_text("a b c\n")
    prepare([path], tmp_path / "data", TextOptions())
    (tmp_path / "data" / "tokens.bin").write_bytes(b"1234")
    with pytest.raises(FormatError, match="damaged: 1 tokens instead of 3"):
        prepare([path], tmp_path / "data", TextOptions())


# Batches


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "text"
    lines = [" ".join(f"w{i}.{k}" for k in range(i % 7 + 1)) for i in range(60)]
    path.write_text("\n".join(line + "\n" * (i % 5 == 4) for i, line in enumerate(lines)))
    return prepare([path], tmp_path / "data", TextOptions(tokenized=True))


def words(corpus, codes):
    names = ["<S>", "</S>", *corpus.words]
    return [names[c] for c in codes]


def rows(batch, values):
    """Values (N,) of a batch, row by row."""
    counts = (np.arange(batch.lengths.max())[:, None] < batch.lengths).sum(1)
    starts = np.cumsum(counts) - counts
    return [
        [values[starts[t] + row] for t in range(length)] for row, length in enumerate(batch.lengths)
    ]


@pytest.mark.parametrize("size", [1, 2])
def test_sentences_alone(corpus, size):
    found = []
    parts = [SentenceBatches(corpus, 50, 3, share=Share(r, size)) for r in range(size)]
    for number in range(parts[0].n_batches(1)):
        batches = [part.batch(1, number) for part in parts]
        assert len({b.total for b in batches}) == 1
        assert sum(b.inputs.shape[1] for b in batches) == batches[0].total
        for batch in batches:
            assert not batch.carried
            assert (np.diff(batch.lengths) <= 0).all()
            for direction in range(2):
                inputs = rows(batch, batch.inputs[direction])
                targets = rows(batch, batch.targets[direction])
                for read, predicted in zip(inputs, targets, strict=True):
                    assert read[0] == (BEGIN, END)[direction]
                    assert predicted[-1] == (END, BEGIN)[direction]
                    assert read[1:] == predicted[:-1]
                    if direction == 0:
                        found.append(words(corpus, read[1:]))
                if direction == 1:
                    forward = rows(batch, batch.inputs[0])
                    assert [r[1:] for r in inputs] == [f[1:][::-1] for f in forward]
    expected = [[f"w{i}.{k}" for k in range(i % 7 + 1)] for i in range(60)]
    assert sorted(found) == sorted(expected)
    assert found != expected


@pytest.mark.parametrize("tokens", range(43, 120, 11))
def test_processes_do_not_change_the_batches(corpus, tokens, monkeypatch):
    """However the text falls into groups of batches, nothing is lost, and no process is idle."""
    monkeypatch.setattr(SentenceBatches, "_GROUP", 2)
    whole = SentenceBatches(corpus, tokens, 3)
    batches = [whole.batch(1, n) for n in range(whole.n_batches(1))]
    assert sum(b.total for b in batches) == corpus.n_tokens + len(corpus)
    assert min(b.total for b in batches) > 0.75 * tokens - 8
    for size in (2, 3, 4):
        parts = [SentenceBatches(corpus, tokens, 3, share=Share(r, size)) for r in range(size)]
        assert {part.n_batches(1) for part in parts} == {len(batches)}
        for number, batch in enumerate(batches):
            shared = [part.batch(1, number) for part in parts]
            assert all(s.total == batch.total and len(s.lengths) for s in shared)
            found = np.concatenate([s.inputs[0] for s in shared])
            np.testing.assert_array_equal(np.sort(found), np.sort(batch.inputs[0]))


def test_batches_too_small_for_the_processes(corpus):
    with pytest.raises(InputError, match="42 tokens may hold fewer .* 4; .*batch.tokens of 43"):
        SentenceBatches(corpus, 42, 0, share=Share(0, 4))
    SentenceBatches(corpus, 42, 0, max_length=6, share=Share(0, 4))
    SentenceBatches(corpus, 1, 0)  # one process has its sentence, however long
    settings = recipe(batch={"order": "stream", "tokens": 60, "steps": 4})
    assert make_batches(settings, corpus, Share(0, 3)).batch(0, 0).total == 60
    with pytest.raises(InputError, match="15 rows .* 2 processes; .* a multiple of 8"):
        make_batches(settings, corpus, Share(0, 2))


def test_long_sentences_are_cut(corpus):
    batches = SentenceBatches(corpus, 50, 0, max_length=3)
    pieces = []
    for number in range(batches.n_batches(0)):
        batch = batches.batch(0, number)
        assert batch.lengths.max() <= 4
        pieces += [words(corpus, r[1:]) for r in rows(batch, batch.inputs[0])]
    assert sorted(itertools.chain(*pieces)) == sorted(
        f"w{i}.{k}" for i in range(60) for k in range(i % 7 + 1)
    )


@pytest.mark.parametrize("documents", [False, True])
def test_streams(corpus, documents):
    batches = StreamBatches(corpus, 3, 4, 5, documents)
    streams = [[[], []] for _ in range(3)]
    for number in range(batches.n_batches(0)):
        batch = batches.batch(0, number)
        assert batch.carried == (number > 0)
        assert batch.inputs.shape == (2, 12)
        for row in range(3):
            streams[row][0] += batch.inputs[0].reshape(4, 3)[:, row].tolist()
            streams[row][1] += batch.targets[0].reshape(4, 3)[:, row].tolist()
    for read, predicted in streams:
        for this, following, wanted in zip(read, read[1:], predicted, strict=False):
            assert following == (BEGIN if wanted == END else wanted)
            assert this != END  # the forward direction never reads it
    read = [w for r, _ in streams for w in words(corpus, r) if w[0] == "w"]
    if documents:  # sentences of a document follow each other
        ids = [int(w[1:].split(".")[0]) for w in read if w.endswith(".0")]
        neighbours = sum(b == a + 1 for a, b in itertools.pairwise(ids))
        assert neighbours > 0.6 * len(ids)
    halves = [StreamBatches(corpus, 4, 4, 5, documents, Share(r, 2)) for r in range(2)]
    whole = StreamBatches(corpus, 4, 4, 5, documents).batch(0, 1)
    joined = [h.batch(0, 1).inputs.reshape(2, 4, 2) for h in halves]
    np.testing.assert_array_equal(np.concatenate(joined, 2), whole.inputs.reshape(2, 4, 4))


# Softmaxes


@pytest.fixture
def softmax():
    torch.manual_seed(0)
    made = FullSoftmax(50, 8)
    made.bias.data.normal_()
    return made, torch.randn(33, 8, requires_grad=True), torch.randint(0, 50, (33,))


def compare(loss, expected, leaves):
    torch.testing.assert_close(loss, expected)
    found = torch.autograd.grad(2 * loss, leaves)
    for a, b in zip(found, torch.autograd.grad(2 * expected, leaves), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("held", [1, 120, 1 << 20])
def test_full_softmax(softmax, held, monkeypatch):
    monkeypatch.setitem(losses._LOGITS, "cpu", held)
    made, h, targets = softmax
    logits = h @ made.weight.t() + made.bias
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    compare(losses.full_loss(made, h, targets), expected, [h, made.weight, made.bias])


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_rows_added_for_even_products_change_nothing(softmax, kind, monkeypatch):
    monkeypatch.setitem(losses._EVEN, "cpu", 64)
    if kind == "full":
        test_full_softmax(softmax, 120, monkeypatch)
    else:
        test_sampled_softmax(softmax, 120, monkeypatch)


@pytest.mark.parametrize("held", [1, 120, 1 << 20])
def test_sampled_softmax(softmax, held, monkeypatch):
    monkeypatch.setitem(losses._LOGITS, "cpu", held)
    made, h, targets = softmax
    drawn, tries = losses.Negatives(50, 20).draw(np.random.default_rng(0))
    negatives, log_q = torch.from_numpy(drawn), losses.log_expected(50, tries, h.device)
    assert (targets[:, None] == negatives).any()  # some must not count
    expected = h.new_zeros(())
    for row, target in zip(h, targets, strict=True):
        choice = [int(target), *(int(n) for n in negatives if n != target)]
        logits = made.weight[choice] @ row + made.bias[choice] - log_q[choice]
        expected = expected - torch.log_softmax(logits, 0)[0]
    loss = losses.sampled_loss(made, h, targets, negatives, log_q)
    compare(loss, expected, [h, made.weight, made.bias])


def test_adaptive_softmax(monkeypatch):
    monkeypatch.setitem(losses._LOGITS, "cpu", 200)
    torch.manual_seed(0)
    made = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 50, [10, 30], div_value=2.0)
    h, targets = torch.randn(33, 8, requires_grad=True), torch.randint(0, 50, (33,))
    expected = -made.log_prob(h)[torch.arange(33), targets].sum()
    compare(losses.adaptive_loss(made, h, targets), expected, [h, *made.parameters()])


def test_negatives():
    draw = losses.Negatives(1000, 100)
    seen, chance = np.zeros(1000), np.zeros(1000)
    for seed in range(400):
        drawn, tries = draw.draw(np.random.default_rng(seed))
        assert len(set(drawn.tolist())) == 100
        seen[drawn] += 1
        chance += losses.log_expected(1000, tries, torch.device("cpu")).exp().numpy()
    assert seen[0] > 390
    assert abs(seen[100:200].sum() / chance[100:200].sum() - 1) < 0.05
    assert abs(seen.sum() / chance.sum() - 1) < 0.02


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


def test_learns(text, tmp_path):
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
    paper = Recipe.read(Path(__file__).parents[1] / "recipes" / "paper.toml")
    values["optimizer"] = paper.to_dict()["optimizer"]
    values["batch"] |= {"order": "stream", "steps": 20}
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


def reports(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def weights(out):
    return torch.load(out / "last.pt", weights_only=True)["model"]


def same_weights(a, b):
    return all(
        torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True)
    )


@pytest.mark.parametrize("order", ["sentences", "stream"])
def test_resuming_gives_the_same_bits(text, tmp_path, order, monkeypatch):
    settings = recipe(batch={"order": order, "steps": 8}, training={"epochs": 2, "save_every": 0.0})
    run(text, tmp_path / "whole", settings)
    from elmokit.pretrain.train import Trainer

    step, n = Trainer._step, []

    def stop_sometimes(self, *arguments):
        n.append(1)
        if len(n) in (7, 20):
            self.stop()
        return step(self, *arguments)

    monkeypatch.setattr(Trainer, "_step", stop_sometimes)
    assert run(text, tmp_path / "parts", settings) is None
    assert run(text, tmp_path / "parts", settings, resume=True) is None
    assert run(text, tmp_path / "parts", settings, resume=True) is not None
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    a, b = (
        [r["mean"] for r in reports(tmp_path / name) if r["kind"] == "evaluation"]
        for name in ("whole", "parts")
    )
    assert a == b


COMMAND = [sys.executable, "-m", "elmokit", "pretrain", "--tokenized", "--device", "cpu"]


def options(settings):
    flags = []
    for section, values in settings.items():
        for key, value in values.items():
            if isinstance(value, dict):
                for inner, v in value.items():
                    flags += ["--set", f"{section}.{key}.{inner}={json.dumps(v)}"]
            elif key != "tokenized":
                flags += ["--set", f"{section}.{key}={json.dumps(value)}"]
    return flags


def test_killed_and_resumed(text, tmp_path):
    """Killed at any moment: what comes out is what an uninterrupted run gives."""
    settings = json.loads(json.dumps(SMALL))
    settings["training"] |= {"epochs": 6, "save_every": 0.0}
    whole = [*COMMAND, str(text[0][0]), "--valid", str(text[1][0]), *options(settings)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*whole, "--out", tmp_path / "whole"], check=True, env=environment, capture_output=True
    )
    killed = [*whole, "--out", tmp_path / "killed"]
    process = subprocess.Popen(killed, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "killed" / "last.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(random.random() * 0.5)
    process.send_signal(signal.SIGKILL)
    assert process.wait() != 0
    subprocess.run([*killed, "--resume"], check=True, env=environment, capture_output=True)
    assert same_weights(tmp_path / "whole", tmp_path / "killed")


def test_interrupted(text, tmp_path):
    """Ctrl-C saves and leaves."""
    settings = json.loads(json.dumps(SMALL))
    settings["training"] |= {"epochs": 1000}
    command = [*COMMAND, str(text[0][0]), "--valid", str(text[1][0]), *options(settings)]
    process = subprocess.Popen(
        [*command, "--out", tmp_path / "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    # what is made just before the loop, which a busy machine may take long to come to
    while not list((tmp_path / "run").glob("events*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert "stopped and saved" in out
    assert (tmp_path / "run" / "last.pt").exists()


IN_TURN = """
import json, os, sys
from elmokit.cli.main import app
from elmokit.pretrain import reports
reports.draw_training = lambda folder: None  # which takes longer than these runs
for port, arguments in json.loads(sys.argv[1]):
    os.environ["MASTER_PORT"] = str(port)
    app(arguments, standalone_mode=False)
"""


def free_port():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


def in_two_processes(*commands):
    """Commands one after another, each by the same two processes, as torchrun would start them."""
    given = json.dumps([(free_port(), list(map(str, c))) for c in commands])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "WORLD_SIZE": "2"}
    environment["MASTER_ADDR"] = "localhost"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", IN_TURN, given],
            env=environment | {"RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()  # closes what it wrote to
    assert [process.returncode for process in started] == [0, 0], errors


def arguments(text, settings, out, *more):
    command = [*COMMAND[3:], text[0][0], "--valid", text[1][0], *options(settings)]
    return [*command, "--out", out, *more]


@pytest.mark.parametrize("kind", ["sampled", "adaptive"])
def test_several_processes_train_alike(text, tmp_path, kind):
    """Two processes with half a batch each do what one does with the whole."""
    with text[0][0].open("a") as file:  # a cluster of words that few batches have
        file.write("the xylophone sees the zither .\n")
    settings = json.loads(json.dumps(SMALL))
    settings["training"] |= {"epochs": 1, "dropout": 0.0}
    settings["softmax"] = {"kind": kind, "samples": 12, "cutoffs": [26]}
    run(text, tmp_path / "one", Recipe.from_dict(settings))
    two = arguments(text, settings, tmp_path / "two")
    if kind == "sampled":
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        done = subprocess.run(
            [*launcher, "--nproc-per-node", "2", "-m", "elmokit", *two],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    else:
        in_two_processes(two)
    for a, b in zip(
        weights(tmp_path / "one").values(), weights(tmp_path / "two").values(), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-4)
    a, b = reports(tmp_path / "one"), reports(tmp_path / "two")
    losses_of = [[r["loss"] for r in rs if r["kind"] == "training"] for rs in (a, b)]
    assert losses_of[0] == pytest.approx(losses_of[1], rel=1e-4)
    assert a[-1]["mean"] == pytest.approx(b[-1]["mean"], rel=1e-3)


def test_several_processes_resume(text, tmp_path):
    """Carried states and random numbers of every process are in the one checkpoint."""
    settings = json.loads(json.dumps(SMALL))
    settings["batch"] = {"order": "stream", "tokens": 160, "steps": 8}
    settings["optimizer"] |= {"schedule": "constant", "warmup": 0}
    settings["training"] |= {"epochs": 0.5}
    parts = arguments(text, settings, tmp_path / "parts")
    whole = arguments(text, settings, tmp_path / "whole", "--epochs", 1.0)
    in_two_processes(parts, [*parts, "--resume", "--epochs", 1.0], whole)
    state = torch.load(tmp_path / "parts" / "last.pt", weights_only=True)
    first, second = state["processes"]
    assert not torch.equal(first["states"][0][0], second["states"][0][0])
    assert not torch.equal(first["rng"], second["rng"])
    assert [p.name for p in (tmp_path / "parts").glob("*.pt*")] == ["last.pt"]
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    with pytest.raises(InputError, match="number of processes was 2 .* is 1 now; start as many"):
        run(text, tmp_path / "parts", None, resume=True)


def test_steps_that_must_not_be_taken(text, tmp_path, monkeypatch):
    from elmokit.pretrain.model import PretrainModel

    forward, calls = PretrainModel.forward, []

    def broken(self, *arguments):
        sums, states = forward(self, *arguments)
        if self.training:
            calls.append(1)
        bad = self.training and (len(calls) in (3, 4) or len(calls) > 12)
        return (sums * math.nan if bad else sums), states

    monkeypatch.setattr(PretrainModel, "forward", broken)
    with pytest.raises(TrainingError, match="10 times in a row.*last good checkpoint"):
        run(text, tmp_path / "run", recipe(training={"epochs": 2, "save_every": 0.0}))
    state = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    assert all(t.isfinite().all() for t in state["model"].values())


def learning_rates(out):
    return [r["learning_rate"] for r in reports(out) if r["kind"] == "training"]


def test_resuming_with_a_lower_rate(cli, text, tmp_path, monkeypatch):
    """What the error advises is what works."""
    from elmokit.pretrain.model import PretrainModel

    forward, calls = PretrainModel.forward, []

    def broken(self, *arguments):
        sums, states = forward(self, *arguments)
        calls.append(self.training)
        return (sums * math.nan if sum(calls) > 5 else sums), states

    settings = json.loads(json.dumps(SMALL))
    settings["optimizer"] |= {"schedule": "constant"}
    command = ["pretrain", *arguments(text, settings, tmp_path / "run")[1:]]
    monkeypatch.setattr(PretrainModel, "forward", broken)
    failed = cli(*command, "--set", "training.save_every=0")
    monkeypatch.undo()
    assert failed.returncode == 2
    advice = failed.stderr.strip().rpartition(", as ")[2].split()
    assert advice == ["--set", "optimizer.learning_rate=0.0025"]
    again = cli(*command, "--resume", *advice)
    assert again.returncode == 0, again.stderr
    assert learning_rates(tmp_path / "run")[-1] == pytest.approx(0.0025)
    stored = RunFolder(tmp_path / "run").recipe()
    assert stored.optimizer.learning_rate == 0.0025
    assert stored.training.save_every == 0  # which was not given again
    assert not list((tmp_path / "run").glob("*.new"))


@pytest.mark.usefixtures("no_pictures")
def test_resuming_with_other_settings(cli, text, tmp_path):
    out = tmp_path / "run"
    run(text, out, recipe(training={"epochs": 0.5}, optimizer={"schedule": "constant"}))
    kept = ["pretrain", text[0][0], "--valid", text[1][0], "--out", out, "--device", "cpu"]
    settings = ["optimizer.weight_decay=0.5", "optimizer.betas=[0.8, 0.9]", "training.dropout=0"]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    done = cli(*kept, "--resume", "--epochs", 1, *flags)
    assert done.returncode == 0, done.stderr
    stored = RunFolder(out).recipe()
    assert (stored.training.epochs, stored.training.dropout) == (1, 0)
    state = torch.load(out / "last.pt", weights_only=True)
    groups = state["optimizer"]["param_groups"]
    assert [g["weight_decay"] for g in groups] == [0.5, 0]
    assert [tuple(g["betas"]) for g in groups] == [(0.8, 0.9)] * 2
    assert state["progress"]["batch"] == state["progress"]["step"] > 10
    assert cli(*kept, "--resume", "--minutes", 0.0001).returncode == 0
    assert RunFolder(out).recipe().training.minutes == 0.0001
    assert cli(*kept, "--resume", "--epochs", 1).returncode == 0
    assert RunFolder(out).recipe().training.minutes is None
    both = cli(*kept, "--resume", "--epochs", 1, "--minutes", 1)
    assert both.returncode == 2
    assert "--epochs or --minutes, not both" in both.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--size", "medium"], "model.context.cell_dim=2048 instead of 48"),
        (["--set", "model.context.n_layers=3"], "model.context.n_layers=3 instead of 2"),
        (["--set", "model.encoder=words"], "encoder=words instead of char_cnn"),
        (["--set", "batch.tokens=300"], "batch.tokens=300 instead of 200"),
        (["--set", "softmax.kind=adaptive"], "softmax.kind=adaptive instead of full"),
        (["--tokenizer", "characters"], "text.tokenizer=characters instead of whitespace"),
        (["--vocabulary-size", "9"], "text.vocabulary_size=9 instead of 100000"),
        (["--seed", "1"], "training.seed=1 instead of 0"),
        (["--set", "optimizer.name=adagrad"], "optimizer.name=adagrad instead of adamw"),
        (["--init-from", "here/model"], "--init-from=.*/here/model instead of None"),
        (["--vocabulary", "words.txt"], "--vocabulary=.*/words.txt instead of None"),
        (["--new-vocabulary"], "--new-vocabulary=True instead of False"),
    ],
)
def test_resuming_with_settings_that_cannot_change(cli, text, tmp_path, flags, message):
    folder = RunFolder(tmp_path / "run")
    whitespace = recipe(text={"tokenizer": "whitespace"})
    folder.begin(whitespace, Start())  # nothing is saved yet, but no more is needed to refuse
    command = ["pretrain", text[0][0], "--valid", text[1][0], "--out", folder.path, "--resume"]
    done = cli(*command, *flags)
    assert done.returncode == 2
    assert re.search(f"--resume cannot go on with .*{message}.*; leave it out", done.stderr)
    assert folder.recipe() == whitespace


@pytest.mark.usefixtures("no_pictures")
def test_resuming_a_run_that_went_on_with_a_model(text, tmp_path):
    """All it needs is in its folder."""
    run(text, tmp_path / "first", recipe(training={"epochs": 0.5}))
    model = tmp_path / "first" / "best"
    larger = recipe(model={"context": {"cell_dim": 64, "projection_dim": 16}})  # does not count
    settings = replace(larger, training=replace(larger.training, epochs=0.5))
    run(text, tmp_path / "run", settings, init_from=str(model))
    with pytest.raises(InputError, match="--init-from=.*first instead of .*best"):
        run(text, tmp_path / "run", None, resume=True, init_from=str(tmp_path / "first"))
    shutil.rmtree(tmp_path / "first")
    longer = replace(settings, training=replace(settings.training, epochs=1.0))
    done = run(text, tmp_path / "run", longer, resume=True, init_from=str(model))
    assert run(text, tmp_path / "run", None, resume=True) == done
    assert Elmo.load(tmp_path / "run" / "best", device="cpu").config.context.cell_dim == 48


# In and out


def test_words_instead_of_characters(text, tmp_path):
    settings = Recipe.from_dict(recipe().to_dict() | {"encoder": "words"})
    found = run(text, tmp_path / "run", settings)
    assert found.mean < 5
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    vectors = elmo.encode([["cat", "xyzzy", "plugh"]], layers=0)[0]
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    np.testing.assert_array_equal(vectors[1], vectors[2])  # both unknown


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
    first = run(text, tmp_path / "first", recipe(training={"epochs": 4}))
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


@pytest.mark.usefixtures("no_pictures")
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


@pytest.mark.usefixtures("no_pictures")
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


def test_rows_of_a_new_vocabulary(text, tmp_path):
    from elmokit.formats import read_model
    from elmokit.formats.checkpoint import SOFTMAX
    from elmokit.pretrain.start import from_model

    run(text, tmp_path / "run", recipe())
    old = read_model(tmp_path / "run" / "best")
    assert from_model(old, ["unused"], False, recipe()) is old
    words = ["<S>", "</S>", "<UNK>", "cats", "dog", "zebra"]
    new = from_model(old, words, True, recipe())
    row = old.vocabulary.index("dog")
    for part in ("weight", "bias"):
        torch.testing.assert_close(
            new.tensors[SOFTMAX + part][4], old.tensors[SOFTMAX + part][row].float()
        )
    assert new.tensors[SOFTMAX + "weight"].isfinite().all()
    new.check()
    adaptive = recipe(softmax={"kind": "adaptive", "cutoffs": [2]})
    with pytest.raises(ConfigError, match="has a full softmax, which softmax.kind=adaptive"):
        from_model(old, words, False, adaptive)
    assert from_model(old, words, True, adaptive).config.softmax_cutoffs == (2,)


# What goes wrong


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": {"vocabulary_size": 2}}, "text.vocabulary_size must be 4 or more"),
        ({"batch": {"order": "random"}}, "batch.order must be sentences or stream or documents"),
        ({"softmax": {"kind": "half"}}, "softmax.kind must be full or sampled or adaptive"),
        ({"optimizer": {"betas": [0.9]}}, "optimizer.betas must be tuple"),
        ({"training": {"epochs": "two"}}, "training.epochs must be float, not 'two'"),
    ],
)
def test_wrong_settings(change, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.from_dict(change)


def test_all_mistakes_at_once(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[trainning]\n[text]\nsize = 3\nmin_count = "x"\n[model.context]\nlayers = 3\n')
    with pytest.raises(ConfigError) as error:
        Recipe.read(path)
    for part in (
        "no section trainning",
        "unknown setting size",
        "text.min_count",
        "setting layers",
    ):
        assert part in str(error.value)
    path.write_text("not = = toml")
    with pytest.raises(ConfigError, match="is not TOML"):
        Recipe.read(path)


def test_too_few_words_to_draw_from(text, tmp_path):
    said = []
    settings = recipe(softmax={"kind": "sampled"}, training={"epochs": 1})
    pretrain(*text, tmp_path / "run", settings, device="cpu", say=said.append)
    assert "only 26 words" in said[0]
    assert "full softmax is used" in said[0]


def test_bad_text(text, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n\n")
    with pytest.raises(InputError, match="the training text is empty: there is no word in"):
        run(([empty], text[1]), tmp_path / "a", recipe())
    with pytest.raises(InputError, match="the validation text is empty: there is no word in"):
        run((text[0], [empty]), tmp_path / "a", recipe())
    with pytest.raises(InputError, match="there is no file"):
        run(([tmp_path / "nowhere"], text[1]), tmp_path / "b", recipe())
    with pytest.raises(InputError, match="fewer than one batch of 10,000,000"):
        run(text, tmp_path / "c", recipe(batch={"tokens": 10**7}))
    with pytest.raises(InputError, match="fewer than one batch of"):
        run(text, tmp_path / "d", recipe(batch={"tokens": 10**7, "order": "stream"}))
    with pytest.raises(ConfigError, match="differs from context.cell_dim"):
        run(text, tmp_path / "f", recipe(model={"context": {"cell_dim": 16, "projection_dim": 16}}))


@pytest.mark.usefixtures("no_pictures")
def test_places_of_text(text, tmp_path):
    train, valid = text
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "valid.txt").symlink_to(valid[0])
    (folder / "train.txt").write_text(train[0].read_text())
    with pytest.raises(InputError, match="valid.txt is among the training text and the valid"):
        run(([folder], valid), tmp_path / "run", recipe())
    (folder / "valid.txt").unlink()
    with pytest.raises(InputError, match="run, .*, is inside the text folder .*; choose a place"):
        run(([folder], valid), folder / "deep" / "run", recipe())
    with pytest.raises(InputError, match="--data, .*, is inside the text folder"):
        run((train, [folder]), tmp_path / "run", recipe(), data=tmp_path / "run/../texts/data")
    assert [p.name for p in folder.iterdir()] == ["train.txt"]
    assert not (tmp_path / "run").exists()
    assert run(([folder], valid), tmp_path / "run", recipe(training={"epochs": 0.1})) is not None


def test_options_without_effect(cli, text, tmp_path):
    sized = tmp_path / "sized.toml"
    sized.write_text("[model.context]\ncell_dim = 64\n")
    words = tmp_path / "words.txt"
    for flags, message in (
        (["--new-vocabulary"], "without --init-from it has no effect"),
        (["--init-from", "x", "--size", "small"], "own size counts; leave out --size"),
        (["--init-from", "x", "--set", "model.context.n_layers=1"], "leave out --set model"),
        (["--init-from", "x", "--recipe", sized], "section [model] of"),
        (["--vocabulary", words, "--vocabulary-size", 9], "leave out text.vocabulary_size"),
        (["--vocabulary", words, "--set", "text.min_count=1"], "leave out text.min_count"),
    ):
        done = cli("pretrain", text[0][0], "--valid", text[1][0], "--out", tmp_path / "r", *flags)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert message in done.stderr
        assert not (tmp_path / "r").exists()


def test_recipes_of_the_package():
    recipes = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))
    assert len(recipes) >= 4
    for path in recipes:
        read = Recipe.read(path)
        assert Recipe.from_dict(json.loads(json.dumps(read.to_dict()))) == read
        assert read.changed({}) == read == read.changed(read_toml(path))


def test_a_given_vocabulary(text, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("</S>\n<S>\n<UNK>\nthe\n.\nin\ncat\ndog\n")
    found = run(text, tmp_path / "run", recipe(), vocabulary=path)
    assert 0.3 < found.unknown_rate < 0.6
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    assert elmo.vocabulary.words[:2] == ("</S>", "<S>")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    assert elmo.perplexity(lines).mean == pytest.approx(found.mean, rel=1e-4)
    path.write_text("</S>\n<S>\n<UNK>\nthe\nthe\n")
    with pytest.raises(FormatError, match="words.txt: the vocabulary has 1 words more than once"):
        run(text, tmp_path / "twice", recipe(), vocabulary=path)
    path.write_text("the\n")
    with pytest.raises(FormatError, match="has no line <S> or </S> or <UNK>"):
        run(text, tmp_path / "none", recipe(), vocabulary=path)


def test_no_room_on_the_disk(text, tmp_path, monkeypatch):
    """The run stops with a clear word, and what was saved before is still there."""
    save, calls = torch.save, []

    def full(state, file):
        calls.append(1)
        if len(calls) == 3:
            file.write(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(state, file)

    monkeypatch.setattr(torch, "save", full)
    settings = recipe(training={"epochs": 2, "save_every": 0.0})
    with pytest.raises(OutputError, match="last.pt.*continue with --resume"):
        run(text, tmp_path / "run", settings)
    monkeypatch.undo()
    assert run(text, tmp_path / "run", settings, resume=True) is not None
    run(text, tmp_path / "whole", settings)
    assert same_weights(tmp_path / "whole", tmp_path / "run")


def test_folders_that_are_in_use(text, tmp_path):
    first = run(text, tmp_path / "run", recipe(training={"epochs": 1}))
    assert run(text, tmp_path / "run", None, resume=True) == first  # nothing is left to do
    with pytest.raises(OutputError, match="holds a run already; add --resume"):
        run(text, tmp_path / "run", recipe())
    with pytest.raises(FormatError, match="not the folder of a run"):
        run(text, tmp_path / "other", recipe(), resume=True)
    before = (tmp_path / "run" / "vocabulary.txt").read_text()
    kept = text[0][0].read_text()
    text[0][0].write_text(kept.replace("cat", "cut"))
    with pytest.raises(InputError, match="text is not what it was"):
        run(text, tmp_path / "run", recipe(), resume=True)
    assert (tmp_path / "run" / "vocabulary.txt").read_text() == before
    text[0][0].write_text(kept)
    (tmp_path / "run" / "last.pt").unlink()  # as if it had been killed before saving
    assert run(text, tmp_path / "run", recipe(training={"epochs": 1}), resume=True) is not None
    with pytest.raises(InputError, match="there is no file"):
        run(([tmp_path / "nowhere"], text[1]), tmp_path / "again", recipe())
    assert run(text, tmp_path / "again", recipe(training={"epochs": 1})) is not None
    (tmp_path / "run" / "last.pt").write_bytes(b"broken")
    with pytest.raises(FormatError, match="is damaged"):
        run(text, tmp_path / "run", recipe(), resume=True)


def test_commands(cli, text, tmp_path):
    wrong = cli("pretrain", text[0][0], "--valid", text[1][0], "--out", tmp_path / "r",
                "--set", "optimizer.lr=1")  # fmt: skip
    assert wrong.returncode == 2
    assert "unknown setting lr" in wrong.stderr
    wrong = cli("evaluate", tmp_path, text[1][0])
    assert wrong.returncode == 2


# Transformers


SIZES = {"n_layers": 2, "cell_dim": 48, "projection_dim": 16, "n_heads": 2}
TRANSFORMER = {"context": {"kind": "transformer"} | SIZES}


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
