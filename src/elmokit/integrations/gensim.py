"""gensim: the vectors of a model's token layer as word vectors.

The token layer does not see the context, so a word has one vector, as in word2vec and GloVe.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elmokit.arguments import file_path, flag, instance, strings
from elmokit.elmo import Elmo
from elmokit.errors import InputError, MissingExtraError, shown
from elmokit.io.atomic import check_place, new_file

if TYPE_CHECKING:
    from gensim.models import KeyedVectors

_WORDS_AT_ONCE = 4096
_SEPARATORS = " \t\n\r\v\f"  # end a word in a word2vec file


def to_keyed_vectors(elmo: Elmo, words: Iterable[str] | None = None) -> KeyedVectors:
    """Vectors of words from the token layer, for gensim's searches and file formats.

    The token layer contains the same P numbers twice, once per direction. They are taken once.

    Args:
        elmo: A loaded model.
        words: The words; a repeated word counts once. Any word has a vector, because the model
            reads characters. Default: the vocabulary of the model, without its special tokens.

    Returns:
        A gensim ``KeyedVectors`` of P numbers per word, in the order of the words. Each word has
        the count that gensim gives to the words of a file: the number of words from it to the end.

    Examples:
        >>> from elmokit import Elmo
        >>> vectors = to_keyed_vectors(Elmo.load(), ["walk", "walked", "walking", "bank"])
        >>> vectors.most_similar("walk", topn=1)[0][0]
        'walked'
    """
    try:
        from gensim.models import KeyedVectors
    except ModuleNotFoundError as error:
        raise MissingExtraError("gensim", "gensim", "to_keyed_vectors") from error
    instance(elmo, "elmo", Elmo, "a model from Elmo.load()")
    chosen = _words(elmo, words)
    size = elmo.config.context.projection_dim
    found = np.empty((len(chosen), size), np.float32)
    for start in range(0, len(chosen), _WORDS_AT_ONCE):
        some = [[word] for word in chosen[start : start + _WORDS_AT_ONCE]]
        layers = elmo.encode(some, 0, progress=False)
        found[start : start + len(some)] = np.concatenate(layers)[:, :size]
    vectors = KeyedVectors(size)
    vectors.add_vectors(chosen, found)
    for i, word in enumerate(chosen):  # without counts, gensim logs a warning when it writes
        vectors.set_vecattr(word, "count", len(chosen) - i)
    return vectors


def save_word2vec(vectors: KeyedVectors, path: str | Path, *, binary: bool = False) -> None:
    """Write vectors in the word2vec format, which gensim and many other tools read.

    Args:
        vectors: From :func:`to_keyed_vectors`, or any other ``KeyedVectors``.
        path: The file, replaced when the new one is complete. ``.gz`` or ``.bz2`` compress it.
        binary: The binary format of word2vec, about a third of the size, instead of text.
    """
    place = file_path(path, "path").expanduser()
    flag(binary, "binary")
    for word in vectors.index_to_key:
        if set(str(word)) & set(_SEPARATORS):
            raise InputError(
                f"the word {shown(word)} contains white space, which ends a word in a word2vec "
                "file; leave it out, or replace the space, for instance with _"
            )
    check_place(place)
    with new_file(place) as new:
        vectors.save_word2vec_format(str(new), binary=binary)


def _words(elmo: Elmo, words: Iterable[str] | None) -> list[str]:
    """Distinct words in their order."""
    if words is not None:
        chosen = list(dict.fromkeys(strings(words, "words")))
    elif elmo.vocabulary is not None:
        chosen = [word for word in elmo.vocabulary.words if word not in elmo.vocabulary.marks]
    else:
        raise InputError("this model has no vocabulary; pass words=, a list of words")
    if not chosen or "" in chosen:
        raise InputError("words must be one or more words, none of them empty")
    return chosen
