"""Setting up a run: settings, text, vocabulary, and weights to start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from elmokit.config import Mistakes, TokenEncoderConfig
from elmokit.errors import FormatError, InputError
from elmokit.formats import read_model
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.io.lines import find_files, read_lines
from elmokit.pretrain.data.corpus import Corpus
from elmokit.pretrain.data.prepare import TextOptions, prepare
from elmokit.pretrain.data.target_words import MARKS, choose_words, first_biases
from elmokit.pretrain.objective.evaluate import Evaluation
from elmokit.pretrain.processes import Process, joined
from elmokit.pretrain.recipe import Recipe, check_context, check_recased
from elmokit.pretrain.run.folder import RunFolder, Start
from elmokit.pretrain.run.reporter import Reporter
from elmokit.pretrain.trainer import Trainer
from elmokit.pretrain.warm_start import check_softmax, cutoffs, with_words
from elmokit.text.tokenizers import TOKENIZERS
from elmokit.text.vocabulary import Vocabulary

_CHARACTERS = ("<pad>", "<oov>", "<bow>", "<eow>")
"""What an alphabet of words alone still has to have."""

_FIXED = ("training.seed", "optimizer.name", "optimizer.accumulator")
"""Settings that decide how a run begins, so that one that is resumed cannot change them."""


def pretrain(
    paths: Sequence[Path],
    valid: Sequence[Path],
    out: Path,
    recipe: Recipe | None = None,
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
        recipe: All settings; None for the defaults, or with resume for those of the run that was
            stopped.
        resume: Go on with a run that was stopped. Settings of the optimizer and of training may
            differ from what they were; nothing else may.
        init_from: A model to start from, in any known format; its sizes count, and its tokenizer
            where the recipe has none.
        new_vocabulary: With init_from, predict the words of this text instead of the model's own.
        vocabulary: The words to predict, a file with one a line, most frequent first, <S>, </S> and
            <UNK> among them; None for the most frequent ones of the text.
        data: Where the text as numbers is kept, to be used again; None for a folder of the run.
        device: Where to train; None for a GPU where there is one.
        processes: How many tokenise; None for as many as there are processors.
        say: What prints a line, in the first of several processes.

    Returns:
        The evaluation at the end; None if the run was stopped before, and in all processes but the
        first.
    """
    folder, place = RunFolder(out), data or out / "data"
    file = None if vocabulary is None else str(vocabulary.resolve())
    start = Start(_place_of(init_from), new_vocabulary, file)
    with joined(device) as process:
        quiet = say if process.is_first else (lambda _: None)
        if resume:
            recipe, start = _resumed(folder, recipe, start)
            resume = folder.checkpoint.exists()  # else it was stopped before anything was saved
        recipe = recipe or Recipe()
        mistakes, model, words = Mistakes(), None, None
        with mistakes.noted():
            _check_processes(processes)
        with mistakes.noted():
            _check_places(paths, valid, out, place)
        if not resume:
            with mistakes.noted():
                folder.check_free()
            with mistakes.noted():
                words = _given_words(start.vocabulary)
            with mistakes.noted():
                model = _model(start)
        with mistakes.noted():
            recipe = _complete(recipe, model, start)
        mistakes.report()
        if process.is_first and not resume:
            folder.begin(recipe, start)
        train, held_out = _prepare(paths, valid, place, recipe, process, processes)
        base = folder.base() if resume else _base(recipe, train, model, words, start)
        used = _drawable(recipe, len(base.vocabulary or []), quiet)
        if process.is_first and not resume:
            folder.keep_base(base)
            quiet(_summary(base, train, process))
        with closing(Trainer(used, base, train, held_out, folder, process)) as trainer:
            if resume:
                trainer.resume()
                if process.is_first:
                    folder.keep_recipe(recipe, start)
                quiet(f"resuming at step {trainer.progress.step:,}")
            with Reporter(folder, quiet, process.is_first) as reporter:
                found = trainer.run(reporter)
        if found is None:
            quiet(f"stopped and saved; continue with the same command and --resume (run {out})")
        else:
            quiet(f"perplexity {found.mean:.2f}; the model is {folder.best}")
        return found


