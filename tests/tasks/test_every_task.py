"""Each task learns small data, on static vectors alone and with ELMo in every place."""

import random

import pytest

from elmokit.errors import InputError
from elmokit.tasks import (
    CoreferenceResolver,
    EntailmentClassifier,
    NerTagger,
    PosTagger,
    QuestionAnswerer,
    RelationClassifier,
    RoleLabeller,
    SimilarityScorer,
    TextClassifier,
    relation,
    task_class,
)
from elmokit.tasks.readers.examples import EntailmentExample, PairExample
from elmokit.tasks.readers.relations import parse_marked
from helpers.task_data import documents, questions, reviews, roles, tagged

NOUNS = ["fire", "storm", "spark", "rain", "noise", "crash"]


def relations(n, seed=0):
    rng, found = random.Random(seed), []
    for _ in range(n):
        a, b = rng.sample(NOUNS, 2)
        if rng.random() < 0.5:
            found.append(
                parse_marked(f"the <e1>{a}</e1> causes the <e2>{b}</e2> .", "Cause(e1,e2)")
            )
        else:
            found.append(
                parse_marked(f"the <e1>{a}</e1> comes from the <e2>{b}</e2> .", "Cause(e2,e1)")
            )
    return found


def pairs(n, seed=0):
    rng, found = random.Random(seed), []
    for _ in range(n):
        a, b = rng.sample(NOUNS, 2)
        same = rng.random() < 0.5
        found.append(PairExample(f"the {a} .", f"the {a if same else b} .", 5.0 if same else 0.0))
    return found


def entailments(n, seed=0):
    rng, found = random.Random(seed), []
    for _ in range(n):
        a, b = rng.sample(NOUNS, 2)
        label, hypothesis = rng.choice([
            ("entailment", f"a {a} ."), ("contradiction", f"no {a} ."), ("neutral", f"{b} now ."),
        ])  # fmt: skip
        found.append(EntailmentExample(f"the {a} came .", hypothesis, label))
    return found


DATA = {
    EntailmentClassifier: entailments,
    TextClassifier: reviews,
    NerTagger: tagged,
    PosTagger: tagged,
    QuestionAnswerer: questions,
    RelationClassifier: relations,
    SimilarityScorer: pairs,
    RoleLabeller: roles,
    CoreferenceResolver: lambda n, seed=0: documents(n // 3, seed),  # each has some sentences
}


@pytest.mark.parametrize("kind", DATA, ids=lambda kind: kind.__name__)
def test_it_fits(tiny, quick, kind):
    quick["input"] = {"vectors": "token", "layers": "none", "dropout": 0.0}
    quick["model"]["hidden_dim"] = 24
    quick["training"] |= {"epochs": 40, "patience": 40, "learning_rate": 0.003}
    examples = DATA[kind](24)
    task = kind.train(examples, examples, elmo=tiny, settings=quick)
    assert task.evaluate(examples).value > 90


@pytest.mark.parametrize(
    "given",
    [
        {"at": "both", "layer_norm": True, "mix_l2": 0.1},
        {"at": "output", "vectors": "token", "layers": "top"},
        {"layers": "average"},
    ],
    ids=["both", "output", "average"],
)
@pytest.mark.parametrize("kind", DATA, ids=lambda kind: kind.__name__)
def test_every_place_of_elmo(tiny, quick, kind, given):
    """The loss falls, and the mixes learn what the settings let them learn."""
    said = []
    quick["input"] |= given
    quick["training"] |= {"epochs": 10, "patience": 10, "learning_rate": 0.003}
    task = kind.train(DATA[kind](24), DATA[kind](8, 1), elmo=tiny, settings=quick, say=said.append)
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in said if "loss" in line]
    assert min(losses[1:]) < losses[0]
    for *shares, gamma in task.input.shares().values():
        assert gamma != 1
        equal = max(shares) - min(shares) < 1e-6
        assert equal == (given.get("layers", "mix") != "mix")


def test_what_is_shown(tiny, quick):
    quick["training"]["epochs"] = 1
    ner = NerTagger.train(tagged(20), tagged(5, 1), elmo=tiny, settings=quick)
    from elmokit.tasks.tagging import Tagged

    found = Tagged(["Ann", "saw", "New", "York"], ["B-PER", "O", "B-LOC", "I-LOC"])
    assert ner.show(found) == "[Ann PER] saw [New York LOC]"
    assert ner.record(found)["entities"][1] == {
        "start": 2, "end": 4, "type": "LOC", "words": ["New", "York"],
    }  # fmt: skip
    assert ner.to_conll(found) == "Ann\tB-PER\nsaw\tO\nNew\tB-LOC\nYork\tI-LOC\n"
    scorer = SimilarityScorer.train(pairs(8), pairs(4, 1), elmo=tiny, settings=quick)
    (number,) = scorer.predict([("the rain .", "the storm .")])
    assert 0 <= number <= 5
    assert scorer("the rain .\tthe storm .") == pytest.approx(number, abs=1e-4)
    with pytest.raises(InputError, match="expected two texts"):
        scorer("only one")


def test_one_pair_or_many(tiny, quick):
    quick["training"]["epochs"] = 1
    scorer = SimilarityScorer.train(pairs(8), pairs(4, 1), elmo=tiny, settings=quick)
    pair, tokens = ("the rain .", "the storm ."), (["the", "rain", "."], ["the", "storm", "."])
    one = scorer(pair)
    assert isinstance(one, float)
    for same in (tokens, "the rain .\tthe storm .", PairExample(*pair)):
        assert scorer(same) == pytest.approx(one, abs=1e-4)
    for many in ([pair], (pair, pair), [list(pair), tokens, PairExample(*pair)]):
        assert scorer(many) == pytest.approx([one] * len(many), abs=1e-4)
    assert scorer([]) == []


def test_long_texts_keep_their_first_and_last_sentences(tiny, quick):
    from elmokit.tasks.long_texts import shortened

    sentences = [list("abc"), list("def"), list("ghi")]
    assert shortened(sentences, 9) == sentences
    assert shortened(sentences, 5) == [list("abc"), list("hi")]
    assert shortened(sentences, 8) == [list("abc"), ["d"], ["f"], list("ghi")]
    assert sum(map(len, shortened(sentences, 1))) == 1


def test_relations_are_split_into_words_once(tiny, quick, monkeypatch):
    split = []
    words = relation.relation_words
    monkeypatch.setattr(relation, "relation_words", lambda *a: split.append(1) or words(*a))
    quick["training"]["epochs"] = 2
    RelationClassifier.train(relations(8), relations(4, 1), elmo=tiny, settings=quick)
    assert len(split) == 8 + 4


def test_names():
    assert task_class("sentiment") is task_class("classify") is TextClassifier
    with pytest.raises(InputError, match="task must be classify, sentiment"):
        task_class("cooking")


def test_scales_of_similarity(tiny):
    with pytest.raises(InputError, match="from 3 to 3"):
        SimilarityScorer.train([PairExample("a", "b", 3.0)], pairs(2), elmo=tiny)


def test_biattentive_network(tiny, quick):
    quick["model"] |= {"network": "biattentive"}
    quick["training"] |= {"epochs": 2}
    classifier = TextClassifier.train(reviews(12), reviews(6, 1), elmo=tiny, settings=quick)
    assert classifier("a good film").label in ("neg", "pos")
