"""``elmokit demo``: a short tour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import kind_of_layers, layer_names, print_table, save
from elmokit.cli.places import check_out_folder

if TYPE_CHECKING:
    from elmokit.elmo import Elmo

MONEY = ["I went to the bank to deposit money", "She opened an account at the bank on Main Street"]
RIVER = ["I sat by the bank of the river", "They walked along the muddy bank of the stream"]
PLAY = [
    "The actors rehearsed a new play for the theatre .",
    "She sat down at the piano to play a waltz .",
    "The children ran into the garden to play with their dog .",
]
GAPS = [
    "She plays the ___ in an orchestra .",
    "She swam to the other ___ of the river .",
    "The judge sentenced him to ten years in ___ .",
]
HARD_GAP = "He went to the ___ to deposit some money ."


@with_model(leave_out=("tokenizer",))
def demo(
    model: ModelOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a picture of two dozen banks; created if needed.",
            callback=check_out_folder,
        ),
    ] = None,
) -> None:
    """Take a short tour: one word in different sentences, and what its vectors are good for."""
    elmo = model.load()
    print(f"{elmo!r}\n")
    _banks(elmo)
    _neighbours(elmo)
    if elmo.config.vocabulary_size:
        _gaps(elmo)
    if out is not None:
        _picture(elmo, out)


def _banks(elmo: Elmo) -> None:
    """Print the cosine similarity of one word in sentences of two senses."""
    from elmokit.analysis.reports.report import fixed
    from elmokit.analysis.similarity import word_similarity

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
    rows = [[name, *(fixed(c[k]) for c in cosines)] for k, name in enumerate(layer_names(elmo))]
    print('\nCosine similarity of "bank" in two sentences:')
    print_table(["layer", *groups], rows)
    print(
        "The token layer sees only the word, as a static vector does, and cannot tell the banks "
        f"apart.\nThe {kind_of_layers(elmo)} layers read the sentence.\n"
    )


def _neighbours(elmo: Elmo) -> None:
    """Print the nearest uses of a word in sentences from old novels."""
    import numpy as np

    from elmokit.analysis.index.neighbours import mark
    from elmokit.analysis.phrases import find_phrase
    from elmokit.analysis.reports.report import fixed
    from elmokit.analysis.similarity import cosine

    path = Path(__file__).parent.parent / "analysis" / "examples" / "play.txt"
    novels = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    asked = [sentence.split() for sentence in PLAY]
    encoded = elmo.encode([*asked, *novels], layers="top")
    places = [find_phrase(tokens, ["play"])[0].start for tokens in asked]
    found = [
        (number, i)
        for number, tokens in enumerate(novels)
        for i, token in enumerate(tokens)
        if token in ("play", "plays", "played", "playing")
    ]
    others = np.stack([encoded[len(asked) + number][i] for number, i in found])
    print('Nearest uses of "play" in sentences from old novels (top layer):')
    for tokens, vectors, place in zip(asked, encoded, places, strict=False):
        print(f"\n  {' '.join(tokens)}")
        cosines = cosine(vectors[place], others)
        for best in np.argsort(-cosines)[:3]:
            number, i = found[best]
            print(f"    {fixed(cosines[best], 2)}  {mark(novels[number], i, 7)}")
    pianos = sum("piano" in tokens for tokens in novels)
    print(
        f"\nA stage, music, and a game: only {pianos} of the {len(novels)} sentences from novels "
        "mention a piano, so neighbours\nin another sense are likely for the second."
    )


def _gaps(elmo: Elmo) -> None:
    """Print words that fit a gap, predicted from both sides."""
    print(
        "\nWords that fit the gap, best first, in sentences picked because the bundled model does "
        "well on them:\n"
    )
    for sentence in GAPS:
        print(f"  {sentence}   {_fillers(elmo, sentence)}")
    print(
        "\nEach direction predicts the word from its side of the gap alone, and the two are "
        "combined.\nIf neither side suffices on its own, the guess is weak:\n"
    )
    print(f"  {HARD_GAP}   {_fillers(elmo, HARD_GAP)}")


def _fillers(elmo: Elmo, sentence: str) -> str:
    tokens = sentence.split()
    return ", ".join(word for word, _ in elmo.substitutes(tokens, tokens.index("___"))[:6])


def _picture(elmo: Elmo, folder: Path) -> None:
    from elmokit.analysis.reports.scatter_report import scatter_report
    from elmokit.analysis.scatter import BANKS, find_occurrences, read_examples

    folder.mkdir(parents=True, exist_ok=True)
    found = find_occurrences(elmo, read_examples(BANKS), "bank")
    print('\nTwo dozen uses of "bank" as points:')
    save(scatter_report("bank", found, layer_names(elmo)), folder / "banks", elmo)
