"""Words as code points and back; and what the integration says where its package is missing."""

import importlib
import sys

import pytest
import torch

from elmokit import MissingExtraError
from elmokit.integrations.word_codes import to_codes, to_words
from helpers.models import SENTENCES


def test_words_come_back():
    words = [*SENTENCES, ["", "\0", "a\0", "\0a", "\ud800", "\U0010ffff", "\x03"], []]
    codes, mask = to_codes(words, 61)
    assert to_words(codes) == words
    assert mask.sum(1).tolist() == [len(sentence) for sentence in words]
    assert codes.shape == (*mask.shape, 61)
    assert torch.equal(codes.any(-1), mask)


def test_long_words_are_cut():
    codes, _ = to_codes([["abcdef", "ab"]], 4)
    assert to_words(codes) == [["abc", "ab"]]


@pytest.mark.parametrize("sentences", [[[]], [[], []]])
def test_there_is_always_a_column(sentences):
    codes, mask = to_codes(sentences, 5)
    assert codes.shape == (len(sentences), 1, 5)
    assert not mask.any()
    assert to_words(codes) == sentences


def test_padding_and_slices():
    codes, _ = to_codes([["a", "b"], ["c"]], 5)
    padded = torch.nn.functional.pad(codes, (0, 0, 0, 3))
    assert to_words(padded[1:]) == [["c"]]
    assert to_words(padded.long()) == [["a", "b"], ["c"]]


def test_without_the_package_the_error_names_the_command(monkeypatch):
    name = "elmokit.integrations.sentence_transformers"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for known in [n for n in sys.modules if n.split(".")[0] == "sentence_transformers"]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[sentence-transformers\]'"):
        importlib.import_module(name)
