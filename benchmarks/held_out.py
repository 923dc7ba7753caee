"""Which of several models is better, by text that no published score is measured on.

    python benchmarks/held_out.py MODEL… --conll TRAIN --semcor DIR --wordnet DIR

To choose between models, or ways to use them, by a test makes its score too good. This tells tags
and senses of a part of the text to train on, by the rest of it: one sentence in ten of a CoNLL file
with tags of UD, and the last fifth of SemCor.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from elmokit import Elmo
from elmokit.analysis.conll import read_conll
from elmokit.analysis.probe import probe
from elmokit.analysis.sense_vectors import SenseVectors
from elmokit.analysis.senses import read_semcor
from elmokit.analysis.wordnet import WordNet
from elmokit.analysis.wsd import evaluate

_ONE_IN, _PART = 10, 5


def main() -> None:
    """Score every model, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--conll", type=Path, required=True, help="tagged sentences")
    parser.add_argument("--semcor", type=Path, required=True)
    parser.add_argument("--wordnet", type=Path, required=True)
    arguments = parser.parse_args()
    tagged = read_conll(arguments.conll)
    seen = [s for number, s in enumerate(tagged) if number % _ONE_IN]
    semcor, wordnet = list(read_semcor(arguments.semcor)), WordNet(arguments.wordnet)
    cut = len(semcor) * (_PART - 1) // _PART
    for model in arguments.models:
        elmo = Elmo.load(model)
        tags = probe(elmo, seen, tagged[::_ONE_IN])
        senses = evaluate(elmo, SenseVectors.train(elmo, semcor[:cut]), wordnet, semcor[cut:])
        by_layer = " / ".join(f"{score.accuracy:.2f}" for score in tags.layers)
        print(f"{model}")
        print(
            f"  tags ({tags.n_dev:,}): layers {by_layer}, "
            f"side by side {tags.side_by_side.accuracy:.2f}"
        )
        by_layer = " / ".join(f"{score:.2f}" for score in senses.layers)
        print(
            f"  senses ({senses.n:,}): layers {by_layer}, "
            f"top alone {senses.alone:.2f}, around it {senses.around:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
