"""The tasks and the bundled models by name, without importing them: --help stays quick."""

from __future__ import annotations

from pathlib import Path

BUNDLED = Path(__file__).parent / "models"
"""Folder of the task models in the package."""
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


def bundled_tasks() -> list[str]:
    """Return the names of the task models in the package; a name is that of its task."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/task.json"))
