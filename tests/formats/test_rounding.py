"""Models stored in fewer bits."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import Elmo
from elmokit.errors import (
    FormatError,
    InputError,
)
from elmokit.formats.rounding import restored, rounded
from helpers.models import SENTENCES


@pytest.mark.parametrize(
    ("dtype", "share", "cosine"),
    [("float16", 0.55, 0.999999), ("int8", 0.35, 0.999), ("int4", 0.35, 0.999)],
)
def test_smaller_files(tiny, tmp_path, dtype, share, cosine):
    tiny.save(tmp_path / "whole")
    tiny.save(tmp_path / "small", dtype=dtype)
    sizes = [(tmp_path / n / "model.safetensors").stat().st_size for n in ("whole", "small")]
    assert sizes[1] < share * sizes[0] + 6000  # the names of the tensors come on top
    again = Elmo.load(tmp_path / "small", device="cpu")
    a, b = tiny.encode("some words here", "all"), again.encode("some words here", "all")
    cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    assert cosine < cosines.min() < 1
    again.save(tmp_path / "again", dtype=dtype)  # rounding a second time changes nothing
    twice = Elmo.load(tmp_path / "again", device="cpu")
    c = twice.encode("some words here", "all")
    np.testing.assert_allclose(b, c, rtol=1e-5, atol=1e-6 * np.abs(b).max())
    with pytest.raises(InputError, match="float32"):
        tiny.save(tmp_path / "x", format="bilm-tf", dtype=dtype)
    with pytest.raises(InputError, match="dtype must be float32, float16, int8 or int4, not"):
        tiny.save(tmp_path / "x", dtype="int3")


@pytest.mark.parametrize("width", [6, 64, 128])
def test_four_bits(width):
    """Only the softmax has four bits. It is at least as close as plain rounding, and stable."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(50, width, generator=generator) * torch.logspace(-4, 1, 50)[:, None]
    weight[3] = 0
    tensors = {"softmax.weight": weight, "softmax.bias": weight[:, 0], "other.weight": weight}
    stored = rounded(tensors, "int4")
    assert stored["softmax.weight"].shape == (50, width // 2)
    assert stored["other.weight"].dtype == torch.int8
    whole = restored(stored)
    assert set(whole) == set(tensors)
    assert whole["softmax.weight"].shape == weight.shape
    steps = weight.abs().amax(1, keepdim=True) / 7  # plain rounding with one scale per row
    off = (whole["softmax.weight"] - weight).square().sum(1)
    plain = ((weight / steps.clamp_min(1e-9)).round() * steps - weight).square().sum(1)
    assert (off <= plain * 1.05 + 1e-12 * weight.square().sum()).all()
    again = restored(rounded(whole, "int4"))
    size = weight.abs().max().item()
    torch.testing.assert_close(
        again["softmax.weight"], whole["softmax.weight"], rtol=1e-3, atol=1e-8 * size
    )


def test_a_language_model_in_four_bits(lm_folder, tmp_path):
    """Vectors equal those of int8; predictions are nearly the same."""
    whole = Elmo.load(lm_folder, device="cpu")
    models = {}
    for dtype in ("int8", "int4"):
        whole.save(tmp_path / dtype, dtype=dtype)
        models[dtype] = Elmo.load(tmp_path / dtype, device="cpu")
    files = [(tmp_path / dtype / "model.safetensors").stat().st_size for dtype in models]
    assert files[1] < files[0]
    a, b = (model.encode(SENTENCES, "all") for model in models.values())
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    exact, eight, four = (m.perplexity(SENTENCES).mean for m in (whole, *models.values()))
    assert four != eight
    assert np.log(four) == pytest.approx(np.log(exact), rel=0.03)  # the weights are random


def test_scales_that_do_not_fit(lm_folder, tmp_path):
    Elmo.load(lm_folder, device="cpu").save(tmp_path / "x", dtype="int8")
    path = tmp_path / "x" / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"softmax.weight.scale": torch.ones(3)}, path)
    with pytest.raises(FormatError, match="softmax.weight has the type I8 or scales that no"):
        Elmo.load(tmp_path / "x", device="cpu")
