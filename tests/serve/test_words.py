"""Routes about words: what they return is what the library returns."""

import math

import httpx
import numpy as np
import pytest

from elmokit.analysis.index.build import build_index
from elmokit.analysis.index.neighbours import neighbours
from elmokit.analysis.index.token_index import Index
from elmokit.analysis.scatter import BUNDLED
from elmokit.analysis.similarity import token_pairs
from elmokit.analysis.surprisal import surprisal
from helpers.serving import service

TEXT = "The cat sat on the mat ."


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


def test_surprisal(client, lm):
    found = client.post("/surprisal", json={"inputs": TEXT, "model": "lm"}).json()
    right = surprisal(lm, TEXT)
    assert [token["text"] for token in found["tokens"]] == right.tokens
    assert [token["known"] for token in found["tokens"]] == right.known
    near([token["forward_bits"] for token in found["tokens"]], right.bits["forward"])
    near([token["backward_bits"] for token in found["tokens"]], right.bits["backward"])
    perplexity = lm.perplexity(TEXT)
    near(found["forward_perplexity"], perplexity.forward)
    near(found["backward_perplexity"], perplexity.backward)


def test_substitutes(client, lm):
    body = {"text": TEXT, "position": 1, "k": 4, "model": "lm"}
    found = client.post("/substitutes", json=body).json()
    assert found["token"] == "cat"
    both = lm.substitutes(TEXT, 1, 4)
    assert [one["word"] for one in found["both"]] == [word for word, _ in both]
    near([one["probability"] for one in found["both"]], [p for _, p in both])
    for direction in ("forward", "backward"):
        assert len(found[direction]) == 4
    refused = client.post("/substitutes", json=body | {"position": 7})
    assert refused.status_code == 422
    assert "from 0 to 6" in refused.json()["error"]


def test_what_each_direction_expects_is_what_it_scores(lm):
    """The probabilities of expected() against those of score(), word by word."""
    tokens = lm.tokenize(TEXT)
    words = [w for w in lm.vocabulary.words if w not in type(lm.vocabulary).marks]
    found = lm.expected(TEXT, 2, len(words))
    scores = lm.score([[*tokens[:2], word, *tokens[3:]] for word in words])
    for direction in ("forward", "backward"):
        p = np.exp([getattr(score, direction)[2] for score in scores])
        expected = dict(zip(words, p / p.sum(), strict=True))
        assert math.isclose(sum(p for _, p in found[direction]), 1, rel_tol=1e-4)
        for word, probability in found[direction]:
            assert math.isclose(probability, expected[word], rel_tol=1e-3)


def test_token_pairs(client, tiny):
    second = "A dog ran"
    found = client.post("/similarity/tokens", json={"first": TEXT, "second": second}).json()
    right = token_pairs(tiny, TEXT, second)
    assert (found["first"], found["second"]) == (right.first, right.second)
    assert list(found["layers"]) == ["0", "1", "2", "mix"]
    for k in range(3):
        near(found["layers"][str(k)], right.cosines[k])
    x, y = tiny.encode([TEXT, second])
    near(found["layers"]["mix"], (x @ y.T) / np.outer(*(np.linalg.norm(a, axis=1) for a in (x, y))))


def test_scatter(client):
    sentences = [{"text": f"{a} bank {b}", "label": a} for a in ("red", "blue") for b in "xyz"]
    body = {"sentences": [*sentences, {"text": "nothing here"}], "word": "bank"}
    found = client.post("/scatter", json=body).json()
    assert found["missing"] == [6]
    assert [point["sentence"] for point in found["points"]] == [0, 1, 2, 3, 4, 5]
    assert {point["token"] for point in found["points"]} == {1}
    assert {point["label"] for point in found["points"]} == {"red", "blue"}
    assert {point["cluster"] for point in found["points"]} == {0, 1}
    assert all(set(point["layers"]) == {"0", "1", "2", "mix"} for point in found["points"])
    assert {tuple(point["layers"]["0"]) for point in found["points"]} == {(0.0, 0.0)}  # static
    assert len({tuple(point["layers"]["1"]) for point in found["points"]}) == 6
    assert set(found["silhouette"]) == {"0", "1", "2", "mix"}
    assert found["silhouette"]["2"] > found["silhouette"]["0"] == 0


def test_examples(client):
    found = client.get("/examples").json()
    assert set(found["en"]) | set(found["zh"]) == set(BUNDLED)
    assert {"text", "label"} == set(found["en"]["bank"][0])


def test_info(client, tiny):
    found = client.get("/info").json()
    assert [model["name"] for model in found["models"]] == ["tiny", "lm"]
    assert [model["has_softmax"] for model in found["models"]] == [False, True]
    assert found["models"][0]["dim"] == tiny.dim
    assert found["default_model"] == "tiny"
    assert not found["index"]["available"]
    assert "elmokit index" in found["index"]["how"]
    assert client.get("/ready").json() == {"status": "ready"}


def test_metrics(client):
    client.post("/embed", json={"inputs": ["a b", "c"]})
    text = client.get("/metrics").text
    for name in ("elmokit_requests_total", "elmokit_batch_texts_sum", "elmokit_queue_texts"):
        assert f"\n{name}{{" in text


def test_neighbours_over_an_index(tmp_path, lm_folder, lm):
    text = tmp_path / "text.txt"
    words = ["cat", "dog", "bank", "river"]
    text.write_text("".join(f"The {a} sat on the {b} .\n" for a in words for b in words))
    build_index(lm, [text], tmp_path / "index")
    given = ("--model", lm_folder, "--index", tmp_path / "index")
    with service(tmp_path, *given) as running:
        body = {"text": "The cat sat on the mat .", "position": 1, "k": 3}
        found = httpx.post(f"{running.url}/neighbours", json=body).json()
        info = httpx.get(f"{running.url}/info").json()["index"]
    right = neighbours(Index.open(tmp_path / "index"), lm, body["text"], "cat", 3)
    assert [one["sentence"] for one in found["contextual"]] == [
        " ".join(one.tokens) for one in right.occurrences
    ]
    near([one["similarity"] for one in found["contextual"]], [o.cosine for o in right.occurrences])
    assert [(one["word"]) for one in found["static"]] == [word for word, _ in right.words]
    assert info["available"]
    assert not info["bundled"]


@pytest.mark.parametrize("position", [-1, 7, 10**7])
def test_positions(client, position):
    body = {"text": TEXT, "position": position, "model": "lm"}
    assert client.post("/substitutes", json=body).status_code == 422
