"""Mistakes in calls, and what the errors say."""

import numpy as np
import pytest

from elmokit import CarriedState, Elmo
from elmokit.errors import InputError
from elmokit.nn import ElmoEmbedding


@pytest.mark.parametrize("layers", ["bottom", 3, -4, [], [0, 7], True, 1.5, None])
def test_unknown_layers_are_refused(tiny, layers):
    with pytest.raises(InputError, match="layers must be all, top, average, mix, or numbers"):
        tiny.encode("a", layers=layers)


def test_other_dtypes_are_refused(tiny):
    with pytest.raises(InputError, match="float32 or float16"):
        tiny.encode("a", dtype="float64")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["ok", 3], "text 1 must be a string or a list of strings, not 3"),
        (["ok", None], r"text 1 is missing \(None\)"),
        (["ok", b"bytes"], r"text 1 must be a string or a list of strings, not b'bytes' \(bytes\)"),
        (["ok", {"a"}], "text 1 must be a string or a list of strings"),
        (["ok", ["a", 3]], "text 1 contains 3; expected strings"),
        (["ok", [["a"]]], r"text 1 contains \['a'\] \(list\); expected strings"),
    ],
)
def test_texts_of_other_types_are_refused(tiny, wrong, message):
    for call in (tiny.encode, ElmoEmbedding(tiny), lambda texts: list(tiny.stream(texts))):
        with pytest.raises(InputError, match=message):
            call(wrong)


def test_embedding_refuses_a_single_string(tiny):
    """It returns batches, so a string is most likely a mistake."""
    with pytest.raises(InputError, match="batch must be a list of texts, not 'a string'"):
        ElmoEmbedding(tiny)("a string")


def test_unknown_states_and_batch_sizes_are_refused(tiny):
    with pytest.raises(InputError, match="zero, warm"):
        tiny.encode("a", state="hot")
    for size in (0, -1, True, 1.5, "8"):
        with pytest.raises(InputError, match="batch_size must be a whole number from 1"):
            tiny.encode(["a"], batch_size=size)
    assert len(tiny.encode(["a", "b"], batch_size=np.int64(1))) == 2


def test_streams_name_the_wrong_text(tiny):
    with pytest.raises(InputError, match="text 2 must be a string or a list of strings, not 5"):
        list(tiny.stream(["a", "b", 5]))


def test_unknown_devices_are_refused(tiny_folder):
    with pytest.raises(InputError, match="cannot use the device 'abacus'"):
        Elmo.load(tiny_folder, device="abacus")


def test_states_of_other_models_are_refused(tiny):
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
