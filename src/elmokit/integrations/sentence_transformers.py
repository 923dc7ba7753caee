"""ELMo as the first module of a SentenceTransformer: encode, fine-tune, save, evaluate.

:class:`ElmoModule` gives token embeddings to the stock ``Pooling`` module. :func:`load` builds a
whole ``SentenceTransformer`` from a model, or opens a saved one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit.arguments import file_path, one_of, whole_number, wrong
from elmokit.config import MixConfig
from elmokit.devices import check_memory
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError, MissingExtraError, shortened, shown
from elmokit.inference.engine import BatchResult, Engine
from elmokit.inference.layers import LayerChoice
from elmokit.integrations.saved_bilm import FOLDER, read_bilm, write_bilm
from elmokit.integrations.saved_modules import open_modules
from elmokit.integrations.word_codes import n_columns, to_codes, to_words
from elmokit.io.atomic import remove_path, write_text
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.text.languages import LanguageCheck
from elmokit.text.tokenizers import tokenize_one

try:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import InputModule
    from sentence_transformers.sentence_transformer.modules import Pooling
except ImportError as error:
    raise MissingExtraError(
        "sentence-transformers>=6", "sentence-transformers", "this integration"
    ) from error

_CACHE_BYTES = 256 << 20
_HUB_ARGUMENTS = ("token", "cache_folder", "revision", "local_files_only")


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
        >>> model.encode(["A cat sat.", "It sleeps."]).shape
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
        self._checkpoint = replace(elmo.checkpoint().without_softmax(), tensors={})
        self._language = LanguageCheck(elmo.vocabulary.words if elmo.vocabulary else ())
        self._columns = n_columns(elmo.config.token_encoder)
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
            text counts as one token whose embedding is zero.
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
        codes, mask = to_codes(sentences, self._columns)
        mask[:, 0] = True  # an empty text too: poolings need a token
        features: dict[str, Tensor | int] = {"input_ids": codes, "attention_mask": mask.long()}
        return features | {"prompt_length": len(prompt_tokens)} if prompt else features

    def forward(self, features: dict[str, Any], **keywords: Any) -> dict[str, Any]:
        """Add token_embeddings (B, T, D), zero in the padding, to what :meth:`preprocess` gives."""
        ids: Tensor = features["input_ids"]
        sentences, time = to_words(ids), ids.shape[1]
        if self.trainable and torch.is_grad_enabled() and any(sentences):
            layers, mask = self.embedding.layers(sentences)
            tokens = self._choice.apply(layers, self._mix)[0]
            tokens = torch.where(mask[..., None], tokens, 0)
            tokens = F.pad(tokens, (0, 0, 0, time - tokens.shape[1]))
        else:
            tokens = self._frozen_tokens(sentences, time)
        features["token_embeddings"] = self.embedding.dropout(tokens)
        return features

    def _frozen_tokens(self, sentences: list[list[str]], time: int) -> Tensor:
        """Token embeddings (B, T, D), with gradients for the mix only."""
        choice, mix, device = self._choice, self._mix, self._engine.device
        learns = torch.is_grad_enabled() and mix.weights.requires_grad
        n_kept = choice.upto + 1 if learns else 1
        shape = (n_kept, len(sentences), time, self.embedding.output_dim)
        what = f"the vectors of {len(sentences)} texts of up to {time:,} tokens"
        remedy = "pass a smaller batch_size=, or set max_seq_length"
        check_memory(4 * math.prod(shape), device, what, remedy)
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
        mix = MixConfig(tuple(self._mix.weights.tolist()), self._mix.gamma.item())
        checkpoint = replace(
            self._checkpoint,
            config=replace(self._checkpoint.config, tokenizer=self.tokenizer.name, mix=mix),
            tensors=self.embedding.bilm.state_dict(),
        )
        bilm = write_bilm(checkpoint, folder)
        own = {"tokenizer": self.tokenizer.name, "mix": asdict(mix), "bilm": bilm}
        write_text(
            folder / self.config_file_name,
            json.dumps(self.get_config_dict() | own, indent=2) + "\n",
        )
        if "name" in bilm:
            remove_path(folder / FOLDER)  # of an older model in this folder

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        *,
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
            about, settings = dict(values["bilm"]), {key: values[key] for key in cls.config_keys}
            weights, gamma = values["mix"]["weights"], values["mix"]["gamma"]
            mix, tokenizer = MixConfig(tuple(weights), gamma), str(values["tokenizer"])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"{where}/{cls.config_file_name} is not that of a saved ElmoModule "
                f"({shortened(str(error))}); copy the folder again"
            ) from error
        copied = None
        if "name" not in about:
            copied = cls.load_dir_path(model_name_or_path, f"{subfolder}/{FOLDER}", **hub)
        elmo = read_bilm(about, copied, where, tokenizer)
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
        modules, keywords = open_modules(Path(model), ElmoModule, settings)
        return SentenceTransformer(modules=modules, device=device, **keywords)
    pooling = "mean" if pooling is None else one_of(pooling, "pooling", Pooling.POOLING_MODES)
    elmo = ElmoModule(model, **settings)
    pooled = Pooling(elmo.get_embedding_dimension(), pooling)
    return SentenceTransformer(modules=[elmo, pooled], device=device)
