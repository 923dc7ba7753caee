"""Texts and places for results are checked before the work starts."""

import json
import resource
from pathlib import Path

import pytest

from elmokit import Elmo, __version__
from elmokit.cli.places import check_file, check_out, check_out_folder
from elmokit.errors import MissingExtraError, OutputError
from helpers.commands import COMMANDS, REPORTS
from helpers.processes import run_process

READERS = ["embed", "index", "geometry", "change", "perplexity", "perplexity-by"]


@pytest.mark.parametrize("command", READERS)
def test_a_missing_text_is_one_sentence(cli, arguments, tmp_path, command):
    given = [tmp_path / "no.txt", *arguments[command][1:]]
    done = cli(command, *given, "-m", "no such model")
    assert done.returncode == 2
    assert done.stderr.startswith(f"elmokit: there is no file {tmp_path / 'no.txt'}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", REPORTS)
def test_out_says_what_the_numbers_were_made_with(cli, arguments, lm_folder, tmp_path, command):
    out = ["--out", tmp_path / "x.png", "-m", lm_folder]
    done = cli(*command.split(), *arguments[command], *out)
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    model = Elmo.load(lm_folder, device="cpu")
    assert values["elmokit"] == __version__
    assert values["model"] == str(lm_folder)
    assert values["weights"] == model.checkpoint().checksum()
    assert values["tokenizer"] == model.tokenizer.name
    written = json.dumps(values, ensure_ascii=False)
    for argument in map(str, arguments[command]):
        assert argument in written or argument.startswith("--")
    assert {".json", ".csv", ".png", ".svg"} <= {p.suffix for p in tmp_path.glob("x.*")}


@pytest.mark.parametrize("command", REPORTS)
def test_out_is_checked_before_the_work(cli, arguments, tmp_path, command):
    for out, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "does not exist")):
        done = cli(*command.split(), *arguments[command], "--out", out, "-m", "no such model")
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_every_out_of_a_report_is_checked():
    """All but those of index, pretrain and train, which check their folders themselves."""
    checked = {name for name, options in COMMANDS.items() if "out" in options}
    assert checked == {
        *REPORTS, "demo", "neighbours", "wsd test", "wsd tag", "wsd train", "index", "pretrain",
        "train", "predict",
    }  # fmt: skip
    for name in checked - {"index", "pretrain", "train"}:
        assert COMMANDS[name]["out"].callback is not None, name


def test_checks(tmp_path, monkeypatch):
    assert check_out(None) is check_file(None) is check_out_folder(None) is None
    assert check_out(tmp_path / "x.svg") == tmp_path / "x"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_file(Path("~/x.html")) == tmp_path / "x.html"
    file = tmp_path / "file"
    file.write_text("")
    assert check_file(file) == file
    assert check_out_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    for path in (file, file / "a"):
        with pytest.raises(OutputError, match="is a file; give another folder"):
            check_out_folder(path)
    with pytest.raises(OutputError, match="it is a folder"):
        check_file(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    for check in (check_out, check_file, check_out_folder):
        with pytest.raises(OutputError, match="no permission"):
            check(tmp_path / "x")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for check in (check_out, check_out_folder):
        with pytest.raises(MissingExtraError, match=r"elmokit\[plots\]"):
            check(tmp_path / "x")
    assert check_file(tmp_path / "x.html")


def test_nothing_is_written_if_one_place_is_wrong(cli, lm_folder, tmp_path):
    html = tmp_path / "p.html"
    done = cli("surprisal", "cat", "-m", lm_folder, "--html", html, "--out", tmp_path / "no" / "y")
    assert done.returncode == 2
    assert not html.exists()
    assert "it is a folder" in cli("surprisal", "cat", "-m", lm_folder, "--html", tmp_path).stderr


ODD_TEXTS = {
    "latin1.txt": ("caf\xe9\n".encode("latin-1"), "line 1 of {} is not UTF-8 text"),
    "empty.txt": (b"", "{}"),
    "cut.xz": (b"\xfd7zXZ\0\0\4", "cannot read {}: "),
    "no-files": (None, "the folder {} contains no files"),
}


@pytest.mark.parametrize("name", ODD_TEXTS)
@pytest.mark.parametrize("command", [*READERS, "scatter", "probe pos"])
def test_an_odd_text_is_one_sentence(cli, arguments, lm_folder, tmp_path, command, name):
    content, message = ODD_TEXTS[name]
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    given = ["--word", "cat"] if command == "scatter" else arguments[command][1:]
    done = cli(*command.split(), path, *given, "-m", lm_folder)
    if (command, name) == ("embed", "empty.txt"):  # a file without lines has no vectors
        assert done.returncode == 0
        return
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    if not (command == "scatter" and content is None):
        assert message.format(path) in done.stderr


@pytest.mark.parametrize("command", ["geometry", "embed", "index", "convert"])
def test_full_disk(arguments, lm_folder, tmp_path, command):
    """Existing files stay as they are, and nothing else is left behind."""
    (tmp_path / "x.json").write_text("old")
    before = sorted(tmp_path.iterdir())
    given = arguments.get(command, [lm_folder, tmp_path / "new"])
    out = ["--out", tmp_path / "x"] if command == "geometry" else []
    model = [] if command == "convert" else ["-m", lm_folder]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))

    done = run_process(command, *given, *out, *model, preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr.startswith("elmokit: no space left on the disk to write ")
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "x.json").read_text() == "old"
