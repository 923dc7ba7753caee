"""Relations: SemEval's files, rows with marks, and words of the entities."""

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import (
    RelationExample,
    parse_marked,
    read_relation_examples,
    relation_words,
)
from elmokit.text.tokenizers import get_tokenizer

SEMEVAL = """1\t"The <e1>cat</e1> caught a "big" <e2>field mouse</e2>."
Cause-Effect(e1,e2)
Comment: none

2\t"A <e2>lid</e2> of a <e1>pot</e1>"
Other
Comment:

"""
FIRST = RelationExample(
    'The cat caught a "big" field mouse.', (4, 7), (23, 34), "Cause-Effect(e1,e2)"
)
SECOND = RelationExample("A lid of a pot", (11, 14), (2, 5), "Other")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_semeval(file, end):
    path = file("TRAIN_FILE.TXT", SEMEVAL.replace("\n", end))
    assert read_relation_examples(path) == [FIRST, SECOND]
    assert FIRST.text[slice(*FIRST.second)] == "field mouse"
    assert read_relation_examples(path, labelled=False) == [FIRST, SECOND]


def test_semeval_without_relations(file):
    path = file("t.txt", '8001\t"<e1>a</e1> <e2>b</e2>"\n8002\t"<e1>c</e1><e2>d</e2>"\n')
    found = read_relation_examples(path, labelled=False)
    assert found == [RelationExample("a b", (0, 1), (2, 3)), RelationExample("cd", (0, 1), (1, 2))]
    with pytest.raises(InputError, match="line 1 of .* is followed by no relation; write it"):
        read_relation_examples(path)


def test_rows(file):
    text = "A <e2>lid</e2> of a <e1>pot</e1>"
    for name, content in [
        ("a.tsv", f"Other\t{text}\n"),
        ("a.tsv", f"text\trelation\n{text}\tOther\n"),
        ("a.txt", f"Other\t{text}\n"),
        ("a.csv", f'label,text\nOther,"{text}"\n'),
        ("a.jsonl", f'{{"text": "{text}", "label": "Other"}}\n'),
    ]:
        assert read_relation_examples(file(name, content)) == [SECOND]
    path = file("b.tsv", f"7\tOther\t{text}\n")
    assert read_relation_examples(path, {"label": "2", "text": "3"}) == [SECOND]
    path = file("c.txt", f"{text}\n\n{text}\n")
    assert [e.label for e in read_relation_examples(path, labelled=False)] == [None, None]


def test_spaces_inside_marks():
    assert parse_marked(" x <e1> a b </e1> <e2>c </e2>y").text == "x  a b  c y"
    found = parse_marked(" x <e1> a b </e1> <e2>c </e2>y")
    assert [found.text[slice(*p)] for p in (found.first, found.second)] == ["a b", "c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no entities", "the text has no marks; expected <e1>"),
        ("<e1>a</e1> b", "the text has <e1> </e1>; expected"),
        ("<e1>a <e2>b</e2></e1>", "not inside each other"),
        ("</e1>a<e1> <e2>b</e2>", "once each"),
        ("<e1>a</e1> <e2>b</e2> <e2>c</e2>", "once each"),
        ("<e1>a</e1> <e2> </e2>", "nothing between <e2> and </e2>; mark a word"),
        ("<e1>" * 100_000, "the text has .{0,110}…; expected"),
        (7, "text must be a string, not 7"),
    ],
)
def test_wrong_marks(text, message):
    with pytest.raises(InputError, match=message):
        parse_marked(text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "no examples found"),
        ("a.tsv", "", "no examples found"),
        ("a.tsv", "label\ttext\n", "no examples found"),
        ("a.tsv", "label\ttext\nOther\tplain\n", "line 2 of .* has no marks; expected <e1>"),
        ("a.jsonl", '{"text": ["a"], "label": "x"}', "line 1 of .* has a list as its text"),
        ("a.txt", SEMEVAL.replace("\nOther", ""), "line 5 of .* is followed by no relation"),
        ("a.txt", SEMEVAL.replace("Comment: none", "Else"), "line 3 of .* is 'Else'; expected a"),
        ("a.txt", SEMEVAL.replace("</e2>", "", 1), "line 1 of .* has <e1> </e1> <e2>; expected"),
        ("a.txt", SEMEVAL.replace("\n2\t", "\n"), "line 5 of .* is .*; expected a number, a tab"),
        ("a.txt", SEMEVAL.replace("none", "\0"), "line 3 of .* contains a NUL"),
        ("a.txt", "plain text\n", "line 1 of .* has 1 column without names"),
    ],
)
def test_malformed_files(file, name, text, message):
    with pytest.raises(InputError, match=message):
        read_relation_examples(file(name, text))


def test_words_of_entities():
    words, first, second = relation_words(FIRST, get_tokenizer("english"))
    assert words == ["The", "cat", "caught", "a", '"', "big", '"', "field", "mouse", "."]
    assert (first, second) == ((1, 2), (7, 9))


def test_tokens_are_split_at_the_edges_of_entities():
    example = parse_marked("anti<e1>cat</e1>s <e2>苹果</e2>公司")
    words, first, second = relation_words(example, get_tokenizer("whitespace"))
    assert words == ["anti", "cat", "s", "苹果", "公司"]
    assert (first, second) == ((1, 2), (3, 4))
    phrase = get_tokenizer(lambda text: ["New York", "is"])
    words, first, second = relation_words(parse_marked("<e1>New</e1> York <e2>is</e2>"), phrase)
    assert (words, first, second) == (["New", "York", "is"], (0, 1), (2, 3))
    with pytest.raises(InputError, match="finds no word in the entity 'is'"):
        relation_words(parse_marked("<e1>a</e1> <e2>is</e2>"), get_tokenizer(lambda _: ["a"]))


def test_a_long_text(file):
    text = "<e1>a</e1> " + "word " * 100_000 + "<e2>b</e2>"
    (example,) = read_relation_examples(file("a.tsv", f"x\t{text}\n"))
    words, first, second = relation_words(example, get_tokenizer("whitespace"))
    assert (len(words), first, second) == (100_002, (0, 1), (100_001, 100_002))
