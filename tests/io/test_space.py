"""Estimates of size: from the start of a text, and against the space on the disk."""

import lzma
import os
import random
from types import SimpleNamespace

import pytest

from elmokit.errors import OutputError
from elmokit.io import space
from elmokit.io.lines import STANDARD_INPUT, read_lines
from elmokit.io.space import check_space, sample_start, shown_bytes

RNG = random.Random(0)
LINES = [" ".join(f"{RNG.getrandbits(20):x}" for _ in range(7)) for _ in range(50_000)]


def sample(path):
    return sample_start([path], lambda advance: map(str.split, read_lines(path, advance)))


@pytest.mark.parametrize("name", ["text.txt", "text.txt.xz"])
def test_a_sample_tells_the_number_of_tokens(tmp_path, monkeypatch, name):
    monkeypatch.setattr(space, "_SAMPLE_TOKENS", 100_000)
    path = tmp_path / name
    with (lzma.open if name.endswith("xz") else open)(path, "wt") as file:
        file.write("\n".join(LINES))
    found = sample(path)
    assert len(found.sentences) < 20_000
    assert found.n_tokens == pytest.approx(7 * len(LINES), rel=0.25)


def test_a_short_text_is_counted(tmp_path):
    (tmp_path / "text.txt").write_text("a b c\n\nd e\n")
    found = sample(tmp_path / "text.txt")
    assert (found.n_tokens, found.share) == (5, 1)
    (tmp_path / "text.txt").write_text("")
    assert sample(tmp_path / "text.txt").n_tokens == 0


def test_what_can_be_read_only_once_is_not_read(tmp_path):
    assert sample(STANDARD_INPUT) is None
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert sample(tmp_path / "pipe") is None


def test_too_little_space(tmp_path, monkeypatch):
    check_space(tmp_path / "out", 1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=2_000_000_000))
    check_space(tmp_path / "out", 2_100_000_000)  # an estimate is not exact
    message = "out needs about 30 GB of disk space, but only 2.0 GB is free; free some space, or"
    with pytest.raises(OutputError, match=message):
        check_space(tmp_path / "out", 30_000_000_000)


def test_sizes_to_read():
    sizes = [999, 15_300, 1_530_000, 157_000_000, 1_200_000_000, 3 * 10**12, 10**15]
    shown = ["1 kB", "15 kB", "1.5 MB", "157 MB", "1.2 GB", "3.0 TB", "1,000 TB"]
    assert list(map(shown_bytes, sizes)) == shown


def test_commands_check_before_they_work(cli, tiny_folder, tmp_path, monkeypatch):
    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text("some words\n" * 1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100_000))
    for command in (["embed", text, out], ["index", text, "--out", out]):
        done = cli(*command, "-m", tiny_folder)
        assert done.returncode == 2
        assert "of disk space, but only 100 kB is free" in done.stderr
        assert [p.name for p in tmp_path.iterdir()] == ["text.txt"]
