"""Documents with clusters of mentions, from CoNLL-2012 and JSONL files.

In CoNLL-2012 the last column says which mentions begin and end at a word: ``(3`` begins a mention
of cluster 3, ``3)`` ends it, ``(3)`` is a mention of one word, and ``(3|(5`` begins two. A document
is between ``#begin document (NAME); part 000`` and ``#end document``. The files of LitBank are of
this kind. A JSONL file has ``{"doc_key": …, "sentences": [[…]], "clusters": [[[start, end], …]]}``
on each line, as for the e2e-coref program, whose ``end`` is the last word itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.arguments import described, file_path
from elmokit.errors import InputError, shortened, shown
from elmokit.io.lines import find_files
from elmokit.tasks.readers.chosen_columns import numbered_columns
from elmokit.tasks.readers.examples import DocumentExample
from elmokit.tasks.readers.records import Source, json_records
from elmokit.text.tokenizers import Span

COLUMNS = ("word", "cluster")
_WORD_COLUMN = 4  # of CoNLL-2012
_BEGIN = re.compile(r"#\s*begin document\s*(?:\((.*)\))?\s*(?:;\s*part\s*(\d+))?")
_END = re.compile(r"#\s*end document")
_CELL = re.compile(r"[-_]?|[()|\d]+")  # what the last column has
_MARK = re.compile(r"(\()?([^()|]+)(\))?")
_NOTHING = ("", "-", "_")


def read_document_examples(
    path: str | Path, columns: Mapping[str, str] | None = None, *, labelled: bool = True
) -> list[DocumentExample]:
    """Read the documents of a CoNLL-2012 or JSONL file, or of all files in a folder.

    Args:
        path: JSONL by its suffix; all other files are CoNLL.
        columns: Where words and clusters are in CoNLL files, such as ``{"word": "4", "cluster":
            "12"}``, numbers from 1. Without, words are in the fourth column, or in the first of
            fewer than five, and clusters in the last.
        labelled: Whether to read the clusters.
    """
    path = file_path(path, "path")
    places = numbered_columns(columns, COLUMNS, {"word": "4", "cluster": "12"})
    found: list[DocumentExample] = []
    for file in find_files([path]):
        source = Source(file)
        if source.kind == "jsonl":
            if places:
                raise InputError("columns= is for CoNLL files; leave it out with JSONL")
            found += _from_json(source, labelled)
        else:
            found += _Conll(source, places, labelled).documents()
    if not found:
        raise Source(path).nothing("documents in the format of CoNLL-2012, or JSONL")
    return found


def merged(clusters: Iterable[Iterable[Span]]) -> list[list[Span]]:
    """Clusters that share a mention become one, as OntoNotes has a few; mentions are in order."""
    found: list[set[Span]] = []
    for cluster in clusters:
        whole, others = set(cluster), []
        for other in found:
            if whole & other:
                whole |= other
            else:
                others.append(other)
        found = [*others, whole]
    return sorted(sorted(cluster) for cluster in found if cluster)


# CoNLL-2012


@dataclass
class _Document:
    """What was read of a document so far."""

    name: str = ""
    sentences: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Of the sentence that is being read."""
    n: int = 0
    """Words so far."""
    open: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """First word and line of the mentions that have no end yet, by cluster."""
    clusters: dict[str, list[Span]] = field(default_factory=dict)

    def end_sentence(self) -> None:
        if self.words:
            self.sentences.append(self.words)
        self.words = []


