"""The READMEs are true: their code runs, and their tree is the tree."""

import re
import shutil
import subprocess
import sys

import pytest

from helpers.docs import ROOT, blocks
from helpers.models import many_langs_folder

READMES = ["README.md", "README.zh-CN.md"]


@pytest.fixture
def workplace(tmp_path, tiny_folder, lm_folder, monkeypatch):
    """The files the READMEs speak of."""
    shutil.copytree(tiny_folder, tmp_path / "my-elmo")
    shutil.copytree(lm_folder, tmp_path / "my-elmo-with-softmax")
    many_langs_folder(tmp_path / "zhs.model")
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(tiny_folder / name, tmp_path)
    (tmp_path / "corpus.txt").write_text("The first line\n\nThe third line\n")
    (tmp_path / "my-text.txt").write_text("The cat sat. The dog ran to the cat.\n" * 300)
    (tmp_path / "my-valid.txt").write_text("The dog sat. The cat ran to the dog.\n" * 20)
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("readme", READMES)
def test_python_code_runs(readme, workplace, capsys):
    code = blocks(readme, "python")
    assert len(code) >= 8
    names = {}
    for block in code:
        exec(compile(block, readme, "exec"), names)  # in order: later blocks build on earlier ones
    assert names["vectors"].shape[0] == 2  # TF-Hub's, the last of that name
    assert names["raw"].shape[1] == names["e"].dim


@pytest.mark.parametrize("readme", READMES)
def test_commands_run(readme, workplace):
    lines = [
        line for block in blocks(readme, "bash") for line in block.splitlines() if line.strip()
    ]
    assert len(lines) >= 9
    for line in lines:
        line = line.replace("elmokit ", f"{sys.executable} -m elmokit ", 1)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=workplace)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stderr == ""
    assert (workplace / "vectors.hdf5").is_file()
    assert (workplace / "native-elmo/model.safetensors").is_file()
    assert (workplace / "my-published-elmo/softmax.hdf5").is_file()


def test_both_readmes_have_the_same_code():
    def bare(name, language):
        code = "\n".join(blocks(name, language))
        return re.sub(r"\s*#.*", "", code).strip()

    for language in ("python", "bash"):
        assert bare(READMES[0], language) == bare(READMES[1], language)
    counts = [
        re.findall(r"^(#+) ", re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"),
                                     flags=re.DOTALL), re.MULTILINE)
        for name in READMES
    ]  # fmt: skip
    assert counts[0] == counts[1]


@pytest.mark.parametrize("readme", READMES)
def test_the_tree_lists_every_file(readme):
    tree = next(block for block in blocks(readme, "text") if "src/elmokit/" in block)
    listed, folders = set(), []
    for line in tree.splitlines():
        name = line.strip().split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        if name.endswith(".py") and folders[0].startswith("src"):
            listed.add("".join(folders))
    here = {
        p.relative_to(ROOT).as_posix()
        for p in (ROOT / "src/elmokit").rglob("*.py")
        if p.name != "__init__.py" or p.parent.name == "elmokit"
    }
    assert listed == here
