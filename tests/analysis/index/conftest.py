"""An index to search."""

import pytest

from elmokit import Elmo
from elmokit.analysis.index.build import build_index
from helpers.indexing import TOKENIZED, sentences, write_text


@pytest.fixture(scope="session")
def made(tiny_folder, tmp_path_factory):
    """A folder with an index of some sentences, and their text."""
    folder = tmp_path_factory.mktemp("made")
    text = write_text(folder / "text.txt", sentences())
    build_index(Elmo.load(tiny_folder, device="cpu"), [text], folder / "idx", TOKENIZED)
    return folder
