"""TSV, CSV and JSONL files: columns by name and number, and every kind of malformed line."""

import csv
import gzip
import json
import lzma

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import (
    PairExample,
    TextExample,
    read_pair_examples,
    read_plain_texts,
    read_text_examples,
)

GOOD = [TextExample("A fine film.", "pos"), TextExample('It is "dull", no?', "neg")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", 'text\tlabel\nA fine film.\tpos\nIt is "dull", no?\tneg\n'),
        ("a.tsv", '\n\nlabel\ttext_a\r\npos\tA fine film. \r\n\r\nneg\tIt is "dull", no?\r\n'),
        ("a.tsv", 'id\tSentence\tLabel\n1\tA fine film.\tpos\n2\tIt is "dull", no?\tneg'),
        ("a.tsv", 'pos\tA fine film.\nneg\tIt is "dull", no?\n'),
        ("a.TSV", '\ufefflabel\ttext\npos\tA fine film.\nneg\tIt is "dull", no?\n'),
        ("a.txt", 'label\ttext\npos\tA fine film.\nneg\tIt is "dull", no?\n'),
        ("a.csv", 'label\ttext\npos\tA fine film.\nneg\tIt is "dull", no?\n'),
        ("a.csv", 'label,text\npos,A fine film.\nneg,"It is ""dull"", no?"\n'),
        ("a.csv", 'label;text\npos;A fine film.\nneg;"It is ""dull"", no?"\n'),
        ("a.csv", 'pos,A fine film.\n\nneg,"It is ""dull"", no?"\n'),
        ("a.csv", '标签,文本\npos,A fine film.\nneg,"It is ""dull"", no?"\n'),
        ("a.txt", 'pos A fine film.\n\nneg   It is "dull", no?\n'),
        ("a.train", 'pos A fine film.\nneg It is "dull", no?\n'),
        (
            "a.jsonl",
            '{"text": "A fine film.", "label": "pos"}\n\n'
            '{"label": "neg", "x": 1, "text": "It is \\"dull\\", no?"}',
        ),
        (
            "a.json",
            '{"Sentence": "A fine film.", "class": "pos"}\n'
            '{"Sentence": "It is \\"dull\\", no?", "class": "neg"}',
        ),
    ],
)
def test_layouts_of_texts(file, name, text):
    assert read_text_examples(file(name, text)) == GOOD


def test_columns_by_number_and_name(file):
    path = file("a.tsv", "neg\t0_3\tbad\npos\t1_9\tgood\textra\n")
    expected = [TextExample("bad", "neg"), TextExample("good", "pos")]
    assert read_text_examples(path, {"label": "1", "text": "3"}) == expected
    assert read_text_examples(path, {"label": 1, "text": 3}) == expected
    path = file("b.tsv", "id\treview\tmood\n1\tbad\tneg\n2\tgood\tpos\n")
    assert read_text_examples(path, {"label": "mood"}) == expected
    assert read_text_examples(path, {"text": "2", "label": "Mood"}) == expected
    path = file("c.tsv", "x\ttext\tlabel\n1\tbad\tneg\n2\tgood\tpos\n")
    assert read_text_examples(path, {"text": "2", "label": "3"}) == expected  # the header is known
    path = file("d.jsonl", '{"a": "bad", "b": "neg"}\n{"a": "good", "b": "pos"}\n')
    assert read_text_examples(path, {"text": "a", "label": "b"}) == expected


def test_labels_and_texts_of_json(file):
    path = file("a.jsonl", '{"text": ["a", "b c"], "label": 3}\n{"text": "d e", "label": true}\n')
    assert read_text_examples(path) == [
        TextExample(["a", "b c"], "3"),
        TextExample("d e", "true"),
    ]
    assert read_text_examples(path, tokenized=True)[1] == TextExample(["d", "e"], "true")


