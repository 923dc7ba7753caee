"""What a service has loaded: models with their queues, task models, an index, and senses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elmokit.analysis.index.token_index import Index
from elmokit.analysis.senses.sense_vectors import SenseVectors
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.elmo import Elmo, Text
from elmokit.errors import ElmoKitError, InputError, shown
from elmokit.formats import bundled_models, model_name
from elmokit.serve.batching import Batcher, Kind
from elmokit.serve.bundled_index import BundledIndex
from elmokit.serve.refusals import RefusedError
from elmokit.serve.service_metrics import Metrics
from elmokit.serve.service_settings import Limits, ServeSettings
from elmokit.tasks import load as load_task
from elmokit.tasks.task import Task

_LONG = 256
"""Tokens. Longer texts have a thread of their own, because a text cannot be interrupted."""
_MOST, _MOST_SCORED = 1 << 30, 32  # texts of a batch; a softmax takes longer than the biLM
_AT_ONCE = 20_000  # characters; splitting more would hold up the event loop

Found = asyncio.Future[list[Any]]


@dataclass
class Model:
    """A model, and a queue each for short and for long texts."""

    name: str
    elmo: Elmo
    limits: Limits
    metrics: Metrics
    lanes: dict[str, Batcher] = field(default_factory=dict)
    kinds: dict[Any, Kind] = field(default_factory=dict)

    def start(self) -> None:
        """Start the queues, in the running event loop."""
        for lane in ("short", "long"):
            counters = self.metrics.of_queue(self.name, lane)
            self.lanes[lane] = Batcher(f"{self.name}-{lane}", self.limits, counters)
            self.lanes[lane].start()

    async def close(self) -> None:
        """Stop the queues."""
        for lane in self.lanes.values():
            await lane.close()

    def kind(self, key: Any, run: Callable[[list[Any]], Sequence[Any]], most: int) -> Kind:
        """Return the kind of work with a key, made once.

        Args:
            key: Work with the same key can share a batch.
            run: From the values of a batch to their results.
            most: Most texts of a batch.
        """
        if key not in self.kinds:
            self.kinds[key] = Kind(key, run, most)
        return self.kinds[key]

    def vectors(self, layers: str | int) -> Kind:
        """Vectors of all tokens: (T, D), or (L + 1, T, D) for all layers."""
        run: Any = partial(self.elmo.encode, layers=layers, progress=False)
        return self.kind(("vectors", layers), run, _MOST)

    def pooled(self, layers: str | int, pooling: str) -> Kind:
        """One vector (D,) for each text."""
        encode: Any = self.elmo.encode_sentences
        run = partial(encode, layers=layers, pooling=pooling, progress=False)
        return self.kind(("pooled", layers, pooling), run, _MOST)

    def scores(self) -> Kind:
        """Probabilities of all tokens."""
        return self.kind("scores", self.elmo.score, _MOST_SCORED)

    async def tokenize(self, text: Text) -> list[str]:
        """Split a text into tokens; a long one in a thread."""
        if isinstance(text, str) and len(text) > _AT_ONCE:
            return await asyncio.to_thread(self.elmo.tokenize, text)
        return self.elmo.tokenize(text)

    def submit(
        self, kind: Kind, values: Sequence[Any], tokens: Sequence[int]
    ) -> list[tuple[list[int], Found]]:
        """Queue the texts of a request, short and long ones apart.

        Args:
            kind: What to do with them.
            values: The texts, as the kind takes them.
            tokens: Number of tokens of each.

        Returns:
            Places of some texts, and a future with their results.
        """
        places = {
            "short": [i for i, n in enumerate(tokens) if n <= _LONG],
            "long": [i for i, n in enumerate(tokens) if n > _LONG],
        }
        used = {lane: some for lane, some in places.items() if some}
        for lane, some in used.items():  # all or nothing
            self.lanes[lane].check_room(len(some))
        return [
            (
                some,
                self.lanes[lane].submit(kind, [values[i] for i in some], [tokens[i] for i in some]),
            )
            for lane, some in used.items()
        ]


@dataclass
class Loaded:
    """Everything that requests can name."""

    settings: ServeSettings
    metrics: Metrics
    models: dict[str, Model]
    tasks: dict[str, tuple[Task[Any, Any], Model]]
    index: Index | BundledIndex | None
    index_model: str
    how_index: str
    """How to add an index, or why the one in the package cannot be used."""
    senses: tuple[SenseVectors, WordNet, Model] | None
    accepting: bool = False

    @property
    def every_model(self) -> list[Model]:
        """Models that requests can name, and those that only tasks use."""
        own = {id(model): model for model in self.models.values()}
        return list((own | {id(model): model for _, model in self.tasks.values()}).values())

    def model(self, name: str | None) -> Model:
        """Return a model by its name; the first without one."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise RefusedError(
                404, f"there is no model {shown(name)}; choose one of {', '.join(self.models)}"
            )
        return self.models[name]

    def task(self, name: str) -> tuple[Task[Any, Any], Model]:
        """Return a task model by its name."""
        if name not in self.tasks:
            known = f"choose one of {', '.join(self.tasks)}" if self.tasks else HOW_TASKS
            raise RefusedError(404, f"there is no task model {shown(name)}; {known}")
        return self.tasks[name]


