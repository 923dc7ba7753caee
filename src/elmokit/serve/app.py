"""The service as an ASGI app, and its server."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from elmokit._version import __version__
from elmokit.errors import InputError
from elmokit.serve import (
    routes_about,
    routes_pairs,
    routes_tasks,
    routes_vectors,
    routes_words,
)
from elmokit.serve.access_log import AccessLog
from elmokit.serve.loaded import Loaded, load_all
from elmokit.serve.refusals import add_refusals
from elmokit.serve.security import Guard
from elmokit.serve.service_settings import ServeSettings


def create_app(settings: ServeSettings | None = None, loaded: Loaded | None = None) -> FastAPI:
    """Return the service.

    Args:
        settings: What to serve; default: the bundled English model.
        loaded: What is loaded already, instead of settings.
    """
    loaded = load_all(settings or ServeSettings()) if loaded is None else loaded

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        for model in loaded.every_model:
            model.start()
        loaded.accepting = True
        yield
        loaded.accepting = False
        for model in loaded.every_model:
            await model.close()

    app = FastAPI(
        title="ElmoKit",
        version=__version__,
        description="Contextual word vectors from ELMo models.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own page loads scripts from elsewhere
        redoc_url=None,
    )
    app.state.loaded = loaded
    pages, page_paths = routes_about.page_router()
    for router in (
        routes_vectors.router,
        routes_pairs.router,
        routes_words.router,
        routes_tasks.router,
        routes_about.router,
        pages,
    ):
        app.include_router(router)
    add_refusals(app)
    # the last one added is the first to see a request
    if loaded.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(loaded.settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(Guard, settings=loaded.settings, open_paths=page_paths)
    app.add_middleware(AccessLog, metrics=loaded.metrics)
    return app


def make_server(app: FastAPI) -> uvicorn.Server:
    """Return a server for an app; ``run(sockets=[…])`` serves until SIGTERM or Ctrl-C.

    Then it stops accepting connections, finishes all requests, and returns.
    """
    loaded: Loaded = app.state.loaded
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(loaded.settings.limits.timeout) + 5,
        backlog=2048,
        h11_max_incomplete_event_size=64 << 10,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise InputError(f"cannot listen on {host}, port {port}: {error}") from None
    return bound
