"""Elmo's methods as a user calls them."""

import numpy as np
import pytest
import torch

from elmokit import CarriedState, Elmo
from elmokit.errors import InputError, OutOfMemoryError
from elmokit.inference import engine
from elmokit.inference.batches import Windows, plan_batches
from elmokit.kernels import cpu
from elmokit.nn import ElmoEmbedding
from helpers.models import SENTENCES
from helpers.numbers import assert_close


def test_shapes_types_and_order(tiny):
    texts = ["I went to the bank", ["already", "tokenised"], "", "one"]
    vectors = tiny.encode(texts)
    assert [v.shape for v in vectors] == [(5, 16), (2, 16), (0, 16), (1, 16)]
    assert all(v.dtype == np.float32 and v.flags.owndata for v in vectors)
    assert_close(vectors[1], tiny.encode(["already tokenised"])[0])


def test_one_string_gives_one_array(tiny):
    np.testing.assert_array_equal(tiny.encode("a b c"), tiny.encode(["a b c"])[0])
    np.testing.assert_array_equal(
        tiny.encode_sentences("a b c"), tiny.encode_sentences(["a b c"])[0]
    )


def test_marks(tiny):
    """One before and one behind; each direction's first mark is all that it has read by then."""
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
    assert_close(begin, end)  # static, as all of the token layer
    assert np.abs(begin[0] - begin[1]).max() > 1e-3


def test_choices_of_layers(tiny):
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


def test_mix_uses_the_models_weights(tiny, tmp_path):
    (every,) = tiny.encode(["some words here"], "all")
    tiny.set_mix([1.0, 0.0, -1.0], gamma=2.0)
    shares = np.exp([1, 0, -1]) / np.exp([1, 0, -1]).sum()
    expected = 2 * np.einsum("k,ktd->td", shares, every)
    assert_close(tiny.encode("some words here"), expected)
    tiny.save(tmp_path / "model")
    again = Elmo.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.encode("some words here"), tiny.encode("some words here"))


def test_lower_layers_run_no_lstm(tiny, monkeypatch):
    calls, run = [], cpu.run_stack

    def counted(stack, *rest):
        calls.append(len(stack))
        return run(stack, *rest)

    monkeypatch.setattr(cpu, "run_stack", counted)
    tiny.encode("a b", layers=0)
    assert sum(calls) == 0
    tiny.encode("a b", layers=1)
    assert sum(calls) == 2  # one layer of each direction


@pytest.mark.parametrize("layers", ["bottom", 3, -4, [], [0, 7], True, 1.5, None])
def test_wrong_layers(tiny, layers):
    with pytest.raises(InputError, match="layers must be all, top, average, mix, or numbers"):
        tiny.encode("a", layers=layers)


def test_float16(tiny):
    half = tiny.encode("some words", dtype="float16")
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, tiny.encode("some words"), atol=5e-3)
    with pytest.raises(InputError, match="float32 or float16"):
        tiny.encode("a", dtype="float64")


@pytest.mark.parametrize("pooling", ["mean", "max", "first-last"])
def test_sentence_vectors_never_count_padding(tiny, pooling):
    texts = ["one", "a much longer sentence than the first", "", "three words here"]
    together = tiny.encode_sentences(texts, pooling=pooling)
    assert together.shape == (4, 16)
    assert not together[2].any()
    for text, vector in zip(texts, together, strict=True):
        assert_close(tiny.encode_sentences(text, pooling=pooling), vector)
    tokens = tiny.encode(texts[1])
    expected = {
        "mean": tokens.mean(0),
        "max": tokens.max(0),
        "first-last": np.concatenate([tokens[-1, :8], tokens[0, 8:]]),
    }[pooling]
    assert_close(together[1], expected)
    assert tiny.encode_sentences(texts, "all", pooling=pooling).shape == (4, 3, 16)
    assert tiny.encode_sentences([]).shape == (0, 16)


