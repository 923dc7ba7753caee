"""Library errors name Python arguments; the command line prints them as its flags.

``pass resume=True to continue`` becomes ``pass --resume to continue``, ``batch_size=3`` becomes
``--batch-size 3``, ``columns={"tag": "3"}`` becomes ``--column tag=3``, and ``dtype must be`` at
the start becomes ``--dtype must be``. Only parameters of the command that ran are translated.
Settings of a recipe become flags if the user typed the flag, or one that belongs to it. What the
user typed, such as a file named ``seed=3.txt``, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from elmokit.cli.help import walk

_OTHER_NAMES = {
    "columns": "--column",
    "format": "--to",
    "options": "--options-file",
    "overwrite": "--force",
    "sentence_keys": "--use-sentence-keys",
    "weights": "--weight-file",
}
"""Arguments of the library whose flag has another name."""

_SETTINGS = {
    "input.at": "--elmo-at",
    "input.layers": "--layers",
    "input.vectors": "--vectors",
    "text.new_vocabulary": "--new-vocabulary",
    "text.tokenized": "--tokenized",
    "text.tokenizer": "--tokenizer",
    "text.vocabulary_size": "--vocabulary-size",
    "training.batch_size": "--batch-size",
    "training.epochs": "--epochs",
    "training.learning_rate": "--learning-rate",
    "training.minutes": "--minutes",
    "training.seed": "--seed",
    "tuning.enabled": "--fine-tune",
}
"""Settings of a recipe that have a flag."""

_INPUT = ("input.at", "input.layers", "input.vectors")
"""Settings that depend on each other: who typed the flag of one reads about the flags of all."""

_ARGUMENT = re.compile(
    r"""
    (?<![\w.-])(?<!--column\ )          # not the end of a dotted setting, nor a column
    ([a-z]\w*)=
    (?![\[({=])                         # lists and the like have no form on the command line
    ("[^"]*"|'[^']*'|[\w./:+-]*\w)?     # a full stop ends the sentence, not the value
    """,
    re.VERBOSE,
)
_COLUMNS = re.compile(r"(?<![\w.-])columns=\{([^{}]*)\}")
_COLUMN = re.compile(r'"(\w+)": "(\w+)"')
_SUBJECT = re.compile(r"([a-z]\w*)(?= must be )")


def in_flags(message: str, typed: Sequence[str]) -> str:
    """Replace Python arguments in a message by flags.

    Args:
        message: An error of the library.
        typed: The command line, without the name of the program.
    """
    flags = _flags_of(typed)
    hidden, message = _hide(message, typed)

    def argument(match: re.Match[str]) -> str:
        name, value = match.groups()
        flag = flags.get(name)
        if flag is None:
            return match.group()
        if value == "False":
            return f"no {flag}"
        if value in (None, "True"):
            return flag
        return f"{flag} {value.strip(chr(34) + chr(39))}"

    def columns(match: re.Match[str]) -> str:
        if "columns" not in flags:
            return match.group()
        return " ".join(f"{flags['columns']} {name}={n}" for name, n in _COLUMN.findall(match[1]))

    message = _COLUMNS.sub(columns, message)
    message = _ARGUMENT.sub(argument, message)
    if subject := _SUBJECT.match(message):
        message = flags.get(subject[1], subject[1]) + message[subject.end() :]
    named = {word.partition("=")[0] for word in typed}
    together = any(flag in named for flag in map(_SETTINGS.get, _INPUT))
    for setting, flag in _SETTINGS.items():
        if flag in named or (together and setting in _INPUT):
            message = re.sub(rf"{re.escape(setting)}=[Tt]rue\b", flag, message)
            message = message.replace(f"{setting}=", f"{flag} ").replace(setting, flag)
    for mark, text in hidden.items():
        message = message.replace(mark, text)
    return message


def _hide(message: str, typed: Sequence[str]) -> tuple[dict[str, str], str]:
    """Put marks in place of what the user typed and what looks like an argument."""
    own = {text for word in typed if "=" in word for text in _and_parents(word)}
    hidden = {}
    for number, text in enumerate(sorted(own, key=len, reverse=True)):
        mark = f"\0{number}\0"
        hidden[mark] = text
        message = message.replace(text, mark)
    return hidden, message


def _and_parents(word: str) -> list[str]:
    if word.startswith("-"):  # --option=value
        word = word.partition("=")[2]
    places = [word, *map(str, Path(word).parents), Path(word).name]
    return [place for place in places if "=" in place]


def _flags_of(typed: Sequence[str]) -> dict[str, str]:
    """The flag of each parameter of the command that was typed; of every command if none was."""
    from elmokit.cli.main import app

    words = [word for word in typed if not word.startswith("-")]
    commands = dict(walk(app))
    # the command comes first, but for the value of an option of elmokit itself, such as --threads 2
    typed_at = [
        (start, command)
        for start in range(2)
        for name, command in commands.items()
        if words[start : start + name.count(" ") + 1] == name.split()
    ]
    chosen = [command for _, command in typed_at[:1]] or list(commands.values())
    flags = {
        parameter.name: max(parameter.opts, key=len)
        for command in chosen
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    known = set(flags.values())
    return flags | {name: flag for name, flag in _OTHER_NAMES.items() if flag in known}
