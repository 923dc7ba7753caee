"""The documentation says what the code is: commands, files, public names; and its links work."""

import importlib.util
import re

import pytest

import elmokit
from helpers.docs import ENGLISH, PAGES, READMES, ROOT, blocks, read, translation, without_code


@pytest.fixture(scope="module")
def make_pages():
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "docs/make_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_line_page_is_what_the_commands_say(make_pages):
    assert read("docs/command-line.md") == make_pages.command_line(), "run docs/make_pages.py"


def test_the_chinese_command_line_page_is_too(make_pages):
    chinese = make_pages.translations()
    page = make_pages.command_line(make_pages.INTRODUCTION_ZH, chinese)
    assert read("docs/command-line.zh.md") == page, "run docs/make_pages.py"
    assert make_pages.help_texts() == set(chinese), "edit docs/help.zh.json"


ARCHITECTURE = ["docs/architecture.md", "docs/architecture.zh.md"]


@pytest.mark.parametrize("page", ARCHITECTURE)
def test_the_tree_is_up_to_date(make_pages, page):
    text = read(page)
    assert text == make_pages.with_tree(text), "run docs/make_pages.py"


@pytest.mark.parametrize("page", ARCHITECTURE)
def test_the_tree_lists_every_file(page):
    tree = next(b.code for b in blocks(page, "text") if b.code.startswith("src/elmokit/"))
    listed, folders = set(), []
    for line in tree.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        if name.endswith(".py"):
            listed.add("".join(folders))
    here = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src/elmokit").rglob("*.py")
        if path.name != "__init__.py"
    }
    assert listed == here


@pytest.mark.parametrize("page", ARCHITECTURE)
def test_the_files_that_architecture_names_exist(page):
    named = re.findall(r"`([a-z_/]+\.py)`", without_code(page))
    assert len(named) > 20
    missing = [n for n in named if not (ROOT / "src/elmokit" / n).exists() | (ROOT / n).exists()]
    assert not missing


def test_the_chinese_api_page_documents_the_same():
    english, chinese = (re.findall(r"^:::.*", read(f"docs/api{i}.md"), re.M) for i in ("", ".zh"))
    assert english == chinese


def test_the_api_page_has_every_public_name():
    page = read("docs/api.md")
    documented = set(re.findall(r"^::: ([\w.]+)", page, re.MULTILINE))
    last = {name.rsplit(".", 1)[-1] for name in documented}
    for name in elmokit.__all__:
        if name == "__version__" or issubclass_of_error(name):
            continue
        assert name in last or f"`{name}`" in page, name
    assert "elmokit.errors" in documented


def issubclass_of_error(name):
    value = getattr(elmokit, name)
    return isinstance(value, type) and issubclass(value, elmokit.ElmoKitError)


@pytest.mark.parametrize("page", PAGES)
def test_links_work(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if not target.startswith(("https://", "#")):
            path = folder / target.split("#")[0]
            assert path.exists(), target


@pytest.mark.parametrize("readme", READMES)
def test_readmes_are_a_front_door(readme):
    assert len(read(readme).splitlines()) <= 200


def test_both_readmes_have_the_same_headings():
    english, chinese = (re.findall(r"^(#+) ", without_code(r), re.MULTILINE) for r in READMES)
    assert english == chinese


def test_every_page_is_in_the_navigation():
    navigation = re.findall(r": ([\w-]+\.md)$", read("mkdocs.yml"), re.MULTILINE)
    assert sorted(f"docs/{name}" for name in navigation) == ENGLISH


def test_every_page_is_in_both_languages():
    assert [page for page in ENGLISH if not translation(page)] == []
    for page in PAGES:
        if page.endswith(".zh.md"):
            assert (ROOT / page.replace(".zh.md", ".md")).exists()
