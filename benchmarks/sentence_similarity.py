"""ELMo in sentence-transformers on STS-B: before and after training, as a table in Markdown.

    python benchmarks/sentence_similarity.py FOLDER [PAIRS]

FOLDER contains sts-train.csv and sts-test.csv of STS-B; PAIRS is the number of pairs to train on
(default: 960 of 5,749, shuffled). Needs the extra sentence-transformers, and the packages datasets
and accelerate for its trainer. Takes about five minutes of one CPU core.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import datasets
import sentence_transformers
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CoSENTLoss
from transformers import PrinterCallback

from elmokit import Elmo, __version__
from elmokit.integrations.sentence_transformers import load


def read_pairs(path: Path) -> Dataset:
    """Both sentences and their score from 0 to 1, of each pair."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return Dataset.from_dict(
        {
            "sentence1": [row[5] for row in rows],
            "sentence2": [row[6] for row in rows],
            "score": [float(row[4]) / 5 for row in rows],
        }
    )


def spearman(model: SentenceTransformer, pairs: Dataset) -> float:
    """Spearman correlation of cosine similarities and scores, in percent."""
    evaluator = EmbeddingSimilarityEvaluator(
        list(pairs["sentence1"]), list(pairs["sentence2"]), list(pairs["score"]), batch_size=128
    )
    return 100 * float(evaluator(model)["spearman_cosine"])


def train(model: SentenceTransformer, pairs: Dataset) -> None:
    """One epoch with CoSENT; the layer weights learn faster than the biLM."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=16,
            learning_rate=2e-4,
            learning_rate_mapping={"mixes": 0.05},
            warmup_steps=0.1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
            use_cpu=True,
            seed=1,
        )
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=pairs, loss=CoSENTLoss(model)
        )
        trainer.remove_callback(PrinterCallback)  # it would print into the table
        trainer.train()


def print_row(name: str, model: SentenceTransformer, test: Dataset, cost: float) -> None:
    """Print a row of the table."""
    print(f"| {name} | {spearman(model, test):.1f} | {cost:.0f} |", flush=True)


def main() -> None:
    """Print the table."""
    folder, n_pairs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 960
    torch.set_num_threads(1)
    all_pairs, test = read_pairs(folder / "sts-train.csv"), read_pairs(folder / "sts-test.csv")
    pairs = all_pairs.shuffle(1).select(range(n_pairs))
    print(
        f"ElmoKit {__version__}, sentence-transformers {sentence_transformers.__version__}, "
        f"datasets {datasets.__version__}, PyTorch {torch.__version__}, "
        f"{time.strftime('%Y-%m-%d')}\n"
    )
    print("| | Spearman, test | training, CPU seconds |\n|---|---|---|")
    print_row("mean of the layers, not trained", load("en", device="cpu"), test, 0)
    for name, trainable in (("layer weights", False), ("biLM and layer weights", True)):
        model = load("en", device="cpu", trainable=trainable)
        start = time.process_time()
        train(model, pairs)
        print_row(f"{name}, {n_pairs:,} pairs", model, test, time.process_time() - start)
    elmo = Elmo.load("en", device="cpu")
    model = load(elmo, device="cpu")
    texts = [*test["sentence1"]][:300]
    print("\n| 300 sentences of the test set, words cached | CPU seconds |\n|---|---|")
    for name, run in (
        ("`Elmo.encode_sentences`", lambda: elmo.encode_sentences(texts)),
        (
            "`SentenceTransformer.encode`, batch_size=256",
            lambda: model.encode(texts, batch_size=256),
        ),
        ("`SentenceTransformer.encode`, batch_size=32 (default)", lambda: model.encode(texts)),
    ):
        run()
        start = time.process_time()
        run()
        print(f"| {name} | {time.process_time() - start:.1f} |", flush=True)
    print(f"\n{time.process_time() / 60:.1f} CPU minutes in total.")


if __name__ == "__main__":
    main()
