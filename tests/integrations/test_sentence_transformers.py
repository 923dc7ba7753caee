"""ELMo in sentence-transformers: the same vectors as Elmo, training, saving, other tools."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import FormatError, InputError
from helpers.models import SENTENCES

pytest.importorskip("sentence_transformers", minversion="6", reason="extra not installed")
# warnings of other packages are not ours
pytestmark = pytest.mark.filterwarnings("ignore", r"error:::elmokit\.")

from sentence_transformers import SentenceTransformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Pooling  # noqa: E402

from elmokit.integrations.sentence_transformers import ElmoModule, load  # noqa: E402

TEXTS = [
    "The first sentence.",
    "Second",
    "naïve café 日本語 🙂 " + "x" * 60,
    "",
    "a\0 \0 \ud800 / <S> </S>",
    " ".join(str(i) for i in range(300)),
    "\n\t ",
]
CLOSE = {"rtol": 0, "atol": 2e-5}
"""For values of up to about 3."""


@pytest.fixture
def model(tiny_folder):
    return load(tiny_folder, device="cpu")


def saved(model, folder):
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


def in_fresh_process(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_it_is_encode_sentences(tiny_folder, tiny, pooling, batch_size):
    model = load(tiny_folder, pooling=pooling, device="cpu")
    found = model.encode(TEXTS, batch_size=batch_size)
    np.testing.assert_allclose(found, tiny.encode_sentences(TEXTS, pooling=pooling), **CLOSE)
    assert np.abs(found).max() > 0.1
    assert not found[3].any()


@pytest.mark.parametrize("layers", ["average", "top", 0, 1, -1])
def test_layers(tiny_folder, tiny, layers):
    found = load(tiny_folder, layers=layers, device="cpu").encode(TEXTS)
    np.testing.assert_allclose(found, tiny.encode_sentences(TEXTS, layers), **CLOSE)


def test_lists_of_tokens(model, tiny):
    np.testing.assert_allclose(model.encode(SENTENCES), tiny.encode_sentences(SENTENCES), **CLOSE)
    words = [["", "\0", "a\0", "b"]]
    np.testing.assert_allclose(model.encode(words), tiny.encode_sentences(words), **CLOSE)


def test_one_string_gives_one_vector(model, tiny):
    assert model.encode("A cat").shape == (tiny.dim,)
    assert model.get_embedding_dimension() == tiny.dim


def test_all_empty(model, tiny):
    np.testing.assert_array_equal(model.encode(["", ""]), np.zeros((2, tiny.dim)))


def test_a_pair_is_refused(model):
    with pytest.raises(InputError, match="text 0 is a pair"):
        model.encode([("a", "b")])


def test_token_embeddings_and_mask(model, tiny):
    features = model.preprocess(TEXTS)
    with torch.no_grad():
        found = model[0](dict(features))
    vectors, mask = found["token_embeddings"], found["attention_mask"]
    assert vectors.shape == (*mask.shape, tiny.dim)
    for row, expected, n in zip(vectors, tiny.encode(TEXTS), mask.sum(1), strict=True):
        assert n == max(1, len(expected))
        np.testing.assert_allclose(row[: len(expected)], expected, **CLOSE)
        assert not row[len(expected) :].any()


@pytest.mark.parametrize("trainable", [False, True])
def test_padding_changes_nothing(tiny_folder, trainable):
    module = ElmoModule(tiny_folder, trainable=trainable)
    features = module.preprocess(["a b c", "d", ""])
    longer = {
        k: torch.nn.functional.pad(v, (0, 0) * (v.dim() - 2) + (0, 9)) for k, v in features.items()
    }
    short = module(dict(features))["token_embeddings"]
    long = module(longer)["token_embeddings"]
    assert long.shape[1] == short.shape[1] + 9
    np.testing.assert_array_equal(long[:, :3].detach(), short.detach())
    assert not long[:, 3:].any()


def test_the_ways_with_and_without_gradients_agree(tiny_folder):
    module = ElmoModule(tiny_folder, trainable=True)
    features = module.preprocess(TEXTS)
    learned = module(dict(features))["token_embeddings"]
    assert learned.requires_grad
    with torch.no_grad():
        plain = module(dict(features))["token_embeddings"]
    np.testing.assert_allclose(learned.detach(), plain, **CLOSE)


@pytest.mark.parametrize("trainable", [False, True])
def test_what_learns(tiny_folder, trainable):
    module = ElmoModule(tiny_folder, trainable=trainable)
    (module(module.preprocess(TEXTS))["token_embeddings"] ** 2).sum().backward()
    learned = {name for name, p in module.named_parameters() if p.grad is not None and p.grad.any()}
    assert {"embedding.mixes.0.weights", "embedding.mixes.0.gamma"} <= learned
    assert any("bilm" in name for name in learned) == trainable


def test_a_fixed_layer_has_no_weights_to_learn(tiny_folder):
    module = ElmoModule(tiny_folder, layers="top")
    assert not [name for name, p in module.named_parameters() if p.requires_grad]


def test_the_cache_follows_the_weights(tiny_folder):
    model = load(tiny_folder, trainable=True, device="cpu")
    before = model.encode(TEXTS)
    with torch.no_grad():
        for weights in model[0].embedding.bilm.token_encoder.parameters():
            weights *= 0.5
    assert np.abs(model.encode(TEXTS) - before).max() > 0.01


def test_max_seq_length(model, tiny):
    model.max_seq_length = 2
    found = model.encode(["a b c d", "e"])
    np.testing.assert_allclose(found, tiny.encode_sentences([["a", "b"], ["e"]]), **CLOSE)
    with pytest.raises(InputError, match="max_seq_length"):
        model.max_seq_length = 0


def test_prompts_and_normalisation(model, tiny):
    expected = tiny.encode_sentences(["query: a cat", "query: it"])
    model.prompts["query"] = "query: "
    found = model.encode(["a cat", "it"], prompt_name="query")
    np.testing.assert_allclose(found, expected, **CLOSE)
    unit = model.encode(["a cat", "it"], prompt="query: ", normalize_embeddings=True)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, expected / lengths, **CLOSE)
    tokens = model.encode([["a", "cat"], ["it"]], prompt="query: ")
    np.testing.assert_allclose(tokens, expected, **CLOSE)


def test_a_prompt_that_is_not_pooled(tiny_folder, tiny):
    module = ElmoModule(tiny_folder)
    pooling = Pooling(module.get_embedding_dimension(), include_prompt=False)
    model = SentenceTransformer(modules=[module, pooling], device="cpu")
    found = model.encode(["a cat", "it"], prompt="query: ")
    expected = [v[1:].mean(0) for v in tiny.encode(["query: a cat", "query: it"])]
    np.testing.assert_allclose(found, np.stack(expected), **CLOSE)


def test_several_processes(model, tiny):
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    try:
        found = model.encode(TEXTS[:4], pool=pool, chunk_size=2)
    finally:
        model.stop_multi_process_pool(pool)
    np.testing.assert_allclose(found, tiny.encode_sentences(TEXTS[:4]), **CLOSE)


def test_a_shared_model(tiny):
    tiny.set_mix([1.0, -1.0, 0.5], 2.0)
    model = load(tiny, device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), tiny.encode_sentences(TEXTS), **CLOSE)
    assert model[0].embedding.bilm is tiny.bilm


@pytest.mark.parametrize("trainable", [False, True])
def test_training_lowers_the_loss(tiny_folder, tmp_path, trainable):
    pytest.importorskip("datasets", reason="needed by the trainer")
    pytest.importorskip("accelerate", reason="needed by the trainer")
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer as Trainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    pairs = {
        "first": ["a cat sat", "one two", "red", "", "x y z"] * 4,
        "second": ["a cat sat down", "dogs", "blue sky", "b", "x y"] * 4,
        "score": [0.9, 0.0, 0.3, 0.0, 0.8] * 4,
    }
    model = load(tiny_folder, trainable=trainable, device="cpu")
    rate = 0.02 if trainable else 0.5  # the mix alone cannot do much
    start = {name: value.clone() for name, value in model.state_dict().items()}
    arguments = Arguments(
        str(tmp_path), num_train_epochs=6, learning_rate=rate, per_device_train_batch_size=10,
        logging_steps=1, report_to="none", disable_tqdm=True, use_cpu=True, eval_strategy="epoch",
        save_strategy="epoch", load_best_model_at_end=True, save_total_limit=1,
    )  # fmt: skip
    data = Dataset.from_dict(pairs)
    trainer = Trainer(model, arguments, data, data, loss=CosineSimilarityLoss(model))
    trainer.train()
    losses = [row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row]
    assert losses[-1] < 0.98 * losses[0]
    moved = {n for n, v in model.state_dict().items() if not torch.equal(v, start[n])}
    assert any("bilm" in name for name in moved) == trainable
    assert "0.embedding.mixes.0.weights" in moved
    again = load(saved(model, tmp_path / "out"), device="cpu")
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))


RELOAD = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from elmokit.integrations.sentence_transformers import load
model = load(sys.argv[1], device="cpu")
np.save(sys.argv[2], model.encode(["A cat sat.", "", "naïve 日本語"]))
print(model.prompts["query"], model.similarity_fn_name, model[0].max_seq_length, model[0].trainable)
"""


