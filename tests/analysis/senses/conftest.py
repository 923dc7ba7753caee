"""WordNet's files in miniature."""

import pytest

from elmokit.analysis.senses.wordnet import WordNet
from helpers.senses import write_index, write_wordnet


@pytest.fixture
def senses(tmp_path):
    return WordNet(write_index(tmp_path))


@pytest.fixture
def wordnet_folder(tmp_path):
    return write_wordnet(tmp_path / "wordnet")
