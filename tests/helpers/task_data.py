"""Small data that every task can learn, as examples and as files."""

from __future__ import annotations

import json
import random
from dataclasses import asdict

from elmokit.tasks.readers.examples import (
    DocumentExample,
    Frame,
    QuestionExample,
    RoleExample,
    TaggedExample,
    TextExample,
)

PEOPLE, PLACES = ["Ann", "Bob", "Eve", "Mark"], ["Paris", "Rome", "New York", "Oslo"]
GOOD, BAD = ["good", "fine", "great"], ["bad", "awful", "dull"]
RELATIONS = """label\ttext
Cause(e2,e1)\tThe <e1>fire</e1> was caused by a <e2>spark</e2>.
Other\tA <e1>cat</e1> saw a <e2>dog</e2>.
"""
PAIRS = "first\tsecond\tscore\nA cat.\tA cat.\t5\nA dog.\tThe sea.\t0.5\nA man.\tA boy.\t3\n"
ENTAILMENTS = """premise\thypothesis\tlabel
A cat sleeps.\tAn animal sleeps.\tentailment
A cat sleeps.\tNo cat sleeps.\tCONTRADICTION
A man sings.\tA man is sad.\tneutral
A dog runs.\tA dog moves.\tEntailment
"""
QUESTIONS = """question\tpassage\tanswer
Who went to Rome?\tAnn went to Rome.\tAnn
Where is Bob?\tBob is in Oslo. He likes it.\tOslo
"""
TEXTS = {
    "classify": ["The film is good.", "An awful film."],
    "nli": ["A cat.\tAn animal.", "A man sings.\tNobody sings."],
    "ner": ["Ann went to Rome .", "Bob slept ."],
    "pos": ["Ann went to Rome .", "Bob slept ."],
    "qa": ["Who slept?\tBob slept.", "Where is Ann?\tAnn is in Rome. She likes it."],
    "relation": ["A <e1>spark</e1> lit the <e2>fire</e2>.", "A <e2>cat</e2> has a <e1>tail</e1>."],
    "similarity": ["A cat.\tA dog.", "A man.\tA boy."],
    "coref": ["Ann met Bob in Rome. She slept.", "Eve slept."],
    "srl": ["Ann saw Bob .", "Bob slept ."],
}
FILES = {
    "classify": "tsv",
    "ner": "conll",
    "nli": "nli",
    "pos": "conll",
    "qa": "questions",
    "relation": "rel",
    "similarity": "sts",
    "srl": "jsonl",
    "coref": "coref.jsonl",
}
WHOLE_FILES = ("coref",)
"""Tasks for which a text file is one text, and not one per line."""


def tagged(n, seed=0):
    rng, found = random.Random(seed), []
    for _ in range(n):
        person, place = rng.choice(PEOPLE), rng.choice(PLACES).split()
        words = [person, "went", "to", *place, "."]
        tags = ["B-PER", "O", "O", "B-LOC", *["I-LOC"] * (len(place) - 1), "O"]
        found.append(TaggedExample(words, tags))
    return found


def reviews(n, seed=0):
    rng, found = random.Random(seed), []
    for _ in range(n):
        label = rng.choice(["neg", "pos"])
        word = rng.choice(GOOD if label == "pos" else BAD)
        found.append(TextExample(f"The film is {word}. I saw it on day {rng.randrange(9)}.", label))
    return found


def roles(n, seed=0):
    rng, found = random.Random(seed), []
    for _ in range(n):
        a, b = rng.sample(PEOPLE, 2)
        if rng.random() < 0.5:
            frames = [Frame(1, ["B-ARG0", "B-V", "B-ARG1", "O"])]
            found.append(RoleExample([a, "saw", b, "."], frames))
        else:
            frames = [
                Frame(1, ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"]),
                Frame(3, ["O", "O", "B-ARG0", "B-V", "O"]),
            ]
            found.append(RoleExample([a, "let", b, "sleep", "."], frames))
    return found


def questions(n, seed=0):
    """Who went somewhere, or where somebody went, among other people and places."""
    rng, found = random.Random(seed), []
    for _ in range(n):
        (a, b), (c, d) = rng.sample(PEOPLE, 2), rng.sample(PLACES, 2)
        passage = f"{a} went to {c}. {b} went to {d}."
        if rng.random() < 0.5:
            found.append(QuestionExample(f"Where did {b} go?", passage, answers=[d]))
        else:
            found.append(QuestionExample(f"Who went to {c}?", passage, answers=[a]))
    return found


def documents(n, seed=0):
    """A woman, a man and a place; pronouns say who does what."""
    rng, found = random.Random(seed), []
    for number in range(n):
        woman, man = rng.choice(["Ann", "Eve"]), rng.choice(["Bob", "Mark"])
        sentences = [[woman, "met", man, "in", rng.choice(["Paris", "Rome", "Oslo"]), "."]]
        places = {"She": [(0, 1)], "He": [(2, 3)]}
        for word in rng.sample(["She", "He"], rng.randrange(1, 3)):
            start = sum(map(len, sentences))
            sentences.append([word, rng.choice(["slept", "left"]), "."])
            places[word].append((start, start + 1))
        found.append(DocumentExample(sentences, f"d{number}", [*places.values(), [(4, 5)]]))
    return found


def _line(document):
    clusters = [[[a, b - 1] for a, b in cluster] for cluster in document.clusters]
    return json.dumps({"sentences": document.sentences, "clusters": clusters}) + "\n"


def write_files(folder):
    """Write train and dev files of every task."""
    for name, n, seed in (("train", 12, 0), ("dev", 4, 1)):
        rows = "".join(f"{e.label}\t{e.text}\n" for e in reviews(n, seed))
        sentences = (zip(e.words, e.tags, strict=True) for e in tagged(n, seed))
        words = "\n".join("".join(f"{w} _ {t}\n" for w, t in pairs) for pairs in sentences)
        frames = "".join(json.dumps(asdict(e)) + "\n" for e in roles(n, seed))
        texts = {
            "tsv": "label\ttext\n" + rows,
            "conll": words,
            "questions": QUESTIONS,
            "rel": RELATIONS,
            "sts": PAIRS,
            "nli": ENTAILMENTS,
            "jsonl": frames,
        }
        texts["coref.jsonl"] = "".join(map(_line, documents(n, seed)))
        for suffix, text in texts.items():
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")
