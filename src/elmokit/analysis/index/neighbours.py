"""Where in a text a word is used as in a sentence: the nearest occurrences, as in the paper.

Table 4 of the paper shows it for "play": without a context its neighbours are of all its senses,
in a context those of one.

    index = Index.open("my-index")  # which elmokit index wrote
    found = neighbours(index, Elmo.load(), "He made a great play.", "play", k=5)
    found.occurrences, found.words
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from elmokit.analysis.index.build import PROBE
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.phrases import require_phrase
from elmokit.analysis.reports.report import Report
from elmokit.analysis.similarity import unit
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SAME_MODEL = 0.99  # cosine to the vectors of the index; rounding to int8 leaves 0.999
_SHOWN = 12  # tokens on either side
_MOST_DOTS = 40  # neighbours in a picture…
_AROUND = 4  # …and tokens on either side there


@dataclass(frozen=True)
class Neighbour:
    """A token of the text."""

    cosine: float
    """To the word asked for."""
    tokens: list[str]
    """Its sentence."""
    position: int
    """Its place there, from 0."""
    sentence: int
    """The number of the sentence in the text, from 0."""

    @property
    def word(self) -> str:
        """The token itself."""
        return self.tokens[self.position]

    def marked(self, around: int = _SHOWN) -> str:
        """The sentence with the token in brackets, cut where it is long."""
        return mark(self.tokens, self.position, around)


@dataclass(frozen=True)
class Neighbours:
    """What is near to a word of a sentence."""

    tokens: list[str]
    """The sentence."""
    position: int
    """The word's place in it, from 0."""
    occurrences: list[Neighbour]
    """The nearest of the text, by the layer of the index."""
    words: list[tuple[str, float]]
    """The nearest words of the text, each without a context, with their cosines."""


def neighbours(
    index: Index,
    elmo: Elmo,
    sentence: Text,
    word: str,
    k: int = 10,
    *,
    which: int = 1,
    same_word: bool = False,
    brute: bool = False,
) -> Neighbours:
    """The nearest occurrences of a text to a word in a sentence, and its nearest words alone.

    The sentence itself is passed over where the text has it, and of sentences that are there
    several times all but one.

    Args:
        index: That of the text.
        elmo: The model it was made with.
        sentence: A sentence.
        word: A word of it, one token.
        k: How many of each.
        which: Where the word is there several times: the first, the second, and so on.
        same_word: Look at the word itself only, in all its occurrences.
        brute: Look at everything in the graph one by one, which is exact and slower.
    """
    if k < 1:
        raise InputError(f"k must be 1 or more, not {k}")
    tokens = elmo.tokenize(sentence)
    position = _place(tokens, elmo.tokenize(word), which)
    config = index.config
    if config.dim != elmo.dim or config.layer >= elmo.n_layers:
        raise InputError(
            f"{index.folder} holds {config.dim} dimensions of layer {config.layer}, and this model "
            f"has {elmo.dim} and layers up to {elmo.n_layers - 1}; {_give_model(index)}"
        )
    layers, probe = elmo.encode([tokens, PROBE], [0, config.layer], progress=False)
    if (unit(probe[1]) * index.probe).sum(-1).min() < _SAME_MODEL:
        raise InputError(
            f"this model's vectors are not those {index.folder} was made with; {_give_model(index)}"
        )
    vector = unit(layers[1, position])
    found = index.search(
        vector, k, but=tokens, word=tokens[position] if same_word else None, brute=brute
    )
    own = unit(layers[0, position, : config.word_dim])
    words = index.words_like(own, k, but=tokens[position])
    return Neighbours(tokens, position, [_neighbour(index, *one) for one in found], words)


