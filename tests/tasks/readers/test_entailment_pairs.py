"""Files of premises and hypotheses, in the forms of the well-known sets."""

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import EntailmentExample, read_entailment_examples

EXPECTED = [EntailmentExample("A cat sleeps.", "It rests.", "entailment")]
SNLI = (
    '{"annotator_labels": ["entailment"], "gold_label": "entailment", "pairID": "1", '
    '"sentence1": "A cat sleeps.", "sentence1_parse": "(X)", "sentence2": "It rests."}\n'
)
OCNLI = (
    '{"level":"easy","sentence1":"A cat sleeps.","sentence2":"It rests.","label":"entailment",'
    '"label0":"neutral","label1":null,"id":0}\n'
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("snli.jsonl", SNLI),
        ("ocnli.json", OCNLI),
        ("lingnli.jsonl", '{"label":"entailment","premise":"A cat sleeps.",'
         '"hypothesis":"It rests.","annotator_labels":[]}'),
        ("snli.txt", "gold_label\tsentence1_parse\tsentence1\tsentence2\tlabel1\n"
         "entailment\t(X)\tA cat sleeps.\tIt rests.\tneutral\n"),
        ("SICK.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
         "6\tA cat sleeps.\tIt rests.\t4.5\tentailment\n"),
        ("all/SICK.txt", "pair_ID\tsentence_A\tsentence_B\tentailment_label\tentailment_AB\n"
         "6\tA cat sleeps.\tIt rests.\tentailment\tA_entails_B\n"),
        ("esnli.csv", "pairID,gold_label,Sentence1,Sentence2\n"
         "1,entailment,A cat sleeps.,It rests."),
        ("zh.tsv", "前提\t假设\t标签\nA cat sleeps.\tIt rests.\tentailment\n"),
    ],
)  # fmt: skip
def test_known_forms(file, tmp_path, name, text):
    (tmp_path / "all").mkdir()
    assert read_entailment_examples(file(name, text)) == EXPECTED


def test_columns_and_tokens(file):
    path = file("a.tsv", "x\tentailment\tA cat sleeps.\tIt rests.\n")
    columns = {"premise": "3", "hypothesis": "4", "label": "2"}
    assert read_entailment_examples(path, columns) == EXPECTED
    path = file("b.tsv", "a b\tc d\n")
    assert read_entailment_examples(path, labelled=False, tokenized=True) == [
        EntailmentExample(["a", "b"], ["c", "d"])
    ]
    path = file("c.jsonl", SNLI.replace('"entailment", "pairID"', '"-", "pairID"'))
    assert read_entailment_examples(path)[0].label == "-"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\tc\n", "line 1 of .* has 3 columns without names; .* premise, hypothesis"),
        ("a.tsv", "premise\thypothesis\na\tb\n", "line 1 of .* has no column label"),
        ("a.tsv", "premise\thypothesis\tlabel\na\t\tx\n", "line 2 of .* has an empty hypothesis"),
        ("a.jsonl", '{"premise": "a", "label": "x"}', "line 1 of .* has no 'hypothesis'"),
        ("a.jsonl", '{"premise": 1, "hypothesis": "b", "label": "x"}', "line 1 .* as its premise"),
    ],
)
def test_malformed_files(file, name, text, message):
    with pytest.raises(InputError, match=message):
        read_entailment_examples(file(name, text))
