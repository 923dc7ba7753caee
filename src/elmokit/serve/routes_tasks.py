"""The route of task models: /predict/{task}."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from elmokit.errors import InputError
from elmokit.serve.access_log import note
from elmokit.serve.asking import ask_sized, loaded_of, read_texts
from elmokit.serve.encodings import JsonResponse
from elmokit.serve.loaded import Model
from elmokit.serve.refusals import RefusedError
from elmokit.serve.schemas import ASKING, PredictBody
from elmokit.tasks.inputs import Input, as_input
from elmokit.tasks.task import Task

router = APIRouter(responses=ASKING)

_PAIRS = {
    "nli": ("premise", "hypothesis"),
    "qa": ("question", "passage"),
    "similarity": ("first", "second"),
}
"""Fields of an input for tasks about two texts."""


@router.post("/predict/{task}")
async def predict(task: str, body: PredictBody, request: Request) -> Response:
    """Return what a task model says about each input, as ``elmokit predict`` writes it."""
    found, model = loaded_of(request).task(task)
    given = body.inputs if isinstance(body.inputs, list) else [body.inputs]
    # limits first; a list of tokens has as many tokens as the model will read
    texts: Any = [one if isinstance(one, list) else " ".join(_texts(one)) for one in given]
    tokens = [len(some) for some in await read_texts(request, model, texts)]
    inputs = await asyncio.to_thread(lambda: [_read(found, one) for one in given])
    note(request.scope, task=task)
    asked = [i for i, one in enumerate(inputs) if one.example is not None]
    run: Any = partial(found.predict, progress=False)
    kind = model.kind(("predict", task), run, found.predicted_at_once)
    values = [inputs[i].example for i in asked]
    results = (
        await ask_sized(request, model, kind, values, [tokens[i] for i in asked]) if asked else []
    )
    predictions = dict(zip(asked, results, strict=True))
    rows = [_row(found, model, one, predictions.get(i)) for i, one in enumerate(inputs)]
    return JsonResponse({"task": found.name, "predictions": rows})


def _texts(given: str | dict[str, str] | Sequence[str]) -> list[str]:
    if isinstance(given, str):
        return [given]
    return list(given.values()) if isinstance(given, dict) else list(given)


def _read(task: Task[Any, Any], given: Any) -> Input:
    """Return an input of a task, from a text, an object with its fields, or a list of tokens."""
    if isinstance(given, str):
        return as_input(task, given)
    if isinstance(given, list):
        if task.name in _PAIRS or task.name in ("coref", "relation"):
            raise InputError(f"{task.name} takes no lists of tokens; give a text or an object")
        return Input({"words": given}, task.parse(given) if given else None)
    names = _PAIRS.get(task.name, ("text",))
    if set(given) != set(names):
        raise RefusedError(
            422, f"an object for {task.name} has the fields {' and '.join(names)}, not others"
        )
    if len(names) == 1:
        return as_input(task, given["text"])
    return Input(given, task.parse(tuple(given[name] for name in names)))


def _row(task: Task[Any, Any], model: Model, one: Input, prediction: Any) -> dict[str, Any]:
    row = one.given | task.record(prediction)
    marked = [] if prediction is None else task.marked(prediction)
    if marked:
        row["html"] = "\n".join(text.html() for text in marked)
    if task.name == "qa" and prediction is not None:  # places in the passage
        row["spans"] = [{"start": row["start"], "stop": row["end"], "label": "answer"}]
    elif len(marked) == 1 and "text" in one.given:
        spans = model.elmo.tokenizer.spans(one.given["text"])
        if len(spans) == len(marked[0].words):
            row["spans"] = [
                {"start": spans[m.start][0], "stop": spans[m.end - 1][1], "label": m.label}
                for m in marked[0].marks
            ]
    return row
