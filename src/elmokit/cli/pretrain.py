"""``elmokit pretrain``: from text to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli.common import DeviceOption
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.pretrain.recipe import Recipe


def pretrain(
    text: Annotated[
        list[Path], typer.Argument(help="Text files or folders: plain, .gz, .xz or .zst.")
    ],
    valid: Annotated[
        list[Path], typer.Option(help="Text to evaluate on, kept apart; may be repeated.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    size: Annotated[
        str | None, typer.Option(help="small, medium or original; small if left out.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="Settings, a TOML file.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the text.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Instead of epochs: how long to train.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="whitespace, english, english-hyphens, characters or chinese; english if left out."
        ),
    ] = None,
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Lines are sentences, tokens apart by white space.")
    ] = False,
    vocabulary_size: Annotated[int | None, typer.Option(help="Most words of the softmax.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same run.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting of a recipe, as optimizer.learning_rate=0.001."),
    ] = None,
    init_from: Annotated[
        str | None, typer.Option(help="Go on from a model: folder, ZIP archive or name.")
    ] = None,
    new_vocabulary: Annotated[
        bool,
        typer.Option("--new-vocabulary", help="With --init-from: predict this text's own words."),
    ] = False,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="The words to predict, one a line, instead of the text's own."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was stopped.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Where to keep the text as numbers; RUN/data if left out.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes that tokenise; all processors if left out.")
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Train a biLM on text of your own.

    The folder of the run holds settings, vocabulary, metrics, a checkpoint to resume from, and
    under best/ the model, ready for every other command. Ctrl-C saves and leaves.
    """
    from elmokit.pretrain.start import pretrain as run

    if init_from is not None and size is not None:
        raise InputError("with --init-from the model's own size counts; leave out --size")
    settings = _recipe(recipe, size, setting or [])
    text_changes: dict[str, Any] = {"tokenizer": tokenizer, "vocabulary_size": vocabulary_size}
    if tokenized:
        text_changes["tokenized"] = True
    training = {"epochs": epochs, "minutes": minutes, "seed": seed}
    settings = _changed(settings, {"text": text_changes, "training": training})
    result = run(
        text,
        valid,
        out,
        settings,
        resume=resume,
        init_from=init_from,
        new_vocabulary=new_vocabulary,
        vocabulary=vocabulary,
        data=data,
        device=device,
        processes=processes,
    )
    if result is None:
        print(f"stopped and saved; continue with the same command and --resume (run {out})")
    else:
        print(f"perplexity {result.mean:.2f}; the model is {out / 'best'}")


def _recipe(path: Path | None, size: str | None, settings: list[str]) -> Recipe:
    from elmokit.pretrain.recipe import Recipe, read_toml

    values = read_toml(path) if path else {}
    if size is not None:
        if path is not None:
            raise InputError("give --size or --recipe, not both; a recipe may name a size itself")
        values = {"model": {"size": size}}
    for setting in settings:
        _set(values, setting)
    return Recipe.from_dict(values)


def _set(values: dict[str, Any], setting: str) -> None:
    """Put section.key=value where it belongs."""
    from elmokit.pretrain.recipe import parse_toml

    name, sign, value = setting.partition("=")
    *sections, key = name.split(".")
    if not sign or not sections:
        raise InputError(f"--set takes section.key=value, not {setting!r}")
    for section in sections:
        values = values.setdefault(section, {})
    parsed = parse_toml(f"x = {value}")
    values[key] = value if parsed is None else parsed["x"]


def _changed(recipe: Recipe, changes: dict[str, dict[str, Any]]) -> Recipe:
    """A recipe with those options changed that were given."""
    from elmokit.config import merge
    from elmokit.pretrain.recipe import Recipe

    given = {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in changes.items()
    }
    return Recipe.from_dict(merge(recipe.to_dict(), given))
