"""Comparing numbers that different kernels, batches and processors round differently."""

import numpy as np


def assert_close(found, expected, tolerance=1e-5):
    """Equal within a tolerance relative to the largest expected value (at least 1)."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, atol=tolerance * scale, rtol=0)
