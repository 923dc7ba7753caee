"""Without flair, the integration names the command that installs it."""

import importlib
import sys

import pytest

from elmokit import MissingExtraError


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "flair", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "elmokit.integrations.flair", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[flair\]'"):
        importlib.import_module("elmokit.integrations.flair")
