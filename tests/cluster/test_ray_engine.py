"""The Ray engine on a real cluster of two nodes: what dies, what is full, and what is left.

Needs Ray, which is not in the development environment: ``make test-cluster``.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("ray", reason="Ray is not installed; make test-cluster runs these tests")

from elmokit.cluster.shard_records import read_records
from elmokit.cluster.shard_store import Store
from helpers.ray_nodes import RayCluster
from helpers.shards import check_vectors, finished, with_faults, write_corpus


@pytest.fixture
def faults(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture
def cluster(faults, request):
    nodes = RayCluster(with_faults(faults)).start(**getattr(request, "param", {}))
    yield nodes
    nodes.stop()


@pytest.fixture
def command(tmp_path, tiny_folder, cluster):
    return ["embed", tmp_path / "text.txt", tmp_path / "out", "--engine", "ray",
            "--address", cluster.address, "-m", tiny_folder, "--device", "cpu"]  # fmt: skip


def start(cluster, command):
    return subprocess.Popen(
        [sys.executable, "-m", "elmokit", *map(str, command)],
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(cluster, command, expect=0, seconds=240):
    process = start(cluster, command)
    try:
        printed, errors = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == expect, (printed, errors)
    return printed + errors


def wait_for(condition, seconds=90):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def hosts(out):
    return {record.worker for record in read_records(Store(out)).values()}


def test_vectors_are_those_of_one_process(cluster, command, tmp_path, tiny, one_thread, faults):
    lines = write_corpus(tmp_path / "text.txt", 400)
    (faults / "slow").write_text("1")  # leaves the second worker time to start
    printed = run(cluster, [*command, "--shard-rows", 20])
    assert "2 workers with" in printed
    assert len(hosts(tmp_path / "out")) == 2
    check_vectors(tmp_path / "out", tiny, lines)


def test_kills_of_workers_of_a_node_and_of_the_driver(
    cluster, command, tmp_path, tiny, one_thread, faults
):
    """One run: a worker dies, a node, then the driver; the rest is resumed on a new node."""
    lines = write_corpus(tmp_path / "text.txt", 600)
    out = tmp_path / "out"
    (faults / "slow").write_text("0.5")
    (faults / "orphan-0").touch()
    process = start(cluster, [*command, "--shard-rows", 20])
    try:
        wait_for(lambda: finished(out) >= 3)
        victim = wait_for(cluster.workers)[0]
        os.kill(victim, signal.SIGKILL)
        n = finished(out)
        wait_for(lambda: finished(out) >= n + 2)
        cluster.kill_node(1)
        n = finished(out)
        wait_for(lambda: finished(out) >= n + 2)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate(timeout=60)
    before = finished(out)
    assert 7 <= before < 30
    assert not (faults / "orphan-0").exists()
    assert not (out / "manifest.json").exists()
    (faults / "slow").unlink()
    cluster.start_second()
    printed = run(cluster, [*command, "--shard-rows", 20, "--resume"])
    resumed = int(printed.split(" of ")[0].split()[-1])
    assert before <= resumed <= before + 2  # a worker may have finished what it had begun
    check_vectors(out, tiny, lines)


def test_a_full_disk_on_one_node(cluster, command, tmp_path, tiny, one_thread, faults):
    lines = write_corpus(tmp_path / "text.txt", 400)
    cluster.kill_node(1)
    cluster.start_second(ELMOKIT_TEST_FULL="1")
    (faults / "full").touch()
    (faults / "slow").write_text("1")  # leaves the second worker time to start
    printed = run(cluster, [*command, "--shard-rows", 20, "--workers", 2])
    assert "1 attempts repeated, 0 shards set aside" in printed
    assert len(hosts(tmp_path / "out")) == 1
    check_vectors(tmp_path / "out", tiny, lines)


def test_a_thousand_shards_with_failures(cluster, command, tmp_path, tiny, one_thread, faults):
    """2% of the shards fail at first, in all ways there are, and one always."""
    lines = write_corpus(tmp_path / "text.txt", 5000)
    shards = random.Random(0).sample(range(900), 21)
    for number, shard in enumerate(shards[1:]):
        (faults / f"{('die', 'orphan', 'error', 'error')[number % 4]}-{shard}").touch()
    (faults / f"poison-{shards[0]}").touch()
    printed = run(cluster, [*command, "--shard-rows", 5], expect=2, seconds=500)
    out = tmp_path / "out"
    written = json.loads((out / "manifest.json").read_text())
    total = len(written["shards"]) + 1
    assert total >= 900
    assert [aside["shard"] for aside in written["set_aside"]] == [shards[0]]
    assert "it failed 3 times: its worker died" in printed
    assert f"1 of {total:,} shards were set aside" in printed
    assert "22 attempts repeated" in printed  # 20, and two of the poison
    (faults / f"poison-{shards[0]}").unlink()
    printed = run(cluster, [*command, "--shard-rows", 5, "--resume"])
    assert f"{total - 1:,} of {total:,} shards are done" in printed
    check_vectors(out, tiny, lines)


@pytest.mark.parametrize("cluster", [{"second": False}], indirect=True)
def test_a_machine_that_joins_later_computes_too(
    cluster, command, tmp_path, tiny, one_thread, faults
):
    lines = write_corpus(tmp_path / "text.txt", 400)
    out = tmp_path / "out"
    (faults / "slow").write_text("2")
    process = start(cluster, [*command, "--shard-rows", 20])
    try:
        wait_for(lambda: finished(out) >= 2)
        assert len(hosts(out)) == 1
        cluster.start_second()
        _, errors = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert len(hosts(out)) == 2
    check_vectors(out, tiny, lines)


@pytest.mark.parametrize("cluster", [{"second": False, "head_cpus": 0}], indirect=True)
def test_a_cluster_without_room_says_so_and_waits(cluster, command, tmp_path, tiny, one_thread):
    """As on Kubernetes, where the head computes nothing and the other machines start later."""
    lines = write_corpus(tmp_path / "text.txt", 100)
    log = tmp_path / "log.txt"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "elmokit", *map(str, command)],
            env={**cluster.environment, "PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=file,
        )
    try:
        wait_for(lambda: "no worker can start: each needs 1 CPU" in log.read_text())
        assert "of the cluster's 0 CPUs and 0 GPUs, 0 and 0 are free" in log.read_text()
        cluster.start_second()
        assert process.wait(240) == 0, log.read_text()
    finally:
        process.kill()
    check_vectors(tmp_path / "out", tiny, lines)


def test_gpus_that_a_cluster_does_not_have(cluster, command, tmp_path):
    write_corpus(tmp_path / "text.txt", 5)
    command[command.index("cpu")] = "cuda"
    assert "the Ray cluster has no GPUs" in run(cluster, command, expect=2)
    del command[command.index("--device") :]
    printed = run(cluster, [*command, "--gpus-per-worker", 1], expect=2)
    assert "--gpus-per-worker 1, but the Ray cluster has 0 GPUs" in printed


def test_no_cluster(tmp_path, cluster, command):
    write_corpus(tmp_path / "text.txt", 5)
    cluster.environment["RAY_AUTH_TOKEN_PATH"] += "-of-another"
    (cluster.folder / "token-of-another").write_text("0" * 64)
    printed = run(cluster, command, expect=2)
    assert f"there is no Ray cluster at --address {cluster.address}" in printed
    command[command.index("--address") + 1] = "127.0.0.2:9"
    printed = run(cluster, command, expect=2)
    assert "there is no Ray cluster at --address 127.0.0.2:9 ([Errno 111] Connection" in printed
