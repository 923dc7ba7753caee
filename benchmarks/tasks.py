"""Task models on public data: static vectors against ELMo, several seeds each.

    python benchmarks/tasks.py [SET…] --data DIR --glove FILE [--records FOLDER] [--seeds N]
                               [--columns NAME…] [--shares PERCENT…] [--jobs N] [--device DEVICE]
                               [--write]

SET is one of the names in benchmarks/task_sets.py; the default is all. DIR has the data sets as
benchmarks/task_files.py arranges them. FILE has GloVe's vectors. Every training is a record, a
small JSON file in FOLDER (default: benchmarks/records), and is not repeated if its record exists
and was made of the same settings, files and biLM. So the benchmark can be run in parts. --jobs runs
several trainings at a time, on one GPU too. --shares trains on some per cent of the training
examples; up to 5%, in smaller batches and with more patience. --write stores the table of all
records as benchmarks/results/tasks.md and draws docs/pictures/task-layers.png and task-shares.png.
A dagger marks scores whose settings, data or biLM have changed since.

Columns:

    tf-idf  counts of words and pairs of words with logistic regression, for classification only
    glove   static vectors alone
    token   GloVe and the biLM's token layer: as wide as ELMo, but without context
    elmo    GloVe and the learned mix of all layers
    tuned   the same with a biLM that learns too

    mix  token+mix                          without GloVe: the mix alone, and with the token layer
    glove-words  elmo-words                 entities and tags without their own character CNN
    last-layer  lambda-1  lambda-0.001      which layers, and how freely their weights are learned
    lambda-0.001  output  both              where ELMo enters: at the input, the output, or both

All columns but the first have the same network and seeds, and the same settings but for what they
are about. The dev set chooses the epoch, and the test set is scored once, with the model of that
epoch. The columns of the last two lines are for Tables 2 and 3 of the ELMo paper, and for one seed:
--columns glove last-layer … --seeds 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from cpu import HERE, processor, versions
from task_sets import COLUMNS, DATA, TF_IDF, Data
from task_tables import draw_layers, draw_shares, record_path, records_of, report
from tf_idf import tf_idf_accuracy, with_pairs

from elmokit import Elmo
from elmokit.formats import bundled_path, read_model
from elmokit.io.atomic import write_text
from elmokit.settings import merge
from elmokit.tasks import task_class
from elmokit.tasks.frozen_layers import FrozenLayers
from elmokit.tasks.word_input import chosen_layers

MOST_BYTES = 16 << 30
"""Of ELMo's layers on disk, for each column of a set."""
FEW: dict[str, Any] = {"training": {"batch_size": 8, "patience": 15}}
"""For 5% of the examples or fewer: otherwise training would end after a few dozen steps."""
PICTURES = HERE.parent / "docs" / "pictures"
_KEPT: dict[tuple[str, tuple[int, ...]], FrozenLayers] = {}
"""ELMo's layers of one set; with the next set they go, as they are large."""


class Cell(NamedTuple):
    """One training."""

    name: str
    column: str
    seed: int
    share: int


class Places(NamedTuple):
    """Where data is, and where to run."""

    data: Path
    glove: Path
    device: str | None


