"""The pages about Hugging Face and the example run, with a hub on this machine."""

import contextlib
import io
import runpy
import shutil
import sys

import pytest

from helpers.docs import ROOT, blocks
from helpers.fake_hub import TOKEN

for _name in ("transformers", "accelerate", "datasets"):
    pytest.importorskip(_name, reason=f"{_name} is not installed")


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
@pytest.mark.parametrize("page", ["docs/huggingface.md", "docs/huggingface.zh.md"])
def test_the_page_runs(page, hub, tiny_folder, tmp_path, monkeypatch):
    shutil.copytree(tiny_folder, tmp_path / "my-elmo")
    shutil.copytree(ROOT / "examples/data", tmp_path / "examples/data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    names = {"__name__": "page"}
    for block in blocks(page, "python"):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * (block.line - 1) + block.code, ROOT / page, "exec"), names)
        if block.output is not None:
            shown = [line for line in printed.getvalue().splitlines() if line[:1] != "{"]
            assert shown == block.output.splitlines(), f"{page}:{block.line}"
    assert "ann/my-elmo" in hub.repositories
    assert (tmp_path / "my-tagger/model.safetensors").is_file()


def test_vectors_for_a_data_set(tiny_folder, tiny, monkeypatch, capsys):
    script = ROOT / "examples/datasets_map.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tiny_folder)])
    names = runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert "features: ['label', 'text', 'vector']" in printed
    assert "A beautiful film about friendship.\n    " in printed
    assert names["vectors"].shape == (68, tiny.dim)
