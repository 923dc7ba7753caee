"""Write the parts of the documentation that the code itself knows.

    python docs/make_pages.py          write them
    python docs/make_pages.py --check  only say whether they are up to date

docs/command-line.md comes from the commands, and the tree in docs/architecture.md from the first
sentence of every module's docstring. The Chinese pages are made the same way, with the help texts
translated by docs/help.zh.json.
``make docs`` runs this; a test fails if the committed pages differ.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src/elmokit"
BEGIN, END = "<!-- tree: begin -->", "<!-- tree: end -->"
INTRODUCTION = """\
# Command line

This page is generated from the commands by `docs/make_pages.py`; `elmokit COMMAND --help` shows the
same text. Every command exits with 0 on success, 2 on a mistake in its input or a full disk (with
one sentence on standard error), 130 after Ctrl-C, and 141 if the reader of its output, such as
`head`, has closed the pipe.

A table in the terminal has at most 2,000 rows; `--out` writes all of them.
"""
INTRODUCTION_ZH = """\
# 命令行

本页由 `docs/make_pages.py` 根据命令自动生成；`elmokit COMMAND --help` 显示同样内容的英文版。

所有命令的退出码：成功为 0；输入有误或磁盘已满为 2，并向标准错误输出一句说明；被 Ctrl-C 中断为 130。
输出管道被下游（如 `head`）提前关闭时，退出码为 141。

终端里的表格最多显示 2,000 行，`--out` 会写出全部内容。
"""


def main() -> int:
    """Write the pages, or report which are out of date."""
    chinese = translations()
    pages = {
        DOCS / "command-line.md": command_line(),
        DOCS / "command-line.zh.md": command_line(INTRODUCTION_ZH, chinese),
    }
    for architecture in (DOCS / "architecture.md", DOCS / "architecture.zh.md"):
        pages[architecture] = with_tree(architecture.read_text(encoding="utf-8"))
    for text in help_texts() - chinese.keys():
        print(f"docs/help.zh.json has no translation of: {text}", file=sys.stderr)
    stale = [path for path, text in pages.items() if not _same(path, text)]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is out of date; run: python docs/make_pages.py", file=sys.stderr)
        return bool(stale)
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


# The command line


Words = Mapping[str, str]
"""English texts and their translations; a text without one stays English."""


def command_line(introduction: str = INTRODUCTION, words: Words = MappingProxyType({})) -> str:
    """The page docs/command-line.md, or its translation."""
    root, leaves = _commands()
    panels = list(dict.fromkeys(panel for _, panel, _ in leaves))
    leaves.sort(key=lambda leaf: panels.index(leaf[1]))
    index, sections, shown = [], [], ""
    for name, panel, command in leaves:
        if panel != shown:
            title = f"**{words.get(panel, panel)}**\n"
            index.append(f"\n{title}" if shown else title)
            shown = panel
        colon = "：" if words else ": "
        summary = _paragraphs(command.help, words)[0]
        index.append(f"- [`{name}`](#{name.replace(' ', '-')}){colon}{summary}")
        sections.append(_section(name, command, words))
    options = "## elmokit\n\n" + _parameters(root, words)
    return "\n".join([introduction, *index, "", options, *sections]).rstrip() + "\n"


def translations() -> dict[str, str]:
    """The Chinese of every text on the page."""
    texts: dict[str, str] = json.loads((DOCS / "help.zh.json").read_text(encoding="utf-8"))
    return texts


def help_texts() -> set[str]:
    """Every text on the page that needs a translation."""
    root, leaves = _commands()
    texts = {"default", "required"}
    for _, panel, command in leaves:
        texts |= {panel, *_plain(command.help)}
    for command in (root, *(command for _, _, command in leaves)):
        for parameter in _shown(command):
            texts |= set(_plain(parameter.help))
            shown = getattr(parameter, "show_default", None)
            if isinstance(shown, str) and not parameter.required and not shown.isdigit():
                texts.add(shown)
    return texts


def _commands() -> tuple[Any, list[tuple[str, str, Any]]]:
    """The root command, and every command below it."""
    from typer.main import get_command

    from elmokit.cli.main import app

    root = get_command(app)
    return root, list(_leaves(root, root.context_class(root, info_name="elmokit")))


def _leaves(group: Any, context: Any, panel: str = "Commands") -> Iterator[tuple[str, str, Any]]:
    """(full name, panel of the help page, command) of every command below a group."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inside = command.context_class(command, info_name=name, parent=context)
        own = getattr(command, "rich_help_panel", None)
        where = own if isinstance(own, str) else panel
        if hasattr(command, "list_commands"):
            yield from _leaves(command, inside, where)
        else:
            yield inside.command_path, where, command


def _section(name: str, command: Any, words: Words) -> str:
    arguments = [_metavar(p) for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, "[OPTIONS]", *arguments])
    text = "\n\n".join(_paragraphs(command.help, words))
    return f"## {name}\n\n{text}\n\n```text\n{usage}\n```\n\n{_parameters(command, words)}"


def _paragraphs(text: str | None, words: Words) -> list[str]:
    """Paragraphs of a help text as Markdown, each on one line."""
    return [words.get(plain, plain).replace("<", "&lt;") for plain in _plain(text)]


def _plain(text: str | None) -> list[str]:
    plain = (text or "").replace("\b", "").strip()
    return [" ".join(paragraph.split()) for paragraph in plain.split("\n\n")]


def _shown(command: Any) -> list[Any]:
    return [p for p in command.params if not getattr(p, "hidden", False)]


def _parameters(command: Any, words: Words) -> str:
    """A table of arguments and options."""
    lines = [f"| | | {words.get('default', 'default')} |", "|---|---|---|"]
    for parameter in _shown(command):
        if parameter.param_type_name == "argument":
            names = [_metavar(parameter)]
        else:
            names = [*parameter.opts, *parameter.secondary_opts]
        spelled = ", ".join(f"`{name}`" for name in names)
        text = " ".join(_paragraphs(parameter.help, words)).replace("|", "\\|")
        lines.append(f"| {spelled} | {text} | {_default(parameter, words)} |")
    return "\n".join(lines) + "\n"


def _metavar(parameter: Any) -> str:
    name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _default(parameter: Any, words: Words) -> str:
    default = parameter.default
    if parameter.required:
        return words.get("required", "required")
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):  # a default in words
        return words.get(shown, shown)
    if isinstance(default, bool) or default is None or callable(default) or default == ():
        return ""
    return f"`{default}`"


# The tree


def with_tree(page: str) -> str:
    """The page docs/architecture.md with its tree brought up to date."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n```text\n{tree()}\n```\n{END}{after}"


def tree() -> str:
    """The folders and modules of src/elmokit, each with the first line of its docstring."""
    rows = [("src/elmokit/", _first_line(SOURCE / "__init__.py")), *_rows(SOURCE, 1)]
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(f"{name:<{width}}{text}".rstrip() for name, text in rows)


def _rows(folder: Path, depth: int) -> Iterator[tuple[str, str]]:
    indent = "  " * depth
    inside = [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"]
    for path in inside:
        if path.suffix == ".py" and path.name != "__init__.py":
            yield indent + path.name, _first_line(path)
    for path in inside:
        if (path / "__init__.py").exists():
            yield f"{indent}{path.name}/", _first_line(path / "__init__.py")
            yield from _rows(path, depth + 1)
    if folder == SOURCE:
        yield f"{indent}models/", "The bundled models, each a folder with its card."


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ").replace("``", "`")


if __name__ == "__main__":
    sys.exit(main())
