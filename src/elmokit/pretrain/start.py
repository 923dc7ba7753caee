"""Setting up a run: text, vocabulary, weights to start from, and the processes that share it."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch import distributed as dist

from elmokit.config import TokenEncoderConfig
from elmokit.data.corpus import Corpus
from elmokit.data.prepare import TextOptions, prepare
from elmokit.data.text_files import read_lines
from elmokit.devices import choose_device
from elmokit.errors import ConfigError, FormatError
from elmokit.formats import read_model
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.nn.bilm import BiLM
from elmokit.pretrain.evaluate import Evaluation
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.reports import Reporter
from elmokit.pretrain.run_folder import RunFolder
from elmokit.pretrain.train import Process, Trainer
from elmokit.pretrain.vocabulary import MARKS, choose_words
from elmokit.text.vocabulary import Vocabulary

_CHARACTERS = ("<pad>", "<oov>", "<bow>", "<eow>")
"""What an alphabet of words alone still has to have."""


def pretrain(
    paths: Sequence[Path],
    valid: Sequence[Path],
    out: Path,
    recipe: Recipe,
    *,
    resume: bool = False,
    init_from: str | None = None,
    new_vocabulary: bool = False,
    vocabulary: Path | None = None,
    data: Path | None = None,
    device: str | None = None,
    processes: int | None = None,
    say: Callable[[str], None] = print,
) -> Evaluation | None:
    """Train a biLM.

    Args:
        paths: Text files and folders to train on.
        valid: Text files and folders to evaluate on.
        out: The run's folder.
        recipe: All settings; with resume, those of the run that was stopped count.
        resume: Go on with a run that was stopped.
        init_from: A model to start from, in any known format; its sizes count.
        new_vocabulary: With init_from, predict the words of this text instead of the model's own.
        vocabulary: The words to predict, a file with one a line, most frequent first, <S>, </S> and
            <UNK> among them; None for the most frequent ones of the text.
        data: Where the text as numbers is kept, to be used again; None for a folder of the run.
        device: Where to train; None for a GPU where there is one.
        processes: How many tokenise; None for as many as there are processors.
        say: What prints a line.

    Returns:
        The evaluation at the end; None if the run was stopped before.
    """
    folder = RunFolder(out)
    with _processes(device) as process:
        if resume and folder.recipe() and not folder.checkpoint.exists():
            resume = False  # it was stopped before anything was saved
        if resume:
            recipe = folder.recipe()
        elif process.is_first:
            folder.begin(recipe)
        text = TextOptions(recipe.text.tokenizer, recipe.text.tokenized)
        place = data or out / "data"
        if process.is_first:  # the others find it done
            prepare(paths, place / "train", text, processes)
            prepare(valid, place / "valid", text, processes)
        _wait(process)
        train = prepare(paths, place / "train", text)
        held_out = prepare(valid, place / "valid", text)
        words = folder.vocabulary() if resume else _words(recipe, train, vocabulary)
        quiet = (lambda _: None) if not process.is_first else say
        base = _base(recipe, words, init_from, new_vocabulary or vocabulary is not None)
        n_words = len(base.vocabulary or [])
        if recipe.softmax.kind == "sampled" and recipe.softmax.samples > n_words // 2:
            quiet(
                f"the vocabulary has only {n_words:,} words, so that none are drawn: the full "
                "softmax is used"
            )
            recipe = replace(recipe, softmax=replace(recipe.softmax, kind="full"))
        if process.is_first and not resume:
            folder.write("vocabulary.txt", "".join(w + "\n" for w in base.vocabulary or []))
            quiet(_summary(recipe, base, train, process))
        trainer = Trainer(recipe, base, train, held_out, folder, process)
        if resume:
            trainer.resume()
            quiet(f"resuming at step {trainer.progress.step:,}")
        with Reporter(folder, quiet) as reporter:
            return trainer.run(reporter)


def _summary(recipe: Recipe, base: Checkpoint, train: Corpus, process: Process) -> str:
    unknown = 1 - _known_share(train, base.vocabulary or [])
    return (
        f"{train.n_tokens:,} tokens in {len(train):,} sentences, {train.n_words:,} different "
        f"words; vocabulary of {len(base.vocabulary or []):,}, {unknown:.2%} of the text unknown; "
        f"{_n_parameters(base):,} parameters and the softmax, on "
        f"{process.size} × {process.device.type}"
    )


def _known_share(corpus: Corpus, vocabulary: Sequence[str]) -> float:
    known = set(vocabulary)
    counts = corpus.counts.tolist()
    return sum(n for w, n in zip(corpus.words, counts, strict=True) if w in known) / corpus.n_tokens


def _n_parameters(base: Checkpoint) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in BiLM(base.config).parameters())


def _words(recipe: Recipe, train: Corpus, path: Path | None) -> list[str]:
    """The words to predict."""
    if path is None:
        return choose_words(train, recipe.text.vocabulary_size, recipe.text.min_count)
    words = [line for line in read_lines(path) if line]
    try:
        Vocabulary(words)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    return words


def _base(
    recipe: Recipe, words: list[str], init_from: str | None, new_vocabulary: bool
) -> Checkpoint:
    """Sizes, vocabulary and weights to start from."""
    if init_from is not None:
        return from_model(read_model(init_from), words, new_vocabulary, recipe)
    config = replace(
        recipe.model,
        vocabulary_size=len(words),
        softmax_cutoffs=_cutoffs(recipe, len(words)),
        tokenizer=_tokenizer_of(recipe),
    )
    if recipe.encoder == "char_cnn":
        return Checkpoint(config, {}, words)
    known = ["<oov>", "<bos>", "<eos>", *(word for word in words if word not in MARKS)]
    encoder = TokenEncoderConfig(
        filters=(),
        n_highway=0,
        alphabet="codepoints",
        n_characters=len(_CHARACTERS),
        word_dim=config.context.projection_dim,
        n_words=len(known),
    )
    config = replace(config, token_encoder=encoder)
    return Checkpoint(config, {}, words, list(_CHARACTERS), known)


def _cutoffs(recipe: Recipe, size: int) -> tuple[int, ...]:
    if recipe.softmax.kind != "adaptive":
        return ()
    return tuple(c for c in recipe.softmax.cutoffs if c < size - 1) or (size // 2,)


def _tokenizer_of(recipe: Recipe) -> str:
    return "whitespace" if recipe.text.tokenized else recipe.text.tokenizer


def from_model(
    model: Checkpoint, words: list[str], new_vocabulary: bool, recipe: Recipe
) -> Checkpoint:
    """A model to go on with, its vocabulary kept or changed."""
    adaptive = bool(model.config.softmax_cutoffs)
    if model.vocabulary is not None and not new_vocabulary:
        if adaptive != (recipe.softmax.kind == "adaptive"):
            kept = "an adaptive" if adaptive else "a full"
            raise ConfigError(
                f"the model has {kept} softmax, which softmax.kind={recipe.softmax.kind} cannot go "
                "on with; choose another kind, or --new-vocabulary"
            )
        return model
    cutoffs = _cutoffs(recipe, len(words))
    config = replace(model.config, vocabulary_size=len(words), softmax_cutoffs=cutoffs)
    tensors = {k: v for k, v in model.tensors.items() if not k.startswith(SOFTMAX)}
    changed = replace(model, config=config, vocabulary=words, tensors=tensors)
    if not (adaptive or cutoffs or model.vocabulary is None):
        softmax = new_softmax(model, words, changed)
        changed.tensors |= {SOFTMAX + name: value for name, value in softmax.items()}
    return changed


@torch.no_grad()
def new_softmax(model: Checkpoint, words: Sequence[str], changed: Checkpoint) -> dict[str, Tensor]:
    """Rows for a new vocabulary: those of shared words kept, the others guessed from characters.

    The guess is the linear map from token vectors to rows that fits the shared words best.
    """
    assert model.vocabulary is not None
    width = model.config.context.projection_dim
    old_row = {word: i for i, word in enumerate(model.vocabulary)}
    old_weight = model.tensors[SOFTMAX + "weight"].float()
    old_bias = model.tensors[SOFTMAX + "bias"].float()
    vectors = _token_vectors(changed, words)
    shared = [(i, old_row[word]) for i, word in enumerate(words) if word in old_row]
    here, there = (torch.tensor(list(t)) for t in zip(*shared, strict=True))
    with_one = torch.cat([vectors, torch.ones(len(vectors), 1)], 1).double()
    wanted = torch.cat([old_weight[there], old_bias[there, None]], 1).double()
    known = with_one[here]
    ridge = 1e-3 * len(known) * torch.eye(width + 1, dtype=torch.float64)
    fit = torch.linalg.solve(known.t() @ known + ridge, known.t() @ wanted)
    rows = (with_one @ fit).float()
    rows[here] = wanted.float()
    return {"weight": rows[:, :width].contiguous(), "bias": rows[:, width].contiguous()}


def _token_vectors(model: Checkpoint, words: Sequence[str]) -> Tensor:
    with torch.device("meta"):
        bilm = BiLM(model.config)
    own = {k: v.float() for k, v in model.tensors.items() if not k.startswith(SOFTMAX)}
    bilm.load_state_dict(own, assign=True)
    alphabet = model.alphabet()
    parts = [
        bilm.token_encoder(torch.from_numpy(alphabet.encode(words[i : i + 512])))
        for i in range(0, len(words), 512)
    ]
    return torch.cat(parts)


@contextmanager
def _processes(device: str | None) -> Iterator[Process]:
    """This process, joined with the others that torchrun started, if it did."""
    # batches differ in size, and memory that cannot grow would be asked for anew again and again
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Process(device=choose_device(device))
        return
    rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
    chosen = choose_device(device)
    if chosen.type == "cuda":
        chosen = torch.device("cuda", local)
        torch.cuda.set_device(chosen)
    backend = "nccl" if chosen.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=datetime.timedelta(hours=2))
    try:
        yield Process(rank, size, chosen)
    finally:
        dist.destroy_process_group()


def _wait(process: Process) -> None:
    if process.size > 1:
        dist.barrier()
