"""``elmokit index`` and ``elmokit neighbours``: what is found, and what survives a kill."""

import json
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.index import build as building
from elmokit.analysis.index.build import IndexOptions, build_index
from elmokit.analysis.index.graph import Graph, build_graph, choose_rows
from elmokit.analysis.index.neighbours import mark, neighbours, report
from elmokit.analysis.index.token_index import NAMES, Index, digest, nearest
from elmokit.analysis.similarity import unit
from elmokit.errors import FormatError, InputError, MissingExtraError, OutputError
from helpers.models import TINY, write_published
from helpers.pictures import n_colours
from helpers.processes import run_process

WORDS = "the a cat dog sat ran on mat play plays great team river bank money".split()


def sentences(n=200, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 12))) for _ in range(n)]


def write_text(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


TOKENIZED = IndexOptions(tokenized=True)


@pytest.fixture(scope="session")
def made(tiny_folder, tmp_path_factory):
    """A folder with an index of some sentences, and their text."""
    folder = tmp_path_factory.mktemp("made")
    text = write_text(folder / "text.txt", sentences())
    build_index(Elmo.load(tiny_folder, device="cpu"), [text], folder / "idx", TOKENIZED)
    return folder


def same_files(a, b):
    for name in {*NAMES} - {"graph", "config.json", "vectors"}:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    # other batches, other rounding
    assert np.abs(Index.open(a).vectors - Index.open(b).vectors).max() < 2e-3


def test_what_is_written(made, tiny):
    index = Index.open(made / "idx")
    lines = sentences()
    assert sorted(p.name for p in (made / "idx").iterdir()) == sorted(NAMES)
    assert index.config.sentences == len(lines)
    assert index.config.tokens == sum(len(line.split()) for line in lines)
    assert [index.sentence(i) for i in range(len(lines))] == [line.split() for line in lines]
    row = 0
    for number, line in enumerate(lines):
        expected = unit(tiny.encode([line.split()], "top")[0])
        there = index.vectors[row : row + len(expected)]
        assert np.abs(there.astype(np.float32) - expected).max() < 1e-3
        assert index.place(row) == (number, 0)
        row += len(expected)
        assert index.place(row - 1) == (number, len(expected) - 1)


def test_search_is_exact_on_a_small_text(made, tiny):
    index = Index.open(made / "idx")
    vectors = index.vectors.astype(np.float32)
    fresh, seen = [], set()
    for row in range(len(vectors)):
        number, position = index.place(row)
        key = (tuple(index.sentence(number)), position)
        fresh.append(key not in seen)
        seen.add(key)
    for row in range(0, len(vectors), 50):
        wanted = np.where(fresh, vectors @ vectors[row], -2)
        best = np.sort(wanted)[::-1][:10].clip(-1, 1)
        for brute in (False, True):
            found = index.search(vectors[row], 10, brute=brute)
            assert np.allclose([cosine for _, cosine in found], best, atol=1e-5)
            assert all(fresh[r] for r, _ in found)


def test_recall(tmp_path):
    vectors = unit(np.random.default_rng(0).normal(size=(5000, 64))).astype(np.float16)
    rows = np.arange(5000)
    build_graph(tmp_path / "graph", rows, vectors)
    graph = Graph.open(tmp_path / "graph", 64)
    hits = 0
    for row in range(0, 5000, 50):
        vector = vectors[row].astype(np.float32)
        exact = {r for r, _ in nearest(vectors, vector, 10)}
        hits += len(exact & {r for r, _ in nearest(vectors, vector, 10, graph.search(vector, 42))})
    assert hits / 1000 >= 0.95


def test_neighbours(made, tiny):
    index = Index.open(made / "idx")
    sentence = next(s for s in sentences() if "play" in s.split())
    found = neighbours(index, tiny, sentence, "play", 5)
    assert found.tokens == sentence.split()
    assert len(found.occurrences) == 5
    assert all(one.tokens != found.tokens for one in found.occurrences)  # not the sentence itself
    cosines = [one.cosine for one in found.occurrences]
    assert cosines == sorted(cosines, reverse=True)
    assert len(found.words) == 5
    assert "play" not in dict(found.words)
    exact = neighbours(index, tiny, sentence, "play", 5, brute=True)
    assert [o.cosine for o in exact.occurrences] == pytest.approx(cosines)
    layer0 = {w: unit(tiny.encode([[w]], 0)[0][0]) for w in WORDS}
    expected = sorted((layer0[w] @ layer0["play"] for w in WORDS if w != "play"), reverse=True)
    assert [cosine for _, cosine in found.words] == pytest.approx(expected[:5], abs=2e-3)
    same = neighbours(index, tiny, sentence, "play", 1000, same_word=True)
    assert {one.word for one in same.occurrences} == {"play"}
    assert len(same.occurrences) == sum(
        s.split().count("play") for s in {*sentences()} - {sentence}
    )


def test_duplicates_are_shown_once(tiny, tmp_path):
    lines = ["the cat sat", "a dog ran", "the cat sat", "The Cat sat", "the cat sat"] * 30
    text = write_text(tmp_path / "text.txt", lines)
    build_index(tiny, [text], tmp_path / "idx", TOKENIZED)
    index = Index.open(tmp_path / "idx")
    assert index.config.sentences == 150
    assert index.config.rows == 9
    for options in ({}, {"brute": True}):
        found = neighbours(index, tiny, "a cat sat", "cat", 20, **options)
        assert len(found.occurrences) == 9
        assert len({(*one.tokens, one.position) for one in found.occurrences}) == 9
        without = neighbours(index, tiny, "the cat sat", "cat", 20, **options)
        assert len(without.occurrences) == 6
    found = neighbours(index, tiny, "a cat sat", "cat", 20, same_word=True)
    assert sorted(" ".join(one.tokens) for one in found.occurrences) == [
        "The Cat sat",
        "the cat sat",
    ]
    assert not {"cat", "Cat"} & set(dict(found.words))


def test_most_per_word():
    tokens = np.array([0, 1, 0, 2, 0, 0, 1, 0, 0, 0] * 10, np.int32)
    starts = np.arange(0, 101, 10)
    digests = np.arange(10, dtype=np.uint64)
    rows = choose_rows(tokens, starts, digests, 3, 7)
    assert np.bincount(tokens[rows]).tolist() == [7, 7, 7]
    assert (np.diff(rows) > 0).all()
    of_word = rows[tokens[rows] == 0]
    assert of_word[0] < 20
    assert of_word[-1] >= 80  # from the whole text, not its beginning
    assert choose_rows(tokens, starts, digests, 3, 0).tolist() == list(range(100))
    digests[5] = digests[4]
    assert choose_rows(tokens, starts, digests, 3, 0).tolist() == [*range(50), *range(60, 100)]


def test_running_text(tiny_folder, tmp_path, cli):
    """Paragraphs in several files, split into sentences and tokens."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("The cat sat. The dog ran!\n\nIt was a great play.\n")
    (tmp_path / "texts/b.txt").write_text("“Play,” she said.\n")
    made = cli("index", tmp_path / "texts", "--out", tmp_path / "idx", "-m", tiny_folder,
               "--tokenizer", "english", "--layer", 1)  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "4 sentences" in made.stdout
    index = Index.open(tmp_path / "idx")
    assert index.sentence(2) == ["It", "was", "a", "great", "play", "."]
    assert (index.config.layer, index.config.tokenizer) == (1, "english")
    done = cli("neighbours", tmp_path / "idx", "He saw a play.", "--word", "play", "-k", 3,
               "--out", tmp_path / "found")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Nearest to: He saw a [play] ." in done.stdout
    values = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert len(values["rows"]) == len(values["occurrences"]) == len(values["words"]) == 3
    assert values["position"] == 3
    assert len((tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()) == 4
    again = cli("neighbours", tmp_path / "idx", "play play", "--word", "play", "--which", 2,
                "--brute", "--same-word")  # fmt: skip
    assert "play [play]" in again.stdout


def test_one_word(tiny, tmp_path):
    build_index(tiny, [write_text(tmp_path / "text.txt", ["play"])], tmp_path / "idx")
    index = Index.open(tmp_path / "idx")
    found = neighbours(index, tiny, "a play", "play")
    assert [one.tokens for one in found.occurrences] == [["play"]]
    assert found.words == []
    shown = report(index, found).shown()
    assert len(shown) == 1
    assert shown[0][0] == "[play]"
    own = neighbours(index, tiny, "play", "play")  # nothing is left: an empty table, no error
    assert report(index, own).shown() == []


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_empty_text(tiny, tmp_path, text):
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(InputError, match="there is no word in"):
        build_index(tiny, [tmp_path / "text.txt"], tmp_path / "idx")
    assert [p.name for p in tmp_path.iterdir()] == ["text.txt"]


def test_a_long_line(tiny, tmp_path):
    words = random.Random(0).choices(WORDS, k=100_000)
    text = write_text(tmp_path / "text.txt", ["the cat", " ".join(words)])
    # the token layer, as reading so much one word after another takes an LSTM half a minute
    options = IndexOptions(layer=0, tokenized=True, most_per_word=50)
    build_index(tiny, [text], tmp_path / "idx", options)
    index = Index.open(tmp_path / "idx")
    assert index.config.tokens == 100_002
    assert index.config.rows <= 50 * len(WORDS)
    (one,) = neighbours(index, tiny, "a great play", "play", 1).occurrences
    assert len(one.marked().split()) <= 27


def test_picture(made, tiny, tmp_path):
    index = Index.open(made / "idx")
    found = neighbours(index, tiny, "the $_$ play", "play", 100)
    table = report(index, found)
    assert table.size[1] < 10
    table.write(tmp_path / "x")
    assert n_colours(tmp_path / "x.png") > 20
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert ">the $_$ [play]</text>" in svg
    assert "the same word" in svg
    assert report(index, replace(found, occurrences=[], words=[])).draw is None
    for part in ({"occurrences": []}, {"words": []}):
        report(index, replace(found, **part)).write(tmp_path / "x")


def test_mark():
    assert mark(["a", "b", "c"], 1) == "a [b] c"
    assert mark(list("abcdefg"), 3, 1) == "… c [d] e …"
    assert mark(["a"], 0, 0) == "[a]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a cat sat", "--word", "dog"], "'dog' is not among the tokens of 'a cat sat'"),
        (["", "--word", "dog"], "'dog' is not among the tokens"),
        (["a cat sat", "--word", ""], "the word to look for is empty"),
        (["a cat sat", "--word", "a cat"], "'a cat' is 2 tokens"),
        (["a cat sat", "--word", "cat", "--which", "2"], "is there 1 times"),
    ],
)
def test_bad_questions(made, cli, arguments, message):
    done = cli("neighbours", made / "idx", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("elmokit: ")
    assert done.stderr.count("\n") == 1


def test_bad_texts(tiny_folder, tmp_path, cli):
    (tmp_path / "latin1.txt").write_bytes("naïve café\n".encode("latin1"))
    for name, message in (("no.txt", "there is no file"), ("latin1.txt", "is not UTF-8 text")):
        done = cli("index", tmp_path / name, "--out", tmp_path / "idx", "-m", tiny_folder)
        assert done.returncode == 2
        assert message in done.stderr
    text = write_text(tmp_path / "text.txt", ["the cat"])
    for arguments, message in (
        (["--layer", 3], "from 0 (the token layer) to 2, not 3"),
        (["--tokenized", "--tokenizer", "english"], "leave out --tokenizer"),
        (["--resume", "--restart"], "not both"),
    ):
        done = cli("index", text, "--out", tmp_path / "idx", "-m", tiny_folder, *arguments)
        assert done.returncode == 2
        assert message in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latin1.txt", "text.txt"]


def test_another_model(made, tmp_path):
    index = Index.open(made / "idx")
    wide = TINY | {"lstm": TINY["lstm"] | {"projection_dim": 10}}
    other = Elmo.load(write_published(tmp_path / "wide", wide), device="cpu")
    with pytest.raises(InputError, match="holds 16 dimensions of layer 2, and this model has 20"):
        neighbours(index, other, "a cat", "cat")
    other = Elmo.load(write_published(tmp_path / "other", TINY, seed=5), device="cpu")
    with pytest.raises(InputError, match="vectors are not those"):
        neighbours(index, other, "a cat", "cat")


def test_damage(made, tiny, tmp_path, cli):
    def ask():
        return cli("neighbours", tmp_path / "idx", "a cat", "--word", "cat")

    assert "there is no index" in ask().stderr
    for name in NAMES:
        shutil.rmtree(tmp_path / "idx", ignore_errors=True)
        shutil.copytree(made / "idx", tmp_path / "idx")
        assert ask().returncode == 0
        content = (tmp_path / "idx" / name).read_bytes()
        (tmp_path / "idx" / name).write_bytes(content[: len(content) // 2])
        done = ask()
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert name in done.stderr
        (tmp_path / "idx" / name).unlink()
        done = ask()
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    shutil.rmtree(tmp_path / "idx")
    shutil.copytree(made / "idx", tmp_path / "idx")
    size = (tmp_path / "idx/graph").stat().st_size
    (tmp_path / "idx/graph").write_bytes(b"\0" * size)
    with pytest.raises(FormatError, match="graph"):
        Index.open(tmp_path / "idx").search(np.zeros(16, np.float32), 1)
    values = json.loads((tmp_path / "idx/config.json").read_text())
    (tmp_path / "idx/config.json").write_text(json.dumps(values | {"version": 99}))
    with pytest.raises(FormatError, match="later ElmoKit"):
        Index.open(tmp_path / "idx")


def test_replacing(tiny, tmp_path):
    text = write_text(tmp_path / "text.txt", ["the cat"])
    build_index(tiny, [text], tmp_path / "idx")
    with pytest.raises(OutputError, match="exists already"):
        build_index(tiny, [text], tmp_path / "idx")
    write_text(text, ["a dog ran"])
    build_index(tiny, [text], tmp_path / "idx", IndexOptions(force=True))
    assert Index.open(tmp_path / "idx").sentence(0) == ["a", "dog", "ran"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["idx", "text.txt"]
    (tmp_path / "idx/thesis.tex").touch()
    with pytest.raises(OutputError, match="thesis.tex"):
        build_index(tiny, [text], tmp_path / "idx", IndexOptions(force=True))


def test_resume(made, tiny, tmp_path, monkeypatch):
    """Stopped while embedding, then while the graph grows; with other settings, or another text."""
    monkeypatch.setattr(building, "_WINDOW_BYTES", 4 * 16 * 100)
    text, out = made / "text.txt", tmp_path / "idx"
    encode, calls = Elmo.encode, []

    def interrupted(*arguments, **keywords):
        calls.append(0)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return encode(*arguments, **keywords)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Elmo, "encode", interrupted)
        build_index(tiny, [text], out, TOKENIZED)
    assert not out.exists()
    with pytest.raises(InputError, match="was not finished"):
        Index.open(out)
    with pytest.raises(OutputError, match="--resume"):
        build_index(tiny, [text], out, TOKENIZED)
    resume = IndexOptions(tokenized=True, resume=True)
    with pytest.raises(InputError, match="layer 2, this run has 1"):
        build_index(tiny, [text], out, IndexOptions(layer=1, tokenized=True, resume=True))
    with pytest.raises(InputError, match="sentence 1 is not what it was"):
        other = write_text(tmp_path / "other.txt", ["other text"])
        build_index(tiny, [other], out, resume)
    add, n_added = Graph.add, []

    def stopped(graph, rows, vectors):
        if len(graph) >= 300:
            raise KeyboardInterrupt
        n_added.append(len(rows))
        add(graph, rows, vectors)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("elmokit.analysis.index.graph._AT_ONCE", 100)
        patch.setattr("elmokit.analysis.index.graph._SAVE_SECONDS", -1.0)
        patch.setattr(Graph, "add", stopped)
        build_index(tiny, [text], out, resume)
    n_added.clear()
    monkeypatch.setattr(Graph, "add", lambda g, r, v: (n_added.append(len(r)), add(g, r, v)))
    done = build_index(tiny, [text], out, resume)
    assert done.resumed == 200
    assert sum(n_added) == done.config.rows - 300
    same_files(made / "idx", out)
    index = Index.open(out)
    vector = index.vectors[7].astype(np.float32)
    assert index.search(vector, 10) == index.search(vector, 10, brute=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["idx", "other.txt"]


def test_stopped_in_the_home_folder(made, tiny_folder, tmp_path, cli, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("elmokit.analysis.index.build.build_index", stop)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "idx.partial").mkdir()
    done = cli("index", made / "text.txt", "--out=~/idx", "-m", tiny_folder)
    assert done.returncode == 130
    assert "add --resume" in done.stderr


def test_kill_9_and_resume(made, tiny_folder, tmp_path):
    """A real process, really killed, while it embeds and when all but the renaming is done."""
    out = tmp_path / "idx"
    command = ["index", str(made / "text.txt"), "--out", str(out), "-m", str(tiny_folder)]
    command += ["--tokenized", "--resume"]
    kill = "(lambda *a: os.kill(os.getpid(), signal.SIGKILL))"
    for patch in (
        "b._WINDOW_BYTES = 6400; append = b.Spool.append; "
        f"b.Spool.append = lambda s, *a: (append(s, *a), len(s) > 100 and {kill}())",
        f"b._put_in_place = {kill}",
    ):
        code = (
            "import os, signal, elmokit.analysis.index.build as b, elmokit.cli.main as m; "
            f"{patch}; m.main()"
        )
        killed = subprocess.run([sys.executable, "-c", code, *command])
        assert killed.returncode == -signal.SIGKILL
        assert not out.exists()
    finished = run_process(*command)
    assert finished.returncode == 0, finished.stderr
    assert "(200 from the run before)" in finished.stdout
    same_files(made / "idx", out)
    assert [p.name for p in tmp_path.iterdir()] == ["idx"]


def test_without_usearch(made, tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match="elmokit\\[index\\]"):
        build_index(tiny, [made / "text.txt"], tmp_path / "idx")
    assert list(tmp_path.iterdir()) == []
    index = Index.open(made / "idx")
    with pytest.raises(MissingExtraError):
        neighbours(index, tiny, "a cat", "cat")
    assert neighbours(index, tiny, "a cat", "cat", brute=True).occurrences


def test_a_full_disk(tmp_path, monkeypatch):
    graph = Graph(16)
    graph.add(np.arange(3), np.eye(16, dtype=np.float16)[:3])
    graph.save(tmp_path / "graph")
    before = (tmp_path / "graph").read_bytes()
    monkeypatch.setattr(type(graph._index), "save", lambda self, path: path.write_bytes(b"half"))
    with pytest.raises(OSError, match="space"):
        graph.save(tmp_path / "graph")
    assert (tmp_path / "graph").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["graph"]


def test_digests_tell_sentences_apart():
    assert digest(["a b"]) != digest(["a", "b"])
    assert digest(["a", "b"]) == digest(("a", "b"))
    assert 0 <= digest(["\ud800"]) < 1 << 64
