"""Task models on public data: static vectors against ELMo, several seeds each.

    python benchmarks/tasks.py [TASK…] --data DIR --glove FILE [--records FOLDER] [--seeds N]
                               [--columns NAME…] [--device DEVICE] [--write]

TASK is one of the names in DATA below; the default is all. DIR has the unpacked data sets, see the
paths there. FILE has GloVe's vectors. Every training is a record, a small JSON file in FOLDER
(default: benchmarks/records), and is not repeated if its record exists, so the benchmark can be run
in parts. --write stores the table of all records as benchmarks/results/tasks.md.

Columns:

    glove   static vectors alone
    token   GloVe and the biLM's token layer: as wide as ELMo, but without context
    elmo    GloVe and the learned mix of all layers
    tuned   the same with a biLM that learns too

Every column has the same network, settings and seeds. The dev set chooses the epoch, and the test
set is scored once, with the model of that epoch.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpu import HERE, processor, versions

from elmokit import Elmo
from elmokit.settings import merge
from elmokit.tasks import task_class

COLUMNS: dict[str, dict[str, Any]] = {
    "glove": {"input": {"layers": "none"}},
    "token": {"input": {"layers": "0"}},
    "elmo": {"input": {"layers": "mix"}},
    "tuned": {"input": {"layers": "mix"}, "tuning": {"enabled": True}},
}


@dataclass(frozen=True)
class Data:
    """A data set: a task, its files, and settings that differ from the task's own."""

    task: str
    train: str
    dev: str | None
    """None: a tenth of the training examples, chosen at random."""
    test: str
    columns: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    paper: str = ""
    """The ELMo paper's relative error reduction, where it has one."""


DATA = {
    "sst-5": Data("classify", "sentconv/stsa.fine.train", "sentconv/stsa.fine.dev",
                  "sentconv/stsa.fine.test", paper="6.8%"),
    "sst-2": Data("classify", "sentconv/stsa.binary.train", "sentconv/stsa.binary.dev",
                  "sentconv/stsa.binary.test"),
    "sst-2-full": Data("classify", "glue-small/SST-2/train_full.tsv", "glue-small/SST-2/dev.tsv",
                       "glue-small/SST-2/test-labeled.tsv",
                       settings={"training": {"epochs": 4, "batch_size": 64}}),
    "imdb": Data("classify", "imdb.train.tsv", None, "imdb.test.tsv",
                 {"label": "1", "text": "3"}, {"training": {"epochs": 4}}),
    "chnsenticorp": Data("classify", "chnsenticorp/train.tsv", "chnsenticorp/dev.tsv",
                         "chnsenticorp/test.tsv"),
    "trec": Data("classify", "sentconv/TREC.train.all", None, "sentconv/TREC.test.all"),
    "ner": Data("ner", "uner-ewt/en_ewt-ud-train.iob2", "uner-ewt/en_ewt-ud-dev.iob2",
                "uner-ewt/en_ewt-ud-test.iob2", paper="21%"),
    "resume": Data("ner", "resume-ner/train.char.bmes", "resume-ner/dev.char.bmes",
                   "resume-ner/test.char.bmes"),
    "pos": Data("pos", "ud-ewt/en_ewt-ud-train.conllu", "ud-ewt/en_ewt-ud-dev.conllu",
                "ud-ewt/en_ewt-ud-test.conllu"),
    "semeval-8": Data("relation", "semeval2010-8/SemEval2010_task8_training/TRAIN_FILE.TXT", None,
                      "semeval2010-8/SemEval2010_task8_testing_keys/TEST_FILE_FULL.TXT"),
    "sts-b": Data("similarity", "sts-b/sts-train.csv", "sts-b/sts-dev.csv", "sts-b/sts-test.csv"),
    "sick-r": Data("similarity", "sick2014/SICK_train.txt", "sick2014/SICK_trial.txt",
                   "sick2014/SICK_test_annotated.txt"),
}  # fmt: skip
CHINESE = ("chnsenticorp", "resume")
"""Data sets for the Chinese model. GloVe is English, so they have no column glove."""


