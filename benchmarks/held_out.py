"""Which of several models is better, by text that no published score is measured on.

    python benchmarks/held_out.py MODEL… --conll TRAIN --semcor DIR --wordnet DIR

To choose between models, or ways to use them, by a test makes its score too good. This tells tags
and senses of a part of the text to train on, by the rest of it: one sentence in ten of a CoNLL file
with tags of UD, and one in five of SemCor's passages of fifty sentences. (Its last third has the
senses of verbs alone, so that its end would not do.)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from elmokit import Elmo
from elmokit.analysis.probes.conll import read_conll
from elmokit.analysis.probes.probing import probe
from elmokit.analysis.senses.disambiguation import evaluate
from elmokit.analysis.senses.sense_vectors import SenseVectors
from elmokit.analysis.senses.tagged_text import TaggedSentence, read_semcor
from elmokit.analysis.senses.wordnet import WordNet

_SENTENCES, _PASSAGES, _PASSAGE = 10, 5, 50  # one in so many; how many sentences a passage has


def main() -> None:
    """Score every model, and print."""
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
            f"top alone {senses.alone:.2f}, around it {senses.around:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
