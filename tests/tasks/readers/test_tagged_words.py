"""Tagged sentences: which column has the tags, and malformed CoNLL files."""

import gzip

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import TaggedExample, read_tagged_examples

CONLLU = """# text = It works
1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tworks\twork\tVERB\tVBZ\t_\t0\troot\t_\t_
"""
CONLL03 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

Peter NNP B-NP B-PER
"""
IOB2 = """# sent_id = 1
1\tIn\tO\t-\t-
2\tTampa\tB-LOC\t-\tstephen
3\tBay\tI-LOC

# sent_id = 2
1\tYes\tO\t-\t-
"""
BMES = "高 B-NAME\n勇 E-NAME\n， O\n\n男 O\n"


def test_entities(file):
    assert read_tagged_examples(file("a.txt", CONLL03)) == [
        TaggedExample(["EU", "rejects"], ["B-ORG", "O"]),
        TaggedExample(["Peter"], ["B-PER"]),
    ]
    assert read_tagged_examples(file("a.iob2", IOB2)) == [
        TaggedExample(["In", "Tampa", "Bay"], ["O", "B-LOC", "I-LOC"]),
        TaggedExample(["Yes"], ["O"]),
    ]
    assert read_tagged_examples(file("a.bmes", BMES))[0] == TaggedExample(
        ["高", "勇", "，"], ["B-NAME", "E-NAME", "O"]
    )
    packed = file("a.conll.gz", gzip.compress(CONLL03.encode()))
    assert read_tagged_examples(packed) == read_tagged_examples(file("a.txt", CONLL03))


def test_parts_of_speech(file):
    path = file("a.conllu", CONLLU)
    assert read_tagged_examples(path, upos=True) == [
        TaggedExample(["It", "works"], ["PRON", "VERB"])
    ]
    assert read_tagged_examples(path, {"tag": "xpos"})[0].tags == ["PRP", "VBZ"]
    assert read_tagged_examples(path, {"word": "lemma", "tag": 8})[0] == TaggedExample(
        ["it", "work"], ["nsubj", "root"]
    )
    for text in ("It PRON\nworks VERB\n", "1 It PRON\n2 works VERB\n"):
        found = read_tagged_examples(file("a.txt", text), upos=True)
        assert found == [TaggedExample(["It", "works"], ["PRON", "VERB"])]
    assert read_tagged_examples(file("a.txt", CONLL03), {"tag": "2"})[1].tags == ["NNP"]


def test_a_wrong_tag_does_not_change_the_column(file):
    path = file("a.txt", CONLL03.replace("B-PER", "PER") + "x NN B-NP O\n" * 20)
    assert read_tagged_examples(path)[1].tags[0] == "PER"


def test_words_without_tags(file):
    for text in ("It\nworks\n", "1 It\n2 works\n", "It _\nworks _\n", "It _\nworks VERB\n"):
        path = file("a.txt", text)
        found = read_tagged_examples(path, labelled=False)
        assert found == [TaggedExample(["It", "works"], None)]
        with pytest.raises(InputError, match="words only; add a column|line 1 of .* has no tag"):
            read_tagged_examples(path)
    assert read_tagged_examples(file("a.txt", BMES), labelled=False)[1].tags == ["O"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no sentences found in .*; expected one word per line"),
        ("# only a comment\n\n\n", "no sentences found"),
        ("-DOCSTART- O\n", "no sentences found"),
        ("a O\nb\n", "line 2 of .* has 1 column; expected at least 2; fix the line"),
        ("a\tO\n\tO\n", "line 2 of .* has an empty word"),
        ("a\tO\nb\t_\n", "line 2 of .* has no tag for 'b'; write one in column 2"),
        ("a\tO\nb\t\n", "line 2 of .* has no tag for 'b'"),
        (CONLLU, r'is CoNLL-U, and no column has tags such as B-PER; choose .*\{"tag": "3"\}'),
        ("a O\n\0 O\n", "line 2 of .* contains a NUL"),
        (b"a O\n\xff O\n", "line 2 of .* is not UTF-8"),
    ],
)
def test_malformed_files(file, text, message):
    with pytest.raises(InputError, match=message):
        read_tagged_examples(file("a.txt", text))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([2], "columns must be a dictionary"),
        ({"text": "1"}, "columns= contains 'text'; expected only the names word and tag"),
        ({"tag": "ner"}, "unknown column 'ner'; expected a number from 1"),
        ({"word": "0"}, "unknown column '0'"),
        ({"tag": "upos"}, "upos is a column of CoNLL-U.*give the number"),
        ({"tag": "5"}, "line 3 of .* has 4 columns; expected at least 5"),
    ],
)
def test_wrong_columns(file, columns, message):
    with pytest.raises(InputError, match=message):
        read_tagged_examples(file("a.txt", CONLL03), columns)


def test_long_files(file):
    (one,) = read_tagged_examples(file("a.txt", "word O\n" * 100_000))
    assert len(one.words) == len(one.tags) == 100_000
    (one,) = read_tagged_examples(file("a.txt", f"{'x' * 100_000} O\n"))
    assert len(one.words[0]) == 100_000
