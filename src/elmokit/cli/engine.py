"""``elmokit embed --engine``: messages about a run, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elmokit.cli.output import say, warn
from elmokit.cli.streams import StoppedError
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.cluster.shard_writer import ModelSpec

SHARDS = "Shards, with --engine"
"""Title of the options in the help."""


def run_engine(model: ModelSpec, inputs: Sequence[str], output: str, **given: Any) -> None:
    """Embed a corpus as shards, and print a summary.

    Args:
        model: The model.
        inputs: Files, folders and URLs.
        output: A folder or URL.
        **given: Fields of ShardOptions.
    """
    from elmokit.cluster.embed_shards import embed_shards
    from elmokit.cluster.shard_options import ShardOptions

    try:
        done = embed_shards(model, inputs, output, ShardOptions(**given), say)
    except KeyboardInterrupt:
        raise StoppedError("stopped; add --resume to the same command to continue") from None
    resumed = f" ({done.resumed:,} from earlier runs)" if done.resumed else ""
    say(
        f"{output}: {done.shards:,} shards{resumed}, {done.rows:,} sentences, {done.tokens:,} "
        f"tokens, {done.bytes / 1e6:,.1f} MB, {done.seconds:,.1f} s"
    )
    if done.rates:
        rates = sorted(done.rates.values())
        say(
            f"{len(rates)} workers with {rates[0]:,.0f} to {rates[-1]:,.0f} tokens/s each, "
            f"{done.retried:,} attempts repeated, {len(done.set_aside):,} shards set aside"
        )
    if done.retired:
        warn(f"workers that gave up: {len(done.retired):,}; the last one: {done.retired[-1]}")
    if done.set_aside:
        shard, reason = next(iter(done.set_aside.items()))
        total = done.shards + len(done.set_aside)
        raise InputError(
            f"{len(done.set_aside):,} of {total:,} shards were set aside, all others are done; "
            f"shard {shard}: {reason}; manifest.json lists all of them, and --resume tries them "
            "again"
        )
