"""The guides name every setting of every task."""

import dataclasses
import re

import pytest

from elmokit.tasks import task_class
from elmokit.tasks.names import TASKS
from helpers.docs import read


def rows(guide):
    """The cells of the rows about settings, by the setting's name."""
    table = [line for line in read(f"docs/{guide}").splitlines() if line.startswith("| `")]
    found = (
        re.match(r"\| `((?:model|input|tuning|training)\.\w+)` \|(.*)", line) for line in table
    )
    return {match[1]: match[2].split(" | ") for match in found if match}


def by_task(cell):
    """The value for each task that a cell such as "0; `ner`, `srl` 0.001" names, and for others."""
    values, tasks = {}, []
    for word in re.findall(r"[\w.]+", cell.replace("为", " ").replace("其余", "others")):
        if word in TASKS or word == "others":
            tasks.append(word)
        else:
            values |= dict.fromkeys(tasks or ["others"], word)
            tasks = []
    return values


@pytest.mark.parametrize("guide", ["tasks.md", "tasks.zh.md"])
def test_the_guides_name_every_setting(guide):
    settings = set()
    for name in TASKS:
        for section, values in task_class(name).defaults.to_dict().items():
            settings |= {f"{section}.{key}" for key in values}
    assert set(rows(guide)) == settings


@pytest.mark.parametrize("guide", ["tasks.md", "tasks.zh.md"])
def test_the_guides_have_the_defaults(guide):
    for name in TASKS:
        defaults = task_class(name).defaults
        for setting, cells in rows(guide).items():
            section, key = setting.split(".")
            values = getattr(defaults, section)
            if key not in {field.name for field in dataclasses.fields(values)}:
                continue
            value = getattr(values, key)
            shown = str(value).lower() if isinstance(value, bool) else f"{value}"
            shown = f"{value:g}" if isinstance(value, float) else shown
            said = by_task(cells[0] if section == "model" else cells[1])
            assert said.get(task_class(name).name, said.get("others")) == shown, (name, setting)


@pytest.mark.parametrize("guide", ["tasks.md", "tasks.zh.md"])
def test_the_guides_name_every_task(guide):
    text = read(f"docs/{guide}")
    for name, (_, kind) in TASKS.items():
        assert f"`{name}`" in text
        assert f"`{kind}`" in text
