"""Settings and files for tests of tasks."""

import numpy as np
import pytest


@pytest.fixture
def quick():
    """Settings for a short training of a small network."""
    return {
        "model": {"hidden_dim": 12, "dropout": 0.0},
        "input": {"dropout": 0.1},
        "training": {"epochs": 8, "batch_size": 4, "learning_rate": 0.01, "patience": 8},
    }


@pytest.fixture
def file(tmp_path):
    """Write a file of text, bytes or an array, and return its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
