"""How the Ray engine decides, on a cluster that is only pretended; Ray need not be installed."""

import sys
import time
from types import SimpleNamespace

import pytest

from elmokit.cluster import ray_engine
from elmokit.cluster.ray_engine import RayPool
from elmokit.errors import InputError, OutputError


class PretendedRay:
    """A cluster with resources, whose actors start when a test says so."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, **resources):
        self.resources, self.started, self.answers = resources, 0, {}

    def init(self, **_):
        pass

    def shutdown(self):
        pass

    def kill(self, _):
        pass

    def cluster_resources(self):
        return self.resources

    def available_resources(self):
        return {}

    def remote(self, _):
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._actor))

    def _actor(self, *_):
        self.started += 1
        calls = {
            call: SimpleNamespace(remote=lambda name=f"{call} {self.started}": name)
            for call in ("alive", "load")
        }
        return SimpleNamespace(**calls)

    def wait(self, refs, num_returns=1, **_):
        return [ref for ref in refs if ref in self.answers][:num_returns], []

    def get(self, ref):
        if isinstance(self.answers[ref], Exception):
            raise self.answers[ref]
        return self.answers[ref]


@pytest.fixture
def pool(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)

    def make(device="cpu", workers=None, gpus=None, **resources):
        ray = PretendedRay(**resources)
        monkeypatch.setitem(sys.modules, "ray", ray)
        said = []
        spec = SimpleNamespace(model=SimpleNamespace(device=device))
        made = RayPool(spec, "auto", workers, gpus, said.append)
        return made, ray, said, clock

    return make


def after(clock, seconds, made):
    clock.now += seconds
    return made.wait(0)


def test_actors_start_on_machines_that_join(pool):
    made, ray, _, clock = pool(CPU=2.0)
    assert (made.workers, ray.started) == (range(2), 2)
    ray.resources["CPU"] = 4.0
    assert after(clock, 1, made) == []
    assert ray.started == 2
    after(clock, 5, made)
    assert (made.workers, ray.started) == (range(4), 4)
    ray.resources["CPU"] = 3.0  # a machine is lost: its actors are replaced when they die
    after(clock, 6, made)
    assert ray.started == 4


def test_a_given_number_of_actors_stays(pool):
    made, ray, _, clock = pool(workers=3, CPU=1.0)
    ray.resources["CPU"] = 9.0
    after(clock, 6, made)
    assert ray.started == 3


def test_actors_need_gpus_and_cpus(pool):
    made, *_ = pool(device=None, gpus=0.5, CPU=7.0, GPU=2.0)
    assert made.workers == range(4)
    made, *_ = pool(device=None, CPU=1.0, GPU=2.0)
    assert made.workers == range(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "cuda", "CPU": 4.0}, 'device="cuda", but the Ray cluster has no GPUs'),
        ({"device": None, "gpus": 1, "CPU": 4.0}, "the Ray cluster has 0 GPUs"),
        ({"workers": 0, "CPU": 4.0}, "workers must be"),
    ],
)
def test_what_a_cluster_cannot_give(pool, given, message):
    with pytest.raises(InputError, match=message):
        pool(**given)


def start(ray, made, clock, number):
    ray.answers[f"alive {number}"] = {"kind": "alive"}
    assert after(clock, 1, made) == []
    ray.answers[f"load {number}"] = {"kind": "ready", "name": "m:1"}
    assert [outcome.kind for outcome in after(clock, 1, made)] == ["ready"]


def test_a_model_that_loads_slowly(pool):
    made, ray, said, clock = pool(CPU=1.0)
    ray.answers["alive 1"] = {"kind": "alive"}
    for _ in range(50):
        assert after(clock, 60, made) == []
    assert said == []


def test_idle_workers_of_a_lost_machine_are_replaced(pool):
    """They have nothing to answer, so nobody would notice before they get a shard."""
    made, ray, _, clock = pool(CPU=3.0)
    for number in (1, 2, 3):
        start(ray, made, clock, number)
    made._waiting["shard"] = 0
    ray.answers |= {"shard": RuntimeError("gone"), "alive 2": RuntimeError("gone too")}
    outcomes = after(clock, 1, made)
    assert [(outcome.worker, outcome.kind) for outcome in outcomes] == [(0, "died"), (1, "died")]
    assert ray.started == 5
    assert 2 in made._up


def test_waiting_is_said_and_ends(pool):
    made, ray, said, clock = pool()
    assert ray.started == 1  # it waits for a machine
    after(clock, 10, made)
    assert said == []
    after(clock, 6, made)
    assert said == [
        "no worker can start: each needs 1 CPU, and of the cluster's 0 CPUs and 0 GPUs, 0 and 0 "
        "are free; waiting for 16 s so far"
    ]
    after(clock, 30, made)
    assert len(said) == 1
    after(clock, 60, made)
    assert len(said) == 2
    with pytest.raises(OutputError, match="add machines or free these, and continue with resume"):
        after(clock, ray_engine.GIVE_UP_SECONDS, made)


def test_waiting_begins_again_when_the_last_worker_dies(pool):
    made, ray, said, clock = pool(CPU=1.0)
    start(ray, made, clock, 1)
    after(clock, 5000, made)
    assert said == []
    made._waiting["lost"] = 0
    ray.answers["lost"] = RuntimeError("its machine\nis gone")
    (outcome,) = after(clock, 1, made)
    assert (outcome.kind, outcome.reason) == ("died", "its machine is gone")
    after(clock, 20, made)
    assert len(said) == 1
