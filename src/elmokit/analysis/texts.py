"""Running text for an analysis: sentences of tokens, sampled if there are too many."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.io.lines import find_files, read_lines, total_bytes
from elmokit.io.progress import DelayedProgress
from elmokit.text.sentences import split_sentences

Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """A uniform random sample of a stream of items.

    Args:
        most: Size of the sample.
        rng: Source of randomness.

    Attributes:
        items: The sample so far.
        seen: Number of items added so far.
    """

    def __init__(self, most: int, rng: random.Random) -> None:
        self.items: list[Item] = []
        self.seen = 0
        self._most, self._rng = most, rng

    def add(self, item: Item) -> None:
        """Add the next item of the stream."""
        self.seen += 1
        if len(self.items) < self._most:
            self.items.append(item)
        elif (place := self._rng.randrange(self.seen)) < self._most:
            self.items[place] = item


def read_paragraphs(path: Path) -> Iterator[str]:
    """Yield the non-blank lines of a text file, or of all files in a folder."""
    files = find_files([path])
    with DelayedProgress(f"reading {path.name}", n_bytes(files), "bytes") as bar:
        for file in files:
            for line in read_lines(file, bar.advance):
                if line.strip():
                    yield line


def sentences_of(elmo: Elmo, paragraph: str, tokenized: bool = False) -> list[list[str]]:
    """Split a paragraph into sentences of tokens; a tokenised paragraph is one sentence."""
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
    """Yield the tokens of every sentence in some text files or folders; none is empty.

    Args:
        elmo: The model whose tokenizer splits the text.
        paths: Text files and folders.
        tokenized: Whether each line is one sentence with tokens separated by white space.
        advance: Called now and then with the number of bytes read since the last call.
    """
    for path in find_files(paths):
        for line in read_lines(path, advance):
            if line.strip():
                yield from sentences_of(elmo, line, tokenized)


def up_to(sentences: Iterable[list[str]], most: int) -> Iterator[list[str]]:
    """Yield sentences with ``most`` tokens in all; the last one is cut."""
    for tokens in sentences:
        yield tokens[:most]
        most -= len(tokens)
        if most <= 0:
            return


def n_bytes(paths: Sequence[Path]) -> int | None:
    """Return the size of some text files or folders on disk; None with standard input."""
    return total_bytes(find_files(paths))


def sample_sentences(
    elmo: Elmo, path: Path, most_tokens: int, tokenized: bool = False, seed: int = 0
) -> list[list[str]]:
    """Sample distinct sentences from random paragraphs of a text.

    Args:
        elmo: The model whose tokenizer splits the text.
        path: A text file or a folder of text files.
        most_tokens: Most tokens in all; the last sentence is cut.
        tokenized: Whether each line is one sentence with tokens separated by white space.
        seed: Seed of the sample.
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
        raise InputError(f"no tokens found in {path}; expected text")
    return [list(sentence) for sentence in found]
