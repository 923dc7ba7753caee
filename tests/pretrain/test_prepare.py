"""Text files to a corpus of numbers."""

import pytest

from elmokit.errors import FormatError
from elmokit.pretrain.data.prepare import TextOptions, prepare
from helpers.pretraining import sentences


def test_prepared_text(tmp_path):
    path = tmp_path / "text"
    path.write_text("Ann met Dr. Bo. He ran! The end\nwas near.\n\nAnn ran.\n")
    corpus = prepare([path], tmp_path / "data", TextOptions("english"))
    found, at = [], 0
    for n in corpus.lengths:
        found.append(" ".join(corpus.words[i] for i in corpus.tokens[at : at + n]))
        at += n
    assert found == ["Ann met Dr. Bo .", "He ran !", "The end", "was near .", "Ann ran ."]
    assert corpus.documents.tolist() == [0, 4]
    assert corpus.words[:3] == [".", "Ann", "ran"]
    assert corpus.counts[:3].tolist() == [3, 2, 2]
    before = (tmp_path / "data" / "tokens.bin").stat().st_mtime_ns
    prepare([path], tmp_path / "data", TextOptions("english"))
    assert (tmp_path / "data" / "tokens.bin").stat().st_mtime_ns == before  # used again
    prepare([path], tmp_path / "data", TextOptions("whitespace"))
    assert (tmp_path / "data" / "tokens.bin").stat().st_mtime_ns != before
    with open(path, "a") as file:
        file.write("More.\n")
    assert prepare([path], tmp_path / "data", TextOptions("whitespace")).n_words == 12


def test_several_processes_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.pretrain.data.prepare._PIECE", 2000)
    path = tmp_path / "text"
    path.write_text("\n".join(sentences(200)) + "\n\n" + "\n".join(sentences(100)))
    one = prepare([path], tmp_path / "one", TextOptions(), 1)
    two = prepare([path], tmp_path / "two", TextOptions(), 2)
    for name in one.FILES[1:]:
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
    assert one.digest == two.digest
    assert one.n_tokens == 300 * 9
    assert one.documents.tolist() == [0, 200]  # however the pieces fall


def test_damaged_corpus(tmp_path):
    path = tmp_path / "text"
    path.write_text("a b c\n")
    prepare([path], tmp_path / "data", TextOptions())
    (tmp_path / "data" / "tokens.bin").write_bytes(b"1234")
    with pytest.raises(FormatError, match="damaged: 1 tokens instead of 3"):
        prepare([path], tmp_path / "data", TextOptions())
