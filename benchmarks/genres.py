"""Other text than Wikipedia: perplexity by genre, classifiers of questions, reviews and opinions.

Used by en.py. Each of seven sets of sentences gets a linear classifier on mean vectors, with the
same settings for every model and set:

- The sentences are tokenised; tokens are split at white space. The features of a sentence are the
  means over its tokens of all layers, side by side, each dimension standardised.
- The classifier is ElmoKit's linear probe. The weight decay is the one of DECAYS that is best on
  development sentences. Then the probe is trained on all training sentences, the development
  sentences among them, until it is no longer getting better on the latter.
- SST has development and test sentences. TREC has test sentences, and a tenth of the training
  sentences is used for development. The other sets are tested in ten folds; another tenth of the
  sentences is used for development, and the weight decay is chosen in the first fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmokit import Elmo
from elmokit.analysis.probes.linear import LinearProbe, ProbeSettings, standardise, train_probe
from elmokit.analysis.texts import sample_sentences
from elmokit.io.lines import find_files

SETS = {
    "TREC": ("TREC.train.all", "TREC.test.all"),
    "CR": ("custrev.all",),
    "SUBJ": ("subj.all",),
    "MPQA": ("mpqa.all",),
    "SST-2": ("stsa.binary.train", "stsa.binary.dev", "stsa.binary.test"),
    "MR": ("rt-polarity.all",),
    "SST-5": ("stsa.fine.train", "stsa.fine.dev", "stsa.fine.test"),
}
"""Files of a set: all sentences; training and test; or training, development and test."""
DECAYS = (3.0, 10.0, 30.0)
FOLDS = 10


def perplexities(elmo: Elmo, folder: Path, most: int) -> dict[str, str]:
    """Return the perplexity of each file of a folder, on a sample of at most so many tokens."""
    found, losses = {}, []
    for path in find_files([folder]):
        text = elmo.perplexity(sample_sentences(elmo, path, most))
        losses.append(math.log(text.mean))
        genre = f"{path.name.split('.')[0]}, {text.n_tokens:,} tokens"
        found[genre] = f"{text.mean:.1f} ({text.unknown_rate:.1%} unknown)"
    found["geometric mean"] = f"{math.exp(sum(losses) / len(losses)):.1f}"
    return found


def accuracies(elmo: Elmo, folder: Path) -> dict[str, str]:
    """Return the accuracy in per cent on each set of sentences in a folder."""
    sets = {name: [read(folder / file) for file in files] for name, files in SETS.items()}
    rows: dict[str, int] = {}  # some sentences are in two sets
    for text in (text for parts in sets.values() for part in parts for _, text in part):
        rows.setdefault(text, len(rows))
    tokens = [text.split() for text in rows]
    vectors = torch.from_numpy(elmo.encode_sentences(tokens, "all", dtype=np.float16))
    found = {}
    for name, parts in sets.items():
        labels = torch.tensor([label for part in parts for label, _ in part])
        chosen = torch.tensor([rows[text] for part in parts for _, text in part])
        found[name] = f"{accuracy(vectors[chosen], labels, [len(part) for part in parts]):.1f}"
    return found


def read(path: Path) -> list[tuple[int, str]]:
    """Labels and texts of a file, one of each on a line."""
    # not splitlines, which also splits at characters that occur within sentences
    lines = filter(str.strip, path.read_bytes().decode("utf-8", "replace").split("\n"))
    pairs = (line.partition(" ") for line in lines)
    return [(int(label), text.strip()) for label, _, text in pairs]


def accuracy(vectors: Tensor, labels: Tensor, sizes: Sequence[int]) -> float:
    """Return the accuracy in per cent on the test sentences of a set, or over ten folds.

    Args:
        vectors: (N, K, D).
        labels: (N,).
        sizes: Sentences in each file of the set.
    """
    decay, n_right, n = None, 0, 0
    for development, asked in splits(sizes):
        known, unseen = vectors[~asked].float(), vectors[asked].float()
        standardise(known, unseen)
        tags, held_out = labels[~asked], development[~asked]
        decay = decay or best_decay(known, tags, held_out)
        # once more with the development sentences, which also decide when to stop
        order = torch.cat([torch.arange(len(known)), held_out.nonzero()[:, 0]])
        again = torch.arange(len(order)) >= len(known)
        probe = train(known[order], tags[order], again, decay)
        n_right += int((probe.predict(unseen) == labels[asked]).sum())
        n += len(unseen)
    return 100 * n_right / n


def splits(sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Return which sentences (N,) are for development and which for testing, in each experiment.

    Args:
        sizes: Sentences in each file of a set.
    """
    file = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    shuffled = torch.randperm(len(file), generator=torch.Generator().manual_seed(0))
    fold = shuffled % FOLDS
    if len(sizes) == 3:
        return [(file == 1, file == 2)]
    if len(sizes) == 2:
        return [((file == 0) & (fold == 0), file == 1)]
    return [(fold == (k + 1) % FOLDS, fold == k) for k in range(FOLDS)]


def best_decay(vectors: Tensor, labels: Tensor, development: Tensor) -> float:
    """Return the weight decay that is most accurate on development sentences."""

    def score(decay: float) -> float:
        probe = train(vectors, labels, development, decay)
        return probe.accuracy(vectors[development], labels[development])

    return max(DECAYS, key=score)


def train(vectors: Tensor, labels: Tensor, held_out: Tensor, decay: float) -> LinearProbe:
    """Train a probe with a weight decay, until it is no longer getting better on held-out text."""
    settings = ProbeSettings(weight_decay=decay)
    return train_probe(vectors, labels, held_out, int(labels.max()) + 1, settings=settings)
