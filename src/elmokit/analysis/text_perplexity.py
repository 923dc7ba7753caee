"""Perplexity of a model on text files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.analysis.texts import n_bytes, read_sentences, up_to
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.inference.perplexity import Perplexity
from elmokit.inference.scoring import Score
from elmokit.io.progress import DelayedProgress
from elmokit.pretrain.run.folder import RunFolder


def perplexity_of_files(
    elmo: Elmo,
    paths: Sequence[Path],
    *,
    tokenized: bool = False,
    max_tokens: int | None = None,
) -> Perplexity:
    """Compute a model's full-softmax perplexity on text files, each sentence alone.

    Args:
        elmo: A model with a softmax.
        paths: Text files and folders.
        tokenized: Whether each line is one sentence with tokens separated by white space.
        max_tokens: Score at most this many tokens; the last sentence is cut. None scores all.
    """
    return Perplexity.from_scores(
        score_files(elmo, paths, tokenized=tokenized, max_tokens=max_tokens)
    )


def score_files(
    elmo: Elmo,
    paths: Sequence[Path],
    *,
    tokenized: bool = False,
    max_tokens: int | None = None,
) -> Iterator[Score]:
    """Score every sentence of some text files, with a progress bar.

    Args:
        elmo: A model with a softmax.
        paths: Text files and folders.
        tokenized: Whether each line is one sentence with tokens separated by white space.
        max_tokens: Score at most this many tokens; the last sentence is cut. None scores all.
    """
    if max_tokens is not None and max_tokens < 1:
        raise InputError(f"max_tokens= must be at least 1, not {max_tokens}")
    empty = True
    total, unit = (n_bytes(paths), "bytes") if max_tokens is None else (max_tokens, "tokens")
    with DelayedProgress("scoring", total, unit) as bar:
        if max_tokens is None:
            sentences = read_sentences(elmo, paths, tokenized, bar.advance)
        else:
            sentences = up_to(read_sentences(elmo, paths, tokenized), max_tokens)
        for score in elmo.stream_scores(sentences):
            empty = False
            if max_tokens is not None:
                bar.advance(len(score.tokens))
            yield score
    if empty:
        raise InputError(f"no tokens found in {', '.join(map(str, paths))}; expected text")


def reads_tokenized(model: str | Path) -> bool:
    """Return whether a model is the folder of a training run whose text was tokenised.

    Text for such a model should be read the same way, unless the user chooses a tokenizer.
    """
    run = RunFolder(Path(model))
    return run.is_begun and run.recipe().text.tokenized
