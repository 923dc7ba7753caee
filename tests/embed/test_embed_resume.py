"""``elmokit embed``: what survives a stop, a kill or a changed input."""

import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from elmokit import Elmo
from elmokit.embed.run import EmbedOptions, embed_lines
from elmokit.errors import InputError, OutputError
from elmokit.inference.engine import Engine
from helpers.embedding import LINES, check_hdf5, lines_that_stop
from helpers.processes import run_process


@pytest.mark.parametrize("name", ["out.hdf5", "out.npz", "out.parquet"])
def test_resume_does_not_compute_again(tiny, tmp_path, monkeypatch, name):
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 500)  # a few lines at a time
    lines, out = LINES * 5, tmp_path / name
    out.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(lines, 17), out, EmbedOptions())
    assert out.read_text() == "old"
    with pytest.raises(OutputError, match="pass resume=True to continue it, or pass restart=True"):
        embed_lines(tiny, iter(lines), out, EmbedOptions())
    seen, run = [], Engine.run
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "run", lambda *args: (seen.extend(args[1]), run(*args))[1])
        summary = embed_lines(tiny, iter(lines), out, EmbedOptions(resume=True))
    assert summary.resumed > 10
    assert seen == [line.split() for line in lines[summary.resumed :]]
    assert summary.sentences == 30
    assert [p.name for p in tmp_path.iterdir()] == [name]
    fresh = tmp_path / f"fresh-{name}"
    embed_lines(tiny, iter(lines), fresh, EmbedOptions())
    for a, b in zip(read_all(out), read_all(fresh), strict=True):
        np.testing.assert_array_equal(a, b)
    if name == "out.hdf5":
        check_hdf5(out, tiny, lines)


def read_all(path):
    """Every line's array from any format."""
    if path.suffix == ".hdf5":
        with h5py.File(path) as file:
            return [file[str(i)][()] for i in range(len(file) - 1)]
    if path.suffix == ".npz":
        with np.load(path) as file:
            return [file[str(i)] for i in range(len(file.files) - 1)]
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    columns = [table[f"layer_{k}"].to_pylist() for k in range(3)]
    return [
        np.array(layers, np.float32).reshape(3, -1, 16) for layers in zip(*columns, strict=True)
    ]


