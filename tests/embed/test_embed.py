"""``elmokit embed``: the files it writes, and what survives a kill or a full disk."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from elmokit import CarriedState, Elmo
from elmokit.embed.run import EmbedOptions, embed_lines
from elmokit.embed.writers import WriteOptions
from elmokit.errors import InputError, MissingExtraError, OutputError
from helpers.processes import run_process

LINES = ["The first sentence .", "a / b : c", "", "日本 🙂 naïve", "The first sentence .", "x"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
    return path


def check_hdf5(path, elmo, lines, layers="all", dtype=np.float32):
    with h5py.File(path) as file:
        index = json.loads(file["sentence_to_index"][0])
        assert index == {line: str(max(i for i, x in enumerate(lines) if x == line))
                         for line in lines}  # fmt: skip
        assert set(file) == {*map(str, range(len(lines))), "sentence_to_index"}
        for i, line in enumerate(lines):
            expected = elmo.encode([line], layers)[0]
            assert file[str(i)].dtype == dtype
            assert file[str(i)].shape == expected.shape
            tolerance = 1e-5 if dtype == np.float32 else 5e-3
            np.testing.assert_allclose(file[str(i)][()], expected, atol=tolerance)


@pytest.mark.parametrize(
    ("flags", "layers"),
    [
        ([], "all"),
        (["--all"], "all"),
        (["--top"], "top"),
        (["--average"], "average"),
        (["--layers", "0"], 0),
        (["--layers", "0,2"], [0, 2]),
        (["--layers", "mix"], "mix"),
    ],
)
def test_allennlps_layout(cli, tiny, tiny_folder, corpus, tmp_path, flags, layers):
    out = tmp_path / "out.hdf5"
    done = cli(
        "embed", corpus, out, *flags, "--options-file", tiny_folder / "options.json",
        "--weight-file", tiny_folder / "weights.hdf5", "--batch-size", 64, "--cuda-device", -1,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "6 sentences, 17 tokens" in done.stdout
    check_hdf5(out, tiny, LINES, layers)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus.txt", "out.hdf5"]


def test_standard_input_and_half_precision(tiny, tiny_folder, tmp_path):
    out = tmp_path / "out.h5"
    text = "\ufeff" + "\r\n".join(LINES)  # with a byte order mark, and no end of line at the end
    done = run_process("embed", "-", out, "-m", tiny_folder, "--dtype", "float16", stdin=text)
    assert done.returncode == 0, done.stderr
    check_hdf5(out, tiny, LINES, dtype=np.float16)


def test_carried_state_as_allennlp(tiny, tmp_path):
    options = EmbedOptions(layers="top", state="carry", batch_size=2)
    embed_lines(tiny, iter(LINES), tmp_path / "out.hdf5", options)
    state = CarriedState()
    expected = [v for i in (0, 2, 4) for v in tiny.encode(LINES[i : i + 2], "top", state=state)]
    with h5py.File(tmp_path / "out.hdf5") as file:
        for i, vectors in enumerate(expected):
            np.testing.assert_allclose(file[str(i)][()], vectors, atol=1e-6)


def test_carried_state_over_many_windows(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 1)
    test_carried_state_as_allennlp(tiny, tmp_path)


def test_sentence_keys(tiny, tmp_path):
    unique = [line for i, line in enumerate(LINES) if line and line not in LINES[:i]]
    options = EmbedOptions(write=WriteOptions(sentence_keys=True))
    embed_lines(tiny, iter(unique), tmp_path / "out.hdf5", options)
    with h5py.File(tmp_path / "out.hdf5") as file:
        for line in unique:
            assert file[line].shape == (3, len(line.split()), 16)
        assert "sentence_to_index" not in file
    for lines, message in (
        (LINES, "line 3 is empty, holds"),
        (["a\0b"], "line 1 is empty, holds a NUL"),
        (["a" * 65_001], "over 65,000 bytes"),
        (["a", "b", "a"], "same as line 1"),
    ):
        with pytest.raises(InputError, match=message):
            embed_lines(tiny, iter(lines), tmp_path / "out.hdf5", options)
        options = EmbedOptions(write=WriteOptions(sentence_keys=True), restart=True)
    with pytest.raises(InputError, match="line 2 cannot be a key of an HDF5 file"):
        embed_lines(tiny, iter(["a", "a/b"]), tmp_path / "out.hdf5", options)


def test_forget_sentences(tiny, tmp_path):
    options = EmbedOptions(write=WriteOptions(forget_sentences=True))
    embed_lines(tiny, iter(LINES), tmp_path / "out.hdf5", options)
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert set(file) == set(map(str, range(6)))
    embed_lines(tiny, iter(LINES), tmp_path / "out.npz", options)
    assert set(np.load(tmp_path / "out.npz").files) == set(map(str, range(6)))


def test_npz(tiny, tmp_path):
    embed_lines(tiny, iter(LINES), tmp_path / "out.npz", EmbedOptions())
    with np.load(tmp_path / "out.npz") as file:
        assert json.loads(str(file["sentence_to_index"]))["x"] == "5"
        for i, line in enumerate(LINES):
            np.testing.assert_allclose(file[str(i)], tiny.encode([line], "all")[0], atol=1e-5)


@pytest.mark.parametrize(("layers", "columns"), [
    ("all", ["layer_0", "layer_1", "layer_2"]), ([0, 2], ["layer_0", "layer_2"]),
    ("average", ["vectors"]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_parquet(tiny, tmp_path, layers, columns, dtype):
    parquet = pytest.importorskip("pyarrow.parquet")
    embed_lines(
        tiny, iter(LINES), tmp_path / "out.parquet", EmbedOptions(layers=layers, dtype=dtype)
    )
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["line", "sentence", "tokens", *columns]
    assert table["line"].to_pylist() == list(range(6))
    assert table["sentence"].to_pylist() == LINES
    assert table["tokens"].to_pylist() == [line.split() for line in LINES]
    for i, line in enumerate(LINES):
        vectors = tiny.encode([line], layers)[0]
        for column, expected in zip(columns, vectors if vectors.ndim == 3 else [vectors],
                                    strict=True):  # fmt: skip
            found = np.array(table[column][i].as_py(), np.float32).reshape(-1, 16)
            np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == "float32" else 5e-3)


def test_parquet_without_the_package(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[parquet\]'"):
        embed_lines(tiny, iter(LINES), tmp_path / "out.parquet", EmbedOptions())


def test_a_corpus_of_nothing(tiny, tmp_path):
    for name in ("out.hdf5", "out.npz", "out.parquet"):
        assert embed_lines(tiny, iter([]), tmp_path / name, EmbedOptions()).sentences == 0
        embed_lines(tiny, iter(["", ""]), tmp_path / name, EmbedOptions())


def test_the_tokenizer_and_tokenized(cli, tiny_folder, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("Don't go.\n")
    for flags, n in (([], 2), (["--tokenizer", "english"], 4), (["--tokenized"], 2)):
        done = cli("embed", corpus, tmp_path / "out.hdf5", "-m", tiny_folder, "--top", *flags)
        assert done.returncode == 0, done.stderr
        with h5py.File(tmp_path / "out.hdf5") as file:
            assert file["0"].shape == (n, 16)


def test_quantize(cli, tiny, tiny_folder, tmp_path, corpus):
    out = tmp_path / "out.hdf5"
    done = cli("embed", corpus, out, "-m", tiny_folder, "--quantize", "int8", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    with h5py.File(out) as file:
        exact, rounded = tiny.encode(LINES[0], "all"), file["0"][()]
    assert 0 < np.abs(exact - rounded).max() < 0.3
    assert (
        "int8, bfloat16 or nothing"
        in cli("embed", corpus, out, "-m", tiny_folder, "--quantize", "x").stderr
    )


# Stopping and going on


def lines_that_stop(lines, after):
    for number, line in enumerate(lines):
        if number == after:
            raise KeyboardInterrupt
        yield line


@pytest.mark.parametrize("name", ["out.hdf5", "out.npz", "out.parquet"])
def test_resume_does_not_compute_again(tiny, tmp_path, monkeypatch, name):
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 500)  # a few lines at a time
    lines, out = LINES * 5, tmp_path / name
    out.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(lines, 17), out, EmbedOptions())
    assert out.read_text() == "old"
    with pytest.raises(OutputError, match="add --resume to continue it, or --restart"):
        embed_lines(tiny, iter(lines), out, EmbedOptions())
    seen, encode = [], tiny.encode

    def watched(texts, *arguments, **keywords):
        seen.extend(texts)
        return encode(texts, *arguments, **keywords)

    monkeypatch.setattr(tiny, "encode", watched)
    summary = embed_lines(tiny, iter(lines), out, EmbedOptions(resume=True))
    assert summary.resumed > 10
    assert [" ".join(tokens) for tokens in seen] == lines[summary.resumed :]
    assert summary.sentences == 30
    assert [p.name for p in tmp_path.iterdir()] == [name]
    monkeypatch.undo()
    fresh = tmp_path / f"fresh-{name}"
    embed_lines(tiny, iter(lines), fresh, EmbedOptions())
    for a, b in zip(read_all(out), read_all(fresh), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
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
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    for lines, options, message in [
        (["other", *LINES[1:]], EmbedOptions(resume=True), "line 1 is not what it was"),
        (LINES[:2], EmbedOptions(resume=True), "has 2 lines, fewer than the 4"),
        (LINES, EmbedOptions(layers="top", resume=True), r"begun with layers \[0, 1, 2\]"),
        (LINES, EmbedOptions(dtype="float16", resume=True), "begun with dtype float32"),
        (LINES, EmbedOptions(state="carry", resume=True), "carried state cannot be resumed"),
    ]:
        with pytest.raises(InputError, match=message):
            embed_lines(tiny, iter(lines), out, options)
    embed_lines(tiny, iter(LINES[:2]), out, EmbedOptions(restart=True))
    check_hdf5(out, tiny, LINES[:2])


def test_resume_wants_the_same_model_config(tiny, tiny_folder, tmp_path, monkeypatch):
    """The same weights with other settings are another model."""
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 1)
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
    with pytest.raises(InputError, match="begun with model config"):
        embed_lines(other, iter(LINES), out, EmbedOptions(resume=True))
    (tmp_path / "out.hdf5.partial/settings.json").write_text("{")
    with pytest.raises(InputError, match="begun with model None"):
        embed_lines(tiny, iter(LINES), out, EmbedOptions(resume=True))
    with pytest.raises(InputError, match="not both"):
        embed_lines(tiny, iter(LINES), out, EmbedOptions(resume=True, restart=True))


def test_a_damaged_spool_is_not_patched_up(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    vectors = tmp_path / "out.hdf5.partial/vectors"
    vectors.write_bytes(vectors.read_bytes()[:-128])
    with pytest.raises(InputError, match="vectors is shorter than it was"):
        embed_lines(tiny, iter(LINES), out, EmbedOptions(resume=True))


def test_a_mistake_does_not_block_the_next_run(cli, tiny, tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_bytes(b"caf\xe9\n")
    assert cli("embed", corpus, out, "-m", tiny_folder).returncode == 2
    corpus.write_bytes("café\n".encode())
    assert cli("embed", corpus, out, "-m", tiny_folder).returncode == 0
    check_hdf5(out, tiny, ["café"])


@pytest.mark.parametrize("cut", [1, 7, 8, 13])
def test_an_unfinished_write_is_cut_off(tiny, tmp_path, monkeypatch, cut):
    """Whatever bytes a kill left behind the last whole entry."""
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 1)
    out = tmp_path / "out.hdf5"
    with pytest.raises(KeyboardInterrupt):
        embed_lines(tiny, lines_that_stop(LINES, 4), out, EmbedOptions())
    spool = tmp_path / "out.hdf5.partial"
    index = (spool / "index").read_bytes()
    (spool / "index").write_bytes(index[:-cut])
    for name in ("vectors", "texts"):
        with open(spool / name, "ab") as file:
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
        "import elmokit.embed.run as run, time, elmokit.cli.main as m; "
        "run._CPU_WINDOW_BYTES = 4000; "
        "append = run.Spool.append; "
        "run.Spool.append = lambda *a: (append(*a), time.sleep(0.02)); m.main()"
    )
    command = ["embed", str(corpus), str(out), "-m", str(tiny_folder), "--resume"]
    killed, done = 0, 0
    while killed < 3:
        process = subprocess.Popen([sys.executable, "-c", code, *command],
                                   stdout=subprocess.DEVNULL)  # fmt: skip
        index = tmp_path / "out.hdf5.partial/index"
        before = done
        while done < before + 8 * 40 and process.poll() is None:
            time.sleep(0.005)
            done = index.stat().st_size if index.exists() else 0
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert out.read_text() == "old"
        killed += 1
    assert 100 < done // 8 < 400
    finished = run_process(*command)
    assert finished.returncode == 0, finished.stderr
    assert "from the run before" in finished.stdout
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
    assert "(6 from the run before)" in finished.stdout
    check_hdf5(out, tiny, LINES)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus.txt", "out.hdf5"]


def test_ctrl_c(tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_text("a few words\n" * 200)
    code = (
        "import elmokit.embed.run as run, time, elmokit.cli.main as m; run._CPU_WINDOW_BYTES = 1; "
        "append = run.Spool.append; "
        "run.Spool.append = lambda *a: (append(*a), time.sleep(0.05)); m.main()"
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


# A full disk


def limit_file_size(n_bytes):
    """Every write beyond n bytes fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


