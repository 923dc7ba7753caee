"""Bodies of requests. Types are strict: the number 1 is not a text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _whole(text: str) -> str:
    """Refuse half of a character, which JSON can write and UTF-8 cannot."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("the text has half of a surrogate pair") from None
    return text


Words = Annotated[str, AfterValidator(_whole)]
Text = Annotated[Words, Field(description="A text.")]
Inputs = (
    Words
    | Annotated[list[Words], Field(min_length=1, description="Texts.")]
    | Annotated[list[list[Words]], Field(min_length=1, description="Texts as lists of tokens.")]
)
Layer = Annotated[int, Field(ge=0, le=64, description="Number of a layer; 0 is the token layer.")]
OneLayer = Literal["mix", "top", "average"] | Layer
AnyLayers = Literal["mix", "top", "average", "all"] | Layer
Position = Annotated[int, Field(ge=0, le=1_000_000, description="Number of a token, from 0.")]
Number = Annotated[int, Field(ge=1, le=100, description="How many results.")]
ModelName = Annotated[Words | None, Field(description="Name of a model; default: the first.")]


class Body(BaseModel):
    """What all bodies share."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: ModelName = None


class EmbedBody(Body):
    """Texts to turn into one vector each."""

    inputs: Inputs
    normalize: bool = True
    truncate: bool = False
    layers: OneLayer = "mix"
    pooling: Literal["mean", "max", "first-last"] = "mean"


class EmbedAllBody(Body):
    """Texts to turn into a vector per token."""

    inputs: Inputs
    truncate: bool = False
    layers: AnyLayers = "mix"


class OpenAiBody(BaseModel):
    """A request in the form of OpenAI. Fields that it does not name are ignored."""

    model_config = ConfigDict(strict=True)

    input: Words | Annotated[list[Words], Field(min_length=1)]
    model: ModelName = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class InputsBody(Body):
    """Texts."""

    inputs: Inputs


class SentencePair(BaseModel):
    """A sentence, and others to compare it with."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source_sentence: Text
    sentences: Annotated[list[Words], Field(min_length=1)]


class SimilarityBody(Body):
    """Sentences to compare."""

    inputs: SentencePair


class TokenPairsBody(Body):
    """Two sentences to compare token by token."""

    first: Text
    second: Text


class LabelledText(BaseModel):
    """A sentence, perhaps with a label."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Text
    label: Words | None = None


class ScatterBody(Body):
    """Sentences that contain a word."""

    sentences: Annotated[list[LabelledText], Field(min_length=1)]
    word: Annotated[Words, Field(min_length=1, max_length=200)]
    clusters: Annotated[int, Field(ge=1, le=20)] | None = None


class SurprisalBody(Body):
    """A text to read."""

    inputs: Text


class PlaceBody(Body):
    """A word in a text."""

    text: Text
    position: Position


class RankedBody(PlaceBody):
    """A word in a text, and the number of results."""

    k: Number = 10


class PredictBody(BaseModel):
    """What a task model is asked about."""

    model_config = ConfigDict(extra="forbid", strict=True)

    inputs: (
        Words
        | dict[Words, Words]
        | Annotated[list[Words | dict[Words, Words] | list[Words]], Field(min_length=1)]
    )


class Problem(BaseModel):
    """An error: one sentence, and its type."""

    error: str
    error_type: Literal[
        "validation", "not_found", "overloaded", "unauthorized", "payload", "backend"
    ]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors of a route."""
    return {status: {"model": Problem} for status in (*statuses, 401, 421)}


ASKING = problems(404, 406, 408, 413, 422, 429, 500, 503)
"""Errors of routes that ask a model."""
