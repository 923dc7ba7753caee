"""Settings from a recipe file and from the command line, and checks for those without effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.formats import read_model
from elmokit.pretrain.recipe import parse_toml, read_toml
from elmokit.settings import Mistakes, merge

_WORDS = ("vocabulary_size", "min_count")
"""Settings of text that choose the vocabulary."""

_INSTEAD: dict[tuple[str, str], dict[str, Any]] = {
    ("training", "epochs"): {"minutes": None},
    ("text", "tokenized"): {"tokenizer": None},
    ("text", "tokenizer"): {"tokenized": False},
}
"""Settings that replace another one given earlier."""


def from_file(path: Path | None, size: str | None) -> dict[str, Any]:
    """Return the settings of a recipe file, or of a published size."""
    if size is None:
        return read_toml(path) if path else {}
    if path is not None:
        raise InputError(
            "--size and --recipe cannot be combined; set model.size in the recipe instead"
        )
    return {"model": {"size": size}}


def from_line(
    settings: list[str], options: dict[str, dict[str, Any]], mistakes: Mistakes
) -> dict[str, Any]:
    """Return the settings given on the command line.

    Args:
        settings: The values of --set.
        options: The values of other options, by section; None if not given.
        mistakes: Collects what is wrong with --set; the rest is returned all the same.
    """
    values: dict[str, Any] = {}
    for setting in settings:
        with mistakes.noted():
            _set(values, setting)
    for section, named in options.items():
        if given := {key: value for key, value in named.items() if value is not None}:
            values = merge(values, {section: given})
    return values


def _set(values: dict[str, Any], setting: str) -> None:
    """Store section.key=value in nested settings."""
    name, sign, value = setting.partition("=")
    *sections, key = name.split(".")
    if not sign or not sections:
        raise InputError(f"--set needs section.key=value, not {setting!r}")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise InputError(
                f"--set {setting} contradicts another --set, in which {section} is {values!r}"
            )
    parsed = parse_toml(f"x = {value}")
    values[key] = value if parsed is None else parsed["x"]


def merged(in_file: dict[str, Any], in_line: dict[str, Any]) -> dict[str, Any]:
    """Return both together. The command line wins: --epochs also cancels a recipe's minutes."""
    values: dict[str, Any] = {}
    for given in (in_file, in_line):
        for (section, key), others in _INSTEAD.items():
            named = given.get(section)
            if isinstance(named, dict) and named.get(key):
                given = given | {section: others | named}
        values = merge(values, given)
    return values


def check_sizes(in_file: dict[str, Any], in_line: dict[str, Any], recipe: Path | None) -> None:
    """Raise if sizes are given although the model to start from has its own."""
    given = ["--set model…"] if "model" in in_line else []
    if "model" in in_file or "encoder" in in_file:
        given.append("--size" if recipe is None else f"the section [model] of {recipe}")
    if given:
        raise InputError(f"--init-from uses the size of the model; leave out {' and '.join(given)}")


def check_words(in_line: dict[str, Any], vocabulary: Path | None, model: str | None) -> None:
    """Raise if settings choose a vocabulary that a file or a model already determines."""
    given = " and ".join(f"text.{name}" for name in _WORDS if name in in_line.get("text", {}))
    if given and vocabulary is not None:
        raise InputError(f"--vocabulary uses all words of the file; leave out {given}")
    # a model without a softmax takes the vocabulary of the text
    if given and model is not None and read_model(model).vocabulary is not None:
        raise InputError(
            f"--init-from uses the vocabulary of {model}; leave out {given}, or add "
            "--new-vocabulary to use that of the text"
        )


def wants_new_vocabulary(values: dict[str, Any]) -> bool:
    """Whether text.new_vocabulary is set, in settings that may still be wrong."""
    text = values.get("text")
    return isinstance(text, dict) and bool(text.get("new_vocabulary"))
