"""ONNX files compute the same vectors as ElmoKit, in onnxruntime and without PyTorch."""

import json
import sys

import numpy as np
import pytest
import torch

from elmokit import Elmo, InputError, MissingExtraError, OutputError, UnsupportedModelError
from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.formats.checkpoint import Checkpoint
from elmokit.integrations.onnx import export_onnx
from elmokit.nn import BiLM
from helpers.docs import ROOT
from helpers.models import SENTENCES, TINY, many_langs_folder, write_published
from helpers.numbers import assert_close
from helpers.processes import run_python

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'elmokit[onnx]'")
onnxruntime = pytest.importorskip(
    "onnxruntime", reason="onnxruntime is not installed: pip install 'elmokit[onnx]'"
)


def feed(elmo, sentences):
    """The inputs of the graph, made by ElmoKit's alphabet."""
    encoder = elmo.config.token_encoder
    time = max(map(len, sentences))
    width = encoder.max_characters + (encoder.word_dim > 0)
    ids = np.zeros((len(sentences), time, width), np.int64)
    for row, words in zip(ids, sentences, strict=True):
        if words:
            row[: len(words)] = elmo.alphabet.encode(words, encoder.max_characters)
    return {"ids": ids, "lengths": np.array([len(words) for words in sentences], np.int64)}


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def exported(elmo, tmp_path, **keywords):
    path = tmp_path / "model.onnx"
    export_onnx(elmo, path, overwrite=True, **keywords)
    onnx.checker.check_model(path, full_check=True)
    return open_session(path)


def assert_same(elmo, session, sentences, tolerance=1e-5):
    """All layers and the mix equal ElmoKit's, and the padding is zero."""
    layers, mix = session.run(["layers", "mix"], feed(elmo, sentences))
    time = max(map(len, sentences))
    assert layers.shape == (elmo.n_layers, len(sentences), time, elmo.dim)
    assert mix.shape == layers.shape[1:]
    expected = np.zeros_like(layers)
    expected_mix = np.zeros_like(mix)
    for i, words in enumerate(sentences):
        expected[:, i, : len(words)] = elmo.encode([words], "all")[0]
        expected_mix[i, : len(words)] = elmo.encode([words])[0]
    assert_close(layers, expected, tolerance)
    assert_close(mix, expected_mix, tolerance)
    for i, words in enumerate(sentences):
        assert not layers[:, i, len(words) :].any()
        assert not mix[i, len(words) :].any()


def random_model(context, encoder=None, characters=(), words=()):
    """A model with random weights large enough to fill cells and to turn layers."""
    encoder = encoder or TokenEncoderConfig(((1, 4), (2, 6), (3, 8)), character_dim=4)
    config = ModelConfig(encoder, context)
    torch.manual_seed(0)
    bilm = BiLM(config)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.copy_(torch.randn_like(parameter) * max(1, parameter[0].numel()) ** -0.5)
    tensors = bilm.state_dict()
    return Elmo(Checkpoint(config, tensors, None, list(characters), list(words)), device="cpu")


BATCHES = {
    "ragged, with an empty row": SENTENCES,
    "one sentence": SENTENCES[:1],
    "one word": [["a"]],
    "empty rows first": [[], [], ["a", "b"]],
    "nothing but empty rows": [[], []],
}


@pytest.mark.parametrize("batch", BATCHES)
def test_it_equals_elmokit_with_both_clips_active(tiny, tmp_path, batch):
    assert_same(tiny, exported(tiny, tmp_path), BATCHES[batch])


def test_the_clips_were_active(tiny_folder):
    vectors = []
    for name in ("cell_clip", "proj_clip", None):
        elmo = Elmo.load(tiny_folder, device="cpu")
        for lstm in (lstm for stack in elmo.bilm.directions for lstm in stack):
            if name is not None:
                setattr(lstm, name, None)
        vectors.append(np.concatenate(elmo.encode(SENTENCES, "all"), 1))
    assert np.abs(vectors[0] - vectors[2]).max() > 0.01  # tanh(3) is almost 1
    assert np.abs(vectors[1] - vectors[2]).max() > 0.1


