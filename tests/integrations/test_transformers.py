"""ELMo in transformers: the same vectors, Auto classes, Trainer, and the tokenizer."""

import sys

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="transformers is not installed")

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from elmokit import ConfigError, Elmo, FormatError, InputError, MissingExtraError
from elmokit.integrations.transformers import (
    ElmoConfig,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
)
from helpers.models import SENTENCES, many_langs_folder
from helpers.numbers import assert_close
from helpers.processes import run_python

MANY_SENTENCES = [["abc", "cab", "xyz日"], ["cab"], [], ["a" * 30, "b"]]


def in_transformers(elmo, **settings):
    return ElmoTokenizer.from_elmo(elmo), ElmoModel.from_elmo(elmo, **settings)


def encoded(tokenizer, model, sentences, **keywords):
    batch = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        return model(**batch, **keywords)


@pytest.mark.parametrize("layers", ["mix", "average", "top", 0, -2])
def test_vectors_are_those_of_encode(tiny, layers):
    tiny.set_mix([0.3, -1.0, 2.0], gamma=0.7)
    found = encoded(*in_transformers(tiny, layers=layers), SENTENCES, output_hidden_states=True)
    assert found.last_hidden_state.shape == (6, 25, 16)
    assert len(found.hidden_states) == 3
    for i, expected in enumerate(tiny.encode(SENTENCES, layers)):
        assert_close(found.last_hidden_state[i, : len(expected)], expected)
        assert not found.last_hidden_state[i, len(expected) :].any()
    for i, expected in enumerate(tiny.encode(SENTENCES, "all")):
        for k, layer in enumerate(expected):
            assert_close(found.hidden_states[k][i, : len(layer)], layer)


@pytest.mark.parametrize("word_dim", [0, 5])
def test_a_model_with_its_own_characters(tmp_path, word_dim):
    elmo = Elmo.load(many_langs_folder(tmp_path / "many", word_dim), device="cpu")
    tokenizer, model = in_transformers(elmo)
    for folder in (tmp_path / "saved", tmp_path / "saved again"):
        found = encoded(tokenizer, model, MANY_SENTENCES).last_hidden_state
        for i, expected in enumerate(elmo.encode(MANY_SENTENCES)):
            assert_close(found[i, : len(expected)], expected)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert_close(np.concatenate(model.to_elmo(tokenizer).encode(MANY_SENTENCES)),
                 np.concatenate(elmo.encode(MANY_SENTENCES)))  # fmt: skip


def test_padding_has_no_influence(tiny):
    tokenizer, model = in_transformers(tiny)
    together = encoded(tokenizer, model, SENTENCES).last_hidden_state
    for i, sentence in enumerate(SENTENCES):
        alone = encoded(tokenizer, model, [sentence]).last_hidden_state[0, : len(sentence)]
        assert_close(together[i, : len(sentence)], alone)
    batch = tokenizer(["a b c", "d e"], padding=True, return_tensors="pt")
    before = model(**batch).last_hidden_state
    ids = batch["input_ids"].clone()
    ids[1, 2] = ids[0, 0]  # a word where the mask says padding
    assert torch.equal(model(ids, batch["attention_mask"]).last_hidden_state, before)
    assert not torch.equal(model(ids).last_hidden_state, before)


