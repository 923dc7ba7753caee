"""Text files to a corpus of numbers."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from elmokit.errors import FormatError
from elmokit.pretrain.data.corpus import Corpus
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
    """A damaged corpus is not used, and is prepared again."""
    path, data = tmp_path / "text", tmp_path / "data"
    path.write_text("a b c\n")
    whole = prepare([path], data, TextOptions())
    kept = {name: (data / name).read_bytes() for name in Corpus.FILES}
    for name, content in kept.items():
        swapped = content.replace(b"a", b"A") if name == "words.txt" else content[:-1] + b"~"
        for damaged in (b"", content[: len(content) // 2], swapped, b"[]", b"[" * 100_000):
            (data / name).write_bytes(damaged)
            with pytest.raises(FormatError, match="not a complete prepared corpus"):
                Corpus(data)
            assert prepare([path], data, TextOptions()).digest == whole.digest
            assert (data / name).read_bytes() == content


def test_a_folder_of_prepared_text_is_shared(tmp_path):
    """Runs that start together wait for each other and then use the same files."""
    path, data = tmp_path / "text", tmp_path / "data"
    path.write_text("\n".join(sentences(500)))
    (data / ".train.0123.tmp").mkdir(parents=True)  # of a run that was killed
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda _: prepare([path], data / "train", TextOptions(), 1), range(8))
        )
    assert len({corpus.digest for corpus in found}) == 1
    assert sorted(p.name for p in data.iterdir()) == ["lock", "train"]
