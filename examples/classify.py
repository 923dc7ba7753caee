"""Train a classifier of film reviews, look at its scores, and use it.

    python examples/classify.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import TextClassifier

DATA = Path(__file__).parent / "data"

classifier = TextClassifier.train(
    DATA / "reviews.train.tsv",
    DATA / "reviews.dev.tsv",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 15, "batch_size": 8}},
    say=print,
)
scores = classifier.evaluate(DATA / "reviews.dev.tsv")
for row in scores.confusion_rows():
    print("  ".join(f"{cell:>16}" for cell in row))

for text in ("A lovely film with a great cast.", "The plot is boring and the jokes are terrible."):
    found = classifier(text)
    print(f"{found.label} ({found.probabilities[found.label]:.2f}): {text}")
