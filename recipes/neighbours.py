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
bank bark bar bat bear beam bed bend bill bit blow board body bolt book bound bow bowl box branch
bridge bright broke buckle calf call camp cap capital case cast cell chair chance change character
charge chest clear club coach coat cold column company compound cook cool corn count country
course court cover crane cross crown current cut dark date deal deck deed degree desert dip dish
draft draw dress drill drive drop duck dull engaged express eye face fair fall fan fast fawn fell
felt field figure file film fine fire firm fit flat fly foot force forge form found frame free
game gear general glass grain grave green ground habit hail hand hard head heart heavy hide hit
hold iron issue jam judge key kind lap lead leaf lean left letter lie light like line litter lock
long lot mass match mean mine minute mole mouth nail nature net note novel object order organ page
palm park part party pass patient people pen pitch plain plane plant plate play plot point pole
pool port post pound power present press pupil quarter race rank rare rest rich right ring rock
roll root rose round row ruler run sage save scale school sea season seal second sense sentence
set shade shaft share sharp ship shock shoot shop shot shower sign sink soil sole sound spell
spirit spring square stable staff stage stake stalk stall star state stem step stern stick stock
store storm story strain strike string style subject suit swallow table tail tank taste tear term
tie till time tip tire toast tongue top touch track train trial trip trunk turn type vessel vault
volume wake watch wave way well will wind work yard
""".split()  # fmt: skip
"""Words with several meanings, each common in old books."""

PER_WORD = 13
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
