"""Routes that compare vectors: /similarity, /similarity/tokens, /scatter."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from fastapi import APIRouter, Request
from starlette.responses import Response

from elmokit.analysis.phrases import find_phrase
from elmokit.analysis.scatter import project, silhouette
from elmokit.analysis.similarity import cosine, unit
from elmokit.elmo import Elmo
from elmokit.serve.asking import ask, loaded_of, read_texts
from elmokit.serve.clusters import cluster
from elmokit.serve.encodings import JsonResponse
from elmokit.serve.refusals import RefusedError
from elmokit.serve.schemas import ASKING, ScatterBody, SimilarityBody, TokenPairsBody

router = APIRouter(responses=ASKING)

Floats = npt.NDArray[np.float32]

_MOST_PAIRS, _MOST_POINTS, _MOST_CLUSTERS = 60_000, 2000, 20


@router.post("/similarity")
async def similarity(body: SimilarityBody, request: Request) -> Response:
    """Return the cosine similarity of a sentence to each of some others."""
    model = loaded_of(request).model(body.model)
    given = [body.inputs.source_sentence, *body.inputs.sentences]
    texts = await read_texts(request, model, given)
    first, *others = await ask(request, model, model.pooled("mix", "mean"), texts)
    return JsonResponse(cosine(first[None], np.stack(others)))


@router.post("/similarity/tokens")
async def token_similarity(body: TokenPairsBody, request: Request) -> Response:
    """Return the cosine similarity of every token of a sentence to every token of another."""
    model = loaded_of(request).model(body.model)
    first, second = await read_texts(request, model, [body.first, body.second])
    if not first or not second:
        raise RefusedError(422, "a sentence has no tokens; expected two sentences")
    if len(first) * len(second) > _MOST_PAIRS:
        raise RefusedError(
            413, f"{len(first) * len(second):,} pairs of tokens are more than {_MOST_PAIRS:,}"
        )
    x, y = await ask(request, model, model.vectors("all"), [first, second])
    a, b = with_mix(model.elmo, x), with_mix(model.elmo, y)
    layers = {name: unit(a[name]) @ unit(b[name]).T for name in a}
    return JsonResponse({"first": first, "second": second, "layers": layers})


@router.post("/scatter")
async def scatter(body: ScatterBody, request: Request) -> Response:
    """Return the occurrences of a word as points in the plane, one set per layer."""
    model = loaded_of(request).model(body.model)
    texts = await read_texts(request, model, [one.text for one in body.sentences])
    phrase = await model.tokenize(body.word)
    if not phrase:
        raise RefusedError(422, "word has no tokens; expected a word of the sentences")
    places = [find_phrase(tokens, phrase) for tokens in texts]
    having = [i for i, some in enumerate(places) if some]
    missing = [i for i, some in enumerate(places) if not some]
    found = [(i, place) for i in having for place in places[i]]
    if len(found) > _MOST_POINTS:
        raise RefusedError(413, f"the word occurs more than {_MOST_POINTS:,} times; send fewer")
    if not found:
        return JsonResponse({"points": [], "missing": missing, "silhouette": {}})
    encoded = await ask(request, model, model.vectors("all"), [texts[i] for i in having])
    of_text = dict(zip(having, encoded, strict=True))
    vectors = np.stack([of_text[i][:, place.tokens].mean(1) for i, place in found], 1)
    layers = with_mix(model.elmo, vectors)
    labels = [body.sentences[i].label for i, _ in found]
    named = {label for label in labels if label}
    n_clusters = body.clusters or min(_MOST_CLUSTERS, max(2, len(named)))

    def computed() -> tuple[Any, dict[str, Any], dict[str, float]]:
        groups = cluster(layers["mix"], n_clusters)
        points = {name: project(some)[0] for name, some in layers.items()}
        senses = [label or "" for label in labels] if len(named) > 1 else list(map(str, groups))
        return groups, points, {name: silhouette(some, senses) for name, some in layers.items()}

    groups, points, scores = await asyncio.to_thread(computed)  # may take seconds
    return JsonResponse(
        {
            "points": [
                _point(i, place.start, labels[n], groups[n], {k: p[n] for k, p in points.items()})
                for n, (i, place) in enumerate(found)
            ],
            "missing": missing,
            "silhouette": {k: None if np.isnan(v) else v for k, v in scores.items()},
        }
    )


def _point(
    sentence: int, token: int, label: str | None, group: int, layers: dict[str, Any]
) -> dict[str, Any]:
    return {
        "sentence": sentence,
        "token": token,
        "label": label,
        "cluster": group,
        "layers": layers,
    }


def with_mix(elmo: Elmo, layers: Floats) -> dict[str, Floats]:
    """Return layers (L + 1, …, D) by their number, and their mix."""
    shares = torch.softmax(elmo.mix.weights, 0).cpu().numpy()
    mixed = float(elmo.mix.gamma) * np.tensordot(shares, layers, 1).astype(np.float32)
    return {str(k): np.ascontiguousarray(layer) for k, layer in enumerate(layers)} | {"mix": mixed}
