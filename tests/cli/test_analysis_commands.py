"""What all commands that analyse have in common: their options, --out, and what it says."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer.main

from elmokit import Elmo, __version__
from elmokit.cli.common import (
    check_file,
    check_out,
    check_out_folder,
    kind_of_layers,
    layer_names,
    print_table,
)
from elmokit.cli.main import app
from elmokit.errors import MissingExtraError, OutputError

TEXT = "the cat sat on a mat .\na cat sat on the mat .\n" * 5


def commands(group, name=""):
    for command in group.commands.values():
        full = f"{name} {command.name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, {parameter.name: parameter for parameter in command.params}


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.fixture
def arguments(tmp_path, lm_folder):
    """A small question for each command that writes a report."""
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    rows = "".join(f"{i}\t{w}\t_\t{t}\n" for i, w, t in [(1, "a", "DET"), (2, "cat", "NOUN")])
    tagged = tmp_path / "tagged.conllu"
    tagged.write_text((rows + "\n") * 4, encoding="utf-8")
    return {
        "similarity": ["the cat", "a cat"],
        "scatter": ["--word", "bank"],
        "surprisal": ["the cat sat"],
        "perplexity-by": [text, "--max-tokens", 20],
        "geometry": [text, "--max-tokens", 20],
        "change": [text, text, "--words", "cat"],
        "probe pos": [tagged, tagged],
    }


REPORTS = ["similarity", "scatter", "surprisal", "perplexity-by", "geometry", "change", "probe pos"]


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
    told = json.dumps(values, ensure_ascii=False)
    for argument in map(str, arguments[command]):
        assert argument in told or argument.startswith("--")
    assert {".json", ".csv", ".png", ".svg"} <= {p.suffix for p in tmp_path.glob("x.*")}


@pytest.mark.parametrize("command", REPORTS)
def test_out_is_checked_before_the_work(cli, arguments, tmp_path, command):
    for out, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "does not exist")):
        done = cli(*command.split(), *arguments[command], "--out", out, "-m", "no such model")
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_every_out_of_a_report_is_checked():
    """But for that of index, which writes something else and looks for itself."""
    checked = {name for name, options in COMMANDS.items() if "out" in options}
    assert checked == {
        *REPORTS, "demo", "neighbours", "wsd test", "wsd tag", "wsd train", "index", "pretrain",
    }  # fmt: skip
    for name in checked - {"index", "pretrain"}:
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


def test_nothing_is_left_where_one_place_is_wrong(cli, lm_folder, tmp_path):
    html = tmp_path / "p.html"
    done = cli("surprisal", "cat", "-m", lm_folder, "--html", html, "--out", tmp_path / "no" / "y")
    assert done.returncode == 2
    assert not html.exists()
    assert "it is a folder" in cli("surprisal", "cat", "-m", lm_folder, "--html", tmp_path).stderr


def test_demo_says_at_once_that_its_folder_is_a_file(cli, tmp_path):
    (tmp_path / "file").write_text("")
    done = cli("demo", "--out", tmp_path / "file", "-m", "no such model")
    assert done.returncode == 2
    assert "is a file; give another folder" in done.stderr
    assert done.stdout == ""


TOKENIZED = sorted(
    name for name, options in COMMANDS.items() if {"tokenized", "options_file"} <= set(options)
)


@pytest.mark.parametrize("command", TOKENIZED)
def test_tokenized_text_has_no_other_tokenizer(cli, arguments, lm_folder, tmp_path, command):
    text = tmp_path / "text.txt"
    given = {"embed": [text, tmp_path / "x.h5"], "index": [text, "--out", tmp_path / "i"]}
    given = given.get(command) or arguments[command]
    done = cli(command, *given, "--tokenized", "--tokenizer", "english", "-m", lm_folder)
    assert done.returncode == 2
    assert done.stderr == "elmokit: --tokenized means white space; leave out --tokenizer\n"


def test_tokenized_text_to_evaluate(cli, arguments, lm_folder, tmp_path):
    text = ["evaluate", lm_folder, tmp_path / "text.txt", "--tokenized", "--tokenizer"]
    assert "tokenised text is not split by a tokenizer; leave out" in cli(*text, "english").stderr


def test_which_commands_take_tokenized_text():
    assert TOKENIZED == ["change", "embed", "geometry", "index", "perplexity-by"]


@pytest.mark.parametrize("command", [*REPORTS, "demo", "neighbours", "index", "embed"])
def test_every_command_opens_published_files(command):
    assert {"model", "options_file", "weight_file", "device"} <= set(COMMANDS[command])


def test_published_files(cli, arguments, tiny_folder):
    files = ["--options-file", tiny_folder / "options.json"]
    files += ["--weight-file", tiny_folder / "weights.hdf5"]
    for command in ("similarity", "demo"):
        assert cli(command, *arguments.get(command, []), *files).returncode == 0
    done = cli("surprisal", "the cat", *files)
    assert "has no softmax" in done.stderr


def test_layers_are_called_what_they_are(tiny):
    assert layer_names(tiny)[1:] == ["LSTM layer 1", "LSTM layer 2"]
    config = SimpleNamespace(context=SimpleNamespace(kind="transformer"))
    other = SimpleNamespace(config=config, n_layers=2)
    assert kind_of_layers(other) == "transformer"
    assert layer_names(other) == ["token layer", "transformer layer 1"]


def test_names_stay_whole_among_many_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(["F1", *["LSTM layer 1"] * 9], [["semeval2007", *["67.2"] * 9]])
    shown = capsys.readouterr().out
    assert ["semeval2007", *["67.2"] * 9] in [line.split() for line in shown.splitlines()]


def test_tables_cut_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    words = ["a-very-long-name-of-a-test-set", "another-long-word-in-a-column"]
    print_table(["name", "value"], [words])
    shown = capsys.readouterr().out
    assert "…" not in shown
    for word in words:
        assert all(character in shown for character in word)
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    cells = [line for line in lines if len(line) == 2][1:]
    assert "".join(cell[0] for cell in cells).startswith("a-very-long-name")
