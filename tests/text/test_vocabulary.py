"""The vocabulary of a softmax."""

import pytest

from elmokit.errors import FormatError
from elmokit.text.vocabulary import Vocabulary


def test_vocabulary():
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "a"])
    assert vocabulary.ids(["a", "b", "</S>"]).tolist() == [3, 2, 1]
    assert vocabulary.ids([]).shape == (0,)
    with pytest.raises(FormatError, match="no line </S> or <UNK>"):
        Vocabulary(["<S>"])
    with pytest.raises(FormatError, match="1 words more than once, such as 'a'"):
        Vocabulary(["<S>", "</S>", "<UNK>", "a", "a"])
