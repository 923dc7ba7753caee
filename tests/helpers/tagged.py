"""Small tagged texts."""

import numpy as np

COLOURS = ("red", "green", "blue")


def write_tagged(path, n, seed=0, colours=COLOURS):
    """Write sentences of colours whose tag depends only on the word."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        for i, number in enumerate(rng.integers(0, 3, 4), 1):
            lines.append("\t".join([str(i), colours[number], "_", f"T{number}", *"______"]))
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
