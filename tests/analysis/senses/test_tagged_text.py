"""Readers of sense-tagged texts."""

import os

import pytest

from elmokit.analysis.senses.tagged_text import Target, read_raganato, read_semcor
from elmokit.errors import InputError
from helpers.senses import DATA

SEMCOR = """<contextfile concordance=brown>
<context filename=br-a01 paras=yes>
<p pnum=1>
<s snum=1>
<wf cmd=ignore pos=DT>The</wf>
<wf cmd=done rdf=group pos=NNP lemma=group wnsn=1 lexsn=1:03:00:: pn=group>Grand_Jury</wf>
<wf cmd=done pos=VB lemma=say wnsn=1;2 lexsn=2:32:00::;2:32:01::>said</wf>
<punc>``</punc>
<wf cmd=done pos=JJ lemma=such wnsn=0 lexsn=5:00:01:specified:00>such</wf>
</s>
<s snum=2>
<wf cmd=tag pos=NN>AT&amp;T</wf>
</s>
"""


def test_semcor(tmp_path):
    for folder in ("a/brown1/tagfiles", "copy/brown1/tagfiles"):  # twice, as in circulation
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "br-a01").write_text(SEMCOR)
    first, second = read_semcor(tmp_path)
    assert first.tokens == ["The", "Grand", "Jury", "said", '"', "such"]
    assert first.targets == [
        Target(1, 3, "group", "NOUN", keys=("group%1:03:00::",)),
        Target(3, 4, "say", "VERB", keys=("say%2:32:00::", "say%2:32:01::")),
        Target(5, 6, "such", "ADJ", keys=("such%5:00:01:specified:00",)),
    ]
    assert second.tokens == ["AT&T"]
    with pytest.raises(InputError, match="no folder tagfiles found"):
        list(read_semcor(tmp_path / "nowhere"))


def test_raganato(tmp_path):
    (tmp_path / "data.xml").write_text(DATA)
    (tmp_path / "gold.txt").write_text("t0 river_bank%1:17:01::\nt1 a%1:: b%1::\n")
    (sentence,) = read_raganato(tmp_path / "data.xml", tmp_path / "gold.txt")
    assert sentence.tokens == ["The", "river", "bank", "bank"]
    assert [(t.start, t.end, t.id, t.keys) for t in sentence.targets] == [
        (1, 3, "t0", ("river_bank%1:17:01::",)),
        (3, 4, "t1", ("a%1::", "b%1::")),
    ]
    (tmp_path / "data.xml").write_text(DATA[:-20])
    with pytest.raises(InputError, match="cannot read"):
        read_raganato(tmp_path / "data.xml")


def test_blank_lines_of_gold_keys(tmp_path):
    (tmp_path / "data.xml").write_text(
        '<corpus><sentence><instance id="t0" lemma="bank" pos="NOUN">bank</instance>'
        "</sentence></corpus>"
    )
    (tmp_path / "gold.txt").write_text("\nt0 bank%1:17:01::\n \n\n")
    (sentence,) = read_raganato(tmp_path / "data.xml", tmp_path / "gold.txt")
    assert sentence.targets[0].keys == ("bank%1:17:01::",)


def test_brackets_and_quotes_of_treebanks(tmp_path):
    (tmp_path / "data.xml").write_text(
        "<corpus><sentence><wf>``</wf><wf>-LRB-</wf><wf>R&amp;amp;D</wf><wf>&amp;amp;</wf>"
        "<wf>-RRB-</wf><wf>''</wf></sentence></corpus>"
    )
    (sentence,) = read_raganato(tmp_path / "data.xml")
    assert sentence.tokens == ['"', "(", "R&D", "&", ")", '"']


@pytest.mark.parametrize("piece", ["<wf ", "<punc>", "<wf lemma=", "=", "<wf " + "a" * 99])
def test_damaged_semcor_takes_linear_time(tmp_path, piece):
    (tmp_path / "tagfiles").mkdir()
    (tmp_path / "tagfiles/a").write_text(piece * 100_000 + "<wf>a</wf></s>")
    (sentence,) = read_semcor(tmp_path)
    assert sentence.tokens == ["a"]


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "data.xml").write_text(DATA)
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo", tmp_path / "missing"):
        for pair in ((path, None), (tmp_path / "data.xml", path)):
            with pytest.raises(InputError, match="cannot read"):
                read_raganato(*pair)
    (tmp_path / "data.xml").write_text("<?xml version='1.0' encoding='no-such'?><a/>")
    with pytest.raises(InputError, match="cannot read"):
        read_raganato(tmp_path / "data.xml")
    (tmp_path / "data.xml").write_bytes(DATA.encode())
    (tmp_path / "gold.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot read"):
        read_raganato(tmp_path / "data.xml", tmp_path / "gold.txt")
