"""Train a model that finds the answer to a question in a passage.

    python examples/qa.py [MODEL]

MODEL is the biLM, a name or a folder; the bundled English model if left out. The 54 questions show
how it works; a useful model needs tens of thousands, such as those of SQuAD.
"""

import sys
from pathlib import Path

from elmokit import Elmo
from elmokit.tasks import QuestionAnswerer

DATA = Path(__file__).parent / "data"

answerer = QuestionAnswerer.train(
    DATA / "questions.train.json",
    DATA / "questions.dev.json",
    elmo=Elmo.load(*sys.argv[1:2]),
    settings={"training": {"epochs": 8, "batch_size": 6, "learning_rate": 0.002}},
    say=print,
)
passage = "Clara Holm was born in Malmö in 1908. After school, she studied law in Lund."
for question in ("Where was Clara Holm born?", "When was Clara Holm born?", "What did she study?"):
    found = answerer((question, passage))
    print(f"{question} {found.text} ({found.probability:.2f})")
