"""What a linear classifier finds in each layer, beside what it could merely learn by heart.

As in the paper's table 6: a softmax layer on the frozen vectors of one layer tells the tag of each
token. A probe may also just remember words; the control task of Hewitt and Liang (2019) shows how
much of that there is. There each word has a random tag, the same wherever it stands, which nothing
but memory can give. Selectivity is the accuracy less that of the control task.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.analysis.probes.conll import TaggedWords
from elmokit.analysis.probes.linear import ProbeSettings, standardise, train_probe
from elmokit.analysis.reports.report import Report, Value
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.progress import DelayedProgress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIX, ALL, LIST = "learned mix", "all side by side", "list of words"
"""Rows of the table beside the layers."""

_AT_ONCE = 512  # sentences
_HELD_OUT = 10  # one sentence of so many decides when to stop


@dataclass(frozen=True)
class ProbeScore:
    """Accuracies in per cent."""

    accuracy: float
    control: float
    """That of the control task."""

    @property
    def selectivity(self) -> float:
        """How much of the accuracy is more than memory."""
        return self.accuracy - self.control


@dataclass(frozen=True)
class ProbeResult:
    """What probes found."""

    layers: list[ProbeScore]
    """One a layer, the token layer first."""
    mix: ProbeScore
    """Of a mix of all layers with learned weights."""
    side_by_side: ProbeScore
    """Of all layers side by side, as one long vector."""
    word_list: ProbeScore
    """Of no vectors at all: a list of words with the tag each has most often."""
    shares: list[float]
    """How much of the mix each layer is, all being brought to variance 1."""
    tags: list[str]
    n_train: int
    """Tokens of the text to train on, a tenth of whose sentences decide when to stop."""
    n_dev: int
    """Tokens tested."""
    unseen: float
    """Share of those whose word is not in the text to train on."""


@dataclass(frozen=True)
class _Task:
    """Tags to be told: those of the text, or the control task's."""

    train: Tensor
    dev: Tensor


def probe(
    elmo: Elmo, train: Sequence[TaggedWords], dev: Sequence[TaggedWords], seed: int = 0
) -> ProbeResult:
    """Train and test a probe on every layer, on their mix, and on all of them side by side.

    Args:
        elmo: The model.
        train: Sentences to train on, at least two.
        dev: Sentences to test; they have no part in the training.
        seed: Of the sentences held out, the control task's tags and the order of tokens.
    """
    rng = np.random.default_rng(seed)
    held_out = _held_out(train, rng)
    (words, names), (dev_words, dev_names) = _tagged(train), _tagged(dev)
    if not dev_words:
        raise InputError("no word of the text to test has a tag; give one with tags")
    tags = sorted(set(names))
    numbers = {tag: number for number, tag in enumerate(tags)}
    known = torch.tensor([numbers[tag] for tag in names])
    asked = torch.tensor([numbers.get(tag, -1) for tag in dev_names])  # a new tag is never found
    control = control_tags(words + dev_words, known, rng)
    tasks = [_Task(known, asked), _Task(control[: len(words)], control[len(words) :])]
    vectors, dev_vectors = _vectors(elmo, train), _vectors(elmo, dev)
    standardise(vectors, dev_vectors)
    scores, shares = _train_all(vectors, dev_vectors, tasks, held_out, len(tags), seed)
    seen = set(words)
    listed = [most_frequent(words, task.train, dev_words, task.dev) for task in tasks]
    return ProbeResult(
        layers=scores[: elmo.n_layers],
        mix=scores[-2],
        side_by_side=scores[-1],
        word_list=ProbeScore(*listed),
        shares=shares,
        tags=tags,
        n_train=len(words),
        n_dev=len(dev_words),
        unseen=sum(word not in seen for word in dev_words) / len(dev_words),
    )


def _train_all(
    vectors: Tensor,
    dev_vectors: Tensor,
    tasks: Sequence[_Task],
    held_out: Tensor,
    n_tags: int,
    seed: int,
) -> tuple[list[ProbeScore], list[float]]:
    """Scores of probes on vectors (N, K, D), of each layer, the mix and all; shares of the mix."""
    device, n_layers = vectors.device, vectors.shape[1]
    choices = [slice(k, k + 1) for k in range(n_layers)] + [slice(None)] * 2
    scores: list[ProbeScore] = []
    shares: list[float] = []
    settings = ProbeSettings()
    rounds = len(choices) * len(tasks) * settings.most_rounds
    with DelayedProgress("training probes", rounds, "rounds") as bar:
        for row, layers in enumerate(choices):
            right = []
            for task in tasks:
                trained = train_probe(
                    vectors[:, layers],
                    task.train.to(device),
                    held_out.to(device),
                    n_tags,
                    mixed=row == n_layers,
                    seed=seed,
                    settings=settings,
                    advance=bar.advance,
                )
                right.append(trained.accuracy(dev_vectors[:, layers], task.dev.to(device)))
                shares = shares or trained.shares() or []
            scores.append(ProbeScore(*right))
    return scores, shares


