"""Public functions with arguments that work, and values that do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_models import MODELS, model, random_text, random_word

from elmokit import (
    BiLM,
    BiLMState,
    CarriedState,
    Checkpoint,
    ContextConfig,
    Elmo,
    ElmoEmbedding,
    MixConfig,
    ModelConfig,
    Perplexity,
    ScalarMix,
    TokenEncoderConfig,
    Tokenizer,
    Vocabulary,
)
from elmokit.analysis.similarity import sentence_similarity, token_pairs, word_similarity
from elmokit.analysis.surprisal import surprisal
from elmokit.embed.run import EmbedOptions, embed_file, embed_lines
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.paths import RunPaths
from elmokit.pretrain.start import pretrain
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer


def odd_values(rng: random.Random, folder: Path) -> list[Any]:
    """Objects that are wrong, or at least unusual, for every argument."""
    return [
        *(None, True, 0, -1, 1, 3, 1.5, math.nan, math.inf, 2**100, -(2**63), 1e308, 2 + 1j),
        *("", "nonsense", "cuda", "meta", "bfloat16", "\0", "\ud800", "x" * 10_000, b"bytes"),
        *([], [1], [[1]], [None], [[None]], [[]], [""], [b"a"], ["a", 1], [(1, 2, 3)], [[0.5, 1]]),
        *({}, {"a"}, {"a": 1}, (), (1, 2, 3), [(0, 1)], [(1, 0)], [(-1, 5)], [(0, 2**70)]),
        *(object(), int, print, ..., slice(0, 1), range(3), iter([]), iter([1]), iter(["a"])),
        *(np.array(1), np.array([1.5]), np.array("a"), np.array([["a", "b"]]), np.array([1, 2])),
        *(
            np.float32(2),
            np.int64(-3),
            np.int64(1),
            np.bool_(True),
            np.array([]),
            np.datetime64(1, "s"),
        ),
        *(torch.tensor(1), torch.zeros(2), torch.zeros(2, 3, 4), torch.zeros(1, 2, 5).long()),
        *(torch.full((1, 2, 20), 262), torch.full((1, 1, 20), -1), torch.zeros(0, 0, 0).long()),
        *(
            torch.bfloat16,
            np.float64,
            np.float16,
            torch.device("meta"),
            memoryview(b"ab"),
            bytearray(b"a"),
        ),
        *(
            Path("missing/x"),
            Path("/etc/passwd/x"),
            folder,
            Path("x" * 300),
            "\udcff",
            "a\nb",
            "~nobody/x",
        ),
        *(CarriedState(), BiLMState([]), BiLMState([(1, 2)]), ContextConfig(), lambda *a: 5),  # type: ignore[list-item]
        *(BiLMState([(torch.zeros(2, 1, 8), torch.zeros(2, 1, 24))] * 2), Recipe(), print, len),
        *(
            _Raises(),
            [_Raises()],
            "a b c",
            ["a b c"],
            [["a", "b"]],
            random_text(rng),
            random_word(rng),
        ),
    ]


class _Raises:
    """Refuses to be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def public_calls(
    rng: random.Random, folder: Path
) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Public functions with arguments that work."""
    elmo, lm = model(rng.choice(MODELS)), model("lm")
    wanted: dict[str, Any] = {"layers": "mix", "dtype": "float32", "state": "zero"}
    vocabulary = ("<S>", "</S>", "<UNK>", "the", "cat")
    text, some = "a b c", ["a b", ["c"]]
    embedding = ElmoEmbedding(elmo)
    saved = folder / "saved"
    if not saved.exists():
        model("lstm").save(saved)
    (folder / "lines.txt").write_text("a b\nc\n")
    ids = embedding.ids([["a", "b"]])
    layers = torch.zeros(3, 1, 2, 4)
    mask = torch.ones(1, 2)
    norm: Any = rng.choice([False, "allennlp"])
    paths: dict[str, Any] = {
        "text": [Path("lines.txt")],
        "valid": [Path("lines.txt")],
        "out": Path("run"),
    }
    encoder = TokenEncoderConfig()
    return {
        "load": (
            Elmo.load,
            {"model": saved, "tokenizer": None, "device": "cpu", "cache_mb": 1, "quantize": None},
        ),
        "load files": (
            Elmo.load,
            {"options": saved, "weights": saved, "softmax": saved, "vocabulary": saved},
        ),
        "Elmo": (
            Elmo,
            {
                "checkpoint": elmo.checkpoint(),
                "tokenizer": "english",
                "device": "cpu",
                "cache_mb": 1,
            },
        ),
        "Checkpoint": (lambda **a: Elmo(Checkpoint(**a)), {"config": lm.config, "tensors": {}}),
        "random": (Elmo.random, {"config": elmo.config, "seed": 0, "device": "cpu"}),
        "to": (elmo.to, {"device": "cpu"}),
        "tokenize": (elmo.tokenize, {"text": text}),
        "encode": (
            elmo.encode,
            {"texts": some, **wanted, "batch_size": 2, "marks": False, "progress": False},
        ),
        "stream": (elmo.stream, {"texts": some, **wanted, "batch_size": 2, "marks": False}),
        "encode_sentences": (
            elmo.encode_sentences,
            {"texts": some, **wanted, "pooling": "mean", "batch_size": 1},
        ),
        "encode_spans": (
            elmo.encode_spans,
            {"text": text, "spans": [(0, 1)], **wanted, "unit": None, "pooling": "max"},
        ),
        "outputs": (elmo.outputs, {"texts": some, "dtype": "float32", "state": "zero"}),
        "score": (lm.score, {"texts": some, "state": "zero", "batch_size": 1}),
        "stream_scores": (lm.stream_scores, {"texts": some, "state": "zero"}),
        "perplexity": (lm.perplexity, {"texts": some, "state": "zero"}),
        "substitutes": (lm.substitutes, {"text": text, "position": 1, "k": 2, "state": "zero"}),
        "warm_state": (elmo.warm_state, {"texts": some}),
        "set_mix": (elmo.set_mix, {"weights": [1.0, 2.0, 3.0], "gamma": 1.0}),
        "save": (
            elmo.save,
            {"folder": "new", "format": "native", "overwrite": True, "dtype": "float32"},
        ),
        "ElmoEmbedding": (
            ElmoEmbedding,
            {
                "elmo": elmo,
                "n_outputs": 1,
                "dropout": 0.5,
                "layer_norm": False,
                "trainable": False,
                "l2": 0.0,
            },
        ),
        "embedding": (embedding, {"batch": rng.choice([some, ids])}),
        "ids": (embedding.ids, {"batch": some}),
        "ScalarMix": (
            ScalarMix,
            {
                "n_layers": 3,
                "weights": [0.0] * 3,
                "gamma": 1.0,
                "trainable": True,
                "layer_norm": False,
                "l2": 0.0,
            },
        ),
        "mix": (
            ScalarMix(3, layer_norm=norm),
            {"layers": layers, "mask": mask},
        ),
        "BiLM": (BiLM, {"config": model("transformer").config}),
        "Tokenizer": (
            lambda **a: Tokenizer(**a)(text),
            {"name": "own", "spans": lambda t: [(0, 1)]},
        ),
        "get_tokenizer": (lambda **a: get_tokenizer(**a)(text), {"tokenizer": "english"}),
        "call a tokenizer": (elmo.tokenizer, {"text": text}),
        "split_sentences": (split_sentences, {"text": text}),
        "Vocabulary": (Vocabulary, {"words": list(vocabulary)}),
        "Vocabulary.ids": (Vocabulary(list(vocabulary)).ids, {"words": ["a"]}),
        "from_scores": (Perplexity.from_scores, {"scores": lm.score(some)}),
        "from_dict": (ModelConfig.from_dict, {"values": elmo.config.to_dict()}),
        "TokenEncoderConfig": (
            TokenEncoderConfig,
            {
                name: getattr(encoder, name)
                for name in ("filters", "n_highway", "activation", "word_dim")
            },
        ),
        "ContextConfig": (
            ContextConfig,
            {
                "kind": "lstm",
                "n_layers": 2,
                "cell_clip": 3.0,
                "bidirectional": True,
                "forget_bias": 1.0,
            },
        ),
        "MixConfig": (MixConfig, {"weights": (1.0, 2.0), "gamma": 1.0}),
        "ModelConfig": (
            ModelConfig,
            {
                "token_encoder": encoder,
                "context": ContextConfig(),
                "tokenizer": "english",
                "vocabulary_size": 0,
                "softmax_cutoffs": (),
                "mix": MixConfig(),
            },
        ),
        "embed_lines": (
            embed_lines,
            {
                "elmo": elmo,
                "lines": ["a b", "c"],
                "output": Path("out.npz"),
                "options": EmbedOptions(),
                "n_lines": 2,
            },
        ),
        "embed_file": (
            embed_file,
            {
                "elmo": elmo,
                "path": "lines.txt",
                "output": Path("out.hdf5"),
                "options": EmbedOptions(),
            },
        ),
        "EmbedOptions": (
            lambda **a: embed_lines(elmo, ["a"], Path("o.npz"), EmbedOptions(**a)),
            {
                "layers": "all",
                "dtype": "float32",
                "state": "zero",
                "batch_size": 1,
                "resume": False,
                "restart": True,
            },
        ),
        "pretrain": (
            partial(pretrain, resume=True),
            {"recipe": Recipe(), "paths": RunPaths(**paths), "device": "cpu", "processes": 1},
        ),
        "RunPaths": (
            lambda **a: pretrain(None, RunPaths(**a), resume=True),
            {**paths, "data": None, "init_from": None, "vocabulary": None},
        ),
        "word_similarity": (
            partial(word_similarity, elmo),
            {"first": text, "second": text, "word": "b"},
        ),
        "sentence_similarity": (
            partial(sentence_similarity, elmo),
            {"first": text, "second": text},
        ),
        "token_pairs": (partial(token_pairs, elmo), {"first": text, "second": text}),
        "surprisal": (partial(surprisal, lm), {"text": text}),
    }
