"""What a notebook shows of task models, their scores and their predictions."""

import pickle

import pytest

from elmokit.tasks import NerTagger, PosTagger, SimilarityScorer, TextClassifier
from elmokit.tasks.coref import Resolved
from elmokit.tasks.labelling import Label
from elmokit.tasks.marked_text import Mark, MarkedText
from elmokit.tasks.measures.scores import ClassScore, Confusion, Scores
from elmokit.tasks.question_answering import Answer
from elmokit.tasks.readers.examples import Frame, PairExample, TaggedExample, TextExample
from elmokit.tasks.roles import Roles
from elmokit.tasks.tagging import Tagged

ONE_EPOCH = {"training": {"epochs": 1}, "model": {"hidden_dim": 4}}
TEXTS = [TextExample("so <good>", "pos"), TextExample("so bad", "neg")]


@pytest.fixture
def classifier(tiny):
    return TextClassifier.train(TEXTS, TEXTS, elmo=tiny, settings=ONE_EPOCH)


def test_a_task_model(classifier):
    html = classifier._repr_html_()
    for part in ("TextClassifier", ">classify<", ">neg, pos<", "accuracy", "(2 texts, epoch 1)"):
        assert part in html
    assert repr(classifier).endswith(", 2 labels)")
    assert "\n" not in repr(classifier)


def test_predictions_of_labels(classifier):
    found = classifier(["so <good>", ["so", "bad"]])
    html = found._repr_html_()
    for part in (">text<", ">so &lt;good&gt;<", ">so bad<", found[1].label):
        assert part in html
    pairs = dict(zip(("good", "bad"), map(classifier.show, found), strict=True))
    found.reverse()  # each text stays with its prediction
    first, second = found._repr_html_().split("<tr>")[2:]
    assert "so bad" in first
    assert pairs["bad"] in first
    assert pairs["good"] in second
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is list
    assert again == found


def test_a_label():
    html = Label("b", {"a": 0.25, "b": 0.75})._repr_html_()
    assert html.index(">0.750<") < html.index(">0.250<")


def test_predictions_of_tags(tiny):
    examples = [
        TaggedExample(["Ann", "saw", "Rome"], ["B-PER", "O", "B-LOC"]),
        TaggedExample(["Rome", "<"], ["B-LOC", "O"]),
    ]
    settings = ONE_EPOCH | {"training": {"epochs": 20, "batch_size": 1}}
    ner = NerTagger.train(examples, examples, elmo=tiny, settings=settings)
    predicted = ner(["Ann saw Rome", "Rome <"])
    assert predicted[0].scheme == "iob2"
    html = predicted._repr_html_()
    assert html == "\n".join(ner.marked(one)[0].html(styled=True) for one in predicted)
    assert "&lt;" in html
    pos = PosTagger.train(examples, examples, elmo=tiny, settings=ONE_EPOCH)
    one = pos("Ann saw")
    assert one.scheme is None
    assert one._repr_html_().count("<mark") == 2  # a tag at each word
    assert pos(["Ann saw"])._repr_html_() == one._repr_html_()


def test_predictions_of_numbers(tiny):
    examples = [PairExample("a b", "a b", 5.0), PairExample("a b", "c d", 0.0)]
    scorer = SimilarityScorer.train(examples, examples, elmo=tiny, settings=ONE_EPOCH)
    html = scorer([("a b", "a c")])._repr_html_()
    for part in (">first<", ">second<", ">a b<", ">a c<"):
        assert part in html


def test_marked_predictions():
    tagged = Tagged(["Ann", "<saw>", "Rome"], ["B-PER", "O", "B-LOC"])
    html = tagged._repr_html_()
    assert html.count("<mark style=") == 2
    for part in ("PER</small>", "LOC</small>", "&lt;saw&gt;"):
        assert part in html
    colours = [mark.group for mark in tagged.marked()[0].marks]
    assert colours == [0, 1]
    assert [mark.group for mark in tagged.marked(["LOC", "PER"])[0].marks] == [1, 0]
    roles = Roles(["Ann", "slept"], [Frame(1, ["B-ARG0", "B-V"])], [1])
    assert [(mark.label, mark.group) for mark in roles.marked()[0].marks] == [("ARG0", 1), ("V", 0)]
    for found in (
        roles,
        Resolved([["Ann", "sat"]], [[(0, 1)]]),
        Answer("Who?", "Ann.", 0, 3, 0, 1),
    ):
        html = found._repr_html_()
        assert "<mark style=" in html
        assert "class=" not in html
    assert "<b>Who?</b>" in html


def test_one_marked_text():
    text = MarkedText(["a"], [Mark(0, 1, "x", 9)], "t<")
    assert text._repr_html_() == text.html(styled=True)
    assert "t&lt;" in text._repr_html_()


def test_scores():
    confusion = Confusion.count(["a", "b<"], ["a", "a"])
    scores = Scores("accuracy", 50.0, {}, 2, "texts", {"a": ClassScore(1, 2, 3, 4)}, confusion)
    html = scores._repr_html_()
    for part in (">accuracy<", ">50.00<", ">support<", ">b&lt;<", "gold \\ predicted"):
        assert part in html
    assert html.count("<table") == 3
    assert Scores("f1", 1.0, {}, 2)._repr_html_().count("<table") == 1
