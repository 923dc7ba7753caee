"""The queue: what is in the next batch, who passes whom, and what leaves without an answer."""

import asyncio
import threading

import pytest

from elmokit.serve.batching import Batcher, Kind
from elmokit.serve.refusals import RefusedError
from elmokit.serve.service_metrics import Metrics
from elmokit.serve.service_settings import Limits


class Model:
    """Remembers its batches; the first one waits for ``go``."""

    def __init__(self):
        self.batches, self.go, self.started = [], threading.Event(), threading.Event()
        self.kind = Kind("upper", self.run)

    def run(self, values):
        self.batches.append(values)
        self.started.set()
        assert self.go.wait(10)
        if "bad" in values:
            raise ValueError("bad")
        return [value.upper() for value in values]


def run(work, **limits):
    """Run a coroutine with a queue whose model is busy with a first text."""

    async def main():
        model = Model()
        batcher = Batcher("test", Limits(**limits), Metrics().of_queue("test", "short"))
        batcher.start()
        first = batcher.submit(model.kind, ["first"], [1])
        await asyncio.to_thread(model.started.wait)
        try:
            result = await work(batcher, model)
            model.go.set()
            assert await first == ["FIRST"]
            return result, model.batches[1:]
        finally:
            model.go.set()
            await batcher.close()

    return asyncio.run(main())


async def submit(batcher, kind, *texts):
    """Queue one request per text; the number of tokens is that of the letters."""
    return [batcher.submit(kind, [text], [len(text)]) for text in texts]


def test_what_waits_is_the_next_batch():
    async def work(batcher, model):
        waiting = await submit(batcher, model.kind, "a", "b", "c")
        assert batcher.waiting == 3
        model.go.set()
        return await asyncio.gather(*waiting)

    found, batches = run(work)
    assert found == [["A"], ["B"], ["C"]]
    assert batches == [["a", "b", "c"]]


def test_a_batch_has_a_budget_and_short_texts_pass_long_ones():
    async def work(batcher, model):
        waiting = await submit(batcher, model.kind, "x" * 9, "y" * 9, "a", "b")
        waiting.append(batcher.submit(model.kind, ["p" * 4, "q" * 4, "r"], [400, 400, 100]))
        model.go.set()
        return await asyncio.gather(*waiting)

    _, batches = run(work, batch_tokens=500, queue=256)
    assert batches[0] == ["a", "b", "x" * 9, "y" * 9, "pppp"]
    assert batches[1] == ["qqqq", "r"]


def test_a_long_text_does_not_wait_forever():
    """A text of 1,000 tokens stands behind those of the next second, and no later ones."""

    async def work(batcher, model):
        long = batcher.submit(model.kind, ["long"], [1000])
        early = batcher.submit(model.kind, ["early"], [1])
        await asyncio.sleep(1.1)
        late = batcher.submit(model.kind, ["late"], [1])
        model.go.set()
        return await asyncio.gather(long, early, late)

    _, batches = run(work, batch_tokens=1001)
    assert batches == [["early", "long"], ["late"]]


def test_a_text_beyond_the_budget_is_a_batch_of_its_own():
    async def work(batcher, model):
        waiting = [
            batcher.submit(model.kind, ["huge"], [99]),
            *await submit(batcher, model.kind, "a"),
        ]
        model.go.set()
        return await asyncio.gather(*waiting)

    assert run(work, batch_tokens=10)[1] == [["a"], ["huge"]]


def test_other_work_has_other_batches():
    async def work(batcher, model):
        other = Kind("other", lambda values: [value * 2 for value in values])
        one = await submit(batcher, model.kind, "a")
        two = await submit(batcher, other, "b")
        three = await submit(batcher, model.kind, "c")
        model.go.set()
        return await asyncio.gather(*one, *two, *three)

    found, batches = run(work)
    assert found == [["A"], ["bb"], ["C"]]
    assert batches == [["a", "c"]]


def test_a_text_that_fails_fails_alone():
    async def work(batcher, model):
        waiting = [batcher.submit(model.kind, ["a", "bad"], [1, 1])]
        waiting += await submit(batcher, model.kind, "b")
        model.go.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    (failed, fine), batches = run(work)
    assert isinstance(failed, ValueError)
    assert fine == ["B"]
    assert sorted(batches[1:]) == [["a"], ["b"], ["bad"]]


def test_what_nobody_waits_for_leaves_the_queue():
    async def work(batcher, model):
        one, two = await submit(batcher, model.kind, "a", "b")
        one.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        model.go.set()
        return await two

    assert run(work)[1] == [["b"]]


def test_a_full_queue_refuses_and_empties_again():
    async def work(batcher, model):
        waiting = [batcher.submit(model.kind, ["a"] * 4, [1] * 4)]
        with pytest.raises(RefusedError, match="4 texts are waiting") as refused:
            batcher.submit(model.kind, ["b"], [1])
        assert refused.value.status_code == 429
        assert 1 <= int(refused.value.headers["Retry-After"]) <= 60
        model.go.set()
        await asyncio.gather(*waiting)
        assert batcher.waiting == 0
        return await batcher.submit(model.kind, ["c"], [1])

    assert run(work, queue=4, texts=4)[0] == ["C"]


def test_work_that_is_done_one_by_one_lets_others_in_between():
    async def work(batcher, model):
        done = []
        slow = Kind("slow", lambda values: done.append(values) or values, most=1)
        waiting = [batcher.submit(slow, ["a", "b"], [1, 1]), batcher.submit(slow, ["c"], [1])]
        model.go.set()
        await asyncio.gather(*waiting)
        return done

    assert sorted(run(work)[0]) == [["a"], ["b"], ["c"]]


def test_a_wrong_number_of_results_is_an_error_and_not_the_end():
    async def work(batcher, model):
        broken = Kind("broken", lambda values: [])
        waiting = batcher.submit(broken, ["a"], [1])
        model.go.set()
        with pytest.raises(RuntimeError, match="0 results for 1 text"):
            await waiting
        return await batcher.submit(model.kind, ["b"], [1])

    assert run(work)[0] == ["B"]