def control_tags(words: Sequence[str], tags: Tensor, rng: np.random.Generator) -> Tensor:
    """The control task's tags (N,) of N words: each word has one, as frequent as in the real tags.

    Args:
        words: N words.
        tags: Real tags, for their frequencies.
        rng: Draws a tag for each distinct word.
    """
    kinds = sorted(set(words))
    shares = np.bincount(tags.numpy()) / len(tags)
    drawn = dict(zip(kinds, rng.choice(len(shares), len(kinds), p=shares).tolist(), strict=True))
    return torch.tensor([drawn[word] for word in words])


def most_frequent(words: Sequence[str], tags: Tensor, asked: Sequence[str], right: Tensor) -> float:
    """Per cent right where a word gets the tag it has most often, a new one the commonest of all.

    Args:
        words: Words known.
        tags: Their tags (N,).
        asked: Words tested.
        right: Their tags.
    """
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for word, tag in zip(words, tags.tolist(), strict=True):
        counts[word][tag] += 1
    best = {word: count.most_common(1)[0][0] for word, count in counts.items()}
    commonest = int(tags.bincount().argmax())
    given = torch.tensor([best.get(word, commonest) for word in asked])
    return 100 * (given == right).double().mean().item()


def sample(sentences: Sequence[TaggedWords], most: int | None, seed: int) -> list[TaggedWords]:
    """At most so many sentences, drawn by chance, in their old order."""
    if most is None or len(sentences) <= most:
        return list(sentences)
    chosen = np.random.default_rng(seed).choice(len(sentences), most, replace=False)
    return [sentences[i] for i in np.sort(chosen)]


def probe_report(result: ProbeResult, layer_names: Sequence[str]) -> Report:
    """A table and bars."""
    named = dict(zip(layer_names, result.layers, strict=True))
    named |= {MIX: result.mix, ALL: result.side_by_side, LIST: result.word_list}
    rows: list[list[Value]] = [[n, s.accuracy, s.control, s.selectivity] for n, s in named.items()]

    def draw(figure: Figure) -> None:
        _draw(figure, named)

    return Report(
        f"Linear probes: {len(result.tags)} tags, accuracy in per cent on {result.n_dev:,} tokens, "
        f"{result.n_train:,} to train on",
        ["vectors", "accuracy", "control accuracy", "selectivity"],
        rows,
        {
            "train_tokens": result.n_train,
            "dev_tokens": result.n_dev,
            "unseen_words": result.unseen,
            "mix_shares": result.shares,
            "tags": result.tags,
        },
        draw,
        size=(3.4, 0.6 + 0.42 * len(rows)),
        digits=2,
    )


def _draw(figure: Figure, scores: dict[str, ProbeScore]) -> None:
    from elmokit.io.figures import COLOURS

    axes = figure.subplots()
    places = np.arange(len(scores))
    kinds = (
        ("tags", [s.accuracy for s in scores.values()], COLOURS[0], -0.2),
        ("control task", [s.control for s in scores.values()], COLOURS[7], 0.2),
    )
    for label, values, colour, shift in kinds:
        bars = axes.barh(places + shift, values, 0.4, color=colour, label=label)
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axes.set_yticks(places, list(scores))
    axes.invert_yaxis()
    axes.set_xlim(0, 115)  # room for the numbers
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("accuracy, per cent")
    figure.legend(loc="outside upper right", ncols=2)


def _tagged(sentences: Sequence[TaggedWords]) -> tuple[list[str], list[str]]:
    """All words that have a tag, and their tags."""
    pairs = [
        (word, tag)
        for sentence in sentences
        for word, tag in zip(sentence.words, sentence.tags, strict=True)
        if tag is not None
    ]
    return [word for word, _ in pairs], [tag for _, tag in pairs]


def _held_out(sentences: Sequence[TaggedWords], rng: np.random.Generator) -> Tensor:
    """True (N,) for tagged tokens of one sentence in ten, chosen by chance."""
    counts = np.array([sum(tag is not None for tag in s.tags) for s in sentences])
    usable = np.flatnonzero(counts)
    if len(usable) < 2:
        raise InputError(
            "a probe needs two sentences with tags to train on, one of them to decide when to "
            f"stop, and there is only {len(usable)}; give more text"
        )
    chosen = rng.choice(usable, max(1, len(usable) // _HELD_OUT), replace=False)
    return torch.from_numpy(np.repeat(np.isin(np.arange(len(counts)), chosen), counts))


def _vectors(elmo: Elmo, sentences: Sequence[TaggedWords]) -> Tensor:
    """Vectors (N, K, D) of all tagged tokens, in float16, on the model's device."""
    n_tokens = sum(tag is not None for s in sentences for tag in s.tags)
    found: npt.NDArray[np.float16] = np.empty((n_tokens, elmo.n_layers, elmo.dim), np.float16)
    row = 0
    with DelayedProgress("embedding", len(sentences), "sentences") as bar:
        for start in range(0, len(sentences), _AT_ONCE):
            some = sentences[start : start + _AT_ONCE]
            texts = [s.words for s in some]
            for sentence, layers in zip(
                some, elmo.encode(texts, "all", dtype=np.float16, progress=False), strict=True
            ):
                tagged = np.array([tag is not None for tag in sentence.tags], bool)
                n = int(tagged.sum())
                found[row : row + n] = layers[:, tagged].transpose(1, 0, 2)
                row += n
            bar.advance(len(some))
    return torch.from_numpy(found).to(elmo.device)
