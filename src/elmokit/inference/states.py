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
            self._state = fitting_state(self._state, bilm)
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


def fitting_state(state: BiLMState, bilm: BiLM) -> BiLMState:
    """A state on the device and in the type of a model; raises if it has other sizes."""
    zeros = bilm.zero_state(1)
    try:
        fits = state.widths == zeros.widths
    except (AttributeError, IndexError, TypeError, ValueError):
        raise InputError("state must be a BiLMState of tensors; use one from a model") from None
    if not fits:
        raise InputError("the state comes from a model of other sizes; start a new one")
    return state.map(lambda t: t.to(zeros.tensors[0]))


StartState = BiLMState | CarriedState | None
"""None for zeros, one row for a fixed start, or a carried state."""
