"""Which hints help word sense disambiguation, given the same vectors.

    python benchmarks/senses.py SENSES DATA… --wordnet DIR [--model MODEL] [--write]

SENSES is the output of ``elmokit wsd train --occurrences``. DATA are files NAME.data.xml of
Raganato et al. (2017) with NAME.gold.key.txt next to them. --write stores the table as
benchmarks/results/senses.md.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

import numpy as np
from cpu import HERE

import elmokit
from elmokit import Elmo
from elmokit.analysis.senses.sense_vectors import Combination, Glosses, SenseVectors, target_vectors
from elmokit.analysis.senses.tagged_text import read_raganato
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.formats import DEFAULT_MODEL

WAYS = {
    "nearest averages, of the word and of its context": Combination(k=0, average=1.0, gloss=0.0),
    "nearest occurrence": Combination(k=1, average=0.0, gloss=0.0),
    "5 nearest occurrences, equal votes": Combination(k=5, sharpness=0.0, average=0.0, gloss=0.0),
    "10 nearest occurrences, equal votes": Combination(k=10, sharpness=0.0, average=0.0, gloss=0.0),
    "20 nearest occurrences, equal votes": Combination(k=20, sharpness=0.0, average=0.0, gloss=0.0),
    "10 nearest occurrences, votes weighted by similarity": Combination(average=0.0, gloss=0.0),
    "the same, plus averages": Combination(gloss=0.0),
    "averages and glosses, no votes": Combination(k=0),
    "all combined, as in `elmokit wsd`": Combination(),
}


def main() -> None:
    """Score every combination on every text, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("senses", type=Path)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--wordnet", type=Path, required=True)
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    elmo, wordnet = Elmo.load(arguments.model), WordNet(arguments.wordnet)
    vectors = SenseVectors.load(arguments.senses)
    vectors.check(elmo)
    if vectors.occurrences is None:
        parser.error(f"{arguments.senses} has no occurrences; run elmokit wsd train --occurrences")
    names = [path.name.removesuffix(".data.xml") for path in arguments.data]
    scores = [score(elmo, vectors, wordnet, path) for path in arguments.data]
    lines = [
        f"ElmoKit {elmokit.__version__}, {Path(arguments.model).name}, {datetime.date.today()}. "
        "F1. Averages are of the top layer alone, votes of the vectors around the word; the first "
        "sense is the fallback.",
        "",
        "| | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
        *(
            f"| {way} | " + " | ".join(f"{found[k]:.1f}" for found in scores) + " |"
            for k, way in enumerate(WAYS)
        ),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "senses.md").write_text(text, encoding="utf-8")


def score(elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, data: Path) -> list[float]:
    """Return the F1 of each combination on a text."""
    name = data.name.removesuffix(".data.xml")
    sentences = read_raganato(data, data.with_name(f"{name}.gold.key.txt"))
    asked = [t for s in sentences for t in s.targets if t.keys]
    glosses = Glosses(elmo, wordnet).of(k for t in asked for k in wordnet.of(t.lemma, t.pos))
    right = np.zeros(len(WAYS))
    for target, vector in target_vectors(elmo, sentences):
        keys = wordnet.of(target.lemma, target.pos)
        first = keys[0] if keys else ""
        for k, way in enumerate(WAYS.values()):
            found = vectors.likeliest(vector, keys, glosses, way)
            right[k] += (found[0] if found else first) in target.keys
    return [float(100 * r / len(asked)) for r in right]


if __name__ == "__main__":
    main()
