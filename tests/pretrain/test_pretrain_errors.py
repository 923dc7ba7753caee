"""What goes wrong in pretraining, and what is said then."""

import errno
import json
import math
import re
from pathlib import Path

import pytest
import torch

from elmokit import Elmo
from elmokit.cli import recipe_options as given
from elmokit.errors import (
    ConfigError,
    FormatError,
    InputError,
    OutputError,
)
from elmokit.pretrain.recipe import Recipe, TextSettings, TrainingSettings, read_toml
from elmokit.pretrain.score import evaluate_model
from elmokit.pretrain.start import pretrain
from helpers.pretraining import (
    recipe,
    reports,
    run,
    same_weights,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": {"vocabulary_size": 2}}, "text.vocabulary_size must be 4 or more"),
        ({"batch": {"order": "random"}}, "batch.order must be sentences or stream or documents"),
        ({"softmax": {"kind": "half"}}, "softmax.kind must be full or sampled or adaptive"),
        (
            {"optimizer": {"betas": [0.9]}},
            "betas must be a list of 2, each a number, not",
        ),
        ({"training": {"epochs": "two"}}, "training.epochs must be a number, not 'two'"),
        ({"optimizer": {"learning_rate": "abc"}}, "rate must be a number or nothing, not 'abc'"),
        ({"training": {"minutes": math.inf}}, "training.minutes must be above 0, and finite"),
        ({"text": {"tokenizer": "none"}}, "text.tokenizer must be whitespace or english or .* not"),
        ({"model": 3}, "model must be a section of settings, not 3"),
        ({"model": {"size": ["small"]}}, "there is no size \\['small'\\]"),
        ({"model": {"tokenizer": "english"}}, "model.tokenizer follows from text.tokenizer; choo"),
        ({"model": {"vocabulary_size": 9}}, "model.vocabulary_size follows from text.vocabulary_"),
        ({"model": {"softmax_cutoffs": [3]}}, "model.softmax_cutoffs follows from softmax.cutoffs"),
        ({"model": {"token_encoder": {"word_dim": 9, "n_words": 9}}}, "choose model.encoder=words"),
        ({"training": {"recased": 1.5}}, "training.recased must be from 0 to 1"),
        ({"training": {"recased": 0.1}, "encoder": "words"}, "for models that read characters"),
    ],
)
def test_wrong_settings(change, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.from_dict(change)


def test_all_mistakes_at_once(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[trainning]\n[text]\nsize = 3\nmin_count = "x"\n[model.context]\nlayers = 3\n')
    with pytest.raises(ConfigError) as error:
        Recipe.read(path)
    for part in (
        "no section trainning",
        "unknown setting size",
        "text.min_count",
        "setting layers",
    ):
        assert part in str(error.value)
    path.write_text("not = = toml")
    with pytest.raises(ConfigError, match="is not TOML"):
        Recipe.read(path)


def test_no_mistake_hides_another():
    model = {
        "encoder": "bytes",
        "depth": 3,
        "token_encoder": {"n_highway": -1},
        "context": {"heads": 2, "n_layers": 0, "kind": "transformer"},
    }
    values = {"model": model, "text": {"size": 3, "min_count": 0}, "batch": {"order": "stream"}}
    with pytest.raises(ConfigError) as error:
        Recipe.from_dict(values)
    for part in (
        "text has the unknown setting size",
        "text.min_count must be 1 or more",
        "context has the unknown setting heads",
        "context.n_layers must be 1 or more",
        "token_encoder.n_highway must be 0 or more",
        "config has the unknown setting depth",
        "model.encoder must be char_cnn or words",
    ):
        assert part in str(error.value)
    model |= {"context": {"kind": "transformer"}, "token_encoder": {}}
    with pytest.raises(ConfigError, match=r"setting depth.*model.encoder must be"):
        Recipe.from_dict(values)
    del model["depth"]
    with pytest.raises(ConfigError, match=r"model.encoder must be.*order=stream carries a state"):
        Recipe.from_dict(values)


def test_too_few_words_to_draw_from(text, tmp_path):
    said = []
    settings = recipe(softmax={"kind": "sampled"}, training={"epochs": 1})
    pretrain(*text, tmp_path / "run", settings, device="cpu", say=said.append)
    assert "only 26 words" in said[0]
    assert "full softmax is used" in said[0]


def test_bad_text(text, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n\n")
    with pytest.raises(InputError, match="the training text is empty: there is no word in"):
        run(([empty], text[1]), tmp_path / "a", recipe())
    with pytest.raises(InputError, match="the validation text is empty: there is no word in"):
        run((text[0], [empty]), tmp_path / "a", recipe())
    with pytest.raises(InputError, match="there is no file"):
        run(([tmp_path / "nowhere"], text[1]), tmp_path / "b", recipe())
    with pytest.raises(InputError, match="fewer than one batch of 10,000,000"):
        run(text, tmp_path / "c", recipe(batch={"tokens": 10**7}))
    with pytest.raises(InputError, match="fewer than one batch of"):
        run(text, tmp_path / "d", recipe(batch={"tokens": 10**7, "order": "stream"}))
    with pytest.raises(InputError, match="no word of the text occurs 1,000,000 times"):
        run(text, tmp_path / "e", recipe(text={"min_count": 1_000_000}))


def test_places_of_text(text, tmp_path):
    train, valid = text
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "valid.txt").symlink_to(valid[0])
    (folder / "train.txt").write_text(train[0].read_text())
    with pytest.raises(InputError, match="valid.txt is among the training text and the valid"):
        run(([folder], valid), tmp_path / "run", recipe())
    (folder / "valid.txt").unlink()
    with pytest.raises(InputError, match="run, .*, is inside the text folder .*; choose a place"):
        run(([folder], valid), folder / "deep" / "run", recipe())
    with pytest.raises(InputError, match="--data, .*, is inside the text folder"):
        run((train, [folder]), tmp_path / "run", recipe(), data=tmp_path / "run/../texts/data")
    assert [p.name for p in folder.iterdir()] == ["train.txt"]
    assert not (tmp_path / "run").exists()
    assert run(([folder], valid), tmp_path / "run", recipe(training={"epochs": 0.1})) is not None


@pytest.mark.parametrize(
    ("flags", "messages"),
    [
        # without any effect
        (["--new-vocabulary"], ["without --init-from it has no effect"]),
        (["--init-from", "x", "--size", "small"], ["own size counts; leave out --size"]),
        (["--init-from", "x", "--set", "model.context.n_layers=1"], ["leave out --set model"]),
        (["--init-from", "x", "--recipe", "sized.toml"], ["section [model] of"]),
        (["--vocabulary", "words.txt", "--vocabulary-size", 9], ["out text.vocabulary_size"]),
        (["--vocabulary", "words.txt", "--set", "text.min_count=1"], ["leave out text.min_count"]),
        (
            ["--init-from", "model", "--vocabulary-size", 9, "--set", "text.min_count=1"],
            ["leave out text.vocabulary_size and text.min_count, or add --new-vocabulary"],
        ),
        (["--tokenized", "--tokenizer", "english"], ["text.tokenizer must be left out with"]),
        (["--set", "model.encoder=words", "--recipe", "cnn.toml"], ["no use for model.token_enc"]),
        # impossible
        (["--set", "model.context.cell_dim=128"], ["projection_dim that differs from context.cel"]),
        (
            ["--init-from", "model", "--set", "softmax.kind=adaptive", "--processes", 0,
             "--vocabulary", "none.txt"],
            ["--processes must be at least 1, not 0", "there is no file", "none.txt"],
        ),
        (["--init-from", "model", "--set", "softmax.kind=adaptive"], ["has a full softmax, which"]),
        (["--init-from", "nowhere", "--vocabulary", "twice.txt"],
         ["no model 'nowhere'", "1 words more than once"]),
        (["--vocabulary", "marks.txt"], ["no word but <S>, </S>, <UNK>"]),
        (["--tokenizer", "none", "--minutes", "inf"],
         ["text.tokenizer must be whitespace or", "training.minutes must be above 0, and finite"]),
        (["--epochs", 1, "--minutes", 1, "--size", "tiny", "--set", "x"],
         ["not both", "no size 'tiny'", "--set takes section.key=value, not 'x'"]),
        (["--set", "a.b.x=1", "--set", "a.b.x.y=2"], ["a.b.x.y=2 contradicts another --set"]),
        (["--processes", -1], ["--processes must be at least 1, not -1"]),
        (["--recipe", "three.toml"], ["model must be a section of settings, not 3"]),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_anything_starts(
    cli, text, tmp_path, lm_folder, monkeypatch, flags, messages
):
    monkeypatch.chdir(tmp_path)
    Path("model").symlink_to(lm_folder)
    Path("sized.toml").write_text("[model.context]\ncell_dim = 64\n")
    Path("cnn.toml").write_text("[model.token_encoder]\nn_highway = 2\n")
    Path("three.toml").write_text("model = 3\n")
    Path("twice.txt").write_text("</S>\n<S>\n<UNK>\nthe\nthe\n")
    Path("marks.txt").write_text("</S>\n<S>\n<UNK>\n")
    done = cli("pretrain", text[0][0], "--valid", text[1][0], "--out", "run", *flags)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    for message in messages:
        assert message in done.stderr
    assert not Path("run").exists()


def test_what_is_said_last_counts(tiny_folder):
    """On the command line, over a recipe."""
    in_file = {"text": {"tokenizer": "chinese"}, "training": {"minutes": 5}}
    in_line = given.from_line([], {"text": {"tokenized": True}, "training": {"epochs": 2}})
    found = Recipe.from_dict(given.merged(in_file, in_line))
    assert found.text == TextSettings(tokenized=True)
    assert found.training == TrainingSettings(epochs=2)
    # a model without a softmax leaves the choice of words
    given.check_words({"text": {"min_count": 3}}, None, str(tiny_folder))


def test_part_of_what_torchrun_says(text, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    for name in ("RANK", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="WORLD_SIZE=2, but not RANK and MASTER_PORT; start all"):
        run(text, tmp_path / "run", recipe())
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(InputError, match="WORLD_SIZE=two, where a number was expected"):
        run(text, tmp_path / "run", recipe())


def test_tokenised_text_has_no_tokenizer(text, lm_folder):
    with pytest.raises(InputError, match="not split by a tokenizer; leave out english"):
        evaluate_model(str(lm_folder), text[1], "english", tokenized=True, device="cpu")


def test_recipes_of_the_package():
    recipes = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
    assert len(recipes) >= 4
    for path in recipes:
        read = Recipe.read(path)
        assert Recipe.from_dict(json.loads(json.dumps(read.to_dict()))) == read
        assert read.changed({}) == read == read.changed(read_toml(path))


@pytest.mark.parametrize("guide", ["train.md", "train.zh-CN.md"])
def test_the_guides_name_every_setting(guide):
    text = (Path(__file__).parents[2] / "docs" / guide).read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| `")]
    settings = Recipe().to_dict()
    model = settings.pop("model")
    sections = settings | {f"model.{name}": model[name] for name in ("token_encoder", "context")}
    sections["model"] = {"size": "", "encoder": sections.pop("encoder")}
    derived = {"n_characters", "alphabet", "word_dim", "n_words"}  # not for training
    for section, names in sections.items():
        rows = "".join(line.split("|")[1] for line in table if line.startswith(f"| `{section}."))
        for name in set(names) - derived:
            assert re.search(rf"[`.]{name}`", rows), (section, name)


def test_a_given_vocabulary(text, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("</S>\n<S>\n<UNK>\nthe\n.\nin\ncat\ndog\n")
    found = run(text, tmp_path / "run", recipe(), vocabulary=path)
    assert 0.3 < found.unknown_rate < 0.6
    elmo = Elmo.load(tmp_path / "run" / "best", device="cpu")
    assert elmo.vocabulary.words[:2] == ("</S>", "<S>")
    lines = [line.split() for line in text[1][0].read_text().splitlines()]
    assert elmo.perplexity(lines).mean == pytest.approx(found.mean, rel=1e-4)
    path.write_text("the\n")
    with pytest.raises(FormatError, match="has no line <S> or </S> or <UNK>"):
        run(text, tmp_path / "none", recipe(), vocabulary=path)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("unexpected pos 64")]
)
def test_no_room_on_the_disk(text, tmp_path, monkeypatch, error):
    """The run stops with a clear word, and what was saved before is still there."""
    save, calls = torch.save, []

    def full(state, file):
        calls.append(1)
        if len(calls) == 3:
            file.write(b"half of it")
            raise error
        save(state, file)

    monkeypatch.setattr(torch, "save", full)
    settings = recipe(training={"epochs": 0.5, "save_every": 0.0})
    with pytest.raises(OutputError, match="last.pt.*untouched.*continue with --resume"):
        run(text, tmp_path / "run", settings)
    assert not list((tmp_path / "run").glob("*.new"))
    assert torch.load(tmp_path / "run" / "last.pt", weights_only=True)["progress"]["step"] == 2
    assert run(text, tmp_path / "run", settings, resume=True) is not None
    run(text, tmp_path / "whole", settings)
    assert same_weights(tmp_path / "whole", tmp_path / "run")


def test_folders_that_are_in_use(text, tmp_path):
    out, short = tmp_path / "run", recipe(training={"epochs": 0.5})
    first = run(text, out, short)
    assert run(text, out, None, resume=True) == first  # nothing is left to do
    with pytest.raises(OutputError, match="holds a run already; add --resume"):
        run(text, out, short)
    with pytest.raises(FormatError, match="not the folder of a run"):
        run(text, tmp_path / "other", short, resume=True)
    (out / "last.pt").write_bytes(b"broken")
    with pytest.raises(FormatError, match="is damaged"):
        run(text, out, short, resume=True)
    with pytest.raises(InputError, match="there is no file"):
        run(([tmp_path / "nowhere"], text[1]), tmp_path / "again", short)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("resume", [True, False])
def test_begun_again(text, tmp_path, resume):
    """A run that was killed before it saved leaves nothing in the new one's way."""
    out, short = tmp_path / "run", recipe(training={"epochs": 0.5})
    run(text, out, short)
    before = [line for line in reports(out) if line["kind"] == "evaluation"]
    (out / "last.pt").unlink()
    for old in (out / "best" / "old", out / "events.old"):
        old.touch()
    assert run(text, out, short, resume=resume) is not None
    assert len([line for line in reports(out) if line["kind"] == "evaluation"]) == len(before)
    assert not (out / "events.old").exists()
    assert not (out / "best" / "old").exists()


def test_other_text(text, tmp_path):
    """Even the same sentences in another order are another text."""
    out, short = tmp_path / "run", recipe(training={"epochs": 0.1})
    run(text, out, short)
    before = (out / "vocabulary.txt").read_text()
    for (path,), name in zip(text, ("training", "validation"), strict=True):
        kept = path.read_text()
        for other in (kept.replace("cat", "cut"), "\n".join(kept.split("\n")[::-1])):
            path.write_text(other)
            with pytest.raises(InputError, match=f"the {name} text is not what it was"):
                run(text, out, short, resume=True)
        path.write_text(kept)
    assert (out / "vocabulary.txt").read_text() == before
    assert run(text, out, short, resume=True) is not None


def test_commands(cli, text, tmp_path):
    wrong = cli("pretrain", text[0][0], "--valid", text[1][0], "--out", tmp_path / "r",
                "--set", "optimizer.lr=1")  # fmt: skip
    assert wrong.returncode == 2
    assert "unknown setting lr" in wrong.stderr
    wrong = cli("evaluate", tmp_path, text[1][0])
    assert wrong.returncode == 2
