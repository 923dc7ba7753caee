"""An independent ELMo in float64 numpy, written from the published description alone.

It reads the HDF5 file itself, keeps its orientation (x·W) and processes one sentence at a time. It
counts clipped values, so tests can check that the clips were active.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import h5py
import numpy as np

BOS, EOS, BOW, EOW, PAD = 256, 257, 258, 259, 260


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


@dataclass
class Clips:
    """The number of cells and projected values, and how many exceeded their bounds."""

    cells: int = 0
    cells_clipped: int = 0
    projections: int = 0
    projections_clipped: int = 0


@dataclass
class Reference:
    options: dict
    weights: dict
    clips: Clips = field(default_factory=Clips)

    @classmethod
    def open(cls, options, path):
        weights = {}
        with h5py.File(path) as file:
            file.visititems(
                lambda name, item: (
                    weights.update({name: item[()].astype(np.float64)})
                    if isinstance(item, h5py.Dataset)
                    else None
                )
            )
        return cls(options, weights)

    def character_ids(self, word):
        width = self.options["char_cnn"]["max_characters_per_token"]
        if word == "<S>":
            ids = [BOW, BOS, EOW]
        elif word == "</S>":
            ids = [BOW, EOS, EOW]
        else:
            ids = [BOW, *word.encode("utf-8", "ignore")[: width - 2], EOW]
        return ids + [PAD] * (width - len(ids))

    def token(self, word):
        cnn = self.options["char_cnn"]
        x = self.weights["char_embed"][self.character_ids(word)]  # (C, dim)
        pieces = []
        for i, (width, count) in enumerate(cnn["filters"]):
            kernel, bias = self.weights[f"CNN/W_cnn_{i}"][0], self.weights[f"CNN/b_cnn_{i}"]
            windows = [x[s : s + width].ravel() for s in range(len(x) - width + 1)]
            convolved = np.array(windows) @ kernel.reshape(-1, count) + bias
            best = convolved.max(0)
            pieces.append(np.maximum(best, 0) if cnn["activation"] == "relu" else np.tanh(best))
        y = np.concatenate(pieces)
        for k in range(cnn.get("n_highway", 0)):
            high = {
                n: self.weights[f"CNN_high_{k}/{n}"]
                for n in ("W_carry", "b_carry", "W_transform", "b_transform")
            }
            carry = sigmoid(y @ high["W_carry"] + high["b_carry"])
            transformed = np.maximum(y @ high["W_transform"] + high["b_transform"], 0)
            y = carry * transformed + (1 - carry) * y
        if "CNN_proj/W_proj" in self.weights:
            y = y @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]
        return y

    def lstm(self, xs, direction, layer, state):
        lstm = self.options["lstm"]
        root = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
        kernel, bias = self.weights[root + "W_0"], self.weights[root + "B"]
        projection = self.weights.get(root + "W_P_0")
        h, c = state
        outputs = []
        for x in xs:
            i, j, f, o = np.split(np.concatenate([x, h]) @ kernel + bias, 4)
            c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
            self.clips.cells += c.size
            if (clip := lstm.get("cell_clip")) is not None:
                self.clips.cells_clipped += int((np.abs(c) > clip).sum())
                c = np.clip(c, -clip, clip)
            h = sigmoid(o) * np.tanh(c)
            if projection is not None:
                h = h @ projection
                self.clips.projections += h.size
                if (clip := lstm.get("proj_clip")) is not None:
                    self.clips.projections_clipped += int((np.abs(h) > clip).sum())
                    h = np.clip(h, -clip, clip)
            outputs.append(h)
        return np.array(outputs), (h, c)

    def layers(self, tokens, state=None):
        """All layers (L + 1, T, D) of one sentence, and its final state."""
        lstm = self.options["lstm"]
        n_layers, p, cells = lstm.get("n_layers", 1), lstm["projection_dim"], lstm["dim"]
        marked = np.array([self.token(word) for word in ["<S>", *tokens, "</S>"]])
        layers, finals = [[marked, marked]] + [[None, None] for _ in range(n_layers)], {}
        for direction in (0, 1):
            x = marked if direction == 0 else marked[::-1]
            for layer in range(n_layers):
                start = (np.zeros(p), np.zeros(cells)) if state is None else state[direction, layer]
                out, finals[direction, layer] = self.lstm(x, direction, layer, start)
                if layer > 0 and lstm["use_skip_connections"]:
                    out = out + x
                x = out
                layers[layer + 1][direction] = out if direction == 0 else out[::-1]
        stacked = np.array([np.concatenate(halves, -1) for halves in layers])
        return stacked[:, 1:-1], finals
