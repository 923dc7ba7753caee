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
    settings={"training": {"epochs": 8, "learning_rate": 0.002}},
    say=print,
)
print(coref.evaluate(DATA / "stories.dev.jsonl"))
found = coref("The captain wrote a letter to Nora. She read it. Then she went to see him.")
print(coref.show(found))
for mentions in coref.record(found)["mentions"]:
    print("    " + " = ".join(mentions))
