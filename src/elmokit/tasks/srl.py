"""Semantic roles: who did what to whom, where and when. A frame of roles for each predicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.devices import to_device
from elmokit.errors import InputError
from elmokit.tasks.heads.alternating import AlternatingLSTM
from elmokit.tasks.heads.bio_viterbi import FORBIDDEN, best_bio
from elmokit.tasks.heads.encoders import LockedDropout
from elmokit.tasks.marked_text import MarkedText
from elmokit.tasks.measures.role_scores import role_scores
from elmokit.tasks.measures.scores import Scores
from elmokit.tasks.readers.examples import PREDICATE, Frame, RoleExample
from elmokit.tasks.readers.records import table_kind, unpacked_suffix
from elmokit.tasks.readers.role_frames import read_role_examples
from elmokit.tasks.roles import Roles, conll_block, joined_roles
from elmokit.tasks.sentence_task import SentenceTask, sentence_record
from elmokit.tasks.task import source_name
from elmokit.tasks.task_settings import InputSettings, TaskSettings, TaskTraining, check_model
from elmokit.tasks.word_input import WordBatch

_INDICATOR_DIM = 100  # as in the paper
_VERB = 1  # the number of the label B-V
_PADDING = -100
_WORDS_AT_ONCE = 1 << 16  # of all predicates together, when predicting


@dataclass(frozen=True)
class RoleSettings:
    """The network of a role labeller."""

    hidden_dim: int = 200
    """Cells of each of its LSTMs."""
    n_layers: int = 4
    """Its LSTMs; every second one reads backward."""
    dropout: float = 0.1
    """Dropout between its LSTMs."""

    def __post_init__(self) -> None:
        check_model(self)


class SentenceStates(NamedTuple):
    """What the network knows about sentences before it looks at one predicate."""

    x: Tensor
    """Input (B, T, H) of the LSTMs."""
    after: Tensor | None
    """What joins the scores (B, T, K) of their output, or None."""
    mask: Tensor
    """True (B, T) at words."""
    predicates: Tensor
    """Scores (B, T) of being a predicate; above 0 if it is more likely than not."""


class RoleHead(nn.Module):
    """Alternating LSTMs with highway connections (He et al. 2017), one row for each predicate.

    Whatever does not depend on the predicate is computed once per sentence: the input is made
    narrow before it is repeated for each predicate, and ELMo at the output is turned into scores.

    Args:
        input_dim: Width X of the input.
        output_dim: Width D of what joins the LSTMs' output; 0 for nothing.
        n_labels: K.
        settings: Sizes.
    """

    def __init__(
        self, input_dim: int, output_dim: int, n_labels: int, settings: RoleSettings
    ) -> None:
        super().__init__()
        width = settings.hidden_dim
        self.predicate = nn.Linear(input_dim + output_dim, 1)
        self.narrow = nn.Linear(input_dim, width)
        self.indicator = nn.Embedding(2, _INDICATOR_DIM)
        self.encoder = AlternatingLSTM(
            width + _INDICATOR_DIM, width, settings.n_layers, settings.dropout
        )
        self.dropout = LockedDropout(settings.dropout)
        self.linear = nn.Linear(width, n_labels)
        self.after = nn.Linear(output_dim, n_labels, bias=False) if output_dim else None

    def forward(self, x: Tensor, mask: Tensor, after: Tensor | None) -> SentenceStates:
        """Read an input (B, T, X), and what joins the output (B, T, D)."""
        whole = x if after is None else torch.cat([x, after], -1)
        joined = None
        if self.after is not None and after is not None:
            joined = self.after(after)
        return SentenceStates(self.narrow(x), joined, mask, self.predicate(whole).squeeze(-1))

    def roles(self, states: SentenceStates, rows: Tensor, places: Tensor) -> Tensor:
        """Scores (R, T, K) of the labels of R predicates.

        Args:
            states: The result of :meth:`forward`.
            rows: The sentence (R,) of each predicate.
            places: The word (R,) that it is.
        """
        words = torch.arange(states.mask.shape[1], device=rows.device)
        is_predicate = words == places[:, None]  # (R, T)
        x = torch.cat([states.x[rows], self.indicator(is_predicate.long())], -1)
        scores: Tensor = self.linear(self.dropout(self.encoder(x, states.mask[rows])))
        return scores if states.after is None else scores + states.after[rows]


class RoleLabeller(SentenceTask[RoleExample, Roles]):
    """Semantic roles of each predicate, as in PropBank and CoNLL-2005.

    Trained and evaluated with given predicates. In plain text it finds them itself.

    Examples:
        >>> from elmokit.tasks import RoleLabeller
        >>> labeller = RoleLabeller.load("my-srl")                  # doctest: +SKIP
        >>> print(labeller.show(labeller("The cat saw a mouse .")))  # doctest: +SKIP
        [The cat ARG0] [saw V] [a mouse ARG1] .
    """

    name = "srl"
    example = RoleExample
    defaults = TaskSettings(
        RoleSettings(),
        InputSettings(mix_l2=0.001),
        training=TaskTraining(epochs=15, learning_rate=0.002, schedule="warmup"),
    )

    @classmethod
    def read(
        cls, path: Path, columns: dict[str, str] | None = None, labelled: bool = True
    ) -> list[RoleExample]:
        """Read sentences and the frames of their predicates; see docs/task-data.md."""
        return read_role_examples(path, columns, labelled=labelled)

    @classmethod
    def is_table(cls, path: Path, columns: dict[str, str] | None = None) -> bool:
        """A CoNLL file is known by its suffix; a folder contains such files."""
        suffix = unpacked_suffix(path)
        if suffix.endswith("conll") or suffix == ".tsv" or path.is_dir():
            return True
        # .props of CoNLL-2005 have no words
        if not columns and (table_kind(path) == "csv" or suffix == ".props"):
            raise InputError(
                f"{path} is not a file for {cls.name}; give one text per line (.txt), a CoNLL file "
                "(.conll, .tsv) or JSONL"
            )
        return super().is_table(path, columns)

    @classmethod
    def labels_of(cls, examples: Sequence[RoleExample]) -> list[str]:
        """Return O, and B- and I- of V and of every role in alphabetical order."""
        tags = (tag for e in examples for frame in e.frames or [] for tag in frame.tags or [])
        roles = sorted({tag[2:] for tag in tags} - {"", PREDICATE})
        if not roles:
            raise InputError("the training examples have no roles; expected tags such as B-ARG0")
        return ["O", *(f"{place}-{role}" for role in [PREDICATE, *roles] for place in "BI")]

    def joined(self, predictions: Sequence[Roles]) -> Roles:
        """Return the roles in a text from those in its sentences."""
        return predictions[0] if len(predictions) == 1 else joined_roles(predictions)

    def _make_head(self, input_dim: int, output_dim: int) -> nn.Module:
        return RoleHead(input_dim, output_dim, len(self.labels), self.settings.model)

    def forward(self, batch: WordBatch) -> SentenceStates:
        """What is known about the sentences; roles follow for each predicate."""
        x, after = self.input(batch)
        states: SentenceStates = self.head(x, batch.mask, after)
        return states

    def loss(self, output: SentenceStates, examples: Sequence[RoleExample]) -> Tensor:
        """Mean cross entropy of a word's label, plus that of being a predicate."""
        frames = [(row, frame) for row, e in enumerate(examples) for frame in e.frames or []]
        shape, device = output.mask.shape, output.mask.device
        places = np.array([(row, frame.predicate) for row, frame in frames], np.int64)
        rows, words = to_device(torch.from_numpy(places.reshape(-1, 2).T.copy()), device)
        is_predicate = torch.zeros(shape, device=device)
        is_predicate[rows, words] = 1
        losses = F.binary_cross_entropy_with_logits(
            output.predicates, is_predicate, reduction="none"
        )
        loss = losses.masked_fill(~output.mask, 0).sum() / output.mask.sum().clamp(min=1)
        if not frames:
            return loss
        scores = self._head.roles(output, rows, words)
        gold = to_device(self._gold([frame.tags or [] for _, frame in frames], shape[1]), device)
        return loss + F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=_PADDING)

    def decode(self, output: SentenceStates, examples: Sequence[RoleExample]) -> list[Roles]:
        """Return the best roles of each predicate; predicates are found where none are given."""
        found: list[list[int]] = [[] for _ in examples]
        for row, word in ((output.predicates > 0) & output.mask).nonzero().tolist():
            found[row].append(word)
        wanted = [
            places if e.frames is None else [frame.predicate for frame in e.frames]
            for e, places in zip(examples, found, strict=True)
        ]
        pairs = [(row, place) for row, places in enumerate(wanted) for place in places]
        at_once = max(1, _WORDS_AT_ONCE // output.mask.shape[1])
        frames: list[list[Frame]] = [[] for _ in examples]
        for start in range(0, len(pairs), at_once):
            some = pairs[start : start + at_once]
            for (row, place), tags in zip(some, self._best(output, some), strict=True):
                n = len(examples[row].words)
                frames[row].append(Frame(place, [self.labels[i] for i in tags[:n]]))
        parts = zip(examples, frames, found, strict=True)
        return [Roles(e.words, of_one, places) for e, of_one, places in parts]

    def score(self, examples: Sequence[RoleExample], predictions: Sequence[Roles]) -> Scores:
        """F1 of arguments as in CoNLL-2005, of given predicates; and F1 of predicates."""
        gold = [frame for e in examples for frame in e.frames or []]
        predicted = [frame for found in predictions for frame in found.frames]
        return role_scores(
            [frame.tags or [] for frame in gold],
            [frame.tags or [] for frame in predicted],
            [[frame.predicate for frame in e.frames or []] for e in examples],
            [found.found for found in predictions],
        )

    def show(self, prediction: Roles) -> str:
        """Return a line for each predicate, as [The cat ARG0] [slept V]; else only the words."""
        lines = [text.plain() for text in self.marked(prediction)]
        return "\n".join(lines)

    def marked(self, prediction: Roles) -> list[MarkedText]:
        """Return each sentence with the roles of each predicate; C-ARG1 is coloured as ARG1."""
        return prediction.marked([label[2:] for label in self.labels[1::2]])

    def record(self, prediction: Roles | None) -> dict[str, Any]:
        """Return words and frames; ``end`` is the word after the last one."""
        prediction = prediction or Roles([], [], [])
        words = prediction.words
        frames = [
            {
                "predicate": frame.predicate,
                "tags": frame.tags,
                "roles": [
                    {"start": start, "end": end, "role": role, "words": words[start:end]}
                    for start, end, role in roles
                ],
            }
            for frame, roles in zip(prediction.frames, prediction.roles(), strict=True)
        ]
        return {"words": words} | sentence_record(prediction.lengths) | {"frames": frames}

    def to_conll(self, prediction: Roles) -> str:
        """Return sentences in CoNLL form: words, predicates, and a column for each predicate."""
        return "\n".join(map(conll_block, prediction.sentences()))

    @classmethod
    def _check_example(cls, example: Any, name: str) -> None:
        super()._check_example(example, name)
        for number, frame in enumerate(example.frames, 1):
            if frame.tags is None:
                raise InputError(
                    f"frame {number} of {name} has no tags; examples need their answers here"
                )

    @classmethod
    def _examples(cls, given: Any, name: str, columns: dict[str, str] | None) -> list[RoleExample]:
        examples = super()._examples(given, name, columns)
        if not any(example.frames for example in examples):
            where = source_name(given, name)
            raise InputError(f"{where} has no predicates; expected at least one")
        return examples

    @property
    def _head(self) -> RoleHead:
        return cast(RoleHead, self.head)

    def _gold(self, frames: Sequence[Sequence[str]], longest: int) -> Tensor:
        """Numbers (R, T) of the right labels."""
        number = {label: i for i, label in enumerate(self.labels)}
        gold = np.full((len(frames), longest), _PADDING, np.int64)
        # a mask selects its places row by row, the order in which tags are joined
        lengths = np.array([len(tags) for tags in frames])
        joined = [number.get(tag, _PADDING) for tags in frames for tag in tags]
        gold[np.arange(longest) < lengths[:, None]] = joined
        return torch.from_numpy(gold)

    def _best(self, output: SentenceStates, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Numbers of the labels of some predicates, given as (sentence, word)."""
        rows, places = torch.tensor(pairs, device=output.mask.device).T
        scores = self._head.roles(output, rows, places)
        # V begins at the predicate and nowhere else
        is_predicate = torch.arange(scores.shape[1], device=rows.device) == places[:, None]
        is_verb = torch.arange(scores.shape[2], device=rows.device) == _VERB
        scores = scores.masked_fill(is_predicate[..., None] != is_verb, FORBIDDEN)
        best: list[list[int]] = best_bio(scores, output.mask[rows]).tolist()
        return best