def test_spans_by_characters_and_tokens(tiny):
    text = "He moved to New York"
    tokens = tiny.encode(text)
    spans = tiny.encode_spans(text, [(12, 20), (0, 2), (13, 14)])
    assert_close(spans[0], tokens[3:5].mean(0))
    assert_close(spans[1], tokens[0])
    assert_close(spans[2], tokens[3])  # part of a token counts as it all
    by_token = tiny.encode_spans(text.split(), [(3, 5)])
    assert_close(by_token[0], spans[0])
    by_token = tiny.encode_spans(text, [(3, 5)], unit="tokens", layers="all", pooling="max")
    assert by_token.shape == (1, 3, 16)
    assert tiny.encode_spans(text, []).shape == (0, 16)
    for wrong in [(5, 5), (2, 3), (30, 40), (8, 2), (-8, 20)]:
        with pytest.raises(InputError, match="covers no token"):
            tiny.encode_spans(text, [wrong])
    with pytest.raises(InputError, match="sentence of 5 tokens"):
        tiny.encode_spans(text.split(), [(3, 6)])
    with pytest.raises(InputError, match="need the raw string"):
        tiny.encode_spans(text.split(), [(3, 5)], unit="characters")


def test_outputs_under_the_names_of_tf_hub(tiny):
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


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (["ok", 3], "3, a int"),
        (["ok", ["a", 3]], "3, a int"),
        (["ok", None], "None, a NoneType"),
        (["ok", float("nan")], "nan, a float"),
        (["ok", b"bytes"], "98, a int"),
    ],
)
def test_wrong_texts(tiny, wrong, what):
    with pytest.raises(InputError, match=f"text 1 is or holds {what}"):
        tiny.encode(wrong)
    with pytest.raises(InputError, match=f"text 1 is or holds {what}"):
        ElmoEmbedding(tiny)(wrong)


def test_one_string_where_a_list_is_wanted(tiny):
    for call in (tiny.outputs, tiny.warm_state, ElmoEmbedding(tiny)):
        with pytest.raises(InputError, match="a list of texts, not one string"):
            call("a string")


