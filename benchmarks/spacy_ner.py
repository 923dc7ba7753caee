"""Named entities in spaCy: ELMo as tok2vec against spaCy's own CNN, under the same conditions.

    python benchmarks/spacy_ner.py uner-ewt [--sentences 1500] [--seeds 2] [--write]

The folder has the files en_ewt-ud-{train,dev,test}.iob2 of UNER English-EWT. The first sentences of
train and dev are used, and all of test. Every step is a command of spaCy: init
fill-config, train and evaluate. The two configs are benchmarks/spacy_ner.cfg and the same with
spacy.HashEmbedCNN.v2 in [components.tok2vec.model]. --write stores the table as
benchmarks/results/integrations-spacy.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import spacy
from cpu import HERE, processor, versions
from spacy.tokens import Doc, DocBin

CONFIG = HERE / "spacy_ner.cfg"
CNN = """[components.tok2vec.model]
@architectures = "spacy.HashEmbedCNN.v2"
width = 96
depth = 4
embed_size = 2000
window_size = 1
maxout_pieces = 3
subword_features = true
pretrained_vectors = null

"""
NOTES = """
`python benchmarks/spacy_ner.py uner-ewt --write`

Twelve epochs with the config `benchmarks/spacy_ner.cfg`. `model-best` is the pipeline with the
highest F1 on dev; its size is without the bundled biLM, which is part of ElmoKit. `HashEmbedCNN`
starts from random weights, ELMo has a biLM that was pretrained on other text. Entities other than
PER, LOC and ORG occur in train only and count as none.
"""
TYPES = ("PER", "LOC", "ORG")
"""What dev and test have; the few other tags of the training file become O."""


def main() -> None:
    """Train and evaluate both, print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=1500)
    parser.add_argument("--dev-sentences", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="keep the configs and models in this folder")
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or Path(temporary)
        folder.mkdir(exist_ok=True)
        n_tokens = {}
        used = {"train": arguments.sentences, "dev": arguments.dev_sentences, "test": None}
        for part, n in used.items():
            sentences = read(arguments.folder / f"en_ewt-ud-{part}.iob2")[:n]
            n_tokens[part] = (
                f"{part} {len(sentences):,} sentences, {sum(map(len, sentences)):,} tokens"
            )
            write_docs(sentences, folder / f"{part}.spacy")
        table = [
            f"{versions()}, spaCy {spacy.__version__}, {processor()}, "
            f"{os.cpu_count()} cores, 1 thread, {datetime.date.today()}. "
            "UNER English-EWT (CC BY-SA 4.0): "
            + "; ".join(n_tokens.values())
            + f". Means over {arguments.seeds} seeds, with the lowest and the highest F1. "
            "CPU seconds are user time of `spacy train`, with its evaluations on dev.",
            "",
            "| tok2vec | dev F1 | test F1 | precision | recall | CPU seconds | model-best |",
            "|---|---|---|---|---|---|---|",
        ]
        for name in ("elmokit.Elmo.v1", "spacy.HashEmbedCNN.v2"):
            runs = [run(name, seed, folder) for seed in range(arguments.seeds)]
            table.append(row(name, runs))
            print(table[-1], flush=True)
    print("\n".join(table))
    if arguments.write:
        text = "\n".join(table) + "\n" + NOTES
        (HERE / "results/integrations-spacy.md").write_text(text, encoding="utf-8")


def read(path: Path) -> list[list[tuple[str, str]]]:
    """The (word, tag) pairs of each sentence of a UNER file."""
    found: list[list[tuple[str, str]]] = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        if rows:
            found.append([(row[1], row[2] if row[2][2:] in TYPES else "O") for row in rows])
    return found


def write_docs(sentences: list[list[tuple[str, str]]], path: Path) -> None:
    """One document per sentence, in spaCy's format."""
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, [w for w, _ in s], ents=[tag for _, tag in s]) for s in sentences]
    DocBin(docs=docs).to_disk(path)


def run(name: str, seed: int, folder: Path) -> dict[str, float]:
    """Train one pipeline and score it on dev and test."""
    text = CONFIG.read_text(encoding="utf-8")
    start, end = text.index("[components.tok2vec.model]"), text.index("[components.ner]")
    text = text if name.startswith("elmokit") else text[:start] + CNN + text[end:]
    kind = name.split(".")[1]
    (folder / f"{kind}.base.cfg").write_text(text, encoding="utf-8")
    command(folder, "init", "fill-config", f"{kind}.base.cfg", f"{kind}.cfg")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    out = f"{kind}-{seed}"
    command(folder, "train", f"{kind}.cfg", "--output", out, "--training.seed", str(seed))
    scores = {"seconds": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before}
    best = folder / out / "model-best"
    for part in ("dev", "test"):
        metrics = f"{out}/{part}.json"
        command(folder, "evaluate", str(best), f"{part}.spacy", "--output", metrics)
        found = json.loads((folder / metrics).read_text())
        scores |= {f"{part} {key}": 100 * found[f"ents_{key}"] for key in "fpr"}
    files = [path for path in best.rglob("*") if path.is_file()]
    return scores | {"megabytes": sum(path.stat().st_size for path in files) / 1e6}


def command(folder: Path, *words: str) -> None:
    """Run a command of spaCy with one thread; what it prints is shown only if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "spacy", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    if words[0] == "train":
        (folder / "train.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def row(name: str, runs: list[dict[str, float]]) -> str:
    """A line of the table."""

    def mean(key: str) -> float:
        return statistics.mean(run[key] for run in runs)

    def f1(part: str) -> str:
        values = [run[f"{part} f"] for run in runs]
        return f"{mean(f'{part} f'):.1f} ({min(values):.1f}–{max(values):.1f})"

    return (
        f"| `{name}` | {f1('dev')} | {f1('test')} | {mean('test p'):.1f} | {mean('test r'):.1f} | "
        f"{mean('seconds'):.0f} | {mean('megabytes'):.1f} MB |"
    )


if __name__ == "__main__":
    main()
