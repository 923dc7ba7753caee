"""Linear probes of every layer, with a control task.

As in the paper's table 6, a softmax classifier predicts the tag of each token from the frozen
vectors of one layer. A probe may also memorise words; the control task of Hewitt and Liang (2019)
measures how much. There each word has a random tag, the same at every occurrence, which only
memorisation can predict. Selectivity is the accuracy minus the control accuracy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.analysis.probes.linear import ProbeSettings, standardise, train_probe
from elmokit.analysis.reports.report import Report, Reported, numbered_layers
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.conll import TaggedWords
from elmokit.io.notebook import BriefRepr
from elmokit.io.progress import DelayedProgress

_HELD_OUT = 10  # one sentence in ten decides when to stop


@dataclass(frozen=True)
class ProbeScore:
    """Accuracies in per cent."""

    accuracy: float
    control: float
    """Accuracy on the control task."""

    @property
    def selectivity(self) -> float:
        """Accuracy minus control accuracy."""
        return self.accuracy - self.control


@dataclass(frozen=True, repr=False)
class ProbeResult(BriefRepr, Reported):
    """Scores of all probes."""

    layers: list[ProbeScore]
    """One per layer, the token layer first."""
    mix: ProbeScore
    """Of a weighted sum of all layers, with learned weights."""
    side_by_side: ProbeScore
    """Of all layers concatenated."""
    word_list: ProbeScore
    """Of the most-frequent-tag baseline, which uses no vectors."""
    shares: list[float]
    """Softmax weights of the learned mix; all layers are standardised first."""
    tags: list[str]
    n_train: int
    """Training tokens; a tenth of their sentences is held out for early stopping."""
    n_dev: int
    """Test tokens."""
    unseen: float
    """Fraction of test tokens whose word does not occur in the training text."""
    layer_names: list[str] = field(default_factory=list, repr=False)

    def report(self) -> Report:
        """Return a row for each probe, and bars."""
        from elmokit.analysis.reports.probes_report import probe_report

        return probe_report(self, numbered_layers(self.layer_names, len(self.layers)))


@dataclass(frozen=True)
class _Task:
    """Tags (N,) to predict: those of the text, or of the control task."""

    train: Tensor
    dev: Tensor


def probe(
    elmo: Elmo, train: Sequence[TaggedWords], dev: Sequence[TaggedWords], seed: int = 0
) -> ProbeResult:
    """Train and test a probe on every layer, on a learned mix, and on all layers concatenated.

    Args:
        elmo: The model.
        train: At least two sentences to train on.
        dev: Sentences to test on.
        seed: Seed of the held-out sentences, the control task's tags and the order of tokens.
    """
    rng = np.random.default_rng(seed)
    held_out = _held_out(train, rng)
    (words, names), (dev_words, dev_names) = _tagged(train), _tagged(dev)
    if not dev_words:
        raise InputError("the test text has no tagged words; expected at least one")
    tags = sorted(set(names))
    numbers = {tag: number for number, tag in enumerate(tags)}
    known = torch.tensor([numbers[tag] for tag in names])
    # a tag not seen in training is never predicted
    asked = torch.tensor([numbers.get(tag, -1) for tag in dev_names])
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
        layer_names=elmo.layer_names,
    )


def _train_all(
    vectors: Tensor,
    dev_vectors: Tensor,
    tasks: Sequence[_Task],
    held_out: Tensor,
    n_tags: int,
    seed: int,
) -> tuple[list[ProbeScore], list[float]]:
    """Scores on each layer of vectors (N, K, D), the mix and all layers; weights of the mix."""
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
    """Assign each distinct word a random tag, with the frequencies of the real tags.

    Args:
        words: N words.
        tags: Real tags, for their frequencies.
        rng: Draws a tag for each distinct word.

    Returns:
        The control task's tags (N,).
    """
    kinds = sorted(set(words))
    shares = np.bincount(tags.numpy()) / len(tags)
    drawn = dict(zip(kinds, rng.choice(len(shares), len(kinds), p=shares).tolist(), strict=True))
    return torch.tensor([drawn[word] for word in words])


def most_frequent(words: Sequence[str], tags: Tensor, asked: Sequence[str], right: Tensor) -> float:
    """Accuracy in per cent of the most-frequent-tag baseline.

    Words not seen in training get the most frequent tag overall.

    Args:
        words: N training words.
        tags: Their tags (N,).
        asked: Test words.
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
    """Sample at most ``most`` sentences, keeping their order."""
    if most is None or len(sentences) <= most:
        return list(sentences)
    chosen = np.random.default_rng(seed).choice(len(sentences), most, replace=False)
    return [sentences[i] for i in np.sort(chosen)]


def _tagged(sentences: Sequence[TaggedWords]) -> tuple[list[str], list[str]]:
    """All tagged words, and their tags."""
    pairs = [
        (word, tag)
        for sentence in sentences
        for word, tag in zip(sentence.words, sentence.tags, strict=True)
        if tag is not None
    ]
    return [word for word, _ in pairs], [tag for _, tag in pairs]


def _held_out(sentences: Sequence[TaggedWords], rng: np.random.Generator) -> Tensor:
    """True (N,) for the tagged tokens of a random tenth of the sentences."""
    counts = np.array([sum(tag is not None for tag in s.tags) for s in sentences])
    usable = np.flatnonzero(counts)
    if len(usable) < 2:
        raise InputError(
            f"the training text has {len(usable)} tagged sentences; expected at least 2, one of "
            "them for early stopping"
        )
    chosen = rng.choice(usable, max(1, len(usable) // _HELD_OUT), replace=False)
    return torch.from_numpy(np.repeat(np.isin(np.arange(len(counts)), chosen), counts))


def _vectors(elmo: Elmo, sentences: Sequence[TaggedWords]) -> Tensor:
    """Vectors (N, K, D) of all tagged tokens, in float16, on the model's device."""
    n_tokens = sum(tag is not None for s in sentences for tag in s.tags)
    found: npt.NDArray[np.float16] = np.empty((n_tokens, elmo.n_layers, elmo.dim), np.float16)
    row = 0
    with DelayedProgress("embedding", len(sentences), "sentences") as bar:
        encoded = elmo.stream((s.words for s in sentences), "all", dtype=np.float16)
        for sentence, layers in zip(sentences, encoded, strict=True):
            tagged = np.array([tag is not None for tag in sentence.tags], bool)
            n = int(tagged.sum())
            found[row : row + n] = layers[:, tagged].transpose(1, 0, 2)
            row += n
            bar.advance(1)
    return torch.from_numpy(found).to(elmo.device)
