"""The CRF against all tag sequences counted one by one."""

from itertools import pairwise, product

import pytest
import torch

from elmokit.errors import InputError
from elmokit.tasks.heads import CRF, allowed_transitions
from helpers.heads import LENGTHS, assert_padding_does_not_matter, assert_seeded, mask_of, overfit
from helpers.numbers import assert_close

IOB2 = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
BIOES = ["O", "B-X", "I-X", "E-X", "S-X"]


def rules(kind):
    if kind == "random":
        allowed = torch.rand(6, 6) < 0.7
        allowed[:, 0] = allowed[0] = True  # some sequence of each length exists
        return allowed
    return {
        "all": None,
        "iob2": allowed_transitions(IOB2, "iob2"),
        "bioes": allowed_transitions(BIOES, "bioes"),
    }[kind]


def example(kind="all", constrain_loss=False, scale=2.0):
    """A CRF of five tags with large weights, emissions and a mask."""
    torch.manual_seed(0)
    crf = CRF(5, rules(kind), constrain_loss)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_(0, scale)
    lengths = [3, 5, 0, 1, 2]
    return crf, torch.randn(5, 5, 5) * scale, mask_of(lengths), lengths


def all_sequences(crf, emissions, length):
    """Each sequence with its score and whether it is allowed, in float64."""
    emissions, transitions = emissions.double(), crf.transitions.detach().double()
    start, end = crf.start.detach().double(), crf.end.detach().double()
    for tags in product(range(5), repeat=length):
        steps = [(5, tags[0]), *pairwise(tags), (tags[-1], 5)]
        score = start[tags[0]] + end[tags[-1]]
        score += sum(transitions[a, b] for a, b in steps[1:-1])
        score += sum(emissions[t, tag] for t, tag in enumerate(tags))
        yield tags, score.item(), all(crf.allowed[a, b] for a, b in steps)


@pytest.mark.parametrize("kind", ["all", "iob2", "bioes", "random"])
@pytest.mark.parametrize("constrain_loss", [False, True])
def test_agrees_with_all_sequences(kind, constrain_loss):
    crf, emissions, mask, lengths = example(kind, constrain_loss)
    partition = crf.log_partition(emissions, mask).tolist()
    decoded = crf.decode(emissions, mask)
    assert decoded.dtype == torch.long
    for row, length in enumerate(lengths):
        assert not decoded[row, length:].any()
        if not length:
            assert partition[row] == 0
            continue
        found = list(all_sequences(crf, emissions[row], length))
        counted = torch.tensor([s for _, s, fine in found if fine or not constrain_loss])
        assert partition[row] == pytest.approx(counted.logsumexp(0).item(), rel=1e-5)
        best = max((s, tags) for tags, s, fine in found if fine)[1]
        assert tuple(decoded[row, :length].tolist()) == best
        sequences = torch.tensor([tags for tags, _, _ in found])
        n = len(sequences)
        arguments = sequences, torch.ones_like(sequences, dtype=torch.bool)
        repeated = emissions[row, :length].expand(n, length, 5)
        losses = crf(repeated, *arguments).detach()
        assert torch.equal(crf.is_allowed(*arguments), torch.tensor([f for _, _, f in found]))
        expected = [
            partition[row] - s if fine or not constrain_loss else torch.inf for _, s, fine in found
        ]
        assert losses.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert losses.neg().exp().sum().item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", ["all", "bioes"])
def test_gradients(kind):
    crf, emissions, mask, _ = example(kind, constrain_loss=True)
    crf.double()
    tags = crf.decode(emissions, mask)
    assert crf.is_allowed(tags, mask).all()

    def loss(emissions, *weights):
        named = dict(zip(["transitions", "start", "end"], weights, strict=True))
        return torch.func.functional_call(crf, named, (emissions, tags, mask))

    weights = [p.detach().clone().requires_grad_() for p in (crf.transitions, crf.start, crf.end)]
    assert torch.autograd.gradcheck(loss, (emissions.double().requires_grad_(), *weights))


def test_padding_does_not_matter():
    crf, *_ = example("iob2", constrain_loss=True)
    emissions = torch.randn(len(LENGTHS), 9, 5)
    assert_padding_does_not_matter(crf.decode, emissions)
    tags = crf.decode(emissions, mask_of([9] * len(LENGTHS)))
    assert_padding_does_not_matter(crf, emissions, tags)
    mask = mask_of(LENGTHS, 9)
    tags = tags.masked_fill(~mask, -100)  # as losses of PyTorch mark padding
    emissions = emissions.masked_fill(~mask[..., None], torch.nan).requires_grad_()
    crf(emissions, tags, mask).sum().backward()
    assert crf.transitions.grad.isfinite().all()
    assert emissions.grad[mask].any()
    assert not emissions.grad[~mask].any()


def test_forbidden_gold_tags_give_no_gradient():
    crf, emissions, mask, _ = example("iob2", constrain_loss=True)
    emissions.requires_grad_()
    tags = torch.full_like(mask, 2, dtype=torch.long)  # I-PER at the start
    losses = crf(emissions, tags, mask)
    assert losses.tolist() == [torch.inf, torch.inf, 0, torch.inf, torch.inf]
    losses.sum().backward()
    assert not emissions.grad.any()


