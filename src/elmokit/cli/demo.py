"""``elmokit demo``: a short tour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import ModelOptions, choice, with_model
from elmokit.cli.output import kind_of_layers, print_table, save
from elmokit.cli.places import check_out_folder
from elmokit.cli.tours import EXAMPLES, GAP, TOURS, Tour
from elmokit.text.tokenizers import TOKENIZERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from elmokit.analysis.phrases import Place
    from elmokit.elmo import Elmo

_SHOWN = 7  # tokens on either side of a word


@with_model(leave_out=("tokenizer",), defaults={"model": "the bundled model of the language"})
def demo(
    model: ModelOptions,
    lang: Annotated[
        str, choice(*TOURS, help="Language of the tour, and of the bundled model.")
    ] = "en",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a picture of two dozen uses of a word; created if needed.",
            callback=check_out_folder,
        ),
    ] = None,
) -> None:
    """Take a short tour: one word in different sentences, and what its vectors are good for."""
    from elmokit.arguments import one_of
    from elmokit.formats import DEFAULT_MODEL, bundled_name

    tour = TOURS[one_of(lang, "lang", TOURS)]
    if not model.is_given:
        model = replace(model, model=str(DEFAULT_MODEL.parent / lang))
    elmo = model.load()
    if elmo.tokenizer.name == "whitespace":  # of models for tokenised text
        elmo.tokenizer = TOKENIZERS[tour.tokenizer]
    print(f"{elmo!r}\n")
    _senses(elmo, tour)
    _uses(elmo, tour)
    if elmo.config.vocabulary_size:
        _gaps(elmo, tour)
    # task models belong to the weights they were trained with
    if bundled_name(elmo.source) == lang and elmo.precision == "float32":
        _tasks(elmo, tour)
    if out is not None:
        _picture(elmo, tour, out)


def _senses(elmo: Elmo, tour: Tour) -> None:
    """Print the cosine similarity of one word in sentences of two senses."""
    from elmokit.analysis.reports.report import fixed
    from elmokit.analysis.similarity import word_similarity

    for sense, sentences in tour.senses.items():
        for number, sentence in enumerate(sentences, 1):
            (vectors,) = elmo.encode([sentence])
            print(
                tour.sentence_line.format(
                    sense=sense, number=number, sentence=sentence, shape=vectors.shape
                )
            )
    (a, of_a), (b, of_b) = tour.senses.items()
    pairs = {
        tour.pair.format(f"{a} 1", f"{a} 2"): (of_a[0], of_a[1]),
        tour.pair.format(f"{b} 1", f"{b} 2"): (of_b[0], of_b[1]),
        tour.pair.format(f"{a} 1", f"{b} 1"): (of_a[0], of_b[0]),
        tour.pair.format(f"{a} 2", f"{b} 2"): (of_a[1], of_b[1]),
    }
    cosines = [word_similarity(elmo, *pair, tour.word)[0].cosines for pair in pairs.values()]
    names = _layer_names(elmo, tour)
    rows = [[name, *(fixed(c[k]) for c in cosines)] for k, name in enumerate(names)]
    print(f"\n{tour.similarity_title}")
    print_table([tour.layer_column, *pairs], rows)
    print(tour.similarity_note.format(kind=kind_of_layers(elmo)) + "\n")


def _uses(elmo: Elmo, tour: Tour) -> None:
    """Print the nearest uses of a word in other sentences."""
    import numpy as np

    from elmokit.analysis.reports.report import fixed
    from elmokit.analysis.similarity import cosine

    others = (EXAMPLES / tour.uses).read_text(encoding="utf-8").splitlines()
    encoded = elmo.encode([*tour.asked, *others], layers="top")
    found = [
        (number, place)
        for number, sentence in enumerate(others)
        for form in tour.forms
        for place in _places(elmo, sentence, form)
    ]
    vectors = np.stack(
        [encoded[len(tour.asked) + number][place.tokens].mean(0) for number, place in found]
    )
    print(tour.uses_title)
    for sentence, own in zip(tour.asked, encoded, strict=False):
        print(f"\n  {sentence}")
        place = _places(elmo, sentence, tour.forms[0])[0]
        cosines = cosine(own[place.tokens].mean(0), vectors)
        for best in np.argsort(-cosines)[:3]:
            number, place = found[best]
            print(f"    {fixed(cosines[best], 2)}  {_marked(elmo, others[number], place)}")
    print(f"\n{tour.uses_note}")


def _gaps(elmo: Elmo, tour: Tour) -> None:
    """Print words that fit a gap, predicted from both sides."""
    print(f"\n{tour.gaps_title}\n")
    for sentence in tour.gaps:
        print(f"  {sentence}   {_fillers(elmo, tour, sentence)}")
    print(f"\n{tour.gaps_note}\n")
    print(f"  {tour.hard_gap}   {_fillers(elmo, tour, tour.hard_gap)}")


def _fillers(elmo: Elmo, tour: Tour, sentence: str) -> str:
    before, after = (elmo.tokenize(part) for part in sentence.split(GAP))
    found = elmo.substitutes([*before, GAP, *after], len(before))
    return tour.comma.join(word for word, _ in found[:6])


def _tasks(elmo: Elmo, tour: Tour) -> None:
    """Print what the bundled task models predict."""
    from elmokit.tasks import load
    from elmokit.tasks.names import BUNDLED

    if tour.tasks:
        print(f"\n{tour.tasks_title}\n")
    for name, sentence in tour.tasks.items():
        task = load(BUNDLED / name, elmo=elmo)  # whatever the working directory contains
        for line in task.show(task(sentence)).splitlines():
            print(f"  {name}  {line}")


def _picture(elmo: Elmo, tour: Tour, folder: Path) -> None:
    from elmokit.analysis.reports.scatter_report import scatter_report
    from elmokit.analysis.scatter import find_occurrences, read_examples

    folder.mkdir(parents=True, exist_ok=True)
    found = find_occurrences(elmo, read_examples(EXAMPLES / tour.labelled), tour.word)
    report = scatter_report(tour.word, found, _layer_names(elmo, tour))
    report.title = tour.drawn_title or report.title
    if report.draw is not None:
        report.draw = _translated(report.draw, tour.drawn)
    print(f"\n{tour.picture_title}")
    save(report, folder / tour.picture, elmo)


def _translated(draw: Callable[[Figure], None], words: Mapping[str, str]) -> Callable[..., None]:
    """Draw as before, and then replace texts."""

    def draw_translated(figure: Figure) -> None:
        from matplotlib.text import Text

        draw(figure)
        for text in figure.findobj(Text):
            for english, other in words.items():
                text.set_text(text.get_text().replace(english, other))

    return draw_translated


def _layer_names(elmo: Elmo, tour: Tour) -> list[str]:
    kind, numbers = kind_of_layers(elmo), range(1, elmo.n_layers)
    return [tour.token_layer, *(tour.context_layer.format(kind=kind, number=k) for k in numbers)]


def _places(elmo: Elmo, sentence: str, word: str) -> list[Place]:
    from elmokit.analysis.phrases import find_phrase

    return find_phrase(elmo.tokenize(sentence), elmo.tokenize(word))


def _marked(elmo: Elmo, sentence: str, place: Place) -> str:
    """Put a word of a sentence in brackets; the rest stays as it is written, but is cut."""
    spans = elmo.tokenizer.spans(sentence)
    first, last = max(0, place.start - _SHOWN), min(len(spans), place.end + _SHOWN)
    start, end = spans[place.start][0], spans[place.end - 1][1]
    shown = (
        f"{sentence[spans[first][0] : start]}[{sentence[start:end]}]"
        f"{sentence[end : spans[last - 1][1]]}"
    )
    return "… " * (first > 0) + shown + " …" * (last < len(spans))
