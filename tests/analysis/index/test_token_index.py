"""Reading an index: exact search, and damaged files."""

import json
import shutil

import numpy as np
import pytest

from elmokit.analysis.index.index_config import NAMES
from elmokit.analysis.index.token_index import Index, digest
from elmokit.errors import FormatError


def test_search_is_exact_on_a_small_text(made, tiny):
    index = Index.open(made / "idx")
    vectors = index.vectors.astype(np.float32)
    fresh, seen = [], set()
    for row in range(len(vectors)):
        number, position = index.place(row)
        key = (tuple(index.sentence(number)), position)
        fresh.append(key not in seen)
        seen.add(key)
    for row in range(0, len(vectors), 50):
        wanted = np.where(fresh, vectors @ vectors[row], -2)
        best = np.sort(wanted)[::-1][:10].clip(-1, 1)
        for brute in (False, True):
            found = index.search(vectors[row], 10, brute=brute)
            assert np.allclose([cosine for _, cosine in found], best, atol=1e-5)
            assert all(fresh[r] for r, _ in found)


def test_damage(made, tiny, tmp_path, cli):
    def ask():
        return cli("neighbours", tmp_path / "idx", "a cat", "--word", "cat")

    assert "there is no index" in ask().stderr
    for name in NAMES:
        shutil.rmtree(tmp_path / "idx", ignore_errors=True)
        shutil.copytree(made / "idx", tmp_path / "idx")
        assert ask().returncode == 0
        content = (tmp_path / "idx" / name).read_bytes()
        (tmp_path / "idx" / name).write_bytes(content[: len(content) // 2])
        done = ask()
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert name in done.stderr
        (tmp_path / "idx" / name).unlink()
        done = ask()
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    shutil.rmtree(tmp_path / "idx")
    shutil.copytree(made / "idx", tmp_path / "idx")
    size = (tmp_path / "idx/graph").stat().st_size
    (tmp_path / "idx/graph").write_bytes(b"\0" * size)
    with pytest.raises(FormatError, match="graph"):
        Index.open(tmp_path / "idx").search(np.zeros(16, np.float32), 1)
    values = json.loads((tmp_path / "idx/config.json").read_text())
    (tmp_path / "idx/config.json").write_text(json.dumps(values | {"version": 99}))
    with pytest.raises(FormatError, match="newer ElmoKit"):
        Index.open(tmp_path / "idx")


def test_digests_tell_sentences_apart():
    assert digest(["a b"]) != digest(["a", "b"])
    assert digest(["a", "b"]) == digest(("a", "b"))
    assert 0 <= digest(["\ud800"]) < 1 << 64
