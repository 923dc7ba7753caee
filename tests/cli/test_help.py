"""Help, version and completion: what they show, and that they load nothing heavy."""

import os
import re

import pytest

from elmokit import __version__
from helpers.commands import COMMANDS
from helpers.processes import run_python

# Help is fast because of what it does not import.
CODE = """
import sys
sys.argv[0] = "elmokit"
from elmokit.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
heavy = {"torch", "numpy", "h5py", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
"""


def light(*arguments, **environment):
    """Run the command line, and fail if it imports anything heavy."""
    variables = os.environ | {"COLUMNS": "100"} | environment
    done = run_python("-c", CODE, *arguments, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS, "probe", "wsd"])
def test_help_imports_nothing_heavy(command):
    shown = light(*command.split(), "--help")
    assert f"Usage: elmokit {command}".strip() in shown


def test_version_is_one_line():
    assert light("--version") == f"elmokit {__version__}\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_metavars_are_readable(cli, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    shown = cli(*command.split(), "--help").stdout
    assert not re.findall(r"<[a-z]\S*(?: range)?>|BOOL|\d{9}|[{}]", shown)


def test_choices_and_defaults_are_shown(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    shown = cli("embed", "--help").stdout
    for text in (
        "embed [OPTIONS] INPUT... OUTPUT",
        "[float32|float16]",
        "[zero|warm|carry]",
        "[int8|bfloat16]",
        "How to split text: whitespace, english, english-hyphens",
        "[default: (float32; float16 with --engine)]",
        "[local|ray]",
        "[default: (en)]",
        "[default: (GPU if available)]",
    ):
        assert text in shown
    shown = cli("convert", "--help").stdout
    assert "[native|bilm-tf|onnx]" in shown
    assert "[float32|float16|int8|int4]" in shown
    shown = cli("neighbours", "--help").stdout
    assert "[default: (the model of the index)]" in shown


def test_usage_shows_repeated_and_optional_arguments(cli):
    assert "Usage: elmokit index [OPTIONS] [TEXT]..." in cli("index", "--help").stdout
    assert "Usage: elmokit scatter [OPTIONS] [FILE]" in cli("scatter", "--help").stdout
    assert "Usage: elmokit wsd COMMAND" in cli("wsd", "--help").stdout.replace("[OPTIONS] ", "")


def test_commands_are_grouped(cli):
    shown = cli("--help").stdout
    panels = re.findall(r"─ ([A-Z][a-z ]+?) ─", shown)
    assert panels == ["Options", "Start here", "Embed", "Understand", "Tasks", "Pretrain", "Models"]
    for name in COMMANDS:
        assert f"│ {name.split()[0]} " in shown


def test_bash_completes_commands_options_and_values():
    def completions(*words):
        line = " ".join(("elmokit", *words))
        shown = light(
            _ELMOKIT_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words))
        )
        return sorted(shown.split())

    assert completions("emb") == ["embed"]
    assert completions("perp") == ["perplexity", "perplexity-by"]
    assert completions("embed", "--tokeniz") == ["--tokenized", "--tokenizer"]
    assert completions("embed", "--dtype", "") == ["float16", "float32"]
    assert completions("info", "--m") == ["--model"]


def test_completion_script():
    shown = light("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_ELMOKIT_COMPLETE=complete_bash" in shown
    assert "complete -o default -F _elmokit_completion elmokit" in shown


def test_completion_is_installed(tmp_path):
    home = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert "completion installed" in light("--install-completion", "bash", **home)
    assert "elmokit" in (tmp_path / ".bashrc").read_text()
