"""A Hugging Face Hub on this machine, for the tests of everything that uses it."""

import pytest

from helpers.fake_hub import running_hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A running hub that huggingface_hub talks to, with an empty cache and no saved token."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with running_hub() as server:
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "tokens"))
        # hf_xet is a protocol of its own, in Rust; without it files are uploaded by LFS
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield server
