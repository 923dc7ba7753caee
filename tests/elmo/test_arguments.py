"""Arguments of wrong types and values raise an InputError that names the argument."""

from pathlib import Path

import numpy as np
import pytest
import torch

from elmokit import (
    BiLMState,
    Checkpoint,
    ContextConfig,
    Elmo,
    MixConfig,
    ModelConfig,
    Perplexity,
    Tokenizer,
    Vocabulary,
)
from elmokit.errors import ConfigError, InputError, OutOfMemoryError, OutputError, ShapeError
from elmokit.text.tokenizers import get_tokenizer
from helpers.numbers import assert_close


@pytest.mark.parametrize("texts", [None, 5, 1.5, b"bytes", {"a"}, {"a": 1}, object(), np.array(1)])
@pytest.mark.parametrize(
    "method",
    ["encode", "stream", "encode_sentences", "outputs", "score", "stream_scores", "perplexity"],
)
def test_texts_must_be_a_list(lm, method, texts):
    with pytest.raises(InputError, match="texts must be a list of texts, not "):
        getattr(lm, method)(texts)


def test_texts_can_be_any_kind_of_list(tiny):
    expected = tiny.encode([["a", "b"], ["c"]])
    for texts in (
        (["a", "b"], ("c",)),
        iter([["a", "b"], iter(["c"])]),
        [np.array(["a", "b"]), np.array(["c"])],
        np.array(["a b", "c"]),
        {"a b": 1, "c": 2}.keys(),
    ):
        for found, vectors in zip(tiny.encode(texts), expected, strict=True):
            assert_close(found, vectors)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"dtype": "bfloat16"}, "dtype"),
        ({"dtype": None}, "dtype"),
        ({"dtype": torch.bfloat16}, "dtype"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"state": np.array([1, 2])}, "state"),
        ({"state": BiLMState([(1, 2)])}, "state"),
        ({"marks": "no"}, "marks"),
        ({"progress": 0}, "progress"),
        ({"layers": b"\x00"}, "layers"),
        ({"layers": {0}}, "layers"),
        ({"layers": np.array([0.5])}, "layers"),
    ],
)
@pytest.mark.parametrize("texts", ["a", ["a"]])
def test_encode_names_the_argument(tiny, texts, arguments, name):
    with pytest.raises(InputError, match=f"^{name} must be "):
        tiny.encode(texts, **arguments)


def test_layers_from_the_top_are_explained(tiny):
    assert_close(tiny.encode("a b", layers=-1), tiny.encode("a b", layers="top"))
    with pytest.raises(InputError, match="-1 to -3 count from the top"):
        tiny.encode("a b", layers=-4)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (5, "spans must be a list of pairs"),
        (None, "spans must be a list of pairs"),
        ("ab", "spans must be a list of pairs"),
        ([5], "each of spans must be a pair of whole numbers"),
        ([(1, 2, 3)], "each of spans must be a pair of whole numbers"),
        (["ab"], "each of spans must be a pair of whole numbers"),
        ([(0.5, 1)], "each number of each of spans must be a whole number, not 0.5"),
        ([(0, None)], "each number of each of spans must be a whole number, not None"),
    ],
)
def test_malformed_spans_are_refused(tiny, spans, message):
    with pytest.raises(InputError, match=message):
        tiny.encode_spans(["a", "b"], spans)


def test_spans_can_be_an_array(tiny):
    text = "one two three"
    found = tiny.encode_spans(text, np.array([[0, 3], [5, 9]]))
    vectors = tiny.encode(text)
    assert_close(found, [vectors[0], vectors[1:3].mean(0)])
    with pytest.raises(InputError, match="unit must be characters or tokens, not 5"):
        tiny.encode_spans(text, [(0, 1)], unit=5)
    with pytest.raises(InputError, match="pooling must be mean, max or first-last, not None"):
        tiny.encode_spans(text, [(0, 1)], pooling=None)


@pytest.mark.parametrize("value", [None, "1", 1.5, True, -1, 3, 2**70])
def test_substitutes_check_the_position(lm, value):
    with pytest.raises(InputError, match="position must be a whole number from 0 to 2"):
        lm.substitutes("the cat sat", value)


def test_substitutes_check_the_number_of_words(lm):
    for k in (None, 0, -5, 1.5, "3", False):
        with pytest.raises(InputError, match="k must be a whole number from 1"):
            lm.substitutes("the cat sat", 1, k)
    assert len(lm.substitutes("the cat sat", np.int64(1), np.int32(2))) == 2
    assert len(lm.substitutes("the cat sat", 1, 10**20)) == 7  # the words of the vocabulary
    with pytest.raises(InputError, match="at least one token"):
        lm.substitutes("", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 5}, "model must be a path, not 5"),
        ({"model": b"en"}, "model must be a path"),
        ({"model": "a\0b"}, "model must be a path"),
        ({"options": 5, "weights": "x"}, "options must be a path"),
        ({"options": "x", "weights": []}, "weights must be a path"),
        ({"cache_mb": -1}, "cache_mb must be a whole number from 0"),
        ({"cache_mb": "1"}, "cache_mb must be a whole number from 0"),
        ({"tokenizer": 5}, "tokenizer must be a name, a Tokenizer or a function"),
        ({"quantize": 8}, "quantize must be int8 or bfloat16, not 8"),
        ({"device": 1.5}, "cannot use the device 1.5"),
        ({"device": ""}, "cannot use the device ''"),
        ({"device": "meta"}, "cannot use the device 'meta'"),
    ],
)
def test_load_names_the_argument(tiny_folder, arguments, message):
    with pytest.raises(InputError, match=message):
        Elmo.load(**({} if "options" in arguments else {"model": tiny_folder}) | arguments)