def test_saved_folders_reload_exactly(tiny_folder, tmp_path):
    model = load(tiny_folder, device="cpu", trainable=True, max_seq_length=7)
    model.prompts["query"], model.similarity_fn_name = "q: ", "dot"
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.01 * torch.randn_like(parameter)
    folder = saved(model, tmp_path / "model")
    assert not [p for p in folder.rglob("*") if p.suffix in (".bin", ".pkl", ".pt")]
    printed = in_fresh_process(RELOAD, folder, tmp_path / "found.npy")
    assert printed.split() == ["q:", "dot", "7", "True"]
    expected = model.encode(["A cat sat.", "", "naïve 日本語"])
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)
    trusted = SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    np.testing.assert_array_equal(trusted.encode(TEXTS), model.encode(TEXTS))
    copy = Elmo.load(folder / "0_ElmoModule" / "bilm", device="cpu")
    cut = [copy.tokenize(text)[:7] for text in TEXTS]
    np.testing.assert_allclose(copy.encode_sentences(cut), model.encode(TEXTS), **CLOSE)


def test_settings_replace_saved_ones(model, tmp_path):
    folder = saved(model, tmp_path / "model")
    again = load(folder, trainable=True, layers="top", device="cpu")
    assert (again[0].trainable, again[0].layers) == (True, "top")
    with pytest.raises(InputError, match="'depth' is not a setting"):
        load(folder, depth=3)
    with pytest.raises(InputError, match="leave out pooling="):
        load(folder, pooling="max")


