"""``elmokit index``: a resumed run gives the same files, and damage is noticed."""

from types import SimpleNamespace

import pytest
import torch

from elmokit.analysis.index import build, graph
from elmokit.analysis.index.build import IndexOptions, build_index
from elmokit.analysis.index.graph import Graph
from elmokit.analysis.index.index_config import NAMES
from elmokit.errors import OutputError
from elmokit.io.job import Job
from elmokit.io.space import sample_start
from helpers.indexing import TOKENIZED, sentences, write_text

RESUME = IndexOptions(tokenized=True, resume=True)


@pytest.fixture
def small(tiny, tmp_path, monkeypatch):
    """A model, a text of many windows, and the files of its index, built in one go."""
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 100 * 16 * 4)
    monkeypatch.setattr("elmokit.inference.vectors._WINDOWS_PER_CACHE", 3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several threads build a graph in no fixed order
    text = write_text(tmp_path / "text.txt", sentences(150))
    build_index(tiny, [text], tmp_path / "whole", TOKENIZED)
    yield SimpleNamespace(elmo=tiny, text=text, files=files(tmp_path / "whole"))
    torch.set_num_threads(threads)


def files(folder):
    assert sorted(p.name for p in folder.iterdir()) == sorted(NAMES)
    return {name: (folder / name).read_bytes() for name in NAMES}


def stopping(function, after):
    calls = []

    def stopped(*arguments, **keywords):
        calls.append(0)
        if len(calls) > after:
            raise KeyboardInterrupt
        return function(*arguments, **keywords)

    return stopped


@pytest.mark.parametrize(
    ("where", "name", "after"),
    [
        (Job, "append", 1),
        (Job, "append", 4),
        (build, "_write_text", 0),
        (build, "_write_words", 0),
        (build, "_write_graph", 0),
        (Graph, "save", 0),
        (graph, "write_text", 0),
        (build.IndexConfig, "write", 0),
        (Job, "output_folder", 0),
    ],
)
def test_resumed(small, tmp_path, monkeypatch, where, name, after):
    small.elmo.encode(["words in the cache"])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(where, name, stopping(getattr(where, name), after))
        build_index(small.elmo, [small.text], tmp_path / "idx", TOKENIZED)
    done = build_index(small.elmo, [small.text], tmp_path / "idx", RESUME)
    assert done.resumed > 0
    assert files(tmp_path / "idx") == small.files
    assert sorted(p.name for p in tmp_path.iterdir()) == ["idx", "text.txt", "whole"]


def test_a_damaged_graph_is_not_continued(small, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Job, "output_folder", stopping(None, 0))
        build_index(small.elmo, [small.text], tmp_path / "idx", TOKENIZED)
    path = tmp_path / "idx.partial/graph"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    build_index(small.elmo, [small.text], tmp_path / "idx", RESUME)
    assert files(tmp_path / "idx") == small.files


def test_damaged_vectors_never_reach_the_index(small, tmp_path, monkeypatch):
    def damaged(job, names, output_folder=Job.output_folder):
        path = job.folder / "vectors"
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        output_folder(job, names)

    with monkeypatch.context() as patch:
        patch.setattr(Job, "output_folder", damaged)
        with pytest.raises(OutputError, match="vectors was damaged on disk at text 150; .*resume"):
            build_index(small.elmo, [small.text], tmp_path / "idx", TOKENIZED)
    said = []
    build_index(small.elmo, [small.text], tmp_path / "idx", RESUME, said.append)
    assert "1 finished texts of the earlier run are damaged" in said[0]
    assert files(tmp_path / "idx") == small.files


@pytest.mark.parametrize("most_per_word", [0, 5])
def test_the_size_is_announced(cli, tiny, tiny_folder, tmp_path, most_per_word):
    text = write_text(tmp_path / "text.txt", sentences(300))
    done = cli("index", text, "--out", tmp_path / "idx", "-m", tiny_folder, "--tokenized",
               "--most-per-word", most_per_word)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path / 'idx'} will take about " in done.stdout
    sample = sample_start([text], lambda _: (line.split() for line in sentences(300)))
    estimate = build._estimate_bytes(tiny, sample, most_per_word)
    assert estimate == pytest.approx(sum(map(len, files(tmp_path / "idx").values())), rel=0.25)
