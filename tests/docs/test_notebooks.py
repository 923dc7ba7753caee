"""The notebooks in examples/ run in a real kernel, show rich outputs, and are stored cleanly."""

import importlib.util
import json
import os

import pytest

from helpers.docs import ROOT

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytest.importorskip("usearch")

EXAMPLES = ROOT / "examples"
RICH = {
    "quickstart": ["Elmo", "<img", "<img", "probability", "<img"],
    "senses": ["<img", "Index", "<img", "<img", "Sense vectors"],
    "task": ["NerTagger", "precision", "<mark", "<mark"],
}
"""What the HTML outputs of a notebook contain, in order."""
NAMES = [f"{name}{language}.ipynb" for name in RICH for language in ("", ".zh")]


@pytest.fixture(scope="module")
def make_notebooks():
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "docs/make_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def one_thread(monkeypatch, tmp_path):
    """A kernel beside other tests; its files stay out of the user's folders."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


def html_outputs(notebook):
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def check_rich(notebook, name):
    found = html_outputs(notebook)
    expected = RICH[name.split(".")[0]]
    assert len(found) == len(expected)
    for html, part in zip(found, expected, strict=True):
        assert part in html
        assert "<script" not in html


def test_these_are_all_notebooks():
    assert sorted(NAMES) == sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name, make_notebooks):
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    make_notebooks.run(notebook, EXAMPLES)  # raises if a cell fails
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [o.text for o in outputs if o.get("name") == "stderr"]  # warnings
    check_rich(notebook, name)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_stored_cleanly(name, make_notebooks):
    path = EXAMPLES / name
    assert path.stat().st_size < 300_000
    text = path.read_text(encoding="utf-8")
    for private in (str(ROOT), str(os.path.expanduser("~")), "/tmp/"):
        assert private not in text
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert 8 <= len(notebook.cells) <= 15
    check_rich(notebook, name)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    before = json.dumps(notebook, sort_keys=True)
    make_notebooks.clean(notebook)
    assert json.dumps(notebook, sort_keys=True) == before, "run docs/make_notebooks.py"


def test_progress_is_one_output_that_ends_empty(make_notebooks):
    code = """
import time
from elmokit.io import progress
progress.SHOW_AFTER_SECONDS = progress.NOTEBOOK_EVERY_SECONDS = 0.05
shown = []
with progress.DelayedProgress("working", 100, "pieces") as bar:
    while len(shown) < 3:
        bar.advance(1)
        time.sleep(0.02)
        if bar._cell is not None:
            shown.append(bar._line())
"""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code), nbformat.v4.new_code_cell("shown[0]")]
    )
    make_notebooks.run(notebook, EXAMPLES)
    (line,), (said,) = (cell.outputs for cell in notebook.cells)
    assert line.data == {"text/plain": ""}
    assert "working: " in said.data["text/plain"]
    make_notebooks.clean(notebook)
    assert notebook.cells[0].outputs == []
