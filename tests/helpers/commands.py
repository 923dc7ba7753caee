"""All commands of the command line, with their options."""

from __future__ import annotations

from typing import Any

from elmokit.cli.help import walk
from elmokit.cli.main import app

COMMANDS: dict[str, dict[str, Any]] = {
    name: {parameter.name: parameter for parameter in command.params} for name, command in walk(app)
}
"""Parameters by name of each command, such as ``wsd train``."""

REPORTS = ["similarity", "scatter", "surprisal", "perplexity-by", "geometry", "change", "probe pos"]
"""Commands that write a report and need no other command first."""
