"""Kill ``embed``, ``index`` and ``pretrain`` at random moments, resume, and compare the bits.

Each case kills a job up to three times, sometimes resumes it in two processes at once, and lets it
finish. Its output must equal that of a job that was never killed, byte for byte. The moments are
spread over the time that such a job takes. ``--job embed`` runs one kind of job; by default the
seed chooses.

Jobs run in forks of the worker, which has imported everything. Windows, groups and caches are made
small, so a short job passes through every phase many times.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness import Limits, run

JOBS = ("embed", "index", "pretrain")
_SYLLABLES = "ka lo mi ren tas vu zel dor fi gan hup jo ly nex".split()
_MODEL = {
    "lstm": {
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
        "n_layers": 2,
        "projection_dim": 32,
        "dim": 128,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 16},
        "filters": [[1, 16], [2, 32], [3, 64]],
        "n_highway": 1,
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
_RECIPE: dict[str, dict[str, Any]] = {
    "model": {
        "token_encoder": {"filters": [[1, 8], [2, 8], [3, 16]], "n_highway": 1},
        "context": {"cell_dim": 48, "projection_dim": 16},
    },
    "text": {"min_count": 1},
    "batch": {"tokens": 200},
    "softmax": {"kind": "full"},
    "optimizer": {"learning_rate": 0.02},
    "training": {"epochs": 2, "dropout": 0.1, "save_every": 0, "evaluate_every": 0.1},
}


def case(seed: int, folder: Path, only: str | None, shared: Path) -> str:
    """Kill a job, resume it and compare; the result names the job and the number of kills."""
    from elmokit.io.job import has_partial

    rng = random.Random(seed)
    kind = only or JOBS[seed % len(JOBS)]
    whole = _whole(kind, shared)
    out = folder / whole.out.name
    n_kills = 0
    for _ in range(rng.randint(1, 3)):
        process = _Process(whole, out)
        process.wait_until_begun()
        begun = time.monotonic()
        if process.ends_within(rng.uniform(0, 1.05) * whole.seconds):
            if not n_kills:  # the machine is less busy now; later kills must come earlier
                whole.seconds = time.monotonic() - begun
            break
        process.kill()
        n_kills += 1
    what = f"{kind}, killed {n_kills} times"
    if process.code == -signal.SIGKILL:
        last = [_Process(whole, out) for _ in range(1 + (rng.random() < 0.25))]
        for process in last:
            process.end()
        # the second may also begin after the first has finished
        refused = [process for process in last if process.code]
        logs = "\n".join(process.log() for process in last)
        assert len(refused) < len(last) or "exists already" in logs, logs
        assert all(_is_refusal(process.log()) for process in refused), logs
        if len(last) > 1:
            what += f", then resumed twice at once, {len(refused)} refused"
    else:
        assert process.code == 0, process.log()
    found = _digests(kind, out)
    assert found == whole.digests, found.items() ^ whole.digests.items()
    # a kill after the last rename leaves an empty job, which the next one clears
    left = {path.name for path in folder.iterdir()} - {out.name, f"{out.name}.partial"}
    assert not left, left
    assert not has_partial(out)
    return what


@dataclass
class _Whole:
    """A job that was never killed."""

    kind: str
    out: Path
    text: Path
    model: Path
    seconds: float = 0.0
    """From its first file to its end."""
    digests: dict[str, str] = field(default_factory=dict)

    def command(self, out: Path) -> list[str]:
        if self.kind == "embed":
            return ["embed", str(self.text), str(out), "-m", str(self.model), "--resume"]
        if self.kind == "index":  # several threads build a graph in no fixed order
            paths = [str(self.text), "--out", str(out), "-m", str(self.model)]
            return ["--threads", "1", "index", *paths, "--tokenized", "--resume"]
        paths = [str(self.text), "--valid", f"{self.text}.valid", "--out", str(out)]
        resume = ["--resume"] if (out / "recipe.json").exists() else []
        settings = [
            f"{section}.{key}={json.dumps(value)}"
            for section, values in _flat(_RECIPE).items()
            for key, value in values.items()
        ]
        given = [word for setting in settings for word in ("--set", setting)]
        return ["--threads", "1", "pretrain", *paths, "--tokenized", "--device", "cpu"] + (
            resume or given
        )


def _flat(recipe: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings with sections by their dotted names."""
    flat: dict[str, dict[str, Any]] = {}
    for section, values in recipe.items():
        for key, value in values.items():
            if isinstance(value, dict):
                flat[f"{section}.{key}"] = value
            else:
                flat.setdefault(section, {})[key] = value
    return flat


