"""The files and folders of a run, and which of them a resumed run must not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.arguments import each, file_path
from elmokit.errors import InputError
from elmokit.io.lines import find_files


@dataclass(frozen=True)
class Start:
    """What a run starts from; recorded in recipe.json, so paths are absolute."""

    init_from: str | None = None
    """The model: a name, or an absolute path."""
    vocabulary: str | None = None
    """The vocabulary file, an absolute path."""


@dataclass(frozen=True)
class RunPaths:
    """Where a run reads and writes."""

    text: Sequence[Path]
    """Text files and folders to train on."""
    valid: Sequence[Path]
    """Text files and folders to evaluate on."""
    out: Path
    """The run's folder."""
    data: Path | None = None
    """Where to keep the prepared text for other runs; None for a folder inside ``out``."""
    init_from: str | None = None
    """A model to start from, in any known format: a folder, ZIP archive or name. Its sizes apply,
    and its tokenizer unless the recipe names one."""
    vocabulary: Path | None = None
    """A vocabulary file, one word per line, most frequent first, including <S>, </S> and <UNK>;
    None for the most frequent words of the text."""

    def __post_init__(self) -> None:
        for name in ("text", "valid"):
            given = getattr(self, name)
            items = each(
                [given] if isinstance(given, str | Path) else given, name, "a list of paths"
            )
            object.__setattr__(self, name, [file_path(item, f"each of {name}") for item in items])
        for name in ("out", "data", "init_from", "vocabulary"):
            given = getattr(self, name)
            if given is not None or name == "out":
                found = file_path(given, name)
                object.__setattr__(self, name, given if name == "init_from" else found)

    @property
    def prepared(self) -> Path:
        """The folder of the prepared text."""
        return self.data or self.out / "data"

    def start(self) -> Start:
        """Return what the run starts from, with paths that stay valid in another directory."""
        vocabulary = None if self.vocabulary is None else str(self.vocabulary.resolve())
        model = self.init_from
        if model is not None:
            path = Path(model).expanduser()
            if path.exists() or "/" in model:  # otherwise it is a name
                model = str(path.resolve())
        return Start(model, vocabulary)

    def check(self) -> None:
        """Raise if training and validation text overlap, or output would be read as text."""
        for folder in (path for path in (*self.text, *self.valid) if path.is_dir()):
            for name, place in (("run folder", self.out), ("data folder", self.prepared)):
                if place.resolve().is_relative_to(folder.resolve()):
                    raise InputError(
                        f"the {name} {place} is inside the text folder {folder} and would be read "
                        "as text; choose a folder outside of it"
                    )
        train, held_out = ({p.resolve() for p in find_files(p)} for p in (self.text, self.valid))
        if both := sorted(train & held_out):
            raise InputError(
                f"{both[0]} is in both the training and the validation text; keep them apart"
            )
