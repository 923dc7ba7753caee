"""F1 of spans, by hand and against seqeval."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from seqeval.metrics import classification_report
from seqeval.scheme import IOB2, IOBES

from elmokit.errors import InputError
from elmokit.tasks.measures.spans import scores_of_spans, span_scores
from elmokit.tasks.measures.tag_schemes import Span


def test_by_hand():
    gold = ["B-PER I-PER O B-LOC", "B-ORG O B-PER", "O"]
    predicted = ["B-PER I-PER O B-ORG", "B-ORG I-ORG I-PER", "B-LOC"]
    scores = span_scores([g.split() for g in gold], [p.split() for p in predicted])
    # gold: PER 0-2, LOC 3-4; ORG 0-1, PER 2-3. predicted: PER 0-2, ORG 3-4; ORG 0-2; LOC 0-1.
    # One of four is correct; I-PER after ORG belongs to no span.
    assert scores.name == "f1"
    assert scores.value == scores.others["precision"] == scores.others["recall"] == 25
    # PER: P 1/1, R 1/2, F1 2/3; LOC 0/1, 0/1; ORG 0/2, 0/1
    assert scores.per_class["PER"].precision == 100
    assert scores.per_class["PER"].recall == 50
    assert scores.others["macro f1"] == pytest.approx(100 * (2 / 3) / 3)
    assert {kind: score.support for kind, score in scores.per_class.items()} == {
        "LOC": 1, "ORG": 1, "PER": 2,
    }  # fmt: skip
    assert (scores.n, scores.unit) == (3, "sentences")
    assert scores.confusion_rows() == [
        ["gold \\ predicted", "LOC", "ORG", "PER", "(none)"],
        ["LOC", "0", "1", "0", "0"],
        ["ORG", "0", "0", "0", "1"],
        ["PER", "0", "0", "1", "1"],
        ["(none)", "1", "1", "0", "0"],
    ]


def test_no_spans_at_all():
    scores = span_scores([["O", "O"]], [["O", "O"]])
    assert scores.value == 0
    assert scores.per_class == {}
    assert scores.confusion.labels == ()
    assert span_scores([["B-A"]], [["O"]]).value == 0
    assert span_scores([["O"]], [["B-A"]]).value == 0


def test_words_of_a_segmentation():
    gold, predicted = ["B", "E", "S", "S"], ["B", "E", "B", "E"]
    scores = span_scores([gold], [predicted], "bmes")
    # words 0-2, 2-3, 3-4 and 0-2, 2-4
    assert scores.others["precision"] == 50
    assert scores.others["recall"] == pytest.approx(100 / 3)
    assert scores.value == pytest.approx(40)
    assert list(scores.per_class) == ["_"]


def test_overlapping_spans():
    gold = [[Span(0, 2, "A"), Span(0, 2, "B"), Span(1, 2, "A")]]
    predicted = [[Span(0, 2, "A"), Span(0, 2, "C"), Span(0, 2, "D"), Span(1, 3, "A")]]
    scores = scores_of_spans(gold, predicted)
    assert scores.others["precision"] == 25
    assert scores.others["recall"] == pytest.approx(100 / 3)
    confusion = scores.confusion
    found = {
        (g, p): count
        for g, row in zip(confusion.labels, confusion.counts, strict=True)
        for p, count in zip(confusion.labels, row, strict=True)
        if count
    }
    assert found == {
        ("A", "A"): 1, ("B", "C"): 1, ("(none)", "D"): 1, ("A", "(none)"): 1, ("(none)", "A"): 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "theirs", "letters"), [("iob2", IOB2, "BI"), ("bioes", IOBES, "BIES")]
)
def test_against_seqeval(scheme, theirs, letters):
    tags = st.sampled_from(["O", *(f"{letter}-{kind}" for letter in letters for kind in "XYO")])
    sentence = st.lists(st.tuples(tags, tags), min_size=1, max_size=8)

    @given(st.lists(sentence, min_size=1, max_size=5))
    def check(pairs):
        gold = [[g for g, _ in some] for some in pairs]
        predicted = [[p for _, p in some] for some in pairs]
        scores = span_scores(gold, predicted, scheme)
        assume(scores.per_class)  # seqeval returns NaN without spans
        report = classification_report(
            gold, predicted, mode="strict", scheme=theirs, output_dict=True, zero_division=0
        )
        for average, ours in (
            ("micro avg", scores.value),
            ("macro avg", scores.others["macro f1"]),
        ):
            assert ours == pytest.approx(100 * report[average]["f1-score"])
        assert scores.others["precision"] == pytest.approx(100 * report["micro avg"]["precision"])
        assert scores.others["recall"] == pytest.approx(100 * report["micro avg"]["recall"])
        assert set(scores.per_class) == {name for name in report if not name.endswith("avg")}
        for name, found in scores.per_class.items():
            assert found.precision == pytest.approx(100 * report[name]["precision"])
            assert found.recall == pytest.approx(100 * report[name]["recall"])
            assert found.f1 == pytest.approx(100 * report[name]["f1-score"])
            assert found.support == report[name]["support"]
        for label, row in zip(scores.confusion.labels, scores.confusion.counts, strict=True):
            if label != "(none)":
                assert sum(row) == scores.per_class[label].support

    check()


def test_mistakes():
    with pytest.raises(InputError, match="empty"):
        span_scores([], [])
    with pytest.raises(InputError, match="gold has 2 sentences but predicted has 1"):
        scores_of_spans([[], []], [[]])
    with pytest.raises(InputError, match="sentence 1 has 1 tags in gold but 2 in predicted"):
        span_scores([["O"]], [["O", "O"]])
    with pytest.raises(InputError, match="unknown tag 'S-A'"):
        span_scores([["O"]], [["S-A"]])
