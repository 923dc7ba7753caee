"""The bundled English model: size, speed, perplexity, word senses.

    python benchmarks/en.py [--model MODEL] [--text TEXT] [--semcor DIR --wordnet DIR --wsd DIR]
                            [--write]

TEXT is held-out text, as for ``elmokit perplexity``. --semcor is the folder of SemCor 3.0,
--wordnet that of WordNet 3.0, and --wsd the folder Evaluation_Datasets of the Unified Evaluation
Framework (Raganato et al. 2017). Each part runs only if its data is given. With
ELMOKIT_ALLENNLP_PYTHON (see cpu.py), AllenNLP reads the model too. --write stores the table as
benchmarks/results/en.md.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from pathlib import Path

import numpy as np
import torch
from cpu import HERE, allennlp, make_sentences, matrix_flops, processor, tokens_per_second, versions

from elmokit import Elmo
from elmokit.analysis.senses.disambiguation import evaluate
from elmokit.analysis.senses.sense_vectors import SenseVectors
from elmokit.analysis.senses.tagged_text import read_raganato, read_semcor
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.analysis.text_perplexity import perplexity_of_files
from elmokit.formats import DEFAULT_MODEL, find_model

SETS = ("ALL", "senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")


def main() -> None:
    """Measure, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--text", type=Path)
    parser.add_argument("--semcor", type=Path)
    parser.add_argument("--wordnet", type=Path)
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--write", action="store_true", help="store the table")
    arguments = parser.parse_args()
    size = sum(p.stat().st_size for p in find_model(arguments.model).iterdir())
    lines = [
        f"{versions()}, {processor()}, {datetime.date.today()}. {size / 1e6:.1f} MB of files.",
        "",
        *speed(arguments.model),
        "",
        exported(arguments.model),
    ]
    if arguments.text:
        found = perplexity_of_files(Elmo.load(arguments.model), [arguments.text])
        lines += [
            "",
            f"{arguments.text.name}, each sentence alone, whole softmax: perplexity "
            f"{found.mean:.2f} (forward {found.forward:.2f}, backward {found.backward or 0:.2f}), "
            f"{found.unknown_rate:.2%} unknown, {found.n_tokens:,} tokens, "
            f"{found.bits_per_character:.3f} bits per character.",
        ]
    if arguments.semcor and arguments.wordnet and arguments.wsd:
        lines += ["", *senses(arguments.model, arguments.semcor, arguments.wordnet, arguments.wsd)]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "results" / "en.md").write_text(text, encoding="utf-8")


def speed(model: str) -> list[str]:
    """Return the tokens per CPU-second on one thread, words cached, all layers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    sentences = make_sentences(400)
    elmo = Elmo.load(model, device="cpu")
    stacks = elmo.bilm.directions
    n_weights = sum(p.numel() for stack in stacks for p in stack.parameters())
    peak = matrix_flops() / (2 * n_weights)
    lines = ["| one thread, words cached | tokens per CPU-second | of peak |", "|---|---|---|"]
    for name, quantize in (("float32", None), ("int8", "int8")):
        elmo = Elmo.load(model, device="cpu", quantize=quantize)
        elmo.encode(sentences, "all")
        found = tokens_per_second(elmo, sentences)
        lines.append(f"| {name} | {found:,.0f} | {found / peak:.0%} |")
    torch.set_num_threads(threads)
    return lines


def exported(model: str) -> str:
    """Return how far AllenNLP's vectors differ, for the model in the published format."""
    sentences = make_sentences(64)
    elmo = Elmo.load(model, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        elmo.save(folder, format="bilm-tf", overwrite=True)
        found = allennlp(Path(folder), sentences, 1, [])
    if not found:
        return "Published format: not compared, because AllenNLP is not installed."
    ours = elmo.encode(sentences, "all")
    pairs = zip(ours, found["layers"], strict=True)
    largest = max(float(np.abs(a - b).max()) for a, b in pairs)
    return (
        f"Converted to the published format (`elmokit convert --to bilm-tf`), {found['versions']} "
        f"gives the same vectors for {len(sentences)} sentences: largest difference {largest:.1e}."
    )


def senses(model: str, semcor: Path, wordnet: Path, wsd: Path) -> list[str]:
    """Return the F1 of 1-nearest-neighbour senses by layer, with the first sense as the fallback.

    The last column combines all evidence (``elmokit wsd train --occurrences``).
    """
    elmo, inventory = Elmo.load(model), WordNet(wordnet)
    vectors = SenseVectors.train(elmo, list(read_semcor(semcor)), keep=True)
    layers = [f"layer {k}" for k in range(elmo.n_layers)]
    layers += ["mix", "top without residual", "context", "combined"]
    lines = [
        "Word senses, F1, by the nearest average over SemCor's occurrences. The average is that of "
        'the word\'s own vectors or, in "context", of those next to it. "context" and "top without '
        'residual" omit the residual connection. "combined" adds the votes of the ten nearest '
        "occurrences and WordNet's glosses:",
        "",
        "| | words | first sense | " + " | ".join(layers) + " |",
        "|---|---|---|" + "---|" * len(layers),
    ]
    for name in SETS:
        texts = read_raganato(wsd / name / f"{name}.data.xml", wsd / name / f"{name}.gold.key.txt")
        found = evaluate(elmo, vectors, inventory, texts)
        combined = (found.mix, found.alone, found.around, found.all_hints or 0)
        scores = (*found.layers, *combined)
        shown = " | ".join(f"{x:.1f}" for x in scores)
        lines.append(f"| {name} | {found.n:,} | {found.first:.1f} | {shown} |")
    return lines


if __name__ == "__main__":
    main()
