"""Similarity of sentences without training: the cosine of mean word vectors, by layer.

    python benchmarks/cosine.py --data DIR --glove FILE [--model MODEL] [--device DEVICE] [--write]

DIR has the unpacked sets STS-B (sts-b/sts-dev.csv, sts-test.csv) and SICK (sick2014/SICK_trial.txt,
SICK_test_annotated.txt). FILE has GloVe's vectors. A sentence's vector is the mean of its word
vectors: of all words, or of content words, which are neither stop words nor punctuation. It is used
as it is; centred, without the mean of the dev sentences; or standardised, also divided by their
standard deviation in each dimension. Scores of the dev sentences choose a variant for each kind of
vector, and the test set is scored with this variant and with the plain mean. --write stores the
tables as benchmarks/results/cosine.md.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from cpu import HERE, processor, versions

from elmokit import Elmo
from elmokit.analysis.similarity import cosine
from elmokit.formats import DEFAULT_MODEL
from elmokit.tasks.measures.correlation import pearson, spearman
from elmokit.tasks.readers import PairExample, read_pair_examples
from elmokit.tasks.static_vectors import read_static_vectors
from elmokit.tasks.word_input import StaticTable

Floats = npt.NDArray[np.float32]
Pair = tuple[float, float]
"""Pearson and Spearman correlation, times 100."""

STS = {"first": "6", "second": "7", "score": "5"}
SETS: dict[str, tuple[str, str, dict[str, str] | None]] = {
    "STS-B": ("sts-b/sts-dev.csv", "sts-b/sts-test.csv", STS),
    "SICK": ("sick2014/SICK_trial.txt", "sick2014/SICK_test_annotated.txt", None),
}
"""Dev and test file, and their columns."""

WORDS = ("all words", "content words")
SPACES = ("as they are", "centred", "standardised")
PLAIN = (WORDS[0], SPACES[0])

STOP_WORDS = frozenset(
    """a about above after again against all am an and any are as at be because been before being
    below between both but by can could did do does doing down during each few for from further had
    has have having he her here hers him his how i if in into is it its just me more most my no nor
    not of off on once only or other our out over own she should so some such than that the their
    them then there these they this those through to too under until up very was we were what when
    where which while who whom why will with would you your 's 're 've 'll n't""".split()
)


def main() -> None:
    """Score every kind of vector on both sets, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--glove", type=Path, required=True, help="file of GloVe's vectors")
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="store the tables")
    arguments = parser.parse_args()
    elmo = Elmo.load(arguments.model, device=arguments.device)
    found = read_static_vectors(arguments.glove)
    glove = StaticTable(found.words, found.vectors)
    lines = [
        f"{versions()}, {processor()}, {Path(arguments.model).name}, {datetime.date.today()}. "
        "Pearson / Spearman correlation of the cosine with the gold similarity, times 100. Nothing "
        "is trained on pairs.",
    ]
    for name, (dev, test, columns) in SETS.items():
        sets = [read_pair_examples(arguments.data / path, columns) for path in (dev, test)]
        lines += tables(name, *(Sentences(pairs, elmo, glove) for pairs in sets))
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "cosine.md").write_text(text, encoding="utf-8")


class Sentences:
    """The sentence vectors of pairs, of every kind.

    Args:
        pairs: Pairs with scores.
        elmo: The model.
        glove: Static vectors.
    """

    def __init__(self, pairs: list[PairExample], elmo: Elmo, glove: StaticTable) -> None:
        self.gold = np.array([pair.score for pair in pairs], float)
        texts = [text for pair in pairs for text in (pair.first, pair.second)]
        distinct = {text: i for i, text in enumerate(dict.fromkeys(map(str, texts)))}
        tokens = [elmo.tokenize(text) for text in distinct]
        rows = [distinct[str(text)] for text in texts]
        names = ["token layer", *(f"layer {k}" for k in range(1, elmo.n_layers))]
        names += [f"average of all {elmo.n_layers}", "mean GloVe"]
        pooled: dict[tuple[str, str], list[Floats]] = {(n, w): [] for n in names for w in WORDS}
        for words, layers in zip(tokens, elmo.stream(tokens, "all"), strict=True):
            static = glove(torch.tensor([glove.rows(words)], dtype=torch.long))[0].numpy()
            kinds = zip(names, [*layers, layers.mean(0), static], strict=True)
            content = _content(words)
            for name, vectors in kinds:
                known = vectors.any(1)  # GloVe has zeros for unknown words
                for which, chosen in zip(WORDS, (known, known & content), strict=True):
                    pooled[name, which].append(vectors[chosen if chosen.any() else ...].mean(0))
        self.vectors = {key: np.stack(some)[rows] for key, some in pooled.items()}
        """Vectors (2N, D) by kind and words; the two of a pair are adjacent."""
        self.names = ["mean GloVe", *names[:-1]]

    def scores(self, name: str, words: str, space: str, dev: Sentences) -> Pair:
        """Return the correlations of one variant; the dev sentences give the mean."""
        vectors, known = self.vectors[name, words], dev.vectors[name, words]
        if space != "as they are":
            vectors = vectors - known.mean(0)
        if space == "standardised":
            vectors = vectors / np.maximum(known.std(0), 1e-6)
        found = cosine(vectors[0::2], vectors[1::2]).astype(float)
        return 100 * pearson(self.gold, found), 100 * spearman(self.gold, found)


def tables(name: str, dev: Sentences, test: Sentences) -> list[str]:
    """Return the tables of one set: every variant on dev, and the chosen ones on test."""
    variants = [(words, space) for words in WORDS for space in SPACES]
    found = {
        kind: {variant: dev.scores(kind, *variant, dev) for variant in variants}
        for kind in dev.names
    }
    lines = [
        *("", f"## {name}, dev: {len(dev.gold):,} pairs", ""),
        _row(["", *(f"{words}, {space}" for words, space in variants)]),
        _row(["---"] * (1 + len(variants))),
        *(_row([kind, *map(_shown, scores.values())]) for kind, scores in found.items()),
        *("", f"## {name}, test: {len(test.gold):,} pairs", ""),
        _row(["", f"{PLAIN[0]}, {PLAIN[1]}", "best on dev", "which"]),
        _row(["---"] * 4),
    ]
    for kind, scores in found.items():
        best = max(scores, key=lambda variant: scores[variant][0])
        both = [_shown(test.scores(kind, *variant, dev)) for variant in (PLAIN, best)]
        lines.append(_row([kind, *both, ", ".join(best)]))
    return lines


def _content(words: list[str]) -> npt.NDArray[np.bool_]:
    """True (T,) at words that are neither stop words nor punctuation."""
    return np.array([w.lower() not in STOP_WORDS and any(map(str.isalnum, w)) for w in words], bool)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(scores: Pair) -> str:
    return " / ".join(f"{value:.1f}" for value in scores)


if __name__ == "__main__":
    main()