def test_a_cell_of_csv_may_have_several_lines(file):
    path = file("a.csv", 'text,label\n"one\ntwo",x\nthree,\n')
    assert read_text_examples(path, labelled=False) == [
        TextExample("one\ntwo", "x"),
        TextExample("three", None),
    ]
    with pytest.raises(InputError, match="line 4 of .* has no label; write one"):
        read_text_examples(path)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_packed_files(file, suffix, pack):
    path = file(f"a.csv{suffix}", pack(b'label,text\npos,"A fine, fine film."\n'))
    assert read_text_examples(path) == [TextExample("A fine, fine film.", "pos")]
    with pytest.raises(InputError, match="is the file complete"):
        read_text_examples(file(f"b.csv{suffix}", pack(b"label,text\npos,A\n" * 99)[:-9]))


def test_texts_without_labels(file):
    assert read_text_examples(file("a.tsv", "index\tsentence\n0\tHi.\n"), labelled=False) == [
        TextExample("Hi.")
    ]
    plain = file("a.txt", "One\ttext.\n\n  Another one. \n")
    assert read_plain_texts(plain) == ["One\ttext.", "Another one."]
    assert [e.text for e in read_text_examples(plain, labelled=False)] == read_plain_texts(plain)
    tokens = read_text_examples(plain, labelled=False, tokenized=True)
    assert tokens[0] == TextExample(["One", "text."])


def test_pairs(file):
    expected = [PairExample("A plane.", 'An "air" plane.', 5.0), PairExample("x", "y", 0.4)]
    rows = '5.000\tA plane.\tAn "air" plane.\n.4\tx\ty\n'
    path = file("a.csv", rows)
    columns = {"first": "2", "second": "3", "score": "1"}
    assert read_pair_examples(path, columns) == expected
    path = file("SICK.txt", "relatedness_score\tsentence_A\tsentence_B\n" + rows)
    assert read_pair_examples(path) == expected
    path = file("a.jsonl", '{"sentence1": "x", "sentence2": "y", "score": "0.4"}')
    assert read_pair_examples(path) == expected[1:]
    path = file("b.tsv", "x y\tz\n")
    assert read_pair_examples(path, labelled=False) == [PairExample("x y", "z")]
    assert read_pair_examples(path, labelled=False, tokenized=True)[0].first == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\tc\n", r"line 1 of .*a\.tsv has 3 columns without names; add .* text and"),
        ("a.tsv", "a\n", "line 1 of .* has 1 column without names"),
        ("a.tsv", "index\tsentence\n0\tx\n", "line 1 of .* no column label; its columns are index"),
        ("a.tsv", "text\tlabel\nx\ty\nx\n", "line 3 of .* has 1 column; expected 2; check"),
        ("a.tsv", "text\tlabel\nx\ty\tz\n", "line 2 of .* has 3 columns; expected 2; check"),
        ("a.tsv", "text\tlabel\nx\t \n", "line 2 of .* has no label; write one"),
        ("a.tsv", "text\tlabel\n\tx\n", "line 2 of .* has an empty text; fix or remove"),
        ("a.tsv", "A\t1\nB\t1\nC\t0\n", "first column of .* has 3 different values and the second"),
        ("a.csv", 'text,label\nx,y\n"a,b\nc,d\n', "line 3 of .* is not CSV .*end of data"),
        ("a.csv", '\n\ntext,label\nx,"a"b\n', "line 4 of .* is not CSV .*twice"),
        ("a.txt", "pos good\n\nneg\n", "line 3 of .* has one word; expected a label, a space"),
        ("a.txt", "\n".join(f"{i} x" for i in range(20)), "20 lines of .* with 20 different words"),
        ("a.jsonl", "{}\n", r"line 1 of .* has no 'text' \(its keys are \); add it"),
        ("a.jsonl", '{"text": "x"}\n', "line 1 of .* has no 'label' .*choose a key with columns="),
        ("a.jsonl", '{"text": "x", "label": null}', "line 1 of .* has no label"),
        ("a.jsonl", '{"text": "x", "label": [1]}', "line 1 of .* has .1. .list. as its label"),
        ("a.jsonl", '{"text": 7, "label": 1}', "line 1 of .* has 7 as its text; expected a text"),
        ("a.jsonl", '{"text": [1], "label": 1}', "line 1 of .* expected tokens that are strings"),
        ("a.jsonl", '{"text": [], "label": 1}', "line 1 of .* expected tokens that are strings"),
        ("a.jsonl", "\n[1]\n", "line 2 of .* is .1. .list.; expected one object per line"),
        ("a.jsonl", '{"text": "x"\n', "line 1 of .* is not JSON .*; expected one object per line"),
        ("a.jsonl", "[" * 100_000, "line 1 of .* is not JSON"),
        ("a.jsonl", '{"label": ' + "1" * 5000 + "}", "line 1 of .* is not JSON"),
        ("a.jsonl", '{"text": "\\ud83d", "label": 1}', "line 1 of .* half of a character"),
    ],
)
def test_malformed_texts(file, name, text, message):
    with pytest.raises(InputError, match=message):
        read_text_examples(file(name, text))


