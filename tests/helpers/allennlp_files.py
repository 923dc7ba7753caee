"""Models of AllenNLP with an ELMo in them, written as AllenNLP 0.8 to 2.10 write them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import h5py
import numpy as np
import torch

ELMO = "text_field_embedder.token_embedder_elmo._elmo."
"""What precedes the names of an ELMo that is a token embedder, as in most models."""
MIX = ([0.3, -0.2, 0.9], 1.7)
"""Layer weights and γ of a trained mix."""


def elmo_state(published: Path, prefix: str = ELMO, mixes=(MIX,)) -> dict:
    """The state dict of AllenNLP's Elmo after it has read options.json and weights.hdf5."""
    options = json.loads((published / "options.json").read_text())
    p, state = options["lstm"]["projection_dim"], {}
    with h5py.File(published / "weights.hdf5") as file:
        embedder = prefix + "_elmo_lstm._token_embedder."
        characters = file["char_embed"][()]
        state[embedder + "_char_embedding_weights"] = np.pad(characters, ((1, 0), (0, 0)))
        for i in range(len(options["char_cnn"]["filters"])):
            kernel = file[f"CNN/W_cnn_{i}"][0]
            state[f"{embedder}char_conv_{i}.weight"] = np.transpose(kernel, (2, 1, 0))
            state[f"{embedder}char_conv_{i}.bias"] = file[f"CNN/b_cnn_{i}"][()]
        for k in range(options["char_cnn"]["n_highway"]):
            layer, group = f"{embedder}_highways._layers.{k}.", file[f"CNN_high_{k}"]
            rows = [group["W_transform"][()].T, -group["W_carry"][()].T]
            state[layer + "weight"] = np.concatenate(rows)
            state[layer + "bias"] = np.concatenate(
                [group["b_transform"][()], -group["b_carry"][()]]
            )
        state[embedder + "_projection.weight"] = file["CNN_proj/W_proj"][()].T
        state[embedder + "_projection.bias"] = file["CNN_proj/b_proj"][()]
        for layer in range(options["lstm"]["n_layers"]):
            for d, direction in enumerate(("forward", "backward")):
                cell = file[f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"]
                name = f"{prefix}_elmo_lstm._elmo_lstm.{direction}_layer_{layer}."
                kernel = _exchanged(cell["W_0"][()].T)
                state[name + "input_linearity.weight"] = kernel[:, :p]
                state[name + "state_linearity.weight"] = kernel[:, p:]
                bias = cell["B"][()]
                bias[2 * len(bias) // 4 : 3 * len(bias) // 4] += 1
                state[name + "state_linearity.bias"] = _exchanged(bias)
                state[name + "state_projection.weight"] = cell["W_P_0"][()].T
    for k, (weights, gamma) in enumerate(mixes):
        mix = f"{prefix}scalar_mix_{k}."
        state[mix + "gamma"] = np.array([gamma], np.float32)
        for i, weight in enumerate(weights):
            state[f"{mix}scalar_parameters.{i}"] = np.array([weight], np.float32)
    return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in state.items()}


def _exchanged(gates: np.ndarray) -> np.ndarray:
    """i, j, f, o of TensorFlow as i, f, j, o of PyTorch."""
    i, j, f, o = np.split(gates, 4)
    return np.concatenate([i, f, j, o])


def saved(state: dict, legacy: bool = False) -> bytes:
    """The bytes of weights.th, as torch.save writes it or wrote it before version 1.6."""
    held = io.BytesIO()
    torch.save(state, held, _use_new_zipfile_serialization=not legacy)
    return held.getvalue()


def model_files(state: dict, legacy: bool = False, **others: bytes) -> dict[str, bytes]:
    """The files of a model: an ELMo, and a task's own tensors beside it."""
    task = {"encoder._module.weight_ih_l0": torch.ones(3, 2), "steps": torch.tensor(3)}
    config = {"model": {"type": "simple_tagger"}, "trainer": {"optimizer": "adam"}}
    return {
        "config.json": json.dumps(config).encode(),
        "weights.th": saved(state | task, legacy),
        "vocabulary/labels.txt": b"B\nO\n",
        "vocabulary/non_padded_namespaces.txt": b"*tags\n",
        **others,
    }


def tar_gz(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT, extra=()) -> bytes:
    """A tar.gz archive; ``extra`` are further members as (TarInfo, content)."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", format=form) as archive:
        folder = tarfile.TarInfo("vocabulary")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1_588_346_044.25 if form == tarfile.PAX_FORMAT else 1_588_346_044
            archive.addfile(info, io.BytesIO(data))
        for info, data in extra:
            archive.addfile(info, io.BytesIO(data))
    return held.getvalue()
