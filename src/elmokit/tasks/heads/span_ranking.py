"""Coreference as ranking of spans (Lee et al., 2017), with coarse-to-fine antecedents (2018).

Letters: T words of a document, W widths of spans, G width of a span's vector, N spans that are
kept, A antecedents of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.devices import to_device
from elmokit.nn.dropout import Dropout
from elmokit.tasks.heads.encoders import LockedDropout
from elmokit.text.tokenizers import Span

_BUCKETS = 10  # of distances: 0, 1, 2, 3, 4, 5–7, 8–15, 16–31, 32–63, 64 and more
_FEWEST = 20  # spans to keep of a short document
_PART = 4096  # words whose spans are scored together
_BLOCK = 1024  # spans whose antecedents are scored together


@dataclass
class SpanScores:
    """What the network says about the spans of a document."""

    spans: list[Span]
    """The N spans that were kept, in the order of the document; none cross each other."""
    mention: Tensor
    """How likely each is a mention (N,)."""
    antecedents: Tensor
    """Numbers (N, A) of the spans before it."""
    scores: Tensor
    """Whether they mean the same (N, A); that of no antecedent is 0. -inf where there is none."""
    candidates: Tensor
    """Mention scores (T, W) of the spans that start at each word; -inf for those that are none."""


class SpanRanker(nn.Module):
    """Scores spans as mentions, keeps the best, and scores pairs of them.

    The vector of a span is a layer on [first state; last state; attended input; width]. Its parts
    are multiplied by their weights before spans are built from them: once for each word.

    Args:
        state_dim: Width D of a state.
        input_dim: Width X of an input, whose weighted mean is the head of a span.
        span_dim: Width G of a span's vector, and of the layer that compares two.
        max_width: W, most words of a span.
        spans_per_word: λ, how many spans to keep for each word; at least 20 in all.
        n_antecedents: A, most antecedents of a span that are scored in full.
        dropout: Share of values dropped before each layer in training.
    """

    def __init__(
        self,
        state_dim: int,
        input_dim: int,
        span_dim: int,
        max_width: int,
        spans_per_word: float,
        n_antecedents: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.max_width, self.spans_per_word = max_width, spans_per_word
        self.n_antecedents = n_antecedents
        self.first = nn.Linear(state_dim, span_dim, bias=False)
        self.last = nn.Linear(state_dim, span_dim, bias=False)
        self.head = nn.Linear(input_dim, span_dim, bias=False)
        self.attention = nn.Linear(state_dim, 1)
        self.width = nn.Embedding(max_width, span_dim)
        self.mention = nn.Linear(span_dim, 1)
        self.coarse = nn.Linear(span_dim, span_dim, bias=False)
        self.anaphor = nn.Linear(span_dim, span_dim, bias=False)
        self.antecedent = nn.Linear(span_dim, span_dim, bias=False)
        self.product = nn.Linear(span_dim, span_dim)
        self.span_distance = nn.Embedding(_BUCKETS, span_dim)
        self.sentence_distance = nn.Embedding(_BUCKETS, span_dim)
        self.pair = nn.Linear(span_dim, 1)
        self.dropout = Dropout(dropout)
        # one mask for all spans that start at a word, and one for all pairs of a span
        self.locked = LockedDropout(dropout)
        for embedding in (self.width, self.span_distance, self.sentence_distance):
            nn.init.normal_(embedding.weight, std=0.02)  # they are added to other vectors

    def forward(self, states: Tensor, x: Tensor, sentences: Sequence[Span]) -> SpanScores:
        """Score the spans of a document.

        Args:
            states: States (T, D) of its words.
            x: Inputs (T, X) of its words.
            sentences: Words (start, end) of its sentences, one after the other. A span is within
                one of them.
        """
        found = [
            self._part(states[start:end], x[start:end], some, start)
            for start, end, some in _parts(sentences)
        ]
        spans = [span for part in found for span in part[0]]
        vectors = torch.cat([part[1] for part in found])
        mention = torch.cat([part[2] for part in found])
        candidates = torch.cat([part[3] for part in found])
        antecedents, scores = self._antecedents(vectors, mention, spans, sentences)
        return SpanScores(spans, mention, antecedents, scores, candidates)

    def _part(
        self, states: Tensor, x: Tensor, sentences: Sequence[Span], offset: int
    ) -> tuple[list[Span], Tensor, Tensor, Tensor]:
        """Spans that are kept, their vectors (N, G), their scores (N,), and all scores (T, W)."""
        vectors = self._vectors(states, x)
        scores = self.mention(self.locked(vectors)).squeeze(2)
        starts, ends = torch.tensor(sentences).T - offset
        left = ends.repeat_interleave(ends - starts) - torch.arange(len(states))
        real = torch.arange(self.max_width) < left[:, None]  # (T, W), within a sentence
        scores = scores.masked_fill(~to_device(real, scores.device), -torch.inf)
        n = max(_FEWEST, int(self.spans_per_word * len(states)))
        # the one transfer from the device: which spans to keep is decided one by one
        order = scores.detach().flatten().argsort(descending=True, stable=True)
        ranked = order[: int(real.sum())].tolist()
        kept = best_spans((divmod(flat, self.max_width) for flat in ranked), n)
        kept_places = torch.tensor([t * self.max_width + w for t, w in kept])
        places = to_device(kept_places, scores.device)
        spans = [(offset + t, offset + t + w + 1) for t, w in kept]
        return spans, vectors.flatten(0, 1)[places], scores.flatten()[places], scores

    def _vectors(self, states: Tensor, x: Tensor) -> Tensor:
        """Vectors (T, W, G) of the spans of 1 … W words that start at each word."""
        reach = self.max_width - 1
        weights = F.pad(self.attention(states).squeeze(1), (0, reach)).unfold(0, reach + 1, 1)
        later = torch.ones(reach + 1, reach + 1, dtype=torch.bool, device=x.device).triu(1)
        weights = weights[:, None].masked_fill(later, -torch.inf).softmax(2)  # (T, W, words)
        last, head = (
            F.pad(part, (0, 0, 0, reach)).unfold(0, reach + 1, 1).transpose(1, 2)
            for part in (self.last(states), self.head(x))
        )
        parts = self.first(states)[:, None] + last + weights @ head + self.width.weight
        return torch.relu(parts)

    def _antecedents(
        self, vectors: Tensor, mention: Tensor, spans: list[Span], sentences: Sequence[Span]
    ) -> tuple[Tensor, Tensor]:
        """Antecedents (N, A) of spans, and their scores (N, A)."""
        n, device = len(spans), vectors.device
        some = min(self.n_antecedents, n)
        starts = torch.tensor([start for start, _ in spans])
        ends = torch.tensor([end for _, end in sentences])
        sentence = to_device(torch.searchsorted(ends, starts, right=True), device)
        dropped = self.dropout(vectors)
        keys, queries = dropped, self.coarse(dropped)
        anaphors, antecedents = self.anaphor(dropped), self.antecedent(dropped)
        number = torch.arange(n, device=device)
        chosen, scores = [], []
        for begin in range(0, n, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            coarse = queries[block] @ keys.T + mention[block, None] + mention
            coarse = coarse.masked_fill(number >= number[block, None], -torch.inf)
            best, places = coarse.topk(some, 1)
            distances = self.span_distance(buckets(number[block, None] - places))
            distances = distances + self.sentence_distance(
                buckets(sentence[block, None] - sentence[places])
            )
            product = self.product(dropped[block, None] * dropped[places])
            hidden = anaphors[block, None] + antecedents[places] + product + distances
            fine = self.pair(self.locked(torch.relu(hidden))).squeeze(2)
            chosen.append(places)
            scores.append(best + fine)  # still -inf where there is no antecedent
        return torch.cat(chosen), torch.cat(scores)


def best_spans(ranked: Iterable[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Keep spans in the order of their rank, except those that cross one that is kept.

    Args:
        ranked: Spans as (first word, words after it), the best first.
        most: How many to keep.

    Returns:
        The spans that are kept, sorted.
    """
    kept: list[tuple[int, int]] = []
    latest_end: dict[int, int] = {}  # of the kept spans that start at a word
    earliest_start: dict[int, int] = {}  # of those that end at a word
    for first, more in ranked:
        if len(kept) == most:
            break
        last = first + more
        if any(
            latest_end.get(word + 1, -1) > last or earliest_start.get(word, first) < first
            for word in range(first, last)
        ):
            continue
        kept.append((first, more))
        latest_end[first] = max(last, latest_end.get(first, last))
        earliest_start[last] = min(first, earliest_start.get(last, first))
    return sorted(kept)