class _Conll:
    """Reads the documents of a CoNLL file."""

    def __init__(self, source: Source, places: dict[str, int], labelled: bool) -> None:
        self._source, self._places, self._labelled = source, places, labelled
        self._tabs: bool | None = None

    def documents(self) -> Iterator[DocumentExample]:
        document = _Document()
        for number, line in self._source.lines:
            if begin := _BEGIN.match(line):
                yield from self._finished(document)
                part = f" part {int(begin[2])}" if begin[2] and int(begin[2]) else ""
                document = _Document((begin[1] or "") + part)
            elif _END.match(line):
                yield from self._finished(document)
                document = _Document()
            elif not line.strip():
                document.end_sentence()
            elif not self._is_comment(line):
                self._add(document, number, line)
        yield from self._finished(document)

    def _is_comment(self, line: str) -> bool:
        """A word may be # as well, but not in the first of several columns."""
        if not line.startswith("#"):
            return False
        cells = line.split("\t" if self._tabs else None)
        return len(cells) < 2 or (len(cells) == 2 and not _CELL.fullmatch(cells[1].strip()))

    def _add(self, document: _Document, number: int, line: str) -> None:
        if self._tabs is None:
            self._tabs = "\t" in line
        cells = line.split("\t") if self._tabs else line.split()
        word = self._places.get("word", _WORD_COLUMN if len(cells) > _WORD_COLUMN else 1)
        cluster = self._places.get("cluster", len(cells)) if self._labelled else 0
        if max(word, cluster) > len(cells) or (not self._places and cluster == word):
            needed = max(word, cluster, 2)
            raise self._source.error(
                number,
                f"has {len(cells)} column{'s' * (len(cells) != 1)}; expected at least {needed}: a "
                "word, and the clusters whose mentions begin or end there",
            )
        if not cells[word - 1].strip():
            raise self._source.error(number, "has an empty word; fix or remove the line")
        document.words.append(cells[word - 1].strip())
        if cluster:
            self._mark(document, number, cells[cluster - 1].strip())
        document.n += 1

    def _mark(self, document: _Document, number: int, cell: str) -> None:
        """Begin and end the mentions that a cell names."""
        for mark in () if cell in _NOTHING else cell.split("|"):
            match = _MARK.fullmatch(mark)
            if match is None or not (match[1] or match[3]):
                raise self._source.error(
                    number,
                    f"has {shown(cell)} in the column of clusters; expected marks such as (3, 3), "
                    "(3) or -",
                )
            opening, key, closing = match.groups()
            begun = document.open.setdefault(key, [])
            if opening:
                begun.append((document.n, number))
            if closing and not begun:
                raise self._source.error(
                    number, f"ends a mention of cluster {shown(key)} that was not begun"
                )
            if closing:
                start, _ = begun.pop()
                document.clusters.setdefault(key, []).append((start, document.n + 1))

    def _finished(self, document: _Document) -> Iterator[DocumentExample]:
        document.end_sentence()
        for key, begun in document.open.items():
            if begun:
                raise self._source.error(
                    begun[0][1], f"begins a mention of cluster {shown(key)} that has no end"
                )
        if document.sentences:
            clusters = merged(document.clusters.values()) if self._labelled else None
            yield DocumentExample(document.sentences, document.name, clusters)


# JSONL


def _from_json(source: Source, labelled: bool) -> Iterator[DocumentExample]:
    for line, values in json_records(source):
        for key in ("sentences", "clusters") if labelled else ("sentences",):
            if key not in values:
                raise source.error(
                    line,
                    f"has no {shown(key)}; its keys are {shortened(', '.join(values))}; add it",
                )
        sentences = _sentences(source, line, values["sentences"])
        n_words = sum(map(len, sentences))
        clusters = _clusters(source, line, values["clusters"], n_words) if labelled else None
        name = values.get("doc_key", values.get("name", ""))
        try:
            yield DocumentExample(sentences, str(name), clusters)
        except InputError as error:
            raise InputError(f"line {line} of {source.name}: {error}") from None


def _sentences(source: Source, line: int, value: Any) -> list[list[str]]:
    if not isinstance(value, list) or not all(isinstance(words, list) for words in value):
        raise source.error(
            line, f"has {described(value)} as its sentences; expected lists of words"
        )
    for word in (word for words in value for word in words):
        if not isinstance(word, str) or not word.strip():
            raise source.error(line, f"has {described(word)} as a word; expected a string")
    sentences = [words for words in value if words]
    if not sentences:
        raise source.error(line, "has no words; fix or remove the line")
    return sentences


def _clusters(source: Source, line: int, value: Any, n_words: int) -> list[list[Span]]:
    """Clusters whose ends are the words after the last ones, in a document of N words."""
    found: list[list[Span]] = []
    for cluster in value if isinstance(value, list) else [value]:
        spans = cluster if isinstance(cluster, list) else [cluster]
        for span in spans:
            if not _is_span(span):
                raise source.error(
                    line,
                    f"has {described(span)} as a mention; expected clusters of mentions, each "
                    "[first word, last word]",
                )
            if not 0 <= span[0] <= span[1] < n_words:
                raise source.error(
                    line,
                    f"has {list(span)} as a mention; expected [first word, last word], from 0 to "
                    f"{n_words - 1}",
                )
        found.append([(start, end + 1) for start, end in spans])
    return merged(found)


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == 2
        and all(isinstance(place, int) and not isinstance(place, bool) for place in value)
    )