def test_random_ragged_batches(tiny, tmp_path):
    session = exported(tiny, tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(5):
        lengths = rng.integers(0, 12, rng.integers(1, 8))
        sentences = [
            ["".join(map(chr, rng.integers(33, 800, rng.integers(1, 60)))) for _ in range(n)]
            for n in (*lengths, 3)
        ]
        assert_same(tiny, session, sentences)


def test_ids_after_the_end_of_a_sentence_do_not_matter(tiny, tmp_path):
    session = exported(tiny, tmp_path)
    clean = feed(tiny, [["a", "b", "c"], ["d"]])
    dirty = {"ids": clean["ids"].copy(), "lengths": clean["lengths"]}
    dirty["ids"][1, 1:] = clean["ids"][0, 1:]
    for found, expected in zip(session.run(None, dirty), session.run(None, clean), strict=True):
        assert_close(found, expected)


@pytest.mark.parametrize(
    ("section", "changes"),
    [
        ("lstm", {"use_skip_connections": False, "n_layers": 3}),
        ("lstm", {"dim": 8, "n_layers": 1}),  # as wide as the output: no projection
        ("lstm", {"cell_clip": None, "proj_clip": None}),
        ("char_cnn", {"n_highway": 0, "activation": "tanh"}),
        ("char_cnn", {"filters": [[1, 8]]}),  # as wide as the token vector: no projection
    ],
)
def test_other_architectures(tmp_path, section, changes):
    options = TINY | {section: TINY[section] | changes}
    elmo = Elmo.load(write_published(tmp_path / "model", options), device="cpu")
    assert_same(elmo, exported(elmo, tmp_path), SENTENCES)


@pytest.mark.parametrize("word_dim", [0, 5])
def test_models_with_code_points_and_words(tmp_path, word_dim):
    elmo = Elmo.load(many_langs_folder(tmp_path / "model", word_dim), device="cpu")
    sentences = [["cab", "日", "cabbage", "xyz"], [], ["c" * 30]]
    assert_same(elmo, exported(elmo, tmp_path), sentences)
    stored = metadata(tmp_path / "model.onnx")
    assert ("word_ids" in stored) == (word_dim > 0)


def test_a_model_with_words_only(tmp_path):
    characters, words = ["<bow>", "<eow>", "<oov>", "<pad>", "a"], ["<oov>", "a", "b"]
    encoder = TokenEncoderConfig((), 0, 4, 5, 10, "relu", "codepoints", 6, 3)
    elmo = random_model(ContextConfig(cell_dim=12, projection_dim=8), encoder, characters, words)
    assert_same(elmo, exported(elmo, tmp_path), [["a", "b", "c"], ["b"], []])


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_transformers_and_forward_only_models(tmp_path, kind, bidirectional):
    sizes = {"cell_dim": 24, "projection_dim": 16, "n_heads": 2}
    elmo = random_model(ContextConfig(kind, **sizes, bidirectional=bidirectional))
    assert_same(elmo, exported(elmo, tmp_path), SENTENCES)
    assert_same(elmo, exported(elmo, tmp_path, dtype="int8"), SENTENCES, 0.05)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("en", "The bank raised its rates again . || I sat by the bank of the river || Naïve 日"),
        ("zh", "苹果 在 秋季 发布会 上 推出 了 新款 手机 。 || 蘋果 樹 || bank 🙂 龘"),
    ],
)
def test_the_bundled_models(tmp_path, name, text):
    elmo = Elmo.load(name, device="cpu")
    sentences = [[], *(part.split() for part in text.split("||"))]
    assert_same(elmo, exported(elmo, tmp_path), sentences)
    size = (tmp_path / "model.onnx").stat().st_size
    found = exported(elmo, tmp_path, dtype="int8").run(["layers"], feed(elmo, sentences))[0]
    assert (tmp_path / "model.onnx").stat().st_size < size / 3
    for i, words in enumerate(sentences[1:], 1):
        expected = elmo.encode([words], "all")[0]
        own = found[:, i, : len(words)]
        cosines = (own * expected).sum(-1)
        cosines /= np.linalg.norm(own, axis=-1) * np.linalg.norm(expected, axis=-1)
        assert cosines.min() > 0.9999  # the weights are stored in eight bits already


def test_int8_does_not_depend_on_the_batch(tmp_path, tiny):
    tiny.save(tmp_path / "rounded", dtype="int8")
    elmo = Elmo.load(tmp_path / "rounded", device="cpu")
    session = exported(elmo, tmp_path, dtype="int8")
    assert_same(elmo, session, SENTENCES, 1e-3)  # only activations are rounded
    together = session.run(["mix"], feed(elmo, SENTENCES))[0]
    for i, words in enumerate(SENTENCES):
        if words:
            alone = session.run(["mix"], feed(elmo, [words]))[0][0]
            assert_close(alone, together[i, : len(words)])


def test_float16_halves_the_file(tiny, tmp_path):
    exported(tiny, tmp_path)
    whole = (tmp_path / "model.onnx").stat().st_size
    assert_same(tiny, exported(tiny, tmp_path, dtype="float16"), SENTENCES, 0.01)
    assert (tmp_path / "model.onnx").stat().st_size < whole


def test_the_mix_is_the_models_own(tiny, tmp_path):
    tiny.set_mix([1.0, -2.0, 0.5], gamma=0.3)
    assert_same(tiny, exported(tiny, tmp_path), SENTENCES)


