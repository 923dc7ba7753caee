"""``elmokit wsd``: which sense a word has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import DeviceOption, ModelOption, OutOption, give, layer_names, print_table
from elmokit.errors import InputError

wsd = typer.Typer(
    name="wsd",
    no_args_is_help=True,
    help="Senses of words, by the nearest average of their vectors in a tagged text.",
)

SensesArgument = Annotated[Path, typer.Argument(help="What elmokit wsd train wrote.")]
WordNetOption = Annotated[
    Path,
    typer.Option(
        help="WordNet 3.0's folder of files: index.sense, data.noun, noun.exc and so on.",
        envvar="ELMOKIT_WORDNET",
    ),
]


@wsd.command()
def train(
    semcor: Annotated[Path, typer.Argument(help="Folder of SemCor 3.0.")],
    out: Annotated[Path, typer.Option(help="File to write, .npz.")],
    model: ModelOption = None,
    device: DeviceOption = None,
) -> None:
    """Average the vectors of every sense in a tagged text."""
    from elmokit.analysis.senses import read_semcor
    from elmokit.analysis.wsd import SenseVectors
    from elmokit.elmo import Elmo

    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: its folder does not exist; make it first")
    sentences = list(read_semcor(semcor))  # what is wrong with them is known at once
    vectors = SenseVectors.train(Elmo.load(model, device=device), sentences)
    vectors.save(out)
    print(f"{out}: {len(vectors.keys):,} senses, {vectors.vectors.shape[1]} layers")


@wsd.command("test")
def score(
    senses: SensesArgument,
    data: Annotated[
        list[Path],
        typer.Argument(help="Files NAME.data.xml of Raganato et al. (2017), the keys beside them."),
    ],
    wordnet: WordNetOption,
    model: ModelOption = None,
    device: DeviceOption = None,
    out: OutOption = None,
) -> None:
    """Print F1 by layer, beside that of WordNet's first sense."""
    from elmokit.analysis.senses import read_raganato
    from elmokit.analysis.wordnet import WordNet
    from elmokit.analysis.wsd import SenseVectors, evaluate, wsd_report
    from elmokit.elmo import Elmo

    texts = {}
    for path in data:
        name = path.name.removesuffix(".data.xml")
        texts[name] = read_raganato(path, path.with_name(f"{name}.gold.key.txt"))
    inventory, vectors = WordNet(wordnet), SenseVectors.load(senses)
    elmo = Elmo.load(model, device=device)
    vectors.check(elmo)
    scores = {name: evaluate(elmo, vectors, inventory, text) for name, text in texts.items()}
    give(wsd_report(scores, layer_names(elmo)), out)


@wsd.command()
def tag(
    senses: SensesArgument,
    text: Annotated[str, typer.Argument(help="A sentence.")],
    wordnet: WordNetOption,
    model: ModelOption = None,
    device: DeviceOption = None,
) -> None:
    """Print the sense of every word that WordNet has."""
    from elmokit.analysis.wordnet import WordNet
    from elmokit.analysis.wsd import SenseVectors, tag
    from elmokit.elmo import Elmo

    inventory, vectors = WordNet(wordnet), SenseVectors.load(senses)
    elmo = Elmo.load(model, device=device)
    vectors.check(elmo)
    tokens = elmo.tokenize(text)
    (words,) = tag(elmo, vectors, inventory, [tokens])
    rows = [
        [
            " ".join(tokens[word.start : word.end]),
            "most frequent" if word.cosine is None else f"{word.cosine:.3f}",
            word.key,
            inventory.gloss(word.key).partition(";")[0],
        ]
        for word in words
    ]
    print_table(["word", "cosine", "sense", "gloss"], rows)
