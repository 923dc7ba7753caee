"""Starting from a model: keeps its softmax, or makes one for another vocabulary."""

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
from elmokit.pretrain.recipe_sections import SoftmaxSettings


def check_softmax(config: ModelConfig, softmax: SoftmaxSettings) -> None:
    """Raise if a model's own softmax cannot be trained with these settings."""
    adaptive = bool(config.softmax_cutoffs)
    if adaptive != (softmax.kind == "adaptive"):
        raise ConfigError(
            f"the model has {'an adaptive' if adaptive else 'a full'} softmax, which cannot be "
            f"trained with softmax.kind={softmax.kind}; choose another kind, or set "
            "text.new_vocabulary=true"
        )


def cutoffs(softmax: SoftmaxSettings, size: int) -> tuple[int, ...]:
    """Return the first row of each cluster of an adaptive softmax; empty for another kind."""
    if softmax.kind != "adaptive":
        return ()
    return tuple(c for c in softmax.cutoffs if c < size - 1) or (size // 2,)


def with_words(model: Checkpoint, words: list[str], softmax: SoftmaxSettings) -> Checkpoint:
    """Return a model with another vocabulary; between full softmaxes, rows are carried over."""
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
    """Return softmax rows for a new vocabulary.

    Shared words keep their rows. Rows of other words are predicted from their token vectors by the
    linear map that fits the shared words best.
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
    return encode_words(bilm.token_encoder, model.alphabet(), words)[1:]
