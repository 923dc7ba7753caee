"""Names, titles and other entities in Chinese résumés, found by a linear probe of each character.

Used by zh.py. Softmax regression predicts the tag of every character (BMES: beginning, middle or
end of an entity, or a single character) from the vector of its token, from the character itself,
and from its place in the token. Of all sequences of tags with complete entities, the most probable
one is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from softmax_regression import Features, sparse_parts, train
from torch import Tensor

from elmokit import Elmo
from elmokit.analysis.probes.linear import standardise
from elmokit.io.conll import TaggedWords, read_conll
from elmokit.io.progress import DelayedProgress

PENALTIES = [10.0**k for k in range(-4, -8, -1)]  # weak ones, because many tags are rare
Floats = npt.NDArray[np.float32]
Entity = tuple[int, int, str]  # start, end, type


@dataclass(frozen=True)
class _Part:
    """The N characters of a file, with their features."""

    sentences: list[TaggedWords]
    vectors: Tensor
    """Vectors (T, K, D) of all tokens."""
    rows: Tensor
    """The token of each character (N,)."""
    hints: list[dict[str, float]]
    """The one-hot features of each character: itself, and its place in its token."""
    tokens: list[str]
    """The token of each character, as text."""


def entities(elmo: Elmo, folder: Path, layers: Mapping[str, slice]) -> dict[str, float]:
    """Test F1 in per cent of a baseline and of each choice of layers.

    The baseline has a one-hot vector of the token instead of the model's vector.

    Args:
        elmo: The model, whose tokenizer also splits the text.
        folder: Folder with the files train.char.bmes, dev.char.bmes and test.char.bmes.
        layers: Choices of layers by name.
    """
    parts = [_read(elmo, folder / f"{part}.char.bmes") for part in ("train", "dev", "test")]
    standardise(*(part.vectors for part in parts))
    known = [str(tag) for sentence in parts[0].sentences for tag in sentence.tags]
    tags = sorted(set(known))
    labels = torch.tensor([tags.index(tag) for tag in known])
    dev, test = parts[1].sentences, parts[2].sentences

    def test_f1(features: Sequence[Features], what: str) -> float:
        weights = train(
            features[0],
            labels,
            len(tags),
            lambda weights: f1(dev, features[1].scores(weights), tags),
            what,
            PENALTIES,
        )
        return f1(test, features[2].scores(weights), tags)

    named = [
        [hints | {f"token {t}": 1.0} for hints, t in zip(part.hints, part.tokens, strict=True)]
        for part in parts
    ]
    found = {
        "dictionary": test_f1([Features(sparse=some) for some in sparse_parts(named)], "dictionary")
    }
    sparse = sparse_parts([part.hints for part in parts])
    for name, choice in layers.items():
        features = [
            Features(part.vectors[:, choice].flatten(1).float(), some, part.rows)
            for part, some in zip(parts, sparse, strict=True)
        ]
        found[name] = test_f1(features, name)
    return found


def _read(elmo: Elmo, path: Path) -> _Part:
    sentences = read_conll(path, column="2")
    tokens, rows, hints, n_tokens = [], [], [], 0
    split = []
    for sentence in sentences:
        text = "".join(sentence.words)
        spans = elmo.tokenizer.spans(text)
        split.append([text[start:end] for start, end in spans])
        for row, (start, end) in enumerate(spans, n_tokens):
            for i in range(start, end):
                place = _place(i - start, end - start)
                hints.append({f"character {text[i]}": 1.0, f"place {place}": 1.0})
                rows.append(row)
                tokens.append(text[start:end])
        n_tokens += len(spans)
    vectors = np.empty((n_tokens, elmo.n_layers, elmo.dim), np.float16)
    row = 0
    with DelayedProgress(f"embedding {path.name}", len(split), "sentences") as bar:
        for found in elmo.stream(split, "all", dtype=np.float16):
            vectors[row : row + found.shape[1]] = found.transpose(1, 0, 2)
            row += found.shape[1]
            bar.advance(1)
    return _Part(sentences, torch.from_numpy(vectors), torch.tensor(rows), hints, tokens)


def _place(i: int, length: int) -> str:
    if length == 1:
        return "single"
    return "begin" if i == 0 else "end" if i == length - 1 else "middle"


def f1(sentences: Sequence[TaggedWords], scores: Tensor, tags: Sequence[str]) -> float:
    """F1 in per cent of the entities in the best tags, by the scores (N, C) of all characters."""
    legal = np.array([[may_follow(a, b) for b in tags] for a in tags])
    first = np.array([may_follow("O", tag) for tag in tags])
    last = np.array([may_follow(tag, "O") for tag in tags])
    logs = torch.log_softmax(scores, 1).numpy()
    row = n_right = n_found = n_true = 0
    for sentence in sentences:
        n = len(sentence.words)
        best = best_path(logs[row : row + n], legal, first, last)
        found = spans([tags[k] for k in best])
        true = spans([str(tag) for tag in sentence.tags])
        n_right += len(found & true)
        n_found += len(found)
        n_true += len(true)
        row += n
    return 100 * 2 * n_right / (n_found + n_true)


def may_follow(tag: str, following: str) -> bool:
    """Return whether one BMES tag may follow another."""
    if tag[0] in "BM":
        return following[0] in "ME" and following[1:] == tag[1:]
    return following[0] in "OBS"


def best_path(
    scores: Floats,
    legal: npt.NDArray[np.bool_],
    first: npt.NDArray[np.bool_],
    last: npt.NDArray[np.bool_],
) -> list[int]:
    """Viterbi's algorithm: the legal sequence of tags with the largest sum of scores.

    Args:
        scores: Scores (T, C).
        legal: Whether tag b may follow tag a (C, C), at [a, b].
        first: Whether a sentence may start with a tag (C,).
        last: Whether a sentence may end with a tag (C,).
    """
    steps = np.where(legal, 0, -np.inf)
    total = scores[0] + np.where(first, 0, -np.inf)
    before = []
    for row in scores[1:]:
        ways = total[:, None] + steps
        before.append(ways.argmax(0))
        total = ways.max(0) + row
    path = [int((total + np.where(last, 0, -np.inf)).argmax())]
    for origin in reversed(before):
        path.append(int(origin[path[-1]]))
    return path[::-1]


def spans(tags: Sequence[str]) -> set[Entity]:
    """The entities in BMES tags."""
    found, start = set(), 0
    for i, tag in enumerate(tags):
        if tag[0] in "BS":
            start = i
        if tag[0] in "ES":
            found.add((start, i + 1, tag[2:]))
    return found
