"""ELMo as the first module of a SentenceTransformer: encode, fine-tune, save, evaluate.

:class:`ElmoModule` gives token embeddings to the stock ``Pooling`` module. :func:`load` builds a
whole ``SentenceTransformer`` from a model, or opens a saved one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit._version import __version__
from elmokit.arguments import file_path, one_of, whole_number, wrong
from elmokit.config import MixConfig
from elmokit.devices import check_memory
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError, MissingExtraError, shortened, shown
from elmokit.formats import bundled_models, bundled_path, native, read_model
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.inference.engine import BatchResult, Engine
from elmokit.inference.layers import LayerChoice
from elmokit.io.atomic import remove_path, write_text
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.text.languages import LanguageCheck
from elmokit.text.tokenizers import tokenize_one

try:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import InputModule
    from sentence_transformers.sentence_transformer.modules import Pooling
    from sentence_transformers.util import import_module_class
except ImportError as error:
    raise MissingExtraError(
        "sentence-transformers>=6", "sentence-transformers", "this integration"
    ) from error

_CACHE_BYTES = 256 << 20
_BILM = "bilm"
_HUB_ARGUMENTS = ("token", "cache_folder", "revision", "local_files_only")
_SETTINGS = "config_sentence_transformers.json"
_SAVED_ARGUMENTS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
# Numpy drops zeros at the end of a string. With this character after each word, a word may end in
# one, and no word looks like padding.
_END = "\x03"


class ElmoModule(InputModule):
    """Texts to token embeddings (B, T, D) and their mask (B, T), for a ``Pooling`` module.

    Without gradients, and with a frozen biLM in training, it runs as fast as ``Elmo.encode``: words
    are cached, and sentences of similar length share a batch.

    Args:
        model: A loaded model, whose weights are shared, or what ``Elmo.load`` takes.
        layers: "mix" (layer weights and scale that learn), "average", "top", or the number of a
            layer; 0 is the token layer.
        trainable: Fine-tune the biLM. If False, only the mix learns.
        dropout: Dropout on the token embeddings during training.
        max_seq_length: Read this many tokens of each text. Default: all.

    Examples:
        >>> from sentence_transformers import SentenceTransformer
        >>> from sentence_transformers.sentence_transformer.modules import Pooling
        >>> elmo = ElmoModule("en")
        >>> pooling = Pooling(elmo.get_embedding_dimension())
        >>> model = SentenceTransformer(modules=[elmo, pooling], device="cpu")
        >>> model.encode(["A cat sat.", "它坐着。"]).shape
        (2, 768)
    """

    config_keys: list[str] = ["layers", "trainable", "dropout", "max_seq_length"]  # noqa: RUF012
    save_in_root: bool = False

    def __init__(
        self,
        model: str | Path | Elmo = "en",
        *,
        layers: str | int = "mix",
        trainable: bool = False,
        dropout: float = 0.0,
        max_seq_length: int | None = None,
    ) -> None:
        super().__init__()
        elmo = model if isinstance(model, Elmo) else Elmo.load(model, device="cpu")
        self.layers = layers
        self._choice = LayerChoice.parse(layers, elmo.n_layers)
        if self._choice.stacked:
            raise wrong("layers", "mix, average, top, or the number of one layer", layers)
        self.embedding = ElmoEmbedding(elmo, dropout=dropout, trainable=trainable)
        self.trainable, self.dropout = trainable, dropout
        self.tokenizer = elmo.tokenizer
        self.max_seq_length = max_seq_length
        self._engine = Engine(elmo.bilm, elmo.alphabet, _CACHE_BYTES)
        self._checkpoint = replace(_without_softmax(elmo.checkpoint()), tensors={})
        self._language = LanguageCheck(elmo.vocabulary.words if elmo.vocabulary else ())
        # the character CNN reads no more of a word than this
        self._columns = elmo.config.token_encoder.max_characters + len(_END)
        self._set_mix(elmo.config.mix)
        self._mix.requires_grad_(self._choice.layers == "mix")

    @property
    def max_seq_length(self) -> int | None:
        """How many tokens of a text are read; None for all."""
        return self._max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self._max_seq_length = None if value is None else whole_number(value, "max_seq_length", 1)

    @property
    def _mix(self) -> ScalarMix:
        return cast(ScalarMix, self.embedding.mixes[0])

    def get_embedding_dimension(self) -> int:
        """Width D of the token embeddings."""
        return self.embedding.output_dim

    def preprocess(
        self,
        inputs: Sequence[str | list[str]],
        prompt: str | None = None,
        max_length: int | None = None,
        **keywords: Any,
    ) -> dict[str, Tensor | int]:
        """Tokenize texts. The result holds all a data loader must send to the model.

        Args:
            inputs: B strings, or lists of tokens.
            prompt: Text before each of them.
            max_length: Instead of ``max_seq_length``.
            **keywords: What sentence-transformers passes to modules of other kinds.

        Returns:
            input_ids (B, T, C), the code points of each word, zero in the padding;
            attention_mask (B, T); and with a prompt, prompt_length, its number of tokens. An empty
            text counts as one token, whose embedding is zero: poolings need one.
        """
        most = self.max_seq_length if max_length is None else max_length
        prompt_tokens = self.tokenizer(prompt) if prompt else []
        sentences = []
        for number, text in enumerate(inputs):
            if isinstance(text, tuple):
                raise InputError(
                    f"text {number} is a pair, but each text has an embedding of its own; pass a "
                    "string or a list of tokens"
                )
            if isinstance(text, str):
                tokens = self.tokenizer((prompt or "") + text)
            else:
                tokens = prompt_tokens + tokenize_one(self.tokenizer, text, f"text {number}")
            sentences.append(tokens[:most])
        list(self._language.watch(iter(sentences)))
        features: dict[str, Tensor | int] = _to_ids(sentences, self._columns)
        return features | {"prompt_length": len(prompt_tokens)} if prompt else features

    def forward(self, features: dict[str, Any], **keywords: Any) -> dict[str, Any]:
        """Add token_embeddings (B, T, D), zero in the padding, to what :meth:`preprocess` gives."""
        ids: Tensor = features["input_ids"]
        sentences = _to_words(ids)
        n_columns = ids.shape[1]
        if self.trainable and torch.is_grad_enabled() and any(sentences):
            layers, mask = self.embedding.layers(sentences)
            tokens = self._choice.apply(layers, self._mix)[0]
            tokens = torch.where(mask[..., None], tokens, 0)
            tokens = F.pad(tokens, (0, 0, 0, n_columns - tokens.shape[1]))
        else:
            tokens = self._frozen_tokens(sentences, n_columns)
        features["token_embeddings"] = self.embedding.dropout(tokens)
        return features

    def _frozen_tokens(self, sentences: list[list[str]], n_columns: int) -> Tensor:
        """Token embeddings (B, T, D), with gradients for the mix only."""
        choice, mix, device = self._choice, self._mix, self._engine.device
        learns = torch.is_grad_enabled() and mix.weights.requires_grad
        shape = (
            choice.upto + 1 if learns else 1,
            len(sentences),
            n_columns,
            self.embedding.output_dim,
        )
        what = f"the token embeddings of {shape[1]} texts of up to {n_columns:,} tokens"
        n_bytes = 4 * int(np.prod(shape))
        check_memory(n_bytes, device, what, "pass a smaller batch_size=, or set max_seq_length")
        found = torch.zeros(shape, device=device)

        def keep(batch: BatchResult) -> None:
            layers = batch.layers if learns else choice.apply(batch.layers, mix)
            longest = max(batch.lengths)
            lengths = torch.tensor(batch.lengths, device=device)[:, None]
            real = torch.arange(longest, device=device) < lengths
            inside = layers[:, :, 1 : longest + 1]  # without the sentence marks
            found[:, batch.indices, :longest] = torch.where(real[..., None], inside, 0)

        for _ in self._engine.run(sentences, keep, choice.upto):
            pass
        return choice.apply(found, mix)[0] if learns else found[0]

    def save(self, output_path: str, *args: Any, **keywords: Any) -> None:
        """Write the module into a folder; weights are always safetensors.

        A bundled biLM that has not been fine-tuned is named with its checksum. Any other is
        written to the folder ``bilm``, which ``Elmo.load`` reads too.
        """
        folder = Path(output_path)
        if self.tokenizer.name.startswith("custom:"):
            raise InputError(
                f"the tokenizer is the function {self.tokenizer.name.removeprefix('custom:')}, "
                "which cannot be saved; load the model with a tokenizer that has a name"
            )
        mix = MixConfig(tuple(self._mix.weights.tolist()), float(self._mix.gamma))
        bilm = self.embedding.bilm.state_dict()
        config = replace(self._checkpoint.config, tokenizer=self.tokenizer.name, mix=mix)
        checkpoint = replace(self._checkpoint, config=config, tensors=bilm)
        checksum = checkpoint.checksum()
        name = _bundled_name(checkpoint.source, checksum)
        if name is None:
            native.write(checkpoint, folder / _BILM, overwrite=True)
        values = self.get_config_dict() | {
            "bilm": {"name" if name else "folder": name or _BILM, "sha256": checksum},
            "tokenizer": self.tokenizer.name,
            "mix": asdict(mix),
            "elmokit_version": __version__,
        }
        write_text(folder / self.config_file_name, json.dumps(values, indent=2) + "\n")
        if name is not None:
            remove_path(folder / _BILM)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        model_kwargs: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> ElmoModule:
        """Read a saved module, as ``SentenceTransformer`` does it.

        Args:
            model_name_or_path: The folder of the whole model.
            subfolder: The module's folder in it.
            model_kwargs: Settings that replace the saved ones: layers, trainable, dropout,
                max_seq_length.
            **keywords: token, cache_folder, revision and local_files_only, for models on a hub.
        """
        hub = {name: keywords[name] for name in _HUB_ARGUMENTS if name in keywords}
        values = cls.load_config(model_name_or_path, subfolder=subfolder, **hub)
        given = model_kwargs or {}
        if unknown := given.keys() - set(cls.config_keys):
            raise InputError(
                f"{shown(min(unknown))} is not a setting of ElmoModule; its settings are "
                f"{', '.join(cls.config_keys)}"
            )
        where = f"{model_name_or_path}/{subfolder}"
        try:
            bilm, settings = values["bilm"], {key: values[key] for key in cls.config_keys}
            weights = tuple(map(float, values["mix"]["weights"]))
            mix = MixConfig(weights, float(values["mix"]["gamma"]))
            tokenizer, checksum, name = str(values["tokenizer"]), bilm["sha256"], bilm.get("name")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(
                f"{where}/{cls.config_file_name} is not that of a saved ElmoModule "
                f"({shortened(str(error))}); copy the folder again"
            ) from error
        if name is None:
            folder = cls.load_dir_path(model_name_or_path, subfolder=f"{subfolder}/{_BILM}", **hub)
        else:
            folder = bundled_path(name) if name in bundled_models() else None
        if folder is None:
            raise FormatError(f"{where} names the biLM {shown(name or _BILM)}, which is missing")
        elmo = Elmo.load(folder, tokenizer=tokenizer, device="cpu")
        if _without_softmax(elmo.checkpoint()).checksum() != checksum:
            raise FormatError(
                f"{where} was saved with another version of the biLM {shown(name or _BILM)}; "
                f"install ElmoKit {shown(values.get('elmokit_version'))}, or copy the folder again"
            )
        module = cls(elmo, **(settings | given))
        module._set_mix(mix)
        return module

    def _set_mix(self, mix: MixConfig) -> None:
        own = ScalarMix(len(self._mix.weights), mix.weights, mix.gamma)
        self._mix.load_state_dict(own.state_dict())


def load(
    model: str | Path | Elmo = "en",
    *,
    pooling: str | None = None,
    device: str | None = None,
    **settings: Any,
) -> SentenceTransformer:
    """Build a SentenceTransformer from an ELMo model, or open one that was saved.

    A saved folder is opened without ``trust_remote_code``: of the modules it names, only
    :class:`ElmoModule` and those of sentence-transformers itself are imported.

    Args:
        model: What :class:`ElmoModule` takes, or a folder that ``save_pretrained`` wrote.
        pooling: A mode of ``Pooling`` for a new model: mean (default), max, cls, lasttoken,
            weightedmean, mean_sqrt_len_tokens. A saved model has its own.
        device: A torch device. Default: GPU if available.
        **settings: Of :class:`ElmoModule`: layers, trainable, dropout, max_seq_length. They replace
            those of a saved model.
    """
    if not isinstance(model, Elmo) and (file_path(model, "model") / "modules.json").is_file():
        if pooling is not None:
            raise InputError(f"{model} is saved with its own pooling; leave out pooling=")
        return _open_saved(Path(model), device, settings)
    pooling = "mean" if pooling is None else one_of(pooling, "pooling", Pooling.POOLING_MODES)
    elmo = ElmoModule(model, **settings)
    modules = [elmo, Pooling(elmo.get_embedding_dimension(), pooling)]
    return SentenceTransformer(modules=modules, device=device)


def _open_saved(folder: Path, device: str | None, settings: dict[str, Any]) -> SentenceTransformer:
    """Open a saved folder with public functions that import no other package's code."""
    own = f"{ElmoModule.__module__}.{ElmoModule.__qualname__}"
    modules = {}
    try:
        entries = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        saved = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
        places = [(entry["name"], entry["type"], entry["path"]) for entry in entries]
        keywords = {name: saved[name] for name in _SAVED_ARGUMENTS if name in saved}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{folder} is not a complete SentenceTransformer ({shortened(str(error))}); copy it "
            "again"
        ) from error
    if own not in [kind for _, kind, _ in places]:
        raise InputError(f"{folder} has no ElmoModule; open it with SentenceTransformer")
    for name, kind, path in places:
        if kind == own:
            modules[name] = ElmoModule.load(str(folder), path, settings, local_files_only=True)
            continue
        try:
            module_class = import_module_class(kind, str(folder), trust_remote_code=False)
        except ValueError as error:
            raise InputError(
                f"{folder} contains {shown(kind)}, which is neither ElmoKit's nor of "
                "sentence-transformers; if you trust it, open the folder with SentenceTransformer "
                "and trust_remote_code=True"
            ) from error
        modules[name] = module_class.load(str(folder), subfolder=path, local_files_only=True)
    return SentenceTransformer(modules=OrderedDict(modules), device=device, **keywords)


