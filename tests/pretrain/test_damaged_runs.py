"""Run folders that are damaged, in use, or too large: one sentence each."""

import random
import shutil

import pytest
import torch

from elmokit.errors import ConfigError, ElmoKitError, FormatError, OutputError
from elmokit.pretrain.checks import check_model_size
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.run.folder import RunFolder
from helpers.pretraining import recipe, run, same_weights, weights


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Texts and the folder of a run that is half done."""
    from helpers.pretraining import sentences

    place = tmp_path_factory.mktemp("stopped")
    train, valid = place / "train.txt", place / "valid.txt"
    train.write_text("\n".join(sentences(400)) + "\n")
    valid.write_text("\n".join(sentences(60, seed=1)) + "\n")
    settings = recipe(batch={"order": "stream", "steps": 8}, training={"epochs": 0.5})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.pretrain.run.reporter.draw_training", lambda folder: None)
        run(([train], [valid]), place / "run", settings)
    return ([train], [valid]), place / "run"


@pytest.fixture
def damaged(stopped, tmp_path):
    text, folder = stopped
    return text, shutil.copytree(folder, tmp_path / "run")


DEEP = b'{"a":' * 100_000
FILES = ["recipe.json", "model.json", "vocabulary.txt", "metrics.jsonl", "last.pt", "lock"]
CONTENTS = {
    "empty": lambda old: b"",
    "half": lambda old: old[: len(old) // 2],
    "a list": lambda old: b"[]\n",
    "nested": lambda old: DEEP,
    "a long number": lambda old: b'{"step": ' + b"9" * 5000 + b"}",
    "not UTF-8": lambda old: b"\xff\xfe" + old,
    "other keys": lambda old: b'{"kind": "evaluation", "step": "x"}\n{"kind": []}\n',
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", FILES)
def test_damaged_files(damaged, name, content):
    """A damaged file is reported, or does not matter, as metrics and the lock's content."""
    text, folder = damaged
    path = folder / name
    path.write_bytes(CONTENTS[content](path.read_bytes()))
    if name in ("metrics.jsonl", "lock"):
        assert run(text, folder, None, resume=True) is not None
        return
    with pytest.raises(FormatError) as caught:
        run(text, folder, None, resume=True)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "weights_only" not in str(caught.value)


def test_flipped_bits(damaged):
    """A checkpoint notices every flipped bit in its values."""
    folder = damaged[1]
    path = folder / "last.pt"
    whole, rng, noticed = path.read_bytes(), random.Random(0), 0
    before = weights(folder)
    for _ in range(60):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            state = RunFolder(folder).load()
        except FormatError:
            noticed += 1
        else:  # padding between the parts
            assert all(torch.equal(v, before[k]) for k, v in state["model"].items())
    assert noticed > 40


@pytest.mark.parametrize(
    "change",
    [
        lambda s: [1, 2],
        lambda s: {},
        lambda s: s | {"progress": s["progress"] | {"step": -5}},
        lambda s: s | {"progress": s["progress"] | {"step": 1.5}},
        lambda s: s | {"progress": s["progress"] | {"best": float("nan")}},
        lambda s: s | {"progress": s["progress"] | {"batch": 1 << 62}},
        lambda s: s | {"progress": s["progress"] | {"epoch": 10**6}},
        lambda s: s | {"progress": {"steps": 1}},
        lambda s: s | {"progress": [1]},
        lambda s: s | {"watched": None},
        lambda s: s | {"watched": {"skipped": float("nan"), "usual": 1, "rate": 1}},
        lambda s: s | {"processes": 3},
        lambda s: s | {"processes": [{}]},
        lambda s: s | {"processes": [s["processes"][0] | {"rng": torch.zeros(3)}]},
        lambda s: s | {"processes": [s["processes"][0] | {"states": [(torch.ones(1),) * 2] * 2}]},
        lambda s: s | {"optimizers": []},
        lambda s: s | {"optimizers": s["optimizers"][::-1]},
        lambda s: s | {"model": {k: v[..., :1] for k, v in s["model"].items()}},
        lambda s: s | {"model": {k: v * float("nan") for k, v in s["model"].items()}},
        lambda s: s | {"base": "another"},
    ],
)
def test_checkpoints_with_other_content(damaged, change):
    text, folder = damaged
    state = torch.load(folder / "last.pt", weights_only=True)
    torch.save(change(state), folder / "last.pt")
    with pytest.raises(FormatError, match="damaged|does not match|NaN|has changed") as caught:
        run(text, folder, None, resume=True)
    assert "\n" not in str(caught.value)