@pytest.mark.parametrize(
    ("name", "share"),
    [("out.hdf5", 0.3), ("out.hdf5", 1.005), ("out.npz", 1.005), ("out.parquet", 0.3)],
)
def test_disk_full(cli, tiny, tiny_folder, tmp_path, name, share):
    """While computing (0.3), and while writing the final file, larger than the vectors alone."""
    lines = ["some words of a line"] * 500
    corpus, out = tmp_path / "corpus.txt", tmp_path / name
    corpus.write_text("\n".join(lines))
    out.write_text("old")
    limit = int(500 * 5 * 3 * 16 * 4 * share)
    failed = run_process("embed", corpus, out, "-m", tiny_folder,
                         preexec_fn=lambda: limit_file_size(limit))  # fmt: skip
    check_disk_full(failed.returncode, failed.stderr, tmp_path, name, kept=share > 1)
    assert cli("embed", corpus, out, "-m", tiny_folder, "--resume").returncode == 0
    if name == "out.hdf5":
        check_hdf5(out, tiny, lines)


def test_disk_full_while_writing_parquet(cli, tiny_folder, tmp_path, monkeypatch):
    """Parquet packs, so that its file is never larger than the vectors were."""
    parquet = pytest.importorskip("pyarrow.parquet")
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.parquet"
    corpus.write_text("some words")
    out.write_text("old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(parquet.ParquetWriter, "write_table", full)
        failed = cli("embed", corpus, out, "-m", tiny_folder)
    check_disk_full(failed.returncode, failed.stderr, tmp_path, "out.parquet")
    assert cli("embed", corpus, out, "-m", tiny_folder, "--resume").returncode == 0


def check_disk_full(code, message, folder, name, kept=True):
    assert code == 2, message
    assert "Traceback" not in message
    assert message.count("\n") == 1
    assert "no room on the disk" in message
    assert "--resume" in message
    assert (folder / name).read_text() == "old"
    partial = [f"{name}.partial"] if kept else []  # where no line was done, there is none to keep
    assert sorted(p.name for p in folder.iterdir()) == ["corpus.txt", name, *partial]


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt", "out.hdf5"], "there is no file missing.txt"),
        (["latin.txt", "out.hdf5"], "line 2 of latin.txt is not valid UTF-8 (byte 0xe9"),
        (["corpus.txt", "out.txt"], "should end in one of .hdf5, .h5, .npz, .parquet"),
        (["corpus.txt", "nowhere/out.hdf5"], "there is no folder nowhere"),
        ([".", "out.hdf5"], "cannot read"),
        (["corpus.txt", "out.hdf5", "--top", "--all"], "only one of --all, --top"),
        (["corpus.txt", "out.hdf5", "--layers", "x"], "numbers like 1 or 0,2, not 'x'"),
        (["corpus.txt", "out.hdf5", "--layers", "7"], "numbers from 0 to 2, not 7"),
        (["corpus.txt", "out.hdf5", "--dtype", "int8"], "float32 or float16, not 'int8'"),
        (["corpus.txt", "out.hdf5", "--state", "x"], "zero, warm or carry, not 'x'"),
        (["corpus.txt", "out.hdf5", "--device", "abacus"], "cannot use the device 'abacus'"),
        (["corpus.txt", "out.hdf5", "--tokenizer", "x"], "there is no tokenizer 'x'"),
        (["corpus.txt", "out.parquet", "--use-sentence-keys"], "for HDF5 and npz"),
    ],
)
def test_one_sentence_and_exit_2(
    cli, monkeypatch, tiny_folder, corpus, tmp_path, arguments, message
):
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    monkeypatch.chdir(tmp_path)
    done = cli("embed", *arguments, "-m", tiny_folder)
    assert done.returncode == 2
    assert done.stdout == ""
    error = done.stderr
    assert error.startswith("elmokit: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.hdf5").exists()


