"""Who may ask, and how much: keys, the Host header, size and pace of bodies, response headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
import traceback
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.errors import InputError
from elmokit.serve.access_log import note
from elmokit.serve.refusals import RefusedError, refusal
from elmokit.serve.service_settings import ServeSettings

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a browser may load on the page: only files of the service."""

_PROBES = ("/health", "/ready")
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names of this machine."""

_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_LEAST_KEY = 8  # characters; a shorter key is a mistake
# what answers without a key: nothing in it comes from a model, and probes and browsers send none
_OPEN = frozenset({"/health", "/ready", "/docs", "/docs.css", "/openapi.json"})


def read_keys(path: Path) -> tuple[str, ...]:
    """Read a file with one key per line; blank lines and lines that start with # are skipped."""
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the keys in {path}: {error}") from None
    keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not keys:
        raise InputError(f"{path} has no key; expected one per line")
    return check_keys(keys)


def check_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Check that keys can be sent in a header and are not too short to be secret."""
    for number, key in enumerate(keys, 1):
        if len(key) < _LEAST_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise InputError(
                f"key {number} must have at least {_LEAST_KEY} ASCII characters and no space"
            )
    return tuple(keys)


class Guard:
    """Refuses requests before the app sees them, and adds headers to all answers.

    Args:
        app: What answers the others.
        settings: Keys, hosts and limits.
        open_paths: Paths that need no key, besides those of health and documentation.
    """

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, open_paths: frozenset[str] = frozenset()
    ) -> None:
        self._app, self._limits, self._open = app, settings.limits, _OPEN | open_paths
        self._keys = [_digest(key.encode()) for key in settings.keys]
        self._hosts = frozenset(host.lower() for host in settings.hosts)
        self._headers = _HEADERS
        if settings.origins:  # pages of other origins may read the answers
            self._headers = [(k, v) for k, v in _HEADERS if k != b"cross-origin-resource-policy"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the app do so."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        headers = dict(scope["headers"])
        try:
            self._check(scope, headers)
        except RefusedError as error:
            answer = refusal(scope["path"], error.status_code, error.detail, error.headers)
            await answer(scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, self._bounded(receive), send_with_headers)
        except Exception as error:  # its message may quote the text, so it is not logged
            *_, last = traceback.extract_tb(error.__traceback__)
            place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            note(scope, error=type(error).__name__, at=place)
            if not started:
                answer = refusal(
                    scope["path"], 500, f"this request failed ({type(error).__name__})"
                )
                await answer(scope, receive, send_with_headers)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        probe = scope["path"] in _PROBES  # load balancers ask by address
        if self._hosts and not probe and _host_name(headers.get(b"host", b"")) not in self._hosts:
            raise RefusedError(421, "the Host header names another service; use this one's name")
        if self._keys and not self._is_open(scope) and not self._has_key(headers):
            error = RefusedError(401, "the key is missing or wrong; send Authorization: Bearer KEY")
            error.headers = {"WWW-Authenticate": "Bearer"}
            raise error
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._limits.payload_bytes:
            raise self._too_large()

    def _is_open(self, scope: Scope) -> bool:
        path: str = scope["path"]
        preflight = scope["method"] == "OPTIONS" and b"origin" in dict(scope["headers"])
        return path in self._open or preflight

    def _has_key(self, headers: dict[bytes, bytes]) -> bool:
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        digest = _digest(given.strip())
        # all keys are compared, each in constant time
        right = [hmac.compare_digest(digest, key) for key in self._keys]
        return scheme.lower() == b"bearer" and any(right)

    def _too_large(self) -> RefusedError:
        most = self._limits.payload_bytes
        return RefusedError(413, f"the body has more than {most:,} bytes; send fewer texts at once")

    def _bounded(self, receive: Receive) -> Receive:
        """Return ``receive`` with a limit on the size of a body and on the time it takes."""
        size, complete, until = 0, False, time.monotonic() + self._limits.timeout

        async def bounded() -> MutableMapping[str, Any]:
            nonlocal size, complete
            if complete:  # what follows is that the client hangs up
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), until - time.monotonic())
            except asyncio.TimeoutError:
                raise RefusedError(408, "the body did not arrive in time; send it again") from None
            size += len(message.get("body", b""))
            complete = message["type"] != "http.request" or not message.get("more_body", False)
            if size > self._limits.payload_bytes:
                raise self._too_large()
            return message

        return bounded


def _digest(key: bytes) -> bytes:
    """Return a digest of a key: digests are equally long, whatever the keys are."""
    return hashlib.sha256(key).digest()


def _host_name(host: bytes) -> str:
    """Return a Host header without its port."""
    name = host.decode("latin-1").lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name
