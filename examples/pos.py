"""Train a tagger of parts of speech, and tag words whose class depends on the sentence.

    python examples/pos.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import PosTagger

DATA = Path(__file__).parent / "data"

tagger = PosTagger.train(
    DATA / "parts-of-speech.train.conll",
    DATA / "parts-of-speech.dev.conll",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 15, "batch_size": 4}},
    say=print,
)
for found in tagger(["The children plant a tree .", "The plant is green ."]):
    print(tagger.show(found))
