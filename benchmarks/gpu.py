"""Speed on a GPU, compared with AllenNLP, transformers, cuDNN and the arithmetic peak.

    python benchmarks/gpu.py [--text FILE] [--write]

FILE has one tokenised sentence per line; up to 120,000 of 3 to 80 tokens are used. Without it, the
sentences are synthetic. The peers are those of benchmarks/cpu.py, named by the same variables.
AllenNLP pins a PyTorch that does not support current GPUs; it runs with a newer one if installed
without its pinned dependencies. --write stores the table as benchmarks/results/gpu.md.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cpu import HERE, MFLOP, make_model, make_sentences, min_cosine, run_peer, run_plain, versions

from elmokit import Elmo
from elmokit.config import ContextConfig
from elmokit.kernels.ragged import Ragged
from elmokit.nn.bilm import LSTMContext

SENTENCES = 120_000
ALLENNLP_BATCHES = [128, 1024, 2048]
COMPARED = 256  # sentences to compare vectors of: enough for the large-batch path


def main() -> None:
    """Measure, print the tables, and store them with --write."""
    warnings.filterwarnings("ignore", "RNN module weights")  # cuDNN cannot pack these weights
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, help="tokenised sentences, one per line")
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/gpu.py needs a GPU that PyTorch can use")
    sentences = read(arguments.text) if arguments.text else make_sentences(SENTENCES)
    what = arguments.text.stem if arguments.text else "synthetic, with words repeated as in text"
    n_tokens = sum(map(len, sentences))
    product = {dtype: matrix_flops(dtype) for dtype in (torch.float32, torch.bfloat16)}
    lines = [
        f"{versions()}, one {torch.cuda.get_device_name()}, "
        f"{datetime.date.today()}. {len(sentences):,} sentences, {n_tokens:,} tokens: {what}. "
        f"Large matrix product: {product[torch.float32] / 1e12:.0f} TFLOP/s in float32, "
        f"{product[torch.bfloat16] / 1e12:.0f} in bfloat16.",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for size in ("small", "original"):
            make_model(size, Path(folder) / size)
            lines += ["", *table(size, sentences, Path(folder) / size, product)]
            print("\n".join(lines), flush=True)  # the run takes minutes, so show progress
    lines += ["", *alternatives(sentences), "", *training()]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "gpu.md").write_text(text, encoding="utf-8")


def table(
    size: str, sentences: list[list[str]], folder: Path, product: dict[torch.dtype, float]
) -> list[str]:
    """Return the table of one size."""
    found = allennlp(folder, sentences)
    exact = Elmo.load(folder, device="cuda")
    rounded = Elmo.load(folder, device="cuda", quantize="bfloat16")
    few, many = sentences[:COMPARED], sentences[:20_000]
    layers = exact.encode(few, "all")
    lines = [
        f"**{size}**, tokens per second, all layers, from strings",
        "",
        "| | to GPU memory | of peak | × AllenNLP at 128, from strings | "
        "× AllenNLP at its best batch, ids precomputed | to numpy, float16 |",
        "|---|---|---|---|---|---|",
    ]
    base = (
        found.get("strings 128"),
        max((found[k] for k in found if k.startswith("ids")), default=None),
    )

    def row(name: str, speed: float, dtype: torch.dtype, to_numpy: float | None = None) -> str:
        peak = product[dtype] / (MFLOP[size] * 1e6)
        ratios = [f"{speed / b:.1f}" if b else "–" for b in base]
        shown = f"{to_numpy:,.0f}" if to_numpy else ""
        return f"| {name} | {speed:,.0f} | {speed / peak:.0%} | {' | '.join(ratios)} | {shown} |"

    for name, elmo, dtype in (
        ("bfloat16", rounded, torch.bfloat16),
        ("float32", exact, torch.float32),
    ):
        elmo.encode(many, "all")  # compiles the kernels
        elmo._engine.cache.clear()
        first = throughput(elmo, sentences, 1)
        known = throughput(elmo, sentences, 3)
        to_numpy = rate(partial(elmo.encode, many, "all", dtype="float16"), many, 2)
        lines.append(row(f"ElmoKit, {name}, words cached", known, dtype, to_numpy))
        lines.append(row(f"ElmoKit, {name}, empty cache", first, dtype))
    some = sentences[:1024]
    plain = rate(lambda: run_plain(exact, some), some, 2)
    lines.append(row("ElmoKit's plain reference path", plain, torch.float32))
    for batch in ALLENNLP_BATCHES if found else []:
        lines.append(
            row(f"AllenNLP at batch {batch}, ids precomputed", found[f"ids {batch}"], torch.float32)
        )
    if found:
        for case, name in (
            ("strings 128", "AllenNLP at batch 128, from strings"),
            ("cached 2048", "AllenNLP at batch 2048, vocabulary cached, ids precomputed"),
        ):
            lines.append(row(name, found[case], torch.float32))
    else:
        lines.append("| AllenNLP | not installed | | | | |")
    by_pieces = product[torch.bfloat16] / 6 / (MFLOP[size] * 1e6)
    lines += [
        "",
        f"Peak of float32 as six bfloat16 products: {by_pieces:,.0f} tokens/s.",
        "Lowest mean cosine similarity of a layer between bfloat16 and float32: "
        f"{cosine(layers, rounded, few)}.",
    ]
    if found:
        apart = max(np.abs(a - b).max() for a, b in zip(layers, found["layers"], strict=True))
        lines.append(f"Largest difference between float32 and {found['versions']}: {apart:.1e}.")
    large = exact.encode(sentences[:2000], "all")
    alone = [exact.encode([s], "all")[0] for s in sentences[:50]]
    apart = max(np.abs(a - b).max() for a, b in zip(large, alone, strict=False))
    lines.append(
        f"Largest difference between a sentence alone and in a batch of 2,000: {apart:.1e}."
    )
    return lines


def cosine(layers: list[Any], rounded: Elmo, few: list[list[str]]) -> str:
    """Return the lowest mean cosine similarity of a layer, as text."""
    return f"{min_cosine(layers, rounded.encode(few, 'all')):.5f}"


def throughput(elmo: Elmo, sentences: list[list[str]], rounds: int) -> float:
    """Return the tokens per second from strings to all layers in the GPU's memory."""

    def run() -> None:
        for _ in elmo._engine.run(sentences, lambda batch: None):
            pass

    return rate(run, sentences, rounds)


