"""The best IOB2 tags against all sequences, and against the CRF's decoder."""

from itertools import product

import torch

from elmokit.tasks.heads import CRF, allowed_transitions, best_bio
from elmokit.tasks.heads.bio_viterbi import FORBIDDEN
from elmokit.tasks.measures.tag_schemes import stray_tags
from helpers.heads import mask_of

LABELS = ["O", "B-V", "I-V", "B-A", "I-A"]


def test_against_all_sequences():
    torch.manual_seed(0)
    lengths = [5, 3, 0, 1, 4]
    scores, mask = torch.randn(5, 5, 5, dtype=torch.float64), mask_of(lengths)
    found = best_bio(scores, mask)
    for row, n in enumerate(lengths):
        legal = [
            tags
            for tags in product(range(5), repeat=n)
            if not stray_tags([LABELS[tag] for tag in tags])
        ]
        best = max(legal, key=lambda tags: sum(scores[row, t, tag] for t, tag in enumerate(tags)))
        assert tuple(found[row, :n].tolist()) == best
        assert not found[row, n:].any()


def test_against_the_crf():
    torch.manual_seed(0)
    crf = CRF(5, allowed_transitions(LABELS, "iob2"))
    for parameter in crf.parameters():
        torch.nn.init.zeros_(parameter)
    scores, mask = torch.randn(40, 12, 5), mask_of([*range(1, 13)] * 3 + [12] * 4, 12)
    assert torch.equal(best_bio(scores, mask), crf.decode(scores, mask))


def test_forbidden_tags_and_empty_batches():
    scores = torch.zeros(1, 3, 5)
    scores[0, 1] = torch.tensor([9.0, FORBIDDEN, 0.0, FORBIDDEN, 9.0])
    scores[0, 1, 0] = FORBIDDEN
    scores[0, 2, 4] = 5.0
    assert best_bio(scores, mask_of([3])).tolist() == [[3, 4, 4]]  # B-A I-A I-A
    for shape in ((0, 3, 5), (2, 0, 5)):
        assert best_bio(torch.zeros(shape), torch.zeros(shape[:2]).bool()).shape == shape[:2]
