"""``python -m elmokit`` is the command ``elmokit``."""

from elmokit.cli.main import main

main()
