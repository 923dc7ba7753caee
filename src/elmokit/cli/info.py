"""``elmokit info``: what a model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.common import open_model


def info(
    model: Annotated[str, typer.Argument(help="Folder, ZIP archive or name of a model.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a model's format, sizes, parameters, tokenizer and checksum."""
    from elmokit.formats import find_model

    path = find_model(model)
    elmo = open_model(model, device="cpu")
    encoder, context = elmo.config.token_encoder, elmo.config.context
    facts: dict[str, Any] = {
        "model": str(path),
        "format": elmo.format,
        "bytes on disk": _size(path),
        "parameters": elmo.n_parameters,
        "vector width": elmo.dim,
        "layers": elmo.n_layers,
        "directions": context.n_directions,
        "context": context.kind,
        "cells" if context.kind == "lstm" else "feed-forward": context.cell_dim,
        "projection": context.projection_dim,
        "cell clip": context.cell_clip,
        "projection clip": context.proj_clip,
        "residual": context.skip_connections,
        "filters": " ".join(f"{width}:{count}" for width, count in encoder.filters),
        "highway layers": encoder.n_highway,
        "activation": encoder.activation,
        "alphabet": encoder.alphabet,
        "characters a word": encoder.max_characters,
        "words with a vector": encoder.n_words,
        "softmax words": elmo.config.vocabulary_size,
        "tokenizer": elmo.tokenizer.name,
        "weights sha256": elmo.checkpoint().checksum(),
    }
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for key, value in facts.items():
        print(f"{key:<20} {f'{value:,}' if type(value) is int else value}")


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
