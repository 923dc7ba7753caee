"""Finding a phrase among tokens."""

import pytest

from elmokit.analysis.phrases import Place, find_phrase, notes_on_longer, require_phrase
from elmokit.errors import InputError


def starts(tokens, phrase):
    return [place.start for place in find_phrase(tokens, phrase)]


def test_find_phrase():
    assert find_phrase(["A", "b", "a", "b"], ["a", "b"]) == [Place(0, 2), Place(2, 4)]
    assert starts(["a", "b"], ["A", "B"]) == [0]
    assert starts(["a", "a", "a"], ["a", "a"]) == [0, 1]
    assert starts(["STRASSE"], ["straße"]) == [0]
    assert starts(["a", "b"], ["b", "c"]) == starts([], ["a"]) == []
    assert starts(["a"], ["a", "b", "c"]) == []


def test_a_word_with_spaces_around_it_is_a_whole_token():
    assert find_phrase(["bankrupt", "rivers", "o'clock"], ["bank"]) == []
    assert find_phrase(["New", "York"], ["NewYork"]) == []
    assert find_phrase(["NewYork"], ["New", "York"]) == []
    assert find_phrase(["은행에서"], ["은행"]) == []  # Korean has spaces


@pytest.mark.parametrize(
    ("tokens", "word", "places"),
    [
        ("他 在 苹果 公司 工作", "苹果公司", [Place(2, 4)]),
        ("他 在 苹果公司 工作", "苹果", [Place(2, 3, "苹果公司")]),
        ("他 在 苹果公司 工作", "公司", [Place(2, 3, "苹果公司")]),
        ("他 在 苹果公司 吃 苹果", "苹果", [Place(4, 5)]),  # whole tokens first
        ("研究 生命 的 起源", "研究生", []),
        ("研究 生命科学 的 研究", "研究", [Place(0, 1), Place(3, 4)]),
        ("A股 和 CA股", "a股", [Place(0, 1)]),
        ("CA股 CA 股", "A股", []),
        ("哈 哈 哈", "哈哈", [Place(0, 2), Place(1, 3)]),
        ("林檎ジュース を 飲む", "ジュース", [Place(0, 1, "林檎ジュース")]),
        ("ตากลม", "กลม", [Place(0, 1, "ตากลม")]),
    ],
)
def test_scripts_without_spaces(tokens, word, places):
    assert find_phrase(tokens.split(), [word]) == places
    assert find_phrase(tokens.split(), list(word)) == places  # however the word itself is cut


def test_require_phrase():
    assert require_phrase(["a", "B"], ["b"]) == [Place(1, 2)]
    with pytest.raises(InputError, match="'b c' is not among the tokens of 'a b'"):
        require_phrase(["a", "b"], ["b", "c"])
    with pytest.raises(InputError, match="empty"):
        require_phrase(["a", "b"], [])


def test_notes():
    assert notes_on_longer("苹果", ["", ""]) == []
    assert notes_on_longer("苹果", ["", "苹果树"]) == [
        "1 occurrence of 苹果 is part of a longer token, such as 苹果树; its vector is used"
    ]
    (note,) = notes_on_longer("苹果", ["苹果树", "苹果公司", "苹果公司"])
    assert note.startswith("3 occurrences of 苹果 are part of a longer token, such as 苹果公司;")
