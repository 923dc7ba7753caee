"""The packed kernels, forward and backward, against the step-by-step LSTM.

On a CPU the passes are those of PyTorch, so everything else is tested on any machine. On a GPU the
fused passes are tested too.
"""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit import Elmo, kernels
from elmokit.kernels import gpu, packed, steps_torch
from elmokit.nn import ElmoEmbedding
from helpers.lstms import make_context, make_stacks, make_starts, run
from helpers.models import SENTENCES
from helpers.numbers import assert_close
from helpers.packed_checks import (
    check,
    check_active_clips,
    check_empty_sentences,
    check_nan,
    gradients,
    leaves_of,
    read_packed,
)

gpu_only = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
places = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu_only)])


def passes(device):
    """The implementation of the passes for a device."""
    if device == "cpu":
        return steps_torch
    from elmokit.kernels import steps_triton

    return steps_triton


@places
@pytest.mark.parametrize("directions", [1, 2])
def test_outputs_and_gradients_agree_with_active_clips(directions, device):
    check_active_clips(directions, device, passes(device))


@places
@given(data=st.data())
def test_any_batch_agrees(device, data):
    lengths = data.draw(st.lists(st.integers(0, 15), min_size=0, max_size=9), "lengths")
    directions, layers = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    width, cell_dim = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    if width == cell_dim:  # an LSTM of equal widths has no projection
        cell_dim += 1
    clips = data.draw(st.sampled_from([(3.0, 3.0), (None, None), (0.5, None), (None, 0.5)]))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    stacks = make_stacks(directions, layers, width, cell_dim, clips, device)
    time = max(lengths, default=0) + data.draw(st.integers(0, 2))
    tokens = torch.randn(len(lengths), time, width, device=device, requires_grad=True)
    starts = make_starts(stacks, len(lengths)) if data.draw(st.booleans()) else None
    skip, ends = data.draw(st.booleans()), torch.tensor(lengths, dtype=torch.long)
    check(stacks, tokens, ends, starts, skip, passes(device))


def test_split_products_are_as_exact_as_float32(monkeypatch):
    """Six bfloat16 products, summed in float32 or better, replace one float32 product."""
    torch.manual_seed(0)
    a, b = torch.randn(40, 64) * 3, torch.randn(48, 64)
    pieces = torch.empty(40, 6 * 64, dtype=torch.bfloat16)
    steps_torch._put(pieces, a, 6)
    exact = a.double() @ b.double().t()
    made = pieces.double() @ packed._split_weight(b).double().t()
    scale = exact.abs().max()
    assert (made - exact).abs().max() < 1e-7 * scale
    assert (a.bfloat16().double() @ b.bfloat16().double().t() - exact).abs().max() > 1e-4 * scale

    monkeypatch.setattr(packed, "_can_split", lambda *_: True)
    monkeypatch.setattr(packed, "_LONGEST_SUM", 16)

    def multiply(a, b, out):
        out.copy_(torch.bmm(a.float(), b.float()))

    monkeypatch.setattr(packed, "_multiply_split", multiply)
    stacks = make_stacks(2, 2, 8, 72, (3.0, 3.0))  # 72 cells are summed in 4 parts of 18
    tokens = torch.randn(9, 12, 8, requires_grad=True)
    check(stacks, tokens, torch.randint(0, 13, (9,)), None, True, steps_torch)


@places
def test_empty_sentences_keep_their_state(device):
    check_empty_sentences(device, passes(device))


@places
def test_nan_stays_nan(device):
    check_nan(device, passes(device))


def test_inputs_have_gradients_if_the_weights_are_frozen():
    stacks = make_stacks(2, 2, 4, 8, (3.0, 3.0))
    tokens = torch.randn(3, 5, 4, requires_grad=True)
    lengths = torch.tensor([5, 2, 3])
    for stack in stacks:
        for lstm in stack:
            lstm.requires_grad_(False)
    read = read_packed(stacks, True, steps_torch, True)
    (found,) = gradients(run(read, tokens, lengths), [tokens])
    (expected,) = gradients(run(make_context(stacks).read_plainly, tokens, lengths), [tokens])
    torch.testing.assert_close(found, expected)


def test_backward_can_run_twice():
    stacks = make_stacks(2, 1, 4, 8, (3.0, 3.0))
    tokens = torch.randn(3, 5, 4, requires_grad=True)
    read = read_packed(stacks, True, steps_torch, True)
    layers, _ = run(read, tokens, torch.tensor([5, 2, 3]))
    total = sum(layer.sum() for layer in layers)
    first = torch.autograd.grad(total, tokens, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(total, tokens)[0])


