"""Train a classifier of relations between two marked entities of a sentence.

    python examples/relation.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import RelationClassifier

DATA = Path(__file__).parent / "data"

classifier = RelationClassifier.train(
    DATA / "relations.train.tsv",
    DATA / "relations.dev.tsv",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 15, "batch_size": 4}},
    say=print,
)
for text in (
    "The <e1>smell</e1> was caused by old <e2>cheese</e2>.",
    "The <e1>lid</e1> of the <e2>pot</e2> was missing.",
    "She put the <e1>eggs</e1> into a <e2>basket</e2>.",
):
    print(f"{classifier(text).label}: {text}")