def main() -> None:
    """Run what has no record yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(DATA))
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--glove", type=Path, required=True, help="file of GloVe's vectors")
    parser.add_argument("--records", type=Path, default=HERE / "records")
    parser.add_argument("--seeds", type=int, help="default: 5 for sst-5 and ner, 3 for the others")
    parser.add_argument("--columns", nargs="*", default=[TF_IDF, "glove", "token", "elmo"])
    parser.add_argument("--shares", nargs="*", type=int, default=[100], metavar="PERCENT")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="store the table and the pictures")
    arguments = parser.parse_args()
    if unknown := {*arguments.sets} - {*DATA}:
        parser.error(f"unknown set {', '.join(sorted(unknown))}; choose from {', '.join(DATA)}")
    if unknown := {*arguments.columns} - {*COLUMNS, TF_IDF}:
        parser.error(f"unknown column {', '.join(sorted(unknown))}")
    places = Places(arguments.data, arguments.glove, arguments.device)
    cells = list(_cells(arguments))
    missing = [cell for cell in cells if not _is_known(arguments.records, cell, places)]
    for cell, found in _measured(missing, places, arguments.jobs):
        path = record_path(arguments.records, *cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        found["made_of"] = _made_of(cell, places)
        write_text(path, json.dumps(found, indent=1) + "\n")
        print(
            f"{cell.name}, {cell.column}, seed {cell.seed}, {cell.share}%: {found['measure']} "
            f"{found['test']:.2f}, {found['seconds']:.0f} s",
            flush=True,
        )
    outdated = _outdated(arguments.records, places)
    text = "\n".join(report(arguments.records, places.glove.name, outdated)) + "\n"
    print("\n" + text)
    if arguments.write:
        write_text(HERE / "results" / "tasks.md", text)
        draw_layers(arguments.records, PICTURES / "task-layers.png")
        draw_shares(arguments.records, PICTURES / "task-shares.png")


def _cells(arguments: argparse.Namespace) -> Iterable[Cell]:
    """Yield all trainings, every column of a seed before the next seed."""
    for name in arguments.sets or DATA:
        data = DATA[name]
        for share in arguments.shares:
            for seed in range(arguments.seeds or data.seeds):
                for column in arguments.columns:
                    if _exists(data, column, seed):
                        yield Cell(name, column, seed, share)


def _exists(data: Data, column: str, seed: int) -> bool:
    """Whether a set has a column: its vectors and its settings, and another result by seed."""
    if column == TF_IDF:
        return data.task == "classify" and seed == 0  # the same for every seed
    changes = COLUMNS[column]
    if changes["input"]["layers"] == "none" and data.model != "en":  # GloVe is English
        return False
    own = task_class(data.task).defaults.to_dict()["model"]  # some have no character CNN
    return set(changes.get("model", {})) <= set(own)


def _measured(
    cells: Sequence[Cell], places: Places, jobs: int
) -> Iterable[tuple[Cell, dict[str, Any]]]:
    """Yield trainings with their scores, as they are done."""
    if jobs == 1:
        for cell in cells:
            yield cell, measure(cell, places)
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    context = multiprocessing.get_context("spawn")
    failed = []
    with ProcessPoolExecutor(jobs, context, torch.set_num_threads, (threads,)) as pool:
        waiting = {pool.submit(measure, cell, places): cell for cell in cells}
        for done in as_completed(waiting):
            if error := done.exception():  # the others go on
                failed.append(f"{waiting[done]}: {error}")
            else:
                yield waiting[done], done.result()
    if failed:
        sys.exit("\n".join(failed))


def measure(cell: Cell, places: Places) -> dict[str, Any]:
    """Train a model once, and return its scores."""
    data = DATA[cell.name]
    train, dev, test = parts(cell.name, places.data)
    train = train[: max(1, len(train) * cell.share // 100)]  # in random order: see parts
    elmo = _elmo(data.model, places.device)
    started = time.monotonic()
    if cell.column == TF_IDF:
        accuracy = _counted(elmo, [train, dev, test])
        return {
            "measure": "accuracy",
            "test": accuracy,
            "seconds": time.monotonic() - started,
            "machine": f"{versions()}, {processor()}",
        }
    kind = task_class(data.task)
    changes = _changes(cell)
    if _with_glove(cell):
        changes = merge(changes, {"input": {"vectors": str(places.glove)}})
    settings = kind.defaults.changed(changes)

    def say(line: str) -> None:
        print(f"{cell.name}, {cell.column}, seed {cell.seed}, {cell.share}%: {line}",
              file=sys.stderr, flush=True)  # fmt: skip

    numbers = chosen_layers(settings.input.layers, elmo.n_layers)
    frozen = bool(numbers) and not settings.tuning.enabled
    layers = _layers(cell.name, tuple(numbers), elmo) if frozen else None
    task = kind.train(
        train, dev, elmo=elmo, settings=settings, layers=layers, say=say, progress=False
    )
    seconds = time.monotonic() - started
    scores = task.evaluate(test, layers=layers, progress=False)
    also = {
        what: task.evaluate(places.data / file, data.columns, progress=False).value
        for what, file in data.also.items()
    }
    return {
        "measure": scores.name,
        "test": scores.value,
        "others": {**scores.others, **also},
        "dev": task.about["dev"]["value"],
        "epoch": task.about["epoch"],
        "mixes": task.about["mixes"],
        "seconds": seconds,
        "examples": len(train),
        "bilm": _checksum(data.model),
        "machine": f"{versions()}, {_device_name(elmo)}",
    }


def _with_glove(cell: Cell) -> bool:
    """Whether a training has GloVe's vectors: not in Chinese, nor where a column has others."""
    return DATA[cell.name].model == "en" and "vectors" not in _changes(cell).get("input", {})


def _with_elmo(column: str) -> bool:
    """Whether the biLM has a part in the scores of a column."""
    return column != TF_IDF and COLUMNS[column]["input"]["layers"] != "none"


def _device_name(elmo: Elmo) -> str:
    on_gpu = elmo.device.type == "cuda"
    return torch.cuda.get_device_name(elmo.device) if on_gpu else processor()


@cache
def _elmo(name: str, device: str | None) -> Elmo:
    return Elmo.load(name, device=device)


@cache
def _checksum(name: str) -> str:
    return read_model(bundled_path(name)).checksum()


