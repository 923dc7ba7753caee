"""Readers and writers of model files, found by looking at what is there."""

from __future__ import annotations

import os
from pathlib import Path

from elmokit.errors import ModelNotFoundError
from elmokit.formats import bilm_tf, many_langs, native
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.source import sources

READERS = (native, many_langs, bilm_tf)
WRITERS = {"native": native.write, "bilm-tf": bilm_tf.write}

_BUNDLED = Path(__file__).parent.parent / "models"
DEFAULT_MODEL = _BUNDLED / "en"


def bundled_models() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(p.name for p in _BUNDLED.iterdir() if (p / "config.json").is_file())


def find_model(model: str | Path) -> Path:
    """A path, or the place of a name: in the package, or in a folder of $ELMOKIT_MODELS.

    The folder of a training run means its best model.
    """
    path, name = Path(model).expanduser(), str(model)
    try:
        exists = bool(name.strip()) and path.exists()
        has_recipe = (path / "recipe.json").is_file()
        is_run = has_recipe and not (path / "config.json").is_file()
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {path}: {error.strerror}") from error
    if exists:
        return _best_of(path) if is_run else path
    folders = [
        _BUNDLED,
        *map(Path, filter(None, os.environ.get("ELMOKIT_MODELS", "").split(os.pathsep))),
    ]
    if name.strip() and "/" not in name:
        for folder in folders:
            for candidate in (folder / name, folder / f"{name}.zip"):
                if candidate.exists():
                    return candidate
    names = ", ".join(bundled_models())
    raise ModelNotFoundError(
        f"there is no model {name!r}: neither a folder or ZIP archive of that path, nor a bundled "
        f"name (bundled: {names}), nor one in $ELMOKIT_MODELS"
    )


def _best_of(run: Path) -> Path:
    if not (run / "best").is_dir():
        raise ModelNotFoundError(
            f"{run} is a training run without a model so far; its first evaluation makes {run}/best"
        )
    return run / "best"


def read_model(model: str | Path) -> Checkpoint:
    """A model of any known format from a folder, a ZIP archive or a name."""
    path = find_model(model)
    places = sources(path)
    for source in places:
        for reader in READERS:
            if reader.matches(source):
                return reader.read(source).check()
    looked = "; ".join(reader.LOOKS_FOR for reader in READERS)
    names = places[0].all_names
    found = ", ".join(names[:8]) or "nothing"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    raise ModelNotFoundError(f"{path} is not a model: looked for {looked}; found {found}{more}")
