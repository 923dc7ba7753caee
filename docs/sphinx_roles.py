"""Show Sphinx roles such as :meth:`~elmokit.Elmo.load` as code; mkdocs.yml names this file."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|attr|mod|data|exc):`~?([^`]+)`")


class SphinxRoles(griffe.Extension):
    """Docstrings use Sphinx roles, which help() shows well; Markdown knows only code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of every object."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
