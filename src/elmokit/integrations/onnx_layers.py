"""LSTMs and transformers as parts of an ONNX graph, over sentences of different lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from elmokit.config import ContextConfig
from elmokit.integrations.onnx_graph import Graph
from elmokit.nn.lstm import ProjectedLSTM
from elmokit.nn.transformer import TransformerBlock

_EPSILON = 1e-5  # of PyTorch's layer normalisation


def context_layers(
    graph: Graph,
    config: ContextConfig,
    blocks: nn.ModuleList,
    tokens: str,
    lengths: str,
    backward: bool,
) -> list[str]:
    """The outputs of all layers of one direction.

    Args:
        graph: Where to add the nodes.
        config: The kind of the layers and whether they add their input.
        blocks: The layers.
        tokens: Token vectors (T, B, P) with the sentence marks.
        lengths: Tokens (B,) of each sentence, marks included.
        backward: Whether the layers read from the end.

    Returns:
        For each layer (T, B, P); after the end of a sentence, the values mean nothing.
    """
    return _KINDS[config.kind](graph, config, blocks, tokens, lengths, backward)


def _lstms(
    graph: Graph,
    config: ContextConfig,
    blocks: nn.ModuleList,
    tokens: str,
    lengths: str,
    backward: bool,
) -> list[str]:
    active = _active(graph, tokens, lengths) if backward else None
    x, found = tokens, []
    for number, lstm in enumerate(blocks):
        assert isinstance(lstm, ProjectedLSTM)
        out = _lstm(graph, lstm, x, active)
        x = graph.op("Add", out, x) if config.skip_connections and number > 0 else out
        found.append(x)
    return found


def _lstm(graph: Graph, lstm: ProjectedLSTM, x: str, active: str | None) -> str:
    """One LSTM over (T, B, P), forwards.

    With ``active`` (T, B, 1), backwards: the state stays zero up to the end of each sentence, where
    its first token is.
    """
    bias = lstm.bias.detach().clone()
    bias[2 * lstm.cell_dim : 3 * lstm.cell_dim] += lstm.forget_bias
    gates = graph.product(x, lstm.input_weight.detach())
    gates = graph.op("Add", gates, graph.constant(bias.numpy()))
    rows = graph.size(x, 1)
    widths = {"h": lstm.output_dim, "c": lstm.cell_dim}
    starts = [
        graph.op("Expand", graph.constant(0), graph.joined([rows, graph.integers(width)], 0))
        for width in widths.values()
    ]
    inputs = [gates] if active is None else [gates, active]
    order = [int(active is not None)]
    body = _step(graph, lstm, active is not None)
    return graph.ops(
        "Scan", 3, *starts, *inputs, body=body, num_scan_inputs=len(inputs),
        scan_input_directions=order * len(inputs), scan_output_directions=order,
    )[2]  # fmt: skip


def _step(outer: Graph, lstm: ProjectedLSTM, masked: bool) -> Any:
    """The body of the loop: h (B, P), c (B, H) and the gates (B, 4H) of a token to new ones."""
    body = Graph(outer.dtype, outer)
    h, c, gates, active = (body.name(kind) for kind in ("h", "c", "gates", "active"))
    total = body.op("Add", body.product(h, lstm.state_weight.detach()), gates)
    i, j, f, o = body.ops("Split", 4, total, axis=1, num_outputs=4)
    kept = body.op("Mul", body.op("Sigmoid", f), c)
    new_c = body.op("Add", kept, body.op("Mul", body.op("Sigmoid", i), body.op("Tanh", j)))
    new_c = _clipped(body, new_c, lstm.cell_clip)
    new_h = body.op("Mul", body.op("Sigmoid", o), body.op("Tanh", new_c))
    if lstm.projection is not None:
        new_h = body.product(new_h, lstm.projection.detach())
        new_h = _clipped(body, new_h, lstm.proj_clip)
    if masked:
        new_h, new_c = (body.op("Mul", part, active) for part in (new_h, new_c))
    out = body.op("Identity", new_h)  # the state and the output of a step need names of their own
    wide, narrow = lstm.cell_dim, lstm.output_dim
    given = [(h, narrow), (c, wide), (gates, 4 * wide), *([(active, 1)] if masked else [])]
    results = [(new_h, narrow), (new_c, wide), (out, narrow)]
    inputs, outputs = ([_rows(*one) for one in some] for some in (given, results))
    return helper.make_graph(body.nodes, body.name("step"), inputs, outputs)


def _rows(name: str, width: int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])


def _clipped(graph: Graph, x: str, bound: float | None) -> str:
    if bound is None:
        return x
    return graph.op("Clip", x, graph.constant(-bound), graph.constant(bound))


def _active(graph: Graph, tokens: str, lengths: str) -> str:
    """1 (T, B, 1) at tokens and marks, 0 after the end of a sentence."""
    places = graph.op("Unsqueeze", positions(graph, graph.size(tokens, 0)), graph.integers(1, 2))
    inside = graph.op("Less", places, graph.op("Unsqueeze", lengths, graph.integers(1)))
    return graph.op("Cast", inside, to=TensorProto.FLOAT)


def positions(graph: Graph, size: str) -> str:
    """The numbers 0, 1, … below a size, which is a vector of one number."""
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    return graph.op("Range", zero, graph.op("Squeeze", size), one)


def _transformers(
    graph: Graph,
    config: ContextConfig,
    blocks: nn.ModuleList,
    tokens: str,
    lengths: str,
    backward: bool,
) -> list[str]:
    def turned(x: str) -> str:
        if not backward:
            return x
        return graph.op("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)

    x = turned(graph.op("Transpose", tokens, perm=[1, 0, 2]))  # (B, T, P)
    places = positions(graph, graph.size(x, 1))
    rows = graph.op("Unsqueeze", places, graph.integers(1))
    later = graph.op("Greater", places, rows)  # (T, T)
    hidden = graph.op("Where", later, graph.constant(-math.inf), graph.constant(0))
    half = config.projection_dim // config.n_heads // 2
    speeds = 10_000.0 ** (-torch.arange(half) / half)
    angles = graph.op("Mul", graph.op("Cast", rows, to=TensorProto.FLOAT), graph.constant(speeds))
    waves = graph.op("Cos", angles), graph.op("Sin", angles)  # (T, half)
    width = config.projection_dim
    found = []
    for block in blocks:
        assert isinstance(block, TransformerBlock)
        x = _block(graph, block, x, hidden, waves)
        out = _normalised(graph, x, torch.ones(width), torch.zeros(width))
        found.append(graph.op("Transpose", turned(out), perm=[1, 0, 2]))
    return found


def _block(
    graph: Graph, block: TransformerBlock, x: str, hidden: str, waves: tuple[str, str]
) -> str:
    """One block over (B, T, P) in reading order."""
    norm, width = block.attention_norm, block.attention_out.out_features
    y = _normalised(graph, x, norm.weight.detach(), norm.bias.detach())
    y = graph.reshaped(
        _through(graph, y, block.attention_in), 0, 0, 3, block.n_heads, width // block.n_heads
    )
    parts = graph.ops("Split", 3, graph.op("Transpose", y, perm=[2, 0, 3, 1, 4]), num_outputs=3)
    q, k, v = (graph.op("Squeeze", part, graph.integers(0)) for part in parts)  # (B, heads, T, …)
    q, k = _rotated(graph, q, waves), _rotated(graph, k, waves)
    scores = graph.op("MatMul", q, graph.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = graph.op("Mul", scores, graph.constant((width // block.n_heads) ** -0.5))
    shares = graph.op("Softmax", graph.op("Add", scores, hidden), axis=-1)
    seen = graph.op("Transpose", graph.op("MatMul", shares, v), perm=[0, 2, 1, 3])
    seen = _through(graph, graph.reshaped(seen, 0, 0, width), block.attention_out)
    x = graph.op("Add", x, seen)
    norm = block.feed_norm
    y = _normalised(graph, x, norm.weight.detach(), norm.bias.detach())
    y = graph.op("Gelu", _through(graph, y, block.feed_in))
    return graph.op("Add", x, _through(graph, y, block.feed_out))


def _through(graph: Graph, x: str, linear: nn.Linear) -> str:
    y = graph.product(x, linear.weight.detach())
    return graph.op("Add", y, graph.constant(linear.bias.detach().numpy()))


def _normalised(graph: Graph, x: str, scale: Tensor, bias: Tensor) -> str:
    values = [graph.constant(part.numpy()) for part in (scale, bias)]
    return graph.op("LayerNormalization", x, *values, axis=-1, epsilon=_EPSILON)


def _rotated(graph: Graph, x: str, waves: tuple[str, str]) -> str:
    """Queries or keys (B, heads, T, even), rotated as in :mod:`elmokit.nn.transformer`."""
    cos, sin = waves
    a, b = graph.ops("Split", 2, x, axis=-1, num_outputs=2)
    first = graph.op("Sub", graph.op("Mul", a, cos), graph.op("Mul", b, sin))
    second = graph.op("Add", graph.op("Mul", a, sin), graph.op("Mul", b, cos))
    return graph.op("Concat", first, second, axis=-1)


_KINDS: dict[str, Callable[..., list[str]]] = {"lstm": _lstms, "transformer": _transformers}