def _resumed(folder: RunFolder, recipe: Recipe | None, start: Start) -> tuple[Recipe, Start]:
    """Settings and start of a run to go on with; raises where one was given that cannot change."""
    own, begun = folder.recipe(), folder.start()
    recipe = recipe or own
    if recipe.text.tokenizer is None:
        recipe = replace(recipe, text=replace(recipe.text, tokenizer=own.text.tokenizer))
    if recipe.optimizer.learning_rate is None:
        rate = own.optimizer.learning_rate
        recipe = replace(recipe, optimizer=replace(recipe.optimizer, learning_rate=rate))
    before, now = _flat(own.to_dict()), _flat(recipe.to_dict())
    wrong = [
        f"{name}={value} instead of {before[name]}"
        for name, value in now.items()
        if value != before[name]
        and (name in _FIXED or name.partition(".")[0] not in ("optimizer", "training"))
    ]
    wrong += [
        f"--{name.replace('_', '-')}={value} instead of {getattr(begun, name)}"
        for name, value in asdict(start).items()
        if value and value != getattr(begun, name)
    ]
    if wrong:
        raise InputError(
            f"--resume cannot go on with {' and '.join(wrong)}; leave it out, or begin a new run: "
            "only settings of optimizer and training can change, and of these not "
            f"{', '.join(_FIXED)}"
        )
    return recipe, begun


def _flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings by their names, as optimizer.learning_rate."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        inner = _flat(value, f"{before}{key}.") if isinstance(value, dict) else None
        flat |= {before + key: value} if inner is None else inner
    return flat


def _place_of(model: str | None) -> str | None:
    """A model's path, which means the same wherever the run is resumed; a name stays a name."""
    if model is None:
        return None
    path = Path(model).expanduser()
    return str(path.resolve()) if path.exists() or "/" in model else model


def _model(start: Start) -> Checkpoint | None:
    """The model gone on with, if any."""
    if start.init_from is not None:
        return read_model(start.init_from)
    if start.new_vocabulary:
        raise InputError(
            "--new-vocabulary is for going on with a model, and without --init-from it has no "
            "effect; leave it out, or give a model"
        )
    return None


def _complete(recipe: Recipe, model: Checkpoint | None, start: Start) -> Recipe:
    """A recipe that leaves nothing open.

    Text is split as asked for, as the model does, or as English; the learning rate is the one asked
    for, or what suits the model. Raises where the model cannot be gone on with that way.
    """
    mistakes, text, context = Mistakes(), recipe.text, recipe.model.context
    name = text.tokenizer or "english"
    if model is not None:
        context = model.config.context
        with mistakes.noted():
            check_context(recipe.batch.order, model.config.context)
        with mistakes.noted():
            check_recased(recipe.training, bool(model.config.token_encoder.filters))
        if _keeps_words(model, start):
            with mistakes.noted():
                check_softmax(model.config, recipe.softmax)
        name = text.tokenizer or model.config.tokenizer
    if text.tokenized:
        name = "whitespace"
    elif name not in TOKENIZERS:
        with mistakes.noted():
            raise InputError(
                f"the model splits text by {name}, which is not known here; give --tokenizer, or "
                "tokenised text and --tokenized"
            )
    mistakes.report()
    return replace(
        recipe,
        text=replace(text, tokenizer=name),
        optimizer=recipe.optimizer.for_width(context.cell_dim),
    )


def _keeps_words(model: Checkpoint, start: Start) -> bool:
    """Whether the words predicted stay those of the model gone on with."""
    changed = start.new_vocabulary or start.vocabulary is not None
    return model.vocabulary is not None and not changed


def _given_words(path: str | None) -> list[str] | None:
    """The words to predict, from a file; None where the text's own are to be."""
    if path is None:
        return None
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; give one with the words to predict, one a line")
    words = [line for line in read_lines(Path(path)) if line]
    try:
        Vocabulary(words)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    if len(words) == len(MARKS):
        raise InputError(f"{path} has no word but {', '.join(MARKS)}; give the words to predict")
    return words


