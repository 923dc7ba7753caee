"""Ranking of spans against plain loops."""

import random

import pytest
import torch
from torch.testing import assert_close

from elmokit.tasks.heads import span_ranking
from elmokit.tasks.heads.span_ranking import (
    SpanRanker,
    SpanScores,
    best_spans,
    buckets,
    clusters_of,
    mention_loss,
    ranking_loss,
)
from helpers.heads import assert_seeded

SENTENCES = [(0, 5), (5, 6), (6, 14)]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Keep no more spans of a short document than of a long one."""
    monkeypatch.setattr(span_ranking, "_FEWEST", 1)


def ranker(**changed):
    torch.manual_seed(0)
    sizes = {"max_width": 4, "spans_per_word": 0.9, "n_antecedents": 50} | changed
    return SpanRanker(6, 5, 8, **sizes).eval()


def words(n=14):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 6, generator=generator), torch.randn(n, 5, generator=generator)


def crosses(a, b):
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


def test_vectors_of_spans():
    model, (states, x) = ranker(), words()
    found = model._vectors(states, x)
    for start in range(14):
        for width in range(1, 5):
            end = start + width
            if end > 14:
                continue
            weights = model.attention(states[start:end]).squeeze(1).softmax(0)
            parts = (
                model.first(states[start])
                + model.last(states[end - 1])
                + model.head(weights @ x[start:end])
                + model.width.weight[width - 1]
            )
            assert_close(found[start, width - 1], parts.relu())


def test_scores_of_pairs():
    model, (states, x) = ranker(), words()
    found = model(states, x, SENTENCES)
    vectors = model._vectors(states, x)
    of_sentence = [0] * 5 + [1] + [2] * 8
    for i, (a, b) in enumerate(found.spans):
        mine = vectors[a, b - a - 1]
        assert_close(found.mention[i], model.mention(mine)[0])
        for k, j in enumerate(found.antecedents[i].tolist()):
            if j >= i:
                assert found.scores[i, k] == -torch.inf
                continue
            c, d = found.spans[j]
            other = vectors[c, d - c - 1]
            hidden = (
                model.anaphor(mine)
                + model.antecedent(other)
                + model.product(mine * other)
                + model.span_distance(buckets(torch.tensor(i - j)))
                + model.sentence_distance(buckets(torch.tensor(of_sentence[a] - of_sentence[c])))
            )
            expected = model.mention(mine)[0] + model.mention(other)[0]
            expected = expected + model.coarse(mine) @ other + model.pair(hidden.relu())[0]
            assert_close(found.scores[i, k], expected)
        assert found.scores[i].isfinite().sum() == i  # all spans before it


def test_the_best_antecedents_are_scored():
    model, (states, x) = ranker(n_antecedents=3), words()
    all_of_them = ranker()(states, x, SENTENCES)
    found = model(states, x, SENTENCES)
    assert found.scores.shape == (len(found.spans), 3)
    assert found.spans == all_of_them.spans
    for i in range(len(found.spans)):
        full = dict(zip(all_of_them.antecedents[i].tolist(), all_of_them.scores[i], strict=True))
        for j, score in zip(found.antecedents[i].tolist(), found.scores[i], strict=True):
            if j < i:
                assert_close(score, full[j])


@pytest.mark.parametrize("n", [1, 3, 14])
def test_spans_are_within_sentences_and_do_not_cross(n):
    sentences = [(a, min(b, n)) for a, b in SENTENCES if a < n]
    found = ranker()(*(part[:n] for part in words()), sentences)
    assert found.spans == sorted(found.spans)
    assert len(found.spans) == max(1, int(0.9 * n))
    for a in found.spans:
        assert any(s <= a[0] < a[1] <= e for s, e in sentences)
        assert a[1] - a[0] <= 4
        assert not any(crosses(a, b) for b in found.spans)
    real = {(s, w) for a, b in sentences for s in range(a, b) for w in range(min(4, b - s))}
    assert {tuple(place) for place in found.candidates.isfinite().nonzero().tolist()} == real


def test_long_documents_are_scored_in_parts(monkeypatch):
    """With every span kept, parts and blocks do not change the scores."""
    states, x = words()
    sentences = [(start, start + 1) for start in range(14)]  # all spans are kept: λ = 1
    model = ranker(spans_per_word=1.0)
    whole = model(states, x, sentences)
    monkeypatch.setattr(span_ranking, "_PART", 4)
    monkeypatch.setattr(span_ranking, "_BLOCK", 3)
    parts = model(states, x, sentences)
    assert whole.spans == parts.spans
    for name in ("mention", "antecedents", "scores", "candidates"):
        finite = [getattr(found, name).float().nan_to_num(neginf=-9) for found in (whole, parts)]
        if name == "antecedents":  # those after a span have no meaning
            finite = [a.masked_fill(~f.scores.isfinite(), 0) for a, f in zip(
                finite, (whole, parts), strict=True)]  # fmt: skip
        assert_close(*finite)


def test_best_spans():
    rng = random.Random(0)
    for _ in range(200):
        ranked = list({(rng.randrange(12), rng.randrange(5)) for _ in range(40)})
        rng.shuffle(ranked)
        most = rng.randrange(1, 20)
        expected = []
        for first, more in ranked:
            span = (first, first + more + 1)
            if len(expected) < most and not any(crosses(span, other) for other in expected):
                expected.append(span)
        found = best_spans(iter(ranked), most)
        assert [(a, a + w + 1) for a, w in found] == sorted(expected)


def test_buckets():
    distances = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 10_000]
    assert buckets(torch.tensor(distances)).tolist() == [
        0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9,
    ]  # fmt: skip


def scores(rows, mention, candidates=None):
    """Scores of n spans of one word each; row i has the scores of spans 0 … i - 1."""
    n = len(mention)
    padded = torch.full((n, n), -torch.inf)
    for i, row in enumerate(rows):
        padded[i, :i] = torch.tensor(row[:i], dtype=torch.float)
    spans = [(i, i + 1) for i in range(n)]
    numbers = torch.arange(n).expand(n, n)
    return SpanScores(spans, torch.tensor(mention), numbers, padded, candidates)


def test_ranking_loss():
    found = scores([[], [1.0], [2.0, -1.0], [0.5, 0.0, 3.0]], [1.0] * 4)
    clusters = [0, -1, 0, 0]
    expected = 0.0
    for i, own in enumerate(clusters):
        odds = found.scores[i, :i].exp().tolist()
        right = [odds[j] for j in range(i) if own >= 0 and clusters[j] == own]
        expected -= torch.tensor(sum(right or [1.0]) / (1 + sum(odds))).log().item()
    assert ranking_loss(found, torch.tensor(clusters)).item() == pytest.approx(expected)


def test_mention_loss():
    candidates = torch.tensor([[0.5, -1.0], [2.0, -torch.inf]], requires_grad=True)
    found = scores([[]], [1.0], candidates)
    loss = mention_loss(found, [(0, 2), (1, 2), (0, 9)])  # the last is too wide
    expected = -torch.tensor([-0.5, -1.0, 2.0]).sigmoid().log().sum()
    assert_close(loss, expected)
    loss.backward()
    assert candidates.grad.isfinite().all()


def test_clusters():
    found = scores(
        [[], [-1.0], [2.0, 1.0], [-1.0, 0.5, 0.2], [-1.0] * 4, [-1.0] * 5],
        [1.0, 1.0, -1.0, 1.0, 1.0, -1.0],
    )
    a, b, c, d, e, _ = found.spans
    assert clusters_of(found, singletons=False) == [[a, c], [b, d]]
    assert clusters_of(found, singletons=True) == [[a, c], [b, d], [e]]


def test_gradients_are_finite_and_seeds_count():
    model, (states, x) = ranker().train(), words()
    found = model(states, x, SENTENCES)
    own = torch.tensor([i % 3 - 1 for i in range(len(found.spans))])
    (ranking_loss(found, own) + mention_loss(found, found.spans[:3])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert_seeded(lambda: SpanRanker(6, 5, 8, 4, 0.9, 5))
