"""Compare with vectors of the original software on its own published test models.

Expected values: bilm-tf and AllenNLP published lm_embeddings_* and elmo_token_embeddings.
simple-elmo 0.9.2 with TensorFlow 2.21 produced tf_bilm, and elmoformanylangs 0.0.4.post2 produced
efml_tiny.
"""

import json

import h5py
import numpy as np
import pytest

from elmokit import CarriedState, Elmo

PUBLISHED = [("allennlp/elmo", "sentences.json"), ("bilm-tf/model", "lm_embeddings_sentences.json")]


def assert_same(vectors, expected):
    """Allow 5e-6, relative to the largest value if that is above 1."""
    atol = 5e-6 * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(vectors, expected, atol=atol, rtol=0)


@pytest.mark.parametrize(("folder", "sentences"), PUBLISHED)
def test_published_vectors_with_carried_state(fixtures, folder, sentences):
    elmo = Elmo.load(fixtures / folder, device="cpu")
    streams = json.loads((fixtures / folder / sentences).read_text())
    expected = [h5py.File(fixtures / folder / f"lm_embeddings_{k}.hdf5") for k in range(3)]
    carried = CarriedState()
    for i in range(10):
        vectors = elmo.encode([stream[i] for stream in streams], "top", state=carried)
        for k in range(3):
            published = np.concatenate(list(expected[k][str(i)][()]), -1)  # forward | backward
            assert_same(vectors[k], published)
    # without carried state, only the first sentences agree
    vectors = elmo.encode([stream[1] for stream in streams], "top")
    published = np.concatenate(list(expected[0]["1"][()]), -1)
    assert np.abs(vectors[0] - published).max() > 0.1


def test_published_token_embeddings(fixtures):
    folder = fixtures / "allennlp/elmo"
    elmo = Elmo.load(folder, device="cpu")
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").splitlines()
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        published = file["embedding"][()]
    (vectors,) = elmo.encode([words], layers=0)
    assert len(words) == 458
    assert_same(vectors[:, :16], published)
    np.testing.assert_array_equal(vectors[:, :16], vectors[:, 16:])


def test_published_token_embeddings_as_text(fixtures):
    """The model of pytorch-fast-elmo has 261 characters in its options."""
    elmo = Elmo.load(fixtures / "pytorch-fast-elmo", device="cpu")
    for line in (fixtures / "pytorch-fast-elmo/lm_embd.txt").read_text().splitlines():
        word, *numbers = line.split(" ")
        (vectors,) = elmo.encode([[word]], layers=0)
        assert_same(vectors[0, :16], np.array(numbers, float))


@pytest.mark.parametrize(
    ("folder", "name"), [("allennlp/elmo", "skip_true"), ("bilm-tf/model", "skip_false")]
)
def test_all_layers_on_hard_tokens(fixtures, folder, name):
    elmo = Elmo.load(fixtures / folder, device="cpu")
    sentences = json.loads((fixtures / "generated/tf_bilm/sentences.json").read_text())
    expected = np.load(fixtures / f"generated/tf_bilm/{name}.npz")
    for i, layers in enumerate(elmo.encode(sentences, "all")):
        assert_same(layers, expected[f"zero_state_{i}"])


@pytest.mark.parametrize(
    ("folder", "name"), [("allennlp/elmo", "skip_true"), ("bilm-tf/model", "skip_false")]
)
@pytest.mark.parametrize(
    ("layer_norm", "key"), [(False, "batch_mix"), ("bilm-tf", "batch_mix_layernorm")]
)
def test_mix_as_in_bilm_tf(fixtures, folder, name, layer_norm, key):
    from elmokit.nn import ElmoEmbedding

    elmo = Elmo.load(fixtures / folder, device="cpu")
    sentences = json.loads((fixtures / "generated/tf_bilm/sentences.json").read_text())
    expected = np.load(fixtures / f"generated/tf_bilm/{name}.npz")
    embedding = ElmoEmbedding(elmo, dropout=0, layer_norm=layer_norm)
    (mix,), mask = embedding(sentences)
    np.testing.assert_array_equal(mask.numpy(), expected["batch_mask"].astype(bool))
    assert_same(mix.detach().numpy()[mask], expected[key][mask])


@pytest.mark.parametrize("name", ["word_char", "char_only"])
def test_elmo_for_many_langs(fixtures, name):
    folder = fixtures / "generated/efml_tiny"
    elmo = Elmo.load(folder / f"{name}.model", device="cpu")
    sentences = json.loads((folder / "sentences.json").read_text())
    expected = np.load(folder / f"{name}_expected.npz")
    for i, layers in enumerate(elmo.encode(sentences, "all")):
        assert layers.shape == expected[f"zero_state_{i}"].shape
        assert_same(layers, expected[f"zero_state_{i}"])


@pytest.mark.parametrize("language", ["es", "fr", "it"])
def test_training_options_load(fixtures, language):
    """Options may contain all keys of training, such as n_tokens_vocab and unroll_steps."""
    elmo = (
        Elmo.load(fixtures / "allennlp/elmo_multilingual" / language, device="cpu")
        if (language != "fr")
        else Elmo.load(
            options=fixtures / "allennlp/elmo_multilingual/fr/options.json",
            weights=fixtures / "allennlp/elmo_multilingual/fr/weights.hdf5",
            device="cpu",
        )
    )
    (vectors,) = elmo.encode(["Una frase"])
    assert vectors.shape == (2, 32)
    assert np.isfinite(vectors).all()


def test_folder_with_two_weights_is_an_error(fixtures):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match="weights_zero.hdf5"):
        Elmo.load(fixtures / "allennlp/elmo_multilingual/fr")
