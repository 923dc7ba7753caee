"""The folder of a run: settings, vocabulary, metrics, checkpoint and best model."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from elmokit.config import ModelConfig
from elmokit.errors import FormatError, OutputError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.io.atomic import CONTINUE, clear_errors, new_file
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.paths import Start


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
        try:
            values = json.loads((self.path / "recipe.json").read_text(encoding="utf-8"))
            start = dict(values.pop("start", {}))
            if start.pop("new_vocabulary", False):  # where older runs keep the setting
                values["text"]["new_vocabulary"] = True
            return Recipe.from_dict(values), Start(**start)
        except FileNotFoundError:
            raise FormatError(f"{self.path} is not the folder of a run: no recipe.json") from None
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise FormatError(f"{self.path} is not the folder of a run: {error}") from error

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
        try:
            vocabulary = (self.path / "vocabulary.txt").read_text(encoding="utf-8")
            values = json.loads((self.path / "model.json").read_text(encoding="utf-8"))
            config = ModelConfig.from_dict(values.pop("config"))
            return Checkpoint(config, {}, vocabulary.split("\n")[:-1], **values)
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise FormatError(f"{self.path} is not the folder of a run: {error}") from error

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
        """Return all lines of the metrics, except one that a crash cut off."""
        found = []
        if self.metrics.exists():
            for line in self.metrics.read_text(encoding="utf-8").splitlines():
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found

    def forget_after(self, step: int) -> None:
        """Remove the metrics of steps that will be repeated."""
        kept = [r for r in self.reports() if r.get("step", 0) <= step]
        self.write("metrics.jsonl", "".join(json.dumps(r) + "\n" for r in kept))

    def save(self, state: dict[str, Any]) -> None:
        """Write a checkpoint and replace the last one."""
        target = self.checkpoint
        with self._new(target) as new, new.open("wb") as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # PyTorch's error for a full disk
                raise OutputError(
                    f"cannot write {target}: {error}; the last checkpoint is intact, so make sure "
                    f"that the disk has free space and {CONTINUE}"
                ) from error
            file.flush()
            os.fsync(file.fileno())

    def load(self) -> dict[str, Any]:
        """Read the last checkpoint."""
        source = self.checkpoint
        if not source.exists():
            raise OutputError(
                f"{self.path} has no checkpoint to resume from; start the run with resume=False in "
                "a new folder"
            )
        try:
            state: dict[str, Any] = torch.load(source, map_location="cpu", weights_only=True)
        except Exception as error:
            reason = str(error).split("\n")[0]
            raise FormatError(f"the checkpoint {source} is damaged: {reason}") from error
        return state
