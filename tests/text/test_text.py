"""Tokenizers, characters, vocabulary."""

import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit import Elmo
from elmokit.config import TokenEncoderConfig
from elmokit.errors import ConfigError, FormatError, InputError, MissingExtraError
from elmokit.text.characters import CodepointAlphabet, Utf8Alphabet
from elmokit.text.tokenizers import TOKENIZERS, get_tokenizer
from elmokit.text.vocabulary import Vocabulary


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


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text(max_size=60))
def test_tokens_are_slices_that_cover_the_text(name, text):
    spans = TOKENIZERS[name].spans(text)
    last = 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert not text[last:start].strip()  # only white space is left out
        last = end
    assert not text[last:].strip()


def test_whitespace_is_str_split():
    text = " a\u00a0b\u3000c \x1d d\u2028e "
    assert TOKENIZERS["whitespace"](text) == text.split()


def test_characters():
    assert TOKENIZERS["characters"]("今天 好") == ["今", "天", "好"]


def test_chinese_words():
    assert TOKENIZERS["chinese"]("我来到北京清华大学") == ["我", "来到", "北京", "清华大学"]


def test_chinese_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[chinese\]'"):
        TOKENIZERS["chinese"]("今天")


def test_own_function(tiny_folder):
    elmo = Elmo.load(tiny_folder, tokenizer=lambda text: text.split("|"), device="cpu")
    assert elmo.tokenize("New York|is big") == ["New York", "is big"]
    assert elmo.encode_spans("New York|is big", [(0, 8)]).shape == (1, 16)
    with pytest.raises(InputError, match="does not follow in the text"):
        get_tokenizer(str.upper)("abc")
    with pytest.raises(ConfigError, match="choose one of whitespace, english"):
        get_tokenizer("klingon")
    assert pickle.loads(pickle.dumps(get_tokenizer("english")))("a b") == ["a", "b"]


def test_bytes_are_cut_and_marked():
    alphabet = Utf8Alphabet(TokenEncoderConfig(filters=((1, 1), (7, 1))))
    ids = alphabet.encode(["ab", "<S>", "</S>", "é" * 30, ""], columns=50)
    assert ids[0, :5].tolist() == [259, ord("a") + 1, ord("b") + 1, 260, 261]
    assert ids[1, :4].tolist() == [259, 257, 260, 261]
    assert ids[2, :4].tolist() == [259, 258, 260, 261]
    assert ids[3].tolist() == [259, *([0xC3 + 1, 0xA9 + 1] * 24), 260]
    assert ids[4, :3].tolist() == [259, 260, 261]
    assert alphabet.encode(["abc", "<S>"]).shape == (2, 3 + 2 + 7)
    assert alphabet.encode(["a" * 45]).shape == (1, 50)
    assert alphabet.encode(["<S>", "a"])[0, :5].tolist() == [259, 257, 260, 261, 261]


def test_trimming_never_changes_a_vector(tiny):
    import torch

    encoder, alphabet = tiny.bilm.token_encoder, tiny.alphabet
    for word in ["a", "ab" * 10, "x" * 46, "y" * 48, "é"]:
        ids = torch.from_numpy(alphabet.encode([word]))
        whole = torch.from_numpy(alphabet.encode([word], 50))
        assert ids.shape[1] == min(50, len(word.encode()) + 2 + 3)
        np.testing.assert_allclose(encoder(ids), encoder(whole), atol=1e-6)


def test_code_points_swap_the_markers():
    characters = ["a", "b", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
    config = TokenEncoderConfig(filters=((1, 1),), max_characters=6, alphabet="codepoints")
    alphabet = CodepointAlphabet(config, characters)
    ids = alphabet.encode(["ab?", "<bos>", "abababab"], 6).tolist()
    assert ids[0] == [8, 1, 2, 5, 7, 6]
    assert ids[1] == [8, 3, 7, 6, 6, 6]
    assert ids[2] == [8, 1, 2, 1, 2, 7]


def test_vocabulary():
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "a"])
    assert vocabulary.ids(["a", "b", "</S>"]).tolist() == [3, 2, 1]
    assert vocabulary.ids([]).shape == (0,)
    with pytest.raises(FormatError, match="no line </S> or <UNK>"):
        Vocabulary(["<S>"])


def test_english_split_at_hyphens():
    tokenizer = get_tokenizer("english-hyphens")
    assert tokenizer("A well-known, 20-year-old co-op cost -27 dollars - or $-5.") == [
        *["A", "well", "-", "known", ",", "20", "-", "year", "-", "old", "co", "-", "op", "cost"],
        *get_tokenizer("english")("-27 dollars - or $-5."),
    ]
