"""ELMo in spaCy: the architecture ``elmokit.Elmo.v1`` to train on, and the component ``elmo``.

Both are entry points of the package, so spaCy finds them by name::

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp("I sat by the bank.")[4].vector
"""
# No future annotations: spaCy reads the types of build_elmo's arguments.

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.arguments import flag, number, whole_number, wrong
from elmokit.errors import InputError, MissingExtraError
from elmokit.integrations.spacy_bilm import FrozenBiLM

try:
    from spacy import util
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.tokens import Doc, Span, Token
    from thinc.api import Model
    from thinc.types import Floats2d
except ImportError as error:
    raise MissingExtraError("spacy", "spacy", "the component elmo of spaCy") from error

_DEFAULTS = {"model": "en", "layers": "mix", "store": False}


def build_elmo(
    model: str = "en",
    layers: Literal["mix", "top", "average"] | int = "mix",
    width: int | None = None,
    dropout: float = 0.5,
    store: bool = False,
    cache_mb: int = 1024,
) -> "Model[list[Doc], list[Floats2d]]":
    """The architecture ``elmokit.Elmo.v1``: documents to one array (T, D) each.

    The biLM is frozen. With ``layers="mix"``, the layer weights and the scale γ are learned; they
    start as those of the model. A pipeline's files contain the mix and a checksum of the biLM.

    Args:
        model: The name of a bundled model, or the path of a folder or ZIP archive of any format.
        layers: "mix", "average", "top", or the number of a layer (0 is the token layer).
        width: The width D of the vectors, for listeners that refer to it. Must be that of the
            model; None accepts any.
        dropout: Dropout on the vectors in training. spaCy's own ``training.dropout`` does not
            change it.
        store: Save the biLM with the pipeline, unless it is a bundled one. Otherwise its path is
            saved.
        cache_mb: Memory for the layers of training sentences, which are the same in every epoch.
    """
    if isinstance(layers, bool) or not (
        isinstance(layers, int) or layers in ("mix", "average", "top")
    ):
        raise wrong("layers", "mix, average, top, or the number of a layer", layers)
    bilm = FrozenBiLM(model, flag(store, "store"), whole_number(cache_mb, "cache_mb", 0))
    return Model(
        "elmo",
        _forward,
        init=_initialize,
        dims={"nO": None if width is None else whole_number(width, "width", 1)},
        params={"weights": None, "gamma": None} if layers == "mix" else {},
        attrs={"layers": layers, "elmo_dropout": number(dropout, "dropout", 0, 0.99)},
        shims=[bilm],
    )


def _initialize(model: Model, X: object = None, Y: object = None) -> None:  # noqa: N803
    """Set the width, and start the mix from the model's own."""
    elmo = model.shims[0].elmo
    if model.has_dim("nO") and model.get_dim("nO") != elmo.dim:
        raise InputError(
            f"the vectors of {model.shims[0].name} have the width {elmo.dim}, not "
            f"{model.get_dim('nO')}; set width = {elmo.dim}, also in components that listen"
        )
    model.set_dim("nO", elmo.dim)
    if model.attrs["layers"] == "mix":
        # γ as an array of length one: thinc's optimizers fail on numbers without a dimension
        for name, value in (("weights", elmo.mix.weights), ("gamma", elmo.mix.gamma.reshape(1))):
            own = value.detach().cpu().numpy().copy()  # optimizers write into it
            model.set_param(name, model.ops.asarray(own, dtype="f"))


def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """One array (T, D) per document, with zeros for tokens of white space."""
    ops, mixed = model.ops, model.attrs["layers"] == "mix"
    if not model.has_dim("nO") or (mixed and not model.has_param("gamma")):
        _initialize(model)  # of a pipeline that is used without nlp.initialize()
    if mixed:
        gamma, shares = model.get_param("gamma"), ops.softmax(model.get_param("weights"))
    width = model.get_dim("nO")
    vectors, layers = [], []
    chosen = "all" if mixed else model.attrs["layers"]
    for doc, sentences in zip(
        docs, model.shims[0].arrays(docs, chosen, ops, is_train), strict=True
    ):
        here = ops.alloc2f(len(doc), width)
        for positions, array in sentences:
            values = ops.asarray(array, dtype="f")
            here[positions] = ops.xp.tensordot(gamma * shares, values, 1) if mixed else values
        vectors.append(here)
        if is_train and mixed:
            layers.append(sentences)
    masks = None
    if is_train and model.attrs["elmo_dropout"]:
        masks = [ops.get_dropout_mask(v.shape, model.attrs["elmo_dropout"]) for v in vectors]
        vectors = [v * mask for v, mask in zip(vectors, masks, strict=True)]

    def backprop(gradients: list[Floats2d]) -> list[Doc]:
        if not mixed:
            return []
        if masks is not None:
            gradients = [g * mask for g, mask in zip(gradients, masks, strict=True)]
        products = ops.alloc1f(len(shares))  # of each layer with the gradient
        for gradient, sentences in zip(gradients, layers, strict=True):
            for positions, array in sentences:
                values = ops.asarray(array, dtype="f").reshape(len(shares), -1)
                products += values @ gradient[positions].reshape(-1)
        total = shares @ products
        model.inc_grad("gamma", total.reshape(1))
        model.inc_grad("weights", gamma * shares * (products - total))
        return []

    return vectors, backprop


