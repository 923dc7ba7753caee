"""``elmokit serve``: an HTTP service and a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import DeviceOption, choice
from elmokit.cli.output import say, warn

KEY_VARIABLE = "ELMOKIT_API_KEY"


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="biLM, as PATH or NAME=PATH; repeat for several. The first is the default one.",
            show_default="en",
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Task model, as FOLDER, NAME=FOLDER or the name of a bundled one; repeat for "
            "several."
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            help="Folder written by elmokit index.", show_default="a small one for the model en"
        ),
    ] = None,
    senses: Annotated[
        Path | None, typer.Option(help="File written by elmokit wsd train; needs --wordnet.")
    ] = None,
    wordnet: Annotated[
        Path | None,
        typer.Option(
            help="Folder of WordNet 3.0 with index.sense, data.noun, noun.exc and so on.",
            envvar="ELMOKIT_WORDNET",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 for a free one.")
    ] = 8000,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help=f"Keys of clients, one per line. The variable {KEY_VARIABLE} holds a single one.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name by which clients call the service; repeat for several.",
            show_default="this machine, or any with a public --host",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Origin of another page that may call the service; repeat for several."),
    ] = None,
    device: DeviceOption = None,
    quantize: Annotated[
        str | None,
        choice(
            "int8",
            "bfloat16",
            help="Run large models faster, less exactly: int8 on a CPU, bfloat16 on a GPU.",
        ),
    ] = None,
    max_batch_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a batch.")] = 4096,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Most texts that wait; more are refused with 429.")
    ] = 512,
    max_texts: Annotated[int, typer.Option(min=1, help="Most texts of a request.")] = 256,
    max_text_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a text.")] = 2048,
    max_payload: Annotated[int, typer.Option(min=1, help="Most bytes of a request.")] = 2_000_000,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds that a request may take.")
    ] = 60.0,
    access_log: Annotated[
        bool,
        typer.Option(help="Write a line of JSON per request to standard error, without its text."),
    ] = True,
) -> None:
    """Serve models over HTTP, with a page to try them; see docs/serve.md.

    On SIGTERM the service stops accepting connections, finishes what is queued, and exits with 0.
    """
    from elmokit.serve.app import create_app, listen, make_server
    from elmokit.serve.security import LOCAL, check_keys, read_keys
    from elmokit.serve.service_settings import Limits, ServeSettings

    keys = () if api_key_file is None else read_keys(api_key_file)
    given = os.environ.get(KEY_VARIABLE)
    if given is not None:  # an empty one is a mistake, not a service without keys
        keys = (*keys, *check_keys([given]))
    local = host in LOCAL
    hosts = tuple(allow_host or ()) or (LOCAL if local else ())
    settings = ServeSettings(
        models=tuple(model or ("en",)),
        tasks=tuple(task or ()),
        index=index,
        senses=senses,
        wordnet=wordnet,
        device=device,
        quantize=quantize,
        keys=keys,
        hosts=hosts,
        origins=tuple(allow_origin or ()),
        limits=Limits(
            payload_bytes=max_payload,
            texts=min(max_texts, max_queue),
            text_tokens=max_text_tokens,
            request_tokens=max(Limits.request_tokens, max_text_tokens),
            batch_tokens=max_batch_tokens,
            queue=max_queue,
            timeout=timeout,
        ),
    )
    if not local and not keys:
        warn(
            f"the service listens on {host} without a key, so anyone who reaches it can use it; "
            f"give --api-key-file, or set {KEY_VARIABLE}"
        )
    with listen(host, port) as socket:  # a port in use is noticed before models are loaded
        app = create_app(settings)
        socket.listen()  # clients that come from now on wait for the server
        shown = f"[{host}]" if ":" in host else host
        names = ", ".join(app.state.loaded.models)
        say(f"serving {names} on http://{shown}:{socket.getsockname()[1]} (Ctrl-C ends it)")
        _run(make_server(app), socket, access_log)


def _run(server: object, socket: object, access_log: bool) -> None:
    """Serve until a signal comes; after SIGTERM the exit code is 0."""
    import logging
    import signal
    import sys
    from typing import Any, cast

    logger = logging.getLogger("elmokit.serve.access")
    if access_log:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    sys.stdout.flush()
    # the server sends itself the signal again after its end
    signal.signal(signal.SIGTERM, lambda *_: None)
    cast(Any, server).run(sockets=[socket])
