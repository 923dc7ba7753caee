"""Batches of sentences and of streams."""

import itertools

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.training_batches import (
    BEGIN,
    END,
    SentenceBatches,
    Share,
    StreamBatches,
    make_batches,
)
from helpers.pretraining import recipe


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
    """However sentences are grouped, none is lost and no process is idle."""
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
    with pytest.raises(InputError, match="42 tokens may have .* 4 processes; .*batch.tokens of 43"):
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
