"""A sentence with each word coloured by its surprisal, and an HTML page of it."""

from __future__ import annotations

from bisect import bisect_right
from html import escape

from elmokit.analysis.reports.report import fixed
from elmokit.analysis.surprisal import Surprisal

STEPS = (2, 4, 7, 10, 14)
"""Surprisal in bits where the next colour starts."""
COLOURS = (
    ("#ffffcc", "#000000"),
    ("#c7e9b4", "#000000"),
    ("#7fcdbb", "#000000"),
    ("#41b6c4", "#000000"),
    ("#2c7fb8", "#000000"),
    ("#253494", "#ffffff"),
)
"""Background and text: ColorBrewer's YlGnBu, from light to dark, safe for the colour-blind."""
NAMES = ("under 2", "2–4", "4–7", "7–10", "10–14", "14 or more")
"""Legend of the colours, in bits."""

_PAGE = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Surprisal</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/2.1 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ font-size: 1rem; margin: 1rem 0 0; }}
p {{ margin: 0; overflow-wrap: anywhere; }}
span {{ padding: .15em .3em; border-radius: .2em; }}
.u {{ text-decoration: underline dotted; }}
table {{ border-collapse: collapse; line-height: 1.4; }}
th, td {{ padding: .1em .8em .1em 0; text-align: right; font-variant-numeric: tabular-nums; }}
th:first-child, td:first-child {{ text-align: left; overflow-wrap: anywhere; }}
{colours}
</style>
</head>
<body>
<h1>Surprisal</h1>
<p>Surprisal in bits: forward, backward, and the mean of both. {unknown}</p>
<p>{legend}</p>
{strips}
<h2>Numbers</h2>
<table>
{table}
</table>
</body>
</html>
"""


def step(bits: float) -> int:
    """Return the number of the colour for a surprisal in bits."""
    return bisect_right(STEPS, bits)


def page(found: Surprisal) -> str:
    """Return a self-contained HTML page, with light and dark mode."""
    colours = (
        f".c{k} {{ background: {ground}; color: {letters}; }}"
        for k, (ground, letters) in enumerate(COLOURS)
    )
    legend = (f'<span class="c{k}">{name}</span>' for k, name in enumerate(NAMES))
    strips = (f'<h2>{name}</h2>\n<p dir="auto">{_strip(found, name)}</p>' for name in found.bits)
    unknown = "" if all(found.known) else "* dotted: not in the vocabulary, scored as &lt;UNK&gt;."
    return _PAGE.format(
        colours="\n".join(colours),
        unknown=unknown,
        legend=" ".join(legend) + " bits",
        strips="\n".join(strips),
        table=_table(found),
    )


def _strip(found: Surprisal, direction: str) -> str:
    return " ".join(
        f'<span class="c{step(bits)}{"" if found.known[i] else " u"}" '
        f'title="{escape(_numbers(found, i))}">{escape(found.label(i))}</span>'
        for i, bits in enumerate(found.bits[direction])
    )


def _numbers(found: Surprisal, i: int) -> str:
    """Tooltip of a token."""
    numbers = ", ".join(f"{name} {fixed(bits[i], 2)}" for name, bits in found.bits.items())
    return f"{found.label(i)}: {numbers} bits"


def _table(found: Surprisal) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("token", *found.bits))
    rows = (
        f'<tr><td dir="auto">{escape(found.label(i))}</td>'
        + "".join(f"<td>{fixed(bits[i], 2)}</td>" for bits in found.bits.values())
        + "</tr>"
        for i in range(len(found.tokens))
    )
    return "\n".join([f"<tr>{head}</tr>", *rows])
