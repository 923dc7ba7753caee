"""The packed path, forward and back, against the plain LSTM; on a GPU with the fused kernels too.

On a CPU its passes are those of PyTorch, so that all the rest is tested on any machine.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit import Elmo, kernels
from elmokit.kernels import gpu, packed, steps_torch
from elmokit.nn import ElmoEmbedding
from helpers.lstms import flat, make_context, make_stacks, make_starts, run
from helpers.models import SENTENCES
from helpers.numbers import assert_close

gpu_only = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
places = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu_only)])


def passes(device):
    if device == "cpu":
        return steps_torch
    from elmokit.kernels import steps_triton

    return steps_triton


def read_packed(stacks, skip, steps, gradients):
    """A way to read rows by the packed kernel alone."""
    weights = [[lstm.weights() for lstm in stack] for stack in stacks]
    context = make_context(stacks, skip)

    def read(rows, ragged, start):
        start = context.zero_state(len(ragged.lengths)) if start is None else start
        layers = packed.run(weights, rows, ragged, start.layers, skip, gradients, steps)
        return ((x, (h, c)) for x, h, c in layers)

    return read


def gradients(found, leaves):
    """Of a randomly weighted sum of everything, which leaves nothing out."""
    torch.manual_seed(1)
    total = sum((t.float() * torch.randn(t.shape).to(t.device)).sum() for t in flat(found))
    if not total.requires_grad:  # the reference read nothing
        return [None] * len(leaves)
    return torch.autograd.grad(total, leaves, allow_unused=True)


def leaves_of(stacks, tokens, starts):
    own = [p for stack in stacks for p in stack.parameters()]
    return [tokens, *own, *(starts.tensors if starts is not None else ())]


def check(stacks, tokens, lengths, starts, skip, steps, tolerance=1e-5):
    leaves, n = leaves_of(stacks, tokens, starts), len(stacks)
    plain = run(make_context(stacks, skip).read_plainly, tokens, lengths, starts, n)
    fast = run(read_packed(stacks, skip, steps, True), tokens, lengths, starts, n)
    expected = gradients(plain, leaves)
    for a, b in zip(gradients(fast, leaves), expected, strict=True):
        assert (a is None) == (b is None) or not (a if b is None else b).any()
        if a is not None and b is not None:
            assert torch.linalg.norm(a - b) <= 20 * tolerance * (1 + torch.linalg.norm(b))
    with torch.no_grad():
        alone = run(read_packed(stacks, skip, steps, False), tokens, lengths, starts, n)
    for found in (fast, alone):
        for a, b in zip(flat(found), flat(plain), strict=True):
            np.testing.assert_allclose(
                a.detach().cpu(), b.detach().cpu(), atol=2 * tolerance, rtol=tolerance
            )
    return plain, expected


@places
@pytest.mark.parametrize("directions", [1, 2])
def test_both_clips_active(directions, device):
    stacks = make_stacks(directions, 2, 16, 64, (3.0, 3.0), device)
    tokens = torch.randn(8, 30, 16, device=device, requires_grad=True)
    lengths = torch.tensor([30, 1, 17, 0, 30, 29, 2, 8])
    starts = make_starts(stacks, 8)
    plain, expected = check(stacks, tokens, lengths, starts, True, passes(device))
    layers, finals = plain
    assert 0.02 < (layers[0].abs() == 3).float().mean() < 0.6
    assert (finals[0][1].abs() == 3).float().mean() > 0.1
    assert all(g.abs().sum() > 0 for g in expected)


@places
@given(data=st.data())
def test_any_batch(device, data):
    lengths = data.draw(st.lists(st.integers(0, 15), min_size=0, max_size=9), "lengths")
    directions, layers = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    width, cell_dim = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    if width == cell_dim:  # such an LSTM has no projection
        cell_dim += 1
    clips = data.draw(st.sampled_from([(3.0, 3.0), (None, None), (0.5, None), (None, 0.5)]))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    stacks = make_stacks(directions, layers, width, cell_dim, clips, device)
    time = max(lengths, default=0) + data.draw(st.integers(0, 2))
    tokens = torch.randn(len(lengths), time, width, device=device, requires_grad=True)
    starts = make_starts(stacks, len(lengths)) if data.draw(st.booleans()) else None
    skip, ends = data.draw(st.booleans()), torch.tensor(lengths, dtype=torch.long)
    check(stacks, tokens, ends, starts, skip, passes(device))


def test_split_products(monkeypatch):
    """Six products of bfloat16 numbers are a float32 product; here with every sum in float32."""
    torch.manual_seed(0)
    a, b = torch.randn(40, 64) * 3, torch.randn(48, 64)
    pieces = torch.empty(40, 6 * 64, dtype=torch.bfloat16)
    steps_torch._put(pieces, a, 6)
    exact = a.double() @ b.double().t()
    made = pieces.double() @ packed._split_weight(b).double().t()
    assert (made - exact).abs().max() < 2e-6
    assert (a.bfloat16().double() @ b.bfloat16().double().t() - exact).abs().max() > 1e-2

    monkeypatch.setattr(packed, "_can_split", lambda *_: True)
    monkeypatch.setattr(packed, "_LONGEST_SUM", 16)

    def multiply(a, b, out):
        out.copy_(torch.bmm(a.float(), b.float()))

    monkeypatch.setattr(packed, "_multiply_split", multiply)
    stacks = make_stacks(2, 2, 8, 72, (3.0, 3.0))  # 72 cells are summed in 4 parts of 18
    tokens = torch.randn(9, 12, 8, requires_grad=True)
    check(stacks, tokens, torch.randint(0, 13, (9,)), None, True, steps_torch)


@places
def test_sentences_without_tokens(device):
    stacks = make_stacks(2, 2, 4, 8, (3.0, 3.0), device)
    tokens = torch.randn(3, 2, 4, device=device, requires_grad=True)
    for lengths in ([1, 0, 0], [0, 2, 0], [0, 0, 0]):
        starts = make_starts(stacks, 3)
        check(stacks, tokens, torch.tensor(lengths), starts, True, passes(device))


@places
def test_what_is_no_number_stays_so(device):
    """Broken weights must not give plausible outputs."""
    stacks = make_stacks(1, 1, 4, 8, (3.0, 3.0), device)
    tokens = torch.full((1, 3, 4), torch.nan, device=device)
    read = read_packed(stacks, True, passes(device), False)
    with torch.no_grad():
        layers, _ = run(read, tokens, torch.tensor([3]), directions=1)
    assert layers[0].isnan().all()


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_in_triton_s_interpreter():
    script = Path(__file__).parent / "interpreted.py"
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(script.parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "all right\n", done.stderr


def test_frozen_weights():
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


def test_a_second_backward_pass():
    stacks = make_stacks(2, 1, 4, 8, (3.0, 3.0))
    tokens = torch.randn(3, 5, 4, requires_grad=True)
    read = read_packed(stacks, True, steps_torch, True)
    layers, _ = run(read, tokens, torch.tensor([5, 2, 3]))
    total = sum(layer.sum() for layer in layers)
    first = torch.autograd.grad(total, tokens, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(total, tokens)[0])


def test_what_it_cannot_run():
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


# On a GPU alone


@gpu_only
@pytest.mark.parametrize("rows", [1, 10**9])
def test_float32_at_size(rows, monkeypatch):
    """Split products and plain ones are as close to float64 as each other."""
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
        assert (a - b).abs().max() < 3e-5
        assert (a - b).abs().mean() < 2e-6


@gpu_only
def test_bfloat16_is_close():
    """The promise: a mean cosine of 0.9999 in every layer."""
    exact = Elmo.random("small", device="cuda")
    rounded = Elmo.random("small", device="cuda", quantize="bfloat16")
    assert rounded.precision == "bfloat16"
    for a, b in zip(exact.encode(SENTENCES, "all"), rounded.encode(SENTENCES, "all"), strict=True):
        if a.size:
            cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
            assert cosines.mean(1).min() > 0.9999
            assert np.abs(a - b)[1:].max() > 0  # it is another path


@gpu_only
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_gradients(dtype):
    """About as close to float32's as the plain path's under autocast."""
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
def test_without_triton(monkeypatch, caplog):
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
def test_fine_tuning_on_a_gpu():
    embedding = ElmoEmbedding(Elmo.random("small", device="cuda"), trainable=True, dropout=0)
    (mix,), _ = embedding(SENTENCES)
    mix.square().mean().backward()
    found = {name: p.grad.cpu() for name, p in embedding.named_parameters()}
    on_cpu = ElmoEmbedding(Elmo.random("small", device="cpu"), trainable=True, dropout=0)
    (mix,), _ = on_cpu(SENTENCES)
    mix.square().mean().backward()
    for name, p in on_cpu.named_parameters():
        assert torch.linalg.norm(found[name] - p.grad) < 1e-3 * torch.linalg.norm(p.grad) + 1e-7
