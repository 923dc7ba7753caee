"""Sentence splitting."""

import pytest

from elmokit.errors import InputError
from elmokit.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rains. We stay.", ["It rains.", "We stay."]),
        ('"Really?" She left! Then… Nothing.', ['"Really?"', "She left!", "Then…", "Nothing."]),
        ("Dr. Smith met J. R. Jones in the U.S. Army.", None),
        ("It was he and I. They left.", ["It was he and I.", "They left."]),
        ("It cost 3.5 million. 20 people came.", ["It cost 3.5 million.", "20 people came."]),
        ("See Fig. 3, e.g. this one", None),
        ("今天下雨。我们不去！“好吗？”好", ["今天下雨。", "我们不去！", "“好吗？”", "好"]),
        ("  one sentence  ", ["one sentence"]),
        ("", []),
    ],
)
def test_split_sentences(text, sentences):
    assert split_sentences(text) == ([text] if sentences is None else sentences)


def test_runs_of_punctuation_stay_together():
    assert split_sentences("What?!?! No... Yes?.. B") == ["What?!?!", "No...", "Yes?..", "B"]
    assert split_sentences("a.!.b") == ["a.!.b"]


def test_other_types_are_refused():
    with pytest.raises(InputError, match="text must be a string, not 5"):
        split_sentences(5)