def test_other_words(damaged):
    """Words in another order have the right form, but belong to another softmax."""
    text, folder = damaged
    path = folder / "vocabulary.txt"
    path.write_text("\n".join(reversed(path.read_text().splitlines())) + "\n")
    with pytest.raises(FormatError, match="vocabulary.txt or model.json .* has changed since"):
        run(text, folder, None, resume=True)


def test_checkpoints_of_older_versions(damaged):
    """They lack the newer fields, and resume."""
    text, folder = damaged
    state = torch.load(folder / "last.pt", weights_only=True)
    del state["base"]
    for name in ("best_step", "evaluated", "evaluated_seconds", "valid_tokens"):
        del state["progress"][name]
    torch.save(state, folder / "last.pt")
    longer = RunFolder(folder).recipe().changed({"training": {"epochs": 0.7}})
    assert run(text, folder, longer, resume=True) is not None


def test_a_lost_model_is_written_again(damaged):
    text, folder = damaged
    shutil.rmtree(folder / "best")
    (folder / ".best.0123.tmp").mkdir()  # of a process that was killed
    assert run(text, folder, None, resume=True) is not None
    assert (folder / "best" / "model.safetensors").exists()
    assert not list(folder.glob(".best*"))


def test_a_damaged_model(damaged):
    """The result is that of the model on disk."""
    text, folder = damaged
    (folder / "best" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(FormatError, match="best/model.safetensors"):
        run(text, folder, None, resume=True)


def test_a_folder_in_use(damaged, tmp_path):
    text, folder = damaged
    settings = recipe(training={"epochs": 0.1})
    for place, resume in ((folder, True), (tmp_path / "new", False)):
        with (
            RunFolder(place).locked(),
            pytest.raises(OutputError, match=f"another process is writing {place}"),
        ):
            run(text, place, None if resume else settings, resume=resume)
    assert run(text, folder, None, resume=True) is not None
    assert run(text, tmp_path / "new", settings) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"context": {"cell_dim": 1_000_000_000}}},
        {"model": {"context": {"cell_dim": 1_000_000, "projection_dim": 1_000_000 - 1}}},
        {"training": {"epochs": 1e300}},
        {"training": {"minutes": 1e300}},
    ],
)
def test_absurd_settings(stopped, tmp_path, changes):
    text, _ = stopped
    with pytest.raises(ConfigError, match="GiB|at most|up to"):
        run(text, tmp_path / "run", recipe().changed(changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes", [{"batch": {"max_length": 10**30}}, {"optimizer": {"warmup": 10**30}}]
)
def test_large_settings_without_effect(stopped, tmp_path, changes):
    text, _ = stopped
    settings = recipe(training={"epochs": 0.2}).changed(changes)
    assert run(text, tmp_path / "run", settings) is not None


def test_memory_is_compared_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("elmokit.pretrain.checks.available_bytes", lambda device: 16 << 30)
    settings = Recipe.from_dict({"model": {"context": {"cell_dim": 900_000}}})
    with pytest.raises(ConfigError, match="needs [0-9,.]+ GiB of memory .* but 16.0 GiB are free"):
        check_model_size(settings.model, settings, torch.device("cpu"))
    check_model_size(recipe().model, recipe(), torch.device("cpu"), n_words=10**6)
    with pytest.raises(ConfigError, match="smaller sizes"):
        check_model_size(recipe().model, recipe(), torch.device("cpu"), n_words=10**12)


def test_damaged_text_of_a_run(damaged):
    """The prepared text is made again, and the run goes on as if nothing had happened."""
    text, folder = damaged
    other = shutil.copytree(folder, folder.with_name("other"))
    with (folder / "data" / "train" / "tokens.bin").open("r+b") as file:
        file.write(b"\x01")
    longer = RunFolder(folder).recipe().changed({"training": {"epochs": 0.7}})
    for place in (folder, other):
        run(text, place, longer, resume=True)
    assert same_weights(folder, other)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"one sentence .\n", "fewer than one batch"), (b"\xff\xfd\n", "not UTF-8"), (b"", "empty")],
)
def test_text_that_cannot_be_trained_on(stopped, tmp_path, content, message):
    text, _ = stopped
    bad = tmp_path / "bad.txt"
    bad.write_bytes(content)
    with pytest.raises(ElmoKitError, match=message):
        run(([bad], text[1]), tmp_path / "run", recipe())
    if message != "fewer than one batch":
        with pytest.raises(ElmoKitError, match=message):
            run((text[0], [bad]), tmp_path / "run", recipe())
    else:  # one sentence is enough to evaluate on
        done = run((text[0], [bad]), tmp_path / "run", recipe(training={"epochs": 0.1}))
        assert done.n_sentences == 1