def test_other_kinds_of_lists(tiny):
    expected = tiny.encode(["a b", "c"])
    for texts in (("a b", "c"), np.array(["a b", "c"]), [("a", "b"), np.array(["c"])]):
        for a, b in zip(tiny.encode(texts), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    (layers,) = tiny.encode(["a b"], layers=np.array([0, 2]))
    assert layers.shape == (2, 2, 16)


def test_copies_and_pickles(tiny):
    import copy
    import pickle

    expected = tiny.encode("some words")
    for again in (copy.deepcopy(tiny), pickle.loads(pickle.dumps(tiny))):
        np.testing.assert_array_equal(again.encode("some words"), expected)


def test_a_very_long_sentence(tiny, tiny_reference, monkeypatch):
    """In pieces, with the same result as at once, and as the reference."""
    monkeypatch.setattr("elmokit.nn.lstm._GATE_VALUES", 4 * 24 * 100)  # 100 steps ahead
    tokens = [str(i % 97) for i in range(1001)]
    (layers,) = tiny.encode([tokens, ["short"]], "all")[:1]
    assert_close(layers, tiny_reference.layers(tokens)[0])


def test_44177_tokens(tiny):
    """The line that was reported to break another library."""
    vectors = tiny.encode(" ".join(["word", "other", "third"] * 14_726)[:-6])
    assert vectors.shape == (44_177, 16)
    assert np.isfinite(vectors).all()


def test_less_at_once_when_memory_runs_out(tiny, monkeypatch):
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
    assert sizes.count(max(sizes)) == 1  # it learned
    sizes.clear()
    tiny.encode(SENTENCES * 50)
    assert sum(size > 2 for size in sizes) < 5

    def always(tokens, *rest):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to …")

    monkeypatch.setattr(tiny.bilm, "forward", always)
    with pytest.raises(OutOfMemoryError, match="a sentence of 25 tokens does not fit"):
        tiny.encode([SENTENCES[5]])


def test_fewer_words_at_once_when_memory_runs_out(tiny, monkeypatch):
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
    assert tiny._engine._max_tokens["cpu"] == engine._CPU_TOKENS  # batches are as large as before
    tiny._engine.cache.clear()
    monkeypatch.setattr(tiny.bilm.token_encoder, "forward", lambda ids: forward(ids, 0))
    with pytest.raises(OutOfMemoryError, match="of 4 different words do not fit in the memory"):
        tiny.encode("two words")


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
def test_windows_change_nothing(tiny, monkeypatch, capacity):
    """Also where only some of the words are kept from one to the next, or none."""
    sentences = [s for s in SENTENCES for _ in range(9)]
    expected = tiny.encode(sentences, "all")
    monkeypatch.setattr(engine, "_CPU_WINDOWS", (2, 5))
    tiny._engine.cache.clear()
    tiny._engine.cache.capacity = capacity
    for a, b in zip(tiny.encode(sentences, "all"), expected, strict=True):
        assert_close(a, b)
    assert len(tiny._engine.cache) <= capacity
    assert bool(len(tiny._engine.cache)) == bool(capacity)


def test_progress_bar_only_in_a_terminal_and_only_when_slow(tiny, capfd, monkeypatch):
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


def test_wrong_state_and_batch_size(tiny):
    with pytest.raises(InputError, match="zero, warm"):
        tiny.encode("a", state="hot")
    with pytest.raises(InputError, match="batch_size must be 1 or more"):
        tiny.encode(["a"], batch_size=0)


def test_seeds():
    config = Elmo.random("small").config
    same = [Elmo.random(config, seed=s, device="cpu").encode("a word") for s in (1, 1, 2)]
    np.testing.assert_array_equal(same[0], same[1])
    assert np.abs(same[0] - same[2]).max() > 1e-3


def test_wrong_device(tiny_folder):
    with pytest.raises(InputError, match="cannot use the device 'abacus'"):
        Elmo.load(tiny_folder, device="abacus")


def test_states_must_be_the_models_own(tiny):
    other = Elmo.random("small", device="cpu")
    carried = CarriedState()
    other.encode(["a"], state=carried)
    for state in (other.warm_state(), carried):
        with pytest.raises(InputError, match="a model of other sizes"):
            tiny.encode(["a"], state=state)
    carried = CarriedState()
    tiny.encode(["a", "b"], state=carried)
    with pytest.raises(InputError, match="one row for every sentence, not 2"):
        tiny.encode(["a", "b"], state=carried.rows(2, tiny.bilm))


def test_carried_state_without_memory(tiny, monkeypatch):
    def full(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(tiny.bilm, "forward", full)
    with pytest.raises(OutOfMemoryError, match="give a smaller batch_size"):
        tiny.encode(["a", "b"], state=CarriedState())


def test_carried_batches_are_of_64(tiny, monkeypatch):
    """As AllenNLP's were, so that the 65th sentence continues the first."""
    sizes, run = [], tiny.bilm.forward

    def forward(tokens, *rest):
        sizes.append(len(tokens))
        return run(tokens, *rest)

    monkeypatch.setattr(tiny.bilm, "forward", forward)
    tiny.encode(["a"] * 150, state=CarriedState())
    assert sizes == [64, 64, 22]


@pytest.mark.parametrize("state", ["zero", "warm", "carried"])
def test_stream_equals_encode(tiny, monkeypatch, state):
    monkeypatch.setattr("elmokit.elmo._CPU_WINDOW_BYTES", 5000)
    texts = [*SENTENCES, "a plain string"] * 3
    states = [CarriedState() if state == "carried" else state for _ in range(2)]
    wanted = tiny.encode(texts, "all", state=states[0], batch_size=4)
    found = list(tiny.stream(iter(texts), "all", state=states[1], batch_size=4))
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert_close(a, b)


def test_stream_reads_only_what_it_needs(tiny, monkeypatch):
    monkeypatch.setattr("elmokit.elmo._CPU_WINDOW_BYTES", 100)
    taken = []

    def texts():
        for i in range(1000):
            taken.append(i)
            yield "some words to read"

    stream = tiny.stream(texts())
    assert next(stream).shape == (4, tiny.dim)
    assert len(taken) < 10
