"""A corpus on disk."""

import pytest

from helpers.embedding import LINES


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
    return path
