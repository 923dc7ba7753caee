"""Run the numerical tests on the other code paths that a processor can be forced into.

    python tests/isa.py [PYTEST_OPTIONS...]

MKL, oneDNN, fbgemm and PyTorch choose their code by the instructions a processor has, and the
results differ in the last bits. Environment variables make them choose as on an older processor, so
one machine can stand for several. ``make test-isa`` runs this; it exits with 1 if any test fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("nn", "kernels", "inference", "elmo", "formats")
PRETRAINING = ("*loss*", "*muon*", "*objective*", "*softmax*")
MKL, ONEDNN, ATEN = "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"
FBGEMM = "FBGEMM_ENABLE_INSTRUCTIONS"  # needs AVX2
LEVELS = {
    "default": {MKL: "SSE4_2", ONEDNN: "SSE41", ATEN: "default"},
    "avx2": {MKL: "AVX2", ONEDNN: "AVX2", ATEN: "avx2", FBGEMM: "AVX2"},
    "avx512": {MKL: "AVX512", ONEDNN: "AVX512_CORE", ATEN: "avx512", FBGEMM: "AVX512"},
}
"""From the oldest processor to the newest: what each library is limited to."""


def settings() -> list[dict[str, str]]:
    """All libraries at each level with one and two threads, then each alone at each lower level."""
    import torch

    best = torch.backends.cpu.get_cpu_capability().lower()
    levels = list(LEVELS)
    if best in levels:  # a processor can only be made to look older
        levels = levels[: levels.index(best) + 1]
    every: list[dict[str, str]] = [{}, *(LEVELS[level] for level in levels)]
    chosen = [one | {"OMP_NUM_THREADS": n} for one in every for n in ("1", "2")]
    for level in levels[:-1]:
        for name, value in LEVELS[level].items():
            chosen.append({name: value, "OMP_NUM_THREADS": "1"})
    return chosen


def tests() -> list[str]:
    """Test files that compare numbers."""
    found = [ROOT / "tests" / folder for folder in FOLDERS]
    for pattern in PRETRAINING:
        found += sorted((ROOT / "tests/pretrain").rglob(f"test_{pattern}.py"))
    return [str(path) for path in dict.fromkeys(found) if path.exists()]


def run(setting: dict[str, str], options: list[str]) -> tuple[bool, str, str]:
    """Whether all tests passed, pytest's last line, and its whole output."""
    inherited = {k: v for k, v in os.environ.items() if k not in (MKL, ONEDNN, ATEN, FBGEMM)}
    # as many processes as there are cores for their threads
    processes = max(1, (os.cpu_count() or 1) // int(setting["OMP_NUM_THREADS"]))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(processes)]
    command += [*options, *tests()]
    done = subprocess.run(
        command, cwd=ROOT, env=inherited | setting, capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if re.search(r" in [\d.]+s", line)]
    crashed = f"exit code {done.returncode}"
    return done.returncode == 0, lines[-1].strip("= ") if lines else crashed, done.stdout


def main() -> int:
    """Print a table of settings and results."""
    failures, start = [], time.monotonic()
    for setting in settings():
        name = " ".join(f"{key}={value}" for key, value in setting.items())
        passed, summary, output = run(setting, sys.argv[1:])
        print(f"{'passed' if passed else 'FAILED'}  {name:<105} {summary}", flush=True)
        if not passed:
            failures.append((name, output))
    for name, output in failures:
        print(f"\n{name}\n{output}")
    print(f"{len(failures)} of {len(settings())} settings failed, {time.monotonic() - start:.0f} s")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
