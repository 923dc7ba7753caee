"""Semantic roles from CoNLL files of several layouts, and from JSONL."""

import json
from dataclasses import asdict

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import Frame, RoleExample, read_role_examples

PLAIN = """The	-	(ARG0*	*
cat	-	*)	*
saw	saw	(V*)	*
him	-	(ARG1*	(ARG0*)
sleep	sleep	*)	(V*)

Hello	-
"""
FRAMES = [
    Frame(2, ["B-ARG0", "I-ARG0", "B-V", "B-ARG1", "I-ARG1"]),
    Frame(4, ["O", "O", "O", "B-ARG0", "B-V"]),
]
EXPECTED = [RoleExample(["The", "cat", "saw", "him", "sleep"], FRAMES), RoleExample(["Hello"], [])]


def with_columns(before, after=""):
    """The same sentences with other columns around them."""
    lines, number = [], 0
    for line in PLAIN.splitlines():
        word, *rest = line.split("\t") if line else [""]
        cells = before.replace("N0", str(number)).replace("N1", str(number + 1)).replace("W", word)
        number = number + 1 if line else 0
        lines.append(f"{cells} {' '.join(rest)}{after}" if line else "")
    return "\n".join(lines) + "\n"


LAYOUTS = {
    "plain": PLAIN,
    "tags": "The - B-ARG0 O\ncat - I-ARG0 O\nsaw see B-V O\nhim - B-ARG1 B-ARG0\n"
    "sleep sleep I-ARG1 B-V\n\nHello -\n",
    "2005": with_columns("W NNP (S* * -"),
    "propbank": with_columns("ewt/a.xml 0 N0 W NN (S* lemma"),
    "numbered": with_columns("N1 W NN"),
    "2005 with types": PLAIN.replace("*)\t*\n", "*ARG0)\t*\n"),
    "comment": "# a file\n" + PLAIN.replace("Hello", "# sentence 2\nHello"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(file, layout):
    assert read_role_examples(file("a.conll", LAYOUTS[layout])) == EXPECTED


def test_conll_2012(file):
    """The columns of the predicates are between named entities and coreference."""
    lines = with_columns("bc/x 0 N0 W NN * W", " -").splitlines()
    cells = [line.split() for line in lines]
    rows = [[*row[:8], "-", "-", "*", *row[8:]] for row in cells]
    text = "\n".join(" ".join(row) if line else "" for row, line in zip(rows, lines, strict=True))
    text = f"#begin document (bc/x); part 000\n{text}\n\n#end document\n"
    assert read_role_examples(file("a.v4_gold_conll", text)) == EXPECTED


def test_given_columns(file):
    text = with_columns("x W y")
    path = file("a.txt", text)
    columns = {"word": "2", "predicate": "4"}
    assert read_role_examples(path, columns) == EXPECTED
    with pytest.raises(InputError, match=r"line 1 of .* has 5 predicates in column 3, and 3 col"):
        read_role_examples(path, {"word": "2", "predicate": "3"})
    with pytest.raises(InputError, match="expected only the names word and predicate"):
        read_role_examples(path, {"tag": "2"})


def test_predicates_of_several_words(file):
    """The predicate is the first word of V, also where the file marks another one."""
    path = file("a.conll", "I - (ARG0*)\ne - (V*\nmail email *)\n\na - *\nrun run *\n")
    first, second = read_role_examples(path)
    assert first.frames == [Frame(1, ["B-ARG0", "B-V", "I-V"])]
    assert second.frames == [Frame(1, ["O", "B-V"])]


def test_without_roles(file):
    """Roles are ignored, predicates are kept; without a column for them they are not known."""
    found = read_role_examples(file("a.conll", PLAIN), labelled=False)
    assert [e.frames for e in found] == [[Frame(2), Frame(4)], []]
    (found,) = read_role_examples(file("b.conll", "I\nslept\n"), labelled=False)
    assert found == RoleExample(["I", "slept"], None)
    path = file("c.conll", "I\t-\nrun\trun\nand\t-\nran\t-\n\nNo\t-\n")
    assert [e.frames for e in read_role_examples(path, labelled=False)] == [[Frame(1)], []]
    for others in (("PRP", "VBD", ":"), ("PRP", "VBD", "_"), ("i", "sleep", "-")):  # no marks
        words = ["I", "slept", "-"]
        rows = "".join(f"{word}\t{other}\n" for word, other in zip(words, others, strict=True))
        found = read_role_examples(file("d.conll", rows), labelled=False)
        assert found == [RoleExample(words, None)]


def test_jsonl(file):
    lines = [asdict(example) for example in EXPECTED]
    lines[0]["frames"][0]["tags"][2] = "O"  # stands for V at the predicate
    path = file("a.jsonl", "\n".join(map(json.dumps, lines)))
    assert read_role_examples(path) == EXPECTED
    path = file("b.jsonl", '{"tokens": ["I", "slept"]}\n{"words": ["I"], "frames": []}\n')
    assert [e.frames for e in read_role_examples(path, labelled=False)] == [None, []]


BAD = {
    "a.conll": [
        ("a - *\nb b (V*)\nc - *)\n", r"line 3 of .* has '\*\)' in column 3"),
        ("a - (A0(A1*\nb b (V*)\n", r"line 1 of .* has '\(A0\(A1\*'"),
        ("a - (A0*\nb b (V*)\n", r"line 2 of .* without roles inside"),
        ("b b (V*)\na - (A0*\nc - *\n", r"the role A0 in column 3 of .* does not end in the sent"),
        ("a - *\nb b (V*) *\n", r"line 2 of .* has 4 columns, but the sentence begins with 3"),
        ("a\nb\n", "has no column of predicates"),
        ("a O O\nb b I-A\n", "has no column of predicates"),
        ("a - B-A\nb b I-V\n", r"sentence at line 1 of .*: frame 1 has 'I-V' for word 1"),
        ("a a (V*)\nb - (V*)\n", "expected the role V to begin there, and nowhere else"),
        ("b b (A0*)\n", "frame 1 has 'B-A0' for its predicate, word 0"),
        ("\t-\n", r"line 1 of .* has an empty word"),
        ("", "no sentences found"),
    ],
    "a.jsonl": [
        ('{"text": "a"}', 'line 1 of .* has no "words"'),
        ('{"words": "a b"}', "expected a list of words"),
        ('{"words": ["a"]}', 'has no "frames"'),
        ('{"words": ["a"], "frames": 3}', "expected a list"),
        ('{"words": ["a"], "frames": [3]}', "line 1 of .*: frame 1 has no whole number"),
        ('{"words": ["a"], "frames": [{"predicate": 1, "tags": ["O"]}]}', "is word 1; expected"),
        ('{"words": ["a"], "frames": [{"predicate": 0, "tags": []}]}', "has 0 tags for 1 words"),
        ('{"words": ["a"], "frames": [{"predicate": 0}]}', "has None as its tags"),
        ('{"words": ["a"], "frames": [{"predicate": 0, "tags": ["x"]}]}', "unknown tag 'x'"),
        ('{"words": ["a"], "frames": [{"predicate": 0, "tags": ["B"]}]}', "a tag without a role"),
        ('{"words": ["a"], "frames": [{"predicate": 0, "tags": ["B-V"]}, {"predicate": 0, "tags": '
         '["B-V"]}]}', "line 1 of .*: frames 1 and 2 have the same predicate, word 0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "message"), [(name, *case) for name, cases in BAD.items() for case in cases]
)
def test_mistakes(file, name, text, message):
    with pytest.raises(InputError, match=message):
        read_role_examples(file(name, text))
