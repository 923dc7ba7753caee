"""Train a scorer of the similarity of two sentences, from 0 (unrelated) to 5 (the same meaning).

    python examples/similarity.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out. The 24 pairs show how
it works; a useful scorer needs thousands, such as those of STS-B.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import SimilarityScorer

DATA = Path(__file__).parent / "data"

scorer = SimilarityScorer.train(
    DATA / "pairs.train.tsv",
    DATA / "pairs.dev.tsv",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 30, "batch_size": 4}},
    say=print,
)
pairs = [
    ("A woman is singing.", "A woman sings."),
    ("A woman is singing.", "The bus was late."),
]
for (first, second), score in zip(pairs, scorer.predict(pairs), strict=True):
    print(f"{score:.1f}: {first} / {second}")
