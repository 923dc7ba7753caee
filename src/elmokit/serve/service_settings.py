"""What to serve, to whom, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from elmokit.settings import check_rules, check_types


@dataclass(frozen=True)
class Limits:
    """What a client may ask for, and how much may wait."""

    payload_bytes: int = 2_000_000
    """Most bytes of a request's body."""
    texts: int = 256
    """Most texts of a request."""
    text_tokens: int = 2048
    """Most tokens of a text."""
    request_tokens: int = 16_384
    """Most tokens of a request."""
    batch_tokens: int = 4096
    """Most tokens of a batch; a longer text is a batch of its own."""
    queue: int = 512
    """Most texts that wait for a model. More are refused with 429."""
    timeout: float = 60.0
    """Seconds that a request may wait for its result; and that its body may take to arrive."""

    def __post_init__(self) -> None:
        check_types("limits", self)
        names = ("payload_bytes", "texts", "text_tokens", "request_tokens", "batch_tokens")
        rules = [(getattr(self, name) >= 1, name, "at least 1") for name in names]
        rules += [
            (self.queue >= self.texts, "queue", f"at least {self.texts}, the texts of a request"),
            (self.timeout > 0, "timeout", "more than 0"),
        ]
        check_rules("limits", rules, self)


@dataclass(frozen=True)
class ServeSettings:
    """What to serve, and to whom."""

    models: tuple[str, ...] = ("en",)
    """Names or paths of models, or NAME=PATH."""
    tasks: tuple[str, ...] = ()
    """Folders of task models, or NAME=FOLDER."""
    index: Path | None = None
    """Folder of an index; None for the small one in the package."""
    senses: Path | None = None
    """File of sense vectors."""
    wordnet: Path | None = None
    """Folder of WordNet, for the senses."""
    device: str | None = None
    """Where to compute; None for a GPU if available."""
    quantize: str | None = None
    """int8 or bfloat16; None for float32."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """Keys that clients must send one of; none for an open service."""
    hosts: tuple[str, ...] = ()
    """Accepted names in the Host header; none accepts all."""
    origins: tuple[str, ...] = ()
    """Origins of other pages that may call the service; none for no CORS."""
    limits: Limits = field(default_factory=Limits)
