"""A model in onnxruntime and in ElmoKit on one CPU thread: one sentence, a batch, and the products.

    python benchmarks/onnx_latency.py [--model MODEL] [--rounds 40] [--write]

One sentence of 20 tokens at a time, and a batch of 32 such sentences, all layers. Times of ONNX
include the character ids, which are made from the words in every call; ElmoKit has its words in its
cache. The last table is one step of one LSTM: both recurrent products alone, 22 times in a row as
for a sentence. All are measured in turn, round by round; CPU time is the fairer figure on a machine
with other work. --write stores the tables as benchmarks/results/onnx.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from cpu import HERE, processor, versions
from latency import SENTENCES, cosines, in_turn
from onnx import TensorProto, helper, numpy_helper

from elmokit import Elmo
from elmokit.formats import DEFAULT_MODEL
from elmokit.integrations.onnx import export_onnx
from elmokit.nn import ProjectedLSTM

BATCH = 32
STEPS = 22  # of a sentence with 20 tokens and its two marks
ROWS = (1, 2, 8, 32)
Run = Callable[[int], object]


def main() -> None:
    """Measure, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--write", action="store_true", help="store the tables")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    elmo = Elmo.load(arguments.model, device="cpu")
    rounded = Elmo.load(arguments.model, device="cpu", quantize="int8")
    sessions = {dtype: exported(elmo, dtype) for dtype in ("float32", "int8")}
    encoders: dict[str, Callable[[list[list[str]]], Any]] = {
        "ElmoKit float32": lambda texts: elmo.encode(texts, "all"),
        'ElmoKit `quantize="int8"`': lambda texts: rounded.encode(texts, "all"),
        "ONNX float32": lambda texts: layers(elmo, sessions["float32"][0], texts),
        "ONNX int8": lambda texts: layers(elmo, sessions["int8"][0], texts),
    }
    shuffled = random.Random(0)
    batch = [shuffled.sample(SENTENCES[i % 5], len(SENTENCES[i % 5])) for i in range(BATCH)]
    one = in_turn({name: each(f) for name, f in encoders.items()}, arguments.rounds)
    many = in_turn({name: all_of(f, batch) for name, f in encoders.items()}, arguments.rounds // 4)
    lines = [
        f"`python benchmarks/onnx_latency.py --write`: {versions()}, onnx {onnx.__version__}, "
        f"onnxruntime {onnxruntime.__version__}, {processor()}, {os.cpu_count()} cores, "
        f"{datetime.date.today()}. Model `{Path(arguments.model).name}`, one thread, all layers; "
        f"medians of {arguments.rounds} rounds ({arguments.rounds // 4} of the batch). Load "
        f"average {os.getloadavg()[0]:.1f}.",
        "",
        f"| | one sentence of 20 tokens: CPU time, ms | wall time, ms | {BATCH} sentences: CPU "
        "time, ms | wall time, ms | cosine similarity to ElmoKit float32, mean of the lowest "
        "layer | lowest token |",
        "|---|---|---|---|---|---|---|",
    ]
    expected = elmo.encode(SENTENCES, "all")
    for name, encode in encoders.items():
        mean, lowest = cosines(expected, [encode([text])[0] for text in SENTENCES])
        times = " | ".join(f"{ms:.1f}" for found in (one, many) for ms in medians(found[name]))
        lines.append(f"| {name} | {times} | {mean:.6f} | {lowest:.6f} |")
    sizes = ", ".join(f"{dtype} {size / 1e6:.1f} MB" for dtype, (_, size) in sessions.items())
    lines += ["", f"Size of the ONNX file: {sizes}.", "", *product_table(elmo, arguments.rounds)]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "onnx.md").write_text(text, encoding="utf-8")


def exported(elmo: Elmo, dtype: str) -> tuple[Any, int]:
    """Write the model as ONNX; return a session with one thread and the size of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(elmo, path, dtype=dtype)
        return session(path.read_bytes()), path.stat().st_size


def session(content: bytes) -> Any:
    """Open a model with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def layers(elmo: Elmo, model: Any, texts: list[list[str]]) -> list[np.ndarray]:
    """The layers of sentences from an ONNX model, character ids included."""
    columns = elmo.config.token_encoder.max_characters
    lengths = np.array([len(words) for words in texts], np.int64)
    ids = np.zeros((len(texts), lengths.max(), columns), np.int64)
    rows = elmo.alphabet.encode([word for words in texts for word in words], columns)
    ids[np.arange(lengths.max()) < lengths[:, None]] = rows
    (found,) = model.run(["layers"], {"ids": ids, "lengths": lengths})
    return [found[:, i, :n] for i, n in enumerate(lengths)]


def each(encode: Callable[[list[list[str]]], object]) -> Run:
    """Return a function that encodes one sentence, another in each round."""
    return lambda number: encode([SENTENCES[number % len(SENTENCES)]])


def all_of(encode: Callable[[list[list[str]]], object], batch: list[list[str]]) -> Run:
    """Return a function that encodes a batch."""
    return lambda _: encode(batch)


