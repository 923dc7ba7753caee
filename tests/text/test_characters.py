"""Alphabets: words as character ids."""

import torch

from elmokit.config import TokenEncoderConfig
from elmokit.text.characters import CodepointAlphabet, Utf8Alphabet


def test_bytes_are_cut_and_marked():
    alphabet = Utf8Alphabet(TokenEncoderConfig(filters=((1, 1), (7, 1))))
    ids = alphabet.encode(["ab", "<S>", "</S>", "é" * 30, ""], columns=50)
    assert ids[0, :5].tolist() == [259, ord("a") + 1, ord("b") + 1, 260, 261]
    assert ids[1, :4].tolist() == [259, 257, 260, 261]
    assert ids[2, :4].tolist() == [259, 258, 260, 261]
    assert ids[3].tolist() == [259, *([0xC3 + 1, 0xA9 + 1] * 24), 260]
    assert ids[4, :3].tolist() == [259, 260, 261]
    assert alphabet.encode(["abc", "<S>"]).shape == (2, 3 + 2 + 7)
    assert alphabet.encode(["a" * 45]).shape == (1, 50)
    assert alphabet.encode(["<S>", "a"])[0, :5].tolist() == [259, 257, 260, 261, 261]


def test_trimming_never_changes_a_vector(tiny):

    encoder, alphabet = tiny.bilm.token_encoder, tiny.alphabet
    for word in ["a", "ab" * 10, "x" * 46, "y" * 48, "é"]:
        ids = torch.from_numpy(alphabet.encode([word]))
        whole = torch.from_numpy(alphabet.encode([word], 50))
        assert ids.shape[1] == min(50, len(word.encode()) + 2 + 3)
        torch.testing.assert_close(encoder(ids), encoder(whole), rtol=1e-5, atol=1e-6)


def test_code_points_swap_the_markers():
    characters = ["a", "b", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
    config = TokenEncoderConfig(filters=((1, 1),), max_characters=6, alphabet="codepoints")
    alphabet = CodepointAlphabet(config, characters)
    ids = alphabet.encode(["ab?", "<bos>", "abababab"], 6).tolist()
    assert ids[0] == [8, 1, 2, 5, 7, 6]
    assert ids[1] == [8, 3, 7, 6, 6, 6]
    assert ids[2] == [8, 1, 2, 1, 2, 7]
