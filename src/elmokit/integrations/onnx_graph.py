"""An ONNX graph under construction: nodes, weights in several precisions, and the character CNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from onnx import NodeProto, TensorProto, helper, numpy_helper
from torch import Tensor, nn

from elmokit.formats.rounding import rounded
from elmokit.nn.char_encoder import CharEncoder, Convolution, Highway

_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}
# Activations have seven bits and weights eight: two products of 127 · 127 fit into the 16 bits in
# which processors without VNNI instructions add them.
_LEVELS, _MIDDLE = 63, 64
_FINER = 2 * _LEVELS  # levels of a second row between two of the first
_SMALLEST = 1e-12  # of the largest value of a row, which may be zero


class Graph:
    """Nodes and weights of a graph. Names of nodes' results are made up here.

    Args:
        dtype: How matrices are stored: float32, float16 or int8. See :meth:`matrix` and
            :meth:`product`.
        outer: The graph around the body of a loop, which stores its weights; None for a model's
            main graph.
    """

    def __init__(self, dtype: str, outer: Graph | None = None) -> None:
        self.dtype = dtype
        self._main: Graph = self if outer is None else outer._main
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def name(self, kind: str) -> str:
        """A new name, unique in the whole model."""
        self._main._count += 1
        return f"{kind}_{self._main._count}"

    def ops(self, kind: str, n: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with n results; return their names."""
        outputs = [self.name(kind) for _ in range(n)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, outputs[0], **attributes))
        return outputs

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result; return its name."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def constant(self, value: Any, dtype: type[np.generic] = np.float32) -> str:
        """Store a value, once if it occurs several times; return its name."""
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        main = self._main
        key = (str(array.dtype), array.shape, array.tobytes())
        if array.nbytes > 64:  # only small ones repeat
            return main._store(array)
        if key not in main._constants:
            main._constants[key] = main._store(array)
        return main._constants[key]

    def integers(self, *values: int) -> str:
        """Store whole numbers as a vector, as shapes and axes are given."""
        return self.constant(values, np.int64)

    def matrix(self, weight: Tensor, transposed: bool = False) -> str:
        """Store a matrix in the precision of the graph, for use in float32.

        A runtime converts it once, when it loads the model.

        Args:
            weight: One row (or filter) per output, as in PyTorch.
            transposed: Whether the result has one column per output.
        """
        stored = rounded({"weight": weight}, self.dtype)
        main, values = self._main, stored["weight"].numpy()
        if transposed:
            values = values.T
        name = main.constant(values, values.dtype.type)
        if self.dtype == "float32":
            return name
        name = main.op("Cast", name, to=TensorProto.FLOAT)
        if self.dtype == "float16":
            return name
        rest = (1,) * (values.ndim - 1)
        scale = stored["weight.scale"].numpy().reshape((*rest, -1) if transposed else (-1, *rest))
        return main.op("Mul", name, main.constant(scale))

    def linear(self, x: str, weight: Tensor, bias: Tensor | None) -> str:
        """The product x · weightᵀ + bias in float32, for x (…, in) and a weight (out, in)."""
        y = self.op("MatMul", x, self.matrix(weight, transposed=True))
        return y if bias is None else self.op("Add", y, self.constant(bias.numpy()))

    def product(self, x: str, weight: Tensor) -> str:
        """The product x · weightᵀ for x (…, in) and a weight (out, in), in the graph's precision.

        For int8, a row of x is divided by its largest value and split into two rows of seven bits:
        a coarse one, and what the coarse one leaves. Both are multiplied at once, and reading the
        weights takes most of the time. Each row has a scale of its own, so a sentence's vectors do
        not depend on its batch.
        """
        if self.dtype != "int8":
            return self.linear(x, weight, None)
        stored = rounded({"weight": weight}, self.dtype)
        middle, coarse = self.constant(_MIDDLE, np.uint8), self.constant(1 / _LEVELS)
        largest = self.op("ReduceMax", self.op("Abs", x), self.integers(-1))
        largest = self.op("Max", largest, self.constant(_SMALLEST))
        shares = self.op("Div", x, largest)
        first = self.op("QuantizeLinear", shares, coarse, middle)
        rest = self.op("Sub", shares, self.op("DequantizeLinear", first, coarse, middle))
        fine = self.constant(1 / (_LEVELS * _FINER))
        second = self.op("QuantizeLinear", rest, fine, middle)
        both = self.op("Concat", first, second, axis=0)
        weights = self.constant(stored["weight"].numpy().T, np.int8)
        sums = self.op("MatMulInteger", both, weights, middle)
        sums = self.op("Cast", sums, to=TensorProto.FLOAT)
        high, low = self.ops("Split", 2, sums, axis=0, num_outputs=2)
        y = self.op("Add", self.op("Mul", high, self.constant(_FINER)), low)
        scales = stored["weight.scale"].numpy() / (_LEVELS * _FINER)
        return self.op("Mul", self.op("Mul", y, self.constant(scales)), largest)

    def reshaped(self, x: str, *shape: int) -> str:
        """A reshaped tensor; 0 keeps a dimension, -1 is the rest."""
        return self.op("Reshape", x, self.integers(*shape))

    def size(self, x: str, axis: int) -> str:
        """The length of an axis, as a vector of one number."""
        return self.op("Shape", x, start=axis, end=axis + 1)

    def joined(self, parts: Sequence[str], axis: int) -> str:
        """Tensors concatenated; a single one as it is."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def _store(self, array: np.ndarray[Any, Any]) -> str:
        name = self.name("weight")
        self.weights.append(numpy_helper.from_array(array, name))
        return name


def distinct_words(graph: Graph, ids: str, marks: np.ndarray[Any, Any]) -> tuple[str, str]:
    """Flatten ids and find the distinct words, among them the sentence marks and padding.

    Args:
        graph: Where to add the nodes.
        ids: Character ids (B, T, C).
        marks: Character ids (2, C) of the marks at both ends of a sentence.

    Returns:
        Distinct words (W, C), and which of them each row is: both marks, then all tokens of all
        sentences.
    """
    rows = graph.reshaped(ids, -1, marks.shape[1])
    rows = graph.op("Concat", graph.constant(marks, np.int64), rows, axis=0)
    words, _, index = graph.ops("Unique", 3, rows, axis=0, sorted=0)
    return words, index


def token_vectors(graph: Graph, encoder: CharEncoder, words: str, padding: int) -> str:
    """Token vectors (W, P) of distinct words.

    Args:
        graph: Where to add the nodes.
        encoder: The character CNN.
        words: Ids (W, C), or (W, C + 1) with the id of the word in the last column.
        padding: The id that fills up the characters of a word.
    """
    features = []
    if encoder.word_embedding is not None:
        last = graph.op("Gather", words, graph.constant(-1, np.int64), axis=1)
        table = graph.matrix(encoder.word_embedding.weight.detach())
        features.append(graph.op("Gather", table, last, axis=0))
        words = _sliced(graph, words, 0, graph.integers(-1))
    if encoder.convolutions:
        x = _convolved(graph, encoder, _cut(graph, words, padding, encoder.config.widest))
        x = graph.op(_ACTIVATIONS[encoder.config.activation], x)
        for highway in cast("list[Highway]", list(encoder.highways)):
            gate = graph.op("Sigmoid", _applied(graph, x, highway.gate))
            new = graph.op("Relu", _applied(graph, x, highway.transform))
            # g · new + (1 − g) · x
            x = graph.op("Add", x, graph.op("Mul", gate, graph.op("Sub", new, x)))
        features.append(x)
    tokens = graph.joined(features, 1)
    return tokens if encoder.projection is None else _applied(graph, tokens, encoder.projection)


def _applied(graph: Graph, x: str, linear: nn.Linear) -> str:
    return graph.linear(x, linear.weight.detach(), linear.bias.detach())


def _cut(graph: Graph, words: str, padding: int, widest: int) -> str:
    """Ids without the last columns if they contain padding only, beyond one window of it.

    Such windows cannot change the maximum, and most words are short.
    """
    of_word = graph.op("Greater", words, graph.constant(0, np.int64))
    filled = graph.op("Not", graph.op("Equal", words, graph.constant(padding, np.int64)))
    used = graph.op("Cast", graph.op("And", of_word, filled), to=TensorProto.INT64)
    used = graph.op("ReduceMax", used, graph.integers(0), keepdims=0)  # (C,)
    size = graph.op("Squeeze", graph.size(words, 1))
    one = graph.constant(1, np.int64)
    places = graph.op("Range", one, graph.op("Add", size, one), one)
    longest = graph.op("ReduceMax", graph.op("Mul", used, places), keepdims=1)  # (1,)
    return _sliced(graph, words, 0, graph.op("Add", longest, graph.integers(widest)))


def _sliced(graph: Graph, words: str, first: int, last: str) -> str:
    return graph.op("Slice", words, graph.integers(first), last, graph.integers(1))


def _convolved(graph: Graph, encoder: CharEncoder, words: str) -> str:
    """Maxima (W, F) of all filters over the characters of words (W, C)."""
    table = graph.matrix(encoder.character_embedding.weight.detach())
    characters = graph.op("Gather", table, words, axis=0)
    characters = graph.op("Transpose", characters, perm=[0, 2, 1])  # (W, character_dim, C)
    convolutions = cast("list[Convolution]", list(encoder.convolutions))
    maxima = []
    for convolution in convolutions:
        filters = graph.matrix(convolution.weight.detach())
        found = graph.op("Conv", characters, filters)  # (W, count, positions)
        maxima.append(graph.op("ReduceMax", found, graph.integers(2), keepdims=0))
    biases = torch.cat([convolution.bias.detach() for convolution in convolutions])
    return graph.op("Add", graph.joined(maxima, 1), graph.constant(biases.numpy()))
