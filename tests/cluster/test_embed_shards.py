"""A corpus as shards: vectors, resuming, and what is refused."""

import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

from elmokit import Elmo
from elmokit.cluster import embed_shards as module
from elmokit.cluster import store_lock
from elmokit.cluster.manifest import Plan
from elmokit.cluster.shard_reader import ShardFolder
from elmokit.cluster.shard_store import Store
from elmokit.cluster.shard_writer import ModelSpec, ShardWriter
from elmokit.errors import InputError, MissingExtraError, OutputError
from helpers.models import TINY, write_published
from helpers.shards import InlinePool, check_vectors, finished, write_corpus


def test_vectors_are_those_of_one_process(embed, lines, tiny, tmp_path):
    done = embed("text.txt", sentence_vectors="mean")
    assert (done.rows, done.set_aside, done.resumed) == (len(lines), {}, 0)
    assert done.shards > 3
    check_vectors(tmp_path / "out", tiny, lines)
    whole = tiny.encode(lines, "all")  # in other batches: the same up to rounding to float16
    for (_, array), wanted in zip(ShardFolder(tmp_path / "out"), whole, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=2e-3, atol=1e-5)


def test_the_columns_are_what_the_readme_says(embed, lines, tiny, tmp_path):
    embed("text.txt", layers="top", sentence_vectors="first-last")
    table = pa.dataset.dataset(tmp_path / "out" / "data").to_table()
    half = pa.list_(pa.float16(), tiny.dim)
    types = {name: table.schema.field(name).type for name in table.schema.names}
    assert types == {
        "source": pa.string(),
        "position": pa.int64(),
        "sentence": pa.string(),
        "tokens": pa.list_(pa.string()),
        "vectors": pa.list_(half),
        "sentence_vectors": half,
    }
    readme = (tmp_path / "out" / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in types)
    raw = (tmp_path / "text.txt").read_bytes()
    for row in table.to_pylist()[:50]:
        line = raw[row["position"] :].split(b"\n")[0].decode()
        assert row["sentence"] == line.strip()
    wanted = tiny.encode_sentences(lines, "top", pooling="first-last", dtype=np.float16)
    found = np.array(table.column("sentence_vectors").to_pylist(), np.float16)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-5)


def test_object_stores(embed, lines, tiny, spec):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/in/a.jsonl", "".join(json.dumps({"text": x}) + "\n" for x in lines).encode())
    done = embed("memory://in", out="memory://vectors/run")
    assert done.rows == len(lines)
    found = list(ShardFolder("memory://vectors/run"))
    assert [sentence for sentence, _ in found] == lines
    assert embed("memory://in", out="memory://vectors/run", resume=True).resumed == done.shards


def test_missing_shards_are_computed_again(embed, lines, tiny, tmp_path):
    before = embed("text.txt")
    out = tmp_path / "out"
    records = sorted((out / "shards").iterdir())
    data = sorted((out / "data").iterdir())
    records[0].unlink()
    data[1].unlink()
    data[2].write_bytes(data[2].read_bytes()[:-8])
    records[3].write_text("{")
    (out / "data" / "part-000002-000000000000.parquet").write_bytes(b"PAR1")
    after = embed("text.txt", resume=True)
    assert after.resumed == before.shards - 4
    check_vectors(out, tiny, lines)


def test_changes_are_refused(embed, lines, tmp_path, tiny_folder, monkeypatch):
    embed("text.txt")
    out, text = tmp_path / "out", tmp_path / "text.txt"
    before = finished(out)

    def refused(message, *inputs, **options):
        with pytest.raises(InputError, match=message):
            embed(*(inputs or ["text.txt"]), resume=True, **options)
        assert finished(out) == before

    refused("had layers \\[0, 1, 2\\], this one has \\[2\\]", layers="top")
    refused("had dtype float16, this one has float32", dtype="float32")
    refused("had shard_rows 30, this one has 40", shard_rows=40)
    refused("had state zero, this one has warm", state="warm")
    refused("had batch_size None, this one has 4", batch_size=4)
    refused("had tokenizer", model=ModelSpec(str(tiny_folder), tokenizer="english", device="cpu"))
    other = write_published(tmp_path / "other", TINY, seed=5)
    refused("used another model", model=ModelSpec(str(other), device="cpu"))
    (tmp_path / "more.txt").write_text("more\n")
    refused("the inputs have 2 files, but those of the earlier run had 1", "text.txt", "more.txt")
    refused("the earlier run read .*text.txt, where this one reads .*more.txt", "more.txt")
    raw = text.read_bytes()
    text.write_bytes(raw + b"x\n")
    refused("text.txt has .* bytes, but had")
    text.write_bytes(raw.replace(b"\n", b" ", 40))  # as long, with fewer lines
    refused("text.txt has changed since the earlier run: it would be cut .* at other places")
    text.write_bytes(raw.replace(b"river", b"rivet"))
    os.utime(text, ns=(1, 1))
    refused("has changed since the earlier run, in the input of shard 0")
    text.write_bytes(raw)  # the same text, written again
    os.utime(text, ns=(2, 2))
    assert embed("text.txt", resume=True).resumed == before


