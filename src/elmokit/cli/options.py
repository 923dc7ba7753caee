"""Options that several commands share. ``with_model`` gives a command all that choose a model."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from elmokit.errors import InputError, shown
from elmokit.settings import MOST_SEED
from elmokit.text.tokenizers import TOKENIZERS

if TYPE_CHECKING:
    from elmokit.cluster.shard_writer import ModelSpec
    from elmokit.elmo import Elmo


def choice(*choices: str, help: str, **keywords: Any) -> Any:
    """An option with a fixed set of values: the help shows them, the shell completes them.

    The library checks the value, and its error is one sentence instead of a box.
    """
    keywords.setdefault("metavar", f"[{'|'.join(choices)}]")
    return typer.Option(help=help, autocompletion=lambda: list(choices), **keywords)


def check_text(path: Path) -> Path:
    """Check that a text file or folder exists, before the work starts."""
    check_texts([path])
    return path


def check_texts(paths: list[Path] | None) -> list[Path]:
    """Check that text files or folders exist, before the work starts."""
    from elmokit.io.lines import find_files

    find_files(paths or [])
    return paths or []


def _check_seed(seed: int) -> int:
    if not 0 <= seed <= MOST_SEED:
        raise InputError(f"--seed must be from 0 to {MOST_SEED:,}, not {shown(seed)}")
    return seed


_TEXT = "plain or compressed (.gz, .xz, .zst); - for standard input."
TextArgument = Annotated[
    Path, typer.Argument(help=f"Text file or folder, {_TEXT}", callback=check_text)
]
TextsArgument = Annotated[
    list[Path], typer.Argument(help=f"Text files or folders, {_TEXT}", callback=check_texts)
]
OptionalTextsArgument = Annotated[
    list[Path] | None, typer.Argument(help=f"Text files or folders, {_TEXT}", callback=check_texts)
]
TokenizedOption = Annotated[
    bool, typer.Option("--tokenized", help="Read each line as one sentence, split at white space.")
]
DeviceOption = Annotated[
    str | None, typer.Option(help="cpu, cuda or cuda:N.", show_default="GPU if available")
]
SeedOption = Annotated[
    int, typer.Option(callback=_check_seed, help="The same seed gives the same numbers.")
]
MostTokens = Annotated[
    int | None, typer.Option(help="Maximum tokens.", show_default="the whole text")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")]
RestartOption = Annotated[
    bool, typer.Option("--restart", help="Discard the results of a stopped run and start over.")
]


@dataclass(frozen=True)
class ModelOptions:
    """The model that the command line chose. Each field is an option of its own."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="biLM: a folder, a ZIP archive or a name; en and zh are bundled.",
            show_default="en",
        ),
    ] = None
    options_file: Annotated[
        Path | None, typer.Option(help="Published options.json, instead of --model.")
    ] = None
    weight_file: Annotated[
        Path | None, typer.Option(help="HDF5 weights that belong to --options-file.")
    ] = None
    tokenizer: Annotated[
        str | None,
        choice(
            *TOKENIZERS,
            metavar="TEXT",  # the choices are too long for the column
            help=f"How to split text: {', '.join(TOKENIZERS)}.",
            show_default="the model's own",
        ),
    ] = None
    device: DeviceOption = None
    quantize: Annotated[
        str | None,
        choice(
            "int8",
            "bfloat16",
            help="Run large models faster, less exactly: int8 on a CPU, bfloat16 on a GPU.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether a model was chosen, or the default is meant."""
        return (self.model, self.options_file, self.weight_file) != (None, None, None)

    def load(self, tokenized: bool = False) -> Elmo:
        """Open the model.

        Args:
            tokenized: The text is tokenised, so split it at white space only.
        """
        from elmokit.elmo import Elmo

        return Elmo.load(
            self.model,
            options=self.options_file,
            weights=self.weight_file,
            tokenizer=self._tokenizer(tokenized),
            device=self.device,
            quantize=self.quantize,
        )

    def spec(self, tokenized: bool = False) -> ModelSpec:
        """The model as workers in other folders and on other machines open it.

        Args:
            tokenized: As for :meth:`load`.
        """
        from elmokit.cluster.shard_writer import ModelSpec

        return ModelSpec(
            _everywhere(self.model),
            _everywhere(self.options_file),
            _everywhere(self.weight_file),
            tokenizer=self._tokenizer(tokenized),
            device=self.device,
            quantize=self.quantize,
        )

    def _tokenizer(self, tokenized: bool) -> str | None:
        if tokenized and self.tokenizer not in (None, "whitespace"):
            raise InputError("--tokenized means white space; leave out --tokenizer")
        return "whitespace" if tokenized else self.tokenizer


def _everywhere(path: str | Path | None) -> str | None:
    """A path that is right in every folder; the name of a bundled model stays as it is."""
    if path is None:
        return None
    return str(Path(path).absolute()) if Path(path).exists() else str(path)


def with_model(
    *, leave_out: Collection[str] = (), defaults: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of :class:`ModelOptions` to a command, which gets them as ``model``.

    Typer reads a command's options from its signature, so the command is wrapped in a function
    whose signature has these options in place of the parameter ``model``.

    Args:
        leave_out: Options that make no sense for this command.
        defaults: What the help says of a default that differs from the usual one.
    """
    shared = _parameters(leave_out, defaults or {})

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            chosen = {parameter.name: given.pop(parameter.name) for parameter in shared}
            command(model=ModelOptions(**chosen), **given)

        signature = inspect.signature(command, eval_str=True)
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in signature.parameters.values()
            if parameter.name != "model"
        ]
        parameters = [*own, *shared]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def _parameters(leave_out: Collection[str], defaults: Mapping[str, str]) -> list[inspect.Parameter]:
    """The fields of ModelOptions as parameters of a command."""
    hints = get_type_hints(ModelOptions, include_extras=True)
    found = []
    for field in fields(ModelOptions):
        if field.name in leave_out:
            continue
        type_, option = get_args(hints[field.name])
        option = copy.copy(option)
        option.rich_help_panel = "Model"
        option.show_default = defaults.get(field.name, option.show_default)
        found.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=Annotated[type_, option],
            )
        )
    return found
