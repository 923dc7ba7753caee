"""The commands about shards: embed --engine, shards, index --from, plan."""

import json

import pytest

from elmokit.cluster import embed_shards
from helpers.processes import one_sentence
from helpers.shards import InlinePool, write_corpus


@pytest.fixture
def embedded(tmp_path, tiny_folder, cli, monkeypatch):
    """A folder of shards, and what the command that wrote it printed."""
    monkeypatch.setattr(embed_shards, "LocalPool", InlinePool)
    write_corpus(tmp_path / "text.txt", 100)
    command = ["embed", tmp_path / "text.txt", tmp_path / "out", "--engine", "local", "-m",
               tiny_folder, "--device", "cpu", "--shard-rows", 30]  # fmt: skip
    return tmp_path / "out", cli(*command), command


def test_embed_prints_a_summary(embedded, cli):
    _, done, command = embedded
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert "shards of 0.0 MB in 1 files" in first
    assert "100 sentences" in second
    assert third.startswith("1 workers with")
    assert third.endswith("0 attempts repeated, 0 shards set aside")
    assert one_sentence(cli(*command), "pass --resume to continue it, or pass --restart")
    again = cli(*command, "--resume")
    assert "from earlier runs" in again.stdout


def test_bad_input_gives_exit_code_2(embedded, cli, tmp_path):
    _, _, command = embedded
    (tmp_path / "text.txt").write_bytes(b"\xff\n")
    done = cli(*command, "--restart")
    assert done.returncode == 2
    assert "1 of 1 shards were set aside, all others are done; shard 0: the line" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers goes with --engine"),
        (["--engine", "local", "--forget-sentences"], "are for one file"),
        (["--engine", "spark"], "--engine must be local or ray, not 'spark'"),
        (["--engine", "local", "--state", "carry"], "--state carry continues from the sentence"),
        (["--engine", "local", "--tokenized", "--tokenizer", "english"], "means white space"),
    ],
)
def test_wrong_options_of_embed(cli, tmp_path, options, message):
    write_corpus(tmp_path / "a.txt", 3)
    assert one_sentence(cli("embed", tmp_path / "a.txt", tmp_path / "b.hdf5", *options), message)


def test_several_inputs_need_an_engine(cli, tmp_path):
    write_corpus(tmp_path / "a.txt", 3)
    done = cli("embed", tmp_path / "a.txt", tmp_path / "a.txt", tmp_path / "b.hdf5")
    assert one_sentence(done, "2 inputs are given; without --engine, give one input")


def test_shards(embedded, cli, tmp_path):
    out, *_ = embedded
    assert "shards are complete" in cli("shards", out, "verify").stdout
    assert json.loads(cli("shards", out, "stats", "--json").stdout)["sentences"] == 100
    assert "sentences" in cli("shards", out, "stats").stdout
    assert "100 sentences" in cli("shards", out, "merge", tmp_path / "all.npz").stdout
    next((out / "data").iterdir()).write_bytes(b"")
    done = cli("shards", out, "verify")
    assert done.returncode == 2
    assert "shard 0 is missing" in done.stdout or "is missing" in done.stdout
    assert "run elmokit embed again with --resume" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["repair"], "ACTION must be verify, merge or stats, not 'repair'"),
        (["merge"], "merge needs the FILE"),
        (["stats", "a.hdf5"], "verify and stats take none"),
        (["verify", "--json"], "--json goes with stats"),
        (["verify"], "there are no shards in"),
    ],
)
def test_wrong_arguments_of_shards(cli, tmp_path, words, message):
    assert one_sentence(cli("shards", tmp_path, *words), message)


def test_index_from_shards(embedded, cli, tmp_path, tiny_folder):
    out, *_ = embedded
    done = cli("index", "--from", out, "--out", tmp_path / "index", "-m", tiny_folder)
    assert done.returncode == 0, done.stderr
    found = cli("neighbours", tmp_path / "index", "the river", "--word", "river", "-m", tiny_folder)
    assert "[river]" in found.stdout
    wrong = cli("index", tmp_path / "text.txt", "--from", out, "--out", tmp_path / "i")
    assert one_sentence(wrong, "give either text to index, or the folder of its shards as --from")
    assert one_sentence(cli("index", "--out", tmp_path / "i"), "give either text to index")


def test_plan(cli):
    shown = cli("plan", "1e9", "--days", "7").stdout
    assert "1,000,000,000 tokens with en" in shown
    found = json.loads(cli("plan", "1e9", "-m", "original", "--unit", "gpu", "--json").stdout)
    assert {one["unit"] for one in found["plans"]} == {"gpu"}
    assert all("benchmarks/results" in one["source"] for one in found["plans"])
    assert one_sentence(cli("plan", "1e9", "--rate", "5"), "--rate needs --unit")
    assert one_sentence(cli("plan", "1e9", "-m", "mine"), "no rate was measured")
    assert one_sentence(cli("plan", "lots"), "the argument TOKENS cannot be")
