"""Damaged index folders: flipped bits, cut, emptied and replaced files, and numbers that lie.

Opening and searching such an index either raises an error of ElmoKit, or gives what the sound index
gives.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import Limits, run

os.environ.setdefault("OMP_NUM_THREADS", "1")
ASSETS = "ELMOKIT_FUZZ_ASSETS"
NUMBERS: list[Any] = [
    0,
    -1,
    1,
    7,
    1 << 40,
    1 << 70,
    10**5000,
    1.5,
    True,
    None,
    "x",
    [],
    {},
    float("nan"),
]


def make_assets(folder: Path) -> None:
    """Build a small index."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from elmokit import Elmo
    from elmokit.analysis.index.build import build_index
    from helpers.indexing import TOKENIZED, sentences, write_text  # type: ignore[import-not-found]
    from helpers.models import TINY, write_published  # type: ignore[import-not-found]

    (folder / "model").mkdir()
    write_published(folder / "model", TINY)
    text = write_text(folder / "text.txt", sentences())
    elmo = Elmo.load(folder / "model", device="cpu")
    build_index(elmo, [text], folder / "index", TOKENIZED)


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file of an index; returns how."""
    path = rng.choice(sorted(folder.iterdir()))
    raw = path.read_bytes()
    at = rng.randrange(len(raw))
    how = rng.choice(["bit", "bit", "bit", "cut", "empty", "longer", "folder", "fifo", "swap"])
    if path.name == "config.json" and rng.random() < 0.5:
        how = "number"
    if how == "bit":
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :])
    elif how in ("cut", "empty", "longer"):
        path.write_bytes({"cut": raw[:at], "empty": b"", "longer": raw + raw[:at]}[how])
    elif how == "number":
        values = json.loads(raw)
        inner = rng.choice([values, values, values["sizes"], values["checksums"]])
        inner[rng.choice(sorted(inner))] = rng.choice(NUMBERS)
        sys.set_int_max_str_digits(0)
        path.write_text(json.dumps(values))
        sys.set_int_max_str_digits(4300)
    else:
        path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "fifo":
            os.mkfifo(path)
        else:
            other = rng.choice(sorted(folder.iterdir()))
            shutil.copy(other, path)
    return f"{path.name} {how}"


def answers(folder: Path) -> Any:
    """What a search finds."""
    from elmokit import Elmo
    from elmokit.analysis.index.neighbours import neighbours
    from elmokit.analysis.index.token_index import Index

    index = Index.open(folder)
    elmo = Elmo.load(Path(os.environ[ASSETS]) / "model", device="cpu", tokenizer="whitespace")
    return [
        neighbours(index, elmo, "the cat sat on the bank", "cat", 5, same_word=same, brute=brute)
        for same, brute in ((False, False), (False, True), (True, False))
    ]


def case(seed: int, folder: Path) -> str:
    """Damage an index, and search it."""
    from elmokit.errors import ElmoKitError

    sound = Path(os.environ[ASSETS]) / "index"
    rng = random.Random(seed)
    shutil.copytree(sound, folder / "index")
    how = damage(folder / "index", rng)
    try:
        found = answers(folder / "index")
    except ElmoKitError as error:
        return "refused" if len(str(error)) < 500 else f"refused with {len(str(error))} characters"
    assert found == answers(sound), how
    return f"same answers ({how.split()[0]})"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fuzz-assets-") as name:
        os.environ[ASSETS] = name
        make_assets(Path(name))
        status = run("indexes", case, Limits(peak_bytes=1 << 28), default_seeds="0:500")
    sys.exit(status)
