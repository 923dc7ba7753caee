"""The folder of a run: settings, vocabulary, metrics, checkpoints, and the best model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from elmokit.config import ModelConfig
from elmokit.errors import FormatError, OutputError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.io.atomic import clear_errors
from elmokit.pretrain.recipe import Recipe

_RESUME = "continue with --resume"


@dataclass(frozen=True)
class Start:
    """What a run begins with, besides text and settings."""

    init_from: str | None = None
    """The model gone on with: a name, or an absolute path."""
    new_vocabulary: bool = False
    """Whether the words of the text are predicted instead of the model's own."""
    vocabulary: str | None = None
    """The file with the words to predict, an absolute path."""


class RunFolder:
    """A run on disk.

    ::

        recipe.json      all settings, and what the run began with
        data/            the text as numbers
        vocabulary.txt   the words predicted
        model.json       the model's sizes, characters and words
        metrics.jsonl    a line for every report and evaluation
        events…          the same for TensorBoard
        training.png     losses and perplexities over time
        last.pt          where --resume goes on
        best/            the model with the lowest perplexity so far, ready to load

    Args:
        path: Where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_begun(self) -> bool:
        """Whether the folder holds a run."""
        return (self.path / "recipe.json").is_file()

    @property
    def best(self) -> Path:
        """The best model so far, in the native format."""
        return self.path / "best"

    @property
    def metrics(self) -> Path:
        """A line of JSON for every report and evaluation."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Where training goes on."""
        return self.path / "last.pt"

    def begin(self, recipe: Recipe, start: Start) -> None:
        """Make the folder; of a run in it that has saved nothing, nothing stays."""
        self.check_free()
        with clear_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if self.is_begun:
                self._forget()
            self.keep_recipe(recipe, start)

    def check_free(self) -> None:
        """Raise where the folder holds a run that has saved something."""
        if self.checkpoint.exists():
            raise OutputError(
                f"{self.path} holds a run already; add --resume to continue it, or choose another "
                "folder"
            )

    def _forget(self) -> None:
        """Drop what a run left that is to be begun again; its text as numbers can be used."""
        shutil.rmtree(self.best, ignore_errors=True)
        for path in (self.metrics, self.path / "training.png", *self.path.glob("events*")):
            path.unlink(missing_ok=True)

    def keep_recipe(self, recipe: Recipe, start: Start) -> None:
        """Write the settings, and what the run began with."""
        values = recipe.to_dict() | {"start": asdict(start)}
        self.write("recipe.json", json.dumps(values, indent=2) + "\n")

    def recipe(self) -> Recipe:
        """The settings of a run that was begun."""
        return self._begun()[0]

    def start(self) -> Start:
        """What it began with."""
        return self._begun()[1]

    def _begun(self) -> tuple[Recipe, Start]:
        try:
            values = json.loads((self.path / "recipe.json").read_text(encoding="utf-8"))
            start = Start(**values.pop("start", {}))
            return Recipe.from_dict(values), start
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise FormatError(f"{self.path} is not the folder of a run: {error}") from error

    def keep_base(self, base: Checkpoint) -> None:
        """Write what the model is but for its weights, which is all that resuming needs of it."""
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
        try:
            vocabulary = (self.path / "vocabulary.txt").read_text(encoding="utf-8")
            values = json.loads((self.path / "model.json").read_text(encoding="utf-8"))
            config = ModelConfig.from_dict(values.pop("config"))
            return Checkpoint(config, {}, vocabulary.split("\n")[:-1], **values)
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise FormatError(f"{self.path} is not the folder of a run: {error}") from error

    def write(self, name: str, text: str) -> None:
        """Write a small file as a whole or not at all."""
        with self._new(self.path / name) as new:
            new.write_text(text, encoding="utf-8", newline="\n")

    @contextmanager
    def _new(self, target: Path) -> Iterator[Path]:
        """A file that takes the target's place when all went well, else is removed.

        Its name is always the same, so that a run that is killed again and again leaves one at
        most.
        """
        new = target.with_name(target.name + ".new")
        try:
            with clear_errors(target, _RESUME):
                yield new
                os.replace(new, target)
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)

    def report(self, **values: Any) -> None:
        """Add a line to the metrics."""
        with clear_errors(self.metrics, _RESUME), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def reports(self) -> list[dict[str, Any]]:
        """All lines of the metrics; one cut off by a crash is passed over."""
        found = []
        if self.metrics.exists():
            for line in self.metrics.read_text(encoding="utf-8").splitlines():
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that will be done again."""
        kept = [r for r in self.reports() if r.get("step", 0) <= step]
        self.write("metrics.jsonl", "".join(json.dumps(r) + "\n" for r in kept))

    def save(self, state: dict[str, Any]) -> None:
        """Write a checkpoint in place of the last one."""
        target = self.checkpoint
        with self._new(target) as new, new.open("wb") as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # how torch reports a full disk
                raise OutputError(
                    f"cannot write {target}: {error}; what was saved before is untouched, so see "
                    f"that there is room on the disk and {_RESUME}"
                ) from error
            file.flush()
            os.fsync(file.fileno())

    def load(self) -> dict[str, Any]:
        """The last checkpoint."""
        source = self.checkpoint
        if not source.exists():
            raise OutputError(
                f"there is no checkpoint in {self.path} to resume from; start the run without "
                "--resume in a new folder"
            )
        try:
            state: dict[str, Any] = torch.load(source, map_location="cpu", weights_only=True)
        except Exception as error:
            reason = str(error).split("\n")[0]
            raise FormatError(f"the checkpoint {source} is damaged: {reason}") from error
        return state
