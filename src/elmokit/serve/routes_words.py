"""Routes about words in their sentences: surprisal, substitutes, neighbours, senses."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from elmokit.analysis.index.neighbours import neighbours_at
from elmokit.analysis.senses.sense_vectors import AROUND, SenseVectors, target_vectors
from elmokit.analysis.senses.tagged_text import TaggedSentence, Target
from elmokit.analysis.senses.wordnet import WordNet
from elmokit.elmo import Elmo
from elmokit.inference.perplexity import Perplexity
from elmokit.serve.asking import ask, ask_sized, at_position, loaded_of, read_texts
from elmokit.serve.encodings import JsonResponse
from elmokit.serve.loaded import HOW_SENSES, Model
from elmokit.serve.refusals import RefusedError
from elmokit.serve.routes_vectors import placed
from elmokit.serve.schemas import ASKING, PlaceBody, RankedBody, SurprisalBody

router = APIRouter(responses=ASKING)


def _check_softmax(model: Model) -> None:
    if model.elmo.vocabulary is None:
        raise RefusedError(
            422, f"the model {model.name} has no softmax, so it gives vectors but no probabilities"
        )


async def _one_text(request: Request, model: Model, text: str) -> list[str]:
    (tokens,) = await read_texts(request, model, [text])
    if not tokens:
        raise RefusedError(422, "the text has no tokens; expected at least one word")
    return tokens


@router.post("/surprisal")
async def surprisal(body: SurprisalBody, request: Request) -> Response:
    """Return -log2 p of each token, given those before it and given those after it."""
    model = loaded_of(request).model(body.model)
    _check_softmax(model)
    tokens = await _one_text(request, model, body.inputs)
    (score,) = await ask(request, model, model.scores(), [tokens])
    perplexity = Perplexity.from_scores([score])
    forward = (-score.forward / math.log(2)).tolist()
    backward = [None] * len(tokens)
    if score.backward is not None:
        backward = (-score.backward / math.log(2)).tolist()
    rows = [
        {"text": token["text"], "start": token["start"], "stop": token["stop"]}
        | {"forward_bits": ahead, "backward_bits": behind, "known": known}
        for token, ahead, behind, known in zip(
            placed(model, body.inputs, tokens), forward, backward, score.known.tolist(), strict=True
        )
    ]
    return JsonResponse(
        {
            "tokens": rows,
            "forward_perplexity": perplexity.forward,
            "backward_perplexity": perplexity.backward,
        }
    )


@router.post("/substitutes")
async def substitutes(body: RankedBody, request: Request) -> Response:
    """Return the words that each direction expects at a position, and those that fit both."""
    model = loaded_of(request).model(body.model)
    _check_softmax(model)
    tokens = await _one_text(request, model, body.text)
    token = at_position(tokens, body.position)
    kind = model.kind("substitutes", partial(_expected, model.elmo), most=1)
    (found,) = await ask_sized(
        request, model, kind, [(tokens, body.position, body.k)], [len(tokens)]
    )
    return JsonResponse({"token": token} | found)


def _expected(elmo: Elmo, asked: list[tuple[list[str], int, int]]) -> list[dict[str, Any]]:
    found = []
    for tokens, position, k in asked:
        both: dict[str, Any] = {"forward": [], "backward": []}
        both |= elmo.expected(tokens, position, k)
        both["both"] = elmo.substitutes(tokens, position, k)
        found.append(
            {
                name: [{"word": word, "probability": p} for word, p in words]
                for name, words in both.items()
            }
        )
    return found


@router.post("/neighbours")
async def neighbours(body: RankedBody, request: Request) -> Response:
    """Return the tokens of an indexed text nearest to a word in its sentence."""
    loaded = loaded_of(request)
    index = loaded.index
    if index is None:
        raise RefusedError(404, f"there is no index: {loaded.how_index}")
    model = loaded.model(body.model or loaded.index_model)
    if model.name != loaded.index_model:
        raise RefusedError(
            404, f"the index belongs to the model {loaded.index_model}, not to {model.name}"
        )
    tokens = await _one_text(request, model, body.text)
    token = at_position(tokens, body.position)

    def run(asked: list[tuple[list[str], int, int]]) -> list[Any]:
        return [neighbours_at(index, model.elmo, *one) for one in asked]

    kind = model.kind("neighbours", run, most=1)
    (found,) = await ask_sized(
        request, model, kind, [(tokens, body.position, body.k)], [len(tokens)]
    )
    contextual = [
        {
            "sentence": " ".join(one.tokens),
            "tokens": one.tokens,
            "position": one.position,
            "token": one.word,
            "similarity": one.cosine,
        }
        for one in found.occurrences
    ]
    static = [{"word": word, "similarity": cosine} for word, cosine in found.words]
    return JsonResponse({"token": token, "contextual": contextual, "static": static})


@router.post("/senses")
async def senses(body: PlaceBody, request: Request) -> Response:
    """Return the senses that WordNet has for a word, the likeliest in its sentence first."""
    loaded = loaded_of(request)
    if loaded.senses is None:
        raise RefusedError(404, HOW_SENSES)
    vectors, wordnet, model = loaded.senses
    if body.model not in (None, model.name):
        raise RefusedError(404, f"the senses belong to the model {model.name}")
    tokens = await _one_text(request, model, body.text)
    token = at_position(tokens, body.position)
    kind = model.kind("senses", partial(_senses, model.elmo, vectors, wordnet), most=1)
    (found,) = await ask_sized(request, model, kind, [(tokens, body.position)], [len(tokens)])
    return JsonResponse({"token": token, "senses": found})


def _senses(
    elmo: Elmo, vectors: SenseVectors, wordnet: WordNet, asked: list[tuple[list[str], int]]
) -> list[list[dict[str, Any]]]:
    """Rank the senses of tokens by the cosine similarity of their contexts; unseen ones last."""
    sentences = []
    for tokens, position in asked:
        target = Target(
            position, position + 1, "", "", keys=tuple(wordnet.of_form(tokens[position]))
        )
        sentences.append(TaggedSentence(tokens, [target]))
    found = []
    for target, vector in target_vectors(elmo, sentences):
        scored = [(key, vectors.nearest(vector, [key], AROUND)) for key in target.keys]
        ranked = sorted(scored, key=lambda one: -math.inf if one[1] is None else one[1][1])[::-1]
        found.append(
            [
                {
                    "sense": key,
                    "gloss": wordnet.gloss(key),
                    "score": None if nearest is None else nearest[1],
                }
                for key, nearest in ranked
            ]
        )
    return found
