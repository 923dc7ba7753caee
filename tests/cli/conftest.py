"""Arguments for commands that write a report, and models for those about tasks."""

import pytest

from helpers.task_data import FILES, write_files

TEXT = "the cat sat on a mat .\na cat sat on the mat .\n" * 5


@pytest.fixture
def arguments(tmp_path):
    """Small arguments for each command that writes a report."""
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    rows = "".join(f"{i}\t{w}\t_\t{t}\n" for i, w, t in [(1, "a", "DET"), (2, "cat", "NOUN")])
    tagged = tmp_path / "tagged.conllu"
    tagged.write_text((rows + "\n") * 4, encoding="utf-8")
    return {
        "similarity": ["the cat", "a cat"],
        "scatter": ["--word", "bank"],
        "surprisal": ["the cat sat"],
        "perplexity": [text],
        "perplexity-by": [text, "--max-tokens", 20],
        "geometry": [text, "--max-tokens", 20],
        "change": [text, text, "--words", "cat"],
        "probe pos": [tagged, tagged],
        "embed": [text, tmp_path / "vectors.h5"],
        "train": ["ner", "--train", tagged, "--dev", tagged, "--out", tmp_path / "model"],
        "index": [text, "--out", tmp_path / "index"],
        "plan": ["1e9"],
        "serve": [],
    }


@pytest.fixture(scope="session")
def trained(tmp_path_factory, tiny_folder):
    """A folder with files and a trained model of every task."""
    from elmokit import Elmo
    from elmokit.tasks import task_class

    folder = tmp_path_factory.mktemp("tasks")
    write_files(folder)
    settings = {"model": {"hidden_dim": 4}, "training": {"epochs": 1}}
    for name, suffix in FILES.items():
        task_class(name).train(
            folder / f"train.{suffix}",
            folder / f"dev.{suffix}",
            elmo=Elmo.load(tiny_folder, tokenizer="english", device="cpu"),
            settings=settings,
            out=folder / name,
        )
    return folder
