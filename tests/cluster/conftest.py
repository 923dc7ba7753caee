"""A corpus and runs of it for tests of shards."""

import pytest

from elmokit.cluster import embed_shards as module
from elmokit.cluster.embed_shards import embed_shards
from elmokit.cluster.shard_options import ShardOptions
from elmokit.cluster.shard_writer import ModelSpec
from helpers.shards import InlinePool, write_corpus


@pytest.fixture
def lines(tmp_path):
    return write_corpus(tmp_path / "text.txt", 200)


@pytest.fixture
def spec(tiny_folder):
    return ModelSpec(str(tiny_folder), device="cpu")


@pytest.fixture
def embed(tmp_path, spec, monkeypatch, one_thread):
    """Embed texts with a worker in this process."""
    monkeypatch.setattr(module, "LocalPool", InlinePool)

    def run(*inputs, out="out", model=spec, **options):
        given = [str(tmp_path / name) if "://" not in str(name) else name for name in inputs]
        place = out if "://" in str(out) else tmp_path / out
        return embed_shards(model, given, place, ShardOptions(**({"shard_rows": 30} | options)))

    return run