class ElmoVectors(Pipe):
    """The component ``elmo``: contextual vectors in ``doc.tensor``, ``token.vector`` and so on.

    It does not learn. To train other components on ELMo, use ``elmokit.Elmo.v1`` in ``tok2vec``.
    In a pipeline with ``tok2vec``, put ``elmo`` after all components that listen to it: both write
    ``doc.tensor``.

    Args:
        name: The name of the component in its pipeline.
        model: A model made by :func:`build_elmo`.
    """

    def __init__(self, name: str, model: "Model[list[Doc], list[Floats2d]]") -> None:
        self.name, self.model = name, model

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of a document."""
        return next(self.pipe(iter([doc])))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the vectors of many documents, some at a time."""
        for docs in util.minibatch(stream, batch_size):
            try:
                for doc, vectors in zip(docs, self.model.predict(docs), strict=True):
                    doc.tensor = vectors
                    set_hooks(doc)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model's checksum, and the model if ``store`` is set."""
        return util.to_bytes({"model": self.model.to_bytes}, exclude)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoVectors":
        """Load what :meth:`to_bytes` returned."""
        util.from_bytes(data, {"model": self.model.from_bytes}, exclude)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write what :meth:`to_bytes` returns into a folder."""
        util.to_disk(path, {"model": self.model.to_disk}, exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoVectors":
        """Load what :meth:`to_disk` wrote."""
        util.from_disk(path, {"model": self.model.from_disk}, exclude)
        return self


def _make_component(
    nlp: Language,
    name: str,
    model: str,
    layers: Literal["mix", "top", "average"] | int,
    store: bool,
) -> ElmoVectors:
    return ElmoVectors(name, build_elmo(model, layers, store=store))


make_elmo = Language.factory(
    "elmo", assigns=["doc.tensor"], default_config=_DEFAULTS, func=_make_component
)
"""The factory ``elmo``, with the settings ``model``, ``layers`` and ``store`` of build_elmo."""


def set_hooks(doc: Doc) -> Doc:
    """Make a document, its spans and its tokens answer with the vectors in ``doc.tensor``.

    The component ``elmo`` does this. Documents that come from another process or from
    ``Doc.to_bytes`` have their tensor, but have lost these hooks.
    """
    hooks = {"vector": _vector, "vector_norm": _norm, "has_vector": _has, "similarity": _similarity}
    for own in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        own.update(hooks)
    return doc


def _vector(item: Doc | Span | Token) -> Any:
    """The vector of a token; the mean over the words of a span or document."""
    if isinstance(item, Token):
        return item.doc.tensor[item.i]
    tensor = item.tensor if isinstance(item, Doc) else item.doc.tensor
    words = [token.i for token in item if not token.is_space]
    return tensor[words].sum(axis=0) / max(1, len(words))


def _norm(item: Doc | Span | Token) -> float:
    return float(np.sqrt(float((_vector(item) ** 2).sum())))


def _has(item: Doc | Span | Token) -> bool:
    return _norm(item) > 0


def _similarity(item: Doc | Span | Token, other: Any) -> float:
    """The cosine similarity with anything else that has a vector of the same width."""
    a, b = _vector(item), other.vector
    if a.shape != b.shape:
        raise InputError(
            f"{str(other)!r} has a vector of the width {len(b)}, not {len(a)}; compare with "
            "documents of a pipeline with the same biLM"
        )
    norms = _norm(item) * float(np.sqrt(float((b**2).sum())))
    return float(a @ b) / norms if norms else 0.0
