"""Reading and writing model files.

Each format is one module with the same interface:

* ``LOOKS_FOR`` names the files that identify the format, for the error message when no format fits.
* ``matches(source)`` says whether a folder or archive has the format.
* ``read(source)`` returns a :class:`~elmokit.formats.checkpoint.Checkpoint`.
* ``write(checkpoint, folder, overwrite)`` writes one. Formats that ElmoKit only reads lack it.

:func:`read_model` detects the format from the files it finds.
"""

from __future__ import annotations

import os
from pathlib import Path

from elmokit.errors import ModelNotFoundError, shortened, shown
from elmokit.formats import bilm_tf, many_langs, native
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.source import expanded, sources

READERS = (native, many_langs, bilm_tf)
"""Format modules in the order they are tried."""
WRITERS = {"native": native.write, "bilm-tf": bilm_tf.write}
"""Functions that write a checkpoint, by the name of the format."""

_BUNDLED = Path(__file__).parent.parent / "models"
DEFAULT_MODEL = _BUNDLED / "en"
"""Folder of the model that is loaded when none is named."""


def bundled_models() -> list[str]:
    """Return the names of the models bundled with the package."""
    return sorted(p.name for p in _BUNDLED.iterdir() if (p / "config.json").is_file())


def bundled_path(name: str) -> Path:
    """Return the folder of a bundled model, whatever the working directory contains."""
    return _BUNDLED / name


def model_name(source: str) -> str:
    """Return what loads a model again: the name of a bundled one, or an absolute path."""
    if not source:
        return ""
    path = Path(source).absolute()
    bundled = path.parent == _BUNDLED and path.name in bundled_models()
    return path.name if bundled else str(path)


def find_model(model: str | Path) -> Path:
    """Return the folder or archive of a model.

    Args:
        model: A path, the name of a bundled model, or the name of a model in one of the folders
            listed in $ELMOKIT_MODELS. The folder of a training run means its best model.
    """
    path, name = expanded(model), str(model)
    folders = os.environ.get("ELMOKIT_MODELS", "").split(os.pathsep)
    try:
        if name.strip() and path.exists():
            is_run = (path / "recipe.json").is_file() and not (path / "config.json").is_file()
            return _best_model(path) if is_run else path
        if name.strip() and "/" not in name:
            for folder in (_BUNDLED, *map(Path, filter(None, folders))):
                for candidate in (folder / name, folder / f"{name}.zip"):
                    if candidate.exists():
                        return candidate
    except OSError as error:
        if isinstance(error, ModelNotFoundError):
            raise
        raise ModelNotFoundError(f"cannot read {shown(str(path))}: {error.strerror}") from error
    raise ModelNotFoundError(
        f"there is no model {shown(name)}; give a model folder, a ZIP archive, the name of a "
        f"bundled model ({', '.join(bundled_models())}), or a name in a folder of $ELMOKIT_MODELS"
    )


def _best_model(run: Path) -> Path:
    if not (run / "best").is_dir():
        raise ModelNotFoundError(
            f"{run} is a training run without a model so far; its first evaluation writes "
            f"{run}/best"
        )
    return run / "best"


def read_model(model: str | Path) -> Checkpoint:
    """Read a model of any known format.

    Args:
        model: A folder, a ZIP archive or a name, as in :func:`find_model`.
    """
    path = find_model(model)
    places = sources(path)
    for source in places:
        for reader in READERS:
            if reader.matches(source):
                return reader.read(source).check()
    looked = "; ".join(reader.LOOKS_FOR for reader in READERS)
    names = places[0].all_names
    found = shortened(", ".join(names[:8]), 200) or "nothing"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    raise ModelNotFoundError(f"{path} is not a model: looked for {looked}; found {found}{more}")
