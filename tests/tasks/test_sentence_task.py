"""Texts of several sentences for tasks about the words of one."""

import pytest

from elmokit.errors import InputError, OutOfMemoryError
from elmokit.tasks import NerTagger, PosTagger, RoleLabeller
from elmokit.tasks.long_texts import split_words
from elmokit.tasks.readers.examples import Frame, RoleExample, TaggedExample
from elmokit.tasks.roles import Roles, joined_roles
from elmokit.text.tokenizers import get_tokenizer

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
    whole = joined_roles([first, second, third])
    assert whole.words == ["Ann", "slept", "Yes", "Bob", "ran"]
    assert whole.frames == [
        Frame(1, ["B-ARG0", "B-V", "O", "O", "O"]),
        Frame(4, ["O", "O", "O", "B-ARG0", "B-V"]),
    ]
    assert whole.found == [1, 4]
    assert whole.sentences() == [first, second, third]
    assert whole.roles() == [[(0, 1, "ARG0"), (1, 2, "V")], [(3, 4, "ARG0"), (4, 5, "V")]]
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
        joined_roles([part] * 20)


@pytest.mark.parametrize("kind", [TaggedExample, RoleExample])
def test_lengths_fit_the_words(kind):
    assert kind(["a", "b", "c"], lengths=(1, 2)).lengths == (1, 2)
    for lengths in [(1, 2), (0, 2), (3, -1)]:
        with pytest.raises(InputError, match="from 1 that add up to 2, not"):
            kind(["a", "b"], lengths=lengths)


def test_examples_with_answers_are_single_sentences():
    with pytest.raises(InputError, match="one sentence; leave out lengths="):
        TaggedExample(["a", "b"], ["X", "Y"], lengths=(1, 1))
    with pytest.raises(InputError, match="one sentence; leave out lengths="):
        RoleExample(["a", "b"], [], lengths=(1, 1))


def test_what_is_written(task):
    """JSON counts words over the whole text and says where sentences end."""
    found = task.record(task(TEXT))
    assert found["sentences"] == [7, 3, 4]
    assert "sentences" not in task.record(task(SENTENCES[0]))
    for frame in found.get("frames", []):
        for role in frame["roles"]:
            assert role["words"] == found["words"][role["start"] : role["end"]]
            assert frame["tags"][role["start"]] == f"B-{role['role']}"


@pytest.mark.parametrize("text", ["", "  ", "...", "?! ?!", "。。"])
def test_hardly_any_text(task, text):
    found = task(text)
    assert "".join(found.words) == text.replace(" ", "")


def test_split_words():
    """Each sentence is split by the model's own tokenizer."""
    letters = get_tokenizer(list)
    assert split_words("他来了。她走了！", letters) == (list("他来了。她走了！"), (4, 4))
    english = get_tokenizer("english")
    assert split_words("Ann slept. Bob ran.", english)[1] == (3, 3)
    assert split_words("Ann slept . Bob ran .", get_tokenizer("whitespace"))[1] == ()
    assert split_words(["Ann", ".", "Bob", "."], english) == (["Ann", ".", "Bob", "."], ())
