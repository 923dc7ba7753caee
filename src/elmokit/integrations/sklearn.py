"""scikit-learn: :class:`ElmoVectorizer` turns a column of texts into vectors, in any pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.arguments import each, file_path, one_of
from elmokit.elmo import Elmo, Text
from elmokit.errors import InputError, MissingExtraError, ModelError
from elmokit.formats import read_model
from elmokit.inference.arrays import Array
from elmokit.inference.layers import LayerChoice, Layers
from elmokit.inference.pooling import POOLINGS
from elmokit.inference.vectors import check_batch_size, float_type
from elmokit.text.tokenizers import Tokenizer

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingExtraError("scikit-learn>=1.6", "sklearn", "ElmoVectorizer") from error

AnyTokenizer = str | Tokenizer | Callable[[str], Iterable[str]] | None


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """One ELMo vector per text, as a step of a scikit-learn pipeline.

    The biLM is loaded when the vectorizer is fitted, and is shared by all vectorizers of a process
    that name the same model, such as the copies that a grid search makes. It is not part of a
    pickle, which holds the name and a checksum; the model must be there when the pickle is used.

    Args:
        model: The name of a bundled model, a folder or an archive, as for
            :meth:`~elmokit.elmo.Elmo.load`.
        layers: As for :meth:`~elmokit.elmo.Elmo.encode`. The vectors of several layers are put
            side by side.
        pooling: As for :meth:`~elmokit.elmo.Elmo.encode_sentences`.
        dtype: Type of the vectors: float32, float16 or float64.
        tokenizer: As for :meth:`~elmokit.elmo.Elmo.load`. Lists of tokens are used as they are.
        device: As for :meth:`~elmokit.elmo.Elmo.load`.
        quantize: As for :meth:`~elmokit.elmo.Elmo.load`.
        batch_size: As for :meth:`~elmokit.elmo.Elmo.encode`.
        progress: Show progress on standard error if the work takes more than two seconds.

    Attributes:
        checksum_: Checksum of the biLM.
        n_features_out_: Width of a vector.

    Examples:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from elmokit.integrations.sklearn import ElmoVectorizer
        >>> texts, labels = ["a fine film", "a dull film", "great fun", "no fun"], [1, 0, 1, 0]
        >>> pipeline = make_pipeline(ElmoVectorizer(), LogisticRegression()).fit(texts, labels)
        >>> pipeline.predict(["a great film"]).tolist()
        [1]
    """

    def __init__(
        self,
        model: str | Path = "en",
        *,
        layers: Layers = "mix",
        pooling: str = "mean",
        dtype: npt.DTypeLike = "float32",
        tokenizer: AnyTokenizer = None,
        device: str | None = None,
        quantize: str | None = None,
        batch_size: int | None = None,
        progress: bool = True,
    ) -> None:
        self.model = model
        self.layers = layers
        self.pooling = pooling
        self.dtype = dtype
        self.tokenizer = tokenizer
        self.device = device
        self.quantize = quantize
        self.batch_size = batch_size
        self.progress = progress

    def fit(self, texts: Iterable[Text], y: object = None) -> ElmoVectorizer:
        """Load the biLM and check the parameters; nothing is learned from the texts.

        Args:
            texts: Strings, or lists of tokens.
            y: Ignored; pipelines pass it.
        """
        _checked(texts)
        one_of(self.pooling, "pooling", POOLINGS)
        check_batch_size(self.batch_size)
        float_type(self.dtype)
        elmo, self.checksum_ = self._loaded()
        choice = LayerChoice.parse(self.layers, elmo.n_layers)
        self.n_features_out_ = int(np.prod(choice.layer_shape)) * elmo.dim
        return self

    def transform(self, texts: Iterable[Text]) -> Array:
        """Vectors (N, D) of N texts; (N, K · D) if K layers are chosen. An empty text gives zeros.

        Args:
            texts: Strings, or lists of tokens.
        """
        check_is_fitted(self)
        texts = _checked(texts)
        elmo, checksum = self._loaded()
        if checksum != self.checksum_:
            raise ModelError(
                f"this vectorizer was fitted with another model than {self.model} is now; use the "
                "files it was fitted with, or fit it again"
            )
        vectors = elmo.encode_sentences(
            texts,
            self.layers,
            pooling=self.pooling,
            dtype=self.dtype,
            batch_size=self.batch_size,
            progress=self.progress,
        )
        return vectors.reshape(len(vectors), self.n_features_out_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_features_out_

    def _loaded(self) -> tuple[Elmo, str]:
        path = os.path.expanduser(file_path(self.model, "model"))
        # the working directory may change; the name of a bundled model stays as it is
        model = os.path.abspath(path) if os.path.exists(path) else path
        return _load(model, _version(model), self.tokenizer, self.device, self.quantize)


def _checked(texts: Any) -> Iterable[Text]:
    """Texts, after a check that they are a list or a column."""
    if isinstance(texts, str):
        raise InputError("texts must be a list of texts, not one string; pass [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise InputError(
            f"texts must have one dimension, not {texts.ndim}; pass one column: array[:, 0], or "
            '"text" instead of ["text"] in a ColumnTransformer'
        )
    each(texts, "texts", "a list of texts")
    return texts


def _version(model: str) -> tuple[tuple[str, int, int], ...]:
    """What changes if a model's files are replaced: their sizes and times."""
    path = Path(model)
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    states = [(file.name, file.stat()) for file in files]
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)


@lru_cache(maxsize=2)  # a model and another to compare it with
def _load(
    model: str,
    version: tuple[tuple[str, int, int], ...],
    tokenizer: AnyTokenizer,
    device: str | None,
    quantize: str | None,
) -> tuple[Elmo, str]:
    checkpoint = read_model(model).without_softmax()
    elmo = Elmo(checkpoint, tokenizer, device, quantize=quantize)
    return elmo, elmo.checkpoint().checksum()
