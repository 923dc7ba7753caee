"""Tiny models in the published layouts, and sentences for them."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import torch

TINY = {
    "lstm": {
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
        "n_layers": 2,
        "projection_dim": 8,
        "dim": 24,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 8], [3, 12]],
        "n_highway": 2,
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


SENTENCES = [
    ["The", "first", "sentence", "."],
    ["Second"],
    ["naïve", "café", "日本語", "🙂", "x" * 60, "é" * 30],
    [],
    ["a", "/", "b", ":", "<S>", "</S>", "<UNK>"],
    [str(i) for i in range(25)],
]


SCORED_SENTENCES = [
    ["the", "cat", "sat", "."],
    ["zebra"],
    ["a", "mat"] * 30,
    ["on", "the", "<UNK>", "mat", "."],
]
"""Sentences for a model with VOCABULARY: known and unknown words, short and long."""


def write_published(folder: Path, options: dict, seed: int = 0, vocabulary: list | None = None):
    """Write options.json and weights.hdf5 with random weights that make both clips active.

    Large input and forget biases fill the cells up to their bound, and large projections sometimes
    exceed theirs. The recurrent weights are small, so rounding errors shrink instead of growing.
    With a vocabulary, softmax.hdf5 and vocab.txt are written too.
    """
    rng = np.random.default_rng(seed)
    cnn, lstm = options["char_cnn"], options["lstm"]
    p, h, dim = lstm["projection_dim"], lstm["dim"], cnn["embedding"]["dim"]
    n_filters = sum(count for _, count in cnn["filters"])

    def normal(*shape, scale=1.0):
        return rng.normal(0, scale, shape).astype(np.float32)

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        file["char_embed"] = normal(261, dim)
        for i, (width, count) in enumerate(cnn["filters"]):
            file[f"CNN/W_cnn_{i}"] = normal(1, width, dim, count, scale=0.5)
            file[f"CNN/b_cnn_{i}"] = normal(count, scale=0.5)
        for k in range(cnn.get("n_highway", 0)):
            for name in ("carry", "transform"):
                file[f"CNN_high_{k}/W_{name}"] = normal(n_filters, n_filters, scale=n_filters**-0.5)
                file[f"CNN_high_{k}/b_{name}"] = normal(n_filters)
        if n_filters != p:
            file["CNN_proj/W_proj"] = normal(n_filters, p, scale=n_filters**-0.5)
            file["CNN_proj/b_proj"] = normal(p, scale=0.5)
        for direction in range(2):
            for layer in range(lstm.get("n_layers", 1)):
                cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel = normal(2 * p, 4 * h, scale=0.5 * p**-0.5)
                kernel[p:] *= 0.2
                bias = normal(4, h)
                bias[0] += 2
                bias[1] *= 2
                bias[2] += 3
                file[cell + "W_0"], file[cell + "B"] = kernel, bias.reshape(-1)
                if p != h:
                    file[cell + "W_P_0"] = normal(h, p, scale=4.5 * h**-0.5)
    if vocabulary is not None:
        with h5py.File(folder / "softmax.hdf5", "w") as file:
            file["softmax/W"] = normal(len(vocabulary), p)
            file["softmax/b"] = normal(len(vocabulary))
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary))
    return folder


VOCABULARY = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "a", "mat", "."]


def many_langs_folder(folder, word_dim=5, config_path="/somebody/elses/cnn_tiny.json"):
    """Write a model in the ELMoForManyLangs format, with its names and order of gates."""
    torch.manual_seed(0)
    folder.mkdir()
    characters = [*"abc日", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
    words = ["<oov>", "<bos>", "<eos>", "<pad>", "cab"]
    (folder / "config.json").write_text(json.dumps({"config_path": config_path}))
    architecture = {
        "encoder": {"name": "elmo", "projection_dim": 4, "cell_clip": 3, "proj_clip": 3, "dim": 6,
                    "n_layers": 2},
        "token_embedder": {"name": "cnn", "activation": "relu", "filters": [[1, 3], [2, 4]],
                           "n_highway": 1, "word_dim": word_dim, "char_dim": 5,
                           "max_characters_per_token": 20},
    }  # fmt: skip
    (folder / "cnn_tiny.json").write_text(json.dumps(architecture))
    for name, items in (("char", characters), ("word", words)):
        lines = "".join(f"{item}\t{i}\n" for i, item in enumerate(items))
        (folder / f"{name}.dic").write_text(lines, encoding="utf-8")
    embedder = {
        "char_emb_layer.embedding.weight": torch.randn(10, 5),
        "convolutions.0.weight": torch.randn(3, 5, 1),
        "convolutions.0.bias": torch.randn(3),
        "convolutions.1.weight": torch.randn(4, 5, 2),
        "convolutions.1.bias": torch.randn(4),
        "highways._layers.0.weight": torch.randn(14, 7),
        "highways._layers.0.bias": torch.randn(14),
        "projection.weight": torch.randn(4, 7 + word_dim),
        "projection.bias": torch.randn(4),
    }
    if word_dim:
        embedder["word_emb_layer.embedding.weight"] = torch.randn(5, word_dim)
    encoder = {}
    for direction in ("forward", "backward"):
        for layer in range(2):
            name = f"{direction}_layer_{layer}."
            encoder |= {
                name + "input_linearity.weight": torch.randn(24, 4),
                name + "state_linearity.weight": torch.randn(24, 4),
                name + "state_linearity.bias": torch.randn(24),
                name + "state_projection.weight": torch.randn(4, 6),
            }
    torch.save(embedder, folder / "token_embedder.pkl")
    torch.save(encoder, folder / "encoder.pkl")
    return folder
