"""``elmokit plan``: time, machines, storage and cost of a large corpus."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from elmokit.cli.options import choice
from elmokit.cli.output import print_table
from elmokit.errors import InputError


def plan(
    tokens: Annotated[float, typer.Argument(help="Tokens of the corpus, such as 1e9.")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="en, small or original; any other name with --rate and --dim.",
        ),
    ] = "en",
    unit: Annotated[
        str | None,
        choice("cpu", "gpu", help="Count in CPU cores or in GPUs.", show_default="both"),
    ] = None,
    units: Annotated[
        int | None, typer.Option(min=1, help="Cores or GPUs.", show_default="1")
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(help="Time limit in days; computes the cores or GPUs, instead of --units."),
    ] = None,
    precision: Annotated[
        str | None,
        choice(
            "float32",
            "int8",
            "bfloat16",
            help="Precision of the LSTMs, as with --quantize.",
            show_default="all that were measured",
        ),
    ] = None,
    layers: Annotated[int, typer.Option(min=1, help="Layers to store.")] = 3,
    storage: Annotated[
        str,
        choice(
            "float16",
            "float32",
            "pq",
            help="Form of the stored vectors; pq is product quantisation to 64 bytes.",
        ),
    ] = "float16",
    rate: Annotated[
        float | None,
        typer.Option(help="Tokens per second of a core or GPU.", show_default="as measured"),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(min=1, help="Width of the vectors.", show_default="that of the model"),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Price of a core or GPU per hour.",
            show_default="0.04 for a core, 4 for a GPU",
        ),
    ] = None,
    write_rate: Annotated[
        float | None,
        typer.Option(
            help="Bytes of vectors that a process writes per second.", show_default="as measured"
        ),
    ] = None,
    writers: Annotated[int, typer.Option(min=1, help="Processes per GPU.")] = 8,
    efficiency: Annotated[
        float, typer.Option(help="Share of the rate that many machines reach.")
    ] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Estimate time, machines, storage and cost of a large corpus.

    The rates were measured with the commands in benchmarks; --json names the source of each. Prices
    are examples; give your own.
    """
    from elmokit.cluster.cost_plan import RATES, plan_corpus

    given: dict[str, Any] = {
        "model": model, "units": units, "days": days, "rate": rate, "dim": dim, "price": price,
        "write_rate": write_rate, "writers": writers, "efficiency": efficiency,
    }  # fmt: skip
    if rate is not None and unit is None:
        raise InputError("--rate needs --unit: give the unit that reaches this rate")
    kinds = [
        (one, kind)
        for name, one, kind in RATES
        if name == model and unit in (None, one) and precision in (None, kind)
    ]
    if rate is not None or not kinds:
        kinds = [(unit or "cpu", precision or "float32")]
    plans = [
        plan_corpus(tokens, unit=one, precision=kind, layers=layers, storage=storage, **given)
        for one, kind in kinds
    ]
    forms = [("float32", layers), ("float16", layers), ("float16", 1), ("pq", 1)]
    names = list(dict.fromkeys([*forms, (storage, layers)]))
    first, kind = kinds[0]
    sizes = [
        plan_corpus(tokens, unit=first, precision=kind, layers=n, storage=form, **given)
        for form, n in names
    ]
    if as_json:
        stored = [
            {"storage": form, "layers": n, "bytes": found.storage_bytes}
            for (form, n), found in zip(names, sizes, strict=True)
        ]
        found = {"plans": [one.to_dict() for one in plans], "storage": stored}
        print(json.dumps(found, indent=1))
        return
    from elmokit.io.progress import long_duration
    from elmokit.io.space import shown_bytes

    rows = [
        [
            f"{one.units:,} {'core' if one.unit == 'cpu' else 'GPU'}{'s' * (one.units > 1)}",
            one.precision,
            f"{one.rate:,.0f}",
            f"{one.written_rate:,.0f}",
            long_duration(one.seconds),
            f"{one.unit_hours:,.0f}",
            f"{one.cost:,.0f}",
        ]
        for one in plans
    ]
    columns = ["", "precision", "tokens/s", "written/s", "time", "unit hours", "cost"]
    print_table(columns, rows, f"{tokens:,.0f} tokens with {model}")
    print_table(
        ["stored", "bytes per token", "in all"],
        [
            [f"{n} layer{'s' * (n > 1)}, {form}", f"{one.vector_bytes:,.0f}",
             shown_bytes(round(one.storage_bytes))]
            for (form, n), one in zip(names, sizes, strict=True)
        ],
    )  # fmt: skip
