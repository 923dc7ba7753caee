"""Settings for tests of tasks."""

import pytest


@pytest.fixture
def quick():
    """Settings for a short training of a small network."""
    return {
        "model": {"hidden_dim": 12, "dropout": 0.0},
        "input": {"dropout": 0.1},
        "training": {"epochs": 8, "batch_size": 4, "learning_rate": 0.01, "patience": 8},
    }
