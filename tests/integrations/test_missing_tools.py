"""Without flair or gensim, their integrations name the command that installs them."""

import importlib
import sys

import pytest

from elmokit import MissingExtraError
from elmokit.integrations.gensim import to_keyed_vectors


def test_flair(monkeypatch):
    monkeypatch.setitem(sys.modules, "flair", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "elmokit.integrations.flair", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[flair\]'"):
        importlib.import_module("elmokit.integrations.flair")


def test_gensim(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.delitem(sys.modules, "gensim.models", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[gensim\]'"):
        to_keyed_vectors(tiny, ["cat"])