def test_invalid_utf8_loses_nothing(cli, monkeypatch, tiny, tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_bytes(b"fine\ncaf\xe9\n")
    with monkeypatch.context() as context:  # a line at a time, so that the first one is kept
        context.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 1)
        assert cli("embed", corpus, out, "-m", tiny_folder).returncode == 2
    assert "add --resume" in cli("embed", corpus, out, "-m", tiny_folder).stderr
    corpus.write_bytes("fine\ncafé\n".encode())
    done = cli("embed", corpus, out, "-m", tiny_folder, "--resume")
    assert done.returncode == 0, done.stderr
    check_hdf5(out, tiny, ["fine", "café"])


def test_memory_stays_flat(tiny, tmp_path, monkeypatch):
    """Lines are read as they are needed, and vectors leave memory as they are written."""
    monkeypatch.setattr("elmokit.embed.run._CPU_WINDOW_BYTES", 10_000)
    ahead, most = 0, 0

    def lines():
        nonlocal ahead, most
        for i in range(2000):
            ahead += 1
            most = max(most, ahead)
            yield f"line {i}"

    from elmokit.io.job import Spool

    append = Spool.append

    def counting(self, sentences, arrays):
        nonlocal ahead
        ahead -= len(sentences)
        return append(self, sentences, arrays)

    monkeypatch.setattr(Spool, "append", counting)
    embed_lines(tiny, lines(), tmp_path / "out.hdf5", EmbedOptions())
    assert most < 50


