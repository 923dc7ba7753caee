"""Question answering: answers inside their passages, windows, what is shown."""

import pickle

import pytest
import torch

from elmokit.errors import ConfigError, InputError
from elmokit.tasks import QuestionAnswerer, load, question_answering
from elmokit.tasks.passages import Passage
from elmokit.tasks.question_answering import Answer
from elmokit.tasks.readers import QuestionExample
from helpers.task_data import questions

SETTINGS = {
    "model": {"hidden_dim": 12, "dropout": 0.0, "window": 40, "longest_answer": 3},
    "input": {"vectors": "token", "at": "both", "dropout": 0.0},
    "training": {"epochs": 2, "batch_size": 8, "learning_rate": 0.01},
}


@pytest.fixture(scope="module")
def answerer(tiny_folder):
    from elmokit import Elmo

    elmo = Elmo.load(tiny_folder, tokenizer="english", device="cpu")
    return QuestionAnswerer.train(questions(12), questions(4, 1), elmo=elmo, settings=SETTINGS)


def test_answers_are_parts_of_their_passages(answerer):
    """Of up to longest_answer words, with the right offsets."""
    for question in (*questions(8, 3), QuestionExample("Who?", "  One\tline,\n two “lines”. ")):
        found = answerer(question)
        assert found.text == question.passage[found.start : found.end]
        assert 1 <= len(answerer.elmo.tokenizer(found.text)) <= 3
        assert 0 < found.probability <= 1


def test_forms_of_a_question(answerer):
    pair = ("Who went to Rome?", "Ann went to Rome.")
    one = answerer(pair).text
    assert answerer("\t".join(pair)).text == one == answerer(QuestionExample(*pair)).text
    assert [found.text for found in answerer([pair, list(pair)])] == [one, one]
    assert answerer([]) == []
    for given, message in (
        ("only one", "expected a question and a passage"),
        ((" ", "x"), "the question is empty"),
        (("x", ""), "the passage is empty"),
        ([("x", 3)], "passage must be a string"),
    ):
        with pytest.raises(InputError, match=message):
            answerer(given)


def test_batches_change_nothing(answerer):
    given = [*questions(9, 5), QuestionExample("Where?", "Ann went to Rome. " * 30)]
    together = answerer.predict(given, batch_size=64)
    for one in (answerer.predict(given, batch_size=1), answerer.predict(given[::-1], 3)[::-1]):
        for a, b in zip(together, one, strict=True):
            assert (a.start, a.end) == (b.start, b.end)
            assert a.probability == pytest.approx(b.probability, rel=1e-3)


def test_long_passages_are_read_in_windows(answerer, monkeypatch):
    """Memory stays bounded: no batch has a row that is longer than the window."""
    widths = []
    forward = QuestionAnswerer.forward
    monkeypatch.setattr(
        QuestionAnswerer, "forward", lambda self, b: widths.append(b.mask.shape) or forward(self, b)
    )
    passage = "Ann went to Rome. " * 200 + "x" * 50 + " and so on " * 300
    found = answerer(("Where did Ann go?", passage))
    assert found.text == passage[found.start : found.end]
    assert max(width for _, width in widths) <= 40
    assert max(rows for rows, _ in widths) <= 128
    # the best of all windows
    item = answerer.prepare(answerer.parse(("Where did Ann go?", passage)))
    windows = answerer.pieces(item)
    assert len(windows) > 40
    edges = [(w.detail.places[0][0], w.detail.places[-1][1]) for w in windows]
    alone = answerer([("Where did Ann go?", passage[start:end]) for start, end in edges])
    assert found.score == pytest.approx(max(answer.score for answer in alone), abs=1e-3)


def test_training_uses_the_windows_with_an_answer(answerer):
    text = "Bob slept. " * 20 + "Ann went to Rome. " + "Bob slept. " * 20
    item = answerer.prepare(QuestionExample("Who?", text, answers=["Ann went"]))
    learned = answerer.pieces(item, learning=True)
    assert 1 <= len(learned) < len(answerer.pieces(item))
    for piece in learned:
        words = [word for sentence in piece.texts[1] for word in sentence]
        assert [words[a : b + 1] for a, b in piece.detail.answers] == [["Ann", "went"]]
    short = answerer.prepare(QuestionExample("Who?", "Ann slept.", answers=["Ann"]))
    assert len(answerer.pieces(short)) == len(answerer.pieces(short, learning=True)) == 1


def test_passages_are_split_once(answerer):
    before = question_answering.split_once.cache_info().misses
    for number in range(5):
        answerer.prepare(QuestionExample(f"Question {number}?", "A passage of its own."))
    assert question_answering.split_once.cache_info().misses == before + 1


def test_it_can_be_pickled(answerer):
    again = pickle.loads(pickle.dumps(answerer))
    question = ("Who slept?", "Ann slept.")
    assert again(question) == answerer(question)


def test_what_is_shown(answerer):
    found = Answer("Who?", "Mr. <A>\nB came.", 4, 9, -1.0, 0.0)
    assert answerer.show(found) == "<A> B"
    (marked,) = answerer.marked(found)
    assert marked.plain() == "Who? Mr. [<A>\nB] came."
    assert "Mr. <mark" in marked.html()
    assert "&lt;A&gt;\nB</mark> came.</p>" in marked.html()
    assert answerer.record(found) == {
        "answer": "<A>\nB", "start": 4, "end": 9, "probability": pytest.approx(0.3679, abs=1e-4),
    }  # fmt: skip


def test_the_probability_is_that_of_both_words(answerer):
    item = answerer.prepare(questions(1)[0])
    from elmokit.tasks.frozen_layers import FrozenLayers
    from elmokit.tasks.word_batches import Batcher

    with FrozenLayers(answerer.elmo, answerer.input.layers) as layers, torch.no_grad():
        batch = Batcher(answerer.input, layers, None, torch.device("cpu")).make([item])
        output = answerer.forward(batch)
    found = answerer(item.example)
    starts, ends = output.start.softmax(1)[0], output.end.softmax(1)[0]
    places = item.detail.places
    a = next(i for i, (start, _) in enumerate(places) if start == found.start)
    b = next(i for i, (_, end) in enumerate(places) if end == found.end)
    assert found.probability == pytest.approx(float(starts[a] * ends[b]), rel=1e-3)


def test_mistakes_name_the_question(answerer, monkeypatch):
    none = Passage((("a",),), ((0, 1),))
    monkeypatch.setattr(question_answering, "split_once", lambda *_: none)
    with pytest.raises(InputError, match="question q7: the tokenizer finds no word in the answer"):
        answerer.prepare(QuestionExample("Who?", "a passage with b", "q7", ["b"]))


def test_settings(tiny):
    with pytest.raises(ConfigError, match="window must be at least 4 times longest_answer"):
        QuestionAnswerer.defaults.changed({"model": {"window": 20}})
    examples = questions(4)
    plain = {"model": {"character_filters": 0, "hidden_dim": 4}, "training": {"epochs": 1}}
    task = QuestionAnswerer.train(examples, examples, elmo=tiny, settings=plain)
    assert task.head.characters is None
    assert task.labels == []


def test_saved(answerer, tmp_path):
    answerer.save(tmp_path / "model")
    again = load(tmp_path / "model", device="cpu")
    pair = ("Who went to Rome?", "Ann went to Rome.")
    assert again(pair) == answerer(pair)
    assert "| labels |" not in (tmp_path / "model" / "README.md").read_text()
