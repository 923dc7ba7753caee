"""Train a coreference resolver on short stories, and mark who is who in a new one.

    python examples/coref.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import CoreferenceResolver

DATA = Path(__file__).parent / "data"

coref = CoreferenceResolver.train(
    DATA / "stories.train.jsonl",
    DATA / "stories.dev.jsonl",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 10}},
    say=print,
)
print(coref.evaluate(DATA / "stories.dev.jsonl"))
found = coref("Clara met the old man near the bridge. She gave him her coat. He thanked her.")
print(coref.show(found))
for mentions in coref.record(found)["mentions"]:
    print("    " + " = ".join(mentions))
