"""Limits, keys, hang-ups, crashes and the end: each with a clear answer, and none hurts others."""

import asyncio
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from helpers.serving import metric, service, slow


def refused(answer, status, kind, words):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"error", "error_type"}
    assert body["error_type"] == kind
    assert words in body["error"]


@pytest.fixture(scope="module")
def small(tmp_path_factory, tiny_folder):
    """A service with narrow limits, slow for texts with the word slow."""
    folder = tmp_path_factory.mktemp("small")
    given = ("--max-payload", 5000, "--max-texts", 4, "--max-text-tokens", 20, "--max-queue", 8)
    with service(folder, "--model", tiny_folder, *given, code=slow(0.7)) as running:
        yield running


def post(service, path="/embed", **body):
    return httpx.post(service.url + path, json=body, timeout=30)


def logged(service, status, **facts):
    """Wait for the line of a request, which is written after its answer."""
    wanted, until = {"status": status, **facts}, time.monotonic() + 10
    while time.monotonic() < until:
        lines = [line for line in service.log.read_text().splitlines() if line.startswith("{")]
        for line in map(json.loads, lines):
            if wanted.items() <= line.items():
                return line
        time.sleep(0.05)
    pytest.fail(f"no line with {wanted}")


def test_sizes(small):
    refused(post(small, inputs="x" * 6000), 413, "payload", "more than 5,000 bytes")
    refused(post(small, inputs=["a"] * 5), 413, "payload", "4 texts, not 5")
    refused(post(small, inputs="a " * 21), 413, "payload", "21 tokens")
    assert post(small, inputs="a " * 21, truncate=True).status_code == 200

    def chunks():
        for _ in range(100):
            yield b"x" * 100

    refused(httpx.post(f"{small.url}/embed", content=chunks()), 413, "payload", "5,000 bytes")


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/embed", {"inputs": 3}, "inputs must be a text, a list of texts, or a list of lists of"),
        ("/embed", {"inputs": ["a", 3]}, "inputs must be a text, a list of texts, or a list of"),
        ("/embed", {"inputs": []}, "inputs"),
        ("/embed", {}, "inputs"),
        ("/embed", {"inputs": "a", "colour": 1}, "colour"),
        ("/embed", {"inputs": "a", "layers": "best"}, "layers"),
        ("/embed", {"inputs": "a", "layers": 9}, "layers"),
        ("/embed", {"inputs": "a", "pooling": "min"}, "pooling"),
        ("/embed", {"inputs": "\ud800"}, "half of a surrogate pair"),
        ("/surprisal", {"inputs": "a"}, "no softmax"),
        ("/similarity/tokens", {"first": "a", "second": " "}, "no tokens"),
        ("/scatter", {"sentences": [{"text": "a"}], "word": " "}, "no tokens"),
    ],
)
def test_mistakes(small, path, body, words):
    content = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    refused(
        httpx.post(small.url + path, content=content, headers=headers), 422, "validation", words
    )


def test_what_does_not_exist(small):
    refused(post(small, inputs="a", model="other"), 404, "not_found", "there is no model 'other'")
    refused(post(small, "/predict/ner", inputs="a"), 404, "not_found", "task")
    refused(post(small, "/neighbours", text="a", position=0), 404, "not_found", "elmokit index")
    refused(post(small, "/senses", text="a", position=0), 404, "not_found", "elmokit wsd train")
    refused(httpx.get(f"{small.url}/nothing"), 404, "not_found", "Not Found")
    refused(httpx.get(f"{small.url}/../../etc/passwd"), 404, "not_found", "Not Found")
    assert httpx.get(f"{small.url}/embed").status_code == 405
    broken = httpx.post(
        f"{small.url}/embed", content=b"{", headers={"Content-Type": "application/json"}
    )
    refused(broken, 422, "validation", "not valid JSON")


def test_a_full_queue_refuses(small):
    async def burst():
        async with httpx.AsyncClient(base_url=small.url, timeout=30) as client:
            first = asyncio.create_task(client.post("/embed", json={"inputs": "slow"}))
            await asyncio.sleep(0.3)
            others = (client.post("/embed", json={"inputs": ["a"] * 2}) for _ in range(8))
            return [*await asyncio.gather(*others), await first]

    answers = asyncio.run(burst())
    statuses = [answer.status_code for answer in answers]
    assert sorted(set(statuses)) == [200, 429]
    assert statuses.count(200) == 5  # the slow one, and 8 texts
    for answer in answers:
        if answer.status_code == 429:
            refused(answer, 429, "overloaded", "8 texts are waiting")
            assert 1 <= int(answer.headers["retry-after"]) <= 60


