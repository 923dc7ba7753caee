"""The CPU kernel against the step-by-step LSTM: ragged batches, active clips, any initial state."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.formats.rounding import restored, rounded
from elmokit.kernels import cpu, cpu_products
from helpers.lstms import flat, make_context, make_stacks, make_starts, random_lstm, run
from helpers.models import SENTENCES
from helpers.numbers import assert_close

CLIPS = [(3.0, 3.0), (None, None), (0.5, None), (None, 0.5), (1.0, 0.25)]


@torch.no_grad()
def check(stacks, tokens, lengths, starts=None, skip=True, tolerance=2e-5):
    """Compare the CPU kernel with the step-by-step LSTM; returns the result of the latter."""
    context = make_context(stacks, skip)
    expected = run(context.read_plainly, tokens, lengths, starts, len(stacks))
    found = run(context.read, tokens, lengths, starts, len(stacks))
    for a, b in zip(flat(found), flat(expected), strict=True):
        assert_close(a, b, tolerance)
    return expected


def store_in_eight_bits(stacks):
    """Round all weights as a model saved with dtype="int8" has them."""
    for lstm in (lstm for stack in stacks for lstm in stack):
        lstm.load_state_dict(restored(rounded(lstm.state_dict(), "int8")))


def test_agrees_with_active_clips():
    lengths = torch.tensor([30, 1, 17, 0, 30, 29, 2, 8])
    layers, finals = check(make_stacks(2, 1, 16, 64, (3.0, 3.0)), torch.randn(8, 30, 16), lengths)
    inside = layers[0][:, torch.arange(30) < lengths[:, None]]
    assert 0.02 < (inside.abs() == 3).float().mean() < 0.6
    assert (finals[0][1].abs() == 3).float().mean() > 0.2


def test_step_by_step_lstm_does_not_depend_on_how_many_gates_it_computes_ahead(monkeypatch):
    tokens, lengths = torch.randn(3, 50, 8), torch.tensor([50, 7, 33])
    for steps in (1, 7, 50):
        monkeypatch.setattr("elmokit.nn.lstm._GATE_VALUES", 3 * 4 * 24 * steps)
        check(make_stacks(2, 1, 8, 24, (3.0, 3.0)), tokens, lengths)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 25), min_size=0, max_size=12),
    directions=st.integers(1, 2),
    layers=st.integers(1, 3),
    width=st.integers(1, 9),
    cell_dim=st.integers(1, 20),
    no_projection=st.booleans(),
    clips=st.sampled_from(CLIPS),
    skip=st.booleans(),
    with_state=st.booleans(),
    eight_bits=st.booleans(),
    padding=st.integers(0, 3),
    rows_ahead=st.sampled_from([1, 3, 7, 512]),
    seed=st.integers(0, 1000),
)
def test_any_batch_agrees(
    lengths, directions, layers, width, cell_dim, no_projection, clips, skip, with_state,
    eight_bits, padding, rows_ahead, seed,
):  # fmt: skip
    cell_dim = width if no_projection else cell_dim
    stacks = make_stacks(directions, layers, width, cell_dim, clips, seed=seed)
    if eight_bits:
        store_in_eight_bits(stacks)
    tokens = torch.randn(len(lengths), max(lengths, default=0) + padding, width)
    starts = make_starts(stacks, len(lengths)) if with_state else None
    before = cpu._ROWS_AHEAD
    cpu._ROWS_AHEAD = rows_ahead
    try:
        ends = torch.tensor(lengths, dtype=torch.long)
        check(stacks, tokens, ends, starts, skip, tolerance=5e-5)
    finally:
        cpu._ROWS_AHEAD = before


def test_initial_state_is_not_modified():
    stacks = make_stacks(2, 1, 4, 8, (3.0, 3.0))
    starts = make_starts(stacks, 2)
    before = [t.clone() for t in starts.tensors]
    check(stacks, torch.randn(2, 5, 4), torch.tensor([5, 3]), starts)
    assert all(torch.equal(a, b) for a, b in zip(starts.tensors, before, strict=True))


def products(lstm):
    """The packed weights."""
    return lstm.weights().packed.products(lstm.weights(), "float32")


def test_changed_weights_are_packed_again():
    stacks = make_stacks(1, 1, 4, 8, (3.0, 3.0))
    (lstm,) = stacks[0].requires_grad_(False)
    tokens, lengths = torch.randn(2, 5, 4), torch.tensor([5, 3])
    check(stacks, tokens, lengths)
    assert products(lstm) is products(lstm)
    lstm.state_weight.data.mul_(2)
    check(stacks, tokens, lengths)
    lstm.bias = torch.nn.Parameter(lstm.bias + 1, requires_grad=False)
    check(stacks, tokens, lengths)
    lstm.bias[5] += 1  # a single value
    check(stacks, tokens, lengths)
    lstm.forget_bias = 0.5
    check(stacks, tokens, lengths)


def test_old_weights_are_not_used_after_failed_packing(monkeypatch):
    """Packing new weights may run out of memory."""
    stacks = make_stacks(1, 1, 4, 8, (3.0, 3.0))
    (lstm,) = stacks[0].requires_grad_(False)
    tokens, lengths = torch.randn(2, 5, 4), torch.tensor([5, 3])
    check(stacks, tokens, lengths)
    lstm.state_weight.mul_(2)

    def fail(weights):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setitem(cpu_products.PRODUCTS, "float32", fail)
        with pytest.raises(MemoryError):
            products(lstm)
    check(stacks, tokens, lengths)


needs_fbgemm = pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines,
    reason="PyTorch has no float16 products for this processor",
)


@needs_fbgemm
@pytest.mark.parametrize(("width", "cell_dim"), [(7, 7), (16, 64), (33, 130)])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_weights_stored_in_eight_bits_agree(width, cell_dim, n):
    stacks = make_stacks(2, 2, width, cell_dim, (3.0, 3.0))
    store_in_eight_bits(stacks)
    with torch.no_grad():
        stacks[0][0].state_weight[0] = 0  # a row without a scale of its own
    assert all(products(lstm)._few_rows for stack in stacks for lstm in stack)
    check(stacks, torch.randn(n, 9, width), torch.randint(1, 10, (n,)))


@needs_fbgemm
def test_float16_is_used_again_only_if_changed_weights_allow_it():
    stacks = make_stacks(1, 1, 16, 64, (3.0, 3.0))
    (lstm,) = stacks[0].requires_grad_(False)
    tokens, lengths = torch.randn(2, 5, 16), torch.tensor([5, 3])
    assert products(lstm)._few_rows is None
    store_in_eight_bits(stacks)
    assert products(lstm)._few_rows is not None
    check(stacks, tokens, lengths)
    lstm.projection[3, 5] += 1e-3
    assert products(lstm)._few_rows is None
    check(stacks, tokens, lengths)


@needs_fbgemm
def test_packing_leaves_the_quantized_engine_as_it_is():
    stacks = make_stacks(1, 1, 16, 64, (3.0, 3.0))
    store_in_eight_bits(stacks)
    before = torch.backends.quantized.engine
    assert products(stacks[0][0])._few_rows is not None
    assert torch.backends.quantized.engine == before


def test_copies_pack_their_own_weights():
    lstm = random_lstm(4, 8, 4, (3.0, 3.0))
    packed = products(lstm)
    assert products(copy.deepcopy(lstm)) is not packed
    assert products(lstm) is packed


def test_default_dtype_does_not_change_results(tiny):
    expected = tiny.encode(SENTENCES, "all")
    torch.set_default_dtype(torch.float64)
    try:
        found = tiny.encode(SENTENCES, "all")
    finally:
        torch.set_default_dtype(torch.float32)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_initial_state_can_be_learned_if_the_model_is_frozen(tiny):
    start = tiny.bilm.zero_state(2).map(lambda t: (t + 0.1).requires_grad_())
    layers, _ = tiny.bilm(torch.randn(2, 5, 8), torch.tensor([5, 3]), start)
    layers.sum().backward()
    assert all(t.grad.abs().sum() > 0 for t in start.tensors)


def test_gradients_autocast_and_float64_take_another_path(tiny, monkeypatch):
    calls, run = [], cpu.run_stack

    def counted(*arguments):
        calls.append("fast")
        return run(*arguments)

    monkeypatch.setattr(cpu, "run_stack", counted)
    tokens, lengths = torch.randn(2, 5, 8), torch.tensor([5, 3])
    exact, _ = tiny.bilm(tokens, lengths)
    assert calls == ["fast", "fast"]
    calls.clear()
    plain, _ = tiny.bilm(tokens.clone().requires_grad_(), lengths)
    plain.sum().backward()
    assert_close(plain.detach(), exact)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    with torch.autocast("cpu", torch.bfloat16):
        tiny.bilm(tokens, lengths)
        with torch.no_grad():
            tiny.bilm(tokens, lengths)
    torch.set_num_threads(threads)
    tiny.bilm.requires_grad_()
    tiny.bilm(tokens, lengths)[0].sum().backward()
    assert calls == []
    with torch.no_grad():
        tiny.bilm(tokens, lengths)
    assert calls == ["fast", "fast"]
    tiny.bilm.double()
    with torch.no_grad():
        tiny.bilm(tokens.double(), lengths)
    assert calls == ["fast", "fast"]


def test_layers_are_written_into_given_memory(tiny):
    tokens, lengths = torch.randn(3, 6, 8), torch.tensor([6, 2, 0])
    expected, _ = tiny.bilm(tokens, lengths)
    memory = torch.full((3 * 3 * 6 * 16 + 100,), torch.nan)
    layers, _ = tiny.bilm(tokens, lengths, memory=memory)
    assert layers.data_ptr() == memory.data_ptr()
    assert torch.equal(layers, expected)
