"""Files with senses as editors and treebanks leave them."""

from elmokit.analysis.senses.tagged_text import read_raganato
from elmokit.analysis.senses.wordnet import WordNet


def test_blank_lines_of_gold_keys(tmp_path):
    (tmp_path / "data.xml").write_text(
        '<corpus><sentence><instance id="t0" lemma="bank" pos="NOUN">bank</instance>'
        "</sentence></corpus>"
    )
    (tmp_path / "gold.txt").write_text("\nt0 bank%1:17:01::\n \n\n")
    (sentence,) = read_raganato(tmp_path / "data.xml", tmp_path / "gold.txt")
    assert sentence.targets[0].keys == ("bank%1:17:01::",)


def test_blank_lines_of_wordnet(tmp_path):
    (tmp_path / "index.sense").write_text("goose%1:05:00:: 00000000 1 1\n\n")
    (tmp_path / "noun.exc").write_text("\ngeese goose\n \n")
    assert WordNet(tmp_path).of_form("geese") == ["goose%1:05:00::"]


def test_brackets_and_quotes_of_treebanks(tmp_path):
    (tmp_path / "data.xml").write_text(
        "<corpus><sentence><wf>``</wf><wf>-LRB-</wf><wf>R&amp;amp;D</wf><wf>&amp;amp;</wf>"
        "<wf>-RRB-</wf><wf>''</wf></sentence></corpus>"
    )
    (sentence,) = read_raganato(tmp_path / "data.xml")
    assert sentence.tokens == ['"', "(", "R&D", "&", ")", '"']
