"""Requests that cannot be answered: a sentence, its type, and the HTTP status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from elmokit.errors import ElmoKitError, MissingExtraError, OutOfMemoryError

_TYPES = {
    401: "unauthorized",
    404: "not_found",
    408: "payload",
    413: "payload",
    429: "overloaded",
    500: "backend",
    503: "overloaded",
}
"""Types of errors by status; all others are ``validation``."""

_EXPECTED = {
    "inputs": "a text, a list of texts, or a list of lists of tokens",
    "input": "a text or a list of texts; token ids are not supported",
}
_NO_JSON = "the body is not valid JSON"


class RefusedError(HTTPException):
    """A request that is refused.

    Args:
        status: The HTTP status.
        sentence: What was given, what was expected, what to do.
        retry_after: Seconds after which to try again.
    """

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(status, sentence, headers)


class ClientGoneError(Exception):
    """The client has hung up; nobody waits for the answer."""


def refusal(
    path: str, status: int, sentence: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer to a request that is refused.

    Args:
        path: The path that was asked for; below /v1, errors have the form of OpenAI's.
        status: The HTTP status.
        sentence: What was given, what was expected, what to do.
        headers: Further headers.
    """
    kind = _TYPES.get(status, "validation")
    body: dict[str, Any] = {"error": sentence, "error_type": kind}
    if path.startswith("/v1/"):
        body = {"error": {"message": sentence, "type": kind, "param": None, "code": None}}
    return Response(orjson.dumps(body), status, headers, "application/json")


def add_refusals(app: FastAPI) -> None:
    """Let an app answer every error with one sentence."""

    async def refused(request: Request, error: Any) -> Response:
        if error.status_code == 400:  # FastAPI could not read the body, for instance as UTF-8
            return refusal(request.url.path, 422, _NO_JSON)
        return refusal(request.url.path, error.status_code, str(error.detail), error.headers)

    async def invalid(request: Request, error: Any) -> Response:
        return refusal(request.url.path, 422, _in_words(error.errors()))

    async def mistaken(request: Request, error: Any) -> Response:
        if isinstance(error, OutOfMemoryError):
            return refusal(request.url.path, 413, str(error))
        status = 406 if isinstance(error, MissingExtraError) else 422
        return refusal(request.url.path, status, str(error))

    async def gone(request: Request, error: Any) -> Response:
        return Response(status_code=499)  # never sent

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(ElmoKitError, mistaken)
    app.add_exception_handler(ClientGoneError, gone)


def _in_words(mistakes: list[dict[str, Any]]) -> str:
    """Say where a body is wrong, without repeating the text in it."""
    first = mistakes[0] if mistakes else {"loc": ("body",), "msg": "is invalid"}
    parts = [str(part) for part in first["loc"] if part != "body"]
    # a field that may have several types has a mistake for each of them
    types_only = {mistake["type"].endswith("_type") for mistake in mistakes} == {True}
    if parts and parts[0] in _EXPECTED and types_only:
        return f"{parts[0]} must be {_EXPECTED[parts[0]]}"
    if not types_only:
        first = next((m for m in mistakes if not m["type"].endswith("_type")), first)
        parts = [part for part in map(str, first["loc"]) if part != "body" and "[" not in part]
    place = ".".join(parts)[:100]
    more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 and types_only else ""
    kind = first.get("type")
    said = _NO_JSON if kind == "json_invalid" else str(first["msg"])
    return f"{place}: {said}{more}" if place and kind != "json_invalid" else said + more
