"""flair: ELMo as token embeddings, with the arguments of flair's own ``ELMoEmbeddings``.

That class needs AllenNLP 0.9, which today's Python cannot install. This one needs the extra
``flair`` only::

    from elmokit.integrations.flair import ELMoEmbeddings

A saved flair model names its biLM and the checksum of its weights, but does not contain them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmokit.arguments import file_path, one_of
from elmokit.elmo import Elmo
from elmokit.errors import (
    FormatError,
    InputError,
    MissingExtraError,
    ModelNotFoundError,
    shown,
)
from elmokit.formats import (
    bundled_models,
    bundled_name,
    bundled_path,
    find_model,
    read_files,
    read_model,
)
from elmokit.formats.checkpoint import Checkpoint
from elmokit.nn.scalar_mix import ScalarMix

try:
    import flair
    from flair.data import Sentence
    from flair.embeddings.base import TokenEmbeddings, register_embeddings
except ModuleNotFoundError as error:
    raise MissingExtraError("flair", "flair", "ELMoEmbeddings for flair") from error

MODES = ("all", "top", "average", "mix")
"""How the layers of a token become one vector."""
DOWNLOADS = ("original", "small", "medium", "large", "5.5B", "pt", "portuguese", "pubmed")
"""Models that flair downloaded by name."""

_REGISTERED = "elmokit.ELMoEmbeddings"  # flair writes it into saved models


class SavedModel(NamedTuple):
    """Which biLM a saved flair model needs.

    flair loads a saved model by unpickling it. This class is in the pickle, so unpickling imports
    this module, and flair then knows the embeddings without an import by the user.
    """

    name: str
    """Name of a bundled model, or of the folder or archive of another one."""
    files: tuple[str, ...]
    """Paths: none for a bundled model, a folder or archive, or options and weights."""
    sha256: str
    """Checksum of the biLM's weights, without the softmax."""

    def find(self) -> tuple[Path | None, Path | None, Path | None]:
        """Where the biLM is now, as the arguments model, options_file and weight_file."""
        if not self.files:
            return bundled_path(self.name), None, None
        paths = [Path(file) for file in self.files]
        if all(path.exists() for path in paths):
            return (paths[0], None, None) if len(paths) == 1 else (None, paths[0], paths[1])
        folder = (paths[0] if len(paths) == 1 else paths[0].parent).name
        try:
            return find_model(folder), None, None
        except ModelNotFoundError as error:
            raise ModelNotFoundError(
                f"this flair model was saved with the biLM {', '.join(self.files)}, which does not "
                f"exist here; copy it there, or put it as {folder} into a folder of $ELMOKIT_MODELS"
            ) from error


