"""A service with tiny models, shared by the tests of a module."""

import httpx
import pytest

from helpers.serving import service


@pytest.fixture(scope="module")
def served(tmp_path_factory, tiny_folder, lm_folder):
    """Two models: ``tiny``, the default, and ``lm`` with a softmax."""
    folder = tmp_path_factory.mktemp("served")
    with service(folder, "--model", f"tiny={tiny_folder}", "--model", f"lm={lm_folder}") as running:
        yield running


@pytest.fixture
def client(served):
    with httpx.Client(base_url=served.url, timeout=60) as client:
        yield client
