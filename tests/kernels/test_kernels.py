"""The CPU kernel against the step-by-step LSTM: random ragged batches, active clips, any start."""

import copy
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit import Elmo
from elmokit.errors import InputError
from elmokit.kernels import cpu, cpu_products, parallel
from helpers.lstms import flat, make_context, make_stacks, make_starts, random_lstm, run
from helpers.models import SENTENCES
from helpers.numbers import assert_close

CLIPS = [(3.0, 3.0), (None, None), (0.5, None), (None, 0.5), (1.0, 0.25)]


def close(found, expected, tolerance=5e-6):
    """Equal within rounding; outputs and cells are of the order of 3, the clips."""
    for a, b in zip(flat(found), flat(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=4 * tolerance, rtol=tolerance)


@torch.no_grad()
def same(stacks, tokens, lengths, starts=None, skip=True, tolerance=5e-6):
    """Run by the CPU kernel and step by step, and compare; the latter's result."""
    context = make_context(stacks, skip)
    expected = run(context.read_plainly, tokens, lengths, starts, len(stacks))
    close(run(context.read, tokens, lengths, starts, len(stacks)), expected, tolerance)
    return expected


def test_both_clips_active():
    lengths = torch.tensor([30, 1, 17, 0, 30, 29, 2, 8])
    layers, finals = same(make_stacks(2, 1, 16, 64, (3.0, 3.0)), torch.randn(8, 30, 16), lengths)
    inside = layers[0][:, torch.arange(30) < lengths[:, None]]
    assert 0.02 < (inside.abs() == 3).float().mean() < 0.6
    assert (finals[0][1].abs() == 3).float().mean() > 0.2


def test_the_reference_in_pieces(monkeypatch):
    """However few steps' gates it computes ahead, the result is the same."""
    tokens, lengths = torch.randn(3, 50, 8), torch.tensor([50, 7, 33])
    for steps in (1, 7, 50):
        monkeypatch.setattr("elmokit.nn.lstm._GATE_VALUES", 3 * 4 * 24 * steps)
        same(make_stacks(2, 1, 8, 24, (3.0, 3.0)), tokens, lengths)


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
    padding=st.integers(0, 3),
    rows_ahead=st.sampled_from([1, 3, 7, 512]),
    seed=st.integers(0, 1000),
)
def test_any_batch(
    lengths, directions, layers, width, cell_dim, no_projection, clips, skip, with_state, padding,
    rows_ahead, seed,
):  # fmt: skip
    cell_dim = width if no_projection else cell_dim
    stacks = make_stacks(directions, layers, width, cell_dim, clips, seed=seed)
    tokens = torch.randn(len(lengths), max(lengths, default=0) + padding, width)
    starts = make_starts(stacks, len(lengths)) if with_state else None
    before = cpu._ROWS_AHEAD
    cpu._ROWS_AHEAD = rows_ahead
    try:
        ends = torch.tensor(lengths, dtype=torch.long)
        same(stacks, tokens, ends, starts, skip, tolerance=2e-5)
    finally:
        cpu._ROWS_AHEAD = before


def test_the_given_state_is_left_alone():
    stacks = make_stacks(2, 1, 4, 8, (3.0, 3.0))
    starts = make_starts(stacks, 2)
    before = [t.clone() for t in starts.tensors]
    same(stacks, torch.randn(2, 5, 4), torch.tensor([5, 3]), starts)
    assert all(torch.equal(a, b) for a, b in zip(starts.tensors, before, strict=True))


def products(lstm):
    return lstm.weights().packed.products(lstm.weights(), "float32")


def test_weights_are_packed_again_when_they_change():
    stacks = make_stacks(1, 1, 4, 8, (3.0, 3.0))
    (lstm,) = stacks[0].requires_grad_(False)
    tokens, lengths = torch.randn(2, 5, 4), torch.tensor([5, 3])
    same(stacks, tokens, lengths)
    assert products(lstm) is products(lstm)
    lstm.state_weight.data.mul_(2)
    same(stacks, tokens, lengths)
    lstm.bias = torch.nn.Parameter(lstm.bias + 1, requires_grad=False)
    same(stacks, tokens, lengths)
    lstm.bias[5] += 1  # a single value
    same(stacks, tokens, lengths)
    lstm.forget_bias = 0.5
    same(stacks, tokens, lengths)


def test_failed_packing_leaves_nothing_behind(monkeypatch):
    """Out of memory while packing new weights: the next call must not use the old ones."""
    stacks = make_stacks(1, 1, 4, 8, (3.0, 3.0))
    (lstm,) = stacks[0].requires_grad_(False)
    tokens, lengths = torch.randn(2, 5, 4), torch.tensor([5, 3])
    same(stacks, tokens, lengths)
    lstm.state_weight.mul_(2)

    def fail(weights):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setitem(cpu_products.PRODUCTS, "float32", fail)
        with pytest.raises(MemoryError):
            products(lstm)
    same(stacks, tokens, lengths)


def test_copies_pack_their_own_weights():
    lstm = random_lstm(4, 8, 4, (3.0, 3.0))
    packed = products(lstm)
    assert products(copy.deepcopy(lstm)) is not packed
    assert products(lstm) is packed


def test_default_types_do_not_matter(tiny):
    expected = tiny.encode(SENTENCES, "all")
    torch.set_default_dtype(torch.float64)
    try:
        found = tiny.encode(SENTENCES, "all")
    finally:
        torch.set_default_dtype(torch.float32)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_start_with_gradients(tiny):
    """The model is frozen, but what it starts from may be learned."""
    start = tiny.bilm.zero_state(2).map(lambda t: (t + 0.1).requires_grad_())
    layers, _ = tiny.bilm(torch.randn(2, 5, 8), torch.tensor([5, 3]), start)
    layers.sum().backward()
    assert all(t.grad.abs().sum() > 0 for t in start.tensors)


