"""Traditional characters as simplified ones."""

import pytest

from elmokit.config import TokenEncoderConfig
from elmokit.text.characters import SimplifiedAlphabet, Utf8Alphabet
from elmokit.text.chinese import simplified
from elmokit.text.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("traditional", "simple"),
    [
        ("漢字與計算機", "汉字与计算机"),
        ("頭髮和發展", "头发和发展"),
        ("乾隆皇帝", "乾隆皇帝"),  # simplified text keeps this character
        ("看著", "看著"),  # 着 or 著: one character alone does not tell
        ("plain text, 123", "plain text, 123"),
        ("Ünïcödé 🙂\ud800", "Ünïcödé 🙂\ud800"),
        ("", ""),
    ],
)
def test_characters(traditional, simple):
    assert simplified(traditional) == simple
    assert simplified(simple) == simple


def test_the_table_is_a_function_of_single_characters():
    from elmokit.text.chinese import _pairs

    table, _ = _pairs()
    assert len(table) > 4000
    for code, simple in table.items():
        assert len(simple) == 1
        assert chr(code) != simple
    again = [chr(code) for code, simple in table.items() if ord(simple) in table]
    assert not again, "a simplified form is replaced once more"


def test_alphabet():
    plain = Utf8Alphabet(TokenEncoderConfig(filters=((1, 1),)))
    alphabet = SimplifiedAlphabet(plain)
    assert (alphabet.begin, alphabet.end) == (plain.begin, plain.end)
    words = ["<S>", "電影", "abc"]
    assert (alphabet.encode(words) == plain.encode(["<S>", "电影", "abc"])).all()
    assert alphabet.lengths(words).tolist() == [3, 6, 3]


def test_vocabulary():
    words = [*Vocabulary.marks, "电影"]
    assert Vocabulary(words, "simplified").id("電影") == 3
    assert "電影" in Vocabulary(words, "simplified")
    assert "電影" not in Vocabulary(words)
