"""Verify, merge and count shards; the index of shards is that of the text."""

import h5py
import numpy as np
import pytest

from elmokit.analysis.index.build import IndexOptions, build_index
from elmokit.analysis.index.index_config import IndexConfig
from elmokit.cluster.shard_index import index_shards
from elmokit.cluster.shard_tools import merge_shards, shard_stats, verify_shards
from elmokit.embed.run import EmbedOptions, embed_file
from elmokit.errors import FormatError, InputError
from helpers.shards import write_corpus

CHECKSUM = " is damaged: its checksum differs from that in its record"


def test_verify_names_every_problem(embed, lines, tmp_path):
    embed("text.txt")
    out = tmp_path / "out"
    assert verify_shards(out) == []
    data = sorted((out / "data").iterdir())
    raw = bytearray(data[0].read_bytes())
    raw[100] ^= 1
    data[0].write_bytes(raw)
    data[1].unlink()
    (out / "data" / "part-000009-0.parquet").write_bytes(b"")
    damaged, missing, surplus = verify_shards(out)
    assert damaged == f"data/{data[0].name}{CHECKSUM}"
    assert missing == "shard 1 is missing, or its data has another size"
    assert surplus == "data/part-000009-0.parquet belongs to no finished shard"
    with pytest.raises(InputError, match="1 shards of .* are missing, the first is 1"):
        merge_shards(out, tmp_path / "all.hdf5")
    data[2].write_bytes(b"x" * data[2].stat().st_size)
    assert any("checksum" in problem for problem in verify_shards(out))


def test_merged_files_are_those_of_one_process(embed, lines, tiny, tmp_path):
    embed("text.txt", shard_rows=1000)  # one shard: the same batches
    for suffix in ("hdf5", "parquet"):
        embed_file(tiny, tmp_path / "text.txt", tmp_path / f"a.{suffix}",
                   EmbedOptions(dtype="float16"))  # fmt: skip
        merge_shards(tmp_path / "out", tmp_path / f"b.{suffix}")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    with h5py.File(tmp_path / "a.hdf5") as a, h5py.File(tmp_path / "b.hdf5") as b:
        assert set(a) == set(b)
        for key in a:
            np.testing.assert_array_equal(a[key][()], b[key][()])


def test_stats(embed, lines, tiny, tmp_path):
    done = embed("text.txt", layers=[0, 2])
    found = shard_stats(tmp_path / "out")
    assert found["sentences"] == len(lines)
    assert found["tokens"] == sum(len(tiny.tokenize(line)) for line in lines) == done.tokens
    assert (found["shards"], found["finished"], found["layers"]) == (done.shards,) * 2 + ([0, 2],)
    assert found["most rows of a shard"] < 60


def test_the_index_of_shards_is_that_of_the_text(embed, tiny, tmp_path):
    lines = [line for line in write_corpus(tmp_path / "text.txt", 100) if line]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    embed("text.txt", layers=[1, 2])
    build_index(tiny, [tmp_path / "text.txt"], tmp_path / "a", IndexOptions(tokenized=True))
    index_shards(tiny, tmp_path / "out", tmp_path / "b")
    a, b = IndexConfig.read(tmp_path / "a"), IndexConfig.read(tmp_path / "b")
    for name in ("tokens", "starts", "digests", "rows", "words.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    vectors = [np.fromfile(tmp_path / i / "vectors", "<f2").reshape(-1, tiny.dim) for i in "ab"]
    np.testing.assert_allclose(*vectors, atol=2e-3)
    assert a.layer == b.layer == 2
    index_shards(tiny, tmp_path / "out", tmp_path / "c", IndexOptions(layer=1))
    assert IndexConfig.read(tmp_path / "c").layer == 1
    with pytest.raises(InputError, match=r"one of those in the shards \(1, 2\), not 0"):
        index_shards(tiny, tmp_path / "out", tmp_path / "d", IndexOptions(layer=0))


def test_an_index_needs_one_layer_and_the_same_model(embed, lines, tiny, lm, tmp_path):
    embed("text.txt", layers="mix")
    with pytest.raises(InputError, match="contain 'mix', a combination of layers"):
        index_shards(tiny, tmp_path / "out", tmp_path / "index")
    with pytest.raises(InputError, match="were computed with another model"):
        index_shards(lm, tmp_path / "out", tmp_path / "index")


def test_other_folders(tmp_path):
    with pytest.raises(InputError, match="there are no shards in"):
        verify_shards(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(FormatError, match="plan.json is damaged"):
        verify_shards(tmp_path)