def test_no_allowed_sequence():
    labels = ["B-X", "E-X"]  # the length of a sentence must be even
    crf = CRF(2, allowed_transitions(labels, "bioes"), constrain_loss=True)
    emissions = torch.randn(2, 3, 2, requires_grad=True)
    losses = crf(emissions, torch.tensor([[0, 1, 0]] * 2), mask_of([3, 2]))
    assert losses.isinf().tolist() == [True, False]
    assert losses[1].item() == pytest.approx(0, abs=1e-5)  # the only allowed sequence
    losses.sum().backward()
    assert emissions.grad.isfinite().all()
    assert crf.decode(emissions, mask_of([3, 2])).shape == (2, 3)


def test_large_scores_and_long_sentences():
    crf, *_ = example("bioes", constrain_loss=True, scale=50.0)
    emissions, mask = 1000 * torch.randn(2, 300, 5), mask_of([300, 299])
    emissions.requires_grad_()
    losses = crf(emissions, crf.decode(emissions, mask), mask)
    assert losses.tolist() == pytest.approx([0, 0], abs=0.5)  # sums of about 300,000 in float32
    losses.sum().backward()
    assert emissions.grad.isfinite().all()


def test_autocast_computes_in_float32():
    crf, emissions, mask, _ = example("iob2")
    emissions = emissions.bfloat16()
    tags = crf.decode(emissions.float(), mask)
    expected = crf(emissions.float(), tags, mask)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(crf(emissions, tags, mask), expected)
        assert torch.equal(crf.decode(emissions, mask), tags)


def test_empty_batches():
    crf = CRF(3)
    for n in (0, 2):
        emissions, mask = torch.zeros(n, 0, 3), torch.zeros(n, 0, dtype=torch.bool)
        assert crf(emissions, mask.long(), mask).tolist() == [0] * n
        assert crf.decode(emissions, mask).shape == (n, 0)
    assert crf.decode(torch.zeros(0, 4, 3), torch.zeros(0, 4, dtype=torch.bool)).shape == (0, 4)


def test_learns_eight_sentences():
    torch.manual_seed(0)
    crf, mask = CRF(5, allowed_transitions(IOB2, "iob2")), mask_of([4, 6, 2, 3, 6, 1, 5, 2])
    emissions = torch.nn.Parameter(torch.zeros(8, 6, 5))
    tags = crf.decode(torch.randn(8, 6, 5), mask)
    holder = torch.nn.ParameterList([emissions])
    assert overfit(lambda: crf(emissions, tags, mask).sum(), crf, holder, rate=0.2) < 0.1
    assert torch.equal(crf.decode(emissions, mask), tags)


def test_allowed_transitions():
    found = allowed_transitions(IOB2, "iob2")
    edges = [*IOB2, "edge"]
    forbidden = {(edges[a], edges[b]) for a, b in (~found).nonzero().tolist()}
    assert forbidden == {
        (a, b) for a in edges for b in ("I-PER", "I-LOC") if not a.endswith(b[1:])
    }  # fmt: skip
    found = allowed_transitions(BIOES, "bioes")
    after = {"O": "O B S edge", "B": "I E", "I": "I E", "E": "O B S edge", "S": "O B S edge"}
    after["edge"] = after["O"]
    edges = [*(label[0] for label in BIOES), "edge"]
    for row, before in zip(found, edges, strict=True):
        assert [e for e, fine in zip(edges, row, strict=True) if fine] == after[before].split()
    types = allowed_transitions(["B-a-b", "I-a-b", "I-a"], "iob2")
    assert types[0].tolist() == [True, True, False, True]
    assert allowed_transitions(["B", "I", "O"], "iob2")[0, 1]  # a single type needs no name
    assert allowed_transitions(["NN", "VB"], "none").tolist() == [[True] * 3] * 3


def test_mistakes():
    with pytest.raises(InputError, match="'E-PER' is not of the scheme iob2: O, B-…, I-…"):
        allowed_transitions(["O", "E-PER"], "iob2")
    with pytest.raises(InputError, match="'' is not of the scheme bioes"):
        allowed_transitions([""], "bioes")
    with pytest.raises(InputError, match="scheme must be none, iob2 or bioes, not 'IOB'"):
        allowed_transitions(["O"], "IOB")
    with pytest.raises(InputError, match=r"booleans of the shape \(4, 4\), not torch.float32"):
        CRF(3, torch.ones(4, 4))


def test_weights_come_from_the_seed():
    assert_seeded(lambda: CRF(4))
    assert list(CRF(4).state_dict()) == ["transitions", "start", "end"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_agrees_and_does_not_wait():
    crf, emissions, mask, _ = example("iob2", constrain_loss=True)
    tags = crf.decode(emissions, mask)
    expected = crf(emissions, tags, mask).detach()
    crf.cuda()
    arguments = [x.cuda() for x in (emissions, tags, mask)]
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses, found = crf(*arguments), crf.decode(arguments[0], arguments[2])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert_close(losses.detach().cpu(), expected)
    assert torch.equal(found.cpu(), tags)
