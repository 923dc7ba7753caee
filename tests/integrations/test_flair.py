"""flair: embeddings, their names, and what flair writes into a saved model."""

import shutil

import h5py
import numpy as np
import pytest
import torch

# ruff: noqa: E402  # without flair, nothing below can be imported
flair = pytest.importorskip("flair", reason="flair is not installed: pip install 'elmokit[flair]'")

from flair.data import Sentence
from flair.embeddings.base import load_embeddings

from elmokit import Elmo, FormatError, InputError, ModelNotFoundError
from elmokit.integrations.flair import DOWNLOADS, ELMoEmbeddings
from helpers.models import SENTENCES, TINY, write_published

LAYERS = {"all": "all", "top": "top", "average": "average", "mix": "average"}
"""What the modes are in ElmoKit; the weights of a new mix are equal."""


def made(sentences=SENTENCES):
    return [Sentence(list(words)) for words in sentences]


def vectors(sentence, name):
    rows = [token.get_embedding([name]).detach().cpu().numpy() for token in sentence]
    return np.array(rows)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def flat(layers):
    """Layers (K, T, D) as (T, K · D), or (T, D) as it is."""
    return layers if layers.ndim == 2 else np.concatenate(list(layers), axis=-1)


@pytest.mark.parametrize("mode", LAYERS)
def test_ragged_batches_equal_encode(mode, tiny, tiny_folder):
    embeddings = ELMoEmbeddings(tiny_folder, embedding_mode=mode)
    sentences = made()
    assert [[token.text for token in s] for s in sentences] == SENTENCES
    assert embeddings.embed(sentences) is sentences
    expected = tiny.encode(SENTENCES, LAYERS[mode])
    for sentence, array in zip(sentences, expected, strict=True):
        if len(sentence):
            close(vectors(sentence, embeddings.name), flat(array))
            assert sentence[0].embedding.device == flair.device
            assert sentence[0].embedding.shape == (embeddings.embedding_length,)
    alone = Sentence(list(SENTENCES[2]))
    embeddings.embed(alone)
    close(vectors(alone, embeddings.name), vectors(sentences[2], embeddings.name))


def test_all_begins_with_the_token_layer(tiny, tiny_folder):
    embeddings, sentence = ELMoEmbeddings(tiny_folder), Sentence(["a", "cat"])
    embeddings.embed(sentence)
    assert embeddings.embedding_length == 3 * tiny.dim
    found = vectors(sentence, embeddings.name).reshape(2, 3, tiny.dim)
    for k in range(3):
        close(found[:, k], tiny.encode([["a", "cat"]], k)[0])


def test_only_empty_sentences(tiny_folder):
    sentences = made([[], []])
    ELMoEmbeddings(tiny_folder).embed(sentences)
    assert [len(sentence) for sentence in sentences] == [0, 0]


@pytest.mark.parametrize("model", ["en", "zh"])
def test_bundled_models(model):
    words = {"en": ["I", "sat", "by", "the", "bank", "."], "zh": ["他", "坐在", "河", "边", "。"]}
    embeddings, sentence = ELMoEmbeddings(model), Sentence(words[model])
    embeddings.embed(sentence)
    elmo = Elmo.load(model, device="cpu")
    close(vectors(sentence, embeddings.name), flat(elmo.encode([words[model]], "all")[0]))
    assert embeddings.name == f"elmo-{model}-all"
    assert embeddings.embedding_length == 3 * elmo.dim


def test_the_default_is_english():
    assert ELMoEmbeddings(embedding_mode="top").name == "elmo-en-top"


def test_options_and_weights(tiny, tiny_folder):
    files = tiny_folder / "options.json", tiny_folder / "weights.hdf5"
    for model in (None, "original"):
        embeddings = ELMoEmbeddings(model, str(files[0]), str(files[1]), "top")
        sentence = Sentence(["a", "cat"])
        embeddings.embed(sentence)
        close(vectors(sentence, embeddings.name), tiny.encode([["a", "cat"]], "top")[0])
        label = model or tiny_folder.name
        assert embeddings.name.startswith(f"elmo-{label}-") & embeddings.name.endswith("-top")
    for name, path in zip(("options_file", "weight_file"), files, strict=True):
        with pytest.raises(InputError, match="options_file= and weight_file= belong together"):
            ELMoEmbeddings(**{name: path})


def test_mistakes(tmp_path, monkeypatch):
    for name in DOWNLOADS:
        with pytest.raises(ModelNotFoundError, match="options_file= and weight_file="):
            ELMoEmbeddings(name)
    with pytest.raises(ModelNotFoundError, match="there is no model 'nothing'"):
        ELMoEmbeddings("nothing")
    with pytest.raises(InputError, match="embedding_mode must be all, top, average or mix"):
        ELMoEmbeddings(embedding_mode="last")
    write_published(tmp_path / "small", TINY)  # a name that flair downloaded, but a model here
    monkeypatch.setenv("ELMOKIT_MODELS", str(tmp_path))
    assert ELMoEmbeddings("small").embedding_length == 3 * 16


