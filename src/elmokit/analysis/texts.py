"""Running text for an analysis: sentences of tokens, drawn by chance where there are too many."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.lines import find_files, read_lines
from elmokit.io.progress import DelayedProgress
from elmokit.text.sentences import split_sentences

Item = TypeVar("Item")
Tokens = TypeVar("Tokens", bound=Sequence[str])


class Reservoir(Generic[Item]):
    """A random sample of things that come one by one, each with the same chance to be in it.

    Args:
        most: How many to keep.
        rng: Where chance comes from.

    Attributes:
        items: The sample so far.
        seen: How many things came.
    """

    def __init__(self, most: int, rng: random.Random) -> None:
        self.items: list[Item] = []
        self.seen = 0
        self._most, self._rng = most, rng

    def add(self, item: Item) -> None:
        """One more thing."""
        self.seen += 1
        if len(self.items) < self._most:
            self.items.append(item)
        elif (place := self._rng.randrange(self.seen)) < self._most:
            self.items[place] = item


def read_paragraphs(path: Path) -> Iterator[str]:
    """Lines of a file or of all files of a folder, packed or not, without those that are blank."""
    files = find_files([path])
    with DelayedProgress(f"reading {path.name}", n_bytes(files), "bytes") as bar:
        for file in files:
            for line in read_lines(file, bar.advance):
                if line.strip():
                    yield line


def sentences_of(elmo: Elmo, paragraph: str, tokenized: bool = False) -> list[list[str]]:
    """A paragraph's sentences as tokens; where it is tokenised, it is one sentence."""
    if tokenized:
        return [paragraph.split()]
    sentences = (elmo.tokenize(sentence) for sentence in split_sentences(paragraph))
    return [tokens for tokens in sentences if tokens]


def read_sentences(
    elmo: Elmo,
    paths: Sequence[Path],
    tokenized: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[list[str]]:
    """Tokens of every sentence of some text files or folders; none is empty.

    Args:
        elmo: The model whose tokenizer splits them.
        paths: The files.
        tokenized: Whether each line is one sentence, its tokens apart by white space.
        advance: Told now and then how many more bytes were read.
    """
    for path in find_files(paths):
        for line in read_lines(path, advance):
            if line.strip():
                yield from sentences_of(elmo, line, tokenized)


def windows(sentences: Iterable[Tokens], most: int) -> Iterator[list[Tokens]]:
    """Sentences in groups of about so many tokens."""
    window: list[Tokens] = []
    n = 0
    for tokens in sentences:
        window.append(tokens)
        n += len(tokens)
        if n >= most:
            yield window
            window, n = [], 0
    if window:
        yield window


def up_to(sentences: Iterable[list[str]], most: int) -> Iterator[list[str]]:
    """Sentences up to so many tokens, the last one cut to that."""
    for tokens in sentences:
        yield tokens[:most]
        most -= len(tokens)
        if most <= 0:
            return


def n_bytes(paths: Sequence[Path]) -> int:
    """How large some text files or folders are, packed as they may be."""
    return sum(file.stat().st_size for file in find_files(paths))


def sample_sentences(
    elmo: Elmo, path: Path, most_tokens: int, tokenized: bool = False, seed: int = 0
) -> list[list[str]]:
    """Different sentences of a text with at most so many tokens, paragraphs drawn by chance.

    Args:
        elmo: Whose tokenizer is used.
        path: A text file or a folder of them.
        most_tokens: How many tokens; the last sentence is cut to that.
        tokenized: Whether each line is one sentence, its tokens apart by white space.
        seed: The same seed draws the same paragraphs.
    """
    rng = random.Random(seed)
    paragraphs: Reservoir[str] = Reservoir(most_tokens, rng)  # each has at least one token
    for paragraph in read_paragraphs(path):
        paragraphs.add(paragraph)
    rng.shuffle(paragraphs.items)
    found: dict[tuple[str, ...], None] = {}
    left = most_tokens
    with DelayedProgress("splitting text", most_tokens, "tokens") as bar:
        for paragraph in paragraphs.items:
            if left == 0:
                break
            for tokens in sentences_of(elmo, paragraph, tokenized):
                sentence = tuple(tokens[:left])
                if sentence and sentence not in found:
                    found[sentence] = None
                    left -= len(sentence)
                    bar.advance(len(sentence))
    if not found:
        raise InputError(f"there is no word in {path}; give a text")
    return [list(sentence) for sentence in found]
