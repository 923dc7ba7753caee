"""Perplexity of a model's folder on text files."""

from elmokit import Elmo
from elmokit.analysis.text_perplexity import perplexity_of_files, reads_tokenized


def evaluate_model(model, paths, tokenizer=None, tokenized=False, device="cpu"):
    """Read the text as ``elmokit perplexity`` does: as the run did, unless told otherwise."""
    tokenized = tokenized or (tokenizer is None and reads_tokenized(model))
    split = "whitespace" if tokenized else tokenizer
    elmo = Elmo.load(model, tokenizer=split, device=device)
    return perplexity_of_files(elmo, paths, tokenized=tokenized)
