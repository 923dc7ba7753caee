"""Every error a user's input can cause, as one tree.

::

    ElmoKitError                 anything below; the command line prints it and exits with 2
    ├── ConfigError              sizes or settings that cannot be
    ├── ModelError               about a model's files
    │   ├── ModelNotFoundError   no such file, folder or name, or nothing known in it
    │   ├── FormatError          a file is broken, truncated, or holds NaN
    │   ├── ShapeError           settings and weights contradict each other
    │   └── UnsupportedModelError  a valid file of a kind that cannot be run or written
    ├── InputError               text, positions or spans that make no sense
    ├── OutputError              a result cannot be written where it should go
    ├── OutOfMemoryError         one sentence alone does not fit
    └── MissingExtraError        an optional package is not installed (also an ImportError)

A message is one sentence saying what was given and what was expected, and what to do next.
"""

from __future__ import annotations


class ElmoKitError(Exception):
    """Base of all errors raised on purpose."""


class ConfigError(ElmoKitError, ValueError):
    """A setting has a value it cannot have."""


class ModelError(ElmoKitError):
    """Something about a model's files."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """Nothing that can be loaded is where the caller pointed."""


class FormatError(ModelError):
    """A model file cannot be read."""


class ShapeError(ModelError):
    """A model's settings and its weights contradict each other."""


class UnsupportedModelError(ModelError):
    """A well-formed model that this operation cannot handle."""


class InputError(ElmoKitError, ValueError):
    """Text, positions or options of a call that make no sense."""


class OutputError(ElmoKitError, OSError):
    """A result cannot be written."""


class OutOfMemoryError(ElmoKitError, MemoryError):
    """Even a batch of one sentence does not fit in memory."""


class MissingExtraError(ElmoKitError, ImportError):
    """An optional package is missing.

    Args:
        package: The import that failed.
        extra: The extra of ElmoKit that brings it.
        purpose: What it is needed for.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed; "
            f"type: pip install 'elmokit[{extra}]'"
        )
