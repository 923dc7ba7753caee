"""The bytes of words, as the character CNN of a task reads them."""

import pytest

from elmokit.tasks.word_characters import character_ids


@pytest.mark.parametrize(
    ("words", "longest", "expected"),
    [
        ([["ab", "c"], ["d"]], 2, [[[98, 99], [100, 0]], [[101, 0], [0, 0]]]),
        ([["\0", ""]], 3, [[[1], [0], [0]]]),  # a byte 0 is not padding
        ([["é"]], 1, [[[0xC3 + 1, 0xA9 + 1]]]),
        ([["abcd"]], 1, [[[98, 99, 100]]]),
        ([[], []], 1, [[[0]], [[0]]]),
        ([["\ud800x"]], 1, [[[ord("?") + 1, ord("x") + 1]]]),  # half of a character
    ],
)
def test_character_ids(words, longest, expected):
    assert character_ids(words, longest, most=3).tolist() == expected
