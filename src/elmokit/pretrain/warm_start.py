"""Going on with a model: its softmax as it is, or one for other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import ConfigError
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.nn.bilm import BiLM
from elmokit.nn.words import encode_words
from elmokit.pretrain.recipe import SoftmaxSettings


def check_softmax(config: ModelConfig, softmax: SoftmaxSettings) -> None:
    """Raise where a model's own softmax is to be trained as one of another kind."""
    adaptive = bool(config.softmax_cutoffs)
    if adaptive != (softmax.kind == "adaptive"):
        raise ConfigError(
            f"the model has {'an adaptive' if adaptive else 'a full'} softmax, which "
            f"softmax.kind={softmax.kind} cannot go on with; choose another kind, or "
            "--new-vocabulary"
        )


def cutoffs(softmax: SoftmaxSettings, size: int) -> tuple[int, ...]:
    """Where the clusters of an adaptive softmax begin; none for another."""
    if softmax.kind != "adaptive":
        return ()
    return tuple(c for c in softmax.cutoffs if c < size - 1) or (size // 2,)


def with_words(model: Checkpoint, words: list[str], softmax: SoftmaxSettings) -> Checkpoint:
    """A model that predicts other words, by rows kept and guessed if both softmaxes are full."""
    clusters = cutoffs(softmax, len(words))
    config = replace(model.config, vocabulary_size=len(words), softmax_cutoffs=clusters)
    tensors = {k: v for k, v in model.tensors.items() if not k.startswith(SOFTMAX)}
    changed = replace(model, config=config, vocabulary=words, tensors=tensors)
    if not (model.config.softmax_cutoffs or clusters or model.vocabulary is None):
        rows = new_softmax(model, words, changed)
        changed.tensors |= {SOFTMAX + name: value for name, value in rows.items()}
    return changed


@torch.no_grad()
def new_softmax(model: Checkpoint, words: Sequence[str], changed: Checkpoint) -> dict[str, Tensor]:
    """Rows for a new vocabulary: those of shared words kept, the others guessed from characters.

    The guess is the linear map from token vectors to rows that fits the shared words best.
    """
    assert model.vocabulary is not None
    width = model.config.context.projection_dim
    old_row = {word: i for i, word in enumerate(model.vocabulary)}
    old_weight = model.tensors[SOFTMAX + "weight"].float()
    old_bias = model.tensors[SOFTMAX + "bias"].float()
    vectors = token_vectors(changed, words)
    shared = [(i, old_row[word]) for i, word in enumerate(words) if word in old_row]
    here, there = (torch.tensor(list(t)) for t in zip(*shared, strict=True))
    with_one = torch.cat([vectors, torch.ones(len(vectors), 1)], 1).double()
    wanted = torch.cat([old_weight[there], old_bias[there, None]], 1).double()
    known = with_one[here]
    ridge = 1e-3 * len(known) * torch.eye(width + 1, dtype=torch.float64)
    fit = torch.linalg.solve(known.t() @ known + ridge, known.t() @ wanted)
    rows = (with_one @ fit).float()
    rows[here] = wanted.float()
    return {"weight": rows[:, :width].contiguous(), "bias": rows[:, width].contiguous()}


@torch.no_grad()
def token_vectors(model: Checkpoint, words: Sequence[str]) -> Tensor:
    """What the token encoder makes of some words (W, P)."""
    with torch.device("meta"):
        bilm = BiLM(model.config)
    own = {k: v.float() for k, v in model.tensors.items() if not k.startswith(SOFTMAX)}
    bilm.load_state_dict(own, assign=True)
    return encode_words(bilm.token_encoder, model.alphabet(), words)
