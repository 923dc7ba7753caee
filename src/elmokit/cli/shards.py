"""``elmokit shards``: check, merge or describe what ``elmokit embed --engine`` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.mistakes import expanded
from elmokit.cli.output import print_table, say
from elmokit.errors import InputError, OutputError

ACTIONS = ("verify", "merge", "stats")


def shards(
    folder: Annotated[str, typer.Argument(help="Folder or URL written by elmokit embed --engine.")],
    action: Annotated[
        str,
        typer.Argument(
            help="verify: compare all shards with their checksums; merge: write them to one FILE; "
            "stats: print what the folder contains.",
            autocompletion=lambda: list(ACTIONS),
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(help="For merge: .hdf5, .h5, .npz or .parquet file to write.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For stats: print JSON instead of a table.")
    ] = False,
) -> None:
    """Check, merge or describe a folder of shards.

    A merged file has the layout of elmokit embed without --engine.
    """
    if action not in ACTIONS:
        raise InputError(f"the argument ACTION must be verify, merge or stats, not {action!r}")
    if (file is not None) != (action == "merge"):
        raise InputError("merge needs the FILE to write; verify and stats take none")
    if as_json and action != "stats":
        raise InputError("--json goes with stats")

    from elmokit.cluster import shard_tools

    if action == "verify":
        problems = shard_tools.verify_shards(folder)
        for problem in problems:
            print(problem)
        if problems:
            raise OutputError(
                f"{len(problems):,} problems in {folder}; delete damaged files, and run elmokit "
                "embed again with --resume"
            )
        found = shard_tools.shard_stats(folder)
        say(f"{folder}: all {found['shards']:,} shards are complete, {found['tokens']:,} tokens")
    elif file is not None:
        file = expanded(file)
        merged = shard_tools.merge_shards(folder, file)
        size = file.stat().st_size / 1e6
        say(f"{file}: {len(merged):,} sentences, {merged.n_tokens:,} tokens, {size:,.1f} MB")
    else:
        _print_stats(folder, as_json)


def _print_stats(folder: str, as_json: bool) -> None:
    from elmokit.cluster.shard_tools import shard_stats

    found = shard_stats(folder)
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
        return
    workers = found.pop("workers")
    found["layers"] = str(found["layers"]).strip("[]")
    shown = [
        [name, f"{v:,}" if isinstance(v, int | float) else str(v)] for name, v in found.items()
    ]
    print_table(["", folder], shown)
    print_table(["worker", "tokens/s"], [[name, f"{rate:,}"] for name, rate in workers.items()])
