"""Vectors of sentences and phrases."""

import numpy as np
import pytest

from elmokit.errors import InputError
from helpers.numbers import assert_close


@pytest.mark.parametrize("pooling", ["mean", "max", "first-last"])
def test_sentence_vectors_ignore_padding(tiny, pooling):
    texts = ["one", "a much longer sentence than the first", "", "three words here"]
    together = tiny.encode_sentences(texts, pooling=pooling)
    assert together.shape == (4, 16)
    assert not together[2].any()
    for text, vector in zip(texts, together, strict=True):
        assert_close(tiny.encode_sentences(text, pooling=pooling), vector)
    tokens = tiny.encode(texts[1])
    expected = {
        "mean": tokens.mean(0),
        "max": tokens.max(0),
        "first-last": np.concatenate([tokens[-1, :8], tokens[0, 8:]]),
    }[pooling]
    assert_close(together[1], expected)
    assert tiny.encode_sentences(texts, "all", pooling=pooling).shape == (4, 3, 16)
    assert tiny.encode_sentences([]).shape == (0, 16)


def test_spans_are_pooled_by_characters_and_by_tokens(tiny):
    text = "He moved to New York"
    tokens = tiny.encode(text)
    spans = tiny.encode_spans(text, [(12, 20), (0, 2), (13, 14)])
    assert_close(spans[0], tokens[3:5].mean(0))
    assert_close(spans[1], tokens[0])
    assert_close(spans[2], tokens[3])  # part of a token counts as the whole
    by_token = tiny.encode_spans(text.split(), [(3, 5)])
    assert_close(by_token[0], spans[0])
    by_token = tiny.encode_spans(text, [(3, 5)], unit="tokens", layers="all", pooling="max")
    assert by_token.shape == (1, 3, 16)
    assert tiny.encode_spans(text, []).shape == (0, 16)


def test_spans_outside_the_text_are_refused(tiny):
    text = "He moved to New York"
    for wrong in [(5, 5), (2, 3), (30, 40), (8, 2), (-8, 20)]:
        with pytest.raises(InputError, match="covers no token"):
            tiny.encode_spans(text, [wrong])
    with pytest.raises(InputError, match="sentence of 5 tokens"):
        tiny.encode_spans(text.split(), [(3, 6)])
    with pytest.raises(InputError, match="need the raw string"):
        tiny.encode_spans(text.split(), [(3, 5)], unit="characters")