def test_saving_twice_leaves_one_model(model, tmp_path):
    folder = saved(model, tmp_path / "model")
    names = sorted(p.name for p in folder.rglob("*"))
    saved(load(folder, device="cpu"), folder)
    assert sorted(p.name for p in folder.rglob("*")) == names


EVIL = "open('ran', 'w').close()\nclass Evil: pass\n"


@pytest.mark.parametrize("kind", ["evil.Evil", "os.path.join", "elmokit.Elmo"])
def test_only_our_class_gets_through(model, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    folder = saved(model, tmp_path / "model")
    (folder / "evil.py").write_text(EVIL)
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = kind
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="neither ElmoKit's nor of sentence-transformers"):
        load(folder, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_damaged_folders(model, tmp_path):
    folder = saved(model, tmp_path / "model")
    config = folder / "0_ElmoModule" / "config.json"
    good = json.loads(config.read_text())
    for values in (
        {**good, "bilm": {**good["bilm"], "sha256": "0"}},
        {**good, "bilm": {"name": "../models/en", "sha256": "0"}},
        {k: v for k, v in good.items() if k != "mix"},
    ):
        config.write_text(json.dumps(values))
        with pytest.raises(FormatError, match="copy the folder again"):
            load(folder, device="cpu")
    (folder / "modules.json").write_text("[{}]")
    with pytest.raises(FormatError, match="not a complete SentenceTransformer"):
        load(folder, device="cpu")


def test_a_function_as_tokenizer_cannot_be_saved(tiny_folder, tmp_path):
    model = load(Elmo.load(tiny_folder, tokenizer=str.split, device="cpu"), device="cpu")
    with pytest.raises(InputError, match="the tokenizer is the function split"):
        saved(model, tmp_path / "model")


def test_wrong_arguments(tiny_folder):
    with pytest.raises(InputError, match="pooling must be"):
        load(tiny_folder, pooling="median")
    with pytest.raises(InputError, match="layers must be"):
        load(tiny_folder, layers="all")


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("en", ["A cat sat on the mat.", "", "He runs a bank."]),
        ("zh", ["他在银行工作。", "", "河岸"]),
    ],
)
def test_bundled_models_are_saved_by_name(name, texts, tmp_path):
    model = load(name, device="cpu")
    elmo = Elmo.load(name, device="cpu")
    np.testing.assert_allclose(model.encode(texts), elmo.encode_sentences(texts), **CLOSE)
    folder = saved(model, tmp_path / "model")
    assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) < 10_000
    np.testing.assert_array_equal(load(folder, device="cpu").encode(texts), model.encode(texts))


def test_the_mock_tasks_of_mteb(model, monkeypatch):
    mteb = pytest.importorskip("mteb", reason="not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    results = mteb.mock_run(mteb.SentenceTransformerEncoderWrapper(model))
    (passed, kind, _), *others = results.modality_summary()
    assert results.all_passed
    assert (passed[0], kind) == ("✓", "text")
    assert {state for state, _, _ in others} == {"skipped"}
