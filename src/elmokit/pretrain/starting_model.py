"""What a new run starts with: sizes, vocabulary and, from a model, its weights."""

from __future__ import annotations

from dataclasses import replace

from elmokit.config import TokenEncoderConfig
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.pretrain.checks import keeps_vocabulary
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.target_words import choose_characters, choose_words, first_biases
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.paths import Start
from elmokit.pretrain.warm_start import cutoffs, with_words
from elmokit.text.characters import CodepointAlphabet
from elmokit.text.vocabulary import Vocabulary

_CHARACTERS = ("<pad>", "<oov>", "<bow>", "<eow>")
"""The characters that every alphabet of code points has, even if the model reads whole words."""


def starting_model(
    recipe: Recipe, train: Corpus, model: Checkpoint | None, words: list[str] | None, start: Start
) -> Checkpoint:
    """Return the model to train, with the weights that are known.

    Args:
        recipe: A complete recipe.
        train: The text to train on.
        model: The model to start from, if any.
        words: The vocabulary from a file; None for the model's, or the words of the text.
        start: What the run starts from.
    """
    tokenizer = recipe.text.chosen_tokenizer
    if model is not None and keeps_vocabulary(model, recipe.text, start):
        return replace(model, config=replace(model.config, tokenizer=tokenizer))
    if words is None:
        words = choose_words(train, recipe.text.vocabulary_size, recipe.text.min_count)
    if model is not None:
        base = with_words(model, words, recipe.softmax)
        base = replace(base, config=replace(base.config, tokenizer=tokenizer))
    else:
        base = _new_model(recipe, train, words, tokenizer)
    if recipe.softmax.frequencies and not any(k.startswith(SOFTMAX) for k in base.tensors):
        base = replace(base, tensors=base.tensors | first_biases(base.config, train, words))
    return base


def _new_model(recipe: Recipe, train: Corpus, words: list[str], tokenizer: str) -> Checkpoint:
    """Return sizes and vocabulary of a model without weights."""
    config = replace(
        recipe.model,
        vocabulary_size=len(words),
        softmax_cutoffs=cutoffs(recipe.softmax, len(words)),
        tokenizer=tokenizer,
    )
    if recipe.encoder == "char_cnn" and config.token_encoder.alphabet == "utf8":
        return Checkpoint(config, {}, words)
    if recipe.encoder == "char_cnn":
        marks = [*_CHARACTERS, CodepointAlphabet.begin, CodepointAlphabet.end]
        most = config.token_encoder.n_characters - len(marks)
        characters = [*marks, *choose_characters(train, most)]
        encoder = replace(config.token_encoder, n_characters=len(characters))
        return Checkpoint(replace(config, token_encoder=encoder), {}, words, characters)
    known = ["<oov>", "<bos>", "<eos>", *(word for word in words if word not in Vocabulary.marks)]
    encoder = TokenEncoderConfig(
        filters=(),
        n_highway=0,
        alphabet="codepoints",
        n_characters=len(_CHARACTERS),
        word_dim=config.context.projection_dim,
        n_words=len(known),
    )
    config = replace(config, token_encoder=encoder)
    return Checkpoint(config, {}, words, list(_CHARACTERS), known)
