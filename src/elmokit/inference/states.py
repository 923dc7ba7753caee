"""What the LSTMs start a sentence from.

By default zeros, so that a sentence's vectors depend on the sentence alone. The original software
carries the state from one batch to the next, row by row; :class:`CarriedState` does that where it
is asked for. A :class:`elmokit.nn.BiLMState` of one row is a fixed start for every sentence.
"""

from __future__ import annotations

from elmokit.errors import InputError
from elmokit.nn.bilm import BiLM, BiLMState


class CarriedState:
    """The state left by the sentences before, row r of a batch continuing row r.

    It grows with the largest batch seen; a smaller batch uses and changes its first rows. Hand the
    same object to call after call; a new one starts from zeros.
    """

    def __init__(self) -> None:
        self._state: BiLMState | None = None

    def rows(self, n: int, bilm: BiLM) -> BiLMState:
        """The state the next batch of n sentences starts from."""
        if self._state is not None:
            check_state(self._state, bilm)
        known = 0 if self._state is None else len(self._state)
        if known < n:
            fresh = bilm.zero_state(n - known)
            self._state = fresh if self._state is None else BiLMState.cat([self._state, fresh])
        assert self._state is not None
        return self._state.map(lambda t: t[:n])

    def keep(self, final: BiLMState) -> None:
        """Remember what a batch left behind."""
        assert self._state is not None
        rest = self._state.map(lambda t: t[len(final) :])
        self._state = BiLMState.cat([final, rest])


def check_state(state: BiLMState, bilm: BiLM) -> None:
    """Raise unless a state is one of this model's."""

    def sizes(of: BiLMState) -> list[list[tuple[int, int]]]:
        return [[(h.shape[1], c.shape[1]) for h, c in layers] for layers in of.directions]

    if sizes(state) != sizes(bilm.zero_state(1)):
        raise InputError("the state comes from another model, of other sizes; start a new one")


StartState = BiLMState | CarriedState | None
"""None for zeros, one row for a fixed start, or a carried state."""
