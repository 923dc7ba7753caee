"""The tutorial is true: its code runs, in both languages the same."""

import re
import shlex

import pytest

from helpers.docs import ROOT, blocks
from helpers.pictures import n_colours
from helpers.tagged import write_tagged

TUTORIALS = ["docs/tutorial.md", "docs/tutorial.zh-CN.md"]
TEXT = [
    "The actors rehearsed a new play for the theatre .",
    "He made a great play in the second quarter .",
    "The children play in the garden near the bank of the river .",
    "She opened an account at the bank .",
    "The plane landed on the river .",
    "They play football on the bank .",
]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """The files the tutorial speaks of."""
    for name, lines in (("my-text", TEXT), ("old", TEXT[:4] * 3), ("new", TEXT[2:] * 4)):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    examples = [f"{'theatre' if 'new' in line else 'game'}\t{line}\n" for line in TEXT[:3]]
    (tmp_path / "my-examples.tsv").write_text("".join(examples), encoding="utf-8")
    for number, name in enumerate(("train", "dev")):
        write_tagged(tmp_path / f"{name}.conllu", 20, number)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_code_runs(capsys):
    (code,) = blocks(TUTORIALS[0], "python")
    exec(compile(code, TUTORIALS[0], "exec"), {})
    assert float(capsys.readouterr().out) == 0


def test_commands_run(workplace, cli):
    lines = [line for block in blocks(TUTORIALS[0], "bash") for line in block.splitlines()]
    assert len(lines) >= 11
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "elmokit"
        if arguments == ["demo"]:  # which has a test of its own
            continue
        done = cli(*arguments)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stderr == ""
    for name in ("banks", "play", "play-theatre", "pos", "geometry", "change"):
        assert n_colours(workplace / f"{name}.png") > 20, name
    assert (workplace / "surprise.html").is_file()


def test_both_languages_have_the_same_code():
    def bare(name):
        found = [code for language in ("python", "bash", "text") for code in blocks(name, language)]
        return re.sub(r"\s*#.*", "", "\n".join(found)).strip()

    assert bare(TUTORIALS[0]) == bare(TUTORIALS[1])
    headings = [
        len(re.findall(r"^## \d", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in TUTORIALS
    ]
    assert headings == [8, 8]