def _to_ids(sentences: list[list[str]], n_columns: int) -> dict[str, Tensor | int]:
    """Words as code points (B, T, C), and the mask (B, T); see :meth:`ElmoModule.preprocess`."""
    lengths = [len(sentence) for sentence in sentences]
    time = max(1, *lengths)
    words = [word[: n_columns - 1] + _END for sentence in sentences for word in sentence]
    codes = np.array(words, f"U{n_columns}").view(np.int32).reshape(len(words), n_columns)
    inside = np.arange(time) < np.array(lengths)[:, None]
    ids = np.zeros((len(sentences), time, n_columns), np.int32)
    ids[inside] = codes
    inside[:, 0] = True
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(inside.astype(np.int64)),
    }


def _to_words(ids: Tensor) -> list[list[str]]:
    """The words of each text, from the code points (B, T, C) of :func:`_to_ids`."""
    codes = ids.to("cpu", torch.int32).numpy()
    real = codes.any(-1)
    found = np.ascontiguousarray(codes[real]).view(f"U{codes.shape[-1]}")
    words = [word[:-1] for word in found.ravel().tolist()]
    ends = np.cumsum(real.sum(-1)).tolist()
    return [words[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _without_softmax(checkpoint: Checkpoint) -> Checkpoint:
    config = replace(checkpoint.config, vocabulary_size=0, softmax_cutoffs=())
    tensors = {k: v for k, v in checkpoint.tensors.items() if not k.startswith(SOFTMAX)}
    return replace(checkpoint, config=config, tensors=tensors, vocabulary=None)


def _bundled_name(source: str, checksum: str) -> str | None:
    """The name of the bundled model whose weights a model still has, if any."""
    for name in bundled_models():
        if source == str(bundled_path(name)):  # tuned weights differ from the files
            return name if checksum == _bundled_checksum(name) else None
    return None


@cache  # a training saves many times
def _bundled_checksum(name: str) -> str:
    return _without_softmax(read_model(bundled_path(name))).checksum()
