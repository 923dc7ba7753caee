"""LitBank's coreference as train, dev and test files.

    python benchmarks/litbank.py FOLDER OUT

FOLDER is coref/conll of https://github.com/dbamman/litbank, one file per novel. Writes
OUT/train.conll, dev.conll and test.conll. The split is the first of the ten that the authors of the
data made for cross-validation (github.com/dbamman/lrec2020-coref): 80, 10 and 10 documents.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DEV = (
    "940_the_last_of_the_mohicans_a_narrative_of_1757",
    "60_the_scarlet_pimpernel",
    "208_daisy_miller_a_study",
    "351_of_human_bondage",
    "2814_dubliners",
    "158_emma",
    "44_the_song_of_the_lark",
    "6053_evelina_or_the_history_of_a_young_ladys_entrance_into_the_world",
    "15265_the_quest_of_the_silver_fleece_a_novel",
    "768_wuthering_heights",
)
TEST = (
    "6593_history_of_tom_jones_a_foundling",
    "271_black_beauty",
    "730_oliver_twist",
    "16357_mary_a_fiction",
    "2807_to_have_and_to_hold",
    "1023_bleak_house",
    "1155_the_secret_adversary",
    "238_dear_enemy",
    "1661_the_adventures_of_sherlock_holmes",
    "711_allan_quatermain",
)


def main() -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    texts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for path in sorted(arguments.folder.glob("*.conll")):
        name = path.stem.removesuffix("_brat")
        part = "dev" if name in DEV else "test" if name in TEST else "train"
        texts[part].append(path.read_text(encoding="utf-8").rstrip("\n") + "\n")
    sizes = {part: len(some) for part, some in texts.items()}
    if sizes != {"train": 80, "dev": 10, "test": 10}:
        sys.exit(f"{arguments.folder} has {sizes} documents; expected 80, 10 and 10")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for part, some in texts.items():
        (arguments.out / f"{part}.conll").write_text("".join(some), encoding="utf-8")
        print(f"wrote {arguments.out / part}.conll, {len(some)} documents")


if __name__ == "__main__":
    main()
