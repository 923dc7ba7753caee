"""``elmokit perplexity-by``: perplexity by position and by word frequency."""

from __future__ import annotations

from elmokit.cli.options import ModelOptions, MostTokens, TextsArgument, TokenizedOption, with_model
from elmokit.cli.output import give
from elmokit.cli.places import OutOption


@with_model()
def perplexity_by(
    text: TextsArgument,
    model: ModelOptions,
    max_tokens: MostTokens = None,
    tokenized: TokenizedOption = False,
    out: OutOption = None,
) -> None:
    """Print perplexity by position in the sentence and by word frequency.

    Positions count from the start of the sentence for both directions. Ranks are places in the
    model's vocabulary, which starts with the most frequent words.
    """
    from elmokit.analysis.perplexity_bands import perplexity_of_text

    elmo = model.load(tokenized)
    found = perplexity_of_text(elmo, text, max_tokens, tokenized)
    give(found.report(), out, elmo, text=text, max_tokens=max_tokens, tokenized=tokenized)
