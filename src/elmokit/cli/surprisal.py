"""``elmokit surprisal``: how surprising each word of a sentence is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.common import (
    DeviceOption,
    ModelOption,
    OptionsFileOption,
    OutOption,
    TokenizerOption,
    WeightFileOption,
    check_file,
    give,
    open_model,
)

if TYPE_CHECKING:
    from elmokit.analysis.surprisal import Surprisal


def surprisal(
    sentence: Annotated[str, typer.Argument(help="A sentence.")],
    out: OutOption = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write the coloured sentence as a page of HTML.", callback=check_file),
    ] = None,
    model: ModelOption = None,
    options_file: OptionsFileOption = None,
    weight_file: WeightFileOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
) -> None:
    """Show how surprising each word is, in bits: -log2 p, forward, backward and the mean.

    A word with a star is not in the model's vocabulary, and has the surprisal of <UNK>.
    """
    from elmokit.analysis.reports.surprisal_page import page
    from elmokit.analysis.surprisal import surprisal, surprisal_report
    from elmokit.io.atomic import write_text

    elmo = open_model(model, options_file, weight_file, tokenizer, device)
    found = surprisal(elmo, sentence)
    _print_strip(found)
    give(surprisal_report(found), out, elmo, sentence=sentence)
    if html is not None:
        write_text(html, page(found))
        print(f"wrote {html}")


def _print_strip(found: Surprisal) -> None:
    """The sentence on colours, once a direction; nothing where there are no colours."""
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
