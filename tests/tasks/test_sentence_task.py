"""Texts of several sentences for tasks about the words of one."""

import pytest

from elmokit.errors import InputError, OutOfMemoryError
from elmokit.tasks import NerTagger, PosTagger, RoleLabeller
from elmokit.tasks.readers.examples import Frame, RoleExample, TaggedExample
from elmokit.tasks.roles import Roles

TEXT = "Ann met Dr. Smith in Rome. She slept! Bob saw Oslo."
SENTENCES = ["Ann met Dr. Smith in Rome.", "She slept!", "Bob saw Oslo."]


@pytest.fixture(scope="module", params=[NerTagger, PosTagger, RoleLabeller])
def task(request):
    return request.param.load(request.param.name, device="cpu")


def test_sentences_are_predicted_alone(task):
    whole = task(TEXT)
    parts = task(SENTENCES)
    assert whole.words == [word for part in parts for word in part.words]
    assert whole.lengths == tuple(len(part.words) for part in parts)
    assert task.to_conll(whole) == "\n".join(map(task.to_conll, parts))
    if task.name != "srl":
        assert whole.tags == [tag for part in parts for tag in part.tags]
        assert task.show(whole) == " ".join(map(task.show, parts))
        return
    assert whole.sentences() == parts
    assert [text.plain() for text in whole.marked()] == task.show(whole).split("\n")
    assert task.show(whole) == "\n".join(map(task.show, parts))
    for frame in whole.frames:
        assert len(frame.tags) == len(whole.words)
        assert frame.tags[frame.predicate] == "B-V"


def test_one_sentence(task):
    """Tokens are one sentence, and so is text that is tokenised already."""
    words = ["Ann", "slept", ".", "Bob", "slept", "."]
    (found,) = task([words])
    assert (found.words, found.lengths) == (words, ())
    assert task("Ann slept.").lengths == ()
    tokenized = type(task).load(task.name, tokenizer="whitespace", device="cpu")
    assert tokenized("Ann slept . Bob slept .").lengths == ()


def test_predicates_and_roles_of_a_text():
    first = Roles(["Ann", "slept"], [Frame(1, ["B-ARG0", "B-V"])], [1])
    second = Roles(["Yes"], [], [])
    third = Roles(["Bob", "ran"], [Frame(1, ["B-ARG0", "B-V"])], [1])
    whole = RoleLabeller.joined(None, [first, second, third])
    assert whole.words == ["Ann", "slept", "Yes", "Bob", "ran"]
    assert whole.frames == [
        Frame(1, ["B-ARG0", "B-V", "O", "O", "O"]),
        Frame(4, ["O", "O", "O", "B-ARG0", "B-V"]),
    ]
    assert whole.found == [1, 4]
    assert whole.sentences() == [first, second, third]
    assert [text.plain() for text in whole.marked()] == [
        "[Ann ARG0] [slept V]",
        "Yes",
        "[Bob ARG0] [ran V]",
    ]


def test_a_text_with_too_many_predicates(monkeypatch):
    part = Roles(["ran"], [Frame(0, ["B-V"])], [0])
    monkeypatch.setattr("elmokit.devices._ALWAYS_FITS", 0)
    monkeypatch.setattr("elmokit.devices.available_bytes", lambda _: 1000)
    with pytest.raises(OutOfMemoryError, match="20 predicates in a text of 20 words need"):
        RoleLabeller.joined(None, [part] * 20)


@pytest.mark.parametrize("kind", [TaggedExample, RoleExample])
def test_lengths_fit_the_words(kind):
    assert kind(["a", "b", "c"], lengths=(1, 2)).lengths == (1, 2)
    with pytest.raises(InputError, match="3 words by their lengths, but 2 words are given"):
        kind(["a", "b"], lengths=(1, 2))