def _is_known(folder: Path, cell: Cell, places: Places) -> bool:
    """Whether there is a record of a training, with today's settings, data and biLM."""
    path = record_path(folder, *cell)
    if not path.exists():
        return False
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("made_of") != _made_of(cell, places):
        return False
    return not _with_elmo(cell.column) or found["bilm"] == _checksum(DATA[cell.name].model)


def _outdated(folder: Path, places: Places) -> set[tuple[str, str]]:
    """Columns of sets with a record that a new run would replace."""
    found = set()
    for name, data in DATA.items():
        seeds = {column: records_of(folder, name, column) for column in (*COLUMNS, TF_IDF)}
        used = (data.train, data.dev, data.test, *data.also.values())
        files = [places.data / file for file in used if file]
        missing = [file for file in files if not file.exists()]
        if missing and any(seeds.values()):
            sys.exit(
                f"{name} has records, but {missing[0]} is missing, so nobody can tell whether they "
                "are outdated; arrange all archives with benchmarks/task_files.py"
            )
        for column, known in seeds.items():
            cells = (Cell(name, column, seed, 100) for seed in known)
            if not all(_is_known(folder, cell, places) for cell in cells):
                found.add((name, column))
    return found


def _made_of(cell: Cell, places: Places) -> str:
    """Identify settings and data of a training: a checksum of the settings and of the files."""
    data = DATA[cell.name]
    digest = hashlib.sha256(json.dumps(_changes(cell), sort_keys=True).encode())
    if cell.column != TF_IDF:
        own = task_class(data.task).defaults.to_dict()
        if _with_glove(cell):
            own["input"]["vectors"] = "none"  # GloVe takes their place
        if not _with_elmo(cell.column):  # what concerns ELMo alone changes nothing
            own["input"] = {name: own["input"][name] for name in ("vectors", "static_dropout")}
            del own["tuning"]
        digest.update(json.dumps(own, sort_keys=True).encode())
        digest.update(_file_sha256(places.glove) if _with_glove(cell) else b"")
    digest.update(repr((data.most, sorted(data.columns.items()))).encode())
    for file in (data.train, data.dev, data.test, *data.also.values()):
        digest.update(_file_sha256(places.data / file) if file else b"")
    return digest.hexdigest()[:16]


@cache
def _file_sha256(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _changes(cell: Cell) -> dict[str, Any]:
    """The settings of a training that are not its task's own."""
    own = merge(DATA[cell.name].settings, COLUMNS.get(cell.column, {}))
    if cell.share <= 5:
        own = merge(own, FEW)
    return merge(own, {"training": {"seed": cell.seed}})


def _layers(name: str, numbers: tuple[int, ...], elmo: Elmo) -> FrozenLayers:
    """What the trainings on the same layers have in common: those of all their sentences."""
    if any(before != name for before, _ in _KEPT):
        for layers in _KEPT.values():
            layers.close()
        _KEPT.clear()
    return _KEPT.setdefault((name, numbers), FrozenLayers(elmo, numbers, MOST_BYTES))


@cache
def parts(name: str, folder: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the training examples in random order, the dev and the test examples."""
    data = DATA[name]
    kind = task_class(data.task)

    def read(file: str) -> list[Any]:
        return kind.read(folder / file, data.columns)

    train = read(data.train)
    if data.test is None:
        test, train = train[::10], [e for i, e in enumerate(train) if i % 10]
    else:
        test = read(data.test)
    random.Random(0).shuffle(train)
    if data.most is not None:
        train = train[: data.most]
        test = random.Random(0).sample(test, min(data.most, len(test)))
    if data.dev is not None:
        return train, read(data.dev), test
    contexts = list(dict.fromkeys(map(_context, train)))
    chosen = set(contexts[: len(contexts) // 10])
    dev = [example for example in train if _context(example) in chosen]
    return [example for example in train if _context(example) not in chosen], dev, test


def _context(example: Any) -> str:
    """What examples may share, such as a passage: they are all for training, or all for dev."""
    for name in ("passage", "premise", "text"):
        if hasattr(example, name):
            return str(getattr(example, name))
    return repr(example)


def _counted(elmo: Elmo, examples: Sequence[Sequence[Any]]) -> float:
    """Test accuracy of counted words, split by the tokenizer of the biLM."""
    number = {label: i for i, label in enumerate(sorted({e.label for e in examples[0]}))}
    labels = [[number.get(e.label, -1) for e in part] for part in examples]
    terms = [
        [with_pairs([word.lower() for word in elmo.tokenize(e.text)]) for e in part]
        for part in examples
    ]
    return tf_idf_accuracy(terms, labels, TF_IDF)


if __name__ == "__main__":
    main()
