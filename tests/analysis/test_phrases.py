"""Finding a phrase among tokens."""

import pytest

from elmokit.analysis.phrases import find_phrase, require_phrase
from elmokit.errors import InputError


def test_find_phrase():
    assert find_phrase(["A", "b", "a", "b"], ["a", "b"]) == [0, 2]
    assert find_phrase(["a", "b"], ["A", "B"]) == [0]
    assert find_phrase(["a", "a", "a"], ["a", "a"]) == [0, 1]
    assert find_phrase(["STRASSE"], ["straße"]) == [0]
    assert find_phrase(["a", "b"], ["b", "c"]) == find_phrase([], ["a"]) == []
    assert find_phrase(["a"], ["a", "b", "c"]) == []


def test_require_phrase():
    assert require_phrase(["a", "B"], ["b"]) == [1]
    with pytest.raises(InputError, match="'b c' is not among the tokens of 'a b'"):
        require_phrase(["a", "b"], ["b", "c"])
    with pytest.raises(InputError, match="empty"):
        require_phrase(["a", "b"], [])
