"""What happens to shards whose workers fail."""

from collections import deque

import pytest

from elmokit.cluster.scheduler import Outcome, Scheduler
from elmokit.cluster.shard_inputs import Range
from elmokit.cluster.shard_records import Record
from elmokit.errors import OutputError


def parts(n):
    return [Range(i, "text", "text", i, i + 1, 1) for i in range(n)]


def record(shard):
    return Record(shard, f"{shard}", "", 0, 1, "", "", "", 1, 5, 1, "", 0.5, "w", 1)


class FakePool:
    """Workers that do what ``answer(worker, shard, attempt)`` says."""

    def __init__(self, n, answer, machine=lambda worker: ""):
        self.workers = range(n)
        self._answer = answer
        self._outcomes = deque(
            Outcome(worker, "ready", name=f"{machine(worker)}:{worker}") for worker in self.workers
        )
        self.retired, self.assigned = [], []

    def assign(self, worker, part, attempt):
        self.assigned.append((worker, part.number, attempt))
        kind = self._answer(worker, part.number, attempt)
        found = record(part.number) if kind == "done" else None
        self._outcomes.append(Outcome(worker, kind, found, f"{kind}!", name=f"w{worker}"))
        if kind == "died":
            self._outcomes.append(Outcome(worker, "ready"))

    def wait(self, seconds):
        return [self._outcomes.popleft()] if self._outcomes else []

    def retire(self, worker):
        self.retired.append(worker)


def run(pool, n):
    aside, seen = [], []
    scheduler = Scheduler(
        pool, parts(n), lambda *given: aside.append(given), lambda *given: seen.append(given)
    )
    tally = scheduler.run()
    assert len(seen) == n == len(tally.records) + len(aside)
    return tally, aside, seen


def test_every_shard_is_done_once():
    pool = FakePool(3, lambda *_: "done")
    tally, aside, seen = run(pool, 20)
    assert sorted(tally.records) == list(range(20))
    assert sorted(shard for _, shard, _ in pool.assigned) == list(range(20))
    assert (aside, tally.retried) == ([], 0)
    assert seen[-1][1] == "embedding (3 workers, 10 tokens/s each)"


@pytest.mark.parametrize("kind", ["died", "error"])
def test_the_third_failure_sets_a_shard_aside(kind):
    def answer(worker, shard, attempt):
        return kind if shard == 4 or (shard == 2 and attempt < 3) else "done"

    tally, aside, seen = run(FakePool(2, answer), 8)
    assert sorted(tally.records) == [0, 1, 2, 3, 5, 6, 7]
    ((shard, reason, attempts),) = aside
    assert (shard, attempts) == (4, 3)
    assert "it failed 3 times" in reason
    assert f"{kind}!" in reason
    assert tally.retried == 4
    assert "4 retried" in seen[-1][1] or "3 retried" in seen[-1][1]


def test_a_mistake_in_the_input_is_not_repeated():
    pool = FakePool(2, lambda w, shard, a: "input" if shard == 1 else "done")
    tally, aside, _ = run(pool, 4)
    assert aside == [(1, "input!", 1)]
    assert tally.retried == 0


def test_a_worker_with_a_full_disk_gets_no_more_shards():
    pool = FakePool(2, lambda worker, *_: "space" if worker == 1 else "done")
    tally, aside, _ = run(pool, 10)
    assert (aside, pool.retired) == ([], [1])
    assert len([worker for worker, *_ in pool.assigned if worker == 1]) == 1
    assert len(tally.records) == 10


def test_without_workers_the_run_ends():
    with pytest.raises(OutputError, match="is left for 10 shards: space!; .* resume=True"):
        run(FakePool(2, lambda *_: "space"), 10)


def test_a_worker_that_cannot_start_is_left_out():
    pool = FakePool(2, lambda *_: "done")
    pool._outcomes = deque([Outcome(1, "unfit", reason="no model"), Outcome(0, "ready")])
    assert len(run(pool, 4)[0].records) == 4
    pool = FakePool(1, lambda *_: "done")
    pool._outcomes = deque([Outcome(0, "died", reason="killed")] * 3)
    with pytest.raises(OutputError, match="it died while it started \\(killed\\)"):
        run(pool, 4)


def test_a_worker_that_joins_later_gets_shards():
    pool = FakePool(1, lambda *_: "done")
    pool.workers = [0, 7]
    pool._outcomes.append(Outcome(7, "ready"))
    _, _, seen = run(pool, 10)
    assert {worker for worker, *_ in pool.assigned} == {0, 7}
    assert seen[-1][1].startswith("embedding (2 workers")


def test_workers_that_gave_up_are_counted():
    pool = FakePool(2, lambda *_: "done")
    pool._outcomes = deque([Outcome(1, "unfit", reason="no model"), Outcome(0, "ready")])
    tally, _, seen = run(pool, 3)
    assert tally.retired == ["no model"]
    assert seen[-1][1].endswith("1 gave up)")


def test_the_check_ends_a_run():
    def check():
        raise OutputError("lost")

    pool = FakePool(1, lambda *_: "done")
    with pytest.raises(OutputError, match="lost"):
        Scheduler(pool, parts(3), print, print, check).run()


@pytest.mark.parametrize("kind", ["error", "died"])
def test_a_bad_machine_does_not_empty_the_queue(kind):
    """Three of nine workers are on a machine where everything fails at once."""
    pool = FakePool(
        9, lambda worker, *_: kind if worker < 3 else "done", lambda worker: f"m{worker // 3}"
    )
    tally, aside, _ = run(pool, 300)
    assert (len(tally.records), aside) == (300, [])
    if kind == "error":  # what dies is replaced, maybe elsewhere
        assert set(pool.retired) <= {0, 1, 2}
        assert len([worker for worker, *_ in pool.assigned if worker < 3]) <= 9


def test_a_shard_is_tried_on_another_machine_first():
    pool = FakePool(
        4,
        lambda worker, shard, _: "error" if shard == 0 and worker < 2 else "done",
        lambda worker: f"m{worker // 2}",
    )
    run(pool, 12)
    tried = [worker // 2 for worker, shard, _ in pool.assigned if shard == 0]
    assert tried in ([0, 1], [1])


def test_one_worker_alone_tries_everything_three_times():
    pool = FakePool(1, lambda worker, shard, _: "error" if shard < 5 else "done")
    _, aside, _ = run(pool, 8)
    assert sorted(shard for shard, *_ in aside) == [0, 1, 2, 3, 4]
    assert pool.retired == []


def test_workers_that_have_not_started_yet_are_waited_for():
    pool = FakePool(2, lambda *_: "done")
    pool._outcomes = deque([Outcome(0, "unfit", reason="no GPU")])
    waited = []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 5:
            return [Outcome(1, "ready", name="m:1")]
        return FakePool.wait(pool, seconds)

    pool.wait = wait
    assert len(run(pool, 3)[0].records) == 3
