"""Build the index in the package: ambiguous words in sentences of public-domain books.

    python recipes/neighbours.py gutenberg.txt

The text has one paragraph per line, plain or compressed, from books of Project Gutenberg. The index
belongs to the bundled model ``en``: run this again when that changes. The sentences are kept in the
index, so without a text it is rebuilt from the sentences that it has:

    python recipes/neighbours.py
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from pathlib import Path

from elmokit import Elmo
from elmokit.io.lines import read_lines
from elmokit.serve.bundled_index import PLACE, stored_sentences, write_bundled
from elmokit.text.sentences import split_sentences

WORDS = """
bank bark bar bear beam bill blow board bolt book bow box branch bridge calf capital case cast
cell charge chest coach company cook corn count country course court crane cross crown current
date deal deck draft draw dress drill drive drop fair fall fan fast figure file fine fire firm fit
flat fly foot game glass grain grave green ground hand hard head heart hide iron jam judge key
kind lead leaf left letter lie light like line lock lot mass match mean mine minute mouth nail
note novel object order organ page palm park party pass patient pen pitch plain plane plant plate
play plot point pole pool port post pound present press pupil race rank rest right ring rock root
rose row ruler run scale school seal season second sentence shade ship shot sign sink sound spell
spirit spring square stable staff stage star state stick stock story strike subject suit table
tear term tie till tip train trial trunk type vessel volume watch wave well will wind yard
""".split()  # fmt: skip
"""Words with several meanings, each common in old books."""

PER_WORD = 24
LENGTHS = range(7, 23)
_UNFIT = re.compile(r"[\d\[\]_*|<>]|--|\bthee?\b|\bthou\b", re.IGNORECASE)


def choose(elmo: Elmo, path: Path, seed: int = 0) -> list[tuple[list[str], list[int]]]:
    """Choose sentences with each word, spread over the text, and the positions of the words."""
    wanted = set(WORDS)
    having: dict[str, list[str]] = defaultdict(list)
    for line in read_lines(path):
        for sentence in split_sentences(line):
            words = set(re.findall(r"[a-z]+", sentence)) & wanted
            n = sentence.count(" ") + 1
            if words and n in LENGTHS and sentence[0].isupper() and not _UNFIT.search(sentence):
                for word in words:
                    having[word].append(sentence)
    rng = random.Random(seed)
    chosen: dict[str, None] = {}
    for word in dict.fromkeys(WORDS):
        some = list(dict.fromkeys(having[word]))
        chosen |= dict.fromkeys(rng.sample(some, min(PER_WORD, len(some))))
    return positions(elmo, list(chosen))


def positions(elmo: Elmo, sentences: list[str]) -> list[tuple[list[str], list[int]]]:
    """Find the ambiguous words in each sentence."""
    wanted = set(WORDS)
    split = [elmo.tokenize(sentence) for sentence in sentences]
    found = [(tokens, [i for i, t in enumerate(tokens) if t in wanted]) for tokens in split]
    return [(tokens, places) for tokens, places in found if places]


def main() -> None:
    """Write the index."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=PLACE)
    given = parser.parse_args()
    elmo = Elmo.load("en")
    if given.text is None:
        sentences = [text.split(" ") for text in stored_sentences()]
        wanted = set(WORDS)
        found = [(tokens, [i for i, t in enumerate(tokens) if t in wanted]) for tokens in sentences]
    else:
        found = choose(elmo, given.text)
    config = write_bundled(elmo, found, given.out)
    size = given.out.stat().st_size
    print(f"{given.out}: {config.rows:,} tokens in {config.sentences:,} sentences, {size:,} bytes")


if __name__ == "__main__":
    main()
