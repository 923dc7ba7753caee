"""What all tasks share: training, predicting, evaluating, saving and loading."""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.arguments import each, file_path, flag, instance, number, whole_number
from elmokit.devices import choose_device
from elmokit.elmo import Elmo
from elmokit.errors import InputError, shortened
from elmokit.formats import model_name
from elmokit.io.html_table import facts, html_table
from elmokit.io.lines import shown_path
from elmokit.io.notebook import Displayed, Shown
from elmokit.io.progress import DelayedProgress
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.tasks import saved
from elmokit.tasks.card import shown_score
from elmokit.tasks.frozen_layers import FrozenLayers
from elmokit.tasks.marked_text import MarkedText
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.predictions import Predictions
from elmokit.tasks.readers.records import table_kind
from elmokit.tasks.static_vectors import read_static_vectors
from elmokit.tasks.task_settings import TaskSettings
from elmokit.tasks.task_trainer import TaskRun, train_task
from elmokit.tasks.word_batches import Batcher, Prepared, by_length, sentences_of
from elmokit.tasks.word_input import StaticTable, WordBatch, WordInput

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")
Self = TypeVar("Self", bound="Task[Any, Any]")


class Task(Displayed, ABC, Generic[Example, Prediction]):
    """A task model: the input layer, a head, and labels. A subclass says what its head computes.

    Args:
        settings: All settings.
        labels: What the head can predict; empty if it predicts numbers.
        elmo: The biLM.
        static: Static vectors from a file, if the settings name one.
    """

    name: ClassVar[str]
    """Name on the command line and in saved models."""
    example: ClassVar[type[Any]]
    """Class of its examples; their last field is the answer."""
    defaults: ClassVar[TaskSettings[Any]]
    """Settings unless others are given."""
    whole_files: ClassVar[bool] = False
    """Whether a text file to predict for is one text, and not one per line."""
    predicted_at_once: ClassVar[int] = 64
    """Examples of a batch when nothing is learned."""

    def __init__(
        self,
        settings: TaskSettings[Any],
        labels: Sequence[str],
        elmo: Elmo,
        static: StaticTable | None = None,
    ) -> None:
        self.settings, self.labels, self.elmo = settings, list(labels), elmo
        self.about: dict[str, Any] = {}
        """What a saved model's card says: data, scores, versions."""
        self.input = WordInput(settings.input, elmo.n_layers, elmo.dim, static)
        self.head = self._make_head(self.input.input_dim, self.input.output_dim)
        self.network = nn.ModuleDict({"input": self.input, "head": self.head}).to(elmo.device)

    # What a task defines

    @classmethod
    @abstractmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[Example]:
        """Read examples from a file.

        Args:
            path: The file.
            columns: Which columns to read.
            labelled: Whether each example needs its answer.
        """

    @classmethod
    def is_table(cls, path: Path, columns: dict[str, str] | None = None) -> bool:
        """Whether a file to predict for is read as a table, and not line by line."""
        return bool(columns) or table_kind(path) is not None

    @classmethod
    @abstractmethod
    def labels_of(cls, examples: Sequence[Example]) -> list[str]:
        """Return the labels that occur in examples; empty for a task without labels."""

    @abstractmethod
    def parse(self, given: Any) -> Example:
        """Return the example, without an answer, that a user's input stands for."""

    @abstractmethod
    def prepare(self, example: Example) -> Prepared:
        """Split the texts of an example into words; each text is a row of the batch."""

    def portion(self, item: Prepared, rng: random.Random) -> Prepared:
        """Return what a training step learns from: the example, or a random part of a long one."""
        return item

    def pieces(self, item: Prepared, learning: bool = False) -> list[Prepared]:
        """Return the parts of an example that the network reads one at a time: usually all of it.

        Args:
            item: The example.
            learning: Whether only parts are wanted that the model can learn from.
        """
        return [item]

    def joined(self, predictions: Sequence[Prediction]) -> Prediction:
        """Return the prediction for an example from those for its pieces."""
        return predictions[0]

    @abstractmethod
    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        """Return the network on top of the input layer.

        Args:
            input_dim: Width of the input.
            output_dim: Width of what joins the output of the head's encoder; 0 for nothing.
        """

    @abstractmethod
    def forward(self, batch: WordBatch) -> Any:
        """Return what the head computes for a batch; decode and loss take it."""

    @abstractmethod
    def loss(self, output: Any, examples: Sequence[Example]) -> Tensor:
        """Return the mean loss of a batch."""

    @abstractmethod
    def decode(self, output: Any, examples: Sequence[Example]) -> list[Prediction]:
        """Return the prediction for each example of a batch."""

    @abstractmethod
    def score(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Scores:
        """Compare predictions with the answers of examples."""

    @abstractmethod
    def show(self, prediction: Prediction) -> str:
        """Return a prediction as a line for people."""

    @abstractmethod
    def record(self, prediction: Prediction | None) -> dict[str, Any]:
        """Return a prediction as plain values for JSON; that for a blank line is None."""

    def marked(self, prediction: Prediction) -> list[MarkedText]:
        """Return a prediction as text with marked spans; empty for a task that has none."""
        return []

    def to_conll(self, prediction: Prediction) -> str:
        """Return a prediction in a format of CoNLL, for a task that has one."""
        raise InputError(f"predictions of {self.name} have no CoNLL format")

    # What users call

    @classmethod
    def train(
        cls: type[Self],
        train: str | Path | Sequence[Any],
        dev: str | Path | Sequence[Any],
        *,
        elmo: Elmo | None = None,
        settings: TaskSettings[Any] | dict[str, Any] | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        columns: dict[str, str] | None = None,
        layers: FrozenLayers | None = None,
        say: Callable[[str], None] | None = None,
        progress: bool = True,
    ) -> Self:
        """Train a model.

        Args:
            train: A file of examples, or a list of them.
            dev: Examples to choose the best epoch by.
            elmo: The biLM; None for the bundled English model.
            settings: All settings, or the sections to change, such as
                ``{"training": {"epochs": 5}}``.
            out: Folder for the model and for resuming; None keeps the model in memory only.
            resume: Continue the training in ``out``.
            columns: Which columns of the files to read; see docs/task-data.md.
            layers: Where to keep ELMo's layers. Trainings on the same sentences can share one; it
                is not closed. None keeps them for this training alone.
            say: Called with a line about each epoch, such as ``print``; None for no lines.
            progress: Show progress on standard error in what takes more than two seconds.
        """
        flag(progress, "progress")
        elmo = Elmo.load() if elmo is None else elmo
        instance(elmo, "elmo", Elmo, "a model from Elmo.load()")
        if elmo.precision != "float32":
            raise InputError(
                f"elmo must be loaded without quantize={elmo.precision!r} for training"
            )
        if not isinstance(settings, TaskSettings):
            settings = cls.defaults.changed({} if settings is None else settings)
        if flag(resume, "resume") and out is None:
            raise InputError("resume=True needs out=, the folder of the training")
        known = cls._examples(train, "train", columns)
        held_out = cls._examples(dev, "dev", columns)
        labels = cls.labels_of(known)
        cls._check_labels(labels, "the training examples'", held_out, dev, "dev")
        if settings.tuning.enabled:  # the caller's model stays as it is
            elmo = copy.deepcopy(elmo)
        torch.manual_seed(settings.training.seed)
        task = cls(settings, labels, elmo, _static_table(settings))
        task._check_layers(layers)
        folder = None if out is None else file_path(out, "out").expanduser()
        run = TaskRun(folder, resume, layers, progress)
        train_task(task, known, held_out, run, say or _silent)
        return task

    @classmethod
    def load(
        cls: type[Self],
        folder: str | Path,
        *,
        elmo: Elmo | None = None,
        device: str | torch.device | None = None,
        tokenizer: str | None = None,
    ) -> Self:
        """Load a saved model.

        Args:
            folder: A saved model, the folder of a training, or the name of a bundled model.
            elmo: The biLM it was trained with, if it is loaded already.
            device: Where to run; None uses a GPU if available.
            tokenizer: How to split strings, such as "whitespace" for text that is tokenised
                already; None splits them as in training.
        """
        found = saved.read(file_path(folder, "folder").expanduser(), cls.name)
        if elmo is not None and tokenizer is not None:
            raise InputError("elmo= has a tokenizer of its own; leave out tokenizer=")
        if elmo is None:
            elmo = saved.load_bilm(found, choose_device(device), tokenizer)
        elif not saved.is_its_bilm(found, instance(elmo, "elmo", Elmo, "a model from Elmo.load()")):
            raise InputError(f"{folder} was trained with another biLM; leave out elmo=")
        static = None if found.static is None else StaticTable(*found.static)
        with saved.damage_named(found):
            settings = cls.defaults.changed(found.settings)
            task = cls(settings, found.labels, elmo, static)
        saved.fill(task.network, found)
        task.about = found.about
        return task

    def save(self, folder: str | Path, *, overwrite: bool = False, dtype: str = "float32") -> None:
        """Write the model into a folder, complete with its biLM unless that is a bundled one.

        Args:
            folder: Where to write it.
            overwrite: Replace an existing model.
            dtype: "float32", or "int8" for a file of about a quarter of the size.
        """
        path = file_path(folder, "folder").expanduser()
        saved.write(self, path, flag(overwrite, "overwrite"), dtype=dtype)

    def __call__(self, text: Any) -> Any:
        """Predict for one text or example, or for each of a list."""
        return self.predict([text])[0] if self._is_one(text) else self.predict(text)

    def predict(
        self, texts: Iterable[Any], batch_size: int | None = None, *, progress: bool = True
    ) -> list[Prediction]:
        """Predict for each of some texts, or examples.

        Args:
            texts: What to predict for.
            batch_size: How many at once; None for the task's own number.
            progress: Show progress on standard error if the work takes more than two seconds.
        """
        flag(progress, "progress")
        if batch_size is not None:
            whole_number(batch_size, "batch_size", 1)
        given = each(texts, "texts", "a list of texts")
        prepared = [self.prepare(self.parse(text)) for text in given]
        with FrozenLayers(self.elmo, self.input.layers) as layers:
            found = self.predict_prepared(prepared, layers, batch_size, progress=progress)
        return Predictions(found, [item.example for item in prepared], self)

    def evaluate(
        self,
        examples: str | Path | Sequence[Any],
        columns: dict[str, str] | None = None,
        *,
        layers: FrozenLayers | None = None,
        progress: bool = True,
    ) -> Scores:
        """Compare predictions with the answers in a file, or of a list of examples.

        Args:
            examples: The file or the examples.
            columns: Which columns of a file to read; see docs/task-data.md.
            layers: Where to keep ELMo's layers for other models, as in :meth:`train`; None keeps
                none.
            progress: Show progress on standard error if the work takes more than two seconds.
        """
        flag(progress, "progress")
        self._check_layers(layers)
        given = self._examples(examples, "examples", columns)
        self._check_labels(self.labels, "the model's", given, examples, "examples")
        prepared = [self.prepare(example) for example in given]
        with FrozenLayers(self.elmo, self.input.layers) as none:
            if layers is not None and self.input.layers:
                layers.keep(sentences_of(prepared), progress=progress)
            found = self.predict_prepared(prepared, layers or none, progress=progress)
        return self.score(given, found)

    def _check_layers(self, layers: FrozenLayers | None) -> None:
        """Raise if layers are not those that the input of this model needs."""
        wanted = self.input.layers
        if layers is not None and (layers.elmo is not self.elmo or layers.layers != wanted):
            raise InputError(
                f"layers= must be FrozenLayers(elmo, {wanted}) of the same elmo for these settings"
            )

    @classmethod
    def _check_labels(
        cls, labels: Sequence[str], whose: str, examples: Sequence[Any], given: Any, name: str
    ) -> None:
        """Raise if examples share no label with others, as when another column was read.

        Args:
            labels: The labels of the others.
            whose: What to call these.
            examples: The examples to check.
            given: The file they come from, or something else.
            name: What to call them if they do not come from a file.
        """
        known, found = set(labels) - {"O"}, cls._labels_in(examples) - {"O"}
        if known and found and not known & found:
            is_file = isinstance(given, str | Path)
            advice = ", or choose the columns with columns=" if is_file else ""
            where = source_name(given, name)
            raise InputError(
                f"no label of {where} ({_some(found)}) is one of {whose} ({_some(known)}); give "
                f"examples of the same kind{advice}"
            )

    @classmethod
    def _labels_in(cls, examples: Sequence[Any]) -> set[str]:
        """The labels of some examples, which may be too few to learn from."""
        with suppress(InputError):
            return set(cls.labels_of(examples))
        return set()

    def __repr__(self) -> str:
        own = "" if not self.labels else f", {len(self.labels)} labels"
        return f"{type(self).__name__}({model_name(self.elmo.source) or self.elmo.format!r}{own})"

    def _shown(self) -> Shown:
        given = self.settings.input
        values: dict[str, Any] = {"task": self.name}
        if self.labels:
            values["labels"] = ", ".join(self.labels[:20]) + " …" * (len(self.labels) > 20)
        values["biLM"] = model_name(self.elmo.source) or self.elmo.format
        values["ELMo"] = f"layers {given.layers}, at {given.at}"
        values["static vectors"] = given.vectors
        values["parameters"] = sum(p.numel() for p in self.network.parameters())
        if "dev" in self.about:
            values["training examples"] = self.about["train"]
            values["score on the dev examples"] = shown_score(
                self.about["dev"], self.about["epoch"]
            )
        return Shown(html_table(facts(type(self).__name__, values)))

    # What the trainer calls

    @torch.no_grad()
    def predict_prepared(
        self,
        prepared: Sequence[Prepared],
        layers: FrozenLayers,
        batch_size: int | None = None,
        tuned: ElmoEmbedding | None = None,
        progress: bool = True,
    ) -> list[Prediction]:
        """Return the predictions for examples, in their order."""
        self.network.eval()
        batcher = Batcher(self.input, layers, tuned, self.elmo.device)
        pieces = [self.pieces(item) for item in prepared]
        items = [item for some in pieces for item in some]
        found: dict[int, Prediction] = {}
        batch_size = batch_size or self.predicted_at_once
        with DelayedProgress("predicting", len(items), "examples", progress) as bar:
            for indices in by_length([item.length for item in items], batch_size):
                some = [items[i] for i in indices]
                examples = [item.example for item in some]
                output = self.forward(batcher.make(some))
                found.update(zip(indices, self.decode(output, examples), strict=True))
                bar.advance(len(some))
        in_order = iter([found[i] for i in range(len(items))])
        return [self.joined(list(islice(in_order, len(some)))) for some in pieces]

    def _is_one(self, given: Any) -> bool:
        """Whether a user's input is one text or example, and not a list of them."""
        return isinstance(given, str | self.example)

    @classmethod
    def _check_example(cls, example: Any, name: str) -> None:
        instance(example, name, cls.example, f"a {cls.example.__name__}")
        answer = fields(cls.example)[-1].name
        found = getattr(example, answer)
        if found is None:
            raise InputError(f"{name} has no {answer}; examples need their answers here")
        if answer == "label":
            instance(found, f"the label of {name}", str, "a string")
        if answer == "score":
            number(found, f"the score of {name}")

    @classmethod
    def _examples(cls, given: Any, name: str, columns: dict[str, str] | None) -> list[Example]:
        if isinstance(given, str | Path):
            examples = cls.read(file_path(given, name).expanduser(), columns)
        else:
            examples = list(each(given, name, "a file, or a list of examples"))
            for place, example in enumerate(examples, 1):
                cls._check_example(example, f"example {place} of {name}")
        if not examples:
            raise InputError(f"{name} has no examples; expected at least one")
        return examples


def source_name(given: Any, name: str) -> str:
    """What an error calls examples: their file, or the name of the argument with a list."""
    return shown_path(Path(given)) if isinstance(given, str | Path) else name


def defines(task: Task[Any, Any], method: str) -> bool:
    """Whether a task has an optional method: marked, to_conll."""
    return getattr(type(task), method) is not getattr(Task, method)


def _static_table(settings: TaskSettings[Any]) -> StaticTable | None:
    vectors = settings.input.vectors
    if vectors in ("none", "token"):
        return None
    found = read_static_vectors(Path(vectors).expanduser(), None)
    with np.errstate(over="ignore"):
        rounded = found.vectors.astype(np.float16)  # as a saved model keeps them
    if not np.isfinite(rounded).all():
        raise InputError(f"{vectors} has values beyond ±65,504; scale the vectors down")
    return StaticTable(found.words, rounded)


def _silent(line: str) -> None:
    pass


def _some(labels: set[str]) -> str:
    """The first labels of a set, for an error."""
    first = sorted(labels)[:4]
    return ", ".join(map(shortened, first)) + ", …" * (len(labels) > 4)