def test_an_existing_folder_is_not_touched(embed, lines, tmp_path):
    embed("text.txt")
    with pytest.raises(OutputError, match="resume=True to continue it, or pass restart=True"):
        embed("text.txt")
    assert embed("text.txt", restart=True, layers="top").resumed == 0
    assert ShardFolder(tmp_path / "out").settings["layers"] == [2]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="contains other files: notes.txt"):
        embed("text.txt", out="mine", restart=True)
    with pytest.raises(OutputError, match="it is a file"):
        embed("text.txt", out="text.txt")
    with pytest.raises(OutputError, match="does not exist; create it first"):
        embed("text.txt", out="no/out")


def test_bad_input_is_set_aside_and_the_rest_is_done(embed, tmp_path):
    write_corpus(tmp_path / "text.txt", 100)
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
    done = embed("text.txt", "bad.txt")
    (reason,) = done.set_aside.values()
    assert "is not UTF-8" in reason
    written = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert not written["complete"]
    assert written["set_aside"] == [{"shard": done.shards, "reason": reason}]
    assert written["rows"] == 100
    (tmp_path / "bad.txt").write_bytes(b"good\n\n\n")
    (tmp_path / "bad.txt").write_bytes(b"good\nx\n")
    again = embed("text.txt", "bad.txt", resume=True)
    assert (again.set_aside, again.resumed, again.rows) == ({}, done.shards, 102)


def test_a_worker_with_another_model_computes_nothing(embed, lines, tmp_path, monkeypatch):
    other = write_published(tmp_path / "other", TINY, seed=5)
    load = Elmo.load

    def elsewhere(model=None, **given):  # workers choose a device, the driver takes none but cpu
        return load(other if "cache_mb" in given else model, **given)

    monkeypatch.setattr(
        "elmokit.cluster.shard_writer.ModelSpec.load",
        lambda self, **changed: elsewhere(
            self.model, device="cpu", **({} if "quantize" in changed else {"cache_mb": 1})
        ),
    )
    with pytest.raises(OutputError, match="the model of .* differs from that of this run"):
        embed("text.txt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": "carry"}, "shards are computed apart"),
        ({"dtype": "int8"}, "dtype must be"),
        ({"engine": "spark"}, "engine must be local or ray"),
        ({"shard_rows": 0}, "shard_rows must be"),
        ({"sentence_vectors": "sum"}, "sentence_vectors must be"),
        ({"resume": True, "restart": True}, "not both"),
        ({"address": "auto:1"}, 'goes with engine="ray"'),
        ({"gpus_per_worker": 1}, "needs GPUs; leave out device='cpu'"),
    ],
)
def test_wrong_options(embed, lines, options, message):
    with pytest.raises(InputError, match=message):
        embed("text.txt", **options)


def test_ray_is_an_extra(embed, lines, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match="needs the package ray.*elmokit\\[cluster\\]"):
        embed("text.txt", engine="ray")


@pytest.mark.parametrize("plan", [None, "{}"])
def test_a_folder_with_data_of_others_is_left_alone(tmp_path, plan):
    from elmokit.cluster.manifest import other_files, remove_surplus
    from elmokit.cluster.shard_store import Store

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.txt").write_text("mine\n")
    (tmp_path / "README.md").write_text("mine\n")
    if plan:
        (tmp_path / "plan.json").write_text(plan)
    store = Store(str(tmp_path))
    assert {"README.md", "data/corpus.txt"} <= set(other_files(store))
    remove_surplus(store, [])
    assert (tmp_path / "data" / "corpus.txt").read_text() == "mine\n"


