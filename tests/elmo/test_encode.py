"""Vectors of tokens: shapes, layers, marks, types, and inputs of any kind."""

import copy
import pickle

import numpy as np
import torch

from elmokit import Elmo
from elmokit.kernels import cpu
from helpers.models import SENTENCES
from helpers.numbers import assert_close


def test_encode_gives_one_float32_array_per_text_in_order(tiny):
    texts = ["I went to the bank", ["already", "tokenised"], "", "one"]
    vectors = tiny.encode(texts)
    assert [v.shape for v in vectors] == [(5, 16), (2, 16), (0, 16), (1, 16)]
    assert all(v.dtype == np.float32 and v.flags.owndata for v in vectors)
    assert_close(vectors[1], tiny.encode(["already tokenised"])[0])


def test_a_single_string_works_everywhere(lm_folder):
    elmo, text = Elmo.load(lm_folder, device="cpu"), "the cat sat"
    np.testing.assert_array_equal(elmo.encode(text), elmo.encode([text])[0])
    np.testing.assert_array_equal(elmo.encode_sentences(text), elmo.encode_sentences([text])[0])
    for name, array in elmo.outputs([text]).items():
        np.testing.assert_array_equal(elmo.outputs(text)[name], array[0])
    np.testing.assert_array_equal(elmo.score(text).forward, elmo.score([text])[0].forward)
    assert elmo.perplexity(text) == elmo.perplexity([text])
    (vectors,) = elmo.stream(text)
    np.testing.assert_array_equal(vectors, elmo.encode(text))
    warm = zip(elmo.warm_state(text).tensors, elmo.warm_state([text]).tensors, strict=True)
    assert all(torch.equal(a, b) for a, b in warm)


def test_marks_are_one_vector_before_and_one_after(tiny):
    """Each direction starts with a mark, whose vector does not depend on the sentence."""
    texts, half = [["the", "bank"], [], ["a", "river", "bank"]], tiny.dim // 2
    for layers in ("all", "mix", 2):
        kept = tiny.encode(texts, layers, marks=True)
        for with_marks, without in zip(kept, tiny.encode(texts, layers), strict=True):
            assert_close(with_marks[..., 1:-1, :], without)
            assert_close(with_marks[..., 0, :half], kept[1][..., 0, :half])
            assert_close(with_marks[..., -1, half:], kept[1][..., -1, half:])
    assert kept[1].shape == (2, tiny.dim)
    alone = tiny.encode("the bank", marks=True)
    assert alone.shape == (4, tiny.dim)
    begin, end = (tiny.encode([["the"], ["x"]], 0, marks=True)[k][[0, -1]] for k in (0, 1))
    assert_close(begin, end)  # the token layer is independent of context
    assert np.abs(begin[0] - begin[1]).max() > 1e-3


def test_layers_can_be_chosen_by_name_and_number(tiny):
    (every,) = tiny.encode(["some words here"], "all")
    assert every.shape == (3, 3, 16)
    for layers, expected in [
        ("top", every[2]),
        (2, every[2]),
        (-1, every[2]),
        (1, every[1]),
        (0, every[0]),
        ("average", every.mean(0)),
        ("mix", every.mean(0)),
        ([0, 2], every[[0, 2]]),
        ([1], every[[1]]),
    ]:
        (vectors,) = tiny.encode(["some words here"], layers)
        assert_close(vectors, expected)


def test_mix_uses_the_weights_of_the_model(tiny, tmp_path):
    (every,) = tiny.encode(["some words here"], "all")
    tiny.set_mix([1.0, 0.0, -1.0], gamma=2.0)
    shares = np.exp([1, 0, -1]) / np.exp([1, 0, -1]).sum()
    expected = 2 * np.einsum("k,ktd->td", shares, every)
    assert_close(tiny.encode("some words here"), expected)
    tiny.save(tmp_path / "model")
    again = Elmo.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.encode("some words here"), tiny.encode("some words here"))


def test_lstms_above_the_chosen_layers_do_not_run(tiny, monkeypatch):
    calls, run = [], cpu.run_stack

    def counted(stack, *rest):
        calls.append(len(stack))
        return run(stack, *rest)

    monkeypatch.setattr(cpu, "run_stack", counted)
    tiny.encode("a b", layers=0)
    assert sum(calls) == 0
    tiny.encode("a b", layers=1)
    assert sum(calls) == 2  # one layer of each direction


def test_float16_is_float32_rounded(tiny):
    half = tiny.encode("some words", dtype="float16")
    assert half.dtype == np.float16
    assert_close(half, tiny.encode("some words"), 1e-3)


def test_tuples_and_arrays_are_accepted_as_lists(tiny):
    expected = tiny.encode(["a b", "c"])
    for texts in (("a b", "c"), np.array(["a b", "c"]), [("a", "b"), np.array(["c"])]):
        for a, b in zip(tiny.encode(texts), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    (layers,) = tiny.encode(["a b"], layers=np.array([0, 2]))
    assert layers.shape == (2, 2, 16)


def test_copies_and_pickles_give_the_same_vectors(tiny):
    expected = tiny.encode("some words")
    for again in (copy.deepcopy(tiny), pickle.loads(pickle.dumps(tiny))):
        np.testing.assert_array_equal(again.encode("some words"), expected)


def test_random_models_depend_on_the_seed():
    config = Elmo.random("small").config
    same = [Elmo.random(config, seed=s, device="cpu").encode("a word") for s in (1, 1, 2)]
    np.testing.assert_array_equal(same[0], same[1])
    assert np.abs(same[0] - same[2]).max() > 1e-3


def test_progress_bar_shows_only_in_a_terminal_and_only_if_slow(tiny, capfd, monkeypatch):
    tiny.encode(SENTENCES * 3, batch_size=1)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr("elmokit.io.progress.SHOW_AFTER_SECONDS", -1.0)
    tiny.encode(SENTENCES * 3, batch_size=1)
    assert capfd.readouterr() == ("", "")  # not a terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    tiny.encode(SENTENCES * 3, batch_size=1)
    assert "embedding" in capfd.readouterr().err
    tiny.encode(SENTENCES * 3, batch_size=1, progress=False)
    assert capfd.readouterr() == ("", "")


def test_outputs_have_the_names_and_shapes_of_tf_hub(tiny):
    texts = ["a b c", "", "d"]
    out = tiny.outputs(texts)
    assert list(out) == [
        "word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "default", "sequence_len",
    ]  # fmt: skip
    assert out["word_emb"].shape == (3, 3, 8)
    assert out["lstm_outputs2"].shape == out["elmo"].shape == (3, 3, 16)
    np.testing.assert_array_equal(out["sequence_len"], [3, 0, 1])
    for i, text in enumerate(texts):
        every, n = tiny.encode([text], "all")[0], out["sequence_len"][i]
        assert_close(out["word_emb"][i, :n], every[0, :, :8])
        assert_close(out["lstm_outputs1"][i, :n], every[1])
        assert_close(out["elmo"][i, :n], every.mean(0))
        assert not out["elmo"][i, n:].any()
        assert_close(out["default"][i], tiny.encode_sentences(text))
    assert tiny.outputs([])["elmo"].shape == (0, 0, 16)
