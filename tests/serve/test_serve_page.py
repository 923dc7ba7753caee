"""The code of docs/serve.md in both languages, run against a server with the bundled models."""

import contextlib
import io
import shutil
import subprocess

import pytest

from helpers.docs import ROOT, blocks
from helpers.serving import service

PLACE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    given = ("--model", "en", "--model", "zh", "--device", "cpu")
    with service(tmp_path_factory.mktemp("bundled"), *given) as running:
        yield running


@pytest.mark.parametrize("page", ["docs/serve.md", "docs/serve.zh.md"])
def test_it_prints_what_it_shows(page, bundled):
    names = {}
    for block in blocks(page, "python", "bash"):
        code = block.code.replace(PLACE, bundled.url)
        assert code != block.code or "import" not in code
        if block.language == "bash":
            if shutil.which("curl") is None:
                continue
            printed = subprocess.run(["bash", "-c", code], capture_output=True, text=True).stdout
        else:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile("\n" * (block.line - 1) + code, ROOT / page, "exec"), names)
            printed = output.getvalue()
        assert block.output is not None
        assert printed.split() == block.output.split(), f"{page}:{block.line}"
    names["client"].close()


def test_the_bundled_index_is_there(bundled):
    import httpx

    index = httpx.get(f"{bundled.url}/info").json()["index"]
    assert index["available"]
    assert index["bundled"]
    assert index["model"] == "en"
    assert index["size"] > 4000
