"""The tasks by name, without importing them: the command line lists them quickly."""

from __future__ import annotations

TASKS = {
    "classify": ("elmokit.tasks.classification", "TextClassifier"),
    "sentiment": ("elmokit.tasks.classification", "TextClassifier"),
    "ner": ("elmokit.tasks.ner", "NerTagger"),
    "nli": ("elmokit.tasks.nli", "EntailmentClassifier"),
    "pos": ("elmokit.tasks.pos", "PosTagger"),
    "qa": ("elmokit.tasks.question_answering", "QuestionAnswerer"),
    "relation": ("elmokit.tasks.relation", "RelationClassifier"),
    "similarity": ("elmokit.tasks.pair_similarity", "SimilarityScorer"),
    "srl": ("elmokit.tasks.srl", "RoleLabeller"),
    "coref": ("elmokit.tasks.coref", "CoreferenceResolver"),
}
"""Module and class of each task. sentiment is another name for classify."""
