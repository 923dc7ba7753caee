"""Mistakes in calls and commands, found before or while training."""

import errno
from pathlib import Path

import pytest
import torch

from elmokit.errors import FormatError, InputError, OutputError
from helpers.pretraining import recipe, reports, run, same_weights


def test_bad_text(text, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n\n")
    with pytest.raises(InputError, match="the training text is empty: no words in"):
        run(([empty], text[1]), tmp_path / "a", recipe())
    with pytest.raises(InputError, match="the validation text is empty: no words in"):
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
    with pytest.raises(InputError, match="valid.txt is in both the training and the valid"):
        run(([folder], valid), tmp_path / "run", recipe())
    (folder / "valid.txt").unlink()
    with pytest.raises(InputError, match="run folder .* is inside the text folder .*; choose"):
        run(([folder], valid), folder / "deep" / "run", recipe())
    with pytest.raises(InputError, match="data folder .* is inside the text folder"):
        run((train, [folder]), tmp_path / "run", recipe(), data=tmp_path / "run/../texts/data")
    assert [p.name for p in folder.iterdir()] == ["train.txt"]
    assert not (tmp_path / "run").exists()
    assert run(([folder], valid), tmp_path / "run", recipe(training={"epochs": 0.1})) is not None


@pytest.mark.parametrize(
    ("flags", "messages"),
    [
        # without any effect
        (["--new-vocabulary"], ["--new-vocabulary has no effect without --init-from"]),
        (["--init-from", "x", "--size", "small"], ["size of the model; leave out --size"]),
        (["--init-from", "x", "--set", "model.context.n_layers=1"], ["leave out --set model"]),
        (["--init-from", "x", "--recipe", "sized.toml"], ["section [model] of"]),
        (["--vocabulary", "words.txt", "--vocabulary-size", 9], ["out --vocabulary-size"]),
        (["--vocabulary", "words.txt", "--set", "text.min_count=1"], ["leave out text.min_count"]),
        (
            ["--init-from", "model", "--vocabulary-size", 9, "--set", "text.min_count=1"],
            ["leave out --vocabulary-size and text.min_count, or add --new-vocabulary"],
        ),
        (["--tokenized", "--tokenizer", "english"], ["--tokenizer must be left out for tok"]),
        (["--set", "model.encoder=words", "--recipe", "cnn.toml"], ["encoder=words does not use"]),
        # impossible
        (["--set", "model.context.cell_dim=128"], ["must differ for training"]),
        (
            ["--init-from", "model", "--set", "softmax.kind=adaptive", "--processes", 0,
             "--vocabulary", "none.txt"],
            ["--processes 0 must be 1 or more", "no file", "none.txt"],
        ),
        (["--init-from", "model", "--set", "softmax.kind=adaptive"], ["has a full softmax, which"]),
        (["--init-from", "nowhere", "--vocabulary", "twice.txt"],
         ["no model 'nowhere'", "1 words more than once"]),
        (["--vocabulary", "marks.txt"], ["no words besides <S>, </S>, <UNK>"]),
        (["--tokenizer", "none", "--minutes", "inf"],
         ["--tokenizer must be one of", "--minutes must be above 0, at most 1,000,000,000"]),
        (["--epochs", 1, "--minutes", 1, "--size", "tiny", "--set", "x"],
         ["--epochs and --minutes", "size 'tiny'", "--set needs section.key=value, not 'x'"]),
        (["--set", "a.b.x=1", "--set", "a.b.x.y=2"], ["a.b.x.y=2 contradicts another --set"]),
        (["--processes", -1], ["--processes -1 must be 1 or more"]),
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


def test_part_of_what_torchrun_says(text, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    for name in ("RANK", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="WORLD_SIZE=2, but not RANK and MASTER_PORT; start all"):
        run(text, tmp_path / "run", recipe())
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(InputError, match="WORLD_SIZE=two; expected a number"):
        run(text, tmp_path / "run", recipe())


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("unexpected pos 64")]
)
def test_no_room_on_the_disk(text, tmp_path, monkeypatch, error):
    """The run stops with a clear error and keeps the last checkpoint."""
    save, calls = torch.save, []

    def full(state, file):
        calls.append(1)
        if len(calls) == 3:
            file.write(b"half of it")
            raise error
        save(state, file)

    monkeypatch.setattr(torch, "save", full)
    settings = recipe(training={"epochs": 0.5, "save_every": 0.0})
    with pytest.raises(OutputError, match="last.pt.*continue with resume=True"):
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
    with pytest.raises(OutputError, match="already contains a run; pass resume=True"):
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
    """A run that was killed before it saved leaves nothing behind."""
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
            with pytest.raises(InputError, match=f"the {name} text has changed"):
                run(text, out, short, resume=True)
        path.write_text(kept)
    assert (out / "vocabulary.txt").read_text() == before
    assert run(text, out, short, resume=True) is not None


def test_commands(cli, text, tmp_path):
    wrong = cli("pretrain", text[0][0], "--valid", text[1][0], "--out", tmp_path / "r",
                "--set", "optimizer.lr=1")  # fmt: skip
    assert wrong.returncode == 2
    assert "unknown setting lr" in wrong.stderr
    wrong = cli("perplexity", text[1][0], "--model", tmp_path)
    assert wrong.returncode == 2
