"""``elmokit surprisal``: how surprising each word of a sentence is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.cli.output import give, say
from elmokit.cli.places import OutOption, check_file

if TYPE_CHECKING:
    from elmokit.analysis.surprisal import Surprisal


@with_model()
def surprisal(
    sentence: Annotated[str, typer.Argument(help="A sentence.")],
    model: ModelOptions,
    out: OutOption = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write the coloured sentence as an HTML page.", callback=check_file),
    ] = None,
) -> None:
    """Print how surprising each word is, in bits: -log2 p, forward, backward and their mean.

    Words outside the model's vocabulary are scored as <UNK>. The coloured text and the picture mark
    them with a star.
    """
    from elmokit.analysis.reports.surprisal_page import page
    from elmokit.analysis.surprisal import surprisal
    from elmokit.io.atomic import write_text

    elmo = model.load()
    found = surprisal(elmo, sentence)
    _print_strip(found)
    give(found.report(), out, elmo, sentence=sentence)
    if html is not None:
        write_text(html, page(found))
        say(f"wrote {html}")


def _print_strip(found: Surprisal) -> None:
    """Print the sentence in colours, once per direction, if the terminal has colours."""
    from rich.console import Console
    from rich.text import Text

    from elmokit.analysis.reports.surprisal_page import COLOURS, NAMES, step

    def coloured(text: str, k: int) -> tuple[str, str]:
        ground, letters = COLOURS[k]
        return f" {text} ", f"{letters} on {ground}"

    console = Console(highlight=False, markup=False)
    if console.color_system is None:
        return
    for name, bits in found.bits.items():
        words = [coloured(found.label(i), step(b)) for i, b in enumerate(bits)]
        console.print(Text.assemble((f"{name:9}", "bold"), *words))
    legend = [coloured(name, k) for k, name in enumerate(NAMES)]
    console.print(Text.assemble("bits     ", *legend))
