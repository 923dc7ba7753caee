"""Counters for Prometheus: requests, batches, and what waits."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_POWERS = tuple(float(2**k) for k in range(13))


@dataclass(frozen=True)
class BatchMetrics:
    """Counters of one model's queue."""

    waiting: Gauge
    abandoned: Counter
    refused: Counter
    texts: Histogram
    tokens: Counter
    seconds: Counter

    def batch(self, texts: int, tokens: int, seconds: float) -> None:
        """Count a batch."""
        self.texts.observe(texts)
        self.tokens.inc(tokens)
        self.seconds.inc(seconds)


class Metrics:
    """All counters of a service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._requests = Counter(
            "elmokit_requests", "Requests.", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "elmokit_request_seconds",
            "Seconds from the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        queue, own = ["model", "lane"], self.registry
        self._waiting = Gauge("elmokit_queue_texts", "Texts that wait.", queue, registry=own)
        self._abandoned = Counter(
            "elmokit_abandoned", "Requests whose client hung up.", queue, registry=own
        )
        self._refused = Counter("elmokit_refused", "Requests refused: 429.", queue, registry=own)
        self._texts = Histogram(
            "elmokit_batch_texts", "Texts of a batch.", queue, buckets=_POWERS, registry=own
        )
        self._tokens = Counter("elmokit_tokens", "Tokens read by a model.", queue, registry=own)
        self._busy = Counter(
            "elmokit_busy_seconds", "Seconds that a model was busy.", queue, registry=own
        )

    def of_queue(self, model: str, lane: str) -> BatchMetrics:
        """Return the counters of a queue."""
        families = (
            self._waiting, self._abandoned, self._refused, self._texts, self._tokens, self._busy,
        )  # fmt: skip
        return BatchMetrics(*(one.labels(model, lane) for one in families))  # type: ignore[arg-type]

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all counters in the text format of Prometheus."""
        return generate_latest(self.registry)
