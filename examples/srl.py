"""Train a labeller of semantic roles, save it, load it, and ask who did what to whom.

    python examples/srl.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from elmokit import Elmo
from elmokit.tasks import RoleLabeller

DATA = Path(__file__).parent / "data"

with TemporaryDirectory() as folder:
    RoleLabeller.train(
        DATA / "roles.train.conll",
        DATA / "roles.dev.conll",
        elmo=Elmo.load(*sys.argv[1:2]),
        settings={"training": {"batch_size": 4}},
        out=f"{folder}/my-srl",
        say=print,
    )
    labeller = RoleLabeller.load(f"{folder}/my-srl")

print(labeller.evaluate(DATA / "roles.dev.conll"))
for found in labeller(["The cat chased the mouse.", "The window was opened by Anna."]):
    print(labeller.show(found))
    for role in [role for frame in labeller.record(found)["frames"] for role in frame["roles"]]:
        print(f"    {role['role']}: {' '.join(role['words'])}")
