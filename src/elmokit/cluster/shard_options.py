"""How to embed a corpus as shards, and what is wrong with it before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.arguments import flag, one_of, whole_number
from elmokit.cluster.shard_store import Store, is_disk, open_place
from elmokit.cluster.shard_writer import ModelSpec
from elmokit.errors import InputError, MissingExtraError
from elmokit.inference.layers import Layers
from elmokit.inference.pooling import POOLINGS
from elmokit.inference.vectors import check_batch_size, float_type

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class ShardOptions:
    """How to embed a corpus as shards."""

    layers: Layers = "all"
    """As for :meth:`elmokit.Elmo.encode`."""
    dtype: str = "float16"
    """float16 or float32."""
    state: str = "zero"
    """What each sentence starts from: zero or warm."""
    batch_size: int | None = None
    """Most sentences in a batch; None chooses automatically."""
    sentence_vectors: str | None = None
    """mean, max or first-last: also write one vector per sentence."""
    text_column: str = "text"
    """The column of Parquet, or the key of JSON lines, with the text."""
    shard_rows: int = 10_000
    """About how many rows a shard has."""
    engine: str = "local"
    """local: processes of this machine; ray: a Ray cluster."""
    address: str = "auto"
    """Of the Ray cluster; auto finds the running one, local starts one on this machine."""
    workers: int | None = None
    """How many; None for one per core or GPU."""
    gpus_per_worker: float | None = None
    """GPUs that each worker takes, such as 1 or 0.5."""
    resume: bool = False
    """Continue a run that was stopped."""
    restart: bool = False
    """Discard an earlier run."""


def check_options(model: ModelSpec, inputs: Sequence[str | Path], options: ShardOptions) -> None:
    """Raise on a mistake before any work is done."""
    if not inputs:
        raise InputError("there is no input; give files, folders or URLs")
    float_type(options.dtype)
    one_of(options.engine, "engine", ENGINES)
    if options.state == "carry":
        raise InputError(
            'state="carry" continues from the sentence before, but shards are computed apart; use '
            'state="zero" or "warm"'
        )
    one_of(options.state, "state", ("zero", "warm"))
    check_batch_size(options.batch_size)
    whole_number(options.shard_rows, "shard_rows", 1)
    if options.sentence_vectors is not None:
        one_of(options.sentence_vectors, "sentence_vectors", POOLINGS)
    if options.engine == "local" and options.address != "auto":
        raise InputError(f'address={options.address!r} goes with engine="ray"')
    if options.gpus_per_worker:
        if model.device is not None and not model.device.startswith("cuda"):
            raise InputError(
                f"gpus_per_worker={options.gpus_per_worker:g} needs GPUs; leave out "
                f"device={model.device!r}"
            )
        if options.engine == "local" and options.gpus_per_worker > 1:
            raise InputError(
                f"gpus_per_worker={options.gpus_per_worker:g}, but a process uses one GPU; give 1 "
                "or less"
            )
    flag(options.resume, "resume")
    flag(options.restart, "restart")
    if options.resume and options.restart:
        raise InputError("pass resume=True or restart=True, not both")
    try:
        import pyarrow.parquet  # noqa: F401

        if options.engine == "ray":
            import ray  # noqa: F401
    except ImportError as error:
        purpose = f'engine="{options.engine}"'
        extra = "cluster" if options.engine == "ray" else "parquet"
        raise MissingExtraError(error.name or "pyarrow", extra, purpose) from None


def check_apart(inputs: Sequence[str | Path], store: Store) -> None:
    """Raise if the output is inside a folder of the input, where it would be read as text."""
    for given in map(str, inputs):
        fs, path = open_place(given)
        if type(fs) is type(store.fs) and f"{store.path()}/".startswith(f"{path.rstrip('/')}/"):
            if is_disk(fs) and Path(path).is_file():
                continue  # then it cannot be a folder, which is another mistake
            raise InputError(
                f"the output {store.url} is inside the input {given}; choose another folder"
            )
