"""Train a classifier that says whether a sentence follows from another, and draw what it looks at.

    python examples/nli.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out. The 24 pairs show how
it works; a useful classifier needs tens of thousands, such as those of SNLI.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import EntailmentClassifier

DATA = Path(__file__).parent / "data"

nli = EntailmentClassifier.train(
    DATA / "entailment.train.tsv",
    DATA / "entailment.dev.tsv",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 8, "batch_size": 4}},
    say=print,
)
pairs = [
    ("A man is cooking rice in the kitchen.", "A man is preparing food."),
    ("A man is cooking rice in the kitchen.", "Nobody is cooking."),
]
for (premise, hypothesis), found in zip(pairs, nli.predict(pairs), strict=True):
    print(f"{nli.show(found)}: {premise} / {hypothesis}")
seen = nli.attention(*pairs[0])
for word, row in zip(seen.hypothesis, seen.weights, strict=True):
    print(f"{word} looks at {seen.premise[row.argmax()]} ({row.max():.2f})")
