"""Shards in an object store that speaks S3, served by moto on this machine.

Needs s3fs and moto, which want other versions of some packages: ``make test-cluster``.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("s3fs", reason="s3fs is not installed; make test-cluster runs these tests")
pytest.importorskip("moto", reason="moto is not installed; make test-cluster runs these tests")

import fsspec
from moto.server import ThreadedMotoServer

from elmokit.cluster import store_lock
from elmokit.cluster.shard_records import read_records
from elmokit.cluster.shard_store import Store
from helpers.shards import check_vectors, corpus, with_faults


@pytest.fixture
def bucket(monkeypatch):
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "FSSPEC_S3_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    fsspec.config.set_conf_env(fsspec.config.conf)
    s3 = fsspec.filesystem("s3", skip_instance_cache=True)
    s3.mkdir("texts")
    yield s3
    fsspec.config.conf.pop("s3", None)
    s3.clear_instance_cache()
    reset = f"http://{host}:{port}/moto-api/reset"  # its objects are those of the process
    urllib.request.urlopen(urllib.request.Request(reset, method="POST")).close()
    server.stop()


@pytest.fixture
def lines(bucket):
    lines = corpus(300)
    rows = [json.dumps({"text": line}) for line in lines]
    bucket.pipe("texts/in/a.jsonl", "\n".join(rows[:100]).encode())
    bucket.pipe("texts/in/b.jsonl", "\n".join(rows[100:]).encode())
    return [line.strip() for line in lines]


def start(tiny_folder, faults, *more):
    command = ["embed", "s3://texts/in", "s3://texts/out", "--engine", "local", "--workers", 2,
               "--shard-rows", 20, "-m", tiny_folder, "--device", "cpu", *more]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "elmokit", *map(str, command)],
        env={**os.environ, **with_faults(faults)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, expect=0):
    try:
        printed, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == expect, printed
    return printed


def test_only_one_of_many_creates_an_object(bucket):
    store = Store("s3://texts/store")
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda i: store.create("a/one", b"%d" % i), range(8)))
    assert sum(made) == 1
    assert store.read("a/one") == b"%d" % made.index(True)
    assert store.sizes("a") == {"a/one": 1}


def test_a_killed_run_is_resumed(bucket, lines, tiny, tiny_folder, one_thread, tmp_path):
    """The driver is killed; another one waits for its lock, continues, and every line is once."""
    faults = tmp_path / "faults"
    with_faults(faults, slow="6")  # it lives longer than the second one watches it
    process = start(tiny_folder, faults)
    out = Store("s3://texts/out")
    until = time.monotonic() + 120
    while len(read_records(out)) < 3:
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < until
        time.sleep(0.2)
    second = finish(start(tiny_folder, faults, "--resume"), expect=2)
    assert "another run (" in second
    assert "is writing to s3://texts/out" in second
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert out.read("lock") is not None
    (faults / "slow").unlink()
    printed = finish(start(tiny_folder, faults, "--resume"))
    assert f"watching for {store_lock.DEAD_AFTER_SECONDS:.0f} s" in printed
    assert "shards are done" in printed
    check_vectors("s3://texts/out", tiny, lines)
    assert out.read("lock") is None


def test_a_changed_object_is_noticed(bucket, lines, tiny_folder, tmp_path):
    faults = tmp_path / "faults"
    finish(start(tiny_folder, faults))
    raw = bucket.cat_file("texts/in/b.jsonl")
    bucket.pipe("texts/in/b.jsonl", raw.replace(b"river", b"rivet"))
    assert "b.jsonl has changed since the earlier run" in finish(
        start(tiny_folder, faults, "--resume"), expect=2
    )
