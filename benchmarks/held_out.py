"""Compare models on held-out training text.

    python benchmarks/held_out.py MODEL… --conll TRAIN --semcor DIR --wordnet DIR

Choosing a model by its score on a test set makes that score too good. This script scores tags and
senses on a part of the training text, with the rest as training data: one sentence in ten of a
CoNLL file with UD tags, and one in five of SemCor's passages of fifty sentences. (The end of SemCor
would not do as held-out text: its last third has senses of verbs only.)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from elmokit import Elmo
from elmokit.analysis.probes.probing import probe
from elmokit.analysis.senses.disambiguation import evaluate
from elmokit.analysis.senses.sense_vectors import SenseVectors
from elmokit.analysis.senses.tagged_text import TaggedSentence, read_semcor
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.io.conll import read_conll

_SENTENCES, _PASSAGES, _PASSAGE = 10, 5, 50  # one in 10; one in 5; sentences per passage


def main() -> None:
    """Score every model and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--conll", type=Path, required=True, help="tagged sentences")
    parser.add_argument("--semcor", type=Path, required=True)
    parser.add_argument("--wordnet", type=Path, required=True)
    arguments = parser.parse_args()
    tagged = read_conll(arguments.conll)
    seen = [s for number, s in enumerate(tagged) if number % _SENTENCES]
    wordnet = WordNet(arguments.wordnet)
    parts: tuple[list[TaggedSentence], list[TaggedSentence]] = ([], [])
    for number, sentence in enumerate(read_semcor(arguments.semcor)):
        parts[number // _PASSAGE % _PASSAGES == 0].append(sentence)
    known, asked = parts
    for model in arguments.models:
        elmo = Elmo.load(model)
        tags = probe(elmo, seen, tagged[::_SENTENCES])
        senses = evaluate(elmo, SenseVectors.train(elmo, known), wordnet, asked)
        by_layer = " / ".join(f"{score.accuracy:.2f}" for score in tags.layers)
        print(model)
        print(
            f"  tags ({tags.n_dev:,}): layers {by_layer}, "
            f"side by side {tags.side_by_side.accuracy:.2f}"
        )
        by_layer = " / ".join(f"{score:.2f}" for score in senses.layers)
        print(
            f"  senses ({senses.n:,}): layers {by_layer}, "
            f"top without residual {senses.alone:.2f}, context {senses.around:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
