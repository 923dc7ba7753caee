"""Text to numbers, and numbers to batches."""

import gzip
import itertools
import lzma
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
import zstandard

from elmokit.errors import (
    FormatError,
    InputError,
)
from elmokit.formats.checkpoint import Checkpoint
from elmokit.io.lines import find_files, read_lines
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.recasing import OtherCases, in_other_cases
from elmokit.pretrain.data.target_words import choose_words, code_words
from elmokit.pretrain.data.training_batches import BEGIN, END, SentenceBatches, Share, StreamBatches
from elmokit.pretrain.recipe import SoftmaxSettings
from elmokit.pretrain.trainer import make_batches
from helpers.pretraining import recipe, sentences

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
    monkeypatch.setattr("elmokit.pretrain.data.prepare._PIECE", 2000)
    path = tmp_path / "text"
    path.write_text("\n".join(sentences(200)) + "\n\n" + "\n".join(sentences(100)))
    one = prepare([path], tmp_path / "one", TextOptions(), 1)
    two = prepare([path], tmp_path / "two", TextOptions(), 2)
    for name in one.FILES[1:]:
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
    assert one.digest == two.digest
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


# Capitals and small letters


def _corpus(tmp_path, lines):
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n")
    return prepare([path], tmp_path / "data", TextOptions(tokenized=True))


def _sentences(batch, codes, words):
    """What each sentence of a batch reads in the forward direction, without the mark."""
    found = {}
    for sentence, code in zip(batch.sentences.tolist(), codes[0].tolist(), strict=True):
        if code != BEGIN:
            found.setdefault(sentence, []).append(words[code])
    return found


@pytest.mark.parametrize("order", ["sentences", "stream"])
def test_some_sentences_are_read_in_another_case(tmp_path, order):
    corpus = _corpus(tmp_path, ["Ann saw the Red CAT .", "the straße İS here 中文 ."] * 400)
    given = code_words(corpus, "<S>", "</S>")
    words, codes = in_other_cases(given)
    assert words[: len(given)] == given
    assert len(set(words)) == len(words)
    settings = recipe(batch={"order": order, "tokens": 4800, "steps": 300})
    plan = make_batches(settings, corpus, Share())
    cases = OtherCases(codes, 0.2, plan.n_sentences, seed=1)
    batch = plan.batch(0, 0)
    kinds = [0, 0, 0]
    written, read = (_sentences(batch, found, words) for found in (batch.inputs, cases.read(batch)))
    for number, sentence in written.items():
        ways = (sentence, [w.upper() for w in sentence], [w.lower() for w in sentence])
        kinds[ways.index(read[number])] += 1
    assert len(written) > 600
    shares = np.array(kinds) / len(written)
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.05)
    # both directions read the same, whichever step they are at
    upper = [words.index(word) for word in ("ANN", "SAW", "STRASSE")]
    shouted = [_with(upper, batch, way) for way in cases.read(batch)]
    assert shouted[0] == shouted[1]
    again = OtherCases(codes, 0.2, plan.n_sentences, seed=1)
    np.testing.assert_array_equal(again.read(batch), cases.read(batch))
    other = plan.batch(1, 0)
    assert _with(upper, other, cases.read(other)[0]) != shouted[0]


def _with(codes, batch, read):
    """Sentences of a batch in which a direction reads one of some codes."""
    return set(batch.sentences[np.isin(read, codes)].tolist())


@pytest.mark.parametrize("order", ["sentences", "stream"])
def test_cases_do_not_depend_on_the_number_of_processes(tmp_path, order):
    corpus = _corpus(tmp_path, [f"{'a ' * (i % 7)}B{i} ." for i in range(200)])
    _, codes = in_other_cases(code_words(corpus, "<S>", "</S>"))
    settings = recipe(batch={"order": order, "tokens": 320, "steps": 8})
    found = []
    for share in (Share(), Share(0, 2), Share(1, 2)):
        plan = make_batches(settings, corpus, share)
        batch, cases = plan.batch(0, 1), OtherCases(codes, 0.5, plan.n_sentences, seed=0)
        found.append(
            sorted(zip(batch.sentences.tolist(), *cases.read(batch).tolist(), strict=True))
        )
        assert (cases.read(batch) != batch.inputs).any()
    assert found[0] == sorted(found[1] + found[2])


def test_no_other_case_is_a_mark():
    words, codes = in_other_cases(["<S>", "</S>", "<s>", "</s>", "Word"])
    assert words == ["<S>", "</S>", "<s>", "</s>", "Word", "WORD", "word"]
    assert codes.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 5], [0, 1, 2, 3, 6]]


def test_text_without_cases():
    with pytest.raises(InputError, match="training.recased has no effect on this text"):
        in_other_cases(["<S>", "</S>", "我", "们", "。"])


def test_only_training_reads_other_cases(tmp_path):
    corpus = _corpus(tmp_path, ["the cat sees the Dog ."] * 50)
    vocabulary = choose_words(corpus, 100, 1)
    base = Checkpoint(replace(recipe().model, vocabulary_size=len(vocabulary)), {}, vocabulary)
    plan = SentenceBatches(corpus, 300, 0)
    settings, device = SoftmaxSettings("full"), torch.device("cpu")
    feeds = [Feed(corpus, plan, base, settings, 0, device, share) for share in (0.0, 1.0)]
    first = plan.batch(0, 0)
    for step, differs in ((0, True), (None, False)):
        plain, other = (feed.make(first, step) for feed in feeds)
        made = zip(feeds, (plain, other), strict=True)
        read = [feed.table.ids[batch.words][batch.inputs] for feed, batch in made]
        assert torch.equal(read[0], read[1]) is not differs
        assert torch.equal(plain.targets, other.targets)
