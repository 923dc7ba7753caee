"""Routes about the service itself: health, what is loaded, counters, documentation, the page."""

from __future__ import annotations

from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from elmokit._version import __version__
from elmokit.analysis.scatter import BUNDLED, bundled_examples
from elmokit.serve.docs_page import STYLE, docs_html
from elmokit.serve.encodings import JsonResponse
from elmokit.serve.loaded import HOW_SENSES, Loaded, Model
from elmokit.serve.refusals import RefusedError
from elmokit.serve.schemas import problems
from elmokit.text.scripts import HAN

router = APIRouter(responses=problems())

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
"""Files of the page that are served, by their ending."""


@router.get("/health")
async def health() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/ready", responses=problems(503))
async def ready(request: Request) -> dict[str, str]:
    """Say whether requests are accepted: 503 while the service stops."""
    if not request.app.state.loaded.accepting:
        raise RefusedError(503, "the service is starting or stopping; try again", 1)
    return {"status": "ready"}


@router.get("/info")
async def info(request: Request) -> Response:
    """Return what is loaded, and the limits."""
    loaded: Loaded = request.app.state.loaded
    models = [_about(model) for model in loaded.models.values()]
    tasks = [
        {"name": name, "task": task.name, "labels": task.labels}
        for name, (task, _) in loaded.tasks.items()
    ]
    index = loaded.index
    limits = loaded.settings.limits
    return JsonResponse(
        {
            "version": __version__,
            "default_model": models[0]["name"],
            "models": models,
            "tasks": tasks,
            "index": {
                "available": index is not None,
                "bundled": index is not None and loaded.settings.index is None,
                "size": 0 if index is None else index.config.rows,
                "model": loaded.index_model or None,
                "how": loaded.how_index,
            },
            "senses": {"available": loaded.senses is not None, "how": HOW_SENSES},
            "limits": {
                "payload_bytes": limits.payload_bytes,
                "texts": limits.texts,
                "text_tokens": limits.text_tokens,
                "request_tokens": limits.request_tokens,
                "queue": limits.queue,
                "timeout_seconds": limits.timeout,
            },
        }
    )


def _about(model: Model) -> dict[str, Any]:
    elmo, tokenizer = model.elmo, model.elmo.tokenizer.name
    language = "zh" if tokenizer == "chinese" else "en" if tokenizer.startswith("english") else None
    return {
        "name": model.name,
        "dim": elmo.dim,
        "n_layers": elmo.n_layers,
        "tokenizer": tokenizer,
        "has_softmax": elmo.vocabulary is not None,
        "language": language,
        "precision": elmo.precision,
    }


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return the counters in the text format of Prometheus."""
    return Response(request.app.state.loaded.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/examples")
async def examples() -> Response:
    """Return labelled sentences with an ambiguous word, for /scatter."""
    found: dict[str, dict[str, Any]] = {"en": {}, "zh": {}}
    for word in BUNDLED:
        some = [{"text": one.sentence, "label": one.sense} for one in bundled_examples(word)]
        found["zh" if HAN.search(word) else "en"][word] = some
    return JsonResponse(found)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Return the documentation of all routes, as a page without scripts."""
    return Response(docs_html(request.app.openapi()), media_type="text/html")


@router.get("/docs.css", include_in_schema=False)
async def docs_style() -> Response:
    """Return the style of that page."""
    return Response(STYLE, media_type="text/css")


def page_files() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page: bytes and type by path, such as ``vendor/plot.js``."""
    folder = resources.files("elmokit.serve") / "page"
    found: dict[str, tuple[bytes, str]] = {}

    def read(below: Any, path: str) -> None:
        for entry in below.iterdir():
            ending = "." + entry.name.rpartition(".")[2]
            if entry.is_dir():
                read(entry, f"{path}{entry.name}/")
            elif ending in _KINDS:
                found[path + entry.name] = entry.read_bytes(), _KINDS[ending]

    if folder.is_dir():
        read(folder, "")
    return found


def page_router() -> tuple[APIRouter, frozenset[str]]:
    """Return the routes of the page, and their paths.

    There is a route for each file, and no other path leads to a file.
    """
    files = {"/" if k == "index.html" else f"/{k}": v for k, v in page_files().items()}
    pages = APIRouter()

    async def file(request: Request) -> Response:
        content, kind = files[request.scope["route"].path]
        return Response(content, media_type=kind)

    for path in files:
        pages.add_api_route(path, file, include_in_schema=False, methods=["GET"])
    return pages, frozenset(files)
