"""A damaged index is refused in one sentence, whatever is damaged."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from elmokit.analysis.index.index_config import FILES, NAMES, IndexConfig, checksum
from elmokit.analysis.index.neighbours import neighbours
from elmokit.analysis.index.token_index import Index, nearest
from elmokit.errors import FormatError


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made / "idx", tmp_path / "idx")


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def seal(folder):
    """Give damaged files a right checksum: what is left are the checks of their content."""
    change(folder, checksums={name: checksum(folder / name) for name in NAMES[:-1]})


@pytest.mark.parametrize("name", NAMES[:-1])
def test_flipped_bits(folder, name):
    raw = (folder / name).read_bytes()
    for at in np.linspace(0, len(raw) - 1, 12).astype(int):
        flipped = raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :]
        (folder / name).write_bytes(flipped)
        with pytest.raises(FormatError, match=f"{name} is damaged: its checksum differs"):
            Index.open(folder)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["empty", "folder", "fifo", "longer"])
def test_other_files(folder, name, how):
    raw = (folder / name).read_bytes()
    (folder / name).unlink()
    if how == "folder":
        (folder / name).mkdir()
    elif how == "fifo":
        os.mkfifo(folder / name)
    else:
        (folder / name).write_bytes(b"" if how == "empty" else raw * 2)
    with pytest.raises(FormatError, match=name):
        Index.open(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"dim": 0}, {"dim": -16}, {"dim": 1 << 70}, {"dim": 16.0}, {"dim": True}, {"dim": "16"},
        {"tokens": 5}, {"sentences": 10**30}, {"words": 0}, {"rows": None}, {"word_dim": []},
        {"sizes": {}}, {"sizes": []}, {"sizes": None}, {"model": 5}, {"version": "x"},
        {"checksums": 3}, {"version": None}, {"layer": -1},
    ],
)  # fmt: skip
def test_numbers_that_contradict_each_other(folder, values):
    change(folder, **values)
    with pytest.raises(FormatError, match="config.json is damaged"):
        Index.open(folder)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{", "\udcff", "[" * 100_000, '{"version": ' + "9" * 5000 + "}", "5",
     '{"version": 1}', " " * (1 << 21)],
)  # fmt: skip
def test_config(folder, text):
    (folder / "config.json").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(FormatError, match="config.json is damaged") as caught:
        Index.open(folder)
    assert len(str(caught.value)) < 400
    assert str(caught.value).endswith("; build the index again")  # neighbours has no --force


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("starts", {0: 3}), ("starts", {1: -5}), ("starts", {-1: 1 << 60}), ("starts", {3: 0}),
        ("tokens", {0: -1}), ("tokens", {5: 1 << 30}), ("rows", {0: -1}), ("rows", {-1: 1 << 60}),
        ("rows", {1: 0}), ("probe", {0: np.nan}),
    ],
)  # fmt: skip
def test_numbers_that_point_nowhere(folder, name, values):
    array = np.fromfile(folder / name, FILES[name])
    for place, value in values.items():
        array[place] = value
    array.tofile(folder / name)
    seal(folder)
    with pytest.raises(FormatError, match=f"{name} is damaged"):
        Index.open(folder)


@pytest.mark.parametrize("raw", [b"\xff", b"\n"])
def test_words(folder, raw, tiny):
    path = folder / "words.txt"
    path.write_bytes(raw + path.read_bytes()[1:])
    seal(folder)
    with pytest.raises(FormatError, match=r"words.txt is not a list of \d+ words"):
        neighbours(Index.open(folder), tiny, "a cat", "cat")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite(folder, tiny, value):
    array = np.fromfile(folder / "vectors", "<f2")
    array[::7] = value
    array.tofile(folder / "vectors")
    seal(folder)
    with pytest.raises(FormatError, match="vectors that are not finite"):
        neighbours(Index.open(folder), tiny, "a cat", "cat", brute=True)
    with pytest.raises(FormatError, match="vectors that are not finite"):
        nearest(np.full((2, 3), value, np.float16), np.ones(3, np.float32), 1)


def test_large_files_are_verified_on_request(folder, monkeypatch):
    monkeypatch.setattr("elmokit.analysis.index.token_index._VERIFIED_BYTES", 1000)
    raw = bytearray((folder / "vectors").read_bytes())
    raw[0] ^= 1
    (folder / "vectors").write_bytes(raw)
    Index.open(folder)
    with pytest.raises(FormatError, match="vectors is damaged"):
        Index.open(folder, verify=True)


def test_an_index_without_checksums_opens(folder, made, tiny):
    values = json.loads((folder / "config.json").read_text())
    del values["checksums"]
    (folder / "config.json").write_text(json.dumps(values))
    index = Index.open(folder)
    assert index.config == replace(IndexConfig.read(made / "idx"), checksums={})
    assert neighbours(index, tiny, "a cat", "cat").occurrences


def test_as_many_neighbours_as_there_are(folder, tiny):
    index = Index.open(folder)
    for brute in (False, True):
        found = neighbours(index, tiny, "a cat", "cat", 10**20, brute=brute)
        assert len(found.words) < index.config.words
        assert len(found.occurrences) <= index.config.rows
