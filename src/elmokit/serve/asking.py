"""From the body of a request to results: split texts, check limits, wait in a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import Request

from elmokit.serve.access_log import note
from elmokit.serve.batching import Kind
from elmokit.serve.loaded import Loaded, Model
from elmokit.serve.refusals import ClientGoneError, RefusedError

Texts = list[str] | list[list[str]]


def loaded_of(request: Request) -> Loaded:
    """Return what the service has loaded."""
    found: Loaded = request.app.state.loaded
    if not found.accepting:
        raise RefusedError(503, "the service is starting or stopping; try again", 1)
    return found


def as_list(inputs: str | Texts) -> Texts:
    """Return the texts of a request: one string is one text."""
    return [inputs] if isinstance(inputs, str) else inputs


async def read_texts(
    request: Request, model: Model, texts: Texts, *, truncate: bool = False
) -> list[list[str]]:
    """Split the texts of a request into tokens, within the limits.

    Args:
        request: The request, whose line in the log gets the numbers.
        model: Whose tokenizer splits strings.
        texts: Strings, or lists of tokens.
        truncate: Cut a text that is too long, instead of refusing it.
    """
    limits = model.limits
    if len(texts) > limits.texts:
        raise RefusedError(
            413, f"a request may have {limits.texts:,} texts, not {len(texts):,}; send several"
        )
    split, total = [], 0
    for number, text in enumerate(texts):
        tokens = await model.tokenize(text)
        if truncate:
            tokens = tokens[: limits.text_tokens]
        total += len(tokens)
        if len(tokens) > limits.text_tokens:
            raise RefusedError(
                413,
                f"text {number} has {len(tokens):,} tokens, and at most {limits.text_tokens:,} "
                "are allowed; split it",
            )
        if total > limits.request_tokens:
            raise RefusedError(
                413,
                f"a request may have {limits.request_tokens:,} tokens, and text {number} exceeds "
                "that; send several requests",
            )
        split.append(tokens)
    note(request.scope, model=model.name, texts=len(split), tokens=total)
    return split


async def ask(request: Request, model: Model, kind: Kind, texts: Sequence[Any]) -> list[Any]:
    """Wait for the results of some texts, given as tokens.

    The texts leave the queue if the client hangs up, or after the time limit.
    """
    return await ask_sized(request, model, kind, texts, [len(tokens) for tokens in texts])


async def ask_sized(
    request: Request, model: Model, kind: Kind, values: Sequence[Any], tokens: Sequence[int]
) -> list[Any]:
    """Wait for results, as :func:`ask` does, for any values with their numbers of tokens."""
    parts = model.submit(kind, values, tokens)
    futures = [future for _, future in parts]

    def give_up(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            for future in futures:
                future.cancel()

    watch = asyncio.get_running_loop().create_task(_until_gone(request))
    watch.add_done_callback(give_up)
    everything: Any = futures[0] if len(futures) == 1 else asyncio.gather(*futures)
    try:
        found = await asyncio.wait_for(everything, model.limits.timeout)
    except asyncio.TimeoutError:
        seconds = model.limits.timeout
        raise RefusedError(503, f"no result within {seconds:g} seconds; try again", 5) from None
    except asyncio.CancelledError:
        if watch.done():
            raise ClientGoneError from None
        raise
    finally:
        watch.cancel()
        for future in futures:
            future.cancel()
    if len(futures) == 1:
        return found
    results: list[Any] = [None] * len(values)
    for (places, _), some in zip(parts, found, strict=True):
        for place, result in zip(places, some, strict=True):
            results[place] = result
    return results


async def _until_gone(request: Request) -> None:
    """Wait until the client hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def at_position(tokens: list[str], position: int) -> str:
    """Return the token at a position of a request, or refuse it."""
    if not 0 <= position < len(tokens):
        place = f"from 0 to {len(tokens) - 1}" if tokens else "of a text that has tokens"
        raise RefusedError(422, f"position must be {place}, not {position}")
    return tokens[position]
