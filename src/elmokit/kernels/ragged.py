"""Where the tokens of sentences of different lengths lie when they are packed without padding."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from elmokit.devices import to_device


class Ragged:
    """Sentences sorted by length, with their tokens in rows, step by step.

    All tokens of step 0 come first, then all of step 1, and so on. At every step the sentences
    still running are the first rows, so no padding is computed. The backward direction reads each
    sentence from its own end, so both directions have the same rows.

    Attributes:
        lengths: Tokens (B,) of each sentence, in the order given, on the CPU.
        counts: Rows of each step that has any, never growing.
        starts: Where the rows of each step begin, followed by the number N of all rows.
    """

    def __init__(self, lengths: Tensor, time: int, device: torch.device) -> None:
        """Sort a batch.

        Args:
            lengths: Tokens (B,) of each sentence; best on the CPU, because they are needed there.
            time: T, at least the longest length.
            device: Where the rows will be.
        """
        self.lengths = lengths = lengths.cpu()
        self._time, self._n = time, len(lengths)
        order = torch.argsort(lengths, descending=True, stable=True)
        ended = torch.bincount(lengths, minlength=1)  # sentences of each length
        running = self._n - torch.cumsum(ended, 0)  # at step t, the sentences longer than t
        self.counts: list[int] = running[:-1].tolist()
        self.starts = [0, *accumulate(self.counts)]
        steps = len(self.counts)
        # one small copy; the rest is computed on the device
        sizes = torch.cat([order, lengths[order], running[:-1], torch.tensor(self.starts)])
        order, lengths, counts, starts = to_device(sizes, device).tensor_split(
            [self._n, 2 * self._n, 2 * self._n + steps]
        )
        self.order = order  # (B,) the sentence of each row of step 0
        step = torch.repeat_interleave(
            torch.arange(steps, device=device), counts, output_size=self.starts[-1]
        )
        row = torch.arange(self.starts[-1], device=device) - starts[step]
        first = order[row] * time
        # of every packed token: its place among all tokens (B · T), by direction
        self._forward, self._backward = first + step, first + lengths[row] - 1 - step
        self._read = lengths > 0
        last = starts[(lengths - 1).clamp_min(0)] + torch.arange(self._n, device=device)
        self._last = torch.where(self._read, last, 0)
        self._unsort = torch.argsort(order)

    def pack(self, tokens: Tensor, reverse: bool = False) -> Tensor:
        """Tokens (B, T, P) to rows (N, P)."""
        return tokens.flatten(0, 1).index_select(0, self._index(reverse))

    def unpack(self, rows: Tensor, reverse: bool = False) -> Tensor:
        """Rows (N, P) to tokens (B, T, P), zero in the padding."""
        flat = rows.new_zeros(self._n * self._time, rows.shape[1])
        return flat.index_copy(0, self._index(reverse), rows).view(
            self._n, self._time, rows.shape[1]
        )

    def unpack_into(self, rows: Tensor, reverse: bool, tokens: Tensor) -> None:
        """As :meth:`unpack`, into an existing tensor (B, T, P)."""
        flat = tokens.zero_().view(self._n * self._time, rows.shape[1])
        flat.index_copy_(0, self._index(reverse), rows.to(tokens.dtype))

    def sort(self, states: Tensor) -> Tensor:
        """States (R, B, …) in the order of sentences to the order of rows."""
        return states.index_select(1, self.order)

    def unsort(self, states: Tensor) -> Tensor:
        """States (R, B, …) in the order of rows to the order of sentences."""
        return states.index_select(1, self._unsort)

    def last(self, rows: Tensor, starts: Tensor) -> Tensor:
        """Each sentence's last row (R, B, W) among rows (R, N, W); its start if it has no tokens.

        In the order of rows.
        """
        if not self.counts:
            return starts
        return torch.where(self._read[:, None], rows.index_select(1, self._last), starts)

    def _index(self, reverse: bool) -> Tensor:
        return self._backward if reverse else self._forward