def test_gradients_and_autocast_take_another_path(tiny, monkeypatch):
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


def test_memory_is_used_again(tiny):
    tokens, lengths = torch.randn(3, 6, 8), torch.tensor([6, 2, 0])
    expected, _ = tiny.bilm(tokens, lengths)
    memory = torch.full((3 * 3 * 6 * 16 + 100,), torch.nan)
    layers, _ = tiny.bilm(tokens, lengths, memory=memory)
    assert layers.data_ptr() == memory.data_ptr()
    assert torch.equal(layers, expected)


@pytest.mark.parametrize("n_sentences", [2, 40])
def test_directions_side_by_side(tiny, n_sentences):
    """Two threads give what one gives, and leave PyTorch's settings as they were.

    They share every product of a few sentences, and take a direction each of many.
    """
    sentences = (SENTENCES * n_sentences)[:n_sentences]
    threads = torch.get_num_threads()
    parallel._pools.clear()
    try:
        torch.set_num_threads(1)
        alone = tiny.encode(sentences, "all")
        torch.set_num_threads(2)
        together = tiny.encode(sentences, "all")
        assert torch.get_num_threads() == 2
        has_workers = any(key == (os.getpid(), 2) for key in parallel._pools)
        assert has_workers == (n_sentences == 40)
    finally:
        torch.set_num_threads(threads)
    for a, b in zip(alone, together, strict=True):
        assert_close(a, b)


def test_the_threads_are_shared_out(tiny):
    """Each direction has its share of the threads, and results are the same to the last bit."""
    threads = torch.get_num_threads()
    try:
        for n, share in ((2, 1), (4, 2)):
            torch.set_num_threads(n)
            with torch.no_grad():
                for _ in range(5):
                    tasks = [lambda: (torch.ones(10).sum(), torch.get_num_threads())[1]] * 2
                    assert parallel.run_all(tasks, torch.device("cpu")) == [share, share]
            results = {tiny.encode("a few words", "all").tobytes() for _ in range(20)}
            assert len(results) == 1
    finally:
        torch.set_num_threads(threads)


def test_threads_keep_the_callers_mode():
    cpu_device = torch.device("cpu")
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            made = parallel.run_all([lambda: torch.ones(1)] * 2, cpu_device)
        assert not any(t.is_inference() or t.requires_grad for t in made)
        with torch.inference_mode():
            made = parallel.run_all([lambda: torch.ones(1)] * 2, cpu_device)
        assert all(t.is_inference() for t in made)

        def fail():
            raise ValueError("as it is")

        with torch.no_grad(), pytest.raises(ValueError, match="as it is"):
            parallel.run_all([fail, fail], cpu_device)

        done = []

        def slow():
            time.sleep(0.2)
            done.append(True)

        with torch.no_grad(), pytest.raises(ValueError, match="as it is"):
            parallel.run_all([fail, slow], cpu_device)
        assert done  # nothing goes on writing behind the caller's back
    finally:
        torch.set_num_threads(threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork(tiny_folder):
    """What a DataLoader worker does: fork, then use one thread.

    PyTorch itself cannot promise more: on some processors a product in the child of a process
    that used several OpenMP threads never returns.
    """
    code = (
        "import os, sys, torch; from elmokit import Elmo; torch.set_num_threads(2)\n"
        "elmo = Elmo.load(sys.argv[1], device='cpu'); texts = ['a few words'] * 20\n"
        "a = elmo.encode(texts)\n"
        "pid = os.fork()\n"
        "if not pid: torch.set_num_threads(1)\n"
        "b = elmo.encode(texts)\n"
        "assert max(abs(x - y).max() for x, y in zip(a, b)) < 1e-5\n"
        "if pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tiny_folder)],
                          timeout=100, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_thread_that_outlives_the_main_one(tiny_folder):
    code = (
        "import sys, threading, time, torch; from elmokit import Elmo; torch.set_num_threads(2)\n"
        "elmo = Elmo.load(sys.argv[1], device='cpu'); elmo.encode('a few words')\n"
        "def later():\n"
        "    threading.main_thread().join(); time.sleep(0.2)\n"
        "    print(elmo.encode('a few words').shape)\n"
        "threading.Thread(target=later).start()\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tiny_folder)],
                          timeout=60, capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "(3, 16)\n", done.stderr


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_int8_is_close(size, tiny_folder):
    """The promise: a mean cosine of 0.999 in every layer."""
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
    assert np.abs(a - b).max() > 0  # it is another path
    assert same_weights(exact, rounded)


def same_weights(a, b):
    return a.checkpoint().checksum() == b.checkpoint().checksum()


def test_int8_errors(tiny_folder, monkeypatch):
    with pytest.raises(InputError, match="int8, bfloat16 or nothing, not 'int4'"):
        Elmo.load(tiny_folder, quantize="int4", device="cpu")
    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["none"])
    with pytest.raises(InputError, match="no int8 products"):
        Elmo.load(tiny_folder, quantize="int8", device="cpu")
    with pytest.raises(InputError, match="bfloat16 is for a GPU, and this model is on cpu"):
        Elmo.load(tiny_folder, quantize="bfloat16", device="cpu")


def test_int8_packing_leaves_the_settings_alone(tiny_folder):
    """Both directions pack at the same time."""
    threads, engine = torch.get_num_threads(), torch.backends.quantized.engine
    torch.set_num_threads(2)
    try:
        for _ in range(10):
            Elmo.load(tiny_folder, device="cpu", quantize="int8").encode("a few words")
            assert torch.backends.quantized.engine == engine
    finally:
        torch.set_num_threads(threads)
        torch.backends.quantized.engine = engine
