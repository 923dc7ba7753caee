"""One line of JSON for each request, never with its text, and its counters."""

from __future__ import annotations

import json
import logging
import time
from datetime import datetime, timezone
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.serve.service_metrics import Metrics

LOGGER = logging.getLogger("elmokit.serve.access")
"""Where the lines go. The command line sends them to standard error."""

_FACTS = "elmokit.facts"


def note(scope: Scope, **facts: Any) -> None:
    """Add facts about a request to its line: the model, and numbers of texts and tokens."""
    scope.setdefault(_FACTS, {}).update(facts)


class AccessLog:
    """Counts and logs requests.

    The path is logged only if it is that of a route, because a client could write anything into it.

    Args:
        app: What answers them.
        metrics: Where to count.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, started = 499, time.perf_counter()  # the client has gone, if nothing is sent

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        facts = scope.setdefault(_FACTS, {})
        try:
            await self._app(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", None) or "other"
            self._metrics.request(route, status, seconds)
            if LOGGER.isEnabledFor(logging.INFO):
                line = {
                    "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                    "method": scope["method"],
                    "route": route,
                    "status": status,
                    "seconds": round(seconds, 4),
                    "client": (scope.get("client") or ("",))[0],
                }
                LOGGER.info(json.dumps(line | facts))
