"""A resumable job: what is kept, what is skipped, and what is refused."""

import os
from itertools import islice

import numpy as np
import pytest

from elmokit.errors import InputError, OutputError
from elmokit.io import job as module
from elmokit.io.job import Job, Layout, has_partial, open_job

LAYOUT = Layout((2,), 3, "float32")
SETTINGS = {"model": "x", "layers": [0, 1]}
TEXTS = ["one", "two tokens", "", "naïve 🙂", "five", "six"]


def array_of(text):
    shape = LAYOUT.shape(len(text.split()))
    return np.full(shape, len(text), np.float32)


def encode(texts, done):
    """One at a time."""
    return map(array_of, islice(texts, len(done), None))


def in_windows(size):
    """Reads several texts ahead, as a model does."""

    def encode(texts, done):
        texts = islice(texts, len(done), None)
        while window := [text for _, text in zip(range(size), texts, strict=False)]:
            yield from map(array_of, window)

    return encode


def stopping(texts, after):
    yield from texts[:after]
    raise KeyboardInterrupt


def opened(output, resume=False, restart=False, settings=SETTINGS, **more):
    return open_job(output, LAYOUT, settings, resume=resume, restart=restart, **more)


def stopped(output, after=4):
    with pytest.raises(KeyboardInterrupt), opened(output) as job:
        job.run(stopping(TEXTS, after), "line", encode)


def check(job):
    assert len(job) == len(TEXTS)
    assert job.n_tokens == sum(len(text.split()) for text in TEXTS)
    assert list(job.texts()) == TEXTS
    for (text, array), expected in zip(job, TEXTS, strict=True):
        assert text == expected
        np.testing.assert_array_equal(array, array_of(text))


