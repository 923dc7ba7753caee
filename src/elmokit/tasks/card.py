"""The card (README.md) of a saved task model."""

from __future__ import annotations

import html
from typing import Any


def card(values: dict[str, Any], name: str) -> str:
    """Return a README for a saved task model.

    Args:
        values: The content of its task.json.
        name: The name of its folder.
    """
    about, bilm, given = values["about"], values["bilm"], values["settings"]["input"]
    rows = {
        "task": values["task"],
        "labels": ", ".join(values["labels"][:40]) + (" …" if len(values["labels"]) > 40 else ""),
        "biLM": f"{bilm.get('name', 'in the folder bilm')} (SHA-256 `{bilm['sha256'][:16]}…`)",
        "static vectors": given["vectors"],
        "ELMo": f"layers {given['layers']}, at {given['at']}",
        "fine-tuned biLM": "yes" if values["settings"]["tuning"]["enabled"] else "no",
        "seed": values["settings"]["training"]["seed"],
        "versions": f"ElmoKit {about['elmokit']}, PyTorch {about['torch']}",
    }
    if "dev" in about:
        rows["training examples"] = f"{about['train']:,}"
        rows["score on the dev examples"] = shown_score(about["dev"], about["epoch"])
    if "test" in about:
        rows["score on the test examples"] = shown_score(about["test"])
    for place, (*shares, gamma) in about.get("mixes", {}).items():
        shown = ", ".join(f"{share:.3f}" for share in shares)
        rows[f"layer weights at {place}"] = f"{shown}; γ = {gamma:.3f}"
    if not values["labels"]:
        del rows["labels"]
    table = "\n".join(f"| {key} | {_cell(value)} |" for key, value in rows.items())
    notes = "Describe here the data the model was trained on, its licence, and its limits."
    return f"""# {name}

A task model trained with ElmoKit.

| | |
|---|---|
{table}

```text
elmokit predict {name} input.txt
elmokit evaluate {name} test-file
```

{about.get("notes", notes)}
"""


def _cell(value: object) -> str:
    """A value in a table of Markdown, where | would end the cell and < begin HTML."""
    return html.escape(" ".join(str(value).split()), quote=False).replace("|", "\\|")


def shown_score(score: dict[str, Any], epoch: int | None = None) -> str:
    """A score in a few words, such as "f1 78.39 (2,001 sentences, epoch 9)".

    Args:
        score: measure, value and n; and unit, which older models lack.
        epoch: The epoch it is of.
    """
    of = f"{score['n']:,} {score.get('unit', 'examples')}"
    when = "" if epoch is None else f", epoch {epoch}"
    return f"{score['measure']} {score['value']:.2f} ({of}{when})"
