"""Train a tagger of named entities, save it, load it, and find names in new sentences.

    python examples/ner.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from elmokit import Elmo
from elmokit.tasks import NerTagger

DATA = Path(__file__).parent / "data"

with TemporaryDirectory() as folder:
    NerTagger.train(
        DATA / "entities.train.conll",
        DATA / "entities.dev.conll",
        elmo=Elmo.load(*sys.argv[1:2]),
        settings={"training": {"epochs": 15, "batch_size": 4}},
        out=f"{folder}/my-ner",
        say=print,
    )
    ner = NerTagger.load(f"{folder}/my-ner")

print(ner.evaluate(DATA / "entities.dev.conll"))
for found in ner(["Angela Miller moved to Paris.", "Blue Ocean Airlines hired Peter."]):
    print(ner.show(found))
    for entity in ner.record(found)["entities"]:
        print(f"    {entity['type']}: {' '.join(entity['words'])}")
