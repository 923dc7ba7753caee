"""Install a wheel in a fresh environment outside the tree and run the tour from there.

    python tests/try_wheel.py dist/elmokit-*.whl [-- PIP_OPTIONS...]

``make dist`` runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = "import elmokit, sys; assert elmokit.__file__.startswith(sys.prefix), elmokit.__file__"


def main(wheel: str, *pip_options: str) -> None:
    """Raise if the wheel does not install, or its command fails."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = next(line for line in lines if line.startswith("torch=="))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "venv"), with_pip=True)
        binaries = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin")

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [binaries / program, *arguments], cwd=folder, env=environment, check=True
            )

        pip = ("-m", "pip", "install", *pip_options)
        run("python", *pip, torch)  # first and by its version, as in the Makefile
        run("python", *pip, f"{Path(wheel).resolve()}[plots]")
        run("python", "-c", CHECK)
        run("elmokit", "--version")
        run("elmokit", "demo", "--out", "demo")
        run("elmokit", "demo", "--lang", "zh")
        if not Path(folder, "demo").is_dir():
            sys.exit("elmokit demo --out demo wrote no folder")


if __name__ == "__main__":
    main(*(argument for argument in sys.argv[1:] if argument != "--"))
