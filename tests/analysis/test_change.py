"""Semantic change: the measures by hand, sampling, and the command."""

import json
import random

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.change import (
    apd,
    bootstrap,
    by_chance,
    change,
    interval,
    plain_prt,
    prt,
    sample_occurrences,
)
from elmokit.analysis.similarity import cosine
from elmokit.errors import InputError
from helpers.pictures import n_colours

OLD = "".join(f"The cell of prison {i} is small .\nA Cell , he said\n\n" for i in range(20))


NEW = "".join(f"Blood cell number {i} was seen\nThey call my cell phone\n" for i in range(30))


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "old.txt").write_text(OLD + "rare word\n", encoding="utf-8")
    (tmp_path / "new.txt").write_text(NEW, encoding="utf-8")
    return tmp_path / "old.txt", tmp_path / "new.txt"


def test_prt_by_hand():
    a, b = np.array([[1.0, 0], [3, 0]]), np.array([[0.0, 1], [0, 5]])
    assert plain_prt(a, b) == pytest.approx(1)
    assert plain_prt(a, a[::-1]) == pytest.approx(0)
    assert plain_prt(a, -a) == pytest.approx(2)
    assert plain_prt(a, np.array([[1.0, 1]])) == pytest.approx(1 - np.sqrt(0.5))


def test_corrected_prt_by_hand():
    """The squares of the means are the mean products of different occurrences."""
    a, b = np.array([[1.0, 0], [3, 1], [2, -1]]), np.array([[0.0, 1], [1, 5]])
    squares = [
        np.mean([x[i] @ x[j] for i in range(len(x)) for j in range(len(x)) if i != j])
        for x in (a, b)
    ]
    expected = 1 - a.mean(0) @ b.mean(0) / np.sqrt(squares[0] * squares[1])
    assert prt(a, b) == pytest.approx(expected)
    assert prt(a[:1], b[:1]) == plain_prt(a[:1], b[:1]) == 1  # no noise is known of one
    noise = np.array([[1.0, 0], [-1, 0]])
    assert prt(noise, b) == 1  # nothing is left of the mean


def test_apd_by_hand():
    a, b = np.array([[1.0, 0], [3, 0]]), np.array([[0.0, 1], [0, 5]])
    assert apd(a, b) == pytest.approx(1)
    assert apd(a, 2 * a) == pytest.approx(0)
    both = np.concatenate([a, b])
    assert apd(both, both) == pytest.approx(0.5)  # half of all pairs are at right angles


def test_measures_of_random_vectors():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, (7, 5)), rng.normal(0.5, 1, (4, 5))
    pairs = [1 - cosine(x, y) for x in a for y in b]
    assert apd(a, b) == pytest.approx(np.mean(pairs))
    assert plain_prt(a, b) == pytest.approx(1 - cosine(a.mean(0), b.mean(0)))


def test_bootstrap_draws_occurrences():
    """One occurrence each leaves no choice; two give four cases."""
    rng = np.random.default_rng(0)
    a, b = np.array([[1.0, 0]]), np.array([[1.0, 1]])
    prts, apds = bootstrap(a, b, rng, rounds=10)
    assert prts == pytest.approx(np.full(10, prt(a, b)))
    assert apds == pytest.approx(np.full(10, apd(a, b)))
    two = np.array([[1.0, 0], [0, 1]])
    _, apds = bootstrap(two, np.array([[1.0, 0]]), rng, rounds=4000)
    shares = [np.isclose(apds, value).mean() for value in (0, 0.5, 1)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.03)