def rate(run: Callable[[], object], sentences: list[list[str]], rounds: int) -> float:
    """Return the tokens per second of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return sum(map(len, sentences)) / best


def allennlp(folder: Path, sentences: list[list[str]]) -> dict[str, Any]:
    """Run AllenNLP on the same files, with unsorted sentences, as in default use."""
    job = {
        "options": str(folder / "options.json"),
        "weights": str(folder / "weights.hdf5"),
        "sentences": sentences[: max(ALLENNLP_BATCHES) * 2],
        "device": "cuda",
        "batches": ALLENNLP_BATCHES,
        "most": 2,  # batches of each size
        "compared": COMPARED,
        "store": str(folder / "allennlp.npz"),
    }
    found = run_peer("ELMOKIT_ALLENNLP_PYTHON", "allennlp_elmo.py", job)
    if found:
        with np.load(str(job["store"])) as stored:
            found["layers"] = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    return found


def alternatives(sentences: list[list[str]]) -> list[str]:
    """Return the speed of BERT-base and MiniLM-L6."""
    job = {"sentences": sentences[:50_000], "device": "cuda", "batch": 512}
    found = run_peer(
        "ELMOKIT_TRANSFORMERS_PYTHON",
        "transformers_bert.py",
        job | {"limits": {"BERT-base": 25_000, "MiniLM-L6": 50_000}},
    )
    if not found:
        return ["BERT-base and MiniLM-L6: transformers not installed."]
    return [
        "Alternatives, bfloat16, sorted by length, batches of 512, one subword per word "
        f"({found['versions']}): MiniLM-L6 {found['MiniLM-L6']:,.0f} words/s, BERT-base "
        f"{found['BERT-base']:,.0f}."
    ]


def training() -> list[str]:
    """Compare a training step through both layers and directions with cuDNN, which cannot clip."""
    lines = [
        "**Training step**, forward and backward through both layers and directions, bfloat16, "
        "1024 sentences of 32 tokens",
        "",
        "| | ElmoKit, clipped | cuDNN, without clips | ratio |",
        "|---|---|---|---|",
    ]
    for size, width, cell_dim in (("small", 128, 1024), ("original", 512, 4096)):
        config = ContextConfig(cell_dim=cell_dim, projection_dim=width)
        stacks = [LSTMContext.layers(config).cuda() for _ in range(2)]
        context = LSTMContext(stacks, config)
        tokens = torch.randn(1024, 32, width, device="cuda")
        ragged = Ragged(torch.full((1024,), 32), 32, tokens.device)

        def ours(context: Any = context, tokens: Any = tokens, ragged: Any = ragged) -> None:
            with torch.autocast("cuda", torch.bfloat16):
                rows = torch.stack([ragged.pack(tokens, reverse) for reverse in (False, True)])
                *_, top = context.read(rows, ragged)
                loss = sum(ragged.unpack(top.rows[d], d == 1).sum() for d in range(2))
            loss.backward()

        theirs = [
            torch.nn.LSTM(width, cell_dim, 2, proj_size=width).cuda().bfloat16() for _ in range(2)
        ]
        by_time = tokens.transpose(0, 1).bfloat16().contiguous()

        def cudnn(theirs: Any = theirs, by_time: Any = by_time) -> None:
            for lstm in theirs:
                lstm(by_time)[0].sum().backward()

        a, b = milliseconds(ours), milliseconds(cudnn)
        lines.append(f"| {size} | {a:.1f} ms | {b:.1f} ms | {a / b:.2f} |")
    return lines


def milliseconds(run: Callable[[], object], rounds: int = 7) -> float:
    """Return the median time of a run."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times))


def read(path: Path) -> list[list[str]]:
    """Read sentences of 3 to 80 tokens, in the order of the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [t for line in lines if 3 <= len(t := line.split()) <= 80][:SENTENCES]


def matrix_flops(dtype: torch.dtype) -> float:
    """Return the floating-point operations per second of a large matrix product."""
    a = torch.randn(8192, 8192, device="cuda", dtype=dtype)
    b = torch.empty_like(a)
    return 2 * 8192**3 * 1e3 / milliseconds(lambda: torch.mm(a, a, out=b))


if __name__ == "__main__":
    main()
