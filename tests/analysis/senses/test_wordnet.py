"""WordNet's files."""

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
