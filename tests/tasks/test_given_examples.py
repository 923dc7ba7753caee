"""Examples given as lists, and other arguments of the Python interface."""

import pytest

from elmokit import Elmo
from elmokit.errors import ConfigError, InputError
from elmokit.tasks import NerTagger, TextClassifier, load
from elmokit.tasks.readers import TaggedExample, TextExample
from helpers.task_data import reviews, tagged


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("good", "pos")], r"example 1 of train must be a TextExample, not \('good', 'pos'\)"),
        ([*reviews(3), TextExample("good")], "example 4 of train has no label"),
        (5, "train must be a file, or a list of examples, not 5"),
    ],
)
def test_wrong_examples(tiny, given, message):
    with pytest.raises(InputError, match=message):
        TextClassifier.train(given, reviews(2), elmo=tiny)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"settings": 5}, ConfigError, "settings must be sections, not 5"),
        ({"resume": True}, InputError, "resume=True needs out="),
        ({"elmo": 5}, InputError, "elmo must be a model from"),
        ({"settings": {"input": {"layers": "3"}}}, ConfigError, "a layer from 0 to 2, .* not 3"),
    ],
)
def test_wrong_arguments(tiny, keywords, error, message):
    with pytest.raises(error, match=message):
        TextClassifier.train(reviews(12), reviews(2), **{"elmo": tiny} | keywords)


def test_tags_in_any_scheme(tiny, quick):
    quick["training"]["epochs"] = 1
    bioes = [
        TaggedExample(["Ann", "slept"], ["S-PER", "O"]),
        TaggedExample(["New", "York"], ["B-LOC", "E-LOC"]),
    ]
    ner = NerTagger.train(bioes, bioes, elmo=tiny, settings=quick)
    assert ner.labels == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert ner.evaluate(bioes).per_class["PER"].support == 1
    with pytest.raises(InputError, match="sentence 2 of examples: unknown tag 'X'"):
        ner.evaluate([bioes[0], TaggedExample(["a"], ["X"])])
    with pytest.raises(InputError, match="words and tags differ in number, 1 and 2"):
        TaggedExample(["a"], ["O", "O"])


def test_another_bilm(tiny, lm, quick, tmp_path):
    quick["training"]["epochs"] = 1
    ner = NerTagger.train(tagged(4), tagged(2), elmo=tiny, settings=quick)
    ner.save(tmp_path / "ner")
    assert load(tmp_path / "ner", elmo=tiny).labels == ner.labels
    with pytest.raises(InputError, match="trained with another biLM; leave out elmo="):
        load(tmp_path / "ner", elmo=lm)
    with pytest.raises(InputError, match="elmo must be a model"):
        load(tmp_path / "ner", elmo="en")
    with pytest.raises(InputError, match="folder must be a path, not 5"):
        load(5)
    with pytest.raises(InputError, match="batch_size must be a whole number from 1"):
        ner.predict(["a"], batch_size=0)
    assert isinstance(ner.elmo, Elmo)


def test_the_tokenizer_is_saved(quick, tmp_path):
    """Also that of a bundled biLM, which is not saved itself."""
    quick["training"]["epochs"] = 1
    elmo = Elmo.load(tokenizer="whitespace", device="cpu")
    classifier = TextClassifier.train(reviews(12), reviews(2), elmo=elmo, settings=quick)
    classifier.save(tmp_path / "x")
    assert load(tmp_path / "x", device="cpu").elmo.tokenizer.name == "whitespace"


def test_another_tokenizer(tiny_folder, quick, tmp_path):
    quick["training"]["epochs"] = 1
    tiny = Elmo.load(tiny_folder, tokenizer="english", device="cpu")
    NerTagger.train(tagged(4), tagged(2), elmo=tiny, settings=quick).save(tmp_path / "x")
    assert load(tmp_path / "x", device="cpu")("a,b").words == ["a", ",", "b"]
    assert load(tmp_path / "x", device="cpu", tokenizer="whitespace")("a,b").words == ["a,b"]
    with pytest.raises(InputError, match="has a tokenizer of its own; leave out tokenizer="):
        load(tmp_path / "x", elmo=tiny, tokenizer="whitespace")
    with pytest.raises(ConfigError, match="there is no tokenizer 'no'"):
        load(tmp_path / "x", device="cpu", tokenizer="no")


def test_dev_examples_of_another_kind(tiny, quick):
    """Also with a single label: every epoch would have the same score, 0."""
    others = [TextExample("fine", "good")]
    with pytest.raises(InputError, match=r"of dev \(good\) is one of the training examples' \(neg"):
        TextClassifier.train(reviews(8), others, elmo=tiny, settings=quick)
    tags = [TaggedExample(["Ann"], ["B-FOO"])]
    with pytest.raises(InputError, match=r"no label of dev \(B-FOO, I-FOO\) is one of"):
        NerTagger.train(tagged(8), tags, elmo=tiny, settings=quick)
