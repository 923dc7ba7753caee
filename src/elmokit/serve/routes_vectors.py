"""Routes that return vectors: /embed, /embed_all, /v1/embeddings; and /tokenize."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from elmokit.analysis.similarity import unit
from elmokit.elmo import Text
from elmokit.inference.layers import LayerChoice
from elmokit.serve.asking import as_list, ask, loaded_of, read_texts
from elmokit.serve.encodings import (
    JsonResponse,
    check_numbers,
    sentence_vectors,
    token_vectors,
    vector_answers,
)
from elmokit.serve.loaded import Model
from elmokit.serve.refusals import RefusedError
from elmokit.serve.schemas import ASKING, EmbedAllBody, EmbedBody, InputsBody, OpenAiBody

router = APIRouter(responses=ASKING)


def _check_layer(model: Model, layers: str | int) -> None:
    if isinstance(layers, int):
        LayerChoice.parse(layers, model.elmo.n_layers)


@router.post("/embed", responses=vector_answers("A vector for each text."))
async def embed(body: EmbedBody, request: Request) -> Response:
    """Return one vector for each text, as ``Elmo.encode_sentences`` does."""
    model = loaded_of(request).model(body.model)
    _check_layer(model, body.layers)
    texts = await read_texts(request, model, as_list(body.inputs), truncate=body.truncate)
    found = await ask(request, model, model.pooled(body.layers, body.pooling), texts)
    vectors = np.stack(found)
    return sentence_vectors(request, unit(vectors) if body.normalize else vectors)


@router.post("/embed_all", responses=vector_answers("A vector for each token of each text."))
async def embed_all(body: EmbedAllBody, request: Request) -> Response:
    """Return one vector for each token, as ``Elmo.encode`` does."""
    model = loaded_of(request).model(body.model)
    _check_layer(model, body.layers)
    texts = await read_texts(request, model, as_list(body.inputs), truncate=body.truncate)
    n_layers = model.elmo.n_layers if body.layers == "all" else 1
    check_numbers(request, sum(map(len, texts)) * model.elmo.dim * n_layers)
    found = await ask(request, model, model.vectors(body.layers), texts)
    return token_vectors(request, found)


@router.post("/v1/embeddings")
async def openai_embeddings(body: OpenAiBody, request: Request) -> Response:
    """Return one vector of length 1 for each text, in the form of OpenAI."""
    model = loaded_of(request).model(body.model)
    dim = model.elmo.dim
    if body.dimensions not in (None, dim):
        raise RefusedError(422, f"dimensions must be {dim}, as {model.name} has, or left out")
    texts = await read_texts(request, model, as_list(body.input))
    vectors = unit(np.stack(await ask(request, model, model.pooled("mix", "mean"), texts)))
    return JsonResponse(_openai(model, vectors, texts, body.encoding_format == "base64"))


def _openai(model: Model, vectors: Any, texts: list[list[str]], packed: bool) -> dict[str, Any]:
    n_tokens = sum(map(len, texts))
    rows = (
        [b64encode(row.astype("<f4").tobytes()).decode() for row in vectors] if packed else vectors
    )
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "data": data, "model": model.name, "usage": usage}


@router.post("/tokenize")
async def tokenize(body: InputsBody, request: Request) -> Response:
    """Return the tokens of each text, and where they are in it."""
    model = loaded_of(request).model(body.model)
    inputs = as_list(body.inputs)
    texts = await read_texts(request, model, inputs)
    return JsonResponse(
        [placed(model, text, tokens) for text, tokens in zip(inputs, texts, strict=True)]
    )


def placed(model: Model, text: Text, tokens: list[str]) -> list[dict[str, Any]]:
    """Return tokens with their places in a text; without, if the text is a list of tokens."""
    spans: list[Any] = [(None, None)] * len(tokens)
    if isinstance(text, str):
        spans = model.elmo.tokenizer.spans(text)
    return [
        {"id": None, "text": token, "start": start, "stop": stop, "special": False}
        for token, (start, stop) in zip(tokens, spans, strict=True)
    ]
