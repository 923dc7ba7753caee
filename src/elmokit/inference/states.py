"""What the LSTMs start a sentence from.

The default is zeros: a sentence's vectors depend on the sentence alone. The original software
carries the state from one batch to the next, row by row; :class:`CarriedState` does the same on
request. A :class:`elmokit.BiLMState` of one row is a fixed start for every sentence.
"""

from __future__ import annotations

from elmokit.errors import InputError
from elmokit.nn.bilm import BiLM
from elmokit.nn.context import BiLMState


class CarriedState:
    """The state left by the previous sentences; row r of a batch continues row r.

    It grows with the largest batch seen; a smaller batch uses and changes its first rows. Pass the
    same object to call after call. A new object starts from zeros.

    Examples:
        >>> from elmokit import CarriedState, Elmo
        >>> elmo, state = Elmo.load(), CarriedState()
        >>> first = elmo.encode(["The bank ."], state=state)
        >>> second = elmo.encode(["The bank ."], state=state)
        >>> bool((first[0] == second[0]).all())
        False
    """

    def __init__(self) -> None:
        self._state: BiLMState | None = None

    def rows(self, n: int, bilm: BiLM) -> BiLMState:
        """The state the next batch of n sentences starts from."""
        if self._state is not None:
            check_state(self._state, bilm)
        known = 0 if self._state is None else len(self._state)
        if known < n:
            zeros = bilm.zero_state(n - known)
            self._state = zeros if self._state is None else BiLMState.cat([self._state, zeros])
        assert self._state is not None
        return self._state.rows(0, n)

    def keep(self, final: BiLMState) -> None:
        """Remember the final states of a batch."""
        assert self._state is not None
        self._state = BiLMState.cat([final, self._state.rows(len(final), None)])


def check_state(state: BiLMState, bilm: BiLM) -> None:
    """Raise unless a state fits this model."""
    if state.widths != bilm.zero_state(1).widths:
        raise InputError("the state comes from a model of other sizes; start a new one")


StartState = BiLMState | CarriedState | None
"""None for zeros, one row for a fixed start, or a carried state."""