def test_unsupported_shapes_and_types_are_refused():
    tokens = torch.randn(2, 3, 8)

    def can_run(stacks, tokens=tokens):
        return packed.can_run([[m.weights() for m in stack] for stack in stacks], tokens)

    assert can_run(make_stacks(2, 2, 8, 16, (3.0, 3.0)))
    assert not can_run(make_stacks(1, 1, 8, 8, (3.0, 3.0)))  # no projection
    assert not can_run(make_stacks(1, 1, 4, 8, (3.0, 3.0)))
    assert not can_run(make_stacks(1, 1, 8, 16, (3.0, 3.0)), tokens.double())
    forward, _ = make_stacks(2, 1, 8, 16, (3.0, 3.0))
    _, backward = make_stacks(2, 1, 8, 16, (3.0, 1.0))
    assert not can_run([forward, backward])


@gpu_only
@pytest.mark.parametrize("rows", [1, 10**9])
def test_float32_is_close_to_float64_in_large_batches(rows, monkeypatch):
    """With split products and without."""
    monkeypatch.setattr(packed, "SPLIT_ROWS", rows)
    calls, multiply = [], packed._multiply_split
    monkeypatch.setattr(packed, "_multiply_split", lambda *a: (calls.append(1), multiply(*a)))
    stacks = make_stacks(2, 2, 128, 1024, (3.0, 3.0), "cuda")
    tokens = torch.randn(150, 20, 128, device="cuda")
    lengths = torch.randint(1, 21, (150,))
    with torch.no_grad():
        layers, _ = run(read_packed(stacks, True, passes("cuda"), False), tokens, lengths)
        doubled = make_context([stack.double() for stack in stacks])
        exact, _ = run(doubled.read_plainly, tokens.double(), lengths)
    assert bool(calls) == (rows == 1)
    for a, b in zip(layers, exact, strict=True):
        assert_close(a.cpu(), b.cpu())
        assert (a - b).abs().mean() < 1e-6 * b.abs().max()


@gpu_only
def test_bfloat16_has_a_mean_cosine_above_0_9999_in_every_layer():
    exact = Elmo.random("small", device="cuda")
    rounded = Elmo.random("small", device="cuda", quantize="bfloat16")
    assert rounded.precision == "bfloat16"
    for a, b in zip(exact.encode(SENTENCES, "all"), rounded.encode(SENTENCES, "all"), strict=True):
        if a.size:
            cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
            assert cosines.mean(1).min() > 0.9999
            assert np.abs(a - b)[1:].max() > 0  # bfloat16 was really used


@gpu_only
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_under_autocast_are_as_close_as_those_of_the_plain_path(dtype):
    stacks = make_stacks(2, 2, 64, 256, (3.0, 3.0), "cuda")
    tokens = torch.randn(20, 15, 64, device="cuda", requires_grad=True)
    lengths = torch.randint(1, 16, (20,))
    leaves, context = leaves_of(stacks, tokens, None), make_context(stacks)
    exact = gradients(run(context.read_plainly, tokens, lengths), leaves)
    with torch.autocast("cuda", dtype):
        plain = gradients(run(context.read_plainly, tokens, lengths), leaves)
        fast = run(context.read, tokens, lengths)
        assert fast[0][0].dtype == dtype
        fast = gradients(fast, leaves)
    for a, b, c in zip(fast, plain, exact, strict=True):
        error, theirs = torch.linalg.norm(a - c), torch.linalg.norm(b - c)
        assert error < 2 * theirs or error < 0.01 * torch.linalg.norm(c)
        assert error < 0.1 * torch.linalg.norm(c)


@gpu_only
def test_gpus_without_triton_use_the_plain_path(monkeypatch, caplog):
    gpu.gpu_steps.cache_clear()
    monkeypatch.setitem(sys.modules, "elmokit.kernels.steps_triton", None)
    monkeypatch.delattr(kernels, "steps_triton", raising=False)
    try:
        elmo = Elmo.random("small", device="cuda")
        vectors = elmo.encode("some words", "all")
        assert "the plain PyTorch path" in caplog.text
    finally:
        gpu.gpu_steps.cache_clear()
    monkeypatch.undo()
    assert_close(elmo.encode("some words", "all"), vectors)


@gpu_only
def test_fine_tuning_has_the_same_gradients_as_on_a_cpu():
    embedding = ElmoEmbedding(Elmo.random("small", device="cuda"), trainable=True, dropout=0)
    (mix,), _ = embedding(SENTENCES)
    mix.square().mean().backward()
    found = {name: p.grad.cpu() for name, p in embedding.named_parameters()}
    on_cpu = ElmoEmbedding(Elmo.random("small", device="cpu"), trainable=True, dropout=0)
    (mix,), _ = on_cpu(SENTENCES)
    mix.square().mean().backward()
    for name, p in on_cpu.named_parameters():
        assert torch.linalg.norm(found[name] - p.grad) < 1e-3 * torch.linalg.norm(p.grad) + 1e-7