def buckets(distances: Tensor) -> Tensor:
    """Numbers of the buckets of distances: 0 … 4, 5–7, 8–15, 16–31, 32–63, 64 and more."""
    distances = distances.clamp(min=0)
    powers = distances.clamp(min=1).float().log2().floor().long() + 3
    return torch.where(distances < 5, distances, powers).clamp(max=_BUCKETS - 1)


def ranking_loss(found: SpanScores, clusters: Tensor) -> Tensor:
    """How unlikely the right antecedents of the spans are: the sum of -log Σ P(right ones).

    Args:
        found: Scores of a document.
        clusters: The cluster (N,) of each span; -1 for none. The right antecedent of a span is any
            one of its cluster, or no antecedent if there is none before it.
    """
    own = clusters[:, None]
    right = (clusters[found.antecedents] == own) & (own >= 0) & found.scores.isfinite()
    none = found.scores.new_zeros(len(clusters), 1)
    first = none.masked_fill(right.any(1, keepdim=True), -torch.inf)
    scores = torch.cat([none, found.scores], 1)
    rights = torch.cat([first, found.scores.masked_fill(~right, -torch.inf)], 1)
    return (scores.logsumexp(1) - rights.logsumexp(1)).sum()


def mention_loss(found: SpanScores, mentions: Sequence[Span]) -> Tensor:
    """Sum of the binary cross entropy of all candidates: is the span a mention?

    Args:
        found: Scores of a document.
        mentions: All mentions, those of clusters of one included. Wider ones are left out.
    """
    scores = found.candidates
    width = scores.shape[1]
    places = [s * width + e - s - 1 for s, e in mentions if e - s <= width]
    right = torch.zeros(scores.numel())
    right[torch.tensor(places, dtype=torch.long)] = 1
    real = scores.isfinite()
    # -inf would give NaN, even where it is left out
    losses = F.binary_cross_entropy_with_logits(
        scores.masked_fill(~real, 0),
        to_device(right.view_as(scores), scores.device),
        reduction="none",
    )
    return losses.masked_fill(~real, 0).sum()