def test_files_without_a_time_are_compared(embed, lines, tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.cluster.shard_inputs._stamp", lambda _: "")
    before = embed("text.txt")
    assert embed("text.txt", resume=True).resumed == before.shards
    text = tmp_path / "text.txt"
    text.write_bytes(text.read_bytes().replace(b"river", b"rivet"))
    with pytest.raises(InputError, match="has changed since the earlier run, in the input of"):
        embed("text.txt", resume=True)


def test_an_output_that_a_worker_does_not_see(embed, lines, tmp_path, monkeypatch):
    """As if OUT were a folder on the driver's own disk."""
    elsewhere = tmp_path / "elsewhere"

    def other_disk(spec, *given):
        return InlinePool(replace(spec, store=str(elsewhere)), *given)

    monkeypatch.setattr(module, "LocalPool", other_disk)
    with pytest.raises(OutputError, match=r"does not see this run in .*elsewhere; choose an out"):
        embed("text.txt")
    assert not elsewhere.exists()
    monkeypatch.setattr(module, "LocalPool", InlinePool)
    assert embed("text.txt").resumed == 0  # nothing was written, so nothing is in the way


def test_shards_that_disappear(embed, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LISTING_SECONDS", 0.0)
    run = module.Scheduler.run

    def then_delete(self):
        tally = run(self)
        (tmp_path / "out" / tally.records[1].file).unlink()
        return tally

    monkeypatch.setattr(module.Scheduler, "run", then_delete)
    with pytest.raises(OutputError, match="1 finished shards have disappeared .* first is 1"):
        embed("text.txt")
    monkeypatch.undo()


def test_two_runs_in_an_object_store(embed, lines, monkeypatch):
    monkeypatch.setattr(store_lock, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(store_lock, "DEAD_AFTER_SECONDS", 1.0)
    monkeypatch.setattr(store_lock, "SETTLE_SECONDS", 0.1)
    store = Store("memory://two/run")
    with (
        store_lock.lock_store(store, "other:1", print),
        pytest.raises(OutputError, match=r"another run \(other:1\) is writing"),
    ):
        embed("text.txt", out="memory://two/run")
    assert embed("text.txt", out="memory://two/run").rows == len(lines)
    assert store.read("lock") is None


def test_a_worker_of_a_discarded_run_changes_nothing(embed, lines, tmp_path, tiny, monkeypatch):
    """The driver was killed, and the run started again with other options."""
    pools = []

    class Kept(InlinePool):
        def __init__(self, spec, *given):
            super().__init__(spec, *given)
            pools.append(self)

    monkeypatch.setattr(module, "LocalPool", Kept)
    embed("text.txt")
    old, parts = pools[0]._writer, Plan.read(Store(tmp_path / "out")).ranges()
    stale = (tmp_path / "out" / "shards" / "000001.json").read_bytes()
    write = ShardWriter.write

    def late(self, part, attempt=1):
        if part.number == 1 and self is not old:
            with pytest.raises(OutputError, match="another run writes to"):
                write(old, part)  # it notices that its plan is gone
            (tmp_path / "out" / "shards").mkdir(exist_ok=True)
            (tmp_path / "out" / "shards" / "000001.json").write_bytes(stale)  # or not yet
        return write(self, part, attempt)

    monkeypatch.setattr(ShardWriter, "write", late)
    embed("text.txt", layers="top", restart=True)
    assert len(parts) == len(ShardFolder(tmp_path / "out").records)
    check_vectors(tmp_path / "out", tiny, lines, layers="top")


def test_the_output_is_not_read_as_input(embed, lines, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "text.txt").rename(tmp_path / "texts" / "text.txt")
    with pytest.raises(InputError, match="is inside the input .*texts; choose another folder"):
        embed("texts", out="texts/vectors")
    with pytest.raises(InputError, match="is inside the input memory://in; choose another folder"):
        embed("memory://in", out="memory://in/vectors")
    assert embed("texts", out="texts-vectors").rows == len(lines)


def test_a_file_that_becomes_shorter(embed, lines, tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    run = module.Scheduler.run

    def then_cut(self):
        text.write_bytes(text.read_bytes()[:2000])
        return run(self)

    monkeypatch.setattr(module.Scheduler, "run", then_cut)
    done = embed("text.txt")
    assert done.set_aside
    assert all("is shorter than when the run was planned" in r for r in done.set_aside.values())
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]


@pytest.mark.parametrize("name", ["data/mine/x", "shards/notes.json", "mine/x"])
def test_files_of_others_between_ours(embed, lines, tmp_path, name):
    embed("text.txt")
    file = tmp_path / "out" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    for option in ("resume", "restart"):
        with pytest.raises(OutputError, match="contains other files: "):
            embed("text.txt", **{option: True})
        assert file.read_text() == "mine"


def test_restarting_leaves_nothing_of_the_run_before(embed, lines, tmp_path):
    embed("text.txt")
    before = {path.name for path in (tmp_path / "out" / "data").iterdir()}
    embed("text.txt", layers="top", restart=True)
    assert before.isdisjoint(path.name for path in (tmp_path / "out" / "data").iterdir())


def test_a_store_that_cannot_be_used(embed, lines, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("Unable to locate credentials")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.cat_file", refuse)
    with pytest.raises(OutputError, match="cannot use memory://x .*Unable to locate cred.*check"):
        embed("text.txt", out="memory://x")
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.info", refuse)
    with pytest.raises(InputError, match="cannot read memory://in: Unable to locate credentials"):
        embed("memory://in")
