"""Vectors from a real server equal those of Elmo.encode, in every form and whatever the batch."""

import asyncio
import io
import random

import httpx
import numpy as np
import openai
import pyarrow as pa
import pytest

from elmokit.analysis.similarity import cosine, unit

TEXTS = ["The cat sat on the mat .", "A bank", "", "One two three four five six seven eight nine"]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def npy(answer):
    return np.load(io.BytesIO(answer.content), allow_pickle=False)


def test_embed(client, tiny):
    expected = tiny.encode_sentences(TEXTS)
    found = client.post("/embed", json={"inputs": TEXTS, "normalize": False})
    assert found.status_code == 200
    close(found.json(), expected)
    close(client.post("/embed", json={"inputs": TEXTS}).json(), unit(expected))
    close(client.post("/embed", json={"inputs": TEXTS[0]}).json(), unit(expected[:1]))


@pytest.mark.parametrize("layers", ["mix", "top", "average", 0, 2])
@pytest.mark.parametrize("pooling", ["mean", "max", "first-last"])
def test_layers_and_pooling(client, tiny, layers, pooling):
    body = {"inputs": TEXTS, "layers": layers, "pooling": pooling, "normalize": False}
    close(
        client.post("/embed", json=body).json(),
        tiny.encode_sentences(TEXTS, layers, pooling=pooling),
    )


def test_tokens_are_taken_as_they_are(client, tiny):
    tokens = [["New York", "is", "large"], ["a"]]
    found = client.post("/embed", json={"inputs": tokens, "normalize": False}).json()
    close(found, tiny.encode_sentences(tokens))


def test_npy_and_arrow(client, tiny):
    body, expected = {"inputs": TEXTS, "normalize": False}, tiny.encode_sentences(TEXTS)
    answer = client.post("/embed", json=body, headers={"Accept": "application/x-npy"})
    assert answer.headers["content-type"] == "application/x-npy"
    assert npy(answer).dtype == np.float32
    close(npy(answer), expected)
    arrow = {"Accept": "application/vnd.apache.arrow.stream"}
    table = pa.ipc.open_stream(client.post("/embed", json=body, headers=arrow).content).read_all()
    close(np.array(table["vector"].to_pylist()), expected)


@pytest.mark.parametrize("layers", ["mix", "all", 1])
def test_embed_all(client, tiny, layers):
    body, expected = {"inputs": TEXTS, "layers": layers}, tiny.encode(TEXTS, layers)
    found = client.post("/embed_all", json=body).json()
    for one, right in zip(found, expected, strict=True):
        if right.size:
            close(one, right)
        else:
            assert one == ([[]] * len(right) if layers == "all" else [])
    headers = {"Accept": "application/x-npy"}
    several = npy(client.post("/embed_all", json=body, headers=headers))
    for i, right in enumerate(expected):
        np.testing.assert_allclose(several[f"arr_{i}"], right, rtol=0, atol=2e-5)
    one = client.post("/embed_all", json=body | {"inputs": TEXTS[0]}, headers=headers)
    close(npy(one), expected[0])
    arrow = {"Accept": "application/vnd.apache.arrow.stream"}
    answer = client.post("/embed_all", json=body, headers=arrow)
    table = pa.ipc.open_stream(answer.content).read_all()
    names = [f"layer_{k}" for k in range(tiny.n_layers)] if layers == "all" else ["vectors"]
    assert table.column_names == names
    last = expected[3][-1] if layers == "all" else expected[3]
    close(np.array(table[names[-1]][3].as_py()), last)


def test_the_openai_client(served, tiny):
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        packed = client.embeddings.create(model="tiny", input=TEXTS)  # base64 by default
        plain = client.embeddings.create(model="tiny", input=TEXTS, encoding_format="float")
        one = client.embeddings.create(model="tiny", input=TEXTS[0], dimensions=tiny.dim)
    vectors = np.array([one.embedding for one in plain.data])
    close(vectors, unit(tiny.encode_sentences(TEXTS)))
    np.testing.assert_allclose(vectors, [one.embedding for one in packed.data], atol=1e-7)
    close([one.data[0].embedding], vectors[:1])
    n_tokens = sum(len(tiny.tokenize(text)) for text in TEXTS)
    assert plain.usage.prompt_tokens == plain.usage.total_tokens == n_tokens
    assert [one.index for one in plain.data] == [0, 1, 2, 3]
    assert (plain.model, plain.object) == ("tiny", "list")


def test_the_openai_route_refuses_numbers_and_other_dimensions(served):
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        for given in ([1, 2, 3], [[1, 2], [3]]):
            with pytest.raises(openai.UnprocessableEntityError):
                client.embeddings.create(model="tiny", input=given)
        with pytest.raises(openai.UnprocessableEntityError, match="dimensions must be"):
            client.embeddings.create(model="tiny", input="A", dimensions=3)
        with pytest.raises(openai.NotFoundError, match="choose one of tiny, lm"):
            client.embeddings.create(model="other", input="A")


def test_tokenize(client, tiny):
    text = "Don't stop: 3 words."
    (tokens,) = client.post("/tokenize", json={"inputs": text}).json()
    assert [token["text"] for token in tokens] == tiny.tokenize(text)
    assert all(text[token["start"] : token["stop"]] == token["text"] for token in tokens)
    assert {(token["id"], token["special"]) for token in tokens} == {(None, False)}


def test_similarity(client, tiny):
    given = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}
    found = client.post("/similarity", json={"inputs": given}).json()
    first, *others = tiny.encode_sentences(TEXTS)
    np.testing.assert_allclose(found, cosine(first[None], np.stack(others)), atol=2e-5)


def test_many_clients_at_once_get_what_encode_gives(served, tiny):
    """Texts of all lengths, of several kinds, in batches that nobody can foresee."""
    rng = random.Random(0)
    lengths = [rng.choice([1, 3, 10, 40]) for _ in range(120)] + [300, 500, 700]
    texts = [[f"w{rng.randrange(500)}" for _ in range(n)] for n in lengths]
    rng.shuffle(texts)
    expected = tiny.encode(texts, "all")

    async def ask(client, i):
        if i % 3 == 0:
            body = {"inputs": [texts[i]], "layers": i % 2 + 1}
            answer = await client.post("/embed_all", json=body)
            return answer.json()[0], expected[i][i % 2 + 1]
        pair = [texts[i], texts[i - 1]]
        body = {"inputs": pair, "layers": "top", "normalize": False}
        answer = await client.post("/embed", json=body)
        return answer.json(), np.stack([expected[i][-1].mean(0), expected[i - 1][-1].mean(0)])

    async def run():
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=served.url, limits=limits, timeout=60) as client:
            return await asyncio.gather(*(ask(client, i) for i in range(len(texts))))

    for found, right in asyncio.run(run()):
        close(found, right)
