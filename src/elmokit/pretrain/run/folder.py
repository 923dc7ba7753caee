"""The folder of a run: settings, vocabulary, metrics, checkpoint and best model."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from elmokit.config import ModelConfig
from elmokit.errors import FormatError, OutputError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.state_dicts import check_stored
from elmokit.io.atomic import CONTINUE, clear_errors, new_file, remove_leftovers
from elmokit.io.lock import lock_folder
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.paths import Start
from elmokit.settings import build
from elmokit.text.vocabulary import Vocabulary

_BASE = ("vocabulary.txt", "model.json")
"""What a checkpoint belongs to; it stores their checksum."""


class RunFolder:
    """A run on disk.

    ::

        recipe.json      all settings, and what the run started from
        data/            the prepared text
        vocabulary.txt   the vocabulary of the softmax
        model.json       the model's sizes, characters and words
        metrics.jsonl    one line per report and evaluation
        events…          the same for TensorBoard
        training.png     losses and perplexities over time
        last.pt          the checkpoint to resume from
        best/            the model with the lowest perplexity so far, ready to load
        lock             locked while a process trains

    Args:
        path: The folder; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_begun(self) -> bool:
        """Whether the folder contains a run."""
        return (self.path / "recipe.json").is_file()

    @property
    def best(self) -> Path:
        """The best model so far, in the native format."""
        return self.path / "best"

    @property
    def metrics(self) -> Path:
        """One line of JSON per report and evaluation."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint to resume from."""
        return self.path / "last.pt"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and keep other processes from training in it."""
        with ExitStack() as stack:
            with clear_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(lock_folder(self.path, self.path))
            remove_leftovers(self.best)
            yield

    def begin(self, recipe: Recipe, start: Start) -> None:
        """Create the folder, and remove what is left of a run that saved no checkpoint."""
        self.check_free()
        with clear_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if self.is_begun:
                self._forget()
            self.keep_recipe(recipe, start)

    def check_free(self) -> None:
        """Raise if the folder contains a run with a checkpoint."""
        if self.checkpoint.exists():
            raise OutputError(
                f"{self.path} already contains a run; pass resume=True to continue it, or choose "
                "another folder"
            )

    def _forget(self) -> None:
        """Remove the results of a run that starts over; its prepared text can be reused."""
        shutil.rmtree(self.best, ignore_errors=True)
        for path in (self.metrics, self.path / "training.png", *self.path.glob("events*")):
            path.unlink(missing_ok=True)

    def keep_recipe(self, recipe: Recipe, start: Start) -> None:
        """Write the settings and what the run started from."""
        values = recipe.to_dict() | {"start": asdict(start)}
        self.write("recipe.json", json.dumps(values, indent=2) + "\n")

    def recipe(self) -> Recipe:
        """Return the settings of the run."""
        return self._begun()[0]

    def start(self) -> Start:
        """Return what the run started from."""
        return self._begun()[1]

    def _begun(self) -> tuple[Recipe, Start]:
        with self._complete():
            values = self._json("recipe.json")
            start = dict(values.pop("start", {}))
            if start.pop("new_vocabulary", False):  # where older runs keep the setting
                values["text"]["new_vocabulary"] = True
            return Recipe.from_dict(values), build(Start, "start", start)

    @contextmanager
    def _complete(self) -> Iterator[None]:
        """Turn errors of missing and damaged files into a FormatError of one sentence."""
        try:
            yield
        except FileNotFoundError as error:
            name = Path(error.filename).name
            raise FormatError(f"{self.path} is not the folder of a run: no {name}") from None
        except (OSError, ValueError, TypeError, AttributeError, KeyError, FormatError) as error:
            raise FormatError(
                f"{self.path} is not the folder of a run, or it is damaged: {error}"
            ) from error

    def _json(self, name: str) -> dict[str, Any]:
        try:
            values = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{name} is not JSON") from error
        if not isinstance(values, dict):
            raise FormatError(f"{name} is not a JSON object")
        return values

    def keep_base(self, base: Checkpoint) -> None:
        """Write everything about the model except its weights, for resuming."""
        values = {
            "config": base.config.to_dict(),
            "characters": base.characters,
            "words": base.words,
            "format": base.format,
            "source": base.source,
        }
        self.write("vocabulary.txt", "".join(word + "\n" for word in base.vocabulary or []))
        self.write("model.json", json.dumps(values) + "\n")

    def base(self) -> Checkpoint:
        """The inverse of :meth:`keep_base`."""
        with self._complete():
            words = (self.path / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
            Vocabulary(words)
            values = self._json("model.json")
            config = ModelConfig.from_dict(values.pop("config"))
            base = Checkpoint(config, {}, words, **values)
            base.alphabet()  # checks characters and words
            if len(words) != config.vocabulary_size:
                raise FormatError(
                    f"vocabulary.txt has {len(words):,} words, but model.json "
                    f"{config.vocabulary_size:,}"
                )
            return base

    def _base_checksum(self) -> str:
        digest = hashlib.sha256()
        for name in _BASE:
            digest.update((self.path / name).read_bytes())
        return digest.hexdigest()

    def write(self, name: str, text: str) -> None:
        """Write a small file atomically."""
        with self._new(self.path / name) as new:
            new.write_text(text, encoding="utf-8", newline="\n")

    def _new(self, target: Path) -> AbstractContextManager[Path]:
        """A file that replaces the target on success.

        Its name is fixed, so a run that is killed many times leaves at most one such file.
        """
        return new_file(target, temporary=target.with_name(target.name + ".new"), then=CONTINUE)

    def report(self, **values: Any) -> None:
        """Append a line to the metrics."""
        with clear_errors(self.metrics, CONTINUE), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def reports(self) -> list[dict[str, Any]]:
        """Return the lines of the metrics, except any that are cut off or damaged."""
        if not self.metrics.is_file():
            return []
        found = []
        for line in self.metrics.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if _is_report(values):
                found.append(values)
        return found

    def forget_after(self, step: int) -> None:
        """Remove the metrics of what will be repeated: later steps, and the end of the run."""
        kept = [r for r in self.reports() if r["step"] <= step and not r.get("whole")]
        self.write("metrics.jsonl", "".join(json.dumps(r) + "\n" for r in kept))

    def save(self, state: dict[str, Any]) -> None:
        """Write a checkpoint and replace the last one."""
        target = self.checkpoint
        with self._new(target) as new, new.open("wb") as file:
            try:
                torch.save(state | {"base": self._base_checksum()}, file)
            except RuntimeError as error:  # PyTorch's error for a full disk
                raise OutputError(
                    f"cannot write {target}: {error}; the last checkpoint is intact, so make sure "
                    f"that the disk has free space and {CONTINUE}"
                ) from error
            file.flush()
            os.fsync(file.fileno())

    def load(self) -> dict[str, Any]:
        """Read the last checkpoint, and check that no bit of it has changed."""
        source = self.checkpoint
        try:
            _check_archive(source)
            state: dict[str, Any] = torch.load(source, map_location="cpu", weights_only=True)
            # old checkpoints lack "base"
            same = state.get("base", checksum := self._base_checksum()) == checksum
        except Exception as error:  # a damaged archive can raise anything
            hint = f" from {self.best} with init_from=" if self.best.is_dir() else ""
            raise FormatError(
                f"the checkpoint {source} is damaged; restore it from a copy, or start a new run"
                + hint
            ) from error
        if not same:
            raise FormatError(
                f"{' or '.join(_BASE)} in {self.path} has changed since the checkpoint was written;"
                " restore it from a copy, or start a new run"
            )
        return state


def _check_archive(path: Path) -> None:
    """Raise unless a file of PyTorch is complete and every part has its checksum.

    PyTorch writes checksums into its ZIP archives, but does not compare them. Its archives are not
    compressed, so reading one needs no more memory than its size.
    """
    with zipfile.ZipFile(path) as archive:
        check_stored(archive, path.stat().st_size)
        if archive.testzip() is not None:
            raise ValueError("not as PyTorch has written it")


def _is_report(values: Any) -> bool:
    """Whether a line of the metrics has what the picture and resuming need."""
    if not isinstance(values, dict):
        return False
    needed = {"training": ("step", "tokens"), "evaluation": ("step", "tokens", "mean")}
    names = needed.get(str(values.get("kind")), ("kind",))
    numbers = [values.get(name) for name in (*names, *({"loss"} & values.keys()))]
    return all(
        isinstance(n, int | float) and not isinstance(n, bool) and (n >= 0 or math.isnan(n))
        for n in numbers
    )
