"""The service against its own OpenAPI schema: thousands of requests, and no answer of 500 or above.

    make test-serve                               5,000 cases
    python fuzz/service.py [--cases 5000] [--model PATH]

Needs schemathesis, which is in no extra: it brings many packages. ``make test-serve`` installs it
in an environment of its own. The service runs in a process of its own, on a free port, with the
bundled model unless another is given. After the cases it must still answer, with an empty queue.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def main() -> int:
    """Run the cases; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=5000, help="about so many requests")
    parser.add_argument("--model", default="en")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    command = [sys.executable, "-m", "elmokit", "serve", "--port", "0", "--no-access-log"]
    service = subprocess.Popen(
        [*command, "--model", given.model],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert service.stdout is not None
        url = re.search(r"http://\S+", service.stdout.readline())
        if url is None:
            print("the service did not start", file=sys.stderr)
            return 1
        return _fuzz(url[0], given.cases, given.seed)
    finally:
        service.terminate()
        code = service.wait(60)
        print(f"the service exited with {code}")


def _fuzz(url: str, cases: int, seed: int) -> int:
    # routes without a body have few different requests
    n_routes = len(re.findall(r'"requestBody"', _get(f"{url}/openapi.json")))
    each = -(-cases // n_routes)
    before = time.monotonic()
    done = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            *f"run {url}/openapi.json --checks not_a_server_error --phases fuzzing".split(),
            *f"--mode all --max-examples {each} --seed {seed} --continue-on-failure".split(),
            *"--suppress-health-check all --generation-database none --no-color".split(),
        ],
        check=False,
    )
    counts: dict[str, int] = {}
    waiting = 0.0
    for line in _get(f"{url}/metrics").splitlines():
        if match := re.match(r'elmokit_requests_total\{.*status="(\d+)"\} (\S+)', line):
            counts[match[1]] = counts.get(match[1], 0) + int(float(match[2]))
        if line.startswith("elmokit_queue_texts{"):
            waiting += float(line.split()[-1])
    total, minutes = sum(counts.values()), (time.monotonic() - before) / 60
    shown = ", ".join(f"{status}: {n:,}" for status, n in sorted(counts.items()))
    print(f"{total:,} requests in {minutes:.1f} minutes; answers {shown}; waiting: {waiting:.0f}")
    failed = sum(n for status, n in counts.items() if status >= "500")
    return int(done.returncode != 0 or failed > 0 or waiting > 0 or total < cases)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


if __name__ == "__main__":
    sys.exit(main())
