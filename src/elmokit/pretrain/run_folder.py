"""The folder of a run: settings, vocabulary, metrics, checkpoints, and the best model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from elmokit.errors import FormatError, OutputError
from elmokit.files import clear_errors
from elmokit.pretrain.recipe import Recipe

_RESUME = "continue with --resume"


class RunFolder:
    """A run on disk.

    ::

        recipe.json      all settings
        data/            the text as numbers
        vocabulary.txt   the words predicted
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

    def begin(self, recipe: Recipe) -> None:
        """Make the folder, which must not hold another run."""
        if self.checkpoint.exists():
            raise OutputError(
                f"{self.path} holds a run already; add --resume to continue it, or choose another "
                "folder"
            )
        with clear_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self.write("recipe.json", json.dumps(recipe.to_dict(), indent=2) + "\n")

    def vocabulary(self) -> list[str]:
        """The words the run predicts."""
        try:
            text = (self.path / "vocabulary.txt").read_text(encoding="utf-8")
        except OSError as error:
            raise FormatError(f"{self.path} is not the folder of a run: {error}") from error
        return text.split("\n")[:-1]

    def recipe(self) -> Recipe:
        """The settings of a run that was begun."""
        path = self.path / "recipe.json"
        try:
            return Recipe.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise FormatError(f"{self.path} is not the folder of a run: {error}") from error

    def write(self, name: str, text: str) -> None:
        """Write a small file as a whole or not at all."""
        with clear_errors(self.path / name, _RESUME):
            new = self.path / f"{name}.new"
            new.write_text(text, encoding="utf-8", newline="\n")
            os.replace(new, self.path / name)

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

    def save(self, state: dict[str, Any], rank: int = 0) -> None:
        """Write a checkpoint in place of the last one; processes but the first have their own."""
        target = self._checkpoint_of(rank)
        new = target.with_name(target.name + ".new")
        with clear_errors(target, _RESUME):
            try:
                with new.open("wb") as file:
                    torch.save(state, file)
                    file.flush()
                    os.fsync(file.fileno())
            except RuntimeError as error:  # how torch reports a full disk
                raise OutputError(f"cannot write {target}: {error}") from error
            os.replace(new, target)

    def _checkpoint_of(self, rank: int) -> Path:
        return self.path / f"last.{rank}.pt" if rank else self.checkpoint

    def load(self, rank: int = 0) -> dict[str, Any]:
        """The last checkpoint."""
        source = self._checkpoint_of(rank)
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
