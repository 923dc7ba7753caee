"""Spans as tags: legal and illegal sequences, conversion, detection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB2, IOBES, Tokens

from elmokit.errors import InputError
from elmokit.tasks.measures.tag_schemes import (
    SCHEMES,
    Span,
    convert_tags,
    detect_scheme,
    read_spans,
    stray_tags,
    to_iob2,
    write_tags,
)

# two spans of the same type side by side, one of another type, one token outside, one alone
SPANS = [Span(0, 3, "A"), Span(3, 5, "A"), Span(5, 6, "B"), Span(7, 8, "A")]
TAGS = {
    "iob1": "I-A I-A I-A B-A I-A I-B O I-A",
    "iob2": "B-A I-A I-A B-A I-A B-B O B-A",
    "bios": "B-A I-A I-A B-A I-A S-B O S-A",
    "bioes": "B-A I-A E-A B-A E-A S-B O S-A",
    "bmes": "B-A M-A E-A B-A E-A S-B O S-A",
    "bilou": "B-A I-A L-A B-A L-A U-B O U-A",
}


@st.composite
def sentences(draw):
    """Spans that do not overlap, and the number of tokens."""
    spans, n = [], 0
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.sampled_from("AB")))
    ):
        n += gap
        if length:
            spans.append(Span(n, n + length, kind))
        n += length
    return spans, n


def tags_of(letters, kinds=("A", "B")):
    """Any tags of a scheme, legal or not."""
    tags = [letter + (f"-{kind}" if kind else "") for letter in letters for kind in kinds]
    return st.lists(st.sampled_from(["O", *tags]), max_size=12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_by_hand(scheme):
    tags = TAGS[scheme].split()
    assert read_spans(tags, scheme) == SPANS
    assert write_tags(SPANS, 8, scheme) == tags
    assert to_iob2(tags, scheme) == TAGS["iob2"].split()
    assert detect_scheme([["O"], [], tags]) == scheme
    assert stray_tags(tags, scheme) == []


@pytest.mark.parametrize(
    ("scheme", "tags", "spans", "stray"),
    [
        ("iob2", "I-A I-A O", [], [0, 1]),
        ("iob2", "B-A I-B I-B", [(0, 1, "A")], [1, 2]),
        ("iob2", "O I-A B-A", [(2, 3, "A")], [1]),
        ("bioes", "B-A I-A O", [], [0, 1]),
        ("bioes", "B-A", [], [0]),
        ("bioes", "B-A B-A E-A", [(1, 3, "A")], [0]),
        ("bioes", "B-A E-B S-A", [(2, 3, "A")], [0, 1]),
        ("bioes", "S-A E-A I-A", [(0, 1, "A")], [1, 2]),
        ("bmes", "M-A E-A S-A", [(2, 3, "A")], [0, 1]),
        ("bilou", "B-A L-A L-A", [(0, 2, "A")], [2]),
        ("bios", "B-A O B-A I-A S-A", [(2, 4, "A"), (4, 5, "A")], [0]),
        ("iob1", "I-A I-B B-B B-A", [(0, 1, "A"), (1, 2, "B"), (2, 3, "B"), (3, 4, "A")], []),
        ("bmes", "B E S B M E", [(0, 2, ""), (2, 3, ""), (3, 6, "")], []),
        ("iob2", "B-per-son I-per-son", [(0, 2, "per-son")], []),
        ("iob2", "", [], []),
    ],
)
def test_illegal_and_unusual_sequences(scheme, tags, spans, stray):
    assert read_spans(tags.split(), scheme) == spans
    assert stray_tags(tags.split(), scheme) == stray


@given(sentences(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_round_trip(sentence, first, second):
    spans, n = sentence
    tags = write_tags(spans, n, first)
    assert len(tags) == n
    assert read_spans(tags, first) == spans
    other = convert_tags(tags, first, second)
    assert read_spans(other, second) == spans
    assert convert_tags(other, second, first) == tags


@given(st.lists(sentences(), min_size=1, max_size=8), st.sampled_from(SCHEMES))
def test_a_detected_scheme_reads_the_same_spans(several, scheme):
    tags = [write_tags(spans, n, scheme) for spans, n in several]
    found = detect_scheme(tags)
    assert [read_spans(some, found) for some in tags] == [spans for spans, _ in several]


@pytest.mark.parametrize(
    ("scheme", "theirs", "letters"),
    [("iob2", IOB2, "BI"), ("bioes", IOBES, "BIES"), ("bilou", BILOU, "BILU")],
)
def test_against_strict_seqeval(scheme, theirs, letters):
    @given(tags_of(letters, ("A", "B", "")))
    def check(tags):
        expected = [(e.start, e.end, e.tag.strip("_")) for e in Tokens(tags, theirs).entities]
        assert read_spans(tags, scheme) == expected

    check()


@given(tags_of("BI"))
def test_iob1_against_seqeval(tags):
    expected = [(start, end + 1, kind) for kind, start, end in get_entities(tags)]
    assert read_spans(tags, "iob1") == expected


@given(tags_of("BIES"))
def test_bmes_is_bioes_with_other_letters(tags):
    renamed = [tag.replace("I-", "M-") for tag in tags]
    assert read_spans(renamed, "bmes") == read_spans(tags, "bioes")


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["O O", ""], "iob2"),
        (["I-A O I-A", "B-A"], "iob1"),  # more spans start with I
        (["B-A O I-A"], "iob2"),  # as many
        (["I-A B-A"], "iob1"),
        (["S-A O"], "bios"),
        (["B-A E-A S-A"], "bioes"),
        (["B E", "B M E", "S"], "bmes"),
        (["U-A"], "bilou"),
    ],
)
def test_detection(sentences, scheme):
    assert detect_scheme(sentence.split() for sentence in sentences) == scheme


@pytest.mark.parametrize("tag", ["", "-A", "PER", "B-", "B_PER", "b-PER", "O-PER", "BI-A", "X-A"])
def test_unknown_tags(tag):
    with pytest.raises(InputError, match="unknown tag"):
        read_spans(["O", tag])
    with pytest.raises(InputError, match="unknown tag"):
        detect_scheme([["O", tag]])


def test_mistakes():
    with pytest.raises(InputError, match="unknown tag 'E-A'; expected O, or one of B-, I- foll"):
        read_spans(["E-A"])
    with pytest.raises(InputError, match="scheme must be iob1, iob2, bios, bioes, bmes or bilou"):
        read_spans(["B-A"], "BIO")
    with pytest.raises(InputError, match="start with B, E, I, M, O, which no scheme combines"):
        detect_scheme([["B-A", "M-A", "I-A", "E-A"]])
    with pytest.raises(InputError, match="must be a list of lists of tags"):
        detect_scheme(None)
    for spans in ([(0, 2, "A"), (1, 3, "A")], [(1, 1, "A")], [(2, 4, "A")], [(-1, 1, "A")]):
        with pytest.raises(InputError, match="do not overlap"):
            write_tags([Span(*span) for span in spans], 3)
