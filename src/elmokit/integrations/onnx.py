"""Models as ONNX files, which other programs and languages run without PyTorch."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from elmokit._version import __version__
from elmokit.arguments import file_path, flag, instance, wrong
from elmokit.elmo import Elmo
from elmokit.errors import (
    InputError,
    MissingExtraError,
    OutputError,
    UnsupportedModelError,
    shown,
)
from elmokit.io.atomic import check_place, new_file
from elmokit.text.chinese import simplified

if TYPE_CHECKING:
    from elmokit.integrations.onnx_graph import Graph

DTYPES = ("float32", "float16", "int8")
"""Precisions in which :func:`export_onnx` stores weights."""
OPSET, IR_VERSION = 20, 9
_MOST_BYTES = (1 << 31) - (1 << 20)  # of a file without external data, with room for the nodes
_LICENCE = (
    "Software: Apache-2.0. The weights have the licence of the model that they come from; its "
    "README.md or its publisher states it."
)


def export_onnx(
    elmo: Elmo, path: str | Path, *, dtype: str = "float32", overwrite: bool = False
) -> None:
    """Write a model as one ONNX file.

    The graph has two inputs: ``ids`` (B, T, C), character ids of the words of B sentences, zero
    after the end of a sentence, and ``lengths`` (B,), the number of words of each; both are int64.
    It adds the sentence marks itself. Its outputs in float32 are ``layers`` (L + 1, B, T, D) and
    ``mix`` (B, T, D), the model's own mix; both are zero after the end of a sentence. The metadata
    of the file says how to make the ids.

    Args:
        elmo: The model. Its softmax is left out.
        path: The file to write; its name ends in .onnx.
        dtype: "float32"; "float16" for half the size, computed in float32; or "int8" for a quarter
            of the size: LSTMs and transformers then multiply in eight bits, which is faster.
        overwrite: Replace an existing file.
    """
    instance(elmo, "elmo", Elmo, "a model from Elmo.load()")
    path = file_path(path, "path").expanduser()
    if dtype not in DTYPES:
        raise wrong("dtype", f"{', '.join(DTYPES[:-1])} or {DTYPES[-1]} in an ONNX file", dtype)
    if path.suffix != ".onnx":
        raise InputError(
            f"the name of an ONNX file must end in .onnx, unlike {shown(path.name)}; rename it"
        )
    check_place(path)
    if not flag(overwrite, "overwrite") and path.exists():
        raise OutputError(
            f"{path} exists already; choose another name, or pass overwrite=True to replace it"
        )
    try:
        import onnx
    except ModuleNotFoundError:
        raise MissingExtraError("onnx", "onnx", "writing ONNX files") from None
    model = _model(elmo, dtype)
    onnx.checker.check_model(model, full_check=True)
    content = model.SerializeToString()
    with new_file(path) as new:
        new.write_bytes(content)


def _model(elmo: Elmo, dtype: str) -> Any:
    from onnx import TensorProto, helper

    from elmokit.integrations.onnx_graph import Graph

    graph = Graph(dtype)
    layers, mix = _outputs(elmo, graph)
    n_bytes = sum(len(weight.raw_data) for weight in graph.weights)
    if n_bytes > _MOST_BYTES:
        raise UnsupportedModelError(
            f"an ONNX file has at most 2 GB, and these weights have {n_bytes / 1e9:.1f} GB; use "
            "another dtype"
        )
    for own, name in ((layers, "layers"), (mix, "mix")):
        graph.nodes.append(helper.make_node("Identity", [own], [name], name))
    config, batch = elmo.config, ["batch", "tokens"]
    columns, width = _marks(elmo).shape[1], config.context.output_dim
    made = helper.make_graph(
        graph.nodes,
        "elmo",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, [*batch, columns]),
            helper.make_tensor_value_info("lengths", TensorProto.INT64, batch[:1]),
        ],
        [
            helper.make_tensor_value_info(
                "layers", TensorProto.FLOAT, [config.n_layers, *batch, width]
            ),
            helper.make_tensor_value_info("mix", TensorProto.FLOAT, [*batch, width]),
        ],
        graph.weights,
    )
    model = helper.make_model(
        made,
        producer_name="elmokit",
        producer_version=__version__,
        doc_string=export_onnx.__doc__.split("Args:")[0].strip() if export_onnx.__doc__ else "",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, _metadata(elmo, dtype))
    return model


def _outputs(elmo: Elmo, graph: Graph) -> tuple[str, str]:
    """Add the whole model; return the names of all layers and of their mix."""
    from elmokit.integrations.onnx_graph import distinct_words, token_vectors
    from elmokit.integrations.onnx_layers import context_layers, positions

    bilm = copy.deepcopy(elmo.bilm).to("cpu", torch.float32)
    context = elmo.config.context
    words, index = distinct_words(graph, "ids", _marks(elmo))
    vectors = token_vectors(graph, bilm.token_encoder, words, _word_ids(elmo)["padding"])
    # the word at each place (T + 2, B), with both marks; places after the end do not matter
    begin, end, inner = (
        graph.op("Slice", index, graph.integers(first), graph.integers(last))
        for first, last in ((0, 1), (1, 2), (2, np.iinfo(np.int64).max))
    )
    shape = graph.op("Shape", "ids", end=2)
    inner = graph.op("Transpose", graph.op("Reshape", inner, shape, allowzero=1), perm=[1, 0])
    row = graph.op("Concat", graph.integers(1), graph.size("ids", 0), axis=0)
    begins, ends = (graph.op("Expand", mark, row) for mark in (begin, end))
    placed = graph.op("Concat", begins, inner, ends, axis=0)
    places = graph.op(
        "Unsqueeze", positions(graph, graph.size(placed, 0)), graph.integers(1)
    )  # (T + 2, 1)
    last = graph.op("Add", "lengths", graph.constant(1, np.int64))
    placed = graph.op("Where", graph.op("Equal", places, last), end, placed)
    tokens = graph.op("Gather", vectors, placed, axis=0)  # (T + 2, B, P)
    lengths = graph.op("Add", "lengths", graph.constant(2, np.int64))
    halves = [
        context_layers(graph, context, blocks, tokens, lengths, backward)
        for blocks, backward in zip(bilm.directions, (False, True), strict=False)
    ]
    found = [[tokens] * len(halves), *zip(*halves, strict=True)]
    axis = graph.integers(0)
    stacked = [graph.op("Unsqueeze", graph.joined(parts, 2), axis) for parts in found]
    layers = graph.op("Concat", *stacked, axis=0)  # (L + 1, T + 2, B, D)
    layers = graph.op("Slice", layers, graph.integers(1), graph.integers(-1), graph.integers(1))
    layers = graph.op("Transpose", layers, perm=[0, 2, 1, 3])
    inside = graph.op(
        "Less",
        positions(graph, graph.size("ids", 1)),
        graph.op("Unsqueeze", "lengths", graph.integers(1)),
    )  # (B, T)
    inside = graph.op("Unsqueeze", inside, graph.integers(2))
    layers = graph.op("Where", inside, layers, graph.constant(0))
    shares = elmo.mix.gamma.detach() * torch.softmax(elmo.mix.weights.detach(), 0)
    weighted = graph.op("Mul", layers, graph.constant(shares.cpu().view(-1, 1, 1, 1).numpy()))
    return layers, graph.op("ReduceSum", weighted, axis, keepdims=0)


def _marks(elmo: Elmo) -> np.ndarray[Any, Any]:
    """Ids (2, C) of the sentence marks."""
    marks = [elmo.alphabet.begin, elmo.alphabet.end]
    return elmo.alphabet.encode(marks, elmo.config.token_encoder.max_characters)


def _word_ids(elmo: Elmo) -> dict[str, int]:
    """The ids before, after and behind the characters of a word."""
    row = elmo.alphabet.encode([""], elmo.config.token_encoder.max_characters)[0]
    return {name: int(row[i]) for i, name in enumerate(("word_begin", "word_end", "padding"))}


def _metadata(elmo: Elmo, dtype: str) -> dict[str, str]:
    """What a program needs to know to use the file, as names and texts."""
    config, checkpoint = elmo.config, elmo.checkpoint()
    encoder = config.token_encoder
    values = {
        "format": "elmokit-onnx 1",
        "elmokit_version": __version__,
        "licence": _LICENCE,
        "source": Path(elmo.source).name,
        "dtype": dtype,
        "tokenizer": checkpoint.config.tokenizer,
        "script": config.script,
        "alphabet": encoder.alphabet,
        "max_characters": encoder.max_characters,
        **{f"{name}_id": number for name, number in _word_ids(elmo).items()},
        "n_layers": config.n_layers,
        "dim": config.context.output_dim,
        "config": json.dumps(config.to_dict()),
    }
    if encoder.alphabet == "codepoints":
        numbers = {c: i for i, c in enumerate(checkpoint.characters, 1)}
        if config.script == "simplified":
            numbers |= _traditional(numbers)
        values["character_ids"] = json.dumps(numbers, ensure_ascii=False)
        values["unknown_id"] = numbers["<oov>"]
    else:
        values["first_byte_id"] = 1  # of the byte 0
    if encoder.word_dim:
        numbers = {word: i for i, word in enumerate(checkpoint.words, 1)}
        values["word_ids"] = json.dumps(numbers, ensure_ascii=False)
        values["unknown_word_id"] = numbers["<oov>"]
    return {name: str(value) for name, value in values.items()}


def _traditional(numbers: dict[str, int]) -> dict[str, int]:
    """The ids of traditional characters, which are those of their simplified forms."""
    every = "".join(map(chr, (*range(0x2E80, 0xD800), *range(0xF900, 0x30000))))
    pairs = zip(every, simplified(every), strict=True)
    unknown = numbers["<oov>"]
    return {old: numbers.get(new, unknown) for old, new in pairs if old != new}
