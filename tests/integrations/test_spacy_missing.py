"""Without spaCy, the integration names the command that installs it."""

import importlib
import sys

import pytest

from elmokit import MissingExtraError


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)  # as if it were not installed
    for name in ("spacy", "spacy_bilm"):
        monkeypatch.delitem(sys.modules, f"elmokit.integrations.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[spacy\]'"):
        importlib.import_module("elmokit.integrations.spacy")
