"""Batches, windows and streams do not change results, and memory stays bounded."""

import numpy as np
import pytest
import torch

from elmokit import CarriedState
from elmokit.errors import OutOfMemoryError
from elmokit.inference import engine
from elmokit.inference.batches import Windows, plan_batches
from helpers.models import SENTENCES
from helpers.numbers import assert_close


def test_a_very_long_sentence_agrees_with_the_reference(tiny, tiny_reference, monkeypatch):
    """It is read in several pieces."""
    monkeypatch.setattr("elmokit.kernels.cpu._ROWS_AHEAD", 100)
    tokens = [str(i % 97) for i in range(1001)]
    (layers,) = tiny.encode([tokens, ["short"]], "all")[:1]
    assert_close(layers, tiny_reference.layers(tokens)[0])


def test_a_sentence_of_44177_tokens_works(tiny):
    """A line of this length is reported to break another library."""
    vectors = tiny.encode(" ".join(["word", "other", "third"] * 14_726)[:-6])
    assert vectors.shape == (44_177, 16)
    assert np.isfinite(vectors).all()


def test_batches_hold_every_sentence_once():
    lengths = [3, 50, 2, 2, 9, 1, 700, 3]
    batches = list(plan_batches(range(8), np.array(lengths), max_tokens=20, max_sentences=3))
    assert sorted(i for batch in batches for i in batch) == list(range(8))
    for batch in batches:
        assert len(batch) <= 3
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 20
    assert list(plan_batches([], np.zeros(0, int), 10, 10)) == []


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 23, 24, 25, 100])
@pytest.mark.parametrize("ahead", [0, 1, 50])
def test_windows_hold_every_sentence_once(n, ahead):
    sentences = [[str(i)] * (i % 3) for i in range(n)]
    windows, found = Windows(sentences, "<S>", "</S>", 8, 32), []
    while window := windows.take():
        for _ in range(ahead):
            windows.read_ahead(0.3)
        places = window.places(range(len(window.lengths)), torch.device("cpu")).tolist()
        found += [[window.words[i - 1] for i in row if i] for row in places]
    assert found == [["<S>", *sentence, "</S>"] for sentence in sentences]


@pytest.mark.parametrize("capacity", [0, 30, 1000])
def test_windows_do_not_change_results(tiny, monkeypatch, capacity):
    """Whether the cache keeps all words from one window to the next, some, or none."""
    sentences = [s for s in SENTENCES for _ in range(9)]
    expected = tiny.encode(sentences, "all")
    monkeypatch.setattr(engine, "_CPU_WINDOWS", (2, 5))
    tiny._engine.cache.clear()
    tiny._engine.cache.capacity = capacity
    for a, b in zip(tiny.encode(sentences, "all"), expected, strict=True):
        assert_close(a, b)
    assert len(tiny._engine.cache) <= capacity
    assert bool(len(tiny._engine.cache)) == bool(capacity)


def test_batches_shrink_when_memory_runs_out(tiny, monkeypatch):
    expected = tiny.encode(SENTENCES, "all")
    sizes, run = [], tiny.bilm.forward

    def forward(tokens, *rest):
        sizes.append(len(tokens))
        if len(tokens) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(tokens, *rest)

    monkeypatch.setattr(tiny.bilm, "forward", forward)
    for mine, theirs in zip(tiny.encode(SENTENCES, "all"), expected, strict=True):
        assert_close(mine, theirs)
    assert max(sizes) > 2
    assert sizes.count(max(sizes)) == 1  # later batches stay small
    sizes.clear()
    tiny.encode(SENTENCES * 50)
    assert sum(size > 2 for size in sizes) < 5

    def always(tokens, *rest):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to …")

    monkeypatch.setattr(tiny.bilm, "forward", always)
    with pytest.raises(OutOfMemoryError, match="a sentence of 25 tokens does not fit"):
        tiny.encode([SENTENCES[5]])


def test_fewer_words_are_encoded_at_once_when_memory_runs_out(tiny, monkeypatch):
    expected = tiny.encode(SENTENCES, "all")
    sizes, encode = [], tiny.bilm.token_encoder.forward

    def forward(ids, most=3):
        sizes.append(len(ids))
        if len(ids) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return encode(ids)

    monkeypatch.setattr(tiny.bilm.token_encoder, "forward", forward)
    tiny._engine.cache.clear()
    for mine, theirs in zip(tiny.encode(SENTENCES, "all"), expected, strict=True):
        assert_close(mine, theirs)
    assert max(sizes) > 3
    assert tiny._engine._max_tokens["cpu"] == engine._CPU_TOKENS  # unchanged
    tiny._engine.cache.clear()
    monkeypatch.setattr(tiny.bilm.token_encoder, "forward", lambda ids: forward(ids, 0))
    with pytest.raises(OutOfMemoryError, match="of 4 different words do not fit in the memory"):
        tiny.encode("two words")


def test_out_of_memory_with_carried_state_suggests_a_smaller_batch(tiny, monkeypatch):
    def full(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(tiny.bilm, "forward", full)
    with pytest.raises(OutOfMemoryError, match="pass a smaller batch_size="):
        tiny.encode(["a", "b"], state=CarriedState())


def test_carried_state_runs_batches_of_64(tiny, monkeypatch):
    """As in AllenNLP: the 65th sentence continues the first."""
    sizes, run = [], tiny.bilm.forward

    def forward(tokens, *rest):
        sizes.append(len(tokens))
        return run(tokens, *rest)

    monkeypatch.setattr(tiny.bilm, "forward", forward)
    tiny.encode(["a"] * 150, state=CarriedState())
    assert sizes == [64, 64, 22]


@pytest.mark.parametrize("state", ["zero", "warm", "carried"])
def test_stream_gives_the_vectors_of_encode(tiny, monkeypatch, state):
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 5000)
    texts = [*SENTENCES, "a plain string"] * 3
    states = [CarriedState() if state == "carried" else state for _ in range(2)]
    wanted = tiny.encode(texts, "all", state=states[0], batch_size=4)
    found = list(tiny.stream(iter(texts), "all", state=states[1], batch_size=4))
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert_close(a, b)


def test_stream_reads_only_the_texts_it_needs(tiny, monkeypatch):
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 100)
    taken = []

    def texts():
        for i in range(1000):
            taken.append(i)
            yield "some words to read"

    stream = tiny.stream(texts())
    assert next(stream).shape == (4, tiny.dim)
    assert len(taken) < 10
