"""Questions in SQuAD's JSON, JSONL and tables; mistakes name the question."""

import json

import pytest

from elmokit.errors import InputError
from elmokit.tasks.readers import GoldAnswer, QuestionExample, read_question_examples

PASSAGE = "Anna lives in Oslo. Oslo is large."
ANSWERS = [{"text": "Oslo", "answer_start": 14}]


def squad(*questions, context=PASSAGE):
    return {"version": "1.1", "data": [{"paragraphs": [{"context": context, "qas": questions}]}]}


def asked(answers=ANSWERS, **more):
    return {"id": "q1", "question": " Where? ", "answers": answers} | more


@pytest.mark.parametrize("indent", [None, 1])
def test_squad(file, indent):
    path = file("dev.json", json.dumps(squad(asked(), asked(id="q2")), indent=indent))
    first, second = read_question_examples(path)
    assert first == QuestionExample("Where?", PASSAGE, "q1", [GoldAnswer("Oslo", 14)])
    assert second.id == "q2"
    assert read_question_examples(path, labelled=False)[0].answers is None


@pytest.mark.parametrize(
    "answers",
    [
        "Oslo",
        ["Oslo"],
        {"text": "Oslo", "answer_start": 14},
        [{"text": "Oslo"}],
        {"text": ["Oslo"], "answer_start": [14]},
        {"text": ["Oslo"], "answer_start": []},
    ],
)
@pytest.mark.parametrize("key", ["answer", "answers"])
def test_jsonl(file, answers, key):
    row = {"id": 7, "question": "Where?", "context": PASSAGE, key: answers}
    (found,) = read_question_examples(file("a.jsonl", json.dumps(row)))
    assert (found.id, found.passage, found.answer_texts) == ("7", PASSAGE, ["Oslo"])


def test_tables(file):
    rows = f"Where?\t{PASSAGE}\tOslo\n"
    expected = [QuestionExample("Where?", PASSAGE, "", ["Oslo"])]
    assert read_question_examples(file("a.tsv", rows)) == expected
    assert read_question_examples(file("b.tsv", "question\tcontext\tanswer\n" + rows)) == expected
    csv = f'answers,query,passage\nOslo,Where?,"{PASSAGE}"\n'
    assert read_question_examples(file("c.csv", csv)) == expected
    columns = {"question": "2", "passage": "3", "answer": "4"}
    assert read_question_examples(file("d.tsv", "x\t" + rows), columns) == expected
    plain = read_question_examples(file("e.tsv", f"Where?\t{PASSAGE}\n"), labelled=False)
    assert plain == [QuestionExample("Where?", PASSAGE)]


@pytest.mark.parametrize(("start", "found"), [(0, 14), (15, 14), (22, 20), (-3, 14), (999, 20)])
def test_a_wrong_start_means_the_nearest_occurrence(file, start, found):
    path = file("a.json", json.dumps(squad(asked([{"text": "Oslo", "answer_start": start}]))))
    assert read_question_examples(path)[0].answers == [GoldAnswer("Oslo", found)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (squad(asked([{"text": "Rome", "answer_start": 3}])), "question q1 of a.json: the answer "
         "'Rome' is not in the passage"),
        (squad(asked(["Rome"])), "question q1 of a.json: the answer 'Rome' is not in the passage"),
        (squad(asked([])), "question q1 of a.json: no answers"),
        (squad(asked(None)), "question q1 of a.json: no answers"),
        (squad(asked([{"text": 3}])), "the answer is 3; expected a text"),
        (squad(asked([" "])), "an answer is empty"),
        (squad(asked([{"text": "Oslo", "answer_start": "4"}])), "answer_start is '4'"),
        (squad(asked(), context=" "), "question q1 of a.json: the passage is empty"),
        (squad(asked(), context=None), "question q1 of a.json: its paragraph has no text"),
        (squad(asked(question="")), "question q1 of a.json: the question is empty"),
        (squad({"answers": []}), "article 1, paragraph 1, question 1 of a.json: it has no text"),
        (squad(3), "article 1, paragraph 1, question 1 of a.json: it has no text"),
        ({"data": [{"paragraphs": [{"context": "x"}]}]}, "article 1, paragraph 1 has no list qas"),
        ({"data": [{}]}, "article 1 has no list paragraphs"),
        ({"data": 3}, "has no list data"),
        ({"data": []}, "no examples found in"),
        ([1], "has no list data"),
    ],
)  # fmt: skip
def test_mistakes_in_squad(file, monkeypatch, tmp_path, values, message):
    file("a.json", json.dumps(values))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read_question_examples("a.json")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ['{"data": [', '{\n"data":\n]}', "no json", '{"data": "\\ud83d"}'])
def test_files_that_are_not_json(file, text):
    with pytest.raises(InputError, match=r"a.json (is not JSON|contains half of a character)"):
        read_question_examples(file("a.json", text))


def test_mistakes_in_lines(file):
    good = json.dumps({"question": "Where?", "context": PASSAGE, "answers": ANSWERS})
    for row, message in (
        ('{"id": 5, "question": "x", "context": "Oslo", "answer": "Rome"}',
         r"line 2 of .*a.jsonl \(question 5\): the answer 'Rome' is not in the passage"),
        ('{"question": "x", "context": " ", "answer": "Rome"}', "line 2 .* empty passage"),
        ('{"question": "x", "context": ["a"], "answer": "a"}', "line 2 .* list of tokens"),
        ('{"question": "x", "answer": "a"}', "line 2 .* has no 'passage'"),
        ("{", "line 2 .* is not JSON"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            read_question_examples(file("a.jsonl", f"{good}\n{row}\n"))
    with pytest.raises(InputError, match="line 1 of .*: the answer 'Rome' is not in the passage"):
        read_question_examples(file("a.tsv", f"Where?\t{PASSAGE}\tRome\n"))


def test_examples_are_checked():
    for given, message in (
        ({"answers": ["Rome"]}, "not in the passage; expected a part of it"),
        ({"answers": [GoldAnswer("Oslo", 3)]}, "not in the passage at character 3"),
        ({"answers": []}, "one answer or more"),
        ({"answers": "Oslo"}, "a list of one answer or more"),
        ({"answers": [3]}, "each answer must be a string or a GoldAnswer, not 3"),
        ({"passage": " "}, "the passage is empty"),
        ({"question": 3}, "question must be a string"),
    ):
        with pytest.raises(InputError, match=message):
            QuestionExample(**{"question": "Where?", "passage": PASSAGE} | given)