def test_how_it_shows(tiny_folder):
    embeddings = ELMoEmbeddings(tiny_folder, embedding_mode="top")
    assert str(embeddings) == embeddings.name
    assert repr(embeddings) == f"ELMoEmbeddings(model={embeddings.name})"
    assert embeddings.embedding_type == "word-level"
    assert embeddings.get_names() == [embeddings.name]


def test_names_differ_if_weights_differ(tmp_path):
    """A token has one vector per name, and flair takes those of a name as computed."""
    names = set()
    for seed in range(2):
        folder = write_published(tmp_path / str(seed) / "best", TINY, seed)
        names.add(ELMoEmbeddings(folder).name)
    assert len(names) == 2


@pytest.mark.parametrize("mode", LAYERS)
def test_static_embeddings_are_computed_once(mode, tiny_folder, monkeypatch):
    embeddings, calls = ELMoEmbeddings(tiny_folder, embedding_mode=mode), []
    encode = embeddings.elmo.encode
    monkeypatch.setattr(
        embeddings.elmo, "encode", lambda *a, **k: calls.append(a) or encode(*a, **k)
    )
    sentences = made()
    for _ in range(3):
        embeddings.embed(sentences)
    assert embeddings.static_embeddings == (mode != "mix")
    assert len(calls) == (3 if mode == "mix" else 1)


def test_the_mix_is_learned(tiny, tiny_folder):
    embeddings, sentences = ELMoEmbeddings(tiny_folder, embedding_mode="mix"), made()
    embeddings.embed(sentences)
    sum(token.embedding.square().sum() for s in sentences for token in s).backward()
    assert all(parameter.grad.abs().min() > 0 for parameter in embeddings.parameters())
    assert {name for name, _ in embeddings.named_parameters()} == {"mix.weights", "mix.gamma"}
    with torch.no_grad():
        embeddings.mix.weights.copy_(torch.tensor([0.5, -1.0, 2.0]))
        embeddings.mix.gamma.fill_(3.0)
        embeddings.embed(sentences)  # replaces the vectors, although these have no gradients
        before = vectors(sentences[0], embeddings.name)
        embeddings.mix.gamma.fill_(6.0)
        embeddings.embed(sentences)
    close(vectors(sentences[0], embeddings.name), 2 * before)
    share = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    close(before, 3 * np.tensordot(share, tiny.encode([SENTENCES[0]], "all")[0], 1))


@pytest.mark.parametrize("mode", LAYERS)
def test_saved_embeddings(mode, tiny_folder):
    embeddings = ELMoEmbeddings(tiny_folder, embedding_mode=mode)
    if mode == "mix":
        torch.nn.init.normal_(embeddings.mix.weights)
    saved = embeddings.save_embeddings()
    n_numbers = sum(tensor.numel() for tensor in saved["state_dict"].values())
    assert n_numbers == (4 if mode == "mix" else 0)  # the biLM is not in it
    again = load_embeddings(saved)
    assert (again.name, again.embedding_mode) == (embeddings.name, mode)
    ours, theirs = made(), made()
    embeddings.embed(ours)
    again.embed(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if len(one):
            close(vectors(other, again.name), vectors(one, again.name))


def test_a_bundled_model_is_saved_by_name(tmp_path, monkeypatch):
    saved = ELMoEmbeddings("en").save_embeddings()
    name, files, sha256 = saved["model"]
    assert (name, files, len(sha256)) == ("en", (), 64)
    write_published(tmp_path / "en", TINY)  # not this one
    monkeypatch.chdir(tmp_path)
    assert load_embeddings(saved).elmo.dim == 768
    with pytest.raises(FormatError, match="another biLM than the one in zh"):
        ELMoEmbeddings.from_params(
            {"model": ("zh", (), sha256), "embedding_mode": "all", "name": "x"}
        )


@pytest.mark.parametrize("as_files", [False, True])
def test_another_model_is_saved_by_path(as_files, tmp_path, monkeypatch):
    folder = write_published(tmp_path / "my-elmo", TINY)
    monkeypatch.chdir(tmp_path)
    given = {"model": "my-elmo"}
    if as_files:
        given = {"options_file": "my-elmo/options.json", "weight_file": "my-elmo/weights.hdf5"}
    params = ELMoEmbeddings(**given).to_params()
    monkeypatch.chdir("/")
    again = ELMoEmbeddings.from_params(params)
    assert again.to_params() == params
    moved = tmp_path / "elsewhere" / "my-elmo"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    with pytest.raises(ModelNotFoundError, match="put it as my-elmo into a folder of .ELMOKIT_"):
        ELMoEmbeddings.from_params(params)
    monkeypatch.setenv("ELMOKIT_MODELS", str(moved.parent))
    found = ELMoEmbeddings.from_params(params)
    assert found.name == again.name
    assert found.to_params()["model"].files == (str(moved),)
    with h5py.File(moved / "weights.hdf5", "r+") as file:
        file["char_embed"][0, 0] += 1
    with pytest.raises(FormatError, match="the weights differ"):
        ELMoEmbeddings.from_params(params)
