"""``elmokit pretrain``: from text to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.common import DeviceOption, TokenizedOption
from elmokit.errors import InputError


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
            help="whitespace, english, english-hyphens, characters or chinese; english if left "
            "out, or with --init-from the model's own."
        ),
    ] = None,
    tokenized: TokenizedOption = False,
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
        bool,
        typer.Option(
            "--resume",
            help="Continue a run that was stopped; settings of optimizer and training may change.",
        ),
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
    from elmokit.pretrain.recipe import Recipe
    from elmokit.pretrain.run_folder import RunFolder
    from elmokit.pretrain.start import pretrain as run

    if epochs is not None and minutes is not None:
        raise InputError("give --epochs or --minutes, not both; either ends the run")
    in_file = _from_file(recipe, size)
    in_line = _from_line(
        setting or [],
        text={
            "tokenizer": tokenizer,
            "tokenized": tokenized or None,
            "vocabulary_size": vocabulary_size,
        },
        training={"epochs": epochs, "minutes": minutes, "seed": seed},
    )
    if init_from is not None:
        _check_no_sizes(in_file, in_line, size, recipe)
    if vocabulary is not None:
        _check_no_choice_of_words(in_line)
    given = _merged(in_file, in_line)
    settings = RunFolder(out).recipe().changed(given) if resume else Recipe.from_dict(given)
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


def _from_file(path: Path | None, size: str | None) -> dict[str, Any]:
    """The settings of a recipe, or of a published size."""
    from elmokit.pretrain.recipe import read_toml

    if size is None:
        return read_toml(path) if path else {}
    if path is not None:
        raise InputError("give --size or --recipe, not both; a recipe may name a size itself")
    return {"model": {"size": size}}


def _from_line(settings: list[str], **options: dict[str, Any]) -> dict[str, Any]:
    """The settings given on the command line, and those only."""
    from elmokit.config import merge

    values: dict[str, Any] = {}
    for setting in settings:
        _set(values, setting)
    for section, named in options.items():
        if given := {key: value for key, value in named.items() if value is not None}:
            values = merge(values, {section: given})
    return values


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


def _merged(in_file: dict[str, Any], in_line: dict[str, Any]) -> dict[str, Any]:
    """Both together; where only epochs are given, minutes said before no longer end the run."""
    from elmokit.config import merge

    values: dict[str, Any] = {}
    for given in (in_file, in_line):
        training = given.get("training")
        if isinstance(training, dict) and "epochs" in training:
            given = given | {"training": {"minutes": None} | training}
        values = merge(values, given)
    return values


def _check_no_sizes(
    in_file: dict[str, Any], in_line: dict[str, Any], size: str | None, recipe: Path | None
) -> None:
    """Raise where sizes are given beside a model that has its own."""
    given = ["--set model…"] if "model" in in_line else []
    if size is not None:
        given.append("--size")
    elif "model" in in_file or "encoder" in in_file:
        given.append(f"the section [model] of {recipe}")
    if given:
        raise InputError(
            f"with --init-from the model's own size counts; leave out {' and '.join(given)}"
        )


def _check_no_choice_of_words(in_line: dict[str, Any]) -> None:
    """Raise where the words of the text are to be chosen though they are given in a file."""
    text = in_line.get("text", {})
    if given := [name for name in ("vocabulary_size", "min_count") if name in text]:
        raise InputError(
            f"with --vocabulary its words are predicted, all of them; leave out text."
            f"{' and text.'.join(given)}"
        )
