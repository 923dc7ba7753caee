"""LSTMs in int8 on a CPU."""

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import InputError
from helpers.models import SENTENCES


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_int8_has_a_mean_cosine_above_0_999_in_every_layer(size, tiny_folder):
    if size == "tiny":  # both clips active
        exact = Elmo.load(tiny_folder, device="cpu")
        rounded = Elmo.load(tiny_folder, device="cpu", quantize="int8")
    else:
        exact = Elmo.random("small", device="cpu")
        rounded = Elmo.random("small", device="cpu", quantize="int8")
    for a, b in zip(exact.encode(SENTENCES, "all"), rounded.encode(SENTENCES, "all"), strict=True):
        if a.size:
            cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
            assert cosines.mean(1).min() > 0.999
    assert np.abs(a - b).max() > 0  # int8 was really used
    assert exact.checkpoint().checksum() == rounded.checkpoint().checksum()


def test_unsupported_precisions_are_refused(tiny_folder, monkeypatch):
    with pytest.raises(InputError, match="int8 or bfloat16, not 'int4'"):
        Elmo.load(tiny_folder, quantize="int4", device="cpu")
    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["none"])
    with pytest.raises(InputError, match="no int8 products"):
        Elmo.load(tiny_folder, quantize="int8", device="cpu")
    with pytest.raises(InputError, match="bfloat16 needs a GPU, and this model is on cpu"):
        Elmo.load(tiny_folder, quantize="bfloat16", device="cpu")


def test_packing_keeps_the_quantized_engine(tiny_folder):
    """Even if both directions pack at the same time."""
    threads, engine = torch.get_num_threads(), torch.backends.quantized.engine
    torch.set_num_threads(2)
    try:
        for _ in range(10):
            Elmo.load(tiny_folder, device="cpu", quantize="int8").encode(["a few words"] * 8)
            assert torch.backends.quantized.engine == engine
    finally:
        torch.set_num_threads(threads)
        torch.backends.quantized.engine = engine
