"""Tensors of the wrong kind, pickles that are no state dicts, and weights that overflow."""

import contextlib
import io
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import Elmo
from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.errors import FormatError
from elmokit.formats import read_model
from elmokit.formats.checkpoint import largest
from elmokit.formats.value_range import _Bounds
from elmokit.text.characters import CodepointAlphabet
from helpers.models import SENTENCES


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def change_native(folder, name, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors[name] = change(tensors[name]).contiguous()
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("forward_layers.0.bias", lambda t: t.to(torch.complex64)),
        ("forward_layers.0.bias", lambda t: t.to(torch.int64)),
        ("forward_layers.0.bias", lambda t: t > 0),
        ("softmax.weight", lambda t: t.to(torch.int8)),
        ("softmax.weight", lambda t: t[:0]),
        ("softmax.bias", lambda t: t.sum()),
        ("token_encoder.projection.weight", lambda t: t.double() * 1e300),
        ("token_encoder.character_embedding.weight", lambda t: t.to(torch.float8_e4m3fn)),
    ],
)
def test_odd_tensors_in_safetensors(native, refused, name, change):
    change_native(native, name, change)
    assert name in refused(native)


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.uint8])
@pytest.mark.parametrize("saved", ["int8", "int4"])
def test_odd_scales(native, tmp_path, refused, saved, dtype):
    Elmo.load(native, device="cpu").save(tmp_path / "small", dtype=saved)
    change_native(tmp_path / "small", "softmax.weight.scale", lambda t: t.to(dtype))
    assert "scales that no version" in refused(tmp_path / "small")


@pytest.mark.parametrize(
    "header",
    [b"[" * 5000, b"{}", b'{"a": 3}', b'{"a": {"dtype": 5, "shape": null}}', b"\xff", b"",
     b'{"a": {"dtype": "F32", "shape": [' + b"9" * 5000 + b'], "data_offsets": [0, 4]}}',
     b'{"' + b"x" * 5000 + b'": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'],
)  # fmt: skip
def test_odd_headers_of_safetensors(native, refused, header):
    for n in (len(header), 2**63 - 1, 2**64 - 1):
        (native / "model.safetensors").write_bytes(struct.pack("<Q", n) + header + bytes(4))
        refused(native)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.to_sparse(), "not a plain tensor"),
        (lambda t: t.to("meta"), "not a plain tensor"),
        (lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8), "not a plain tensor"),
        (lambda t: t.to(torch.complex64), "not a plain tensor.*complex64"),
        (lambda t: t.to(torch.int32), "not a plain tensor.*int32"),
        (lambda t: torch.nested.nested_tensor([t.flatten()]), "not a plain tensor"),
        (lambda t: t.double() * 1e300, "NaN or infinite"),
        (lambda t: torch.zeros(()).expand(100_000, 100_000), "more than the file has"),
        (lambda t: t.tolist(), "it is missing"),
        (lambda t: None, "it is missing"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_odd_tensors_in_pickles(many_langs, refused, change, message):
    path = many_langs / "token_embedder.pkl"
    tensors = torch.load(path, weights_only=True)
    tensors["projection.weight"] = change(tensors["projection.weight"])
    torch.save(tensors, path)
    assert re.search(message, refused(many_langs))


def test_other_layouts_of_plain_tensors(many_langs):
    """Old files, double precision, parameters and transposed tensors."""
    path = many_langs / "token_embedder.pkl"
    vectors = Elmo.load(many_langs, device="cpu").encode("cab 日")
    tensors = torch.load(path, weights_only=True)
    weight = tensors["projection.weight"]
    for changed in (weight.double(), torch.nn.Parameter(weight), weight.T.contiguous().T):
        changed_tensors = tensors | {"projection.weight": changed}
        torch.save(changed_tensors, path, _use_new_zipfile_serialization=False)
        again = Elmo.load(many_langs, device="cpu").encode("cab 日")
        np.testing.assert_allclose(vectors, again, rtol=1e-5, atol=1e-5)


def test_pickles_that_are_no_state_dicts(many_langs, tmp_path, refused):
    """PyTorch recommends weights_only=False for some of them, which runs their code."""
    marker = tmp_path / "code-was-run"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("encoder/data.pkl", pickle.dumps({}, protocol=2))
        archive.writestr("encoder/data/0", bytes(1 << 24))
    saved = io.BytesIO()
    torch.save({"x": Malicious(marker)}, saved)
    embedder = many_langs / "token_embedder.pkl"
    whole = embedder.read_bytes()
    embedder.write_bytes(b"abc")  # fewer bytes than the dictionaries have entries
    assert "token_embedder.pkl is not a complete PyTorch file" in refused(many_langs)
    embedder.write_bytes(whole)
    for data in (
        b"", b"abc", b"\x80\x02.", b"PK\3\4", bytes(1000), packed.getvalue(), saved.getvalue(),
        pickle.dumps(Malicious(marker), protocol=2), pickle.dumps([1], protocol=4),
        (many_langs / "encoder.pkl").read_bytes()[:-100],
    ):  # fmt: skip
        (many_langs / "encoder.pkl").write_bytes(data)
        message = refused(many_langs)
        assert "encoder.pkl" in message
        assert "weights_only" not in message
        assert not marker.exists()
    torch.save([1, 2], many_langs / "encoder.pkl")
    assert "contains a list; expected a state dict" in refused(many_langs)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("characters.txt", lambda w: [c for c in w if c != "<eow>"] + ["x"], "no <eow>"),
        ("characters.txt", lambda w: ["x" if c == "<oov>" else c for c in w], "no <oov>"),
        ("characters.txt", lambda w: ["x" if c == "<pad>" else c for c in w], "no <pad>"),
        ("words.txt", lambda w: ["x" if c == "<oov>" else c for c in w], "list of words has no"),
        ("words.txt", lambda w: w[1:], "must have 5 lines"),
        ("words.txt", lambda w: w + w, "10 lines, but the weights have 5 rows"),
        ("words.txt", lambda w: [], "must have 5 lines"),
        ("characters.txt", lambda w: ["\udcff" if c == "a" else c for c in w], "not valid UTF-8"),
    ],
)
def test_lists_without_their_entries(many_langs, tmp_path, refused, name, change, message):
    Elmo.load(many_langs, device="cpu").save(tmp_path / "saved")
    path = tmp_path / "saved" / name
    lines = change(path.read_text(encoding="utf-8").split("\n")[:-1])
    text = "".join(line + "\n" for line in lines)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert message in refused(tmp_path / "saved")


