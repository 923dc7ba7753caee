"""A small sense-tagged text, WordNet files, and vectors by hand."""

import numpy as np

from elmokit.analysis.senses.tagged_text import TaggedSentence, Target

MONEY, RIVER = "bank%1:14:00::", "bank%1:17:01::"
INDEX = """bank%1:14:00:: 08420278 2 11
bank%1:17:01:: 09213565 1 25
bank%2:40:00:: 02343595 1 0
fast%3:00:01:: 00976508 1 5
fast%5:00:00:hurried:00 00001111 2 1
"""
DATA = """<?xml version="1.0"?>
<corpus><text id="d0"><sentence id="s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="t0" lemma="river_bank" pos="NOUN">river bank</instance>
<instance id="t1" lemma="bank" pos="NOUN">bank</instance>
</sentence></text></corpus>"""
WORDNET = {
    "data.noun": "x" * 20 + '\n000 17 n 01 bank 0 000 | sloping land; "the river bank"\n',
    "noun.exc": "geese goose\n",
    "index.sense": "bank%1:17:01:: 00000021 1 25\nbank%1:14:00:: 00000000 2 11\n"
    "goose%1:05:00:: 00000000 1 1\nbank%2:40:00:: 00000000 1 3\nriver_bank%1:17:00:: 0 1 0\n"
    "deposit%2:40:00:: 00000000 1 9\nstudy%1:00:00:: 0 1 0\n",
}


def sentence(text, *keys):
    tokens = text.split()
    at = tokens.index("bank")
    return TaggedSentence(tokens, [Target(at, at + 1, "bank", "NOUN", keys=keys)])


TRAIN = [
    sentence("deposit money in the bank now", MONEY),
    sentence("take money from the bank today", MONEY),
    sentence("the bank of the river", RIVER),
]


def of_bank(elmo, tagged):
    """The vectors of the word in every layer, and what the words on either side say without it."""
    at, half = tagged.targets[0].start, elmo.dim // 2
    (own,) = elmo.encode([tagged.tokens], "all")
    before, behind = elmo.encode([tagged.tokens[:at], tagged.tokens[at + 1 :]], "all")
    before, behind = before[2] - before[1], behind[2] - behind[1]  # without the residual connection
    around = np.concatenate([before[-1, :half], behind[0, half:]])
    return np.stack([*own[:, at], own[2, at] - own[1, at], around])


def length_1(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def write_index(folder):
    """Write an index.sense without other files."""
    path = folder / "index.sense"
    path.write_text(INDEX)
    return path


def write_wordnet(folder):
    """Write WordNet's files, with a gloss for one sense."""
    folder.mkdir()
    for name, text in WORDNET.items():
        (folder / name).write_text(text)
    return folder
