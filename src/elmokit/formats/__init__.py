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

from elmokit.errors import InputError, ModelNotFoundError, shortened, shown
from elmokit.formats import allennlp_archive, bilm_tf, many_langs, native, tensorflow_checkpoint
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.places import checkpoint_files, expanded, given_files, sources

READERS = (native, many_langs, bilm_tf, allennlp_archive, tensorflow_checkpoint)
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
    return bundled_name(source) or str(Path(source).absolute())


def bundled_name(source: str | Path) -> str | None:
    """Return the name of a bundled model by the folder it was loaded from; None for any other."""
    path = Path(source).absolute()
    return path.name if path.parent == _BUNDLED and path.name in bundled_models() else None


def find_model(model: str | Path) -> Path:
    """Return the folder or archive of a model.

    Args:
        model: A path, the name of a bundled model, or the name of a model in one of the folders
            listed in $ELMOKIT_MODELS. The folder of a training run means its best model. The path
            of a TensorFlow checkpoint may lack the ending that its files have.
    """
    path, name = expanded(model), str(model)
    folders = os.environ.get("ELMOKIT_MODELS", "").split(os.pathsep)
    try:
        if name.strip() and path.exists():
            is_run = (path / "recipe.json").is_file() and not (path / "config.json").is_file()
            return _best_model(path) if is_run else path
        if name.strip() and checkpoint_files(path):
            return path
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
        f"there is no model {shown(name)}; give a model folder, an archive, the name of a "
        f"bundled model ({', '.join(bundled_models())}), or a name in a folder of $ELMOKIT_MODELS"
    )


def _best_model(run: Path) -> Path:
    if not (run / "best").is_dir():
        raise ModelNotFoundError(
            f"{run} is a training run without a model so far; its first evaluation writes "
            f"{run}/best"
        )
    return run / "best"


def read_model(model: str | Path, part: str | None = None) -> Checkpoint:
    """Read a model of any known format.

    Args:
        model: A folder, an archive, a checkpoint or a name, as in :func:`find_model`.
        part: Which ELMo or mix of a model of AllenNLP, if it has several.
    """
    path = find_model(model)
    places = sources(path)
    for source in places:
        for reader in READERS:
            if not reader.matches(source):
                continue
            if reader is allennlp_archive:
                return allennlp_archive.read(source, part).check()
            _only_for_allennlp(part)
            return reader.read(source).check()
    looked = "; ".join(reader.LOOKS_FOR for reader in READERS)
    names = places[0].all_names
    found = shortened(", ".join(names[:8]), 200) or "nothing"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    raise ModelNotFoundError(f"{path} is not a model: looked for {looked}; found {found}{more}")


def read_files(
    options: str | Path,
    weights: str | Path,
    softmax: str | Path | None = None,
    vocabulary: str | Path | None = None,
    part: str | None = None,
) -> Checkpoint:
    """Read a model from separate files; the weights decide about the format.

    Args:
        options: The options JSON.
        weights: HDF5 weights, a TensorFlow checkpoint, or weights of AllenNLP.
        softmax: The HDF5 weights of the softmax; a checkpoint has its own.
        vocabulary: The words of the softmax, one per line.
        part: As for :func:`read_model`.
    """
    path = expanded(weights)
    in_checkpoint = _is_checkpoint(path)
    if in_checkpoint or _is_allennlp(options, path):
        if softmax is not None:
            raise InputError("softmax= goes with HDF5 weights; a checkpoint contains its softmax")
        if in_checkpoint:
            _only_for_allennlp(part)
            return tensorflow_checkpoint.read_files(options, path, vocabulary).check()
        if vocabulary is not None:
            raise InputError("vocabulary= goes with a softmax, which a model of AllenNLP lacks")
        return allennlp_archive.read_files(options, path, part).check()
    _only_for_allennlp(part)
    return bilm_tf.read_files(options, weights, softmax, vocabulary).check()


def _only_for_allennlp(part: str | None) -> None:
    if part is not None:
        raise InputError("part= chooses an ELMo in a model of AllenNLP; leave it out here")


def _is_checkpoint(path: Path) -> bool:
    try:
        return bool(checkpoint_files(path))
    except OSError:  # the name is too long, or a folder must not be read
        return False


def _is_allennlp(options: str | Path, weights: Path) -> bool:
    """Whether weights are a tar.gz or ZIP archive or a pickle; torch.save writes the last two."""
    source = given_files(options=options, weights=weights)
    with source.open(next(name for name in source.names if name.startswith("weights"))) as file:
        return file.read(2) in (b"\x1f\x8b", b"PK", b"\x80\x02")