@pytest.mark.parametrize(
    ("dim", "n", "m", "noise", "shift"),
    [
        (8, 40, 30, 1, 1),
        (256, 30, 30, 1, 0.3),
        (256, 30, 30, 3, 0.5),  # the plain PRT is three times too large
        (256, 5, 8, 1, 0.5),
        (256, 30, 30, 1, 0),  # no change at all
    ],
)
def test_prt_intervals_hold_the_truth(dim, n, m, noise, shift):
    """In about 95 of 100 samples, or more; the threshold allows for few samples."""
    rng = np.random.default_rng(0)
    centre = rng.normal(0, 1, dim)
    centres = centre, centre + shift * rng.normal(0, 1, dim)
    scales = np.exp(rng.normal(0, 1, dim))  # noise is not the same in all directions
    scales *= noise / np.sqrt((scales**2).mean())
    truth = 1 - float(cosine(*centres))
    held, values = 0, []
    for _ in range(60):
        a, b = (
            c + scales * rng.normal(0, 1, (k, dim)) for c, k in zip(centres, (n, m), strict=True)
        )
        found = interval(prt(a, b), bootstrap(a, b, rng, rounds=200)[0])
        assert found.low <= found.value <= found.high
        held += found.low <= truth + 1e-9 and truth <= found.high
        values.append(prt(a, b))
    assert held / 60 >= 0.88
    error = np.std(values) / np.sqrt(60)
    assert abs(np.mean(values) - truth) < 4 * error + 0.02 * truth


def test_apd_intervals_hold_the_truth():
    rng = np.random.default_rng(0)
    centre = rng.normal(0, 1, (2, 8))

    def draw():
        return centre[0] + rng.normal(0, 1, (40, 8)), centre[1] + rng.normal(0, 1, (30, 8))

    expected = np.mean([apd(*draw()) for _ in range(1000)])
    held = 0
    for _ in range(150):
        a, b = draw()
        found = interval(apd(a, b), bootstrap(a, b, rng, rounds=200)[1])
        held += found.low <= expected <= found.high
    assert 0.88 <= held / 150 <= 1


def test_interval_stays_within_what_can_be():
    found = interval(0.01, np.linspace(0, 0.2, 100))
    assert found.low == 0
    assert found.high == pytest.approx(0.105, abs=0.01)


def test_by_chance():
    """About one unchanged word in twenty exceeds it; a changed word always does."""
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(100):
        a, b = rng.normal(1, 1, (2, 20, 8))
        above += prt(a, b) > by_chance(a, b, rng, rounds=200)
    assert above <= 12
    a, b = rng.normal(1, 1, (20, 8)), rng.normal(-1, 1, (20, 8))
    assert prt(a, b) > by_chance(a, b, rng)


def test_occurrences(tiny, texts):

    phrases = {"cell": ["cell"], "cell phone": ["cell", "phone"], "no": ["no"]}
    found = sample_occurrences(tiny, texts[1], phrases, 10, False, random.Random(0))
    assert [found[word].seen for word in phrases] == [60, 30, 0]
    assert len(found["cell"].items) == 10
    for o in found["cell phone"].items:
        assert o.tokens[o.place.tokens] == ("cell", "phone")
    old = sample_occurrences(tiny, texts[0], phrases, 100, True, random.Random(0))
    assert {o.tokens[o.place.start] for o in old["cell"].items} == {"cell", "Cell"}


def test_changed_words_first_and_rare_ones_last(tiny, texts):
    old, new = texts
    found = change(tiny, old, new, ["the", "rare", "cell", "cell"])
    assert [(c.word, c.n_old, c.n_new) for c in found] == [
        ("cell", 40, 60),
        ("the", 20, 0),
        ("rare", 1, 0),
    ]
    assert found[0].prt.value > found[0].chance
    assert found[1].prt is found[1].apd is found[1].chance is None
    assert found == change(tiny, old, new, ["the", "rare", "cell"])


def test_no_change_between_a_text_and_itself(tiny, texts):
    (found,) = change(tiny, texts[1], texts[1], ["cell"])
    assert found.prt.value == pytest.approx(0, abs=1e-6)
    assert found.prt.value < found.chance
    (token,) = change(tiny, texts[1], texts[1], ["cell"], layer=0)
    assert token.apd.value == pytest.approx(0, abs=1e-5)  # the token layer knows no context


