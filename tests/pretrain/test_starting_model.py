"""What a run starts with: biases, a vocabulary, or a model and its tokenizer."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.formats import read_model
from elmokit.formats.checkpoint import SOFTMAX
from elmokit.nn.softmax import make_softmax
from elmokit.pretrain.data.negatives import Negatives
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.target_words import first_biases
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.recipe_sections import SoftmaxSettings
from elmokit.pretrain.run.paths import Start
from elmokit.pretrain.starting_model import starting_model
from elmokit.pretrain.warm_start import token_vectors, with_words
from elmokit.text.vocabulary import Vocabulary
from helpers.perplexity import evaluate_model
from helpers.pretraining import recipe, run, sentences


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_biases_begin_as_frequencies(tmp_path, kind):
    """Before training, the probability of a word is its relative frequency."""
    path = tmp_path / "text"
    path.write_text("a a a a b b c\na b d\n")
    corpus = prepare([path], tmp_path / "data", TextOptions(tokenized=True))
    words = [*Vocabulary.marks, "a", "b", "c", "never"]
    config = replace(
        Recipe().model, vocabulary_size=7, softmax_cutoffs=(3, 5) if kind == "adaptive" else ()
    )
    softmax = make_softmax(config)
    found = first_biases(config, corpus, words)
    softmax.load_state_dict(
        softmax.state_dict() | {name.removeprefix(SOFTMAX): t for name, t in found.items()}
    )
    shares = softmax(torch.zeros(1, softmax.input_dim)).exp()[0]
    # each mark by one direction alone, 1 unknown, 5 + 3 + 1 words, and one that never occurs
    expected = torch.tensor([1, 1, 1, 5, 3, 1, 1]) / 13
    if kind == "adaptive":  # within a cluster, words have no biases
        expected[3:5] = expected[3:5].mean()
    torch.testing.assert_close(shares, expected)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_biases_of_another_softmax(text, tmp_path, kind):
    """Frequencies are used only if the biases cannot be taken from the model."""
    run(text, tmp_path / "first", recipe(training={"epochs": 0.5}))
    model = read_model(str(tmp_path / "first" / "best"))
    settings = recipe(softmax={"kind": kind, "cutoffs": [5, 10]})
    corpus = prepare(text[0], tmp_path / "data", TextOptions(tokenized=True))
    words = [*model.vocabulary, "new"]
    settings = settings.changed({"text": {"new_vocabulary": True}})
    base = starting_model(settings, corpus, model, words, Start())
    if kind == "full":
        guessed = with_words(model, words, settings.softmax).tensors
        assert torch.equal(base.tensors[SOFTMAX + "bias"], guessed[SOFTMAX + "bias"])
    else:
        expected = first_biases(base.config, corpus, words)
        assert {k: v for k, v in base.tensors.items() if k.startswith(SOFTMAX)}.keys() == (
            expected.keys()
        )


def test_biases_from_zero(text, tmp_path):
    """A tiny learning rate shows what a run starts with."""
    settings = {"training": {"epochs": 0.5}, "optimizer": {"learning_rate": 1e-12}}
    found = {}
    for name, frequencies in (("frequent", True), ("zero", False)):
        softmax = {"frequencies": frequencies}
        found[name] = run(text, tmp_path / name, recipe(softmax=softmax, **settings)).mean
    assert found["frequent"] < 0.7 * found["zero"]


def test_a_given_vocabulary(text, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("</S>\n<S>\n<UNK>\nthe\n.\nin\ncat\ndog\n")
    found = run(text, tmp_path / "run", recipe(), vocabulary=path)
    assert 0.3 < found.unknown_rate < 0.6
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    assert elmo.vocabulary.words[:2] == ("</S>", "<S>")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    assert elmo.perplexity(lines).mean == pytest.approx(found.mean, rel=1e-4)
    path.write_text("the\n")
    with pytest.raises(FormatError, match="has no line <S> or </S> or <UNK>"):
        run(text, tmp_path / "none", recipe(), vocabulary=path)


def test_going_on_with_a_model(text, tmp_path):
    first = run(text, tmp_path / "first", recipe())
    other = [tmp_path / "other.txt"], [tmp_path / "other-valid.txt"]
    for paths, seed in zip(other, (5, 6), strict=True):
        lines = [s.replace("the", "a").replace("house", "castle") for s in sentences(200, seed)]
        paths[0].write_text("\n".join(lines))
    model = str(tmp_path / "first" / "best")
    before = evaluate_model(model, other[1], tokenized=True)
    kept = run(other, tmp_path / "kept", recipe(training={"epochs": 2}), init_from=model)
    assert kept.mean < before.mean / 2
    assert kept.unknown_rate == before.unknown_rate > 0
    settings = recipe(training={"epochs": 2}, text={"new_vocabulary": True})
    changed = run(other, tmp_path / "changed", settings, init_from=model)
    assert changed.unknown_rate == 0
    assert changed.mean < 6
    assert first.mean < 6


def test_going_on_with_fewer_words_than_are_drawn(text, tmp_path):
    """The size of the model's vocabulary decides, not that of the new text."""
    run(text, tmp_path / "first", recipe(training={"epochs": 1}))
    other = tmp_path / "other.txt"
    other.write_text("\n".join(f"word{i} word{i + 1} the cat" for i in range(300)))
    said = []
    settings = recipe(softmax={"kind": "sampled", "samples": 40}, training={"epochs": 1})
    model = str(tmp_path / "first" / "best")
    run(([other], text[1]), tmp_path / "run", settings, say=said.append, init_from=model)
    assert "only 26 words" in said[0]
    with pytest.raises(ConfigError, match="cannot sample 40 distinct words from .* 26"):
        Negatives(26, 40)


