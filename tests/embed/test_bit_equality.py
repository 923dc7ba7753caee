"""``elmokit embed``: a resumed run gives the same bits as one that was not stopped."""

import numpy as np
import pytest

from elmokit.embed.run import EmbedOptions, embed_lines
from elmokit.errors import InputError
from elmokit.inference import word_cache
from elmokit.inference.engine import Engine
from elmokit.io.job import Job
from helpers.embedding import lines_that_stop
from helpers.indexing import sentences

LINES = [f"{line} {i % 17}" for i, line in enumerate(sentences(60))]
N_CACHED = 20  # fewer words than the lines have


@pytest.fixture
def sensitive(tiny, monkeypatch):
    """A model whose vectors show which words and which sentences were computed together."""
    encode, run_batch = word_cache.encode_words, Engine._run_batch

    def encode_words(encoder, alphabet, words):
        assert len(words) < 40  # from a cache, most of the time
        return encode(encoder, alphabet, words) * (1 + 0.01 * len(words) + 0.001 * len(words[0]))

    def run(engine, window, vectors, indices, *more):
        batch, final = run_batch(engine, window, vectors, indices, *more)
        batch.layers += 0.01 * len(indices) + 0.001 * int(window.lengths[indices].sum())
        return batch, final

    monkeypatch.setattr(word_cache, "encode_words", encode_words)
    monkeypatch.setattr(Engine, "_run_batch", run)
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 40 * 3 * 16 * 4)
    monkeypatch.setattr("elmokit.inference.vectors._WINDOWS_PER_CACHE", 3)
    monkeypatch.setattr("elmokit.inference.engine._CPU_WINDOWS", (2, 4))
    monkeypatch.setattr("elmokit.io.job._GROUP_BYTES", 5 * 3 * 16 * 4)  # windows end in pieces
    tiny._engine._cache_bytes = N_CACHED * 4 * tiny.config.context.projection_dim
    return tiny


def embedded(elmo, path, stops=(), **options):
    """The bytes of the file after a run that was stopped after some numbers of lines."""
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            embed_lines(
                elmo, lines_that_stop(LINES, stop), path, EmbedOptions(**options, resume=True)
            )
    resumed = embed_lines(elmo, iter(LINES), path, EmbedOptions(**options, resume=True)).resumed
    assert (resumed > 0) == bool(stops)
    return path.read_bytes()


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_size": 3}, {"layers": [0, 2]}, {"dtype": "float16"}, {"state": "warm"}],
    ids=str,
)
def test_a_resumed_run(sensitive, tmp_path, options):
    whole = embedded(sensitive, tmp_path / "whole.npz", **options)
    for stop in range(12, len(LINES), 3):
        assert embedded(sensitive, tmp_path / "out.npz", [stop], **options) == whole, stop
    assert embedded(sensitive, tmp_path / "out.npz", [12, 20, 31, 32, 55], **options) == whole


def test_a_run_killed_inside_a_window(sensitive, tmp_path, monkeypatch):
    """Only the missing arrays are added to those of the unfinished window."""
    whole = embedded(sensitive, tmp_path / "whole.npz")
    append = Job.append
    for most in range(1, 40, 2):

        def killed(job, group, most=most):
            if len(job) >= most:
                raise OSError(28, "No space left on device")
            append(job, group)

        with monkeypatch.context() as patch, pytest.raises(Exception, match="no space left"):
            patch.setattr(Job, "append", killed)
            embed_lines(sensitive, LINES, tmp_path / "out.npz")
        done = embed_lines(sensitive, LINES, tmp_path / "out.npz", EmbedOptions(resume=True))
        assert done.resumed >= most
        assert (tmp_path / "out.npz").read_bytes() == whole


def test_ctrl_c_in_the_first_window(sensitive, tmp_path, monkeypatch):
    """Lines are kept as soon as they and those before them are computed."""
    whole = embedded(sensitive, tmp_path / "whole.npz")
    run, batches = Engine._run_batch, []

    def interrupted(engine, window, vectors, indices, *more):
        batches.append(len(indices))
        if len(batches) == 2:
            raise KeyboardInterrupt
        return run(engine, window, vectors, indices, *more)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Engine, "_run_batch", interrupted)
        embed_lines(sensitive, LINES, tmp_path / "out.npz")
    done = embed_lines(sensitive, LINES, tmp_path / "out.npz", EmbedOptions(resume=True))
    assert done.resumed == batches[0]
    assert (tmp_path / "out.npz").read_bytes() == whole


def test_what_was_encoded_before(sensitive, tmp_path):
    """Words cached by earlier calls have no influence, and stay cached."""
    for state in ("zero", "warm"):
        whole = embedded(sensitive, tmp_path / "whole.npz", state=state)
        sensitive.encode(LINES[:7])
        n_cached = len(sensitive._engine.cache)
        assert embedded(sensitive, tmp_path / "out.npz", state=state) == whole
        assert len(sensitive._engine.cache) == n_cached > 0


def test_stream_yields_what_is_not_done(sensitive):
    lengths = [len(line.split()) for line in LINES]
    whole = list(sensitive.stream(LINES, done=[]))
    for n_done in range(0, len(LINES) + 1, 5):
        rest = list(sensitive.stream(iter(LINES), done=lengths[:n_done]))
        assert len(rest) == len(LINES) - n_done
        for a, b in zip(rest, whole[n_done:], strict=True):
            np.testing.assert_array_equal(a, b)


def test_only_the_words_since_the_cache_was_emptied_are_read(sensitive, monkeypatch):
    tokenized = []
    tokenizer = sensitive.tokenizer
    monkeypatch.setattr(
        sensitive, "tokenizer", lambda text: tokenized.append(text) or tokenizer(text)
    )
    lengths = [len(line.split()) for line in LINES]
    list(sensitive.stream(LINES, done=lengths[:-1]))
    assert 1 < len(tokenized) < 30


@pytest.mark.parametrize("done", [3, "ab", [1.5], [-1], [None]])
def test_wrong_numbers_of_tokens(tiny, done):
    with pytest.raises(InputError, match="done must be a (list|whole number)"):
        tiny.stream(LINES, done=done)


def test_empty_text(tiny, tmp_path):
    for lines in ([], [""], ["", ""]):
        done = embed_lines(tiny, lines, tmp_path / "out.npz")
        assert (done.sentences, done.tokens) == (len(lines), 0)
        with np.load(tmp_path / "out.npz") as file:
            assert [file[str(i)].shape for i in range(len(lines))] == [(3, 0, 16)] * len(lines)
        assert [p.name for p in tmp_path.iterdir()] == ["out.npz"]