def main() -> None:
    """Run what has no record yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(DATA))
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--glove", type=Path, required=True, help="file of GloVe's vectors")
    parser.add_argument("--records", type=Path, default=HERE / "records")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--columns", nargs="*", default=["glove", "token", "elmo"])
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    if unknown := {*arguments.tasks} - {*DATA}:
        parser.error(f"unknown task {', '.join(sorted(unknown))}; choose from {', '.join(DATA)}")
    if unknown := {*arguments.columns} - {*COLUMNS}:
        parser.error(f"unknown column {', '.join(sorted(unknown))}")
    models: dict[str, Elmo] = {}
    for name in arguments.tasks or DATA:
        model = "zh" if name in CHINESE else "en"
        for seed in range(arguments.seeds):  # all columns of a seed before the next seed
            for column in arguments.columns:
                if column == "glove" and name in CHINESE:
                    continue
                path = arguments.records / name / f"{column}-{seed}.json"
                if path.exists():
                    continue
                if model not in models:
                    models[model] = Elmo.load(model, device=arguments.device)
                print(f"{name}, {column}, seed {seed}", flush=True)
                found = measure(name, column, seed, models[model], arguments.data, arguments.glove)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
                print(f"  test {found['measure']} {found['test']:.2f}, {found['seconds']:.0f} s")
    text = "\n".join(report(arguments.records)) + "\n"
    print("\n" + text)
    if arguments.write:
        (HERE / "results" / "tasks.md").write_text(text, encoding="utf-8")


def measure(
    name: str, column: str, seed: int, elmo: Elmo, folder: Path, glove: Path
) -> dict[str, Any]:
    """Train a model once, and return its scores."""
    data = DATA[name]
    kind = task_class(data.task)
    changes = merge(merge(data.settings, COLUMNS[column]), {"training": {"seed": seed}})
    if name not in CHINESE:
        changes = merge(changes, {"input": {"vectors": str(glove)}})
    settings = kind.defaults.changed(changes)
    train = kind.read(folder / data.train, data.columns)
    if data.dev is None:
        train, dev = split(train)
    else:
        dev = kind.read(folder / data.dev, data.columns)
    started = time.monotonic()
    task = kind.train(train, dev, elmo=elmo, settings=settings, say=lambda line: print("  " + line))
    seconds = time.monotonic() - started
    scores = task.evaluate(folder / data.test, data.columns)
    return {
        "measure": scores.name,
        "test": scores.value,
        "others": dict(scores.others),
        "dev": task.about["dev"]["value"],
        "epoch": task.about["epoch"],
        "mixes": task.about["mixes"],
        "seconds": seconds,
        "machine": f"{versions()}, {elmo.device}",
    }


def split(examples: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return examples without a random tenth of them, and that tenth; the same for all seeds."""
    order = list(examples)
    random.Random(0).shuffle(order)
    n = len(order) // 10
    return order[n:], order[:n]


def report(records: Path) -> list[str]:
    """Return the table of all records."""
    lines = [
        f"{versions()}, {processor()}, {datetime.date.today()}. Mean ± standard deviation of the "
        "test score over seeds. Error reduction: by how much ELMo lowers 100 − score.",
        "",
        "| | measure | seeds | GloVe | + token layer | + ELMo | + tuned ELMo | gain over GloVe "
        "(error reduction) | gain over token layer | paper's error reduction | layer weights, γ |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, data in DATA.items():
        found = {column: _records(records / name, column) for column in COLUMNS}
        if not any(found.values()):
            continue
        some = next(iter(next(some for some in found.values() if some).values()))
        cells = [_cell(found[column]) for column in COLUMNS]
        weights = _weights(found["elmo"])
        lines.append(
            f"| {name} | {some['measure']} | {len(found['elmo'])} | {' | '.join(cells)} | "
            f"{_gain(found['elmo'], found['glove'], True)} | "
            f"{_gain(found['elmo'], found['token'], False)} | {data.paper} | {weights} |"
        )
    return lines


def _records(folder: Path, column: str) -> dict[int, dict[str, Any]]:
    """Records of a column by seed."""
    return {
        int(path.stem.rpartition("-")[2]): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob(f"{column}-*.json"))
    }


def _cell(found: dict[int, dict[str, Any]]) -> str:
    values = [record["test"] for record in found.values()]
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def _gain(
    better: dict[int, dict[str, Any]], base: dict[int, dict[str, Any]], reduction: bool
) -> str:
    """Return the mean gain over paired seeds, its standard error, and the error reduction."""
    seeds = sorted(better.keys() & base.keys())
    if not seeds:
        return ""
    gains = [better[s]["test"] - base[s]["test"] for s in seeds]
    said = f"{statistics.mean(gains):+.1f}"
    if len(gains) > 1:
        said += f" ± {statistics.stdev(gains) / len(gains) ** 0.5:.1f}"
    errors = 100 - statistics.mean(base[s]["test"] for s in seeds)
    return f"{said} ({statistics.mean(gains) / errors:.0%})" if reduction and errors else said


def _weights(found: dict[int, dict[str, Any]]) -> str:
    mixes = [record["mixes"].get("input") for record in found.values()]
    if not mixes or None in mixes:
        return ""
    return " / ".join(f"{statistics.mean(column):.2f}" for column in zip(*mixes, strict=True))


if __name__ == "__main__":
    main()
