"""A linear-chain conditional random field over the tags of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.arguments import one_of, strings
from elmokit.errors import InputError, shown

SCHEMES = {"none": "", "iob2": "BI", "bioes": "BIES"}
"""How labels mark spans, with the prefixes of each scheme besides O."""

# Score of a forbidden transition. It absorbs every real score, its exponential is exactly zero,
# and unlike infinity it has gradients.
_FORBIDDEN = -1e30


def allowed_transitions(labels: Sequence[str], scheme: str) -> Tensor:
    """Which label may follow which, as booleans (K + 1, K + 1).

    Rows are the labels before, then the start of the sentence. Columns are the labels after, then
    the end.

    Args:
        labels: K labels, such as O, B-PER and I-PER. In the scheme "none" they can be anything.
        scheme: "iob2", "bioes" or "none", which allows every transition.
    """
    labels, scheme = strings(labels, "labels"), one_of(scheme, "scheme", SCHEMES)
    if scheme == "none":
        return torch.ones(len(labels) + 1, len(labels) + 1, dtype=torch.bool)
    marks = [_mark(label, scheme) for label in labels] + [("O", "")]  # edges are like O
    return torch.tensor([[_follows(before, after, scheme) for after in marks] for before in marks])


def _mark(label: str, scheme: str) -> tuple[str, str]:
    """The prefix and the type of a label."""
    prefix, _, kind = label.partition("-")
    if label != "O" and prefix not in tuple(SCHEMES[scheme]):
        expected = ", ".join(f"{prefix}-…" for prefix in SCHEMES[scheme])
        raise InputError(f"the label {shown(label)} is not of the scheme {scheme}: O, {expected}")
    return prefix, kind


def _follows(before: tuple[str, str], after: tuple[str, str], scheme: str) -> bool:
    """Whether a label may follow another."""
    is_open = before[0] in ("B", "I")
    if after[0] in ("I", "E"):
        return is_open and before[1] == after[1]
    return not is_open or scheme == "iob2"  # in IOB2 a span may end anywhere


class CRF(nn.Module):
    """Scores of tag sequences, their probabilities, and the best sequence.

    The score of a sequence is the sum of its emissions and transitions, from the start to the end.
    Computes in float32 at least, also under autocast.

    Args:
        n_tags: K, the number of tags.
        allowed: Transitions (K + 1, K + 1) as from :func:`allowed_transitions`; None for all.
        constrain_loss: Whether forbidden sequences have probability 0 in the loss too. They are
            never decoded in either case.
    """

    allowed: Tensor

    def __init__(
        self, n_tags: int, allowed: Tensor | None = None, constrain_loss: bool = False
    ) -> None:
        super().__init__()
        size = (n_tags + 1, n_tags + 1)
        if allowed is None:
            allowed = torch.ones(size, dtype=torch.bool)
        elif allowed.shape != size or allowed.dtype != torch.bool:
            raise InputError(
                f"allowed must be booleans of the shape {size}, not {allowed.dtype} "
                f"of the shape {tuple(allowed.shape)}"
            )
        self.constrain_loss = constrain_loss
        self.transitions = nn.Parameter(torch.empty(n_tags, n_tags))  # from row to column
        self.start = nn.Parameter(torch.empty(n_tags))
        self.end = nn.Parameter(torch.empty(n_tags))
        self.register_buffer("allowed", allowed.clone(), persistent=False)  # follows from labels
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw small weights."""
        for parameter in (self.transitions, self.start, self.end):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Negative log likelihoods (B,) of tag sequences; 0 for an empty sentence.

        With ``constrain_loss``, a forbidden sequence has an infinite loss and no gradient; see
        :meth:`is_allowed`.

        Args:
            emissions: Scores (B, T, K) of each tag at each token.
            tags: Gold tags (B, T); any values in the padding.
            mask: True (B, T) at tokens, which are at the start of each row.
        """
        loss = self.log_partition(emissions, mask) - self.score(emissions, tags, mask)
        if self.constrain_loss:
            loss = torch.where(self.is_allowed(tags, mask), loss, torch.inf)
        return loss

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Scores (B,) of tag sequences, allowed or not; arguments as in :meth:`forward`."""
        emissions, tags = _real(emissions, mask), tags.masked_fill(~mask, 0)
        if not mask.shape[1]:
            return emissions.new_zeros(len(mask))
        emitted = emissions.gather(2, tags[..., None]).squeeze(2).sum(1)
        moves = self.transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(1)
        edges = self.start[tags[:, 0]] + self.end[_last(tags, mask)]
        return emitted + moves + edges.masked_fill(~mask[:, 0], 0)

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Logarithms (B,) of the summed exponentials of the scores of all sequences.

        With ``constrain_loss``, of the allowed sequences only.
        """
        emissions = _real(emissions, mask)
        if not mask.shape[1]:
            return emissions.new_zeros(len(mask))
        transitions, start, end = self._weights(emissions.dtype, self.constrain_loss)
        (emitted, _), *steps = _steps(emissions, mask)
        total = start + emitted  # (B, K), of all sequences so far that end in each tag
        for emitted, real in steps:
            grown = (total[:, :, None] + transitions).logsumexp(1) + emitted
            total = torch.where(real, grown, total)
        return (total + end).logsumexp(1).masked_fill(~mask[:, 0], 0)

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The best allowed tags (B, T), zero in the padding, by Viterbi's algorithm.

        If no sequence of this length is allowed, one with the fewest forbidden transitions.
        """
        emissions = _real(emissions, mask)
        if not mask.shape[1]:
            return mask.long()
        transitions, start, end = self._weights(emissions.dtype, True)
        (emitted, _), *steps = _steps(emissions, mask)
        best = start + emitted  # (B, K), of the best sequence so far that ends in each tag
        stay = torch.arange(len(start), device=mask.device)
        origins = []  # at each token, the best tag before each tag
        for emitted, real in steps:
            grown, origin = (best[:, :, None] + transitions).max(1)
            best = torch.where(real, grown + emitted, best)
            origins.append(torch.where(real, origin, stay))
        path = [(best + end).argmax(1, keepdim=True)]
        for origin in reversed(origins):  # the padding stays at the last tag
            path.append(origin.gather(1, path[-1]))
        return torch.cat(path[::-1], 1).masked_fill(~mask, 0)

    def is_allowed(self, tags: Tensor, mask: Tensor) -> Tensor:
        """Whether each tag sequence is allowed, as booleans (B,)."""
        tags = tags.masked_fill(~mask, 0)
        if not mask.shape[1]:
            return mask.new_ones(len(mask))
        moves = (self.allowed[tags[:, :-1], tags[:, 1:]] | ~mask[:, 1:]).all(1)
        edges = self.allowed[-1, tags[:, 0]] & self.allowed[_last(tags, mask), -1]
        return moves & (edges | ~mask[:, 0])

    def _weights(self, dtype: torch.dtype, constrained: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions (K, K), scores of tags at the start (K,) and at the end (K,)."""
        weights = self.transitions, self.start, self.end
        transitions, start, end = (weight.to(dtype) for weight in weights)
        if constrained:
            forbidden = ~self.allowed
            transitions = transitions.masked_fill(forbidden[:-1, :-1], _FORBIDDEN)
            start = start.masked_fill(forbidden[-1, :-1], _FORBIDDEN)
            end = end.masked_fill(forbidden[:-1, -1], _FORBIDDEN)
        return transitions, start, end


def _real(emissions: Tensor, mask: Tensor) -> Tensor:
    """Emissions in float32 or float64, zero in the padding."""
    dtype = torch.promote_types(emissions.dtype, torch.float32)
    return emissions.to(dtype).masked_fill(~mask[..., None], 0)


def _steps(emissions: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each token its emissions (B, K) and whether it is real (B, 1)."""
    # one operation, whose backward pass is one too
    return list(zip(emissions.unbind(1), mask[..., None].unbind(1), strict=True))


def _last(tags: Tensor, mask: Tensor) -> Tensor:
    """The tag (B,) of each sentence's last token, or the first of an empty row."""
    return tags.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
