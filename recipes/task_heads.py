"""Train the task models in the package: entities, parts of speech and semantic roles for English.

    python recipes/task_heads.py DATA WORK [TASK…]

DATA has the public data sets as benchmarks/task_files.py arranges them. WORK keeps the trainings;
an interrupted one continues. TASK is ner, pos or srl; the default is all. Each model is trained
with the settings of its task on the layers of the bundled model ``en``, without other vectors. It
is saved in eight bits in the package, and scored on the test set as it is saved. Run this again
when ``en`` changes. On two CPU cores, all three take about an hour and a half.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.elmo import Elmo
from elmokit.tasks import load, task_class
from elmokit.tasks.names import BUNDLED
from elmokit.tasks.task import Task


class Head(NamedTuple):
    """What a model is trained on, and what its card says."""

    files: str
    """Path of the files, with {} for train, dev and test."""
    notes: str


_WEB = (
    "The training texts are the English Web Treebank: blogs, newsgroups, e-mail, reviews and\n"
    "questions. On other kinds of text, such as social media, medicine or law, expect lower scores."
)
HEADS = {
    "ner": Head(
        "uner-ewt/en_ewt-ud-{}.iob2",
        f"""## Data

[UNER English-EWT](https://github.com/UniversalNER/UNER_English-EWT) (Mayhew et al. 2024),
CC BY-SA 4.0: people (PER), places (LOC) and organisations (ORG) in the sentences of the English Web
Treebank. The training file was an early version; types that the release does not have were removed.

## Limits

{_WEB}
The model marks only these three types; it does not mark products, events, nationalities or dates.
Organisations are found less reliably than people and places.""",
    ),
    "pos": Head(
        "ud-ewt/en_ewt-ud-{}.conllu",
        f"""## Data

[UD English-EWT](https://github.com/UniversalDependencies/UD_English-EWT), CC BY-SA 4.0: the 17
universal parts of speech.

## Limits

{_WEB}
The rarest tags (X, SYM, INTJ) are the least reliable.""",
    ),
    "srl": Head(
        "propbank-ewt/conll/en_ewt-srl-{}.conll",
        f"""## Data

[PropBank](https://github.com/propbank/propbank-release) on the English Web Treebank, CC BY-SA 4.0:
the roles of verbs, nouns and adjectives. F1 is defined as in CoNLL-2005, with given predicates.

## Limits

{_WEB}
In plain text the model finds the predicates itself, and a predicate it misses has no roles. Roles
are PropBank's (ARG0, ARG1, ARGM-TMP, …); the model does not tell the senses of a verb apart.""",
    ),
}
_LICENCE = """

## Licence

CC BY-SA 4.0, like the data. Made by `python recipes/task_heads.py`."""


def main() -> None:
    """Train, save and score."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(HEADS))
    arguments = parser.parse_args()
    for name in arguments.tasks or HEADS:
        _make(name, arguments.data, arguments.work / name)


def _make(name: str, data: Path, work: Path) -> None:
    head, kind = HEADS[name], task_class(name)
    train, dev, test = (data / head.files.format(part) for part in ("train", "dev", "test"))
    task = kind.train(
        train, dev, elmo=Elmo.load("en"), out=work, resume=(work / "training.json").exists(),
        say=lambda line: print(f"{name}: {line}", flush=True),
    )  # fmt: skip
    BUNDLED.mkdir(exist_ok=True)
    task.save(BUNDLED / name, overwrite=True, dtype="int8")
    _describe(load(BUNDLED / name), head, test)


def _describe(task: Task[Any, Any], head: Head, test: Path) -> None:
    """Score a saved model, and save it again with a card that says so."""
    scores = task.evaluate(test)
    header, *rows = scores.class_rows()
    table = [header, ["---"] * len(header), *rows]
    others = ", ".join(f"{key} {value:.2f}" for key, value in scores.others.items())
    shown = "\n".join(f"| {' | '.join(map(str, row))} |" for row in table)
    task.about["test"] = {
        "measure": scores.name,
        "value": scores.value,
        "n": scores.n,
        "unit": scores.unit,
    }
    task.about["notes"] = (
        f"{head.notes}\n\n## Scores on the test set\n\n{scores.name} {scores.value:.2f}"
        f"{f'; {others}' if others else ''}\n\n{shown}{_LICENCE}"
    )
    task.save(BUNDLED / task.name, overwrite=True, dtype="int8")
    print(f"{task.name}: {scores.name} {scores.value:.2f}", flush=True)


if __name__ == "__main__":
    main()
