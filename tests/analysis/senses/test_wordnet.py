"""WordNet's files."""

import os

import pytest

from elmokit.analysis.senses.wordnet import WordNet
from elmokit.errors import InputError


def test_wordnet(senses, tmp_path):
    assert senses.of("Bank", "NOUN") == ["bank%1:17:01::", "bank%1:14:00::"]
    assert senses.of("fast", "ADJ") == ["fast%3:00:01::", "fast%5:00:00:hurried:00"]
    assert senses.of("bank", "ADV") == []
    (tmp_path / "wrong").write_text("no such thing")
    with pytest.raises(InputError, match="is not WordNet's index.sense"):
        WordNet(tmp_path / "wrong")


def test_forms(wordnet_folder):
    wordnet = WordNet(wordnet_folder)
    assert wordnet.of_form("geese") == ["goose%1:05:00::"]
    assert wordnet.of_form("studies") == ["study%1:00:00::"]
    assert wordnet.of_form("Banks") == ["bank%1:17:01::", "bank%1:14:00::", "bank%2:40:00::"]
    assert wordnet.of_form("river banks") == ["river_bank%1:17:00::"]
    assert wordnet.of_form("s") == wordnet.of_form("nothing") == []
    assert wordnet.gloss("bank%1:17:01::") == 'sloping land; "the river bank"'
    assert WordNet(wordnet_folder / "index.sense").gloss("unknown") == ""


def test_blank_lines_of_wordnet(tmp_path):
    (tmp_path / "index.sense").write_text("goose%1:05:00:: 00000000 1 1\n\n")
    (tmp_path / "noun.exc").write_text("\ngeese goose\n \n")
    assert WordNet(tmp_path).of_form("geese") == ["goose%1:05:00::"]


@pytest.mark.parametrize(
    "line",
    ["bank% 1 1 1", "bank 1 1 1", "bank%9:1 1 1 1", "bank%1:1 x 1 1", "bank%1:1 1", "",
     "bank%1:1 " + "9" * 5000 + " 1 1"],
)  # fmt: skip
def test_damaged_index(tmp_path, line):
    (tmp_path / "index.sense").write_text(line + "\n")
    with pytest.raises(InputError, match="WordNet's index.sense"):
        WordNet(tmp_path)


def test_damaged_files(wordnet_folder, tmp_path):
    (wordnet_folder / "index.sense").write_bytes(b"bank%1:17:01:: -99999999999999999999 1 25\n")
    assert WordNet(wordnet_folder).gloss("bank%1:17:01::") == ""
    (wordnet_folder / "noun.exc").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match=r"noun.exc is not a list of irregular forms"):
        WordNet(wordnet_folder).of_form("banks")
    (wordnet_folder / "index.sense").write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not WordNet's index.sense"):
        WordNet(wordnet_folder)
    (wordnet_folder / "index.sense").unlink()
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        WordNet(wordnet_folder)
    os.mkfifo(wordnet_folder / "index.sense")
    with pytest.raises(InputError, match="it is not a file"):
        WordNet(wordnet_folder)
