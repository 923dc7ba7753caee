"""A resumable job: what is kept, what is skipped, and what is refused."""

import numpy as np
import pytest

from elmokit.errors import InputError, OutputError
from elmokit.io import job as module
from elmokit.io.job import Layout, has_partial, open_job

LAYOUT = Layout((2,), 3, "float32")
SETTINGS = {"model": "x", "layers": [0, 1]}
TEXTS = ["one", "two tokens", "", "naïve 🙂", "five", "six"]


def array_of(text):
    shape = LAYOUT.shape(len(text.split()))
    return np.full(shape, len(text), np.float32)


def encode(texts):
    """One at a time."""
    return map(array_of, texts)


def in_windows(size):
    """Reads several texts ahead, as a model does."""

    def encode(texts):
        while window := [text for _, text in zip(range(size), texts, strict=False)]:
            yield from map(array_of, window)

    return encode


def stopping(texts, after):
    yield from texts[:after]
    raise KeyboardInterrupt


def opened(output, resume=False, restart=False, settings=SETTINGS):
    return open_job(output, LAYOUT, settings, resume=resume, restart=restart)


def stopped(output, after=4):
    with pytest.raises(KeyboardInterrupt), opened(output) as job:
        job.run(job.remaining(stopping(TEXTS, after), "line"), encode)


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
        job.run(job.remaining(TEXTS, "line"), in_windows(size), counted.append)
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
        job.run(TEXTS, encode)
        (job.folder / "more").touch()
        job.output_folder(keep=["vectors", "more"])
    assert sorted(p.name for p in output.iterdir()) == ["more", "vectors"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_GROUP_BYTES", 2 * LAYOUT.token_bytes)
    counted = []
    with opened(tmp_path / "out") as job:
        job.run(["a"] * 5, in_windows(100), counted.append)
    assert counted == [2, 2, 1]


def test_resume_skips_what_is_done(tmp_path):
    output = tmp_path / "out"
    stopped(output)
    with pytest.raises(OutputError, match="pass resume=True to continue it, or pass restart=True"):
        opened(output).__enter__()
    with opened(output, resume=True) as job:
        assert len(job) == 4
        computed = []
        texts = (computed.append(text) or text for text in job.remaining(TEXTS, "line"))
        job.run(texts, encode)
        assert computed == TEXTS[4:]
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
            job.run(job.remaining(texts, "line"), encode)
    other = SETTINGS | {"layers": [0]}
    with pytest.raises(InputError, match=r"had layers \[0, 1\], this one has \[0\]"):
        opened(output, resume=True, settings=other).__enter__()
    (tmp_path / "out.partial/settings.json").write_text("{")
    with pytest.raises(InputError, match="had model None"):
        opened(output, resume=True).__enter__()
    assert has_partial(output)


@pytest.mark.parametrize("name", ["vectors", "texts"])
def test_a_truncated_file(tmp_path, name):
    stopped(tmp_path / "out")
    path = tmp_path / "out.partial" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=f"{name} is truncated, .*restart=True"):
        opened(tmp_path / "out", resume=True).__enter__()
    assert has_partial(tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 13])
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
        job.run(job.remaining(TEXTS, "line"), encode)
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
        job.run(job.remaining(TEXTS, "line"), encode)
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
