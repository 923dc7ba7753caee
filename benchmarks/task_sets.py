"""The data sets of benchmarks/tasks.py, and the columns of its table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

COLUMNS: dict[str, dict[str, Any]] = {
    "glove": {"input": {"layers": "none"}},
    "token": {"input": {"layers": "0"}},
    "elmo": {"input": {"layers": "mix"}},
    "tuned": {"input": {"layers": "mix"}, "tuning": {"enabled": True}},
    "mix": {"input": {"vectors": "none", "layers": "mix"}},
    "token+mix": {"input": {"vectors": "token", "layers": "mix"}},
    "glove-words": {"input": {"layers": "none"}, "model": {"character_filters": 0}},
    "elmo-words": {"input": {"layers": "mix"}, "model": {"character_filters": 0}},
    "last-layer": {"input": {"layers": "top", "at": "input"}},
    "lambda-1": {"input": {"layers": "mix", "at": "input", "mix_l2": 1.0}},
    "lambda-0.001": {"input": {"layers": "mix", "at": "input", "mix_l2": 0.001}},
    "output": {"input": {"layers": "mix", "at": "output", "mix_l2": 0.001}},
    "both": {"input": {"layers": "mix", "at": "both", "mix_l2": 0.001}},
}
"""Settings of each column. The column tf-idf has a model of its own."""
TF_IDF = "tf-idf"
TABLES = {
    "Without GloVe": {"mix": "ELMo", "token+mix": "token layer + ELMo"},
    "Without a character CNN of the task": {"glove-words": "GloVe", "elmo-words": "+ ELMo"},
    "Which layers (Table 2 of the paper)": {
        "glove": "GloVe",
        "last-layer": "+ last layer",
        "lambda-1": "+ all layers, λ = 1",
        "lambda-0.001": "+ all layers, λ = 0.001",
    },
    "Where ELMo enters (Table 3 of the paper)": {
        "lambda-0.001": "input",
        "both": "input and output",
        "output": "output",
    },
}
"""Columns of the smaller tables, with their headings."""


@dataclass(frozen=True)
class Data:
    """A data set: a task, its files, and settings that differ from the task's own."""

    task: str
    train: str
    dev: str | None
    """None: a tenth of the training examples, chosen at random."""
    test: str | None
    """None: every tenth example of the training file, which does not train."""
    columns: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: int = 3
    model: str = "en"
    """The biLM. GloVe is English, so the Chinese one has no static vectors beside it."""
    also: dict[str, str] = field(default_factory=dict)
    """More files to test on, by name; their scores go into the records."""
    most: int | None = None
    """At most so many training and test examples, chosen at random, for a CPU. Without a dev file,
    the dev examples are among them."""
    paper: str = ""
    """The ELMo paper's relative error reduction, where it has one."""


_STS = {"first": "6", "second": "7", "score": "5"}
_TWICE = {"input": {"at": "both"}}  # better on the dev sentences of sst-5: benchmarks/LOG.md

