"""Damaged, contradictory and malicious model files: each is refused, or loads and encodes.

    python fuzz/loaders.py                      # about two minutes on two cores
    python fuzz/loaders.py --seed 17            # one case, with its traceback

Every case takes a tiny model of some format, damages its files, and loads it.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import damage
import numpy as np
import torch
from harness import Limits, run

from elmokit import Elmo
from elmokit.config import ContextConfig, ModelConfig, TokenEncoderConfig
from elmokit.errors import ElmoKitError

_LONGEST_MESSAGE = 600
_MARKER = "code-was-run"


@cache
def models() -> dict[str, dict[str, bytes]]:
    """The files of each undamaged model, made once per process."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from helpers.allennlp_files import (  # type: ignore[import-not-found]
        elmo_state,
        saved,
    )
    from helpers.models import (  # type: ignore[import-not-found]
        TINY,
        VOCABULARY,
        many_langs_folder,
        write_published,
    )
    from helpers.tensor_bundles import write_checkpoint  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_published(folder / "bilm", TINY)
        write_published(folder / "bilm-softmax", TINY, vocabulary=VOCABULARY)
        write_checkpoint(folder / "checkpoint", folder / "bilm-softmax", n_shards=2)
        for legacy in (True, False):
            made = folder / f"allennlp-{'old' if legacy else 'new'}"
            made.mkdir()
            (made / "weights.th").write_bytes(saved(elmo_state(folder / "bilm"), legacy))
            name = "options.json" if legacy else "config.json"
            (made / name).write_bytes((folder / "bilm/options.json").read_bytes())
        many_langs_folder(folder / "many-langs")
        many_langs_folder(folder / "many-langs-characters", word_dim=0)
        elmo = Elmo.load(folder / "bilm-softmax", device="cpu")
        for dtype in ("float32", "float16", "int8", "int4"):
            elmo.save(folder / f"native-{dtype}", dtype=dtype)
        Elmo.load(folder / "many-langs", device="cpu").save(folder / "native-words")
        transformer = ModelConfig(
            TokenEncoderConfig(filters=((1, 4), (2, 4)), character_dim=4),
            ContextConfig("transformer", cell_dim=12, projection_dim=8, n_heads=2),
        )
        Elmo.random(transformer, device="cpu").save(folder / "native-transformer")
        return {
            made.name: {p.name: p.read_bytes() for p in made.iterdir() if p.name != "README.md"}
            for made in sorted(folder.iterdir())
        }


def case(seed: int, folder: Path) -> str:
    """Damage a model and load it."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(models()))
    files = dict(models()[kind])
    marker = folder / _MARKER
    way = rng.random()
    if way < 0.06:
        arguments = damage.odd_path(rng, files, folder)
    else:
        for name in rng.sample(sorted(files), min(len(files), rng.choice((1, 1, 1, 2, 3)))):
            files[name] = damage.damaged(rng, name, files[name], marker)
            if rng.random() < 0.1:
                files[name] = damage.damaged_bytes(rng, files[name])
            if rng.random() < 0.03:
                files[name + rng.choice(["", ".gz", ".json", "/x"])] = files.pop(name)
        arguments = _written(rng, kind, files, folder)
    try:
        elmo = Elmo.load(**arguments, device="cpu")
    except ElmoKitError as error:
        message = str(error)
        assert len(message) <= _LONGEST_MESSAGE, f"{len(message)} characters: {message[:200]}"
        assert len(message.splitlines()) == 1, f"several lines: {message!r}"
        for advice in ("weights_only", "allow_pickle", "allowlist"):
            assert advice not in message, message
        return type(error).__name__
    finally:
        assert not marker.exists(), "code from a file was run"
    for layers in ("mix", "all"):
        for vectors in elmo.encode(["a", "b c"], layers, progress=False):
            assert np.isfinite(vectors).all(), "vectors are not finite"
    if elmo.vocabulary is not None:
        for score in elmo.score(["a", "b c"]):
            assert np.isfinite(score.forward).all(), "scores are not finite"
    return "loaded"


def _written(
    rng: random.Random, kind: str, files: dict[str, bytes], folder: Path
) -> dict[str, Any]:
    """Write a model as a folder, an archive or separate files; the arguments to load it."""
    way = rng.random()
    if way < 0.3:
        path = folder / "model.zip"
        pack = damage.tar_archive if rng.random() < 0.4 else damage.archive
        path.write_bytes(pack(rng, files))
        if rng.random() < 0.5:
            path.write_bytes(damage.damaged_bytes(rng, path.read_bytes()))
        return {"model": path}
    for name, data in files.items():
        place = folder / "model" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    if kind == "checkpoint" and way < 0.6:
        prefix = folder / "model/model.ckpt-6"
        if way < 0.5:
            return {"model": prefix.with_name(prefix.name + rng.choice(["", ".index", ".meta"]))}
        given = {"options": folder / "model/options.json", "weights": prefix}
        return given | {"vocabulary": folder / "model/vocab.txt"}
    if kind == "allennlp-old" and way < 0.5:
        return {"options": folder / "model/options.json", "weights": folder / "model/weights.th"}
    if kind.startswith("bilm") and way < 0.5:
        names = {"options": "options.json", "weights": "weights.hdf5"}
        if "softmax" in kind:
            names |= {"softmax": "softmax.hdf5", "vocabulary": "vocab.txt"}
        return {argument: folder / "model" / name for argument, name in names.items()}
    return {"model": folder / "model"}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(run("loaders", case, Limits(cpu_seconds=5, peak_bytes=1 << 30), "0:5000"))
