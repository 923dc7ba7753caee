"""A word in many sentences."""

import json

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.analysis.scatter import (
    BUNDLED,
    bundled_examples,
    find_occurrences,
    project,
    silhouette,
)
from elmokit.errors import InputError
from helpers.pictures import n_colours

CHINESE = [word for word in BUNDLED if not word.isascii()]


def test_silhouette_by_hand():
    # at 0, 60, 90 and 180 degrees: cosine distances 1/2, 1, 2 / 1 - cos 30, 3/2 / 1
    degrees = np.deg2rad([0, 60, 90, 180])
    points = 3 * np.stack([np.cos(degrees), np.sin(degrees)], 1)
    d = 1 - np.cos(degrees[:, None] - degrees)
    expected = []
    for i, j, others in ((0, 1, (2, 3)), (1, 0, (2, 3)), (2, 3, (0, 1)), (3, 2, (0, 1))):
        a, b = d[i, j], np.mean([d[i, o] for o in others])
        expected.append((b - a) / max(a, b))
    assert expected[0] == pytest.approx((1.5 - 0.5) / 1.5)
    assert silhouette(points, ["x", "x", "y", "y"]) == pytest.approx(np.mean(expected))
    # the nearest other sense counts, and one alone has 0
    expected = [(d[0, 2] - d[0, 1]) / d[0, 2], (d[1, 2] - d[0, 1]) / max(d[1, 2], d[0, 1]), 0, 0]
    assert silhouette(points, ["x", "x", "y", "z"]) == pytest.approx(np.mean(expected))


def test_silhouette_without_distances():
    assert silhouette(np.ones((4, 3)), ["x", "x", "y", "y"]) == 0
    assert silhouette(np.zeros((4, 3)), ["x", "x", "y", "y"]) == 0
    assert np.isnan(silhouette(np.eye(3), ["x"] * 3))
    apart = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    assert silhouette(apart, ["x", "x", "y", "y"]) == 1


def test_projection_of_a_plane():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(20, 2)) * [5, 1]
    plane -= plane.mean(0)
    basis, _ = np.linalg.qr(rng.normal(size=(7, 2)))
    points, shares = project(plane @ basis.T + 3)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > 0.8
    # distances stay, and the components are uncorrelated
    for i, j in ((0, 1), (3, 9)):
        assert np.linalg.norm(points[i] - points[j]) == pytest.approx(
            np.linalg.norm(plane[i] - plane[j])
        )
    assert points[:, 0] @ points[:, 1] == pytest.approx(0, abs=1e-9)


def test_projection_along_an_axis_has_a_sign():
    points, shares = project(np.array([[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]))
    np.testing.assert_allclose(points, [[-1, 0], [0, 0], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(shares, [1, 0], atol=1e-12)
    for same in (np.ones((3, 4)), np.ones((1, 4)), np.zeros((3, 4))):
        points, shares = project(same)
        assert not points.any()
        assert not shares.any()
    assert project(np.array([[1.0], [2.0]]))[0].shape == (2, 2)


def test_the_banks():
    examples = bundled_examples("bank")
    senses = [example.sense for example in examples]
    assert senses.count("money") == senses.count("river") == 12
    assert all(example.sentence.split().count("bank") == 1 for example in examples)
    assert len({example.sentence for example in examples}) == 24


@pytest.mark.parametrize(
    ("model", "word", "least"), [("en", "bank", 0.1), *(("zh", word, 0.07) for word in CHINESE)]
)
def test_senses_of_the_bundled_models(model, word, least):
    found = find_occurrences(Elmo.load(model, device="cpu"), bundled_examples(word), word)
    scores = [silhouette(vectors, found.senses) for vectors in found.vectors]
    assert scores[0] == 0
    assert min(scores[1:]) > least
    assert max(scores[1:]) > least + 0.05


def test_command(cli, tiny_folder, tmp_path):
    done = cli("scatter", "--out", tmp_path / "x", "-m", tiny_folder)
    assert done.returncode == 0, done.stderr
    assert "money 12, river 12" in done.stdout
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert values["rows"][0]["silhouette score"] == 0
    assert len(values["points"]) == 24
    assert values["points"][0]["position"] == 8
    assert values["points"][0]["token layer"] == [0, 0]
    assert "all points coincide" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert n_colours(tmp_path / "x.png") > 20


def test_bundled_sentences_of_a_word(cli, tiny_folder):
    chinese = ["-m", tiny_folder, "--tokenizer", "chinese"]
    assert "'苹果' (水果 12, 公司 12)" in cli("scatter", *chinese).stdout
    assert "'组织' (生物 12, 团体 12, 举办 12)" in cli("scatter", "--word", "组织", *chinese).stdout
    assert "'Bank' (money 12" in cli("scatter", "--word", "Bank", *chinese).stdout
    done = cli("scatter", "--word", "river", "-m", "no such model")
    assert done.returncode == 2
    words = "bank, 苹果, 元素, 组织, 单位"
    expected = f"there are no bundled sentences with 'river'; expected a file, or one of {words}"
    assert done.stderr == f"elmokit: {expected}\n"


def test_files_of_ones_own(cli, tiny_folder, tmp_path):
    file = tmp_path / "x.tsv"

    def run(text, *arguments):
        file.write_text(text, encoding="utf-8")
        return cli("scatter", file, "-m", tiny_folder, *arguments)

    out = ["--out", tmp_path / "x"]

    many = "".join(f"$s{i}$\tNew York {i} and new york\n" for i in range(12))
    done = run(many, "--word", "new york", *out)  # upper and lower case are the same
    assert "24 occurrences of" in done.stdout, done.stderr
    done = run("我 去 银行\n\n银行 在 河 边\n", "--word", "银行", *out)
    assert done.returncode == 0
    assert "–" in done.stdout  # no senses, no silhouette
    done = run("one\tbank\n", "--word", "bank", *out)
    assert "1 occurrence of 'bank' (one 1)" in done.stdout
    done = run("a\tthe " + "word " * 3000 + "bank\nb\ta bank", "--word", "bank")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a\tb\tc bank\n", "line 1 has 2 tabs"),
        ("a\tthe banks\n\nb\tno such word\n", "no sentence contains 'bank'"),
        ("a\t\n", "no sentence contains 'bank'"),
    ],
)
def test_bad_files(cli, tiny_folder, tmp_path, text, message):
    (tmp_path / "x.tsv").write_text(text)
    done = cli("scatter", tmp_path / "x.tsv", "--word", "bank", "-m", tiny_folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_mistakes(cli, tiny, tiny_folder, tmp_path):
    assert "there is no file" in cli("scatter", tmp_path / "no", "--word", "a").stderr
    assert "--word" in cli("scatter", tmp_path / "no").stderr
    (tmp_path / "x.tsv").write_text("a\ta bank\n")
    assert "empty" in cli("scatter", tmp_path / "x.tsv", "--word", "", "-m", tiny_folder).stderr
    with pytest.raises(InputError, match="at most 5,000"):
        find_occurrences(tiny, bundled_examples("bank")[:1] * 5001, "bank")
