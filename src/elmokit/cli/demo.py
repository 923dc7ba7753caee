"""``elmokit demo``: the two banks."""

from __future__ import annotations

from elmokit.cli.common import ModelOption, layer_names, print_table

MONEY = ["I went to the bank to deposit money", "She opened an account at the bank on Main Street"]
RIVER = ["I sat by the bank of the river", "They walked along the muddy bank of the stream"]


def demo(model: ModelOption = None) -> None:
    """Show that the vector of "bank" depends on its sentence."""
    from elmokit.analysis.similarity import word_similarity
    from elmokit.elmo import Elmo

    elmo = Elmo.load(model)
    print(f"{elmo!r}\n")
    for name, sentences in (("money", MONEY), ("river", RIVER)):
        for number, sentence in enumerate(sentences, 1):
            (vectors,) = elmo.encode([sentence])
            print(f"{name} {number}: {sentence}   → vectors {vectors.shape}")
    groups = {
        "money 1 ~ money 2": (MONEY[0], MONEY[1]),
        "river 1 ~ river 2": (RIVER[0], RIVER[1]),
        "money 1 ~ river 1": (MONEY[0], RIVER[0]),
        "money 2 ~ river 2": (MONEY[1], RIVER[1]),
    }
    cosines = [word_similarity(elmo, a, b, "bank")[0].cosines for a, b in groups.values()]
    rows = [[name, *(f"{c[k]:.3f}" for c in cosines)] for k, name in enumerate(layer_names(elmo))]
    print('\nHow alike "bank" is in two sentences (cosine):')
    print_table(["layer", *groups], rows)
    print(
        "The token layer sees the word alone, as a static vector does, and cannot tell the banks "
        "apart;\nthe LSTM layers read the sentence."
    )
