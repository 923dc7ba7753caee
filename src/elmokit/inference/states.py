"""What the LSTMs start a sentence from.

By default zeros, so that a sentence's vectors depend on the sentence alone. The original software
carries the state from one batch to the next, row by row; :class:`CarriedState` does that where it
is asked for. A :class:`elmokit.nn.BiLMState` of one row is a fixed start for every sentence.
"""

from __future__ import annotations

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


StartState = BiLMState | CarriedState | None
"""None for zeros, one row for a fixed start, or a carried state."""
