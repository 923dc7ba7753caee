"""An HTTP service: vectors, probabilities, neighbours and tasks for any program, and a page."""

from __future__ import annotations

from importlib.util import find_spec

from elmokit.errors import MissingExtraError

for _package in ("fastapi", "uvicorn", "orjson", "prometheus_client"):
    if find_spec(_package) is None:
        raise MissingExtraError(_package, "serve", "The service")
