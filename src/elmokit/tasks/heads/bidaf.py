"""Where a passage answers a question: bidirectional attention flow with self-attention.

Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading Comprehension", section 2,
after Seo et al. (2017); Peters et al. (2018), supplement, for the places of ELMo.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elmokit.tasks.heads.encoders import BiGRUEncoder, LockedDropout
from elmokit.tasks.heads.masked import masked_softmax, weighted_sum


class Text(NamedTuple):
    """A batch of texts as the network takes them."""

    x: Tensor
    """Input (B, T, X)."""
    mask: Tensor
    """True (B, T) at words."""
    after: Tensor | None = None
    """What joins the states of the first biGRU (B, T, O)."""


class TrilinearAttention(nn.Module):
    """Scores of pairs of vectors: w₁ · a + w₂ · b + w₃ · (a ∘ b).

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        bound = math.sqrt(3 / width)
        self.first = nn.Parameter(torch.empty(width).uniform_(-bound, bound))
        self.second = nn.Parameter(torch.empty(width).uniform_(-bound, bound))
        self.both = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Scores (B, T, U) of vectors (B, T, D) and (B, U, D)."""
        product = (a * self.both) @ b.transpose(1, 2)
        return product + (a @ self.first)[..., None] + (b @ self.second)[:, None]


class SpanNetwork(nn.Module):
    """Scores of the words of a passage as the first and the last word of the answer.

    Both texts are read by one biGRU. Each word of the passage attends to the question, then to the
    rest of the passage. Two more biGRUs score the first and the last word.

    Args:
        input_dim: Width X of the input.
        hidden_dim: Cells H of each direction; 90 in the ELMo paper.
        dropout: Dropout before every layer, the same for all words of a text.
        output_dim: Width O of what joins the states of the first biGRU; 0 for nothing.
    """

    def __init__(self, input_dim: int, hidden_dim: int, dropout: float, output_dim: int) -> None:
        super().__init__()
        width = 2 * hidden_dim
        states = width + output_dim
        self.dropout = LockedDropout(dropout)
        self.encoder = BiGRUEncoder(input_dim, hidden_dim)
        self.to_question = TrilinearAttention(states)
        self.merge = nn.Linear(4 * states, width)
        self.reader = BiGRUEncoder(width, hidden_dim)
        self.to_itself = TrilinearAttention(width)
        self.merge_again = nn.Linear(3 * width, width)
        self.start_reader = BiGRUEncoder(width, hidden_dim)
        self.end_reader = BiGRUEncoder(2 * width, hidden_dim)
        self.start = nn.Linear(width, 1)
        self.end = nn.Linear(width, 1)

    def forward(self, question: Text, passage: Text) -> tuple[Tensor, Tensor]:
        """Scores (B, T) of the first and of the last word; the padding has the lowest number.

        Args:
            question: B questions.
            passage: Their passages, of up to T words.
        """
        asked, given = self._encoded(question), self._encoded(passage)
        mask = passage.mask
        x = torch.relu(self.merge(self.dropout(self._attend(given, asked, mask, question.mask))))
        x = x + self._attend_to_itself(x, mask)
        first = self.start_reader(self.dropout(x), mask)
        last = self.end_reader(self.dropout(torch.cat([x, first], -1)), mask)
        return self._scores(self.start, first, mask), self._scores(self.end, last, mask)

    def _encoded(self, text: Text) -> Tensor:
        states = self.encoder(self.dropout(text.x), text.mask)
        return states if text.after is None else torch.cat([states, text.after], -1)

    def _attend(self, given: Tensor, asked: Tensor, mask: Tensor, asked_mask: Tensor) -> Tensor:
        """Attention (B, T, 4D) of words to the question, and of the question to words."""
        scores = self.to_question(self.dropout(given), self.dropout(asked))
        attended = masked_softmax(scores, asked_mask[:, None]).to(asked.dtype) @ asked
        lowest = torch.finfo(scores.dtype).min
        best = scores.masked_fill(~asked_mask[:, None], lowest).amax(2)
        most_asked = weighted_sum(masked_softmax(best, mask), given)[:, None]
        return torch.cat([given, attended, given * attended, given * most_asked], -1)

    def _attend_to_itself(self, x: Tensor, mask: Tensor) -> Tensor:
        states = self.reader(self.dropout(x), mask)
        dropped = self.dropout(states)
        others = mask[:, None] & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        weights = masked_softmax(self.to_itself(dropped, dropped), others).to(states.dtype)
        attended = weights @ states
        joined = torch.cat([states, attended, states * attended], -1)
        return torch.relu(self.merge_again(self.dropout(joined)))

    def _scores(self, layer: nn.Linear, states: Tensor, mask: Tensor) -> Tensor:
        scores: Tensor = layer(self.dropout(states)).squeeze(-1).float()
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def span_loss(scores: Tensor, right: Tensor) -> Tensor:
    """−log of the share (B,) that the softmax of scores (B, T) gives to the words that are right.

    Several words may be right, such as the first words of all occurrences of an answer.

    Args:
        scores: Scores (B, T); the lowest number in the padding.
        right: True (B, T) at right words, at least one of each row.
    """
    hidden = scores.masked_fill(~right, torch.finfo(scores.dtype).min)
    return scores.logsumexp(1) - hidden.logsumexp(1)


def best_spans(start: Tensor, end: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find the span with the highest sum of scores.

    Args:
        start: Scores (B, T) of the first word; the lowest number in the padding.
        end: Scores (B, T) of the last word; the same.
        longest: Most words L of a span.

    Returns:
        First words, last words and sums, each (B,). The first word is never after the last one.
    """
    lowest = torch.finfo(start.dtype).min
    half = lowest / 2  # the sum of two lowest numbers is -inf, which argmax cannot order
    start, end = start.clamp(min=half), end.clamp(min=half)
    ends = nn.functional.pad(end, (0, longest - 1), value=half).unfold(1, longest, 1)
    sums = start[..., None] + ends  # (B, T, L): a span begins at t and has l + 1 words
    best, where = sums.flatten(1).max(1)
    first = where // longest
    return first, first + where % longest, best
