"""Speed on a CPU, compared with AllenNLP, transformers and the arithmetic peak.

    python benchmarks/cpu.py [--text FILE] [--write]

FILE has one tokenised sentence per line. Without it, the sentences are synthetic, with words
repeated as in real text. The peak is the speed of a large matrix product in the same run, divided
by the operations of the LSTMs per token. Peers run in their own environments; a variable names the
Python of each. If it is not set, the table says so:

    python3.9 -m venv .venv-allennlp
    .venv-allennlp/bin/pip install allennlp==2.10.1 'numpy<1.27' 'scipy<1.12'
    python3 -m venv .venv-transformers
    .venv-transformers/bin/pip install torch==2.13.0 transformers
    export ELMOKIT_ALLENNLP_PYTHON=.venv-allennlp/bin/python
    export ELMOKIT_TRANSFORMERS_PYTHON=.venv-transformers/bin/python

All run the same random weights in the published format, chosen to make both clips active. --write
stores the table as benchmarks/results/cpu.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import elmokit
from elmokit import Elmo
from elmokit.kernels.ragged import Ragged
from elmokit.nn import ProjectedLSTM
from elmokit.nn.bilm import LSTMContext

HERE = Path(__file__).parent
OURS = {"small": 2000, "original": 384}  # sentences for ElmoKit
THEIRS = {"small": 192, "original": 64}  # fewer for AllenNLP, which is slower
MFLOP = {"small": 9.4, "original": 151.0}  # of the LSTMs, per token


def main() -> None:
    """Measure, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, help="tokenised sentences, one per line")
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    sentences = read_sentences(arguments.text) if arguments.text else make_sentences(2000)
    what = (
        f"{arguments.text.name}" if arguments.text else "synthetic, with words repeated as in text"
    )
    lines = [
        f"{versions()}, {processor()}, {datetime.date.today()}. Sentences of 3 to "
        f"80 tokens: {what}.",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for size in ("small", "original"):
            make_model(size, Path(folder) / size)
            lines += ["", *table(size, sentences, Path(folder) / size)]
        lines += ["", *alternatives(sentences, Path(folder))]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / "cpu.md").write_text(text, encoding="utf-8")


def table(size: str, sentences: list[list[str]], folder: Path) -> list[str]:
    """Return the table of one size: one thread, then two."""
    sentences = sentences[: OURS[size]]
    torch.set_num_threads(1)
    peak = matrix_flops() / (MFLOP[size] * 1e6)
    elmo = Elmo.load(folder, device="cpu")
    elmo.encode([["warm", "up"]], "all")
    cold = tokens_per_second(elmo, sentences, rounds=1)
    warm = tokens_per_second(elmo, sentences)
    latency = median_latency(elmo, sentences)
    latency_new = median_latency(elmo, sentences, forget=True)
    rounded = Elmo.load(folder, device="cpu", quantize="int8")
    rounded.encode(sentences, layers=0)
    rounded.encode([["warm", "up"]], "all")
    int8 = tokens_per_second(rounded, sentences)
    few = sentences[:64]
    layers = elmo.encode(few, "all")
    cosine = min_cosine(layers, rounded.encode(few, "all"))
    plain = tokens_per_cpu_second(lambda: run_plain(elmo, sentences[:64]), sentences[:64])
    torch.set_num_threads(2)
    elmo.encode(sentences[:64], "all")
    two = wall_tokens_per_second(elmo, sentences)
    latency_two = median_latency(elmo, sentences)
    two_int8 = wall_tokens_per_second(rounded, sentences)
    theirs = sentences[: THEIRS[size]]
    one = allennlp(folder, theirs, 1, ["as run", "cached", "latency"])
    both = allennlp(folder, theirs, 2, ["cached", "latency"])
    rows = [
        f"**{size}**, tokens per CPU-second on one thread, all layers",
        "",
        "| | tokens/s | of peak | × AllenNLP, default use | × AllenNLP, vocabulary cached |",
        "|---|---|---|---|---|",
    ]

    def ratio(ours: float, case: str, found: dict[str, Any], which: int = 0) -> str:
        return f"{ours * found[case][which] / found['tokens']:.1f}" if found else "–"

    for name, speed in (
        ("ElmoKit, words cached", warm),
        (f"ElmoKit, empty cache, {len(sentences):,} sentences", cold),
        ("ElmoKit, int8, words cached", int8),
        ("ElmoKit's plain reference path", plain),
    ):
        rows.append(
            f"| {name} | {speed:,.0f} | {speed / peak:.0%} | {ratio(speed, 'as run', one)} | "
            f"{ratio(speed, 'cached', one)} |"
        )
    for name, case in (("default use", "as run"), ("vocabulary cached", "cached")):
        shown = f"{one['tokens'] / one[case][0]:,.0f}" if one else "not installed"
        rows.append(f"| AllenNLP at batch 64, {name}, {len(theirs)} sentences | {shown} | | | |")
    rows += [f"| arithmetic peak, words cached | {peak:,.0f} | 100% | | |", ""]
    cached = f" ({both['tokens'] / both['cached'][1]:,.0f})" if both else ", not installed"
    rows.append(
        f"Two threads, wall time: ElmoKit {two:,.0f} tokens/s, with int8 weights {two_int8:,.0f}; "
        f"{ratio(two, 'cached', both, 1)} and {ratio(two_int8, 'cached', both, 1)} × AllenNLP "
        f"with its vocabulary cached{cached}."
    )
    rows.append(
        f"One sentence at a time, median of {len(sentences[:40])}: {latency * 1e3:.1f} ms with "
        f"words cached, {latency_new * 1e3:.1f} ms with an empty cache"
        + (
            f"; AllenNLP, which has no cache, {one['latency'] * 1e3:.0f} ms: "
            f"{one['latency'] / latency:.1f} × and {one['latency'] / latency_new:.1f} ×. "
            if one
            else ". "
        )
        + f"With two threads {latency_two * 1e3:.1f} ms"
        + (
            f", AllenNLP {both['latency'] * 1e3:.0f} ms: {both['latency'] / latency_two:.1f} ×."
            if both
            else "."
        )
    )
    if one:
        apart = max(np.abs(a - b).max() for a, b in zip(layers, one["layers"], strict=True))
        rows.append(f"Largest difference from {one['versions']}: {apart:.1e}.")
    rows.append(f"Lowest mean cosine similarity of a layer between int8 and float32: {cosine:.5f}.")
    return rows


