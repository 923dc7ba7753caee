"""Fixtures for tests of model files."""

import shutil

import pytest

from elmokit import Elmo
from elmokit.errors import ElmoKitError
from helpers.models import many_langs_folder


@pytest.fixture
def broken(tiny_folder, tmp_path):
    """Copy the tiny model to a folder that a test may damage."""
    return shutil.copytree(tiny_folder, tmp_path / "broken")


@pytest.fixture
def native(lm_folder, tmp_path):
    """A model with a softmax in the native format, in a folder that a test may damage."""
    Elmo.load(lm_folder, device="cpu").save(tmp_path / "native")
    return tmp_path / "native"


@pytest.fixture
def many_langs(tmp_path):
    """A model of ELMoForManyLangs, in a folder that a test may damage."""
    return many_langs_folder(tmp_path / "many-langs")


@pytest.fixture
def refused():
    """Load a model that must be refused; return the message, which is one short line."""

    def load(model=None, **arguments) -> str:
        with pytest.raises(ElmoKitError) as caught:
            Elmo.load(model, device="cpu", **arguments)
        message = str(caught.value)
        assert len(message) <= 600
        assert len(message.splitlines()) == 1
        return message

    return load