class ELMoEmbeddings(TokenEmbeddings):
    """ELMo vectors of the tokens of flair's sentences.

    The tokens are used as they are. The biLM is frozen. Each sentence is computed independently of
    all others; flair's own class carries the state of the LSTMs from one batch to the next.

    Args:
        model: A bundled model ("en", "zh"), a folder, an archive, or a name in a folder of
            $ELMOKIT_MODELS. Default: "en". With ``options_file`` and ``weight_file`` it is only
            part of the name.
        options_file: The options.json of a published model. Needs ``weight_file``.
        weight_file: The HDF5 weights that go with ``options_file``.
        embedding_mode: "all" concatenates all layers, the token layer first. "top" is the last
            layer, "average" the mean of all. "mix" is γ · Σ softmax(w)_k · layer_k, whose weights
            and scale are learned with the task; it runs the biLM in every epoch, the other modes
            only in the first.
        name: The name under which flair stores the vectors in a token. Default: made from the
            model and the mode.

    Examples:
        >>> from flair.data import Sentence
        >>> embeddings = ELMoEmbeddings("en")
        >>> sentence = Sentence("I sat by the bank .")
        >>> _ = embeddings.embed(sentence)
        >>> sentence[4].embedding.shape, embeddings.embedding_length
        (torch.Size([2304]), 2304)
    """

    def __init__(
        self,
        model: str | Path | None = None,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        embedding_mode: str = "all",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.embedding_mode = one_of(embedding_mode, "embedding_mode", MODES)
        self.static_embeddings = embedding_mode != "mix"
        if (options_file is None) != (weight_file is None):
            raise InputError("options_file= and weight_file= belong together; pass both or neither")
        if options_file is not None and weight_file is not None:
            given = {"options_file": options_file, "weight_file": weight_file}
            files: tuple[str, ...] = tuple(_absolute(path, key) for key, path in given.items())
            self.elmo = _vectors_only(read_files(files[0], files[1]))
            label = Path(files[0]).parent.name if model is None else str(model)
            self._saved = SavedModel(label, files, self.elmo.checkpoint().checksum())
        else:
            path = _find("en" if model is None else model)
            self.elmo = _vectors_only(read_model(path))
            bundled = bundled_name(path)
            files = () if bundled else (str(path),)
            self._saved = SavedModel(bundled or path.name, files, self.elmo.checkpoint().checksum())
        if self.embedding_mode == "mix":
            own = self.elmo.config.mix
            self.mix = ScalarMix(self.elmo.n_layers, own.weights, own.gamma)
        self.name = self._default_name() if name is None else name
        self.to(flair.device)
        self.eval()

    @property
    def embedding_length(self) -> int:
        """Width of a token's vector."""
        return self.elmo.dim * (self.elmo.n_layers if self.embedding_mode == "all" else 1)

    def extra_repr(self) -> str:
        """What ``repr`` shows in the brackets."""
        return f"model={self.name}"

    def __str__(self) -> str:
        return self.name

    def _default_name(self) -> str:
        """Differs for different weights: flair takes vectors of the same name as computed."""
        label = self._saved.name
        if self._saved.files:
            label += f"-{self._saved.sha256[:8]}"
        return f"elmo-{label}-{self.embedding_mode}"

    def _everything_embedded(self, data_points: Sequence[Sentence]) -> bool:
        # flair keeps vectors without gradients, such as those of an evaluation, but the learned
        # weights change after it
        return self.static_embeddings and super()._everything_embedded(data_points)

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> list[Sentence]:
        """Compute the vectors of a batch and store them in its tokens."""
        if self.elmo.device != flair.device:  # the user has set another device meanwhile
            self.elmo.to(flair.device)
        words = [[token.text for token in sentence] for sentence in sentences]
        layers = "all" if self.embedding_mode == "mix" else self.embedding_mode
        found = self.elmo.encode(words, layers, progress=False)
        for sentence, array in zip(sentences, found, strict=True):
            vectors = self._combined(torch.from_numpy(array).to(flair.device))
            for token, vector in zip(sentence, vectors, strict=True):
                token.set_embedding(self.name, vector)
        return sentences

    def _combined(self, layers: Tensor) -> Tensor:
        """Layers (K, T, D) of a sentence, or one (T, D), as one vector per token."""
        if self.embedding_mode == "mix":
            mixed: Tensor = self.mix(layers)
            return mixed
        return layers.transpose(0, 1).flatten(1) if self.embedding_mode == "all" else layers

    def to_params(self) -> dict[str, Any]:
        """What flair writes into a saved model."""
        return {
            "model": self._saved,
            "embedding_mode": self.embedding_mode,
            "name": self.name,
        }

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> ELMoEmbeddings:
        """Load the biLM that :meth:`to_params` names, and check that it is the same."""
        saved = SavedModel(*params["model"])
        embeddings = cls(*saved.find(), params["embedding_mode"], params["name"])
        if embeddings._saved.sha256 != saved.sha256:
            place = ", ".join(embeddings._saved.files) or saved.name
            raise FormatError(
                f"this flair model was saved with another biLM than the one in {place}: the "
                "weights differ; use the version it was trained with, or train it again"
            )
        embeddings._saved = embeddings._saved._replace(name=saved.name)
        return embeddings


register_embeddings(_REGISTERED)(ELMoEmbeddings)


def _find(model: str | Path) -> Path:
    """The folder or archive of a model; explains names that flair used to download."""
    file_path(model, "model")
    try:
        return find_model(model).absolute()
    except ModelNotFoundError as error:
        if str(model) not in DOWNLOADS:
            raise
        raise ModelNotFoundError(
            f"flair downloaded the model {shown(str(model))}, which ElmoKit does not; get "
            "its options.json and weights.hdf5 and pass them as options_file= and weight_file=, or "
            f"use a bundled model ({', '.join(bundled_models())})"
        ) from error


def _absolute(path: str | Path, name: str) -> str:
    return str(file_path(path, name).expanduser().absolute())


def _vectors_only(checkpoint: Checkpoint) -> Elmo:
    """A model without softmax; one may be added to its files later."""
    return Elmo(checkpoint.without_softmax(), device=flair.device)