def _check_processes(processes: int | None) -> None:
    if processes is not None and processes < 1:
        raise InputError(f"--processes must be at least 1, not {processes}")


def _check_places(paths: Sequence[Path], valid: Sequence[Path], out: Path, data: Path) -> None:
    """Raise where text would be trained and evaluated on, or what is written be read as text."""
    for folder in (path for path in (*paths, *valid) if path.is_dir()):
        for name, place in (("folder of the run", out), ("folder for --data", data)):
            if place.resolve().is_relative_to(folder.resolve()):
                raise InputError(
                    f"the {name}, {place}, is inside the text folder {folder}, where it would be "
                    "read as text; choose a place outside of it"
                )
    train, held_out = ({p.resolve() for p in find_files(some)} for some in (paths, valid))
    if both := sorted(train & held_out):
        raise InputError(
            f"{both[0]} is among the training text and the validation text; keep the validation "
            "text apart"
        )


def _prepare(
    paths: Sequence[Path],
    valid: Sequence[Path],
    place: Path,
    recipe: Recipe,
    process: Process,
    processes: int | None,
) -> tuple[Corpus, Corpus]:
    """Both texts as numbers; the first process makes them, and the others find them done."""
    options = TextOptions(recipe.text.tokenizer or "english", recipe.text.tokenized)
    if not process.is_first:
        process.wait()
    train = prepare(paths, place / "train", options, processes, "training text")
    held_out = prepare(valid, place / "valid", options, processes, "validation text")
    if process.is_first:
        process.wait()
    return train, held_out


def _drawable(recipe: Recipe, n_words: int, say: Callable[[str], None]) -> Recipe:
    """A recipe with the full softmax where there are too few words to draw some of them."""
    if recipe.softmax.kind != "sampled" or recipe.softmax.samples <= n_words // 2:
        return recipe
    say(
        f"the vocabulary has only {n_words:,} words, so that none are drawn: the full softmax is "
        "used"
    )
    return replace(recipe, softmax=replace(recipe.softmax, kind="full"))


def _summary(base: Checkpoint, train: Corpus, process: Process) -> str:
    unknown = 1 - _known_share(train, base.vocabulary or [])
    return (
        f"{train.n_tokens:,} tokens in {len(train):,} sentences, {train.n_words:,} different "
        f"words; vocabulary of {len(base.vocabulary or []):,}, {unknown:.2%} of the text unknown; "
        f"{base.n_parameters:,} parameters and the softmax, on "
        f"{process.size} × {process.device.type}"
    )


def _known_share(corpus: Corpus, vocabulary: Sequence[str]) -> float:
    known = set(vocabulary)
    counts = corpus.counts.tolist()
    return sum(n for w, n in zip(corpus.words, counts, strict=True) if w in known) / corpus.n_tokens


def _base(
    recipe: Recipe, train: Corpus, model: Checkpoint | None, words: list[str] | None, start: Start
) -> Checkpoint:
    """Sizes, vocabulary and weights to start from; the words given, or those of the text."""
    tokenizer = _tokenizer_of(recipe)
    if model is not None and _keeps_words(model, start):
        return replace(model, config=replace(model.config, tokenizer=tokenizer))
    if words is None:
        words = choose_words(train, recipe.text.vocabulary_size, recipe.text.min_count)
    if model is not None:
        base = with_words(model, words, recipe.softmax)
        base = replace(base, config=replace(base.config, tokenizer=tokenizer))
    else:
        base = _new(recipe, words, tokenizer)
    if recipe.softmax.frequencies and not any(k.startswith(SOFTMAX) for k in base.tensors):
        base = replace(base, tensors=base.tensors | first_biases(base.config, train, words))
    return base


def _new(recipe: Recipe, words: list[str], tokenizer: str) -> Checkpoint:
    """Sizes and vocabulary of a model without weights."""
    config = replace(
        recipe.model,
        vocabulary_size=len(words),
        softmax_cutoffs=cutoffs(recipe.softmax, len(words)),
        tokenizer=tokenizer,
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


def _tokenizer_of(recipe: Recipe) -> str:
    return "whitespace" if recipe.text.tokenized else recipe.text.tokenizer or "english"
