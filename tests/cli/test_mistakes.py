"""Every mistake in a command line is one sentence, also those that typer finds."""

import os

import pytest

from helpers.commands import COMMANDS
from helpers.processes import run_python

LARGEST = "4,611,686,018,427,387,903"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("infoo", "elmokit has no command 'infoo'; did you mean info?"),
        ("wsd x", "elmokit wsd has no command 'x'; see elmokit wsd -h"),
        ("--quiet", "a command is missing; see elmokit -h"),
        ("info --modl x", "elmokit info has no option --modl; did you mean --model?"),
        ("info -x", "elmokit info has no option -x; see elmokit info -h"),
        ("info --model", "--model needs a value; see elmokit info -h"),
        ("info --json=3", "--json takes no value; see elmokit info -h"),
        ("info a", "elmokit info takes no argument 'a'; give a model as --model NAME"),
        ("surprisal a b", "elmokit surprisal takes no argument 'b'; quote a text with spaces, or "
         "see elmokit surprisal -h"),
        (
            "embed",
            "the argument INPUT is missing; expected elmokit embed [OPTIONS] INPUT... OUTPUT",
        ),
        (
            "neighbours a b",
            "elmokit neighbours needs the option --word; see elmokit neighbours -h",
        ),
        ("--threads 0 info", "--threads must be a whole number from 1 to 1,024, not '0'"),
        ("--threads x info", "--threads must be a whole number from 1 to 1,024, not 'x'"),
        (
            f"--threads {'9' * 5000} info",
            f"--threads must be a whole number from 1 to 1,024, not '{'9' * 98}…",
        ),
        (
            f"neighbours a b --word x -k {'9' * 20}",
            f"-k must be a whole number from 1 to 10,000, not '{'9' * 20}'",
        ),
        ("neighbours a b --word x -k=-1", "-k must be a whole number from 1 to 10,000, not '=-1'"),
        (
            "neighbours a b --word x --which 0",
            "--which must be a whole number of at least 1, not '0'",
        ),
        (
            f"neighbours a b --word x --which {'9' * 20}",
            f"--which must be at most {LARGEST}, not {'9' * 20}",
        ),
        ("pretrain a --valid b --out c --epochs x", "--epochs must be a number, not 'x'"),
        ("convert ~nobody-here/x y", "there is no home folder for ~nobody-here/x; give a path "
         "without ~"),
        ("surprisal x --html ~nobody-here/x", "there is no home folder for ~nobody-here/x; give a "
         "path without ~"),
        ("surprisal \udcff", r"the argument SENTENCE is not UTF-8 text: '\udcff'; check the "
         "encoding of the terminal"),
        ("wsd test x . --wordnet y", "cannot read .: it is not a file"),
    ],
)  # fmt: skip
def test_mistakes(cli, typed, message):
    done = cli(*typed.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"elmokit: {message}\n"


INTEGERS = [
    (name, option)
    for name, options in COMMANDS.items()
    for option, parameter in options.items()
    if type(parameter.default) is int or option in ("batch_size", "layer", "max_tokens")
]


@pytest.mark.parametrize(("command", "option"), INTEGERS)
@pytest.mark.parametrize("value", ["9" * 20, "-" + "9" * 20, "9" * 5000])
def test_huge_numbers(cli, command, option, value, arguments):
    if command == "change" and option == "layer":
        pytest.skip("a text, such as top")
    given = arguments.get(command, ["a", "b", "--word", "c"])
    flag = max(COMMANDS[command][option].opts, key=len)
    done = cli(*command.split(), *given, *([flag, value] if flag == "-k" else [f"{flag}={value}"]))
    assert done.returncode == 2
    assert done.stderr.startswith(f"elmokit: {flag} must be ")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 250


def test_a_text_without_permission(cli, tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_text("a")
    monkeypatch.setattr("os.access", lambda *_: False)
    done = cli("geometry", path)
    assert done.stderr == f"elmokit: cannot read {path}: no permission\n"


def test_control_characters_are_escaped(cli):
    done = cli("similarity", "a\nb", "\x1b[31m", "--word", "\x07")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_completion_still_sees_unfinished_lines():
    line = "elmokit embed --no-such --dtype "
    variables = {"_ELMOKIT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "4"}
    done = run_python("-m", "elmokit", env=os.environ | variables)
    assert (done.returncode, done.stderr) == (0, "")