def alternatives(sentences: list[list[str]], folder: Path) -> list[str]:
    """Return the speed of BERT-base and MiniLM-L6, two threads, wall time."""
    found = run_peer(
        "ELMOKIT_TRANSFORMERS_PYTHON",
        "transformers_bert.py",
        {
            "sentences": sentences,
            "device": "cpu",
            "threads": 2,
            "batch": 64,
            "limits": {"BERT-base": 130, "MiniLM-L6": 650},  # sentences to run
        },
    )
    if not found:
        return ["BERT-base and MiniLM-L6: transformers not installed."]
    torch.set_num_threads(2)
    ours = {}
    for size in ("small", "original"):
        elmo = Elmo.load(folder / size, device="cpu")
        some = sentences[: OURS[size]]
        elmo.encode(some, layers=0)
        elmo.encode(some[:64], "all")
        ours[size] = wall_tokens_per_second(elmo, some)
    return [
        "Alternatives, words per second of wall time on two threads, one subword per word "
        f"({found['versions']}):",
        "",
        "| ElmoKit small | MiniLM-L6 | ElmoKit original | BERT-base |",
        "|---|---|---|---|",
        f"| {ours['small']:,.0f} | {found['MiniLM-L6']:,.0f} | {ours['original']:,.0f} | "
        f"{found['BERT-base']:,.0f} |",
    ]


def read_sentences(path: Path) -> list[list[str]]:
    """Read sentences of 3 to 80 tokens, shuffled."""
    lines = path.read_text(encoding="utf-8").splitlines()
    sentences = [tokens for line in lines if 3 <= len(tokens := line.split()) <= 80]
    random.Random(0).shuffle(sentences)
    return sentences[:2000]


def make_sentences(n: int, seed: int = 0) -> list[list[str]]:
    """Make sentences of 3 to 80 tokens with word frequencies by Zipf's law."""
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    lengths = [min(80, max(3, int(rng.gammavariate(3, 7)))) for _ in range(n)]
    return [rng.choices(vocabulary, weights, k=length) for length in lengths]


