"""Readers of a user's own files: from a path to a list of examples."""

from elmokit.tasks.readers.documents import read_document_examples
from elmokit.tasks.readers.examples import (
    DocumentExample,
    PairExample,
    RelationExample,
    TaggedExample,
    TextExample,
)
from elmokit.tasks.readers.labelled_texts import read_plain_texts, read_text_examples
from elmokit.tasks.readers.relations import parse_marked, read_relation_examples, relation_words
from elmokit.tasks.readers.sentence_pairs import read_pair_examples
from elmokit.tasks.readers.tagged_words import read_tagged_examples

__all__ = [
    "DocumentExample",
    "PairExample",
    "RelationExample",
    "TaggedExample",
    "TextExample",
    "parse_marked",
    "read_document_examples",
    "read_pair_examples",
    "read_plain_texts",
    "read_relation_examples",
    "read_tagged_examples",
    "read_text_examples",
    "relation_words",
]
