"""The predictions of a task model for some texts: a list that notebooks show with the texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from elmokit.io.html_table import Table, html_table
from elmokit.io.notebook import Displayed, Shown
from elmokit.tasks.marked_text import Marked
from elmokit.tasks.readers.examples import given_names

if TYPE_CHECKING:
    from elmokit.tasks.task import Task

Prediction = TypeVar("Prediction")

_MOST_MARKED = 50  # predictions; a table of others has its own limit
_LONGEST = 200  # characters of a text in a table


class Predictions(list[Prediction], Displayed):
    """A list of predictions.

    Args:
        predictions: One for each example.
        examples: What was predicted for.
        task: The model.
    """

    def __init__(
        self, predictions: Iterable[Prediction], examples: Sequence[Any], task: Task[Any, Any]
    ) -> None:
        super().__init__(predictions)
        self._of = list(zip(self, examples, strict=True))
        self._task = task

    def __reduce__(self) -> Any:
        return list, (list(self),)  # a pickle needs neither the model nor the texts

    def _shown(self) -> Shown:
        if self and all(isinstance(found, Marked) for found in self):
            parts = list(map(self._marked, self[:_MOST_MARKED]))
            if len(self) > _MOST_MARKED:
                parts.append(f"<p>the first {_MOST_MARKED} of {len(self):,}</p>")
            return Shown("\n".join(parts))
        task = self._task
        names = given_names(task.example)
        example = {id(found): one for found, one in self._of}  # also after the list was sorted
        rows = [
            [
                *(_text(getattr(example.get(id(found)), name, "")) for name in names),
                task.show(found),
            ]
            for found in self
        ]
        return Shown(html_table(Table(rows, [*names, "prediction"])))

    def _marked(self, found: Any) -> str:
        texts = self._task.marked(found) or found.marked()
        return "\n".join(text.html(styled=True) for text in texts)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else " ".join(map(str, value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
