"""``elmokit wsd``: word sense disambiguation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import give, say
from elmokit.cli.places import NumbersOption, OutOption, check_file

wsd = typer.Typer(
    name="wsd",
    no_args_is_help=True,
    help="Disambiguate word senses by the nearest mean vector in a tagged text.",
)

SensesArgument = Annotated[Path, typer.Argument(help="File written by elmokit wsd train.")]
WordNetOption = Annotated[
    Path,
    typer.Option(
        help="Folder of WordNet 3.0 with index.sense, data.noun, noun.exc and so on.",
        envvar="ELMOKIT_WORDNET",
    ),
]


@wsd.command()
@with_model(leave_out=("tokenizer",))
def train(
    semcor: Annotated[Path, typer.Argument(help="Folder of SemCor 3.0.")],
    out: Annotated[Path, typer.Option(help=".npz file to write.", callback=check_file)],
    model: ModelOptions,
    occurrences: Annotated[
        bool,
        typer.Option(
            "--occurrences",
            help="Also keep the vector of every occurrence, and let the nearest ones vote: more "
            "accurate, but the file is three times as large.",
        ),
    ] = False,
) -> None:
    """Compute the mean vector of every sense in a tagged text."""
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from elmokit.analysis.senses.tagged_text import read_semcor

    sentences = list(read_semcor(semcor))  # report mistakes before the model is loaded
    elmo = model.load()
    vectors = SenseVectors.train(elmo, sentences, occurrences)
    vectors.save(out)
    say(
        f"{out}: {len(vectors.keys):,} senses from {vectors.counts.sum():,} occurrences, "
        f"{elmo.n_layers} layers"
    )


@wsd.command("test")
@with_model(leave_out=("tokenizer",))
def score(
    senses: SensesArgument,
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Files NAME.data.xml of Raganato et al. (2017), next to NAME.gold.key.txt."
        ),
    ],
    wordnet: WordNetOption,
    model: ModelOptions,
    out: OutOption = None,
) -> None:
    """Print F1 per layer, next to the baseline of WordNet's first sense.

    "top without residual" uses the output of the top LSTM before the residual connection adds the
    layer below (without one, the top layer itself). "context" uses the same output at the
    neighbouring positions, where the word itself has not been read. With stored occurrences,
    "combined" uses the ten nearest occurrences, the mean vectors, and the words of the gloss.
    """
    from elmokit.analysis.reports.senses_report import wsd_report
    from elmokit.analysis.senses.disambiguation import evaluate
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from elmokit.analysis.senses.tagged_text import read_raganato
    from elmokit.analysis.senses.wordnet import WordNet

    texts = {}
    for path in data:
        name = path.name.removesuffix(".data.xml")
        texts[name] = read_raganato(path, path.parent / f"{name}.gold.key.txt")
    inventory, vectors = WordNet(wordnet), SenseVectors.load(senses)
    elmo = model.load()
    vectors.check(elmo)
    scores = {name: evaluate(elmo, vectors, inventory, text) for name, text in texts.items()}
    report = wsd_report(scores, elmo.layer_names)
    give(report, out, elmo, senses=senses, texts=data, wordnet=wordnet)


@wsd.command()
@with_model()
def tag(
    senses: SensesArgument,
    text: Annotated[str, typer.Argument(help="A sentence.")],
    wordnet: WordNetOption,
    model: ModelOptions,
    out: NumbersOption = None,
) -> None:
    """Print the sense of every word that is in WordNet.

    With stored occurrences, the sense is the combined one of elmokit wsd test; without them,
    by the nearest mean vector of the word's surroundings. The cosine is to that mean vector.
    """
    from elmokit.analysis.reports.report import Report
    from elmokit.analysis.senses.disambiguation import tag
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from elmokit.analysis.senses.wordnet import WordNet

    inventory, vectors = WordNet(wordnet), SenseVectors.load(senses)
    elmo = model.load()
    vectors.check(elmo)
    tokens = elmo.tokenize(text)
    (words,) = tag(elmo, vectors, inventory, [tokens])
    rows = [
        [
            " ".join(tokens[word.start : word.end]),
            "most frequent" if word.cosine is None else word.cosine,
            word.key,
            inventory.gloss(word.key).partition(";")[0],
        ]
        for word in words
    ]
    report = Report("Senses", ["word", "cosine", "sense", "gloss"], rows)
    give(report, out, elmo, senses=senses, text=text, wordnet=wordnet)