@pytest.mark.parametrize("size", [1, 2, 4, 100])
def test_a_file(tmp_path, size):
    output = tmp_path / "out"
    output.write_text("old")
    with opened(output) as job:
        counted = []
        job.run(TEXTS, "line", in_windows(size), counted.append)
        assert sum(counted) == len(TEXTS)
        check(job)
        assert has_partial(output)
        assert output.read_text() == "old"
        with job.output_file() as new:
            new.write_text("new")
    assert output.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder(tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "old").touch()
    with opened(output) as job:
        job.run(TEXTS, "line", encode)
        (job.folder / "more").touch()
        job.output_folder(["vectors", "more"])
    assert sorted(p.name for p in output.iterdir()) == ["more", "vectors"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_GROUP_BYTES", 2 * LAYOUT.token_bytes)
    counted = []
    with opened(tmp_path / "out") as job:
        job.run(["a"] * 5, "line", in_windows(100), counted.append)
    assert counted == [2, 2, 1]


def test_resume_skips_what_is_done(tmp_path):
    output = tmp_path / "out"
    stopped(output)
    with pytest.raises(OutputError, match="pass resume=True to continue it, or pass restart=True"):
        opened(output).__enter__()
    asked = []
    with opened(output, resume=True) as job:
        assert len(job) == 4
        job.run(TEXTS, "line", lambda texts, done: asked.append(done) or encode(texts, done))
        assert asked == [[1, 2, 0, 2]]
        check(job)


def test_resume_and_restart_without_an_earlier_run(tmp_path):
    for choice in ({"resume": True}, {"restart": True}):
        with opened(tmp_path / "out", **choice) as job:
            assert len(job) == 0
    with pytest.raises(InputError, match="pass resume=True or restart=True, not both"):
        opened(tmp_path / "out", resume=True, restart=True).__enter__()


def test_restart_discards_what_is_done(tmp_path):
    stopped(tmp_path / "out")
    with opened(tmp_path / "out", restart=True) as job:
        assert len(job) == 0


def test_resume_wants_the_same_texts_and_settings(tmp_path):
    output = tmp_path / "out"
    stopped(output)
    for texts, message in [
        (["one", "2", *TEXTS[2:]], "line 2 has changed since the earlier run; .*restart=True"),
        (TEXTS[:3], "the input has 3 lines, but the earlier run finished 4; .*restart=True"),
    ]:
        with (
            pytest.raises(InputError, match=message),
            opened(output, resume=True) as job,
        ):
            job.run(texts, "line", encode)
    other = SETTINGS | {"layers": [0]}
    with pytest.raises(InputError, match=r"had layers \[0, 1\], this one has \[0\]"):
        opened(output, resume=True, settings=other).__enter__()
    assert has_partial(output)


@pytest.mark.parametrize("cut", [0, 1, 15, 16, 17, 40])
def test_an_unfinished_write_is_cut_off(tmp_path, cut):
    stopped(tmp_path / "out")
    folder = tmp_path / "out.partial"
    index = (folder / "index").read_bytes()
    (folder / "index").write_bytes(index[: len(index) - cut])
    for name in ("vectors", "texts"):
        with open(folder / name, "ab") as file:
            file.write(b"garbage")
    (folder / "output").write_text("half")
    with opened(tmp_path / "out", resume=True) as job:
        assert not (folder / "output").exists()
        job.run(TEXTS, "line", encode)
        check(job)


@pytest.mark.parametrize("name", ["vectors", "texts", "index"])
def test_flipped_bits_are_noticed_on_resume(tmp_path, name):
    """Whatever bit: the texts before it are kept, the others are computed again."""
    stopped(tmp_path / "out")
    path = tmp_path / "out.partial" / name
    good = path.read_bytes()
    kept = set()
    for place in range(0, len(good), 3):
        flip(path.parent, path.name, place)
        said = []
        with opened(tmp_path / "out", resume=True, say=said.append) as job:
            kept.add(len(job))
            assert f"{4 - len(job)} finished texts of the earlier run are damaged" in said[0]
            job.run(TEXTS, "line", encode)
            check(job)
        stop_anew(tmp_path / "out")
    assert {0, 1} < kept <= {0, 1, 2, 3}


def stop_anew(output):
    with pytest.raises(KeyboardInterrupt), opened(output, restart=True) as job:
        job.run(stopping(TEXTS, 4), "line", encode)


def flip(folder, name, place):
    flipped = bytearray((folder / name).read_bytes())
    flipped[place] ^= 1 << (place % 8)
    (folder / name).write_bytes(flipped)


@pytest.mark.parametrize("name", ["vectors", "texts", "index"])
@pytest.mark.parametrize("left", [0, 3])
def test_truncated_and_missing_files(tmp_path, name, left):
    stopped(tmp_path / "out")
    path = tmp_path / "out.partial" / name
    path.write_bytes(path.read_bytes()[:left])
    with opened(tmp_path / "out", resume=True) as job:
        assert len(job) <= 1
        job.run(TEXTS, "line", encode)
        check(job)
    if name != "vectors":
        path.unlink()
        with opened(tmp_path / "out", resume=True) as job:
            assert len(job) == 0


@pytest.mark.parametrize("name", ["vectors", "texts"])
def test_flipped_bits_never_reach_the_output(tmp_path, name):
    for finish in (list, lambda job: job.output_folder(["vectors"])):
        with (
            pytest.raises(OutputError, match=f"{name} was damaged on disk at text 1; pass resume"),
            opened(tmp_path / "out", restart=True) as job,
        ):
            job.run(TEXTS, "line", encode)
            flip(job.folder, name, 0)
            finish(job)
        assert not (tmp_path / "out").exists()
        with opened(tmp_path / "out", resume=True) as job:
            assert len(job) == 0


@pytest.mark.parametrize("name", ["vectors", "texts", "index"])
def test_a_file_truncated_before_the_end(tmp_path, name):
    with opened(tmp_path / "out") as job:
        job.run(TEXTS, "line", encode)
        os.truncate(job.folder / name, 16)
        with pytest.raises(OutputError, match=f"{name} was damaged on disk at text"):
            list(job)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "is damaged, .*restart=True"),
        (b"7", "is damaged"),
        (b"{", "is damaged"),
        (b'{"version": 2, "settings": [1]}', "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b'{"model": "x", "layers": [0, 1]}', "used another version of ElmoKit; .*restart=True"),
        (b'{"version": 2}', "had model None, this one has x"),
    ],
)
def test_damaged_settings(tmp_path, content, message):
    stopped(tmp_path / "out")
    (tmp_path / "out.partial/settings.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        opened(tmp_path / "out", resume=True).__enter__()
    assert has_partial(tmp_path / "out")


def test_only_one_process_at_a_time(tmp_path):
    """The second is refused before it reads or deletes anything."""
    output = tmp_path / "out"
    with opened(output) as job:
        job.run(TEXTS[:3], "line", encode)
        for choice in ({}, {"resume": True}, {"restart": True}):
            with pytest.raises(OutputError, match=r"another process is writing .*out; wait"):
                opened(output, **choice).__enter__()
        job.run(TEXTS, "line", encode)
        check(job)
        job.output_folder(["vectors"])
    assert [p.name for p in output.iterdir()] == ["vectors"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("call", range(5))
def test_a_folder_killed_at_the_end(tmp_path, monkeypatch, call):
    """Between any two renames: the old output or the new one is there, and a resume finishes."""
    output = tmp_path / "out"
    output.mkdir()
    (output / "old").touch()
    replace, calls = os.replace, []

    def killed(*paths):
        if len(calls) == call:
            raise SystemExit
        calls.append(paths)
        replace(*paths)

    with monkeypatch.context() as patch, pytest.raises(SystemExit), opened(output) as job:
        job.run(TEXTS, "line", encode)
        (job.folder / "more").touch()
        patch.setattr("os.replace", killed)
        patch.setattr(module, "replace_folder", renamed_only)
        patch.setattr(Job, "remove", lambda job: killed())
        job.output_folder(["vectors", "more"])
    assert has_partial(output) == (call < 4)
    with opened(output, resume=True) as job:
        if call < 4:
            check(job)
            assert [p.name for p in output.iterdir()] == ["old"]
            job.output_folder(["vectors", "more"])
        assert sorted(p.name for p in output.iterdir()) == ["more", "vectors"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def renamed_only(new, path, old):
    """As replace_folder, but a kill in between leaves everything where it is."""
    os.replace(path, old)
    os.replace(new, path)


@pytest.mark.parametrize("stop", ["in append", "after append", "while encoding"])
def test_an_interruption_keeps_every_array(tmp_path, monkeypatch, stop):
    def interrupted(texts, done):
        yield from in_windows(4)(islice(texts, 4), done)
        if stop == "while encoding":
            raise KeyboardInterrupt

    def sync(job, *names, sync=Job._sync):
        sync(job, *names)
        if names == ("index",) and stop == "in append" and not stops:
            stops.append(0)
            raise KeyboardInterrupt

    def advance(n):
        if stop == "after append":
            raise KeyboardInterrupt

    stops = []
    monkeypatch.setattr(module, "_GROUP_BYTES", LAYOUT.token_bytes * 5)
    with pytest.raises(KeyboardInterrupt), opened(tmp_path / "out") as job:
        monkeypatch.setattr(Job, "_sync", sync)
        job.run(TEXTS, "line", interrupted, advance)
    with opened(tmp_path / "out", resume=True) as job:
        assert len(job) == 4
        job.run(TEXTS, "line", encode)
        check(job)


def test_an_empty_job_is_not_in_the_way(tmp_path):
    stopped(tmp_path / "out", after=0)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(OutputError, match="the folder .*no does not exist"):
        opened(tmp_path / "no" / "out").__enter__()


def test_a_disk_that_fills_up(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    stopped(tmp_path / "out")
    with (
        pytest.raises(OutputError, match="no space left .*out; .*continue with resume=True"),
        opened(tmp_path / "out", resume=True) as job,
    ):
        monkeypatch.setattr("os.fsync", full)
        job.run(TEXTS, "line", encode)
    monkeypatch.undo()
    with opened(tmp_path / "out", resume=True) as job:
        assert len(job) == 4


def test_a_disk_that_is_full_from_the_start(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_text", full)
    with pytest.raises(OutputError, match="no space left"):
        opened(tmp_path / "out").__enter__()
    assert not has_partial(tmp_path / "out")
