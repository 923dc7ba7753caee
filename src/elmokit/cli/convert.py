"""``elmokit convert``: write a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import choice
from elmokit.cli.output import say


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="Model: a folder, a ZIP archive or a name; also model.tar.gz of AllenNLP, or "
            "model.ckpt-N of a training with bilm-tf."
        ),
    ],
    folder: Annotated[
        Path, typer.Argument(help="New folder to write; with --to onnx, a file OUT.onnx.")
    ],
    to: Annotated[
        str,
        choice(
            "native",
            "bilm-tf",
            "onnx",
            help="Format: ElmoKit's own, HDF5 as AllenNLP reads, or ONNX, which runs without "
            "PyTorch.",
        ),
    ] = "native",
    dtype: Annotated[
        str,
        choice(
            "float32",
            "float16",
            "int8",
            "int4",
            help="Precision; all but float32 make smaller files, round, and need --to native or "
            "--to onnx. int4 rounds the softmax to four bits, the rest to eight; it needs --to "
            "native.",
        ),
    ] = "float32",
    part: Annotated[
        str | None,
        typer.Option(help="ELMo or mix of an AllenNLP model with several: scalar_mix_1."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False,
) -> None:
    """Write a model of any known format in ElmoKit's own, in the published format, or as ONNX."""
    from elmokit.elmo import Elmo

    elmo = Elmo.load(source, part=part, device="cpu")
    if to == "onnx":
        from elmokit.integrations.onnx import export_onnx

        export_onnx(elmo, folder, dtype=dtype, overwrite=force)
    else:
        elmo.save(folder, format=to, overwrite=force, dtype=dtype)
    say(f"{folder}: {to}, {elmo.n_parameters:,} parameters, from {elmo.format}")
