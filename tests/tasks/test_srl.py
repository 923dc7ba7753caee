"""The role labeller: what it decodes, finds, shows and writes."""

import pytest
import torch

from elmokit.errors import InputError
from elmokit.tasks import RoleLabeller, srl
from elmokit.tasks.measures.tag_schemes import stray_tags
from elmokit.tasks.readers import Frame, RoleExample, read_role_examples
from elmokit.tasks.roles import Roles
from helpers.task_data import roles

WORDS = ["The", "cat", "saw", "him", "sleep"]
FRAMES = [
    Frame(2, ["B-ARG0", "I-ARG0", "B-V", "B-ARG1", "I-ARG1"]),
    Frame(4, ["O", "O", "O", "B-ARG0", "B-V"]),
]
FOUND = Roles(WORDS, FRAMES, [2, 4])


@pytest.fixture
def labeller(tiny):
    """One that has learnt nothing; its decisions are arbitrary."""
    torch.manual_seed(0)
    settings = RoleLabeller.defaults.changed({"model": {"hidden_dim": 6}})
    task = RoleLabeller(settings, RoleLabeller.labels_of(roles(9)), tiny)
    with torch.no_grad():
        task.head.predicate.bias.fill_(0.2)  # finds some predicates
        task.head.linear.weight.normal_(0, 3)
    return task


def test_labels():
    labels = RoleLabeller.labels_of([RoleExample(WORDS, FRAMES)])
    assert labels == ["O", "B-V", "I-V", "B-ARG0", "I-ARG0", "B-ARG1", "I-ARG1"]
    with pytest.raises(InputError, match="have no roles"):
        RoleLabeller.labels_of([RoleExample(["go"], [Frame(0, ["B-V"])])])


def test_decoding_is_legal(labeller):
    """No I- without its beginning; V begins at the predicate and nowhere else."""
    found = labeller.predict([WORDS * 4, WORDS, ["a", "b"]])
    assert sum(len(one.frames) for one in found) > 3
    for one in found:
        assert [frame.predicate for frame in one.frames] == one.found
        for frame in one.frames:
            assert len(frame.tags) == len(one.words)
            assert not stray_tags(frame.tags)
            assert [i for i, tag in enumerate(frame.tags) if tag == "B-V"] == [frame.predicate]


def test_given_predicates_are_kept(labeller):
    one, none, any_of_them = labeller.predict(
        [RoleExample(WORDS, [Frame(3)]), RoleExample(WORDS, []), RoleExample(WORDS)]
    )
    assert [frame.predicate for frame in one.frames] == [3]
    assert none.frames == []
    assert one.found == none.found == any_of_them.found
    assert [frame.predicate for frame in any_of_them.frames] == any_of_them.found


def test_predictions_do_not_depend_on_the_batch(labeller, monkeypatch):
    texts = [WORDS[:n] * k for n, k in ((5, 3), (1, 1), (3, 2), (5, 1), (4, 4))]
    expected = labeller.predict(texts)
    assert labeller.predict(texts, batch_size=1) == expected
    monkeypatch.setattr(srl, "_WORDS_AT_ONCE", 30)  # predicates in several steps
    assert labeller.predict(texts) == expected


def test_a_batch_without_predicates_has_a_loss(labeller):
    example = RoleExample(WORDS, [])
    prepared = labeller.prepare(example)
    from elmokit.tasks.frozen_layers import FrozenLayers
    from elmokit.tasks.word_batches import Batcher

    with FrozenLayers(labeller.elmo, labeller.input.layers) as layers:
        batcher = Batcher(labeller.input, layers, None, labeller.elmo.device)
        loss = labeller.loss(labeller.forward(batcher.make([prepared])), [example])
    assert torch.isfinite(loss)


def test_what_is_shown(labeller):
    assert labeller.show(FOUND) == (
        "[The cat ARG0] [saw V] [him sleep ARG1]\nThe cat saw [him ARG0] [sleep V]"
    )
    assert labeller.show(Roles(WORDS, [], [])) == "The cat saw him sleep"
    record = labeller.record(FOUND)
    assert record["words"] == WORDS
    assert record["frames"][0]["predicate"] == 2
    assert record["frames"][0]["roles"][0] == {
        "start": 0, "end": 2, "role": "ARG0", "words": ["The", "cat"],
    }  # fmt: skip
    assert labeller.record(None) == {"words": [], "frames": []}


def test_colours(labeller):
    labeller.labels[-2:] = ["B-C-ARG1", "I-C-ARG1"]
    tags = ["B-ARG1", "O", "B-V", "B-C-ARG1", "B-ARG0"]
    (text,) = labeller.marked(Roles(WORDS, [Frame(2, tags)], []))
    first, verb, second, other = (mark.group for mark in text.marks)
    assert first == second
    assert len({first, verb, other}) == 3


def test_conll_can_be_read_again(labeller, file):
    text = labeller.to_conll(FOUND)
    assert text.splitlines()[2:4] == ["saw\tsaw\t(V*)\t*", "him\t-\t(ARG1*\t(ARG0*)"]
    assert read_role_examples(file("a.conll", text)) == [RoleExample(WORDS, FRAMES)]
    twice = Roles(WORDS, [FRAMES[1], FRAMES[0], FRAMES[0]], [])
    assert labeller.to_conll(twice) == text


def test_files_to_predict(tmp_path):
    for name in ("a.conll", "a.conll.gz", "a.v4_gold_conll", "a.tsv", "a.jsonl"):
        assert RoleLabeller.is_table(tmp_path / name)
    assert not RoleLabeller.is_table(tmp_path / "a.txt")
    for name in ("a.csv", "a.props"):
        with pytest.raises(InputError, match="is not a file for srl"):
            RoleLabeller.is_table(tmp_path / name)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([RoleExample(WORDS)], "example 1 of train has no frames"),
        ([RoleExample(WORDS, [Frame(1)])], "frame 1 of example 1 of train has no tags"),
        ([RoleExample(WORDS, [])], "train has no predicates"),
    ],
)
def test_what_it_cannot_learn_from(tiny, examples, message):
    with pytest.raises(InputError, match=message):
        RoleLabeller.train(examples, examples, elmo=tiny)
