"""The architecture holds: imports point downward, and each layer keeps to its rules."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "elmokit"

LAYERS = [
    {"errors", "_version"},
    {"settings", "arguments"},
    {"config", "devices"},
    {"io", "text"},
    {"kernels"},
    {"nn"},
    {"inference", "formats"},
    {"elmo"},
    {"embed"},
    {"pretrain"},
    {"analysis"},
    {"tasks"},
    {"cluster"},
    {"integrations"},
    {"serve"},
    {"cli"},
]
"""From the bottom up: a module imports from its own layer's package or from layers below."""

ROOMS = {
    "pretrain": [{"recipe_sections", "recipe", "processes"}, {"data"}, {"objective"}, {"run"}],
}
"""The same inside a package; its modules that are not listed are at the top."""


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def imports(path):
    """Modules of elmokit that a file imports, also inside functions, but not for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("elmokit"):
            if node.module == "elmokit":
                yield from (f"elmokit.{alias.name}" for alias in node.names)
            else:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("elmokit"))


def part(dotted, depth=1):
    names = dotted.split(".")
    return names[depth] if len(names) > depth else ""


def dotted(path):
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(name for name in names if name != "__init__")


def height(name, layers):
    return next((k for k, layer in enumerate(layers) if name in layer), None)


def test_every_module_has_a_layer():
    found = {part(dotted(path)) for path in modules()} - {"", "__main__", "models"}
    assert found == set.union(*LAYERS)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downward(path):
    own = part(dotted(path))
    if own in ("", "__main__"):  # the public names, and python -m elmokit
        return
    for name in imports(path):
        other = part(name)
        if not other or other == own:
            continue
        level = height(other, LAYERS)
        if level is None:  # a public name, from elmokit import X
            continue
        assert level < height(own, LAYERS), f"{path.name} imports {name}"


@pytest.mark.parametrize("package", ROOMS)
def test_imports_point_downward_inside_packages(package):
    layers = ROOMS[package]
    for path in (PACKAGE / package).rglob("*.py"):
        own = height(part(dotted(path), 2), layers)
        if own is None:
            continue
        for name in imports(path):
            if part(name) != package:
                continue
            other = part(name, 2)
            level = height(other, layers)
            if level is None:
                assert not other or not (PACKAGE / package / f"{other}.py").exists(), (
                    f"{path.name} imports {name}"
                )
            else:
                assert level <= own, f"{path.name} imports {name}"


def test_kernels_know_nothing_of_modules():
    for path in (PACKAGE / "kernels").glob("*.py"):
        assert "nn.Module" not in path.read_text(encoding="utf-8"), path.name


def strings(path):
    """String constants that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documentation:
            yield node.value


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_library_speaks_of_arguments_not_flags(path):
    """Only cli/ knows the command line; it translates the names of arguments to flags."""
    if part(dotted(path)) == "cli":
        return
    for text in strings(path):
        flags = [f for f in re.findall(r"(?<![\w-])--[a-z][\w-]*", text) if f != "--nproc-per-node"]
        assert not flags, text


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_command_line_prints(path):
    if part(dotted(path)) == "cli":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    assert "print" not in names


def test_kinds_of_contexts_are_told_apart_in_one_place():
    for path in modules():
        text = path.read_text(encoding="utf-8")
        if path == PACKAGE / "config.py":
            continue
        assert not re.search(r"context\.kind\s*[!=]=|\bkind [!=]= \"(lstm|transformer)\"", text), (
            path
        )


def test_no_two_modules_share_a_name():
    """Commands apart: cli/index.py is the command of analysis/index/."""
    names = [p.stem for p in modules() if p.stem != "__init__" and part(dotted(p)) != "cli"]
    assert len(names) == len(set(names)), sorted({n for n in names if names.count(n) > 1})


def test_no_test_imports_a_test_and_none_is_long():
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from|import) (test_\w+|conftest)\b", text, re.MULTILINE), path
        assert len(text.splitlines()) <= 400, path


def code_lines(path):
    """(number, line) of code without imports, docstrings, comments and closing brackets."""
    text = path.read_text(encoding="utf-8")
    documentation = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and number not in documentation and not re.match(r"(from|import|[])}]|#)", line):
            yield number, line


def test_nothing_is_written_twice():
    """No block of ten lines of code occurs twice in the package."""
    seen = {}
    for path in modules():
        lines = list(code_lines(path))
        for i in range(len(lines) - 9):
            block = tuple(line for _, line in lines[i : i + 10])
            place = f"{path.relative_to(PACKAGE)}:{lines[i][0]}"
            assert seen.setdefault(block, place) == place, f"{place} repeats {seen[block]}"
