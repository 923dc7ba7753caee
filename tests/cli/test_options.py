"""Options that commands share: the model, tokenised text, seeds."""

import inspect
from typing import Annotated, get_args

import pytest
import typer

from elmokit.cli.options import ModelOptions, with_model
from elmokit.errors import InputError
from helpers.commands import COMMANDS, REPORTS

OPTIONS = {"model", "options_file", "weight_file", "tokenizer", "device", "quantize"}
LEFT_OUT = {
    "demo": {"tokenizer"},
    "info": {"tokenizer", "device", "quantize"},
    "probe pos": {"tokenizer"},
    "train": {"quantize"},
    "wsd train": {"tokenizer"},
    "wsd test": {"tokenizer"},
}


OTHERS = {
    "pretrain",
    "convert",
    "predict",
    "evaluate",
    "serve",
}  # their models are not of this kind


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in OTHERS])
def test_every_command_chooses_a_model_the_same_way(command):
    assert OPTIONS & set(COMMANDS[command]) == OPTIONS - LEFT_OUT.get(command, set())
    assert COMMANDS[command]["model"].opts == ["--model", "-m"]
    assert COMMANDS[command]["model"].default is None


def test_with_model():
    got = []

    @with_model(leave_out=("quantize",), defaults={"model": "another"})
    def command(text: str, model: ModelOptions, k: Annotated[int, typer.Option()] = 3) -> None:
        """Say something."""
        got.append((text, model, k))

    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["text", "k", "model", "options_file", "weight_file", "tokenizer",
                                "device"]  # fmt: skip
    assert get_args(parameters["model"].annotation)[1].show_default == "another"
    assert command.__doc__ == "Say something."
    given = dict.fromkeys(OPTIONS - {"quantize"}) | {"device": "cpu"}
    command(text="a", k=4, **given)
    assert got == [("a", ModelOptions(device="cpu"), 4)]


def test_load(tiny_folder):
    options = ModelOptions(str(tiny_folder), tokenizer="english", device="cpu")
    assert options.is_given
    assert not ModelOptions(device="cpu").is_given
    assert options.load().tokenizer.name == "english"
    with pytest.raises(InputError, match="leave out --tokenizer"):
        options.load(tokenized=True)
    assert ModelOptions(str(tiny_folder)).load(tokenized=True).tokenizer.name == "whitespace"


TOKENIZED = sorted(
    name for name, options in COMMANDS.items() if {"tokenized", "options_file"} <= set(options)
)


def test_which_commands_read_tokenized_text():
    assert TOKENIZED == ["change", "embed", "geometry", "index", "perplexity", "perplexity-by"]


@pytest.mark.parametrize("command", TOKENIZED)
def test_tokenized_text_has_no_other_tokenizer(cli, arguments, lm_folder, command):
    given = arguments[command]
    done = cli(command, *given, "--tokenized", "--tokenizer", "english", "-m", lm_folder)
    assert done.returncode == 2
    assert done.stderr == "elmokit: --tokenized means white space; leave out --tokenizer\n"


def test_published_files(cli, arguments, tiny_folder):
    files = ["--options-file", tiny_folder / "options.json"]
    files += ["--weight-file", tiny_folder / "weights.hdf5"]
    for command in ("similarity", "demo", "info"):
        assert cli(command, *arguments.get(command, []), *files).returncode == 0
    done = cli("surprisal", "the cat", *files)
    assert "has no softmax" in done.stderr


SEEDED = [name for name, options in COMMANDS.items() if "seed" in options and name in REPORTS]


@pytest.mark.parametrize("command", SEEDED)
@pytest.mark.parametrize("seed", [-1, 1 << 63])
def test_seeds(cli, arguments, command, seed):
    done = cli(*command.split(), *arguments[command], f"--seed={seed}")
    assert done.returncode == 2
    assert done.stderr.startswith("elmokit: --seed must be from 0 to 4,611,686,018,427,387,903")