DATA = {
    "sst-5": Data("classify", "sentconv/stsa.fine.train", "sentconv/stsa.fine.dev",
                  "sentconv/stsa.fine.test", settings=_TWICE, seeds=5, paper="6.8%"),
    "sst-5-phrases": Data("classify", "sst-trees/train.tsv", "sst-trees/dev.tsv",
                          "sst-trees/test.tsv",
                          settings=_TWICE | {"training": {"epochs": 4, "batch_size": 64}},
                          paper="6.8%"),
    "sst-2": Data("classify", "sentconv/stsa.binary.train", "sentconv/stsa.binary.dev",
                  "sentconv/stsa.binary.test", settings=_TWICE),
    "sst-2-full": Data("classify", "glue-small/SST-2/train_full.tsv", "glue-small/SST-2/dev.tsv",
                       "glue-small/SST-2/test-labeled.tsv",
                       settings=_TWICE | {"training": {"epochs": 4, "batch_size": 64}}),
    "imdb": Data("classify", "imdb/train.tsv", None, "imdb/test.tsv",
                 {"label": "1", "text": "3"}, _TWICE | {"training": {"epochs": 4}}),
    "imdb-2000": Data("classify", "imdb/train.tsv", None, "imdb/test.tsv",
                      {"label": "1", "text": "3"},
                      _TWICE | {"training": {"epochs": 8, "batch_size": 8}}, most=2000),
    "trec": Data("classify", "sentconv/TREC.train.all", None, "sentconv/TREC.test.all"),
    "subj": Data("classify", "sentconv/subj.all", None, None),
    "chnsenticorp": Data("classify", "chnsenticorp/train.tsv", "chnsenticorp/dev.tsv",
                         "chnsenticorp/test.tsv", model="zh"),
    "ner": Data("ner", "uner-ewt/en_ewt-ud-train.iob2", "uner-ewt/en_ewt-ud-dev.iob2",
                "uner-ewt/en_ewt-ud-test.iob2", seeds=5, paper="21%"),
    "resume": Data("ner", "resume-ner/train.char.bmes", "resume-ner/dev.char.bmes",
                   "resume-ner/test.char.bmes", model="zh"),
    "pos": Data("pos", "ud-ewt/en_ewt-ud-train.conllu", "ud-ewt/en_ewt-ud-dev.conllu",
                "ud-ewt/en_ewt-ud-test.conllu"),
    "semeval-8": Data("relation", "semeval2010-8/SemEval2010_task8_training/TRAIN_FILE.TXT", None,
                      "semeval2010-8/SemEval2010_task8_testing_keys/TEST_FILE_FULL.TXT"),
    "sts-b": Data("similarity", "sts-b/sts-train.csv", "sts-b/sts-dev.csv", "sts-b/sts-test.csv",
                  _STS),
    "sick-r": Data("similarity", "sick2014/SICK_train.txt", "sick2014/SICK_trial.txt",
                   "sick2014/SICK_test_annotated.txt"),
    "lingnli": Data("nli", "nli/lingnli.train.jsonl", "nli/lingnli.val.jsonl", "nli/snli.test.tsv",
                    settings={"training": {"epochs": 6, "batch_size": 64}},
                    also={"LingNLI val": "nli/lingnli.val.jsonl", "SNLI dev": "nli/snli.dev.tsv",
                          "MultiNLI dev": "nli/mnli.dev.jsonl"}),
    "sick-e": Data("nli", "sick2014/SICK_train.txt", "sick2014/SICK_trial.txt",
                   "sick2014/SICK_test_annotated.txt"),
    "ocnli": Data("nli", "ocnli/train.10k.json", None, "ocnli/dev.json", model="zh"),
    "srl": Data("srl", "propbank-ewt/conll/en_ewt-srl-train.conll",
                "propbank-ewt/conll/en_ewt-srl-dev.conll",
                "propbank-ewt/conll/en_ewt-srl-test.conll", paper="17.2%"),
    "srl-3000": Data("srl", "propbank-ewt/conll/en_ewt-srl-train.conll",
                     "propbank-ewt/conll/en_ewt-srl-dev.conll",
                     "propbank-ewt/conll/en_ewt-srl-test.conll", most=3000),
    "squad": Data("qa", "squad1.1/train-v1.1.rebuilt.json", None,
                  "squad1.1/dev-v1.1.rebuilt.json",
                  settings={"model": {"occurrences": "all"}}, paper="24.9%"),
    "squad-10000": Data("qa", "squad1.1/train-v1.1.rebuilt.json", None,
                        "squad1.1/dev-v1.1.rebuilt.json",
                        settings={"model": {"occurrences": "all"}}, most=10_000),
    "litbank": Data("coref", "litbank/train.conll", "litbank/dev.conll", "litbank/test.conll",
                    paper="9.8%"),
}  # fmt: skip
"""Data sets by name. The paths are those that benchmarks/task_files.py makes. The models of lingnli
are tested on SNLI."""