class _Process:
    """A fork of this process that runs the command line."""

    def __init__(self, whole: _Whole, out: Path) -> None:
        self._begun = out if whole.kind == "pretrain" else out.with_name(out.name + ".partial")
        command = whole.command(out)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object
        self.code: int | None = None
        self._id = os.fork()
        if self._id == 0:
            _become(command, self._log.fileno())

    def wait_until_begun(self) -> None:
        while not self._begun.exists() and not self._ended():
            time.sleep(0.001)

    def ends_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._ended():
            if time.monotonic() >= until:
                return False
            time.sleep(0.001)
        return True

    def kill(self) -> None:
        os.kill(self._id, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self._id, 0)[1])

    def _ended(self) -> bool:
        if self.code is None:
            ended, status = os.waitpid(self._id, os.WNOHANG)
            if ended:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()


def _become(command: list[str], log: int) -> None:
    """Run the command line, and end the process."""
    code = 1
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = ["elmokit", *command]
        from elmokit.cli.main import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@functools.cache
def _whole(kind: str, shared: Path) -> _Whole:
    """Run a job without a kill, once per worker."""
    _make_everything_small()
    from helpers.models import write_published  # type: ignore[import-not-found]

    folder = Path(tempfile.mkdtemp(dir=shared))
    text = folder / "text.txt"
    rng = random.Random(0)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(3000)]
    n_lines = {"embed": 800, "index": 1500, "pretrain": 400}[kind]
    for path, n in ((text, n_lines), (folder / "text.txt.valid", 50)):
        lines = [" ".join(rng.choices(words, k=rng.randint(1, 20))) for _ in range(n)]
        path.write_text("\n".join(lines) + "\n")
    name = {"embed": "out.npz", "index": "index", "pretrain": "run"}[kind]
    whole = _Whole(kind, folder / name, text, write_published(folder / "model", _MODEL))
    process = _Process(whole, whole.out)
    process.wait_until_begun()
    started = time.monotonic()
    process.end()
    assert process.code == 0, process.log()
    whole.seconds = time.monotonic() - started
    whole.digests = _digests(kind, whole.out)
    return whole


def _make_everything_small() -> None:
    import elmokit.cli.main
    import elmokit.elmo
    import elmokit.embed.run  # noqa: F401
    from elmokit.inference import engine, vectors
    from elmokit.io import job
    from elmokit.pretrain.run import reporter

    vectors._CPU_WINDOW_BYTES = 1 << 20
    vectors._WINDOWS_PER_CACHE = 4
    engine._CPU_WINDOWS = (32, 64)
    job._GROUP_BYTES = 1 << 18
    reporter.draw_training = lambda folder: None


def _digests(kind: str, out: Path) -> dict[str, str]:
    """Digests of all that a job must write the same way each time."""
    if kind == "embed":
        files = {out.name: out.read_bytes()}
    elif kind == "index":
        files = {path.name: path.read_bytes() for path in out.iterdir()}
    else:
        files = {path.name: path.read_bytes() for path in (out / "best").iterdir()}
        lines = (out / "metrics.jsonl").read_text().splitlines()
        kept = [report for report in map(json.loads, lines) if report["kind"] == "evaluation"]
        means = [(report["step"], report["mean"]) for report in kept]
        files["metrics"] = json.dumps(means).encode()
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _is_refusal(log: str) -> bool:
    return "another process is writing" in log or "exists already" in log


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--job", choices=JOBS)
    own, sys.argv[1:] = parser.parse_known_args()
    limits = Limits(cpu_seconds=60, wall_seconds=600, peak_bytes=1 << 31)
    with tempfile.TemporaryDirectory() as shared:
        chosen = functools.partial(case, only=own.job, shared=Path(shared))
        sys.exit(run("kills", chosen, limits, "0:18"))
