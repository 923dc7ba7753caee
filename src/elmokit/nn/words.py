"""Distinct words to token vectors: the one way through the character CNN.

Every caller encodes each distinct word once. :func:`encode_ids` takes character ids and keeps
gradients, for task models and pretraining. :func:`encode_words` takes strings, for inference and
``init_from``; the cache of :mod:`elmokit.inference.word_cache` sits on top of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.devices import is_out_of_memory, to_device
from elmokit.text.characters import Alphabet

# words of similar length, and columns × words, that go through the CNN together: bounds memory
_WORDS_AT_ONCE, _GPU_WORDS_AT_ONCE = 1024, 8192
_CHARACTERS_AT_ONCE, _GPU_CHARACTERS_AT_ONCE = 16_384, 262_144


@torch.no_grad()
def encode_words(encoder: nn.Module, alphabet: Alphabet, words: Sequence[str]) -> Tensor:
    """Token vectors (1 + W, P) of distinct words, in their order; row 0 is zeros, for padding.

    Words go through the CNN in groups of similar length, without gradients. If memory runs out, the
    groups become smaller.

    Args:
        encoder: From ids (W, C) to token vectors (W, P).
        alphabet: Makes the ids.
        words: W words, at least one.
    """
    device = next(encoder.parameters()).device
    group, characters = _WORDS_AT_ONCE, _CHARACTERS_AT_ONCE
    if device.type != "cpu":
        group, characters = _GPU_WORDS_AT_ONCE, _GPU_CHARACTERS_AT_ONCE
    order = sorted(range(len(words)), key=lambda i: len(words[i]))
    result: Tensor | None = None
    done = 0
    while done < len(order):
        some = order[done : done + group]
        codes = alphabet.encode([words[i] for i in some])
        group = min(group, max(1, characters // codes.shape[1]))  # the words to come are longer
        some = some[:group]
        try:
            vectors = encode_ids(encoder, to_device(torch.from_numpy(codes[: len(some)]), device))
            if result is None:
                result = vectors.new_zeros(1 + len(words), vectors.shape[1])
            result[to_device(torch.tensor(some) + 1, device)] = vectors
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if len(some) == 1 or not is_out_of_memory(error):
                raise
            group = len(some) // 2
        else:
            done += len(some)
    assert result is not None
    return result


def encode_ids(
    encoder: nn.Module,
    ids: Tensor,
    groups: Sequence[tuple[int, int]] | None = None,
    n_columns: int | None = None,
) -> Tensor:
    """Token vectors (W, P) of words given as ids.

    Args:
        encoder: From ids (W, C) to token vectors (W, P).
        ids: (W, C), or (W, C + 1) with the word's own id in the last column.
        groups: (end, columns) of consecutive words that need no more character columns than that;
            None for all words and columns at once.
        n_columns: C, needed with groups.
    """
    if groups is None:
        return encoder(ids)
    parts, start = [], 0
    for end, columns in groups:
        some = ids[start:end]
        if n_columns is not None and columns < n_columns:
            some = torch.cat([some[:, :columns], some[:, n_columns:]], 1)
        parts.append(encoder(some))
        start = end
    return torch.cat(parts)
