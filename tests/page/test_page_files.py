"""The files of the page: what is vendored, what is loaded, and that both languages say the same."""

import hashlib
import re
from pathlib import Path

import pytest

import elmokit

PAGE = Path(elmokit.__file__).parent / "serve" / "page"
OWN = sorted(
    p for p in PAGE.rglob("*") if p.suffix in {".js", ".css", ".html"} and "vendor" not in p.parts
)


def test_vendored_files_are_the_published_ones():
    table = (PAGE / "vendor" / "README.md").read_text()
    rows = dict(re.findall(r"^\| (d3-[a-z-]+) \| [\d.]+ \| `([0-9a-f]{64})` \|$", table, re.M))
    files = {p.name.removesuffix(".min.js"): p for p in (PAGE / "vendor").glob("*.js")}
    assert rows == {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in files.items()}
    versions = dict(re.findall(r"\| (d3-[a-z-]+) \| ([\d.]+) \|", table))
    for name, path in files.items():
        assert f"v{versions[name]} " in path.read_text()[:120], name
    assert "Mike Bostock" in (PAGE / "vendor" / "LICENSE").read_text()


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path):
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//cdn|innerHTML|insertAdjacentHTML|\beval\(|new Function", text)
    assert len(text.splitlines()) <= 300


def test_no_inline_script_or_style():
    html = (PAGE / "index.html").read_text()
    assert re.findall(r"<script[^>]*>([^<]*)</script>", html) == [""] * html.count("<script")
    assert not re.search(r"<style|\sstyle=|\son\w+=", html)
    for name in re.findall(r'(?:src|href)="([^"]+)"', html):
        assert (PAGE / name).is_file(), name


def test_both_languages_have_the_same_strings(served, visit):
    """Names and kinds are the same, and nothing was left in the other language."""
    page = visit(served)
    shape = """async (name) => {
        const { default: strings } = await import(new URL(name, document.baseURI));
        const shape = (value) => typeof value === "function" ? value.length
            : typeof value === "string" ? "text"
            : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, shape(v)]));
        return shape(strings);
    }"""
    assert page.evaluate(shape, "en.js") == page.evaluate(shape, "zh.js")
    assert not re.search("[\u4e00-\u9fff]", (PAGE / "en.js").read_text(encoding="utf-8"))
