"""Passages: words with their places, windows, and the words of answers."""

import random

import pytest

from elmokit.errors import InputError
from elmokit.tasks.passages import Passage, answer_words, split_passage, windows
from elmokit.tasks.readers import GoldAnswer, QuestionExample
from elmokit.text.tokenizers import get_tokenizer

ENGLISH = get_tokenizer("english")
TEXT = " Dr. Ann's cat sat.  It  sat on\nthe mat! 100%"


def test_words_are_slices_of_the_passage():
    passage = split_passage(TEXT, ENGLISH, 99)
    words = [word for sentence in passage.sentences for word in sentence]
    assert [TEXT[start:end] for start, end in passage.places] == words
    assert [sentence[0] for sentence in passage.sentences] == ["Dr.", "It", "100"]
    assert words == [w for s in split_passage(TEXT, ENGLISH, 2).sentences for w in s]
    assert max(map(len, split_passage(TEXT, ENGLISH, 2).sentences)) == 2
    with pytest.raises(InputError, match="finds no word"):
        split_passage("x", get_tokenizer(lambda text: []), 4)


def test_answers_without_words():
    example = QuestionExample("?", "a b", answers=["b"])
    with pytest.raises(InputError, match="the tokenizer finds no word in the answer 'b'"):
        answer_words(example, Passage((("a",),), ((0, 1),)), False)


def passage_of(lengths, answers=()):
    numbers = iter(range(sum(lengths)))
    sentences = tuple(tuple(str(next(numbers)) for _ in range(n)) for n in lengths)
    return Passage(sentences, tuple((i, i + 1) for i in range(sum(lengths))), tuple(answers))


@pytest.mark.parametrize("seed", range(5))
def test_windows_have_every_short_answer(seed):
    rng = random.Random(seed)
    most = rng.choice([4, 8, 11, 40])
    n_words = rng.randrange(1, 300)
    lengths = []
    while sum(lengths) < n_words:
        lengths.append(rng.randrange(1, most // 4 + 1))
    answers = [(a, a + most // 4 - 1) for a in range(sum(lengths) - most // 4 + 1)]
    whole = passage_of(lengths, answers)
    found = list(windows(whole, most))
    assert all(0 < len(window.places) <= most for window in found)
    seen = set()
    for window in found:
        assert [w for s in window.sentences for w in s] == [str(a) for a, _ in window.places]
        for a, b in window.answers:
            assert 0 <= a <= b < len(window.places)
            seen.add((window.places[a][0], window.places[b][0]))
    assert seen == set(answers)
    assert {place for window in found for place in window.places} == set(whole.places)
    assert len(found) <= 1 + len(whole.places) // max(1, most // 4)


def test_long_answers_are_cut_in_long_passages_only():
    (window,) = windows(passage_of([2] * 4, [(1, 7)]), 8)
    assert window.answers == ((1, 7),)
    spans = [w.answers for w in windows(passage_of([2] * 8, [(1, 14)]), 8) if w.answers]
    assert spans == [((1, 2),)]


@pytest.mark.parametrize(
    ("answers", "every", "expected"),
    [
        ([GoldAnswer("art", 12)], False, ["art"]),
        ([GoldAnswer("art", 2)], False, ["start"]),
        ([GoldAnswer("art", 2)], True, ["art", "art"]),
        (["art"], False, ["art", "art"]),
        (["modern art"], False, ["modern art"]),
        (["odern"], False, ["modern"]),
        (["art", GoldAnswer("art", 12)], False, ["art", "art"]),
        (["0s"], False, ["1990s"]),
    ],
)
def test_words_of_answers(answers, every, expected):
    text = "start of an art (modern art), 1990s"
    passage = split_passage(text, ENGLISH, 99)
    spans = answer_words(QuestionExample("?", text, answers=answers), passage, every)
    places = passage.places
    assert [text[places[a][0] : places[b][1]] for a, b in spans] == expected
