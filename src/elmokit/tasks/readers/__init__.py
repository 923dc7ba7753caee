"""Readers of a user's own files: from a path to a list of examples."""

from elmokit.tasks.readers.documents import read_document_examples
from elmokit.tasks.readers.entailment_pairs import read_entailment_examples
from elmokit.tasks.readers.examples import (
    DocumentExample,
    EntailmentExample,
    Frame,
    GoldAnswer,
    PairExample,
    QuestionExample,
    RelationExample,
    RoleExample,
    TaggedExample,
    TextExample,
)
from elmokit.tasks.readers.labelled_texts import read_plain_texts, read_text_examples
from elmokit.tasks.readers.questions import read_question_examples
from elmokit.tasks.readers.relations import parse_marked, read_relation_examples, relation_words
from elmokit.tasks.readers.role_frames import read_role_examples
from elmokit.tasks.readers.sentence_pairs import read_pair_examples
from elmokit.tasks.readers.tagged_words import read_tagged_examples

__all__ = [
    "DocumentExample",
    "EntailmentExample",
    "Frame",
    "GoldAnswer",
    "PairExample",
    "QuestionExample",
    "RelationExample",
    "RoleExample",
    "TaggedExample",
    "TextExample",
    "parse_marked",
    "read_document_examples",
    "read_entailment_examples",
    "read_pair_examples",
    "read_plain_texts",
    "read_question_examples",
    "read_relation_examples",
    "read_role_examples",
    "read_tagged_examples",
    "read_text_examples",
    "relation_words",
]
