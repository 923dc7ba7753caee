"""Run the notebooks in examples/ and store them with their outputs.

    python docs/make_notebooks.py [NOTEBOOK …]

Edit the cells of a notebook in Jupyter or by hand, then run this. It needs the extras notebooks,
plots and index, and for the pictures of the Chinese notebooks a font with Chinese characters.
Stored are no times, no paths, and ids that do not change.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class OwnKernel(AsyncKernelManager):
    """A kernel of the interpreter that runs this, without an installed kernelspec."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How to start it."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def run(notebook: Any, folder: Path, seconds: int = 300) -> None:
    """Execute a notebook in place; a cell that fails raises."""
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_manager_class=OwnKernel,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def clean(notebook: Any) -> None:
    """Remove what differs from run to run, and pictures that are in the HTML already."""
    notebook.metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells, 1):
        cell.id, cell.metadata = f"cell-{number}", {}
        if cell.cell_type == "code":
            cell.outputs = _clean_outputs(cell.outputs)


def _clean_outputs(outputs: list[Any]) -> list[Any]:
    cleaned: list[Any] = []
    for output in outputs:
        data = output.get("data", {})
        if set(data) == {"text/plain"} and not data["text/plain"]:
            continue  # progress that has ended
        if "data:image/png" in data.get("text/html", ""):
            data.pop("image/png", None)
        before = cleaned[-1] if cleaned else {}
        if "stream" == output.output_type == before.get("output_type") and (
            output.name == before.name
        ):
            before.text += output.text
        else:
            cleaned.append(output)
    return cleaned


def main() -> None:
    """Run all notebooks, or those named."""
    for path in map(Path, sys.argv[1:] or sorted(EXAMPLES.glob("*.ipynb"))):
        notebook = nbformat.read(path, as_version=4)
        run(notebook, EXAMPLES)
        clean(notebook)
        nbformat.validate(notebook)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