def test_the_same_model_gives_the_same_file(tiny, tiny_folder, tmp_path):
    quantized = Elmo.load(tiny_folder, device="cpu", quantize="int8")
    contents = []
    for elmo in (tiny, quantized):  # stored weights stay exact
        exported(elmo, tmp_path)
        contents.append((tmp_path / "model.onnx").read_bytes())
    assert contents[0] == contents[1]


def metadata(path):
    return {prop.key: prop.value for prop in onnx.load(path).metadata_props}


def test_metadata(tiny, tmp_path):
    exported(tiny, tmp_path, dtype="float16")
    model = onnx.load(tmp_path / "model.onnx")
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 20)]
    stored = metadata(tmp_path / "model.onnx")
    assert "Apache-2.0" in stored["licence"]
    assert ModelConfig.from_dict(json.loads(stored["config"])) == tiny.config
    for name, value in {
        "format": "elmokit-onnx 1",
        "dtype": "float16",
        "tokenizer": tiny.tokenizer.name,
        "alphabet": "utf8",
        "max_characters": 50,
        "first_byte_id": 1,
        "word_begin_id": 259,
        "word_end_id": 260,
        "padding_id": 261,
        "n_layers": 3,
        "dim": 16,
    }.items():
        assert stored[name] == str(value), name


@pytest.mark.parametrize("name", ["en", "zh"])
def test_metadata_is_enough_to_make_ids(tmp_path, name):
    elmo = Elmo.load(name, device="cpu")
    exported(elmo, tmp_path, dtype="int8")
    stored = metadata(tmp_path / "model.onnx")
    columns = int(stored["max_characters"])
    words = ["bank", "é" * 40, "蘋果樹", "苹果树", "龘", "a" * 60]

    def ids(word):
        if stored["alphabet"] == "utf8":
            middle = [byte + int(stored["first_byte_id"]) for byte in word.encode()]
        else:
            known = json.loads(stored["character_ids"])
            middle = [known.get(c, int(stored["unknown_id"])) for c in word]
        row = [int(stored["word_begin_id"]), *middle[: columns - 2], int(stored["word_end_id"])]
        return row + [int(stored["padding_id"])] * (columns - len(row))

    assert elmo.alphabet.encode(words, columns).tolist() == [ids(word) for word in words]


BLOCKED = """
import runpy, sys
sys.modules["torch"] = sys.modules["elmokit"] = sys.modules["onnx"] = None
script, sys.argv[1:] = sys.argv[1], sys.argv[2:]
runpy.run_path(script, run_name="__main__")
"""


def test_the_example_runs_without_torch(tmp_path):
    elmo = Elmo.load(device="cpu")
    exported(elmo, tmp_path)
    script = ROOT / "examples" / "onnx_standalone.py"
    done = run_python("-c", BLOCKED, script, tmp_path / "model.onnx")
    assert done.returncode == 0, done.stderr
    texts = [line.split("bank: ")[1].split(" / ") for line in done.stdout.splitlines()]
    assert len(texts) == 2
    for line, (first, second) in zip(done.stdout.splitlines(), texts, strict=True):
        a, b = (
            elmo.encode([text.split()])[0][text.split().index("bank")] for text in (first, second)
        )
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert abs(float(line.split()[0]) - cosine) < 2e-3
    money, river = (float(line.split()[0]) for line in done.stdout.splitlines())
    assert money > river


def test_mistakes(tiny, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    with pytest.raises(InputError, match="float32, float16 or int8 in an ONNX file, not 'int4'"):
        export_onnx(tiny, path, dtype="int4")
    with pytest.raises(InputError, match=r"must end in \.onnx, unlike 'model'"):
        export_onnx(tiny, tmp_path / "model")
    with pytest.raises(InputError, match="elmo must be a model"):
        export_onnx("en", path)
    with pytest.raises(OutputError, match="does not exist"):
        export_onnx(tiny, tmp_path / "missing" / "model.onnx")
    path.write_text("old")
    with pytest.raises(OutputError, match="overwrite=True"):
        export_onnx(tiny, path)
    monkeypatch.setattr("elmokit.integrations.onnx._MOST_BYTES", 1000)
    with pytest.raises(UnsupportedModelError, match="at most 2 GB"):
        export_onnx(tiny, path, overwrite=True)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("model.onnx", "old")]


def test_without_the_package(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmokit\[onnx\]'"):
        export_onnx(tiny, tmp_path / "model.onnx")


def test_a_failed_write_keeps_the_old_file(tiny, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_text("old")

    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OutputError, match="no space left"):
        export_onnx(tiny, path, overwrite=True)
    monkeypatch.undo()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("model.onnx", "old")]