def report(index: Index, found: Neighbours, seconds: dict[str, float] | None = None) -> Report:
    """A table: occurrences in context on the left, words alone on the right.

    Args:
        index: Where they were found.
        found: What was found.
        seconds: How long parts of it took, to be told with the numbers.
    """
    left = [(one.marked(), one.cosine) for one in found.occurrences]
    right = found.words
    n = max(len(left), len(right))
    rows = [
        [*(left[i] if i < len(left) else ("", None)), *(right[i] if i < len(right) else ("", None))]
        for i in range(n)
    ]

    def draw(figure: Figure) -> None:
        _draw(figure, found)

    return Report(
        f"Nearest to: {mark(found.tokens, found.position)}",
        ["in context", "cosine", "alone", "cosine alone"],
        rows,
        {
            "tokens": found.tokens,
            "position": found.position,
            "word": found.tokens[found.position],
            "layer": index.config.layer,
            "text tokens": index.config.tokens,
            "seconds": seconds or {},
            "occurrences": [asdict(one) for one in found.occurrences],
            "words": [{"word": word, "cosine": cosine} for word, cosine in found.words],
        },
        draw if n else None,
        size=(6.8, 1.2 + 0.19 * min(n, _MOST_DOTS)),
    )


def _draw(figure: Figure, found: Neighbours) -> None:
    """Cosines of neighbours in context on the left, of words alone on the right, by rank."""
    from elmokit.io.figures import short

    contexts, words = found.occurrences[:_MOST_DOTS], found.words[:_MOST_DOTS]
    left, right = figure.subplots(1, 2, sharex=True)  # cosines can be compared
    asked = found.tokens[found.position].casefold()
    same = [one.word.casefold() == asked for one in contexts]
    labels = [short(one.marked(_AROUND), 48) for one in contexts]
    _dots(left, [one.cosine for one in contexts], labels, same)
    _dots(right, [value for _, value in words], [short(word) for word, _ in words], [])
    for axes, title in ((left, "in context"), (right, "alone (token layer)")):
        axes.set_ylim(max(len(contexts), len(words)) - 0.5, -0.5)  # ranks at the same height
        axes.set_title(title)
        axes.set_xlabel("cosine")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    figure.suptitle(short(mark(found.tokens, found.position, 2 * _AROUND), 100), fontsize=9)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2)


def _dots(
    axes: Axes, cosines: Sequence[float], labels: Sequence[str], same: Sequence[bool]
) -> None:
    """A dot each, from the top down; full where it is the word asked for itself."""
    from elmokit.io.figures import COLOURS

    full = [i for i, is_same in enumerate(same) if is_same]
    hollow = [i for i in range(len(cosines)) if i not in full]
    for name, places, fill in (
        ("the same word", full, COLOURS[0]),
        ("another word", hollow, "white"),
    ):
        values = [cosines[i] for i in places]
        axes.scatter(values, places, s=20, color=fill, edgecolors=COLOURS[0], label=name, zorder=2)
    axes.set_yticks(range(len(labels)), labels)


def mark(tokens: Sequence[str], position: int, around: int = _SHOWN) -> str:
    """A sentence with one token in brackets, cut to so many tokens on either side of it."""
    first, last = max(0, position - around), position + around + 1
    shown = [*tokens[first:position], f"[{tokens[position]}]", *tokens[position + 1 : last]]
    return " ".join(["…"] * (first > 0) + shown + ["…"] * (last < len(tokens)))


def _place(tokens: Sequence[str], word: Sequence[str], which: int) -> int:
    """Where the word is in the sentence."""
    places = require_phrase(tokens, word)
    if len(word) > 1:
        raise InputError(
            f"{' '.join(word)!r} is {len(word)} tokens, and an index is one of single tokens; give "
            f"one of them, as {max(word, key=len)!r}"
        )
    if not 1 <= which <= len(places):
        raise InputError(
            f"{word[0]!r} is there {len(places)} times, so that the number must be from 1 to "
            f"{len(places)}, not {which}"
        )
    return places[which - 1]


def _neighbour(index: Index, row: int, cosine: float) -> Neighbour:
    sentence, position = index.place(row)
    return Neighbour(cosine, index.sentence(sentence), position, sentence)


def _give_model(index: Index) -> str:
    return f"use the one it was made with, {index.config.model or 'which was never saved'}"
