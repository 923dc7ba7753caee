"""How large the values of a model can become for any text: a model that overflows is refused.

Finite weights are not enough: an encoder whose weights were multiplied by 1e38 computes infinity
and NaN. Trying a sentence at load would find this for that sentence only. Here every layer gets an
upper bound for all texts: the largest input times the largest sum of a row's absolute weights. The
bounds are not tight. For a trained model they are below 1e9, and float32 reaches 3e38.

Projected, clipped LSTMs and layer normalisation keep their outputs bounded. Only the token
encoder's bounds multiply from layer to layer.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import FormatError

_LARGEST = 1e36
_LARGEST_SQUARED = 1e17  # for values that are squared and added up


def check_range(
    config: ModelConfig, tensors: Mapping[str, Tensor], maxima: Mapping[str, float], source: str
) -> None:
    """Raise if some text could make a model overflow.

    Args:
        config: The config.
        tensors: The weights, all that the config requires.
        maxima: Largest absolute value of each tensor.
        source: The file, for errors.
    """
    _Bounds(config, tensors, maxima, source).check()


class _Bounds:
    def __init__(
        self,
        config: ModelConfig,
        tensors: Mapping[str, Tensor],
        maxima: Mapping[str, float],
        source: str,
    ) -> None:
        self._config, self._tensors, self._maxima = config, tensors, maxima
        self._source = source

    def check(self) -> None:
        config, context = self._config, self._config.context
        token = self._token_encoder()
        bound = {"lstm": self._lstms, "transformer": self._transformer}[context.kind]
        prefixes = ("forward_layers.", "backward_layers.")[: context.n_directions]
        top = max(bound(prefix, token) for prefix in prefixes)
        self._limited(abs(config.mix.gamma) * max(token, top), "mix.gamma")
        if config.softmax_cutoffs:
            self._linear("softmax.inner.head", top)
            for i in range(len(config.softmax_cutoffs)):
                inner = self._linear(f"softmax.inner.tail.{i}.0", top)
                self._linear(f"softmax.inner.tail.{i}.1", inner)
        elif config.vocabulary_size:
            self._linear("softmax", top)

    def _token_encoder(self) -> float:
        encoder, prefix = self._config.token_encoder, "token_encoder."
        x = 0.0
        if encoder.filters:
            characters = self._maxima[prefix + "character_embedding.weight"]
            x = max(
                self._rows(f"{prefix}convolutions.{i}", characters)
                for i in range(len(encoder.filters))
            )
            if encoder.activation == "tanh":
                x = min(1.0, x)
            for i in range(encoder.n_highway):
                self._rows(f"{prefix}highways.{i}.gate", x)
                x = max(x, self._rows(f"{prefix}highways.{i}.transform", x))
        x = max(x, self._maxima.get(prefix + "word_embedding.weight", 0.0))
        if prefix + "projection.weight" in self._tensors:
            x = self._rows(prefix + "projection", x)
        return self._limited(x, "token_encoder")

    def _lstms(self, prefix: str, x: float) -> float:
        """Return the bound of the outputs of one direction."""
        context = self._config.context
        largest = 0.0
        for i in range(context.n_layers):
            layer = f"{prefix}{i}."
            h = 1.0  # σ(o)·tanh(c), whatever the cell contains
            if layer + "projection" in self._tensors:
                h = self._product(layer + "projection", h)
                h = min(h, h if context.proj_clip is None else context.proj_clip)
            gates = self._product(layer + "input_weight", x) + abs(context.forget_bias)
            gates += self._product(layer + "state_weight", h) + self._maxima[layer + "bias"]
            self._limited(gates, layer + "bias")
            x = x + h if context.skip_connections and i > 0 else h
            largest = max(largest, x)
        return self._limited(largest, prefix[:-1])

    def _transformer(self, prefix: str, x: float) -> float:
        """Return the bound of the outputs of one direction, which are normalised."""
        context = self._config.context
        normal = context.projection_dim**0.5  # no value of a normalised vector is larger
        for i in range(context.n_layers):
            layer = f"{prefix}{i}."
            for norm, first, second in (
                ("attention_norm", "attention_in", "attention_out"),
                ("feed_norm", "feed_in", "feed_out"),
            ):
                self._limited(x, layer + norm, _LARGEST_SQUARED)
                normed = self._maxima[f"{layer}{norm}.weight"] * normal
                normed += self._maxima[f"{layer}{norm}.bias"]
                inner = self._linear(layer + first, normed)
                self._limited(inner, layer + first, _LARGEST_SQUARED)  # queries times keys
                x += self._linear(layer + second, inner)
        self._limited(x, prefix[:-1], _LARGEST_SQUARED)
        return normal

    def _rows(self, name: str, x: float) -> float:
        """Return the bound of a linear map, from the sums of its rows."""
        weight = self._tensors[name + ".weight"]
        sums = torch.linalg.vector_norm(weight.flatten(1).float(), 1, dim=1)
        gain = float(sums.max()) if len(sums) else 0.0
        return self._limited(gain * x + self._maxima[name + ".bias"], name)

    def _linear(self, name: str, x: float) -> float:
        """Return a looser bound of a linear map that reads no weights."""
        bias = self._maxima.get(name + ".bias", 0.0)
        return self._limited(self._product(name + ".weight", x) + bias, name)

    def _product(self, name: str, x: float) -> float:
        return self._limited(self._maxima[name] * self._tensors[name].shape[-1] * x, name)

    def _limited(self, bound: float, name: str, most: float = _LARGEST) -> float:
        if not bound <= most:
            raise FormatError(
                f"{self._source} has weights so large that vectors overflow (in {name}); the file "
                "is damaged or its training diverged, so use another copy or an earlier checkpoint"
            )
        return bound
