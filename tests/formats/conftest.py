"""Fixtures for tests of model files."""

import shutil

import pytest


@pytest.fixture
def broken(tiny_folder, tmp_path):
    """Copy the tiny model to a folder that a test may damage."""
    return shutil.copytree(tiny_folder, tmp_path / "broken")