def test_saved_and_loaded_in_a_fresh_process(tiny, tmp_path):
    tiny.set_mix([0.5, 0.0, -0.5], gamma=1.5)
    tokenizer, model = in_transformers(tiny, layers="mix")
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    code = f"""
import numpy, torch, elmokit.integrations.transformers
from transformers import AutoConfig, AutoModel, AutoTokenizer
folder = {str(tmp_path / "saved")!r}
assert AutoConfig.from_pretrained(folder).model_type == "elmokit-elmo"
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
batch = tokenizer({SENTENCES!r}, is_split_into_words=True, padding=True, return_tensors="pt")
with torch.no_grad():
    numpy.save({str(tmp_path / "found.npy")!r}, model(**batch).last_hidden_state.numpy())
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "found.npy")
    for i, expected in enumerate(tiny.encode(SENTENCES)):
        assert_close(found[i, : len(expected)], expected)


def test_the_config_survives(tiny, tmp_path):
    ElmoConfig.from_elmo(tiny, layers=1, trainable=True).save_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    assert (config.layers, config.trainable, config.hidden_size) == (1, True, 16)
    assert config.num_hidden_layers == 2
    assert config.model.context == tiny.config.context
    assert AutoConfig.from_pretrained(tmp_path, layers="top").layers == "top"
    assert ElmoConfig().hidden_size == 1024


TRAINING = [
    ("Anna lives in Rome", "1 0 0 2"),
    ("Rome is old", "2 0 0"),
    ("Tom saw Anna", "1 0 1"),
    ("In Oslo Tom slept", "0 2 1 0"),
    ("Oslo and Rome", "2 0 2"),
    ("Anna ran", "1 0"),
]


def examples(tokenizer):
    for text, labels in TRAINING:
        row = tokenizer(text.split(), is_split_into_words=True)
        yield {**row, "labels": [int(label) for label in labels.split()]}


@pytest.mark.parametrize(
    ("trainable", "share"), [(False, 0.8), (True, 0.5)], ids=["frozen", "fine-tuned"]
)
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_trainer_for_tokens(tiny, tmp_path, trainable, share):
    pytest.importorskip("accelerate", reason="accelerate, which Trainer needs, is not installed")
    torch.manual_seed(0)
    tokenizer = ElmoTokenizer.from_elmo(tiny)
    labels = {0: "O", 1: "PER", 2: "LOC"}
    model = ElmoForTokenClassification.from_elmo(tiny, id2label=labels, trainable=trainable)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer = Trainer(
        model,
        TrainingArguments(
            str(tmp_path / "run"), num_train_epochs=30, per_device_train_batch_size=3,
            learning_rate=0.02, report_to="none", use_cpu=True, save_strategy="no",
            disable_tqdm=True, logging_strategy="no",
        ),
        train_dataset=list(examples(tokenizer)),
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )  # fmt: skip
    losses = [trainer.evaluate(trainer.train_dataset)["eval_loss"]]
    trainer.train()
    losses.append(trainer.evaluate(trainer.train_dataset)["eval_loss"])
    assert losses[1] < share * losses[0]
    after = model.state_dict()
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    assert {"elmo.mix.weights", "elmo.mix.gamma", "classifier.weight"} <= changed
    assert any(name.startswith("elmo.bilm.") for name in changed) == trainable

    trainer.save_model(str(tmp_path / "saved"))
    again = AutoModelForTokenClassification.from_pretrained(tmp_path / "saved")
    assert again.config.id2label == labels
    batch = AutoTokenizer.from_pretrained(tmp_path / "saved")(
        [text for text, _ in TRAINING], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        assert torch.equal(again(**batch).logits, model.eval()(**batch).logits)
    frozen = {n for n, p in again.named_parameters() if not p.requires_grad}
    assert bool(frozen) != trainable
    tuned = again.elmo.to_elmo(tokenizer)
    tuned.save(tmp_path / "native")
    expected = again.elmo(**batch).last_hidden_state[1, :3]
    assert_close(Elmo.load(tmp_path / "native").encode("Rome is old"), expected.detach())


def test_gradients(tiny):
    tokenizer, model = in_transformers(tiny, trainable=True)
    batch = tokenizer(["a b c", "d"], padding=True, return_tensors="pt")
    model(**batch).last_hidden_state.sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.mix.parameters())
    assert sum(p.grad is not None for p in model.bilm.parameters()) > 10
    frozen = ElmoModel.from_elmo(tiny, layers="top")
    assert not frozen(**batch).last_hidden_state.requires_grad


def test_a_new_head_on_a_saved_model(tiny, tmp_path):
    ElmoModel.from_elmo(tiny).save_pretrained(tmp_path)
    model = AutoModelForTokenClassification.from_pretrained(tmp_path, num_labels=5, trainable=True)
    assert model.classifier.weight.shape == (5, 16)
    assert model.classifier.weight.std() > 0
    own = ElmoModel.from_elmo(tiny).state_dict()
    assert all(torch.equal(value, own[name]) for name, value in model.elmo.state_dict().items())
    assert all(p.requires_grad for p in model.parameters())


def test_weights_of_a_new_model_are_those_of_a_new_bilm(tiny):
    torch.manual_seed(0)
    model = ElmoModel(ElmoConfig.from_elmo(tiny))
    encoder = model.bilm.token_encoder
    assert not encoder.character_embedding.weight[0].any()
    assert 0.4 < encoder.character_embedding.weight[1:].std() < 0.7  # uniform in ±1
    assert torch.equal(encoder.highways[0].gate.bias, torch.full((24,), -2.0))
    assert (model.mix.gamma.item(), model.mix.weights.tolist()) == (1.0, [0.0, 0.0, 0.0])


def test_what_the_tokenizer_returns(tiny):
    tokenizer = ElmoTokenizer.from_elmo(tiny)
    one = tokenizer("The café  sat", return_offsets_mapping=True, return_length=True)
    assert one.tokens() == ["The", "café", "sat"]
    assert one["offset_mapping"] == [(0, 3), (4, 8), (10, 13)]
    assert (len(one["input_ids"]), len(one["input_ids"][0])) == (3, 50)
    assert (one["attention_mask"], one["length"]) == ([1, 1, 1], 3)
    assert one["input_ids"][1][:7] == [259, ord("c") + 1, ord("a") + 1, ord("f") + 1, 196, 170, 260]
    batch = tokenizer([["a", "b"], []], is_split_into_words=True, padding=True)
    assert (batch.word_ids(0), batch.word_ids(1)) == ([0, 1], [None, None])
    assert batch.sequence_ids(1) == [None, None]
    assert batch["attention_mask"] == [[1, 1], [0, 0]]
    assert not np.any(batch["input_ids"][1])
    assert tokenizer("a b", return_tensors="pt")["input_ids"].shape == (1, 2, 50)
    assert tokenizer(["", ""], padding=True, return_tensors="np")["input_ids"].shape == (2, 1, 50)
    cut = tokenizer(["a b c d", "e"], truncation=True, max_length=2)
    assert [len(rows) for rows in cut["input_ids"]] == [2, 1]
    fixed = tokenizer(["a b c", "e"], padding="max_length", max_length=5, pad_to_multiple_of=4)
    assert np.shape(fixed["input_ids"]) == (2, 8, 50)


def test_padding_by_collators(tiny):
    tokenizer = ElmoTokenizer.from_elmo(tiny)
    rows = [tokenizer("a b c"), tokenizer("d")]
    whole = tokenizer(["a b c", "d"], padding=True, return_tensors="pt")
    batch = DataCollatorWithPadding(tokenizer)([dict(row) for row in rows])
    for name in ("input_ids", "attention_mask"):
        assert torch.equal(batch[name], whole[name])
    single = tokenizer.pad(tokenizer("d"), padding="max_length", max_length=3)
    assert single["attention_mask"] == [1, 0, 0]
    assert np.array_equal(single["input_ids"], whole["input_ids"][1])


def test_mistakes_are_one_sentence(tiny, tmp_path):
    tokenizer, model = in_transformers(tiny)
    batch = tokenizer("a b", return_tensors="pt")
    for call, message in [
        (lambda: tokenizer("a", "b"), "one sentence at a time"),
        (lambda: tokenizer([["a", "b"]]), "pass is_split_into_words=True"),
        (lambda: tokenizer("a", padding=True, padding_side="left"), "padding_side='right'"),
        (lambda: tokenizer("a", return_overflowing_tokens=True), "is not supported"),
        (lambda: model(batch["input_ids"][0]), r"input_ids must be texts, or whole numbers"),
        (lambda: model(batch["input_ids"][..., :20]), "must have 50 ids per word, not 20"),
        (lambda: model(batch["input_ids"] + 999), "has ids from"),
        (lambda: model(batch["input_ids"], torch.ones(1, 3)), r"the shape \(1, 2\) of the tokens"),
        (lambda: model(batch["input_ids"], torch.tensor([[0, 1]])), "only after real tokens"),
        (lambda: ElmoConfig(layers="best"), "layers must be"),
    ]:
        with pytest.raises(InputError, match=message):
            call()
    with pytest.raises(ConfigError, match="layers must be mix, average, top or a number"):
        ElmoConfig(layers="all")
    many = Elmo.load(many_langs_folder(tmp_path / "many"), device="cpu")
    with pytest.raises(ConfigError, match="use from_elmo"):
        ElmoConfig(many.config.to_dict())
    model.save_pretrained(tmp_path / "saved")
    with pytest.raises(FormatError, match="belongs to a model of transformers"):
        Elmo.load(tmp_path / "saved")


@pytest.mark.parametrize("name", ["transformers", "character_tokenizer"])
def test_a_missing_package_is_named(monkeypatch, name):
    module = f"elmokit.integrations.{name}"
    for loaded in ("elmokit.integrations.transformers", "elmokit.integrations.character_tokenizer"):
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[transformers\]'"):
        __import__(module)
