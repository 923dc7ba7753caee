"""Every error that ElmoKit raises on purpose, as one tree.

::

    ElmoKitError                   base class; the command line prints the message and exits with 2
    ├── ConfigError                a setting has an invalid value
    ├── ModelError                 a problem with the files of a model
    │   ├── ModelNotFoundError     no model at this path or under this name
    │   ├── FormatError            a file is damaged, truncated, or contains NaN
    │   ├── ShapeError             settings and weights contradict each other
    │   └── UnsupportedModelError  a valid model that this operation does not support
    ├── InputError                 invalid text, positions, spans or arguments
    ├── OutputError                a result cannot be written
    ├── OutOfMemoryError           a single sentence does not fit in memory
    ├── TrainingError              training diverged
    └── MissingExtraError          an optional package is not installed (also an ImportError)

A message is one sentence: what was given, what was expected, and what to do. Messages name Python
arguments (``overwrite=True``); the command line replaces them with its options.
"""

from __future__ import annotations


def shown(value: object, most: int = 100) -> str:
    """A value as an error quotes it: its repr, cut to 100 characters."""
    try:
        text = repr(value)
    except Exception:  # nested too deeply, an integer of 5,000 digits, or a repr with a bug
        text = f"a value of type {type(value).__name__}"
    return _cut(text, most)


def shortened(text: str, most: int = 100) -> str:
    """Text from elsewhere as an error contains it, without quotes: one line of 100 characters.

    Args:
        text: The name of a file in an archive, or another library's error.
        most: The limit.
    """
    return _cut("".join(c if c.isprintable() else " " for c in text[: most + 1]), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


class ElmoKitError(Exception):
    """Base class of all errors that ElmoKit raises on purpose."""


class ConfigError(ElmoKitError, ValueError):
    """A setting has an invalid value."""


class ModelError(ElmoKitError):
    """There is a problem with the files of a model."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """There is no model at this path or under this name."""


class FormatError(ModelError):
    """A model file is damaged, truncated or malformed."""


class ShapeError(ModelError):
    """The settings and the weights of a model contradict each other."""


class UnsupportedModelError(ModelError):
    """The model is valid, but this operation does not support it."""


class InputError(ElmoKitError, ValueError):
    """Text, positions, spans or other arguments are invalid."""


class OutputError(ElmoKitError, OSError):
    """A result cannot be written."""


class OutOfMemoryError(ElmoKitError, MemoryError):
    """A batch of a single sentence does not fit in memory."""


class TrainingError(ElmoKitError):
    """Training diverged: its gradients or its perplexity are unusable."""


class LanguageWarning(UserWarning):
    """A model was given text in a language that it has hardly read."""


class DataWarning(UserWarning):
    """Some of the examples in a file cannot be used and are left out."""


class MissingExtraError(ElmoKitError, ImportError):
    """An optional package is not installed.

    Args:
        package: The package to import.
        extra: The extra of ElmoKit that installs it.
        purpose: What the package is needed for.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed"
            f"{' or too old' if '>=' in package else ''}; "
            f"run: pip install 'elmokit[{extra}]'"
        )
