"""Tokenizers."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit import Elmo
from elmokit.errors import ConfigError, InputError
from elmokit.text.tokenizers import TOKENIZERS, get_tokenizer, tokenize_all


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I went to the bank.", "I went to the bank ."),
        ("Don't panic, it isn't John's!", "Do n't panic , it is n't John 's !"),
        ("I can't, we'll, you've, they're, I'm, he'd", "I ca n't , we 'll , you 've , they 're , "
         "I 'm , he 'd"),
        ("She said: \"Yes\" (twice)...", 'She said : " Yes " ( twice ) ...'),
        ("Dr. Smith of the U.S. paid $1,000.50 on Jan. 5", "Dr. Smith of the U.S. paid $ 1,000.50 "
         "on Jan. 5"),
        ("J. R. Smith, e.g. at 3:45 p.m., No. 5", "J. R. Smith , e.g. at 3:45 p.m. , No. 5"),
        ("No. I said no.", "No . I said no ."),
        ("a well-known AT&T rock'n'roll O'Neill", "a well-known AT&T rock'n'roll O'Neill"),
        ("mail me@example.org or https://example.org/a?b=c.", "mail me@example.org or "
         "https://example.org/a?b=c ."),
        ("the 1990s, 2nd, 50% and -5", "the 1990s , 2nd , 50 % and -5"),
        ("I cannot — ever – go", "I can not — ever – go"),
        ("don’t ‘quote’ “this”", "do n’t ‘ quote ’ “ this ”"),
        ("naïve café cafe\u0301", "naïve café cafe\u0301"),
        ("我 went to 北京", "我 went to 北 京"),
        ("ok 👍🏽 👩‍👩‍👧 🇫🇷 :-)", "ok 👍🏽 👩‍👩‍👧 🇫🇷 :-)"),
        ("", ""),
        (" \t\n ", ""),
    ],
)  # fmt: skip
def test_english(text, tokens):
    assert " ".join(TOKENIZERS["english"](text)) == tokens


def test_english_split_at_hyphens():
    tokenizer = get_tokenizer("english-hyphens")
    assert tokenizer("A well-known, 20-year-old co-op cost -27 dollars - or $-5.") == [
        *["A", "well", "-", "known", ",", "20", "-", "year", "-", "old", "co", "-", "op", "cost"],
        *get_tokenizer("english")("-27 dollars - or $-5."),
    ]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text(max_size=60))
def test_tokens_are_slices_that_cover_the_text(name, text):
    spans = TOKENIZERS[name].spans(text)
    last = 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert not text[last:start].strip()  # only white space is dropped
        last = end
    assert not text[last:].strip()


def test_whitespace_is_str_split():
    text = " a\u00a0b\u3000c \x1d d\u2028e "
    assert TOKENIZERS["whitespace"](text) == text.split()


def test_characters():
    assert TOKENIZERS["characters"]("今天 好") == ["今", "天", "好"]


def test_chinese_words():
    assert TOKENIZERS["chinese"]("我来到北京清华大学") == ["我", "来到", "北京", "清华大学"]


def test_halves_of_characters_do_not_stop_the_segmentation():
    text = "\ud800北京\udfff"
    assert "".join(TOKENIZERS["chinese"](text)) == text


def test_traditional_text_is_split_like_simplified():
    """The dictionary is simplified; the tokens stay as they are written."""
    traditional, simple = "臺灣的電影運動發展很快。", "台湾的电影运动发展很快。"
    tokenizer = TOKENIZERS["chinese"]
    assert tokenizer.spans(traditional) == tokenizer.spans(simple)
    assert tokenizer(traditional)[:3] == ["臺灣", "的", "電影"]


def test_own_function(tiny_folder):
    elmo = Elmo.load(tiny_folder, tokenizer=lambda text: text.split("|"), device="cpu")
    assert elmo.tokenize("New York|is big") == ["New York", "is big"]
    assert elmo.encode_spans("New York|is big", [(0, 8)]).shape == (1, 16)
    with pytest.raises(InputError, match="does not occur in the text"):
        get_tokenizer(lambda text: [text.upper()])("abc")
    with pytest.raises(ConfigError, match="choose one of whitespace, english"):
        get_tokenizer("klingon")
    assert pickle.loads(pickle.dumps(get_tokenizer("english")))("a b") == ["a", "b"]


def test_texts_and_lists_of_tokens():
    tokenizer = get_tokenizer("english")
    assert tokenize_all(tokenizer, ["it's", ["it's", "ok"], ()]) == [
        ["it", "'s"],
        ["it's", "ok"],
        [],
    ]
    with pytest.raises(InputError, match="text 1 contains 5; expected strings"):
        tokenize_all(tokenizer, ["a", ["b", 5]])
    with pytest.raises(InputError, match=r"text 0 is missing \(None\)"):
        tokenize_all(tokenizer, [None])
    with pytest.raises(InputError, match="texts must be a list of texts, not 'a b'"):
        tokenize_all(tokenizer, "a b")
