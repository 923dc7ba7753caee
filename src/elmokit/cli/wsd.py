"""``elmokit wsd``: which sense a word has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    OutOption,
    TokenizerOption,
    WeightFileOption,
    check_file,
    check_numbers,
    give,
    layer_names,
    open_model,
)

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
    out: Annotated[Path, typer.Option(help="File to write, .npz.", callback=check_file)],
    occurrences: Annotated[
        bool,
        typer.Option(
            "--occurrences",
            help="Keep every occurrence beside the averages, so that the nearest can vote: more "
            "answers are right, and the file is three times as large.",
        ),
    ] = False,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    device: DeviceOption = None,
) -> None:
    """Average the vectors of every sense in a tagged text."""
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from elmokit.analysis.senses.tagged_text import read_semcor

    sentences = list(read_semcor(semcor))  # what is wrong with them is known at once
    elmo = open_model(model, options_file, weight_file, device=device)
    vectors = SenseVectors.train(elmo, sentences, occurrences)
    vectors.save(out)
    print(
        f"{out}: {len(vectors.keys):,} senses by {vectors.counts.sum():,} occurrences, "
        f"{elmo.n_layers} layers"
    )


@wsd.command("test")
def score(
    senses: SensesArgument,
    data: Annotated[
        list[Path],
        typer.Argument(help="Files NAME.data.xml of Raganato et al. (2017), the keys beside them."),
    ],
    wordnet: WordNetOption,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    device: DeviceOption = None,
    out: OutOption = None,
) -> None:
    """Print F1 by layer, beside that of WordNet's first sense.

    The column "top alone" is by what the top LSTM puts out before the layer below is added to it
    (the top layer itself, where nothing is added), "around it" by the same on either side of the
    word, where it has not been read. If the occurrences were kept, "all hints" is the sense for
    which most speaks: the ten nearest occurrences, the averages, and the words that explain it.
    """
    from elmokit.analysis.senses.disambiguation import evaluate, wsd_report
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from elmokit.analysis.senses.tagged_text import read_raganato
    from elmokit.analysis.senses.wordnet import WordNet

    texts = {}
    for path in data:
        name = path.name.removesuffix(".data.xml")
        texts[name] = read_raganato(path, path.with_name(f"{name}.gold.key.txt"))
    inventory, vectors = WordNet(wordnet), SenseVectors.load(senses)
    elmo = open_model(model, options_file, weight_file, device=device)
    vectors.check(elmo)
    scores = {name: evaluate(elmo, vectors, inventory, text) for name, text in texts.items()}
    report = wsd_report(scores, layer_names(elmo))
    give(report, out, elmo, senses=senses, texts=data, wordnet=wordnet)


@wsd.command()
def tag(
    senses: SensesArgument,
    text: Annotated[str, typer.Argument(help="A sentence.")],
    wordnet: WordNetOption,
    tokenizer: TokenizerOption = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    device: DeviceOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write OUT.json and OUT.csv.", callback=check_numbers)
    ] = None,
) -> None:
    """Print the sense of every word that WordNet has.

    By all hints if the occurrences were kept, else by the nearest average of what surrounds a word;
    the cosine is to that average.
    """
    from elmokit.analysis.reports.report import Report
    from elmokit.analysis.senses.disambiguation import tag
    from elmokit.analysis.senses.sense_vectors import SenseVectors
    from elmokit.analysis.senses.wordnet import WordNet

    inventory, vectors = WordNet(wordnet), SenseVectors.load(senses)
    elmo = open_model(model, options_file, weight_file, tokenizer, device)
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
