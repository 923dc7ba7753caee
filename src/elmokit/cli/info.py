"""``elmokit info``: facts about a model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.options import ModelOptions, with_model


@with_model(leave_out=("tokenizer", "device", "quantize"))
def info(
    model: ModelOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a model's format, sizes, parameters, tokenizer and checksum."""
    elmo = replace(model, device="cpu").load()
    path, files = _files(model)
    encoder, context = elmo.config.token_encoder, elmo.config.context
    facts: dict[str, Any] = {
        "model": str(path),
        "format": elmo.format,
        "bytes on disk": sum(file.stat().st_size for file in files if file.is_file()),
        "parameters": elmo.n_parameters,
        "vector width": elmo.dim,
        "layers": elmo.n_layers,
        "directions": context.n_directions,
        "context": context.kind,
        context.inner_label: context.cell_dim,
        "projection": context.projection_dim,
        "cell clip": context.cell_clip,
        "projection clip": context.proj_clip,
        "residual": context.skip_connections,
        "filters": " ".join(f"{width}:{count}" for width, count in encoder.filters),
        "highway layers": encoder.n_highway,
        "activation": encoder.activation,
        "alphabet": encoder.alphabet,
        "characters per word": encoder.max_characters,
        "word embeddings": encoder.n_words,
        "vocabulary size": elmo.config.vocabulary_size,
        "tokenizer": elmo.tokenizer.name,
        "script": elmo.config.script,
        "weights sha256": elmo.checkpoint().checksum(),
    }
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for key, value in facts.items():
        print(f"{key:<20} {f'{value:,}' if type(value) is int else value}")


def _files(model: ModelOptions) -> tuple[Path, Iterable[Path]]:
    """Where a model is, and its files."""
    from elmokit.formats import DEFAULT_MODEL, find_model

    if model.weight_file is not None and model.options_file is not None:
        return model.weight_file, (model.options_file, model.weight_file)
    path = find_model(model.model or DEFAULT_MODEL)
    return path, path.rglob("*") if path.is_dir() else (path,)
