"""Add a vector to every row of a data set of Hugging Face, and find similar rows with them.

    pip install 'elmokit[huggingface]' datasets
    python examples/datasets_map.py [MODEL]

MODEL is the biLM, a name, a folder or a repository on the Hub; the bundled English model if left
out. The data set is a file here; `load_dataset("user/name")` works the same way.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from datasets import Dataset, load_dataset

from elmokit import Elmo

elmo = Elmo.from_pretrained(*sys.argv[1:2])


def add_vectors(rows):
    """One vector per text of a batch; `map` writes them to disk, so memory stays small."""
    return {"vector": elmo.encode_sentences(rows["text"], layers="top", progress=False)}


with TemporaryDirectory() as cache:
    reviews = load_dataset(
        "csv",
        data_files=str(Path(__file__).parent / "data" / "reviews.train.tsv"),
        delimiter="\t",
        split="train",
        cache_dir=cache,
    )
    assert isinstance(reviews, Dataset)
    # a model cannot be hashed quickly, so the result gets a name of its own instead
    reviews = reviews.map(add_vectors, batched=True, batch_size=16, new_fingerprint="elmo-top")
    print(reviews)

    vectors = np.stack(reviews.with_format("numpy")["vector"])
    vectors -= vectors.mean(0)  # texts of one data set have much in common
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = (vectors @ vectors.T - 2 * np.eye(len(vectors))).argmax(1)
    for i in range(3):
        print(f"{reviews[i]['text']}\n    {reviews[int(nearest[i])]['text']}")