def test_most_and_layers(tiny, texts):
    results = [
        change(tiny, *texts, ["cell"], layer=layer, most=10)[0]
        for layer in ("top", 2, "average", "mix")
    ]
    assert results[0] == results[1]
    assert results[2].prt != results[0].prt
    assert results[0].n_new == 60  # all are counted
    for layer, message in (
        ("all", "a number from 0 to 2"),
        (3, "from 0 to 2"),
        ("last", "from 0 to 2"),
    ):
        with pytest.raises(InputError, match=message):
            change(tiny, *texts, ["cell"], layer=layer)


def test_each_sentence_is_embedded_once(tiny, texts, monkeypatch):
    words, seen = ["cell", "the", "a", "was"], []
    plain = [change(tiny, *texts, [word])[0] for word in words]
    stream = tiny.stream

    def count(sentences, *arguments, **keywords):
        seen.extend(sentences)
        return stream(sentences, *arguments, **keywords)

    monkeypatch.setattr(tiny, "stream", count)
    monkeypatch.setattr("elmokit.inference.vectors._CPU_WINDOW_BYTES", 5000)
    together = {c.word: c for c in change(tiny, *texts, words)}
    assert len(seen) == len(set(seen)) > 0
    for one in plain:
        other = together[one.word]
        assert (one.n_old, one.n_new) == (other.n_old, other.n_new)
        if one.prt:
            assert one.prt.value == pytest.approx(other.prt.value, abs=1e-5)


def test_tokenized_words_are_split_at_white_space(texts, tmp_path):

    english = Elmo.load(device="cpu")
    path = tmp_path / "text"
    path.write_text("well-known don't .\n" * 6, encoding="utf-8")
    found = change(english, path, path, ["well-known", "don't"], tokenized=True)
    assert [c.n_old for c in found] == [6, 6]


def test_command(cli, tiny_folder, texts, tmp_path):
    arguments = ["change", *texts, "--words", "the, cell, cell phone", "-m", tiny_folder]
    done = cli(*arguments, "--out", tmp_path / "x")
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [row["word"] for row in values["rows"]] == ["cell", "the", "cell phone"]
    assert (values["layer"], values["most"]) == ("top", 500)
    assert n_colours(tmp_path / "x.png") > 10
    assert done.stdout.startswith(cli(*arguments).stdout)


def test_very_long_text(cli, tiny_folder, tmp_path):
    path = tmp_path / "long"
    path.write_text("word " * 4000, encoding="utf-8")  # one sentence
    done = cli("change", path, path, "--words", "word", "--most", 5, "-m", tiny_folder)
    assert done.returncode == 0, done.stderr
    assert "4,000" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"), [(b"", "no tokens found in"), (b"caf\xe9", "is not UTF-8 text")]
)
def test_mistakes_in_files(cli, tiny_folder, texts, tmp_path, text, message):
    path = tmp_path / "wrong"
    path.write_bytes(text)
    done = cli("change", texts[0], path, "--words", "cell", "-m", tiny_folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_mistakes(cli, tiny_folder, texts, tmp_path):
    for arguments, message in (
        ([texts[0], tmp_path / "no", "--words", "cell"], "there is no file"),
        ([*texts, "--words", ""], "contains an empty word"),
        ([*texts, "--words", "cell,,the"], "contains an empty word"),
        ([*texts, "--words", "cell", "--layer", "7"], "a number from 0 to 2"),
        ([*texts, "--words", "cell", "--out", tmp_path / "no" / "x"], "does not exist"),
    ):
        done = cli("change", *arguments, "-m", tiny_folder)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_one_word(cli, tiny_folder, texts, tmp_path):
    (tmp_path / "one").write_text("cell", encoding="utf-8")
    done = cli("change", texts[0], tmp_path / "one", "--words", "cell", "-m", tiny_folder)
    assert done.returncode == 0
    assert "fewer than 5 occurrences in one of them: cell" in " ".join(done.stdout.split())