def clusters_of(found: SpanScores, singletons: bool) -> list[list[Span]]:
    """Follow each span to its best antecedent; return clusters in the order of their first spans.

    Args:
        found: Scores of a document.
        singletons: Whether a span without an antecedent is a cluster of its own if its mention
            score is above 0.
    """
    best, places = found.scores.max(1)
    before = torch.where(best > 0, found.antecedents.gather(1, places[:, None])[:, 0], -1).tolist()
    alone = (found.mention > 0).tolist()
    cluster: list[int] = []  # of each span
    for number, place in enumerate(before):
        cluster.append(number if place < 0 else cluster[place])
    groups: dict[int, list[Span]] = {}
    for number, span in zip(cluster, found.spans, strict=True):
        groups.setdefault(number, []).append(span)
    return [
        spans
        for number, spans in groups.items()
        if len(spans) > 1 or (singletons and alone[number])
    ]


def _parts(sentences: Sequence[Span]) -> Iterable[tuple[int, int, list[Span]]]:
    """Groups of sentences with at most so many words, as (start, end, sentences)."""
    some: list[Span] = []
    for sentence in sentences:
        if some and sentence[1] - some[0][0] > _PART:
            yield some[0][0], some[-1][1], some
            some = []
        some.append(sentence)
    if some:
        yield some[0][0], some[-1][1], some
