"""``elmokit embed``: a full disk, and bad input."""

import resource

import pytest

from helpers.embedding import check_hdf5
from helpers.processes import run_process


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
    """Parquet compresses: its file is never larger than the vectors were."""
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
    assert "no space left on the disk" in message
    assert "continue with" in message
    assert "resume" in message
    assert (folder / name).read_text() == "old"
    partial = [f"{name}.partial"] if kept else []  # where no line was done, there is none to keep
    assert sorted(p.name for p in folder.iterdir()) == ["corpus.txt", name, *partial]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt", "out.hdf5"], "there is no file missing.txt"),
        (["latin.txt", "out.hdf5"], "line 2 of latin.txt is not UTF-8 text (byte 0xe9"),
        (["corpus.txt", "out.txt"], "must end in one of .hdf5, .h5, .npz, .parquet"),
        (["corpus.txt", "nowhere/out.hdf5"], "the folder nowhere does not exist"),
        ([".", "out.hdf5"], "cannot read .: it is a folder"),
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
