"""Documents from CoNLL-2012 and JSONL files."""

import json

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import DocumentExample, read_document_examples
from elmokit.tasks.readers.documents import merged

CONLL = """#begin document (bc/cctv/00/cctv_0000); part 000
bc/cctv/00/cctv_0000   0   0    The   DT   (TOP*   -   -   -   -   *   (1|(2
bc/cctv/00/cctv_0000   0   1    man   NN   *       -   -   -   -   *   2)
bc/cctv/00/cctv_0000   0   2    here  RB   *       -   -   -   -   *   1)

bc/cctv/00/cctv_0000   0   0    He    PRP  *       -   -   -   -   *   (2)
bc/cctv/00/cctv_0000   0   1    slept VBD  *       -   -   -   -   *   -

#end document
#begin document (bc/cctv/00/cctv_0000); part 001
bc/cctv/00/cctv_0000   1   0    Yes   UH   *       -   -   -   -   *   -
#end document
"""
FIRST = DocumentExample(
    [["The", "man", "here"], ["He", "slept"]],
    "bc/cctv/00/cctv_0000",
    [[(0, 2), (3, 4)], [(0, 3)]],
)


def test_conll_2012(file):
    first, second = read_document_examples(file("a.conll", CONLL))
    assert first == FIRST
    assert (second.name, second.clusters) == ("bc/cctv/00/cctv_0000 part 1", [])
    assert read_document_examples(file("a.conll", CONLL), labelled=False)[0].clusters is None


def test_litbank(file):
    """Tabs, an empty last column instead of a hyphen, and # as a word."""
    rows = [("A", "(0"), ("#", ""), ("boy", "0)"), (".", "")]
    lines = "".join(f"105_x\t0\t{i}\t{w}{chr(9) + '_'}\t{c}\n" for i, (w, c) in enumerate(rows))
    (found,) = read_document_examples(
        file("a.conll", f"#begin document (105_x); part 0\n{lines}\n#end document\n")
    )
    assert found == DocumentExample([["A", "#", "boy", "."]], "105_x", [[(0, 3)]])


def test_columns(file):
    path = file("a.txt", "(0) x Ann\n- x saw\n\n(0) x her\n")
    (found,) = read_document_examples(path, {"word": "3", "cluster": "1"})
    assert found == DocumentExample([["Ann", "saw"], ["her"]], "", [[(0, 1), (2, 3)]])
    (two,) = read_document_examples(file("b.txt", "Ann (0)\nsaw -\n"))
    assert two == DocumentExample([["Ann", "saw"]], "", [[(0, 1)]])
    (hash_sign,) = read_document_examples(file("c.txt", "# a\n#b\nAnn (0)\n# -\n# (0)\n"))
    assert hash_sign == DocumentExample([["Ann", "#", "#"]], "", [[(0, 1), (2, 3)]])


def test_jsonl_has_inclusive_ends(file, tmp_path):
    record = {
        "doc_key": FIRST.name,
        "sentences": [*FIRST.sentences, []],
        "clusters": [[[3, 3], [0, 1]], [[0, 2]]],
        "speakers": [],
    }
    path = file("a.jsonl", json.dumps(record) + "\n\n")
    assert read_document_examples(path) == [FIRST]
    (tmp_path / "folder").mkdir()
    path.rename(tmp_path / "folder/a.jsonl")
    file("folder/b.conll", CONLL)
    assert [d.name for d in read_document_examples(tmp_path / "folder")][:2] == [FIRST.name] * 2


def test_clusters_that_share_a_mention_are_one():
    assert merged([[(5, 6), (0, 1)], [(2, 3)], [(2, 3), (5, 6)], []]) == [[(0, 1), (2, 3), (5, 6)]]


WRONG = [
    ("a.conll", "x 0 0 Ann (0\nx 0 1 slept -\n", "line 1 of .* begins a mention of cluster '0' t"),
    ("a.conll", "x 0 0 Ann -\nx 0 1 slept 3)\n", "line 2 of .* ends a mention of cluster '3' that"),
    ("a.conll", "x 0 0 Ann yes\n", "line 1 of .* has 'yes' in the column of clusters; expected"),
    ("a.conll", "Ann\n", "line 1 of .* has 1 column; expected at least 2"),
    ("a.conll", "\n#end document\n", "no examples found in .*; expected documents"),
    ("a.conll", "x\t0\t0\t\t-\t-\n", "line 1 of .* has an empty word"),
    ("a.jsonl", '{"clusters": []}\n', "line 1 of .* has no 'sentences'; its keys are clusters"),
    ("a.jsonl", '{"sentences": [["a"]]}\n', "line 1 of .* has no 'clusters'"),
    ("a.jsonl", '{"sentences": "a b", "clusters": []}\n', "expected lists of words"),
    ("a.jsonl", '{"sentences": [["a", 5]], "clusters": []}\n', "has 5 as a word; expected a strin"),
    ("a.jsonl", '{"sentences": [[]], "clusters": []}\n', "line 1 of .* has no words"),
    ("a.jsonl", '{"sentences": [["a"]], "clusters": [[[0, 1]]]}\n',
     r"line 1 of .* has \[0, 1\] as a mention; .* from 0 to 0"),
    ("a.jsonl", '{"sentences": [["a", "b"]], "clusters": [[[1, 0]]]}\n', r"line 1 .* has \[1, 0\]"),
    ("a.jsonl", '{"sentences": [["a"]], "clusters": [[[0]]]}\n', r"has \[0\] .* as a mention; ex"),
    ("a.jsonl", '{"sentences": [["a"]], "clusters": 5}\n', "has 5 as a mention; expected clusters"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), WRONG)
def test_mistakes(file, name, text, message):
    with pytest.raises(InputError, match=message):
        read_document_examples(file(name, text))


def test_wrong_columns(file):
    path = file("a.jsonl", '{"sentences": [["a"]], "clusters": []}\n')
    with pytest.raises(InputError, match="columns= is for CoNLL files"):
        read_document_examples(path, {"word": "1"})
    with pytest.raises(
        InputError, match="contains 'tag'; expected only the names word and cluster"
    ):
        read_document_examples(path, {"tag": "1"})
    with pytest.raises(InputError, match="columns must be a dictionary"):
        read_document_examples(path, "word")


def test_wrong_examples():
    with pytest.raises(InputError, match="'b', words 1 to 2, is in two clusters"):
        DocumentExample([["a", "b"]], "", [[(1, 2)], [(0, 1), (1, 2)]])
    for sentences in ("a b", ["a b"], [["a", 5]]):
        with pytest.raises(InputError, match="sentence"):
            DocumentExample(sentences)
    for clusters in (5, [5], [[5]], [[(0,)]]):
        with pytest.raises(InputError, match="clusters must be lists of mentions"):
            DocumentExample([["a"]], "", clusters)
    assert DocumentExample([["a"]], "", [[[0, 1]]]).clusters == [[(0, 1)]]