def make_model(size: str, folder: Path) -> None:
    """Save random weights that make both clips active, in the published format."""
    elmo = Elmo.random(size, device="cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for lstm in (lstm for stack in elmo.bilm.directions for lstm in stack):
            assert isinstance(lstm, ProjectedLSTM)
            lstm.bias.normal_()
            i, j, f, _ = lstm.bias.chunk(4)
            i += 2
            j.mul_(2)
            f += 3
            lstm.state_weight.mul_(0.3)
            assert lstm.projection is not None
            lstm.projection.normal_(0, 4.5 * lstm.cell_dim**-0.5)
    elmo.save(folder, format="bilm-tf")


@torch.inference_mode()
def run_plain(elmo: Elmo, sentences: list[list[str]]) -> None:
    """Run each token through the character CNN at 50 characters, then the LSTM step by step."""
    marked = [["<S>", *s, "</S>"] for s in sentences]
    lengths = torch.tensor([len(s) for s in marked])
    padded = [s + [""] * (int(lengths.max()) - len(s)) for s in marked]
    ids = np.stack([elmo.alphabet.encode(s, columns=50) for s in padded])
    # a few sentences at a time: the windows of the CNN need much memory
    parts = [
        elmo.bilm.token_encoder(torch.from_numpy(ids[i : i + 64]).to(elmo.device))
        for i in range(0, len(ids), 64)
    ]
    tokens = torch.cat(parts)
    ragged = Ragged(lengths, tokens.shape[1], elmo.device)
    rows = torch.stack([ragged.pack(tokens, reverse) for reverse in (False, True)])
    assert isinstance(elmo.bilm.context, LSTMContext)
    list(elmo.bilm.context.read_plainly(rows, ragged))


def tokens_per_cpu_second(
    run: Callable[[], object], sentences: list[list[str]], rounds: int = 3
) -> float:
    """Return the tokens per CPU-second of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return sum(map(len, sentences)) / best


def tokens_per_second(elmo: Elmo, sentences: list[list[str]], rounds: int = 3) -> float:
    """Return the tokens per CPU-second of encoding all layers."""
    return tokens_per_cpu_second(lambda: elmo.encode(sentences, "all"), sentences, rounds)


def wall_tokens_per_second(elmo: Elmo, sentences: list[list[str]]) -> float:
    """Return the tokens per second of wall time, best of three."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        elmo.encode(sentences, "all")
        best = min(best, time.perf_counter() - started)
    return sum(map(len, sentences)) / best


def median_latency(elmo: Elmo, sentences: list[list[str]], forget: bool = False) -> float:
    """Return the seconds for one sentence, with its words cached or (forget) an empty cache."""
    seconds = []
    for sentence in sentences[:40]:
        if forget:
            elmo._engine.cache.clear()
        started = time.perf_counter()
        elmo.encode([sentence], "all")
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def min_cosine(exact: list[np.ndarray], rounded: list[np.ndarray]) -> float:
    """Return the mean cosine similarity of the layer with the lowest one."""
    a, b = np.concatenate(exact, 1), np.concatenate(rounded, 1)
    cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    return float(cosines.mean(1).min())


def matrix_flops() -> float:
    """Return the floating-point operations per second of a large matrix product on one core."""
    a = torch.randn(2048, 2048)
    for _ in range(2):
        a @ a
    started = time.process_time()
    for _ in range(8):
        a @ a
    return 8 * 2 * 2048**3 / (time.process_time() - started)


def allennlp(
    folder: Path, sentences: list[list[str]], threads: int, cases: list[str]
) -> dict[str, Any]:
    """Run AllenNLP on the same files and sentences; return {} if it is not installed."""
    job = {
        "options": str(folder / "options.json"),
        "weights": str(folder / "weights.hdf5"),
        "sentences": sentences,
        "device": "cpu",
        "threads": threads,
        "cases": cases,
        "store": str(folder / "allennlp.npz"),
    }
    found = run_peer("ELMOKIT_ALLENNLP_PYTHON", "allennlp_elmo.py", job)
    if found:
        with np.load(job["store"]) as stored:  # type: ignore[arg-type]
            found["layers"] = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    return found


def run_peer(variable: str, script: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run a peer's script with the Python that a variable names; return what it prints."""
    python = os.environ.get(variable)
    if not python:
        return {}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(job, file)
        file.flush()
        done = subprocess.run(
            [python, HERE / "peers" / script, file.name], capture_output=True, text=True, check=True
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def versions() -> str:
    """Return the versions of ElmoKit, PyTorch and Python."""
    return (
        f"ElmoKit {elmokit.__version__}, PyTorch {torch.__version__}, Python "
        f"{platform.python_version()}"
    )


def processor() -> str:
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    main()
