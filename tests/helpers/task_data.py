"""Small data that every task can learn."""

from __future__ import annotations

import random

from elmokit.tasks.readers.examples import TaggedExample, TextExample

PEOPLE, PLACES = ["Ann", "Bob", "Eve", "Mark"], ["Paris", "Rome", "New York", "Oslo"]
GOOD, BAD = ["good", "fine", "great"], ["bad", "awful", "dull"]


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
