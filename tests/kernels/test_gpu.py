"""A GPU gives the same numbers as a CPU."""

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.inference import engine
from elmokit.nn import ElmoEmbedding
from elmokit.pretrain.run.paths import RunPaths
from elmokit.pretrain.start import pretrain
from helpers.models import SENTENCES
from helpers.numbers import assert_close
from helpers.pretraining import recipe

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_vectors_agree_with_those_of_a_cpu(tiny_folder):
    gpu, cpu = Elmo.load(tiny_folder, device="cuda"), Elmo.load(tiny_folder, device="cpu")
    for state in ("zero", "warm"):
        ours = gpu.encode(SENTENCES, "all", state=state)
        for a, b in zip(ours, cpu.encode(SENTENCES, "all", state=state), strict=True):
            assert_close(a, b)


def test_batches_do_not_change_results():
    """They would if any product used TF32."""
    gpu = Elmo.random("small", device="cuda")
    with torch.no_grad():
        for convolution in gpu.bilm.token_encoder.convolutions:
            convolution.weight *= 6
    sentences = [s * 3 for s in SENTENCES] * 5
    for sentence, layers in zip(sentences, gpu.encode(sentences, "all"), strict=True):
        alone = gpu.encode([sentence], "all")[0]
        assert_close(alone, layers)
        if sentence:
            assert np.abs(alone - layers).mean() < 1e-6 * max(1, np.abs(layers).max())


def test_embedding_trains_under_autocast(tiny_folder):
    embedding = ElmoEmbedding(Elmo.load(tiny_folder, device="cuda"), trainable=True)
    with torch.autocast("cuda", torch.bfloat16):
        (mix,), mask = embedding(SENTENCES)
    assert mix.device.type == mask.device.type == "cuda"
    mix.float().sum().backward()
    assert embedding.bilm.forward_layers[0].bias.grad.isfinite().all()


@pytest.mark.parametrize("windows", [(2, 4), engine._GPU_WINDOWS])
def test_several_batches_in_a_call_agree(tiny_folder, windows, monkeypatch):
    """Memory is reused, vectors are copied one batch late, words are cached and dropped."""
    monkeypatch.setattr(engine, "_GPU_WINDOWS", windows)
    gpu, cpu = Elmo.load(tiny_folder, device="cuda"), Elmo.load(tiny_folder, device="cpu")
    gpu._engine.cache.capacity = 60  # enough for several small windows, but not for a large one
    sentences = [[*s, f"word{i}"] for i in range(40) for s in SENTENCES]
    for layers, marks in (("all", False), ("mix", False), ("all", True)):
        ours = gpu.encode(sentences, layers, batch_size=7, marks=marks)
        for a, b in zip(ours, cpu.encode(sentences, layers, marks=marks), strict=True):
            assert_close(a, b)
    assert len(gpu._engine.cache) <= 60
    assert bool(len(gpu._engine.cache)) == (windows == (2, 4))
    assert gpu.to("cpu").precision == "float32"
    assert_close(gpu.encode("a few words"), cpu.encode("a few words"))


@pytest.mark.parametrize("order", ["sentences", "stream"])
@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_every_softmax_trains(text, tmp_path, kind, order):
    """Under autocast, as is usual on a GPU, and after a resume."""
    settings = recipe(
        batch={"order": order, "steps": 8},
        softmax={"kind": kind, "samples": 10, "cutoffs": [8, 16]},
        training={"epochs": 4},
    )
    paths = RunPaths(*text, tmp_path / "run")
    found = pretrain(settings, paths, device="cuda")
    assert found.mean < 6
    longer = settings.changed({"training": {"epochs": 5}})
    again = pretrain(longer, paths, device="cuda", resume=True)
    assert again.mean < 6