def test_the_bundled_model_is_the_default(cli, tmp_path, corpus):
    done = cli("embed", corpus, tmp_path / "out.hdf5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file["0"].shape[-1] == Elmo.load("en", device="cpu").dim


def test_summary(tiny, tmp_path):
    summary = embed_lines(tiny, iter(LINES), tmp_path / "out.npz", EmbedOptions())
    assert (summary.sentences, summary.tokens, summary.resumed) == (6, 17, 0)
    assert summary.bytes == os.path.getsize(tmp_path / "out.npz")


def test_a_line_of_44177_tokens(cli, tiny_folder, tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.hdf5"
    corpus.write_text("short\n" + "word " * 44_177 + "\nshort\n")
    done = cli("embed", corpus, out, "-m", tiny_folder, "--layers", "0")
    assert done.returncode == 0, done.stderr
    with h5py.File(out) as file:
        assert file["1"].shape == (44_177, 16)
        np.testing.assert_array_equal(file["0"][()], file["2"][()])


def test_many_blank_lines_are_not_one_window(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.embed.run._WINDOW_LINES", 10)
    sizes, encode = [], tiny.encode

    def watched(texts, *arguments, **keywords):
        sizes.append(len(texts))
        return encode(texts, *arguments, **keywords)

    monkeypatch.setattr(tiny, "encode", watched)
    embed_lines(tiny, iter([""] * 35), tmp_path / "out.hdf5", EmbedOptions())
    assert sizes == [10, 10, 10, 5]