def splits(out):
    """How the text of a run was split, and the tokenizer of its model."""
    options = json.loads((out / "data" / "train" / "corpus.json").read_text())["options"]
    config = json.loads((out / "best" / "config.json").read_text())
    return options["tokenizer"], options["tokenized"], config["tokenizer"]


def test_the_tokenizer_is_the_models(text, tmp_path):
    short, first = {"epochs": 0.1}, tmp_path / "first"
    raw = recipe(text={"tokenized": False}, training=short)
    characters = recipe(text={"tokenized": False, "tokenizer": "characters"}, training=short)
    run(text, first, characters)
    assert splits(first) == ("characters", False, "characters")
    for name, settings, expected in (
        ("own", raw, ("characters", False, "characters")),
        ("other", characters.changed({"text": {"tokenizer": "english"}}),
         ("english", False, "english")),
        ("tokenised", recipe(training=short), ("whitespace", True, "whitespace")),
    ):  # fmt: skip
        run(text, tmp_path / name, settings, init_from=str(first / "best"))
        assert splits(tmp_path / name) == expected
    run(text, tmp_path / "again", raw, init_from=str(tmp_path / "tokenised" / "best"))
    assert splits(tmp_path / "again") == ("whitespace", False, "whitespace")
    run(text, tmp_path / "english", raw)
    assert splits(tmp_path / "english") == ("english", False, "english")
    config = first / "best" / "config.json"
    config.write_text(config.read_text().replace('"characters"', '"custom:mine"'))
    with pytest.raises(InputError, match="splits text with custom:mine, which is not a tokenizer"):
        run(text, tmp_path / "custom", raw, init_from=str(first / "best"))


def test_evaluation_reads_text_as_the_run_did(text, tmp_path):
    text[1][0].write_text("the cat sees . The dog likes .\nthe king\n")
    found = run(text, tmp_path / "run", recipe(training={"epochs": 0.1}))
    assert (found.n_sentences, found.n_tokens) == (2, 10)
    again = evaluate_model(tmp_path / "run", text[1])
    assert again.mean == pytest.approx(found.mean, rel=1e-4)
    assert again.n_sentences == 2
    for model, tokenizer in (("run/best", None), ("run", "whitespace")):
        split = evaluate_model(tmp_path / model, text[1], tokenizer)
        assert (split.n_sentences, split.n_tokens) == (3, 10)
    characters = evaluate_model(tmp_path / "run", text[1], "characters")
    assert characters.n_tokens == 30


def test_rows_of_a_new_vocabulary(lm_folder):
    """Shared words keep their rows; rows of new words are predicted from their characters."""
    torch.manual_seed(0)
    base = read_model(lm_folder)
    names = [
        *Vocabulary.marks,
        *(f"{a}{b}" for a in "abcdefgh" for b in ("cat", "dog", "bird", "fish")),
    ]
    with_one = torch.cat([token_vectors(base, names), torch.ones(len(names), 1)], 1)
    rows = with_one @ torch.randn(9, 9) + 0.02 * torch.randn(len(names), 9)
    left_out = names.index("cdog")
    kept = [i for i in range(len(names)) if i != left_out]
    old = replace(
        base,
        config=replace(base.config, vocabulary_size=len(kept)),
        vocabulary=[names[i] for i in kept],
        tensors=base.tensors
        | {SOFTMAX + "weight": rows[kept, :8], SOFTMAX + "bias": rows[kept, 8]},
    )
    new = with_words(old, names, SoftmaxSettings("full")).check().tensors
    found = torch.cat([new[SOFTMAX + "weight"], new[SOFTMAX + "bias"][:, None]], 1)
    torch.testing.assert_close(found[kept], rows[kept])
    by_the_mean = (rows[kept].mean(0) - rows[left_out]).norm()
    assert (found[left_out] - rows[left_out]).norm() < 0.2 * by_the_mean
    adaptive = SoftmaxSettings("adaptive", cutoffs=(2,))
    assert with_words(old, names, adaptive).config.softmax_cutoffs == (2,)


def test_characters_of_the_text(tmp_path):
    """With alphabet=codepoints a model reads the most frequent characters, whatever the script."""
    text, other = tmp_path / "text", tmp_path / "other"
    for path in (text, other):
        path.write_text("臺灣 的 電影 很 好 看\n台湾 的 电影 好\n" * 40, encoding="utf-8")
    encoder = {"alphabet": "codepoints", "n_characters": 13, "max_characters": 8}
    encoder |= {"filters": [[1, 8], [2, 8]], "n_highway": 1}
    settings = recipe(model={"script": "simplified", "token_encoder": encoder})
    run(([text], [other]), tmp_path / "run", settings)
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    assert elmo.checkpoint().characters == [
        *("<pad>", "<oov>", "<bow>", "<eow>", "<bos>", "<eos>"),
        *"台好影湾电的很",  # most frequent first, then by code point
    ]
    assert elmo.vocabulary.words[3:] == ("台湾", "好", "电影", "的", "很", "看")
    one, same = elmo.encode([["電影", "好"], ["电影", "好"]], "all")
    np.testing.assert_allclose(one, same, atol=1e-6)
    assert elmo.vocabulary.id("臺灣") == elmo.vocabulary.id("台湾") == 3
    with pytest.raises(ConfigError, match="word_dim=0"):
        recipe(model={"token_encoder": {"word_dim": 4, "n_words": 5, **encoder}})