@pytest.mark.parametrize("score", ["five", "", "nan", "inf", "1_0", "3,5", "1e999"])
def test_malformed_scores(file, score):
    path = file("a.tsv", f"first\tsecond\tscore\na\tb\t1\na\tb\t{score}\n")
    with pytest.raises(InputError, match="line 3 of .* has (no score|.* as its score; expected)"):
        read_pair_examples(path)
    path = file("a.jsonl", '{"first": "a", "second": "b", "score": true}')
    with pytest.raises(InputError, match="line 1 of .* has True as its score"):
        read_pair_examples(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("text", "columns must be a dictionary"),
        ({"words": "1"}, "columns= contains 'words'; expected only the names text and label"),
        ({"text": None}, r'columns\["text"\] must be a name, or a number from 1, not None'),
        ({"text": ""}, "must be a name, or a number"),
        ({"text": "0"}, "has no column '0'; its first line has a, b; choose one of these"),
        ({"text": "mood"}, "has no column 'mood'; its first line has a, b"),
        ({"text": "1"}, "line 1 of .* has 2 columns without names"),
        ({"text": "1", "label": "3"}, "line 1 of .* has 2 columns; expected at least 3"),
    ],
)
def test_wrong_columns(file, columns, message):
    with pytest.raises(InputError, match=message):
        read_text_examples(file("a.tsv", "a\tb\n"), columns)


NAMES = ["a.tsv", "a.csv", "a.jsonl", "a.txt"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labelled", [True, False])
def test_files_without_examples(file, name, labelled):
    for text in ("", "\n \n", "\ufeff"):
        with pytest.raises(InputError, match="no examples found in .*; expected"):
            read_text_examples(file(name, text), labelled=labelled)
    if name in ("a.tsv", "a.csv"):
        with pytest.raises(InputError, match="no examples found in .*; expected rows"):
            read_text_examples(file(name, "label\ttext\n"), labelled=labelled)


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_no_text(file, name):
    with pytest.raises(InputError, match="line 2 of .* contains a NUL character; expected text"):
        read_text_examples(file(name, b'{"text": "x", "label": "a"}\na\0\tb\n'))
    with pytest.raises(InputError, match="line 2 of .* is not UTF-8"):
        read_text_examples(file(name, b'{"text": "x", "label": "a"}\n\xff\tb\n'))
    with pytest.raises(InputError, match="there is no file"):
        read_text_examples("nowhere.tsv")
    with pytest.raises(InputError, match="it is a folder; give a file"):
        read_text_examples(file(name, "").parent)


@pytest.mark.parametrize("name", NAMES)
def test_long_lines(file, name):
    text = "word " * 100_000
    rows = {
        "a.jsonl": json.dumps({"text": text, "label": "x"}),
        "a.csv": f"x,{text}",
        "a.txt": f"x {text}",
    }
    limit = csv.field_size_limit()
    (example,) = read_text_examples(file(name, rows.get(name, f"x\t{text}")), tokenized=True)
    assert (len(example.text), example.label) == (100_000, "x")
    assert csv.field_size_limit() == limit


def test_answers_that_are_not_needed(file):
    """A file for prediction may have anything in place of answers."""
    path = file("a.jsonl", '{"text": "a", "label": 1.5}\n{"text": "b"}\n{"text": "c", "label": 2}')
    found = read_text_examples(path, labelled=False)
    assert found == [TextExample("a"), TextExample("b"), TextExample("c", "2")]
    path = file("a.tsv", "first\tsecond\tscore\na\tb\t?\nc\td\t\ne\tf\t2\n")
    found = read_pair_examples(path, labelled=False)
    assert [example.score for example in found] == [None, None, 2]