def test_resume_wants_the_same_input_and_settings(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    for lines, options, message in [
        (
            ["other", *LINES[1:]],
            EmbedOptions(resume=True),
            "line 1 has changed since",
        ),
        (LINES[:2], EmbedOptions(resume=True), "has 2 lines, but the earlier run finished 4"),
        (
            LINES,
            EmbedOptions(layers="top", resume=True),
            r"had layers \[0, 1, 2\]",
        ),
        (
            LINES,
            EmbedOptions(dtype="float16", resume=True),
            "had dtype float32",
        ),
        (LINES, EmbedOptions(state="carry", resume=True), "carried state cannot be resumed"),
    ]:
        with pytest.raises(InputError, match=message):
            embed_lines(tiny, iter(lines), out, options)
    embed_lines(tiny, iter(LINES[:2]), out, EmbedOptions(restart=True))
    check_hdf5(out, tiny, LINES[:2])


def test_resume_wants_the_same_model_config(tiny, tiny_folder, tmp_path, monkeypatch):
    """The same weights with other settings are another model."""
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    folder = shutil.copytree(tiny_folder, tmp_path / "other")
    options = (folder / "options.json").read_text()
    assert '"use_skip_connections": true' in options
    (folder / "options.json").write_text(
        options.replace('"use_skip_connections": true', '"use_skip_connections": false')
    )
    other = Elmo.load(folder, device="cpu")
    with pytest.raises(InputError, match="used another model config"):
        embed_lines(other, iter(LINES), out, EmbedOptions(resume=True))
    with pytest.raises(InputError, match="not both"):
        embed_lines(tiny, iter(LINES), out, EmbedOptions(resume=True, restart=True))


def test_what_is_damaged_is_computed_again(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    vectors = tmp_path / "out.hdf5.partial/vectors"
    vectors.write_bytes(vectors.read_bytes()[:-128])
    said = []
    done = embed_lines(tiny, iter(LINES), out, EmbedOptions(resume=True), say=said.append)
    assert done.resumed == 3
    assert "1 finished texts of the earlier run are damaged" in said[0]
    check_hdf5(out, tiny, LINES)


def test_a_mistake_does_not_block_the_next_run(cli, tiny, tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_bytes(b"caf\xe9\n")
    assert cli("embed", corpus, out, "-m", tiny_folder).returncode == 2
    corpus.write_bytes("café\n".encode())
    assert cli("embed", corpus, out, "-m", tiny_folder).returncode == 0
    check_hdf5(out, tiny, ["café"])


@pytest.mark.parametrize("cut", [1, 15, 16, 29])
def test_an_unfinished_write_is_cut_off(tiny, tmp_path, monkeypatch, cut):
    """Whatever bytes a kill left behind the last whole entry."""
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    job = tmp_path / "out.hdf5.partial"
    index = (job / "index").read_bytes()
    (job / "index").write_bytes(index[:-cut])
    for name in ("vectors", "texts"):
        with open(job / name, "ab") as file:
            file.write(b"garbage")
    embed_lines(tiny, iter(LINES), out, EmbedOptions(resume=True))
    check_hdf5(out, tiny, LINES)


def test_kill_9_and_resume(tiny, tiny_folder, tmp_path):
    """A real process, really killed, at several moments."""
    lines = [f"sentence number {i} of many ." for i in range(400)]
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_text("\n".join(lines))
    out.write_text("old")
    code = (
        "import elmokit.inference.vectors as vectors, time, elmokit.cli.main as m; "
        "from elmokit.io.job import Job; vectors._CPU_WINDOW_BYTES = 4000; append = Job.append; "
        "Job.append = lambda *a: (append(*a), time.sleep(0.02)); m.main()"
    )
    command = ["embed", str(corpus), str(out), "-m", str(tiny_folder), "--resume"]
    killed, done = 0, 0
    while killed < 3:
        process = subprocess.Popen([sys.executable, "-c", code, *command],
                                   stdout=subprocess.DEVNULL)  # fmt: skip
        index = tmp_path / "out.hdf5.partial/index"
        before = done
        while done < before + 16 * 40 and process.poll() is None:
            time.sleep(0.005)
            done = index.stat().st_size if index.exists() else 0
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert out.read_text() == "old"
        killed += 1
    assert 100 < done // 16 < 400
    finished = run_process(*command)
    assert finished.returncode == 0, finished.stderr
    assert "from the stopped run" in finished.stdout
    check_hdf5(out, tiny, lines)


def test_kill_9_while_writing_the_file(tiny, tiny_folder, tmp_path):
    """What was half written is gone after the next run."""
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_text("\n".join(LINES))
    code = (
        "import os, signal, elmokit.embed.writers as w, elmokit.cli.main as m; "
        "w.WRITERS['.hdf5'] = lambda path, *a: (path.write_bytes(b'half'), "
        "os.kill(os.getpid(), signal.SIGKILL)); m.main()"
    )
    command = ["embed", str(corpus), str(out), "-m", str(tiny_folder), "--resume"]
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", code, *command])
        assert killed.returncode == -signal.SIGKILL
    finished = run_process(*command)
    assert finished.returncode == 0, finished.stderr
    assert "(6 from the stopped run)" in finished.stdout
    check_hdf5(out, tiny, LINES)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus.txt", "out.hdf5"]


def test_ctrl_c(tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_text("a few words\n" * 200)
    code = (
        "import elmokit.inference.vectors as vectors, time, elmokit.cli.main as m; "
        "from elmokit.io.job import Job; vectors._CPU_WINDOW_BYTES = 1; append = Job.append; "
        "Job.append = lambda *a: (append(*a), time.sleep(0.05)); m.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "embed", str(corpus), str(out), "-m", str(tiny_folder)],
        stderr=subprocess.PIPE,
    )
    index = tmp_path / "out.hdf5.partial/index"
    while not (index.exists() and index.stat().st_size > 40):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in message
    assert b"--resume" in message
    assert not out.exists()


def test_invalid_utf8_loses_nothing(cli, monkeypatch, tiny, tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_bytes(b"fine\ncaf\xe9\n")
    with monkeypatch.context() as context:  # a line at a time; the first one is kept
        context.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 1)
        context.setattr("elmokit.embed.run.sample_start", lambda *_: None)
        assert cli("embed", corpus, out, "-m", tiny_folder).returncode == 2
    assert "was stopped" in cli("embed", corpus, out, "-m", tiny_folder).stderr
    corpus.write_bytes("fine\ncafé\n".encode())
    done = cli("embed", corpus, out, "-m", tiny_folder, "--resume")
    assert done.returncode == 0, done.stderr
    check_hdf5(out, tiny, ["fine", "café"])