def medians(seconds: list[tuple[float, float]]) -> list[float]:
    """Milliseconds of CPU time and of wall time."""
    return [1e3 * statistics.median(part) for part in zip(*seconds, strict=True)]


def product_table(elmo: Elmo, rounds: int) -> list[str]:
    """Return a table of the recurrent products of one LSTM, by library and number of rows."""
    lstm = elmo.bilm.forward_layers[0]
    assert isinstance(lstm, ProjectedLSTM)
    assert lstm.projection is not None
    weights = [weight.detach().contiguous() for weight in (lstm.state_weight, lstm.projection)]
    table: dict[str, list[str]] = {}
    for rows in ROWS:
        runs = {
            "torch.mm, float32": torch_products(weights, rows, "mm"),
            "oneDNN in PyTorch, float32, packed": torch_products(weights, rows, "onednn"),
            "fbgemm, float16 weights": torch_products(weights, rows, "float16"),
            "fbgemm, int8": torch_products(weights, rows, "int8"),
            "onnxruntime MatMul, float32": onnx_products(weights, rows, "MatMul"),
            "onnxruntime MatMulInteger, int8": onnx_products(weights, rows, "MatMulInteger"),
        }
        for name, seconds in in_turn(runs, max(1, rounds // 4)).items():
            table.setdefault(name, []).append(f"{1e3 * medians(seconds)[0] / STEPS:.0f}")
    shapes = " and ".join(f"{w.shape[1]:,} × {w.shape[0]:,}" for w in weights)
    return [
        f"Recurrent products of one step, {shapes}, CPU time in µs; int8 of fbgemm includes the "
        "rounding of its input, that of onnxruntime does not:",
        "",
        f"| rows | {' | '.join(map(str, ROWS))} |",
        "|---" * (len(ROWS) + 1) + "|",
        *(f"| {name} | {' | '.join(times)} |" for name, times in table.items()),
    ]


def torch_products(weights: list[torch.Tensor], rows: int, kind: str) -> Run:
    """Return a function that multiplies by both weights (out, in), as often as a sentence does."""
    quantized, own = torch.ops.quantized, torch.ops.mkldnn
    torch.backends.quantized.engine = "fbgemm"
    product: Callable[[torch.Tensor, Any], object]
    packed: list[Any]
    if kind == "mm":
        packed, product = [w.t().contiguous() for w in weights], torch.mm
    elif kind == "onednn":
        packed = [own._reorder_linear_weight(w, rows) for w in weights]
        product = lambda x, w: own._linear_pointwise(x, w, None, "none", [], "")  # noqa: E731
    elif kind == "float16":
        packed = [quantized.linear_prepack_fp16(w, None) for w in weights]
        product = quantized.linear_dynamic_fp16
    else:
        packed = []
        for w in weights:
            scales = (w.abs().amax(1) / 127).double()
            zeros = torch.zeros_like(scales, dtype=torch.long)
            whole = torch.quantize_per_channel(w, scales, zeros, 0, torch.qint8)
            packed.append(quantized.linear_prepack(whole, None))
        product = lambda x, w: quantized.linear_dynamic(x, w, True)  # noqa: E731
    inputs = [torch.randn(rows, w.shape[1]) for w in weights]

    def run(_: int) -> None:
        for _step in range(STEPS):
            for x, w in zip(inputs, packed, strict=True):
                product(x, w)

    return run


def onnx_products(weights: list[torch.Tensor], rows: int, kind: str) -> Run:
    """As :func:`torch_products`, with all steps in one graph: a call from Python takes long."""
    whole = kind == "MatMulInteger"
    given, found = (
        (TensorProto.UINT8, TensorProto.INT32) if whole else (TensorProto.FLOAT, TensorProto.FLOAT)
    )
    nodes, inputs, outputs, feed, stored = [], [], [], {}, []
    if whole:
        stored.append(numpy_helper.from_array(np.array(64, np.uint8), "zero"))
    for number, weight in enumerate(weights):
        matrix = weight.t()
        if whole:
            matrix = (matrix / (weight.abs().amax(1) / 127)).round().to(torch.int8)
        stored.append(numpy_helper.from_array(matrix.contiguous().numpy(), f"w{number}"))
    for step in range(STEPS):
        for number, weight in enumerate(weights):
            x, y = f"x{number}_{step}", f"y{number}_{step}"
            names = [x, f"w{number}", *(["zero"] if whole else [])]
            nodes.append(helper.make_node(kind, names, [y]))
            inputs.append(helper.make_tensor_value_info(x, given, [rows, weight.shape[1]]))
            outputs.append(helper.make_tensor_value_info(y, found, [rows, weight.shape[0]]))
            values = torch.randn(rows, weight.shape[1])
            if whole:
                values = (values * 20 + 64).clamp(1, 127).to(torch.uint8)
            feed[x] = values.numpy()
    graph = helper.make_graph(nodes, "steps", inputs, outputs, stored)
    opset = [helper.make_opsetid("", 20)]
    model = session(helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString())
    return lambda _: model.run(None, feed)


if __name__ == "__main__":
    main()
