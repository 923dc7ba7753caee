"""Settings as they are given, in a recipe or on the command line, and those without any effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmokit.config import Mistakes, merge
from elmokit.errors import InputError
from elmokit.formats import read_model
from elmokit.pretrain.recipe import parse_toml, read_toml

_WORDS = ("vocabulary_size", "min_count")
"""Settings of text that choose the words to predict."""

_INSTEAD: dict[tuple[str, str], dict[str, Any]] = {
    ("training", "epochs"): {"minutes": None},
    ("text", "tokenized"): {"tokenizer": None},
    ("text", "tokenizer"): {"tokenized": False},
}
"""Settings that take the place of another, given before."""


def from_file(path: Path | None, size: str | None) -> dict[str, Any]:
    """The settings of a recipe, or of a published size."""
    if size is None:
        return read_toml(path) if path else {}
    if path is not None:
        raise InputError("give --size or --recipe, not both; a recipe may name a size itself")
    return {"model": {"size": size}}


def from_line(settings: list[str], options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings given on the command line, and those only.

    Args:
        settings: What --set was given.
        options: Options of their own by section, None where left out.
    """
    values: dict[str, Any] = {}
    mistakes = Mistakes()
    for setting in settings:
        with mistakes.noted():
            _set(values, setting)
    mistakes.report()
    for section, named in options.items():
        if given := {key: value for key, value in named.items() if value is not None}:
            values = merge(values, {section: given})
    return values


def _set(values: dict[str, Any], setting: str) -> None:
    """Put section.key=value where it belongs."""
    name, sign, value = setting.partition("=")
    *sections, key = name.split(".")
    if not sign or not sections:
        raise InputError(f"--set takes section.key=value, not {setting!r}")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise InputError(
                f"--set {setting} contradicts another --set, where {section} is {values!r}"
            )
    parsed = parse_toml(f"x = {value}")
    values[key] = value if parsed is None else parsed["x"]


def merged(in_file: dict[str, Any], in_line: dict[str, Any]) -> dict[str, Any]:
    """Both together; on the line, --epochs ends what a recipe says of minutes, and the like."""
    values: dict[str, Any] = {}
    for given in (in_file, in_line):
        for (section, key), others in _INSTEAD.items():
            named = given.get(section)
            if isinstance(named, dict) and named.get(key):
                given = given | {section: others | named}
        values = merge(values, given)
    return values


def check_sizes(in_file: dict[str, Any], in_line: dict[str, Any], recipe: Path | None) -> None:
    """Raise where sizes are given beside a model that has its own."""
    given = ["--set model…"] if "model" in in_line else []
    if "model" in in_file or "encoder" in in_file:
        given.append("--size" if recipe is None else f"the section [model] of {recipe}")
    if given:
        raise InputError(
            f"with --init-from the model's own size counts; leave out {' and '.join(given)}"
        )


def check_words(in_line: dict[str, Any], vocabulary: Path | None, model: str | None) -> None:
    """Raise where the words of the text are to be chosen, but those of a file or model count."""
    given = " and ".join(f"text.{name}" for name in _WORDS if name in in_line.get("text", {}))
    if given and vocabulary is not None:
        raise InputError(
            f"with --vocabulary its words are predicted, all of them; leave out {given}"
        )
    # a model without a softmax takes the words of the text
    if given and model is not None and read_model(model).vocabulary is not None:
        raise InputError(
            f"with --init-from the words of {model} are predicted; leave out {given}, or add "
            "--new-vocabulary for those of the text"
        )