def test_models_move_only_to_devices_that_exist(tiny):
    for device in ("nonsense", "meta", 1.5, None if torch.cuda.is_available() else "cuda"):
        if device is not None:
            with pytest.raises(InputError, match="cannot use the device"):
                tiny.to(device)
    assert tiny.to("cpu:0").device == torch.device("cpu")
    assert tiny.encode("a").shape == (1, 16)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"folder": 5}, "folder"),
        ({"folder": None}, "folder"),
        ({"format": "pickle"}, "format"),
        ({"format": None}, "format"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"dtype": torch.float16}, "dtype"),
        ({"overwrite": "yes"}, "overwrite"),
    ],
)
def test_save_names_the_argument(tiny, tmp_path, arguments, name):
    with pytest.raises(InputError, match=f"^{name} must be "):
        tiny.save(**{"folder": tmp_path / "new"} | arguments)
    assert not (tmp_path / "new").exists()


def test_saving_below_a_file_is_an_output_error(tiny, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="file"):
        tiny.save(tmp_path / "file" / "model")


def test_random_models_and_mixes_check_their_arguments(tiny):
    with pytest.raises(InputError, match="config must be a ModelConfig or the name"):
        Elmo.random(5)
    for seed in (-1, "x", 2**70, None):
        with pytest.raises(InputError, match="seed must be a whole number"):
            Elmo.random("small", seed=seed)
    for weights in (5, "abc", [1, 2], [1, 2, "x"], [0, 0, float("nan")], [0, 0, 1e300]):
        with pytest.raises(InputError, match="weights must be"):
            tiny.set_mix(weights)
    for gamma in (None, "1", float("inf"), True):
        with pytest.raises(InputError, match="gamma must be a number"):
            tiny.set_mix(None, gamma)
    tiny.set_mix(np.array([0.0, 0.0, 1.0]), np.float32(2))


def test_models_from_incomplete_checkpoints_are_refused(tiny):
    with pytest.raises(InputError, match="checkpoint must be a Checkpoint"):
        Elmo(5)
    with pytest.raises(InputError, match="config must be a ModelConfig"):
        Checkpoint({}, {})
    with pytest.raises(ShapeError, match="the weight .* is missing"):
        Elmo(Checkpoint(tiny.config, {}))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ContextConfig, {"n_layers": "2"}),
        (ContextConfig, {"cell_clip": [3]}),
        (MixConfig, {"weights": 5}),
        (ModelConfig, {"context": {}}),
        (ModelConfig, {"tokenizer": None}),
    ],
)
def test_settings_of_wrong_types_are_refused(kind, arguments):
    (name,) = arguments
    with pytest.raises(ConfigError, match=rf"\.{name} must be "):
        kind(**arguments)


def test_other_public_classes_check_their_arguments():
    with pytest.raises(ConfigError, match="config must be an object"):
        ModelConfig.from_dict(5)
    with pytest.raises(InputError, match="words must be a list of strings"):
        Vocabulary(None)
    with pytest.raises(InputError, match="scores must be a list of scores"):
        Perplexity.from_scores(5)
    with pytest.raises(InputError, match="each of scores must be a Score"):
        Perplexity.from_scores([5])
    with pytest.raises(InputError, match="spans must be a function"):
        Tokenizer("own", None)
    with pytest.raises(InputError, match="expected a list of pairs"):
        Tokenizer("own", lambda text: [5])("a b")
    with pytest.raises(InputError, match="text must be a string, not 5"):
        get_tokenizer("english")(5)
    for result in (None, 5, "abc", [5]):
        with pytest.raises(InputError, match="the tokenizer"):
            get_tokenizer(lambda text, result=result: result)("abc")


def test_results_that_do_not_fit_in_memory_are_refused_beforehand(tiny, monkeypatch):
    """Linux would grant the memory, and kill the process later."""
    monkeypatch.setattr("elmokit.devices._ALWAYS_FITS", 0)
    monkeypatch.setattr("elmokit.devices.available_bytes", lambda device: 10_000)
    assert tiny.encode("a b").shape == (2, 16)
    with pytest.raises(OutOfMemoryError, match=r"the vectors of 1,000 tokens need .* use stream"):
        tiny.encode([["a"] * 10] * 100)
    with pytest.raises(OutOfMemoryError, match="a sentence of 1000 tokens does not fit"):
        list(tiny.stream([["a"] * 1000]))
    assert len(list(tiny.stream([["a"] * 10] * 100))) == 100  # in smaller batches
    with pytest.raises(OutOfMemoryError, match="padded vectors of 50 texts"):
        tiny.outputs([["a"]] * 49 + [["a"] * 9])


def test_paths_can_be_strings(tiny, tmp_path):
    tiny.save(str(tmp_path / "new"))
    assert_close(Elmo.load(Path(tmp_path / "new")).encode("a"), tiny.encode("a"))