def test_alphabets_need_their_marks():
    config = TokenEncoderConfig(alphabet="codepoints", n_characters=3)
    with pytest.raises(FormatError, match="characters has no <bow> or <eow> or <pad>"):
        CodepointAlphabet(config, ["a", "b", "<oov>"])


def test_vocabularies_with_long_doubles(native, refused):
    path = native / "vocabulary.txt"
    lines = path.read_text().split("\n")
    lines[3] = lines[4] = "x" * 100_000
    path.write_text("\n".join(lines))
    assert "more than once" in refused(native)


LSTM_PARTS = [
    "token_encoder.character_embedding.weight",
    "token_encoder.convolutions.0.weight",
    "token_encoder.highways.1.gate.weight",
    "token_encoder.highways.0.transform.bias",
    "token_encoder.projection.weight",
    "forward_layers.1.input_weight",
    "backward_layers.0.state_weight",
    "forward_layers.0.projection",
    "backward_layers.1.bias",
    "softmax.weight",
]
TRANSFORMER_PARTS = [
    "token_encoder.projection.weight",
    "forward_layers.0.attention_norm.weight",
    "forward_layers.1.attention_in.weight",
    "backward_layers.0.feed_in.bias",
    "backward_layers.1.feed_out.weight",
]


@pytest.mark.parametrize("name", LSTM_PARTS)
def test_weights_that_overflow(native, refused, name):
    change_native(native, name, lambda t: t / t.abs().max() * 3e38)
    assert "weights so large that vectors overflow" in refused(native)


@pytest.fixture
def transformer(tmp_path):
    config = ModelConfig(
        TokenEncoderConfig(filters=((1, 4), (2, 4)), character_dim=4),
        ContextConfig("transformer", cell_dim=12, projection_dim=16, n_heads=2),
    )
    Elmo.random(config, device="cpu").save(tmp_path / "transformer")
    return tmp_path / "transformer"


@pytest.mark.parametrize("name", TRANSFORMER_PARTS)
def test_transformers_that_overflow(transformer, refused, name):
    change_native(transformer, name, lambda t: torch.full_like(t, 1e37))
    assert "weights so large that vectors overflow" in refused(transformer)


@pytest.mark.parametrize("model", ["native", "transformer"])
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("exponent", [8, 16, 24, 32])
def test_a_model_that_loads_also_encodes(request, model, part, exponent):
    """Whatever one tensor is multiplied by: refused, or all vectors are finite."""
    folder = request.getfixturevalue(model)
    name = (LSTM_PARTS if model == "native" else TRANSFORMER_PARTS)[part]
    change_native(folder, name, lambda t: (t + 0.1) * 10.0**exponent)
    with contextlib.suppress(FormatError):
        elmo = Elmo.load(folder, device="cpu")
        assert all(np.isfinite(v).all() for v in elmo.encode(SENTENCES, "all"))


@pytest.mark.parametrize("model", ["native", "transformer", "many_langs"])
def test_bounds_hold_and_are_moderate(request, model):
    checkpoint = read_model(request.getfixturevalue(model))
    maxima = {k: largest(t, k, "") for k, t in checkpoint.tensors.items()}
    bound = _Bounds(checkpoint.config, checkpoint.tensors, maxima, "")._token_encoder()
    found = max(np.abs(v).max(initial=0) for v in Elmo(checkpoint).encode(SENTENCES, 0))
    assert found <= bound < 1e6 * found