HOW_TASKS = "none is loaded; start the service with elmokit serve and the option task"
HOW_SENSES = (
    "write a file with elmokit wsd train, and start the service with the options senses and wordnet"
)


def load_all(settings: ServeSettings, metrics: Metrics | None = None) -> Loaded:
    """Load everything that the settings name."""
    metrics = Metrics() if metrics is None else metrics
    models: dict[str, Model] = {}
    for given in settings.models:
        name, place = _named(given, "model")
        elmo = Elmo.load(place, device=settings.device, quantize=settings.quantize)
        models[_new(name, models, "models")] = Model(name, elmo, settings.limits, metrics)
    if not models:
        raise InputError("there is no model to serve; give at least one")
    tasks: dict[str, tuple[Task[Any, Any], Model]] = {}
    for given in settings.tasks:
        name, place = _named(given, "task")
        _new(name, tasks, "tasks")
        tasks[name] = _load_task(name, place, models, settings, metrics)
    index, index_model, how = _load_index(settings, models)
    senses = _load_senses(settings, models)
    for model in models.values():
        model.elmo.encode(["The first text ."], progress=False)  # prepares the weights
    return Loaded(settings, metrics, models, tasks, index, index_model, how, senses)


def _named(given: str, what: str) -> tuple[str, str]:
    """Return name and place of ``NAME=PLACE``, or of a place alone."""
    name, equals, place = given.partition("=")
    if not equals:
        name, place = "", given
    if not place:
        raise InputError(f"{what} {shown(given)} has no path; expected a path or NAME=PATH")
    path = Path(place)
    best = path.parent.name if path.name == "best" else path.name.split(".")[0]
    return name or best or place, place


def _new(name: str, known: dict[str, Any], what: str) -> str:
    if name in known:
        raise InputError(f"two {what} are named {shown(name)}; give one as NAME=PATH")
    return name


def _load_task(
    name: str, place: str, models: dict[str, Model], settings: ServeSettings, metrics: Metrics
) -> tuple[Task[Any, Any], Model]:
    """Load a task model, with a model that is loaded already if it was trained with that."""
    for model in models.values():
        try:
            return load_task(place, elmo=model.elmo), model
        except InputError:  # it was trained with another
            continue
    task = load_task(place, device=settings.device)
    return task, Model(f"task-{name}", task.elmo, settings.limits, metrics)


def _load_index(
    settings: ServeSettings, models: dict[str, Model]
) -> tuple[Index | BundledIndex | None, str, str]:
    """Return an index, the name of the model it belongs to, and how to add another."""
    how = "build one with elmokit index, and start the service with the option index"
    if settings.index is not None:
        index = Index.open(settings.index)
        for name, model in models.items():
            if model.elmo.checkpoint().checksum() == index.config.weights:
                return index, name, how
        raise InputError(
            f"{settings.index} was built with {index.config.model or 'another model'}, which is "
            "not served; serve that model too"
        )
    for name, model in models.items():
        if model_name(model.elmo.source) == "en" and "en" in bundled_models():
            try:
                return BundledIndex.open(model.elmo), name, how
            except ElmoKitError as error:
                return None, "", str(error)
    return None, "", f"the index in the package is for the model en, which is not served; {how}"


def _load_senses(
    settings: ServeSettings, models: dict[str, Model]
) -> tuple[SenseVectors, WordNet, Model] | None:
    if settings.senses is None:
        return None
    if settings.wordnet is None:
        raise InputError("senses= needs wordnet=, the folder of WordNet")
    vectors, wordnet = SenseVectors.load(settings.senses), WordNet(settings.wordnet)
    for model in models.values():
        if vectors.model == model.elmo.checkpoint().checksum():
            return vectors, wordnet, model
    vectors.check(next(iter(models.values())).elmo)
    raise InputError(f"{settings.senses} belongs to a model that is not served; serve it too")
