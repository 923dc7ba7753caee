"""Sentences read in capitals or in lower case."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elmokit.errors import InputError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.pretrain.data.feed import Feed
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.recasing import OtherCases, in_other_cases
from elmokit.pretrain.data.target_words import choose_words, code_words
from elmokit.pretrain.data.training_batches import BEGIN, SentenceBatches, Share, make_batches
from elmokit.pretrain.recipe_sections import SoftmaxSettings
from helpers.pretraining import recipe


def _corpus(tmp_path, lines):
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n")
    return prepare([path], tmp_path / "data", TextOptions(tokenized=True))


def _sentences(batch, codes, words):
    """The forward inputs of each sentence of a batch, without the mark."""
    found = {}
    for sentence, code in zip(batch.sentences.tolist(), codes[0].tolist(), strict=True):
        if code != BEGIN:
            found.setdefault(sentence, []).append(words[code])
    return found


@pytest.mark.parametrize("order", ["sentences", "stream"])
def test_some_sentences_are_read_in_another_case(tmp_path, order):
    corpus = _corpus(tmp_path, ["Ann saw the Red CAT .", "the straße İS here 中文 ."] * 400)
    given = code_words(corpus, "<S>", "</S>")
    words, codes = in_other_cases(given)
    assert words[: len(given)] == given
    assert len(set(words)) == len(words)
    settings = recipe(batch={"order": order, "tokens": 4800, "steps": 300})
    plan = make_batches(settings, corpus, Share())
    cases = OtherCases(codes, 0.2, plan.n_sentences, seed=1)
    batch = plan.batch(0, 0)
    kinds = [0, 0, 0]
    written, read = (_sentences(batch, found, words) for found in (batch.inputs, cases.read(batch)))
    for number, sentence in written.items():
        ways = (sentence, [w.upper() for w in sentence], [w.lower() for w in sentence])
        kinds[ways.index(read[number])] += 1
    assert len(written) > 600
    shares = np.array(kinds) / len(written)
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.05)
    # both directions read the same, whichever step they are at
    upper = [words.index(word) for word in ("ANN", "SAW", "STRASSE")]
    shouted = [_with(upper, batch, way) for way in cases.read(batch)]
    assert shouted[0] == shouted[1]
    again = OtherCases(codes, 0.2, plan.n_sentences, seed=1)
    np.testing.assert_array_equal(again.read(batch), cases.read(batch))
    other = plan.batch(1, 0)
    assert _with(upper, other, cases.read(other)[0]) != shouted[0]


def _with(codes, batch, read):
    """The sentences of a batch in which a direction reads any of these codes."""
    return set(batch.sentences[np.isin(read, codes)].tolist())


@pytest.mark.parametrize("order", ["sentences", "stream"])
def test_cases_do_not_depend_on_the_number_of_processes(tmp_path, order):
    corpus = _corpus(tmp_path, [f"{'a ' * (i % 7)}B{i} ." for i in range(200)])
    _, codes = in_other_cases(code_words(corpus, "<S>", "</S>"))
    settings = recipe(batch={"order": order, "tokens": 320, "steps": 8})
    found = []
    for share in (Share(), Share(0, 2), Share(1, 2)):
        plan = make_batches(settings, corpus, share)
        batch, cases = plan.batch(0, 1), OtherCases(codes, 0.5, plan.n_sentences, seed=0)
        found.append(
            sorted(zip(batch.sentences.tolist(), *cases.read(batch).tolist(), strict=True))
        )
        assert (cases.read(batch) != batch.inputs).any()
    assert found[0] == sorted(found[1] + found[2])


def test_no_other_case_is_a_mark():
    words, codes = in_other_cases(["<S>", "</S>", "<s>", "</s>", "Word"])
    assert words == ["<S>", "</S>", "<s>", "</s>", "Word", "WORD", "word"]
    assert codes.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 5], [0, 1, 2, 3, 6]]


def test_text_without_cases():
    with pytest.raises(InputError, match="training.recased has no effect on this text"):
        in_other_cases(["<S>", "</S>", "我", "们", "。"])


def test_only_training_reads_other_cases(tmp_path):
    corpus = _corpus(tmp_path, ["the cat sees the Dog ."] * 50)
    vocabulary = choose_words(corpus, 100, 1)
    base = Checkpoint(replace(recipe().model, vocabulary_size=len(vocabulary)), {}, vocabulary)
    plan = SentenceBatches(corpus, 300, 0)
    settings, device = SoftmaxSettings("full"), torch.device("cpu")
    feeds = [Feed(corpus, plan, base, settings, 0, device, share) for share in (0.0, 1.0)]
    first = plan.batch(0, 0)
    for step, differs in ((0, True), (None, False)):
        plain, other = (feed.make(first, step) for feed in feeds)
        made = zip(feeds, (plain, other), strict=True)
        read = [feed.table.ids[batch.words][batch.inputs] for feed, batch in made]
        assert torch.equal(read[0], read[1]) is not differs
        assert torch.equal(plain.targets, other.targets)
