"""The files of a saved task model.

task.json      name of the task, settings, labels, which biLM, what the card says
head.safetensors   weights of the input layer and the head, in float32, or large matrices in eight
               bits and the rest in float16; static vectors in float16
vectors.txt    words of the static vectors, one per line; only with a file of vectors
bilm/          the biLM, unless it is a bundled one, which task.json names with its checksum
README.md      the card
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from elmokit._version import __version__
from elmokit.arguments import one_of
from elmokit.elmo import Elmo
from elmokit.errors import ConfigError, FormatError, InputError, ModelNotFoundError, shown
from elmokit.formats import bundled_models, bundled_name, bundled_path, native, read_model
from elmokit.formats.rounding import restored, rounded
from elmokit.io.atomic import new_folder
from elmokit.tasks.card import card
from elmokit.tasks.names import BUNDLED, bundled_tasks
from elmokit.text.tokenizers import Tokenizer, get_tokenizer

if TYPE_CHECKING:
    from elmokit.tasks.task import Task

FORMAT_VERSION = 1
FILES = {"task.json", "head.safetensors", "vectors.txt", "bilm", "README.md"}
"""Every file of a saved model."""
DTYPES = ("float32", "int8")
"""Precisions in which weights can be saved."""
_STATIC = "static"
_FEW = 1 << 14  # numbers; a smaller matrix is not worth rounding


@dataclass
class SavedTask:
    """A saved model as it is on disk."""

    folder: Path
    task: str
    settings: dict[str, Any]
    labels: list[str]
    bilm: dict[str, str]
    """name, tokenizer and sha256 of a bundled biLM, or folder and sha256."""
    tensors: dict[str, Tensor]
    static: tuple[list[str], npt.NDArray[np.floating]] | None = None
    """Words and vectors from a file of static vectors."""
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def made_with(self) -> str:
        """The version of ElmoKit that wrote it."""
        return str(self.about.get("elmokit", "unknown"))


def task_folder(path: Path) -> Path:
    """Return the folder of a saved model: the given one, the best of a training, or a bundled one.

    Args:
        path: A folder, or the name of a bundled model if no such folder has a task model.
    """
    for folder in (path, path / "best"):
        if (folder / "task.json").is_file():
            return folder
    if (path / "training.json").is_file():
        raise ModelNotFoundError(
            f"{path} is a training without a model so far; its first epoch writes {path}/best"
        )
    if str(path) in bundled_tasks():
        return BUNDLED / path
    raise ModelNotFoundError(
        f"{path} is not a task model: it has no task.json; give a folder that elmokit train wrote, "
        f"or the name of a bundled model ({', '.join(bundled_tasks())})"
    )


def read_header(path: Path) -> dict[str, Any]:
    """Read task.json of a saved model, or of the best model of a training."""
    file = task_folder(path) / "task.json"
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        version = values["format_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"{file} is not a task model's JSON ({error}); copy it again") from error
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{file} has format_version {shown(version)}, but ElmoKit {__version__} reads version "
            f"{FORMAT_VERSION}; update ElmoKit"
        )
    return dict(values)


def read(path: Path, name: str) -> SavedTask:
    """Read a saved model of the task ``name``."""
    folder, values = task_folder(path), read_header(path)
    if values.get("task") != name:
        raise FormatError(
            f"{folder} is a model for {shown(values.get('task'))}, not for {name}; load it with "
            "elmokit.tasks.load"
        )
    try:
        tensors = load_file(folder / "head.safetensors")
        static = None
        if _STATIC in tensors:
            lines = (folder / "vectors.txt").read_bytes().decode("utf-8").split("\n")[:-1]
            vectors = tensors.pop(_STATIC).float().numpy()
            if len(lines) != len(vectors):
                raise ValueError(f"vectors.txt has {len(lines)} words for {len(vectors)} vectors")
            static = (lines, vectors)
        return SavedTask(
            folder,
            name,
            values["settings"],
            [str(label) for label in values["labels"]],
            dict(values["bilm"]),
            restored(tensors),
            static,
            dict(values["about"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise FormatError(
            f"{folder} is not a complete task model ({error}); copy it again"
        ) from error


def load_bilm(saved: SavedTask, device: torch.device, tokenizer: str | None = None) -> Elmo:
    """Load the biLM of a saved model, and check that it is the one it was trained with."""
    if tokenizer is None and "function" in saved.bilm:
        raise FormatError(
            f"{saved.folder} was trained with the tokenizer function {saved.bilm['function']}; "
            "pass elmo= loaded with it"
        )
    name = saved.bilm.get("name")
    other = f"install the version of ElmoKit it was made with ({saved.made_with})"
    if name is not None and name not in bundled_models():
        raise FormatError(
            f"{saved.folder} was trained with the biLM {shown(name)}, which ElmoKit {__version__} "
            f"does not have; copy it again, or {other}"
        )
    own = saved.bilm.get("tokenizer")
    if tokenizer is not None or own is None:
        chosen: str | Tokenizer | None = tokenizer
    else:
        with damage_named(saved):
            chosen = get_tokenizer(own)
    model = saved.folder / "bilm" if name is None else bundled_path(name)
    elmo = Elmo.load(model, tokenizer=chosen, device=device)
    if is_its_bilm(saved, elmo):
        return elmo
    if name is None:
        raise FormatError(
            f"the biLM in {model} is damaged, or another one than this model was trained with; "
            f"copy {saved.folder} again"
        )
    raise FormatError(
        f"{saved.folder} was trained with another version of the biLM {name}; train it again, or "
        f"{other}"
    )


@contextmanager
def damage_named(saved: SavedTask) -> Iterator[None]:
    """Turn errors about settings, labels or names into one that names task.json."""
    try:
        yield
    except (ConfigError, InputError) as error:
        raise FormatError(
            f"{saved.folder}/task.json is damaged, or of another version of ElmoKit "
            f"({saved.made_with}; this is {__version__}): {error}; copy it again"
        ) from error


def is_its_bilm(saved: SavedTask, elmo: Elmo) -> bool:
    """Whether a saved model was trained with this biLM."""
    return elmo.checkpoint().checksum() == saved.bilm.get("sha256")


def fill(network: nn.Module, saved: SavedTask) -> None:
    """Give a network the weights of a saved model."""
    try:
        network.load_state_dict(saved.tensors)
    except RuntimeError as error:
        raise FormatError(
            f"{saved.folder}/head.safetensors does not fit its task.json; copy both again"
        ) from error


def write(
    task: Task[Any, Any],
    folder: Path,
    overwrite: bool,
    checksum: str | None = None,
    dtype: str = "float32",
) -> None:
    """Write a task model into a folder.

    Args:
        task: The model.
        folder: Where to write it.
        overwrite: Whether an existing model may be replaced.
        checksum: That of the biLM, if it is known: it takes a while for a large one.
        dtype: float32, or int8 for a file of about a quarter of the size.
    """
    one_of(dtype, "dtype", DTYPES)
    checksum = checksum or task.elmo.checkpoint().checksum()
    name = _bundled_name(task.elmo, checksum)
    about = {"elmokit": __version__, "torch": torch.__version__, **task.about}
    values = {
        "format_version": FORMAT_VERSION,
        "task": task.name,
        "settings": task.settings.to_dict(),
        "labels": task.labels,
        "bilm": _bilm(task.elmo, name) | {"sha256": checksum},
        "about": about,
    }
    tensors = {k: v.detach().cpu().contiguous() for k, v in task.network.state_dict().items()}
    if dtype == "int8":
        large = {k: v for k, v in tensors.items() if v.dim() > 1 and v.numel() >= _FEW}
        small = {k: v for k, v in tensors.items() if k not in large}
        tensors = rounded(large, "int8") | rounded(small, "float16")
    static = task.input.static
    with new_folder(folder, overwrite, FILES) as new:
        if static is not None:
            tensors[_STATIC] = static.known().half().cpu()
            text = "".join(word + "\n" for word in static.words)
            (new / "vectors.txt").write_bytes(text.encode("utf-8"))
        (new / "task.json").write_text(
            json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        native.write_tensors(tensors, new / "head.safetensors", new / "task.json")
        if name is None:
            native.write(task.elmo.checkpoint(), new / "bilm")
        (new / "README.md").write_text(card(values, _shown_name(folder)), encoding="utf-8")


def _shown_name(folder: Path) -> str:
    """The name of a model: that of its folder, or of the training whose best model it is."""
    folder = folder.absolute()
    return folder.parent.name if folder.name == "best" else folder.name


def _bilm(elmo: Elmo, name: str | None) -> dict[str, str]:
    """Which biLM to load again; a bundled one may have been used with another tokenizer."""
    own = {"folder": "bilm"} if name is None else {"name": name}
    if elmo.tokenizer.name.startswith("custom:"):
        return own | {"function": elmo.tokenizer.name.removeprefix("custom:")}
    return own if name is None else own | {"tokenizer": elmo.tokenizer.name}


def _bundled_name(elmo: Elmo, checksum: str) -> str | None:
    """Return the name of the bundled model that a biLM is, if it is one."""
    name = bundled_name(elmo.source)
    # tuned weights differ from the files they came from
    return name if name is not None and checksum == _bundled_checksum(name) else None


@cache  # a training saves its model after every epoch that is the best so far
def _bundled_checksum(name: str) -> str:
    return read_model(bundled_path(name)).checksum()
