"""Task models: classifiers, taggers and more on static vectors and ELMo.

>>> from elmokit.tasks import NerTagger
>>> ner = NerTagger.train("train.conll", "dev.conll", out="my-ner")  # doctest: +SKIP
>>> ner("Angela Merkel visited Paris .")                              # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.arguments import file_path, one_of
from elmokit.errors import FormatError, shown
from elmokit.tasks.names import TASKS

if TYPE_CHECKING:
    import torch

    from elmokit.elmo import Elmo
    from elmokit.tasks.classification import TextClassifier
    from elmokit.tasks.coref import CoreferenceResolver
    from elmokit.tasks.ner import NerTagger
    from elmokit.tasks.nli import EntailmentClassifier
    from elmokit.tasks.pair_similarity import SimilarityScorer
    from elmokit.tasks.pos import PosTagger
    from elmokit.tasks.question_answering import QuestionAnswerer
    from elmokit.tasks.relation import RelationClassifier
    from elmokit.tasks.srl import RoleLabeller
    from elmokit.tasks.task import Task

__all__ = [
    "CoreferenceResolver",
    "EntailmentClassifier",
    "NerTagger",
    "PosTagger",
    "QuestionAnswerer",
    "RelationClassifier",
    "RoleLabeller",
    "SimilarityScorer",
    "TextClassifier",
    "load",
    "task_class",
]


def task_class(name: str) -> type[Task[Any, Any]]:
    """Return the class of a task by its name on the command line."""
    one_of(name, "task", TASKS)
    module, kind = TASKS[name]
    found: type[Task[Any, Any]] = getattr(importlib.import_module(module), kind)
    return found


def load(
    folder: str | Path,
    *,
    elmo: Elmo | None = None,
    device: str | torch.device | None = None,
    tokenizer: str | None = None,
) -> Task[Any, Any]:
    """Load a saved model of any task; see :meth:`elmokit.tasks.task.Task.load`."""
    from elmokit.tasks.saved import read_header

    name = read_header(file_path(folder, "folder").expanduser()).get("task")
    if not isinstance(name, str) or name not in TASKS:
        raise FormatError(f"{folder} is a model for the unknown task {shown(name)}; update ElmoKit")
    return task_class(name).load(folder, elmo=elmo, device=device, tokenizer=tokenizer)


def __getattr__(name: str) -> Any:
    """Import the classes on first use, which keeps the command line free of torch."""
    for module, kind in TASKS.values():
        if name == kind:
            return getattr(importlib.import_module(module), kind)
    raise AttributeError(f"module 'elmokit.tasks' has no attribute {name!r}")
