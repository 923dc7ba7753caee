"""Muon against singular values, PyTorch's own, and steps that must not be taken."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from elmokit.pretrain.objective.muon import Muon, orthogonal
from elmokit.pretrain.objective.network import PretrainModel
from elmokit.pretrain.objective.optimizers import make_optimizers, take_step
from elmokit.pretrain.recipe_sections import OptimizerSettings, SoftmaxSettings
from helpers.pretraining import recipe

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@pytest.mark.parametrize("shape", [(3, 40, 8), (2, 8, 40), (1, 5, 1)])
def test_orthogonal(shape):
    """Singular vectors stay; singular values become about one, however small they were."""
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    for scale in (1e-9, 1.0, 1e9):
        found = u.mT @ orthogonal(scale * matrices) @ v.mT
        values = found.diagonal(dim1=1, dim2=2)
        assert ((values > 0.67) & (values < 1.21)).all()
        torch.testing.assert_close(found, torch.diag_embed(values), atol=1e-9, rtol=0)
    assert (orthogonal(torch.zeros(shape)) == 0).all()


@needs_gpu
def test_orthogonal_on_a_gpu():
    """On a GPU it is computed in bfloat16."""
    matrices = torch.randn(3, 64, 24, generator=torch.Generator().manual_seed(0))
    found = orthogonal(matrices.cuda()).cpu()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, orthogonal(matrices), atol=0.02, rtol=0)


def steps(optimizer, matrix, gradients):
    for gradient in gradients:
        matrix.grad = gradient.clone()
        optimizer.step()
    return matrix.detach()


def test_a_step_by_hand():
    torch.manual_seed(0)
    start, (first, second) = torch.randn(24, 8), torch.randn(2, 24, 8)
    matrix = nn.Parameter(start.clone())
    found = steps(Muon([matrix], 0.05, 0.9, 0.1), matrix, [first, second])
    expected, momentum = start, torch.zeros(24, 8)
    for gradient in (first, second):
        momentum = 0.9 * momentum + 0.1 * gradient
        ahead = 0.9 * momentum + 0.1 * gradient
        change = orthogonal(ahead[None])[0]
        expected = expected * (1 - 0.05 * 0.1) - 0.05 * 0.2 * 24**0.5 * change
    torch.testing.assert_close(found, expected)
    assert (found - start).abs().mean() > 0.01


@needs_gpu
@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
@pytest.mark.parametrize("shape", [(24, 8), (8, 24)])
def test_as_pytorchs(shape):
    """PyTorch's Muon rounds to bfloat16 everywhere, which not every processor supports."""
    torch.manual_seed(0)
    start, gradients = torch.randn(shape, device="cuda"), torch.randn(4, *shape, device="cuda")
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    found = steps(Muon([ours], 0.05, 0.9, 0.1), ours, gradients)
    right = torch.optim.Muon(
        [theirs], 0.05, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw"
    )
    torch.testing.assert_close(found, steps(right, theirs, gradients), atol=4e-3, rtol=0)


def test_matrices_alike_are_changed_each_by_itself():
    torch.manual_seed(0)
    start, gradients = torch.randn(3, 8, 4), torch.randn(2, 3, 8, 4)
    together = [nn.Parameter(one.clone()) for one in start]
    optimizer = Muon([*together, nn.Parameter(torch.ones(4, 8))], 0.1, 0.9, 0.0)  # one has none
    for some in gradients:
        for matrix, gradient in zip(together, some, strict=True):
            matrix.grad = gradient
        optimizer.step()
    for k, matrix in enumerate(together):
        alone = nn.Parameter(start[k].clone())
        expected = steps(Muon([alone], 0.1, 0.9, 0.0), alone, gradients[:, k])
        torch.testing.assert_close(matrix.detach(), expected)


def test_a_step_that_is_not_taken_changes_nothing():
    torch.manual_seed(0)
    gradients = torch.randn(3, 8, 4)
    plain = nn.Parameter(torch.ones(8, 4))
    optimizer = Muon([plain], 0.1, 0.9, 0.1)
    expected = steps(optimizer, plain, gradients)
    matrix = nn.Parameter(torch.ones(8, 4))
    optimizer = Muon([matrix], 0.1, 0.9, 0.1)
    for gradient in gradients:
        for broken, lost in ((True, gradient * float("nan")), (False, gradient)):
            before = copy.deepcopy((matrix.data, optimizer.state[matrix]))
            matrix.grad, optimizer.found_inf = lost, torch.tensor(float(broken))
            optimizer.step()
            if broken:
                assert torch.equal(matrix, before[0])
                known = before[1].get("momentum", torch.zeros_like(matrix))
                assert torch.equal(optimizer.state[matrix]["momentum"], known)
    torch.testing.assert_close(matrix.detach(), expected)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("lstm", ["input_weight", "state_weight", "projection"]),
        ("transformer", ["attention_in", "attention_out", "feed_in", "feed_out"]),
    ],
)
def test_what_it_is_for(kind, ends, device):
    """Muon gets the matrices between embeddings and softmax; AdamW gets the rest."""
    context = {"kind": kind, "projection_dim": 16, "cell_dim": 32, "n_heads": 2}
    config = recipe(model={"context": context}).model
    encoder = replace(config.token_encoder, word_dim=4, n_words=30)
    config = replace(config, token_encoder=encoder, vocabulary_size=30)
    model = PretrainModel(config, SoftmaxSettings(), 0.0).to(device)
    muon, adamw = make_optimizers(model, OptimizerSettings(), 0.01)
    names = {id(p): name for name, p in model.named_parameters()}
    found = {names[id(p)] for g in muon.param_groups for p in g["params"]}
    stacks = [f"bilm.{way}_layers.{k}." for way in ("forward", "backward") for k in range(2)]
    inside = ["highways.0.gate.weight", "highways.0.transform.weight", "projection.weight"]
    assert {name.removesuffix(".weight") for name in found} == {
        *(stack + end for stack in stacks for end in ends),
        *(f"bilm.token_encoder.{name}".removesuffix(".weight") for name in inside),
    }
    rest = {names[id(p)] for g in adamw.param_groups for p in g["params"]}
    assert rest == set(names.values()) - found
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, math.nan)
    take_step([muon, adamw], torch.tensor(False, device=device))
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    take_step([muon, adamw], torch.tensor(True, device=device))
    assert not any(torch.equal(p, before[name]) for name, p in model.named_parameters())
