"""``elmokit convert``: a model into another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import open_model


def convert(
    source: Annotated[str, typer.Argument(help="Folder, ZIP archive or name of a model.")],
    folder: Annotated[Path, typer.Argument(help="New folder to write.")],
    to: Annotated[str, typer.Option(help="native, or bilm-tf (HDF5, as AllenNLP reads it).")] = (
        "native"
    ),
    dtype: Annotated[
        str,
        typer.Option(
            help="float32, or for native float16, int8 or int4 (the softmax alone in four bits): "
            "smaller files, rounded."
        ),
    ] = "float32",
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it is there.")] = (
        False
    ),
) -> None:
    """Write a model of any known format in ElmoKit's own or in the published one."""
    elmo = open_model(source, device="cpu")
    elmo.save(folder, format=to, overwrite=force, dtype=dtype)
    print(f"{folder}: {to}, {elmo.n_parameters:,} parameters, from {elmo.format}")
