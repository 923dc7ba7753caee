"""Arguments for commands that write a report."""

import pytest

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
    }