def test_a_client_that_hangs_up_leaves_the_queue(small):
    done = metric(small.url, "elmokit_tokens_total")
    before = metric(small.url, "elmokit_abandoned_total")
    with pytest.raises(httpx.ReadTimeout):
        threading.Thread(target=post, args=(small,), kwargs={"inputs": "slow"}).start()
        time.sleep(0.2)
        httpx.post(f"{small.url}/embed", json={"inputs": "gone away"}, timeout=0.1)
    time.sleep(1)
    assert metric(small.url, "elmokit_abandoned_total") == before + 1
    assert metric(small.url, "elmokit_queue_texts") == 0
    assert metric(small.url, "elmokit_tokens_total") == done + 1  # "slow", and not "gone away"


def test_a_crash_concerns_one_request_only(small):
    async def run():
        async with httpx.AsyncClient(base_url=small.url, timeout=30) as client:
            first = asyncio.create_task(client.post("/embed", json={"inputs": "slow"}))
            await asyncio.sleep(0.3)  # the others share a batch
            given = ("fine", "crash", "good")
            others = [client.post("/embed", json={"inputs": text}) for text in given]
            return [*await asyncio.gather(*others), await first]

    fine, crashed, good, first = asyncio.run(run())
    assert [fine.status_code, good.status_code, first.status_code] == [200, 200, 200]
    refused(crashed, 500, "backend", "ValueError")
    assert "secret" not in crashed.text
    assert logged(small, 500)["error"] == "ValueError"


def test_nothing_of_a_text_is_in_the_log(small):
    for body in ({"inputs": "xylophone"}, {"inputs": "xylophone", "model": "xylophone"}):
        post(small, **body)
    httpx.get(f"{small.url}/xylophone?text=xylophone")
    post(small, inputs="crash xylophone")
    post(small, inputs=["xylophone"] * 3)
    last = logged(small, 200, texts=3)
    assert (last["route"], last["tokens"]) == ("/embed", 3)
    lines = small.log.read_text().splitlines()
    assert len(lines) > 3
    assert not [line for line in lines if "xylophone" in line or "secret" in line]


def test_sigterm_finishes_what_is_queued(tmp_path, tiny_folder):
    with (
        service(tmp_path, "--model", tiny_folder, code=slow(3)) as running,
        httpx.Client(base_url=running.url, timeout=30) as client,
        ThreadPoolExecutor(21) as pool,
    ):
        first = pool.submit(client.post, "/embed", json={"inputs": "slow"})
        time.sleep(0.3)
        others = [pool.submit(client.post, "/embed", json={"inputs": "a b c"}) for _ in range(20)]
        until = time.monotonic() + 10
        while metric(running.url, "elmokit_queue_texts") < 20:
            assert not first.done(), "the machine is too slow for this test"
            assert time.monotonic() < until
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{running.url}/health")  # no longer accepted
        answers = [one.result() for one in (first, *others)]
        assert [answer.status_code for answer in answers] == [200] * 21
        assert running.process.wait(30) == 0


def test_time_limits(tmp_path, tiny_folder):
    with service(tmp_path, "--model", tiny_folder, "--timeout", 0.5, code=slow(2)) as running:
        answer = post(running, inputs="slow")
        refused(answer, 503, "overloaded", "no result within 0.5 seconds")
        assert "retry-after" in answer.headers

        def late():
            yield b'{"inputs": '
            time.sleep(1)
            yield b'"a"}'

        refused(httpx.post(f"{running.url}/embed", content=late()), 408, "payload", "in time")
        time.sleep(1.5)
        assert post(running, inputs="fast").status_code == 200


def test_long_texts_do_not_hold_up_short_ones(tmp_path, tiny_folder):
    """A long text keeps its own thread busy; short ones are answered meanwhile."""
    with (
        service(tmp_path, "--model", tiny_folder, code=slow(3)) as running,
        ThreadPoolExecutor(1) as pool,
        httpx.Client(base_url=running.url, timeout=30) as client,
    ):
        long = pool.submit(client.post, "/embed", json={"inputs": "slow " * 300})
        time.sleep(0.3)
        for _ in range(5):
            assert client.post("/embed", json={"inputs": "short"}).status_code == 200
        assert not long.done()
        assert long.result().status_code == 200
