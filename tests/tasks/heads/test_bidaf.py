"""Bidirectional attention flow: padding, the best span, the loss of several right words."""

import itertools
import math

import pytest
import torch

from elmokit.tasks.heads.bidaf import SpanNetwork, Text, TrilinearAttention, best_spans, span_loss
from helpers.heads import mask_of, overfit
from helpers.numbers import assert_close

LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize("after", [0, 4])
def test_padding_does_not_matter(after):
    torch.manual_seed(0)
    network = SpanNetwork(5, 3, 0.5, after).eval()
    asked, given = [2, 5, 1], [7, 1, 4]

    def text(lengths, time, seed):
        torch.manual_seed(seed)
        x, more = torch.randn(3, time, 5), torch.randn(3, time, 4)
        return x, mask_of(lengths, time), more if after else None

    question, passage = text(asked, 6, 1), text(given, 9, 2)
    start, end = network(Text(*question), Text(*passage))
    for row, (q, p) in enumerate(zip(asked, given, strict=True)):
        alone = [
            Text(*(None if x is None else x[row : row + 1, :n] for x in some))
            for some, n in ((question, q), (passage, p))
        ]
        for ours, expected in zip(network(*alone), (start, end), strict=True):
            assert_close(ours.detach()[0], expected.detach()[row, :p])
            assert (expected[row, p:] == LOWEST).all()


def test_trilinear_attention_is_its_formula():
    torch.manual_seed(0)
    attention, a, b = TrilinearAttention(3), torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    found = attention(a, b).detach()
    weights = torch.cat([attention.first, attention.second, attention.both]).detach()
    for row, t, u in itertools.product(range(2), range(4), range(5)):
        x, y = a[row, t], b[row, u]
        assert found[row, t, u] == pytest.approx(
            float(weights @ torch.cat([x, y, x * y])), abs=1e-5
        )


@pytest.mark.parametrize("longest", [1, 2, 4, 20])
def test_the_best_span_by_brute_force(longest):
    torch.manual_seed(longest)
    lengths = [8, 1, 5, 3]
    mask = mask_of(lengths)
    start, end = torch.randn(2, 4, 8).masked_fill(~mask, LOWEST)
    first, last, best = best_spans(start, end, longest)
    for row, n in enumerate(lengths):
        spans = [(a, b) for a in range(n) for b in range(a, min(n, a + longest))]
        expected = max(spans, key=lambda span: start[row, span[0]] + end[row, span[1]])
        assert (first[row], last[row]) == expected
        assert best[row] == start[row, expected[0]] + end[row, expected[1]]


def test_a_span_never_ends_before_it_starts():
    start, end = torch.tensor([[0.0, 0.0, 9.0]]), torch.tensor([[9.0, 0.0, -1.0]])
    first, last, best = best_spans(start, end, 3)
    assert (first.item(), last.item(), best.item()) == (0, 0, 9.0)


def test_the_loss_adds_up_the_right_words():
    scores = torch.tensor([[1.0, 2.0, 0.5, LOWEST], [0.0, 0.0, LOWEST, LOWEST]])
    right = torch.tensor([[True, False, True, False], [True, True, False, False]])
    share = (math.e + math.e**0.5) / (math.e + math.e**2 + math.e**0.5)
    assert span_loss(scores, right).tolist() == pytest.approx([-math.log(share), 0], abs=1e-6)


def test_it_learns_to_find_the_word_of_the_question():
    """The passage has the word of the question once, in a random place."""
    torch.manual_seed(0)
    words, where = torch.randn(16, 6, 8), torch.randint(0, 6, (16,))
    network = SpanNetwork(8, 8, 0.0, 0)
    question = Text(words[torch.arange(16), where][:, None], mask_of([1] * 16))
    passage, right = Text(words, mask_of([6] * 16)), torch.eye(6, dtype=torch.bool)[where]

    def loss():
        start, end = network(question, passage)
        return (span_loss(start, right) + span_loss(end, right)).mean()

    assert overfit(loss, network, steps=25, rate=0.02) < 0.5
