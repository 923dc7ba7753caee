"""Small data that every task can learn, as examples and as files."""

from __future__ import annotations

import json
import random

from elmokit.tasks.readers.examples import DocumentExample, TaggedExample, TextExample

PEOPLE, PLACES = ["Ann", "Bob", "Eve", "Mark"], ["Paris", "Rome", "New York", "Oslo"]
GOOD, BAD = ["good", "fine", "great"], ["bad", "awful", "dull"]
RELATIONS = """label\ttext
Cause(e2,e1)\tThe <e1>fire</e1> was caused by a <e2>spark</e2>.
Other\tA <e1>cat</e1> saw a <e2>dog</e2>.
"""
PAIRS = "first\tsecond\tscore\nA cat.\tA cat.\t5\nA dog.\tThe sea.\t0.5\nA man.\tA boy.\t3\n"
TEXTS = {
    "classify": ["The film is good.", "An awful film."],
    "ner": ["Ann went to Rome .", "Bob slept ."],
    "pos": ["Ann went to Rome .", "Bob slept ."],
    "relation": ["A <e1>spark</e1> lit the <e2>fire</e2>.", "A <e2>cat</e2> has a <e1>tail</e1>."],
    "similarity": ["A cat.\tA dog.", "A man.\tA boy."],
    "coref": ["Ann met Bob in Rome. She slept.", "Eve slept."],
}
FILES = {
    "classify": "tsv",
    "ner": "conll",
    "pos": "conll",
    "relation": "rel",
    "similarity": "sts",
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
        texts = {"tsv": "label\ttext\n" + rows, "conll": words, "rel": RELATIONS, "sts": PAIRS}
        texts["coref.jsonl"] = "".join(map(_line, documents(n, seed)))
        for suffix, text in texts.items():
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")
