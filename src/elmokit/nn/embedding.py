"""ELMo as a layer of a task model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from elmokit.arguments import flag, number, whole_number, wrong
from elmokit.errors import InputError
from elmokit.nn.bilm import BiLM
from elmokit.nn.dropout import Dropout
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.nn.words import encode_ids
from elmokit.text.characters import Alphabet
from elmokit.text.tokenizers import Tokenizer, tokenize_all

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


class PretrainedELMo(Protocol):
    """The part of :class:`elmokit.Elmo` that the layer needs."""

    bilm: BiLM
    alphabet: Alphabet
    tokenizer: Tokenizer


class ElmoOutput(NamedTuple):
    """The result of :class:`ElmoEmbedding` for a batch."""

    mixes: list[Tensor]
    """``n_outputs`` mixes, each (B, T, D) without sentence marks, zero in the padding."""
    mask: Tensor
    """True (B, T) at real tokens."""


class ElmoEmbedding(nn.Module):
    """Texts, token lists or character ids to mixed ELMo vectors.

    The biLM is shared with the given model, not copied. After fine-tuning, ``elmo.save`` writes
    the tuned weights, and other layers of the same model use them too. Gradients come from kernels
    that cannot be differentiated a second time.

    Args:
        elmo: A loaded model.
        n_outputs: Number of independently weighted mixes, all from one forward pass.
        dropout: Dropout on each mix during training.
        layer_norm: False, "bilm-tf" or "allennlp"; see :class:`elmokit.nn.ScalarMix`.
        trainable: Fine-tune the biLM. If False, it runs without gradients and only the mixes learn.
        l2: Weight of the squared mix weights in :meth:`penalty` (0.001 in the paper).

    Examples:
        >>> from elmokit import Elmo, ElmoEmbedding
        >>> embedding = ElmoEmbedding(Elmo.load(), dropout=0.5)
        >>> (vectors,), mask = embedding([["the", "cat"], ["a"]])
        >>> vectors.shape, mask.sum().item()
        (torch.Size([2, 2, 768]), 3)
    """

    def __init__(
        self,
        elmo: PretrainedELMo,
        n_outputs: int = 1,
        dropout: float = 0.5,
        layer_norm: str | bool = False,
        trainable: bool = False,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        if not isinstance(getattr(elmo, "bilm", None), BiLM):
            raise wrong("elmo", "a model from Elmo.load()", elmo)
        n_outputs = whole_number(n_outputs, "n_outputs", 1, 1000)
        dropout, trainable = number(dropout, "dropout", 0, 1), flag(trainable, "trainable")
        self.bilm = elmo.bilm
        self.alphabet, self.tokenizer = elmo.alphabet, elmo.tokenizer
        self.trainable = trainable
        if trainable:
            self.bilm.requires_grad_()
        n_layers = self.bilm.config.n_layers
        self.mixes = nn.ModuleList(
            ScalarMix(n_layers, layer_norm=layer_norm, l2=l2) for _ in range(n_outputs)
        )
        self.mixes.to(self.bilm.device)
        self.layer_norm = layer_norm
        self.dropout = Dropout(dropout)

    @property
    def output_dim(self) -> int:
        """Width D of each mix."""
        return self.bilm.config.context.output_dim

    def ids(self, batch: Sequence[str | Sequence[str]]) -> Tensor:
        """Character ids (B, T, C) of a batch, zero in the padding, on the CPU.

        Computing them in a data loader takes that work out of the training loop.
        """
        sentences = tokenize_all(self.tokenizer, batch, "batch")
        words = [word for sentence in sentences for word in sentence]
        # the two marks are encoded too, which makes room for their columns
        marks = [self.alphabet.begin, self.alphabet.end]
        rows = torch.from_numpy(self.alphabet.encode([*words, *marks])).long()
        time = max(map(len, sentences), default=0)
        ids = rows.new_zeros(len(sentences), time, rows.shape[-1])
        start = 0
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = rows[start : start + len(sentence)]
            start += len(sentence)
        return ids

    def forward(self, batch: Tensor | Sequence[str | Sequence[str]]) -> ElmoOutput:
        """Mixes of a batch of texts, token lists, or character ids (B, T, C) from :meth:`ids`."""
        ids = check_ids(self.bilm, batch, "batch") if isinstance(batch, Tensor) else self.ids(batch)
        ids = ids.to(self.bilm.device, torch.long)
        mask = ids[..., 0] > 0
        with torch.set_grad_enabled(self.trainable and torch.is_grad_enabled()):
            layers = self._layers(ids, mask.sum(-1))
        n_marks = 2 * mask.any(1, keepdim=True)
        inside = torch.arange(mask.shape[1] + 2, device=ids.device) < mask.sum(1)[:, None] + n_marks
        outputs = []
        for mix in self.mixes:
            if self.layer_norm == "allennlp":  # its statistics include the sentence marks
                mixed = mix(layers, inside)[:, 1:-1]
            else:
                mixed = mix(layers[:, :, 1:-1], mask)
            outputs.append(self.dropout(torch.where(mask[..., None], mixed, 0)))
        return ElmoOutput(outputs, mask)

    def layers(self, batch: Sequence[str | Sequence[str]]) -> tuple[Tensor, Tensor]:
        """All layers (L + 1, B, T, D) of a batch without mixing, and the mask (B, T) of its tokens.

        Gradients reach the biLM if it is trainable. The padding is not zero.
        """
        ids = self.ids(batch).to(self.bilm.device)
        mask = ids[..., 0] > 0
        with torch.set_grad_enabled(self.trainable and torch.is_grad_enabled()):
            return self._layers(ids, mask.sum(-1))[:, :, 1:-1], mask

    def penalty(self) -> Tensor:
        """The L2 term of all mixes; add it to the task's loss."""
        return torch.stack([cast(ScalarMix, mix).penalty() for mix in self.mixes]).sum()

    def _layers(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Layers (L + 1, B, T + 2, D) of ids (B, T, C), with sentence marks added."""
        columns = character_columns(self.bilm, ids)
        marks = self.alphabet.encode([self.alphabet.begin, self.alphabet.end], columns)
        return marked_layers(self.bilm, ids, lengths, torch.from_numpy(marks))


def marked_layers(bilm: BiLM, ids: Tensor, lengths: Tensor, marks: Tensor) -> Tensor:
    """Layers (L + 1, B, T + 2, D) of sentences without marks; each distinct word is encoded once.

    Args:
        bilm: The network.
        ids: Character ids (B, T, C), zero in the padding, on the device of the network.
        lengths: Tokens (B,) of each sentence. An empty sentence gets no marks and is not read.
        marks: Character ids (2, C) of the two sentence marks.
    """
    n, time, width = ids.shape
    marks = marks.to(ids)
    marked = ids.new_zeros(n, time + 2, width)
    marked[:, 1:-1] = ids
    real = lengths > 0
    marked[real, 0] = marks[0]
    marked[real, lengths[real] + 1] = marks[1]
    words, index = torch.unique(marked.flatten(0, 1), dim=0, return_inverse=True)
    vectors = encode_ids(bilm.token_encoder, words)
    tokens = vectors[index].view(n, time + 2, vectors.shape[1])
    lengths = torch.where(real, lengths + 2, 0)
    inside = torch.arange(time + 2, device=ids.device) < lengths[:, None]
    tokens = torch.where(inside[..., None], tokens, 0)
    layers: Tensor = bilm(tokens, lengths)[0]
    return layers


def check_ids(bilm: BiLM, ids: Tensor, name: str) -> Tensor:
    """Ids that a caller has made, after a check: a wrong one would end all work on a GPU.

    Args:
        bilm: The network that they are for.
        ids: Character ids (B, T, C).
        name: The caller's name for them.
    """
    if ids.dtype not in _INTEGERS or ids.dim() != 3 or ids.layout != torch.strided:
        raise InputError(
            f"{name} must be texts, or whole numbers of the shape (B, T, C), not "
            f"{str(ids.dtype).removeprefix('torch.')} of the shape {tuple(ids.shape)}"
        )
    config = bilm.config.token_encoder
    columns, fewest = character_columns(bilm, ids), max(3, config.widest)
    if columns < fewest:
        raise InputError(f"{name} must have {fewest} or more columns of characters, not {columns}")
    most = torch.full((ids.shape[-1],), config.n_characters, device=ids.device)
    most[columns:] = config.n_words
    if ((ids < 0) | (ids > most)).any():
        raise InputError(
            f"{name} has ids from {int(ids.min())} to {int(ids.max())}, but this model has "
            f"{config.n_characters:,} characters and {config.n_words:,} words; use ids()"
        )
    mask = ids[..., 0] > 0
    if (mask[:, 1:] & ~mask[:, :-1]).any():
        raise InputError(f"{name} must have padding (tokens of zeros) only after real tokens")
    return ids


def character_columns(bilm: BiLM, ids: Tensor) -> int:
    """The columns C of ids that are characters; models with word vectors have one more."""
    return ids.shape[-1] - (bilm.token_encoder.word_embedding is not None)
