"""Questions about passages: files of SQuAD 1.1, and rows of a table.

An answer is a part of its passage. If a file says where it begins, and it does not, the nearest
occurrence is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmokit.arguments import described
from elmokit.errors import InputError, shortened
from elmokit.tasks.readers.examples import GoldAnswer, QuestionExample
from elmokit.tasks.readers.records import Source
from elmokit.tasks.readers.rows import Row, Wanted, read_rows

COLUMNS = Wanted(
    ("question", "passage"),
    "answer",
    {2: ("question", "passage"), 3: ("question", "passage", "answer")},
    ("id",),
)


def read_question_examples(
    path: str | Path, columns: Mapping[str, str] | None = None, *, labelled: bool = True
) -> list[QuestionExample]:
    """Read questions, passages and answers.

    Args:
        path: A JSON file of SQuAD, or a TSV, CSV or JSONL file with the columns question, passage
            and answer. A file of another name is read as TSV. In JSONL, answers are a string, an
            object such as ``{"text": "Oslo", "answer_start": 10}``, or a list of these.
        columns: Where the columns are, such as ``{"passage": "text"}``: names in the first line, or
            numbers from 1.
        labelled: Whether each question needs an answer.
    """
    source = Source(path)
    if source.kind == "jsonl" and not columns:
        first = _first_line(source)
        if not isinstance(first, dict) or "data" in first:
            return _from_squad(source, first, labelled)
    return [_from_row(row, labelled) for row in read_rows(source, COLUMNS, columns, labelled)]


def _first_line(source: Source) -> Any:
    """What the first line says in JSON; None if it is only the beginning of a file of SQuAD."""
    try:
        return json.loads(source.first)
    except (ValueError, RecursionError):
        return None


def _from_row(row: Row, labelled: bool) -> QuestionExample:
    question, passage = row.text("question"), row.text("passage")
    if not isinstance(question, str) or not isinstance(passage, str):
        raise row.error("has a list of tokens; expected a question and a passage, as strings")
    if isinstance(row.cells["passage"], str):
        passage = row.cells["passage"]  # with its spaces: answers are found by their place
    found = row.cells.get("id")
    name = "" if found is None else str(found)
    try:
        answers = _answers(row.cells.get("answer"), passage) if labelled else None
        return QuestionExample(question, passage, name, answers)
    except InputError as error:
        which = f" (question {shortened(name)})" if name else ""
        raise InputError(f"line {row.line} of {row.source.name}{which}: {error}") from None


def _from_squad(source: Source, values: Any, labelled: bool) -> list[QuestionExample]:
    text = "\n".join(line for _, line in source.lines)
    try:
        if values is None or len(text) > len(source.first):
            values = json.loads(text)
        if "\\u" in text:  # half of a character, which could not be written anywhere
            json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{source.name} contains half of a character, such as \\ud83d without \\ude00; fix it"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source.name} is not JSON ({shortened(str(error))}); expected a file of SQuAD, "
            "or one object per line, in braces"
        ) from None
    found = []
    for passage, question, place in _questions(values, source.name):
        try:
            found.append(_question(question, passage, labelled))
        except InputError as error:
            own = question.get("id") if isinstance(question, dict) else None
            where = place if own is None else f"question {shortened(str(own))}"
            raise InputError(f"{where} of {source.name}: {error}") from None
    if not found:
        raise source.nothing("a file of SQuAD: data, paragraphs, qas")
    return found


def _questions(values: Any, name: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield each question of a file of SQuAD with its passage, and its place in the file."""
    for a, article in enumerate(_list(values, "data", name), 1):
        where = f"{name}, article {a}"
        for p, paragraph in enumerate(_list(article, "paragraphs", where), 1):
            here = f"article {a}, paragraph {p}"
            for q, question in enumerate(_list(paragraph, "qas", f"{name}, {here}"), 1):
                yield paragraph.get("context"), question, f"{here}, question {q}"


def _question(values: Any, passage: Any, labelled: bool) -> QuestionExample:
    if not isinstance(values, dict) or not isinstance(values.get("question"), str):
        raise InputError("it has no text; expected an object with the key question")
    if not isinstance(passage, str):
        raise InputError("its paragraph has no text; expected an object with the key context")
    question, name = values["question"].strip(), str(values.get("id", ""))
    answers = _answers(values.get("answers"), passage) if labelled else None
    return QuestionExample(question, passage, name, answers)


def _list(values: Any, key: str, name: str) -> list[Any]:
    found = values.get(key) if isinstance(values, dict) else None
    if not isinstance(found, list):
        raise InputError(
            f"{name} has no list {key}; expected a file of SQuAD: data, paragraphs, qas"
        )
    return found


def _answers(value: Any, passage: str) -> list[GoldAnswer | str]:
    """Answers in any of the usual forms."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):  # columns of a data set
        starts = value.get("answer_start") or [None] * len(value["text"])
        pairs = zip(value["text"], starts, strict=False)
        value = [{"text": text, "answer_start": start} for text, start in pairs]
    items = value if isinstance(value, list) else [] if value is None else [value]
    if not items:
        raise InputError("no answers; write one, or remove the question")
    return [_answer(item, passage) for item in items]


def _answer(value: Any, passage: str) -> GoldAnswer | str:
    text, start = value, None
    if isinstance(value, dict):
        text, start = value.get("text"), value.get("answer_start")
    if not isinstance(text, str):
        raise InputError(f"the answer is {described(text)}; expected a text")
    if start is None:
        return text.strip()
    if isinstance(start, bool) or not isinstance(start, int):
        raise InputError(f"answer_start is {described(start)}; expected a whole number")
    if not text.strip() or (start >= 0 and passage.startswith(text, start)):
        return GoldAnswer(text, start)
    places = occurrences(text, passage)
    if not places:
        return text  # the example reports it
    return GoldAnswer(text, min(places, key=lambda place: abs(place - start)))


def occurrences(text: str, passage: str) -> Sequence[int]:
    """Where a text begins in a passage; occurrences may overlap."""
    found, start = [], passage.find(text)
    while start >= 0:
        found.append(start)
        start = passage.find(text, start + 1)
    return found
