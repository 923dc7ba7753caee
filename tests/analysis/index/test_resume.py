"""``elmokit index``: what survives a stop or a kill."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from elmokit.analysis.index.build import IndexOptions, build_index
from elmokit.analysis.index.graph import Graph
from elmokit.analysis.index.token_index import Index
from elmokit.errors import InputError, OutputError
from elmokit.io.job import Job
from helpers.indexing import TOKENIZED, same_files, write_text
from helpers.processes import run_process


def test_resume(made, tiny, tmp_path, monkeypatch):
    """Stopped while embedding, then while the graph grows; with other settings, or another text."""
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 4 * 16 * 100)
    text, out = made / "text.txt", tmp_path / "idx"
    append, calls = Job.append, []

    def interrupted(*arguments):
        calls.append(0)
        if len(calls) > 5:
            raise KeyboardInterrupt
        append(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Job, "append", interrupted)
        build_index(tiny, [text], out, TOKENIZED)
    assert not out.exists()
    with pytest.raises(InputError, match="is not finished"):
        Index.open(out)
    with pytest.raises(OutputError, match="resume=True"):
        build_index(tiny, [text], out, TOKENIZED)
    resume = IndexOptions(tokenized=True, resume=True)
    with pytest.raises(InputError, match="layer 2, this one has 1"):
        build_index(tiny, [text], out, IndexOptions(layer=1, tokenized=True, resume=True))
    with pytest.raises(InputError, match="sentence 1 has changed"):
        other = write_text(tmp_path / "other.txt", ["other text"])
        build_index(tiny, [other], out, resume)
    add, n_added = Graph.add, []

    def stopped(graph, rows, vectors):
        if len(graph) >= 300:
            raise KeyboardInterrupt
        n_added.append(len(rows))
        add(graph, rows, vectors)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("elmokit.analysis.index.graph._AT_ONCE", 100)
        patch.setattr("elmokit.analysis.index.graph._SAVE_SECONDS", -1.0)
        patch.setattr(Graph, "add", stopped)
        build_index(tiny, [text], out, resume)
    n_added.clear()
    monkeypatch.setattr(Graph, "add", lambda g, r, v: (n_added.append(len(r)), add(g, r, v)))
    done = build_index(tiny, [text], out, resume)
    assert done.resumed == 200
    assert sum(n_added) == done.config.rows - 300
    same_files(made / "idx", out)
    index = Index.open(out)
    vector = index.vectors[7].astype(np.float32)
    assert index.search(vector, 10) == index.search(vector, 10, brute=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["idx", "other.txt"]


def test_stopped_in_the_home_folder(made, tiny_folder, tmp_path, cli, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("elmokit.analysis.index.build.build_index", stop)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "idx.partial").mkdir()
    for name in ("settings.json", "vectors"):
        (tmp_path / "idx.partial" / name).touch()
    done = cli("index", made / "text.txt", "--out=~/idx", "-m", tiny_folder)
    assert done.returncode == 130
    assert "add --resume" in done.stderr


def test_kill_9_and_resume(made, tiny_folder, tmp_path):
    """A real process, really killed, while it embeds and when all but the renaming is done."""
    out = tmp_path / "idx"
    command = ["index", str(made / "text.txt"), "--out", str(out), "-m", str(tiny_folder)]
    command += ["--tokenized", "--resume"]
    kill = "(lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))"
    for patch in (
        "vectors._CPU_WINDOW_BYTES = 6400; append = Job.append; "
        f"Job.append = lambda s, *a: (append(s, *a), len(s) > 100 and {kill}())",
        f"Job.output_folder = {kill}",
    ):
        code = (
            "import os, signal, elmokit.inference.vectors as vectors, elmokit.cli.main as m; "
            f"from elmokit.io.job import Job; {patch}; m.main()"
        )
        killed = subprocess.run([sys.executable, "-c", code, *command])
        assert killed.returncode == -signal.SIGKILL
        assert not out.exists()
    finished = run_process(*command)
    assert finished.returncode == 0, finished.stderr
    assert "(200 from the stopped run)" in finished.stdout
    same_files(made / "idx", out)
    assert [p.name for p in tmp_path.iterdir()] == ["idx"]
