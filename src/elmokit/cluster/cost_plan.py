"""Plan a large corpus: time, machines, storage and cost, from measured rates.

A unit is a CPU core or a GPU. A core computes vectors and then writes them; a GPU computes while
several processes write:

    seconds per token of a core = 1 / rate + bytes / write_rate
    seconds per token of a GPU  = max(1 / rate, bytes / (write_rate × writers))
    time    = tokens × seconds per token / (units × efficiency)
    storage = tokens × layers × D × bytes of a number
    cost    = time × units × price
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from elmokit.arguments import number, one_of, whole_number
from elmokit.errors import InputError, shown


@dataclass(frozen=True)
class Rate:
    """A measured speed."""

    per_second: float
    """Tokens of one core or one GPU."""
    source: str
    """Where it was measured: the file of results."""


CPU, GPU = "cpu", "gpu"
EN, SMALL, ORIGINAL = "en", "small", "original"

RATES: dict[tuple[str, str, str], Rate] = {
    (SMALL, CPU, "float32"): Rate(6_545, "benchmarks/results/embed.md, embed per CPU-second"),
    (SMALL, CPU, "int8"): Rate(12_298, "benchmarks/results/cpu.md, words cached"),
    (SMALL, GPU, "float32"): Rate(967_884, "benchmarks/results/gpu.md, H200, to numpy"),
    (SMALL, GPU, "bfloat16"): Rate(928_639, "benchmarks/results/gpu.md, H200, to numpy"),
    (ORIGINAL, CPU, "float32"): Rate(689, "benchmarks/results/cpu.md, words cached"),
    (ORIGINAL, CPU, "int8"): Rate(1_588, "benchmarks/results/cpu.md, words cached"),
    (ORIGINAL, GPU, "float32"): Rate(443_807, "benchmarks/results/gpu.md, H200, to numpy"),
    (ORIGINAL, GPU, "bfloat16"): Rate(683_480, "benchmarks/results/gpu.md, H200, to numpy"),
    (EN, CPU, "float32"): Rate(1_549, "benchmarks/results/en.md, words cached"),
    (EN, CPU, "int8"): Rate(6_210, "benchmarks/results/en.md, words cached"),
}
"""By model, kind of unit, and precision. The rates of GPUs include the copy to the host."""

DIMS = {EN: 768, SMALL: 256, ORIGINAL: 1024}
"""Width D of the vectors of each model."""
N_LAYERS = 3
PRICES = {CPU: 0.04, GPU: 4.0}
"""Of a unit and hour, in the user's currency: about what clouds ask in dollars. Pass your own."""
BYTES = {"float32": 4.0, "float16": 2.0}
PQ_BYTES = 64
"""Bytes of a vector after product quantisation with 64 parts of 256 centroids."""
WRITE_RATE = Rate(167e6, "benchmarks/results/cluster.md")
"""Bytes of vectors that one process writes to Parquet per CPU-second."""
WRITERS = 8
"""Processes per GPU, each with a share of it, that write what it computes."""
COMPRESSED = 0.85
"""Size of float16 vectors in the shards' Parquet, compared with their bare numbers."""


@dataclass(frozen=True)
class CostPlan:
    """Time, storage and cost of a corpus."""

    tokens: float
    model: str
    unit: str
    """cpu (a core) or gpu."""
    precision: str
    rate: float
    """Tokens per second that a unit computes."""
    written_rate: float
    """Tokens per second that a unit computes and writes."""
    source: str
    """Of the rate."""
    units: int
    efficiency: float
    seconds: float
    unit_hours: float
    storage_bytes: float
    cost: float
    price: float
    """Of a unit and hour."""
    vector_bytes: float
    """Of one token in storage."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return dict(vars(self))


def plan_corpus(
    tokens: float,
    *,
    model: str = EN,
    unit: str = CPU,
    units: int | None = None,
    days: float | None = None,
    precision: str = "float32",
    layers: int = N_LAYERS,
    storage: str = "float16",
    rate: float | None = None,
    dim: int | None = None,
    price: float | None = None,
    write_rate: float | None = None,
    writers: int = WRITERS,
    efficiency: float = 0.9,
) -> CostPlan:
    """Compute the plan of a corpus.

    Args:
        tokens: Size of the corpus.
        model: en, small or original; any other name needs ``rate`` and ``dim``.
        unit: cpu or gpu.
        units: Cores or GPUs; default: 1, or as many as ``days`` asks for.
        days: How long it may take, instead of ``units``.
        precision: float32, int8 (cpu) or bfloat16 (gpu).
        layers: Layers to store: 1 to 3, or more for a deeper model.
        storage: float16, float32, or pq: product quantisation to 64 bytes per vector.
        rate: Tokens per second of one unit, instead of the measured one.
        dim: Width of the vectors, instead of the model's.
        price: Of a unit and hour.
        write_rate: Bytes of vectors that a process writes per second, instead of the measured rate.
        writers: Processes per GPU.
        efficiency: Share of the rate that remains when many units work at once.
    """
    tokens = number(tokens, "tokens", 1)
    unit = one_of(unit, "unit", (CPU, GPU))
    precision = one_of(precision, "precision", ("float32", "int8", "bfloat16"))
    storage = one_of(storage, "storage", (*BYTES, "pq"))
    layers = whole_number(layers, "layers", 1)
    efficiency = number(efficiency, "efficiency", 0.01, 1)
    measured = RATES.get((model, unit, precision))
    if rate is None and measured is None:
        known = sorted(f"{m} {u} {p}" for m, u, p in RATES)
        raise InputError(
            f"no rate was measured for the model {shown(model)} on {unit} in {precision}; pass "
            f"rate=, or one of: {', '.join(known)}"
        )
    if dim is None and model not in DIMS:
        raise InputError(f"the width of the model {shown(model)} is not known; pass dim=")
    width = whole_number(DIMS.get(model) if dim is None else dim, "dim", 1)
    speed = number(rate, "rate", 1e-6) if rate is not None else 0.0
    source = "given"
    if rate is None and measured is not None:
        speed, source = measured.per_second, measured.source
    writing = number(WRITE_RATE.per_second if write_rate is None else write_rate, "write_rate", 1)
    # vectors are quantised from shards of float16
    written = layers * width * BYTES.get(storage, BYTES["float16"])
    if unit == CPU:
        per_token = 1 / speed + written / writing
    else:
        per_token = max(1 / speed, written / (writing * whole_number(writers, "writers", 1)))
    effective = efficiency / per_token
    if units is not None and days is not None:
        raise InputError("pass units= or days=, not both")
    if days is not None:
        units = max(1, math.ceil(tokens / (effective * number(days, "days", 1e-6) * 86_400)))
    units = whole_number(1 if units is None else units, "units", 1)
    seconds = tokens / (effective * units)
    per_vector = PQ_BYTES if storage == "pq" else width * BYTES[storage] * COMPRESSED
    hourly = number(PRICES[unit] if price is None else price, "price", 0)
    hours = seconds * units / 3600
    return CostPlan(
        tokens=tokens,
        model=model,
        unit=unit,
        precision=precision,
        rate=speed,
        written_rate=1 / per_token,
        source=source,
        units=units,
        efficiency=efficiency,
        seconds=seconds,
        unit_hours=hours,
        storage_bytes=tokens * layers * per_vector,
        cost=hours * hourly,
        price=hourly,
        vector_bytes=layers * per_vector,
    )
