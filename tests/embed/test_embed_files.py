"""``elmokit embed``: the files it writes."""

import gzip
import json
import lzma
import os
import sys

import h5py
import numpy as np
import pytest
import zstandard

from elmokit import CarriedState, Elmo
from elmokit.embed.run import EmbedOptions, embed_lines
from elmokit.embed.writers import WriteOptions
from elmokit.errors import InputError, MissingExtraError
from elmokit.io.job import Job
from helpers.embedding import LINES, check_hdf5
from helpers.processes import run_process


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


def test_allennlps_options_without_effect(cli, tiny, tiny_folder, corpus, tmp_path):
    out = tmp_path / "out.hdf5"
    done = cli(
        "embed", corpus, out, "-m", tiny_folder, "--vocab-path", "vocab.txt",
        "--file-friendly-logging", "--include-package", "my_package",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_hdf5(out, tiny, LINES)
    flags = [line.split()[1] for line in done.stderr.splitlines()]
    assert flags == ["--vocab-path", "--file-friendly-logging", "--include-package"]
    assert "--vocab-path" not in cli("embed", "--help").stdout


def test_standard_input_and_half_precision(tiny, tiny_folder, tmp_path):
    out = tmp_path / "out.h5"
    text = "\ufeff" + "\r\n".join(LINES)  # with a byte order mark, and no end of line at the end
    done = run_process("embed", "-", out, "-m", tiny_folder, "--dtype", "float16", stdin=text)
    assert done.returncode == 0, done.stderr
    check_hdf5(out, tiny, LINES, dtype=np.float16)


@pytest.mark.parametrize("name", ["corpus.txt.gz", "corpus.xz", "corpus.txt.zst"])
def test_compressed_text(cli, tiny, tiny_folder, tmp_path, name):
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    corpus, out = tmp_path / name, tmp_path / "out.hdf5"
    corpus.write_bytes(pack[corpus.suffix]("".join(f" {line}\r\n" for line in LINES).encode()))
    done = cli("embed", corpus, out, "-m", tiny_folder)
    assert done.returncode == 0, done.stderr
    check_hdf5(out, tiny, LINES)


def test_carried_state_as_allennlp(tiny, tmp_path):
    options = EmbedOptions(layers="top", state="carry", batch_size=2)
    embed_lines(tiny, iter(LINES), tmp_path / "out.hdf5", options)
    state = CarriedState()
    expected = [v for i in (0, 2, 4) for v in tiny.encode(LINES[i : i + 2], "top", state=state)]
    with h5py.File(tmp_path / "out.hdf5") as file:
        for i, vectors in enumerate(expected):
            np.testing.assert_allclose(file[str(i)][()], vectors, atol=1e-6)


def test_carried_state_over_many_windows(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 1)
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
        (LINES, "line 3 cannot be a key, because it is empty"),
        (["a\0b"], "line 1 cannot be a key, because it is empty, contains a NUL"),
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
        "int8 or bfloat16" in cli("embed", corpus, out, "-m", tiny_folder, "--quantize", "x").stderr
    )


def test_memory_stays_flat(tiny, tmp_path, monkeypatch):
    """Lines are read as they are needed, and vectors leave memory as they are written."""
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 10_000)
    ahead, most = 0, 0

    def lines():
        nonlocal ahead, most
        for i in range(2000):
            ahead += 1
            most = max(most, ahead)
            yield f"line {i}"

    append = Job.append

    def counting(self, group):
        nonlocal ahead
        ahead -= len(group)
        return append(self, group)

    monkeypatch.setattr(Job, "append", counting)
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
    monkeypatch.setattr("elmokit.inference.batches._WINDOW_SENTENCES", 10)
    sizes, append = [], Job.append

    def watched(self, group):
        sizes.append(len(group))
        append(self, group)

    monkeypatch.setattr(Job, "append", watched)
    embed_lines(tiny, iter([""] * 35), tmp_path / "out.hdf5", EmbedOptions())
    assert sizes == [10, 10, 10, 5]
