"""Elmo: a loaded model and everything one does with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch

from elmokit.config import MixConfig, ModelConfig, published_size
from elmokit.devices import choose_device
from elmokit.errors import ConfigError, InputError, UnsupportedModelError
from elmokit.formats import DEFAULT_MODEL, WRITERS, bilm_tf, native, read_model
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.inference.arrays import Array, Arrays
from elmokit.inference.batches import token_windows
from elmokit.inference.engine import CARRIED_BATCH_SIZE, BatchResult, Engine
from elmokit.inference.layers import LayerChoice, Layers
from elmokit.inference.pooling import check_pooling, pool, tokens_of_span
from elmokit.inference.scoring import LanguageModel, Perplexity, Score, perplexity
from elmokit.inference.states import CarriedState, StartState, check_state
from elmokit.io.progress import DelayedProgress
from elmokit.kernels.cpu_products import check_int8
from elmokit.nn.bilm import BiLM
from elmokit.nn.context import BiLMState
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.nn.softmax import make_softmax
from elmokit.text.tokenizers import Tokenizer, get_tokenizer, tokenize_all
from elmokit.text.vocabulary import Vocabulary

Text = str | Sequence[str]
"""A raw string, or one already split into tokens."""
State = str | BiLMState | CarriedState
"""What every sentence starts from: "zero", "warm", a fixed state, or a carried one."""

# vectors held before they are handed on
_CPU_WINDOW_BYTES, _GPU_WINDOW_BYTES = 128 << 20, 1 << 30
_SCORED_TOKENS = 4096  # the softmax dominates, and callers want to see progress

_WARM_UP = [["."]] * 8  # repeating a sentence, the state settles within a few rounds


class Elmo:
    """An ELMo model. Make one with :meth:`load`.

    Attributes:
        config: Sizes and settings.
        bilm: The network.
        tokenizer: How raw strings are split.
        alphabet: How words become ids.
        mix: The weights of ``layers="mix"``.
        format: What the files it was read from were.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
        device: str | torch.device | None = None,
        cache_mb: int | None = None,
        quantize: str | None = None,
    ) -> None:
        self.config = checkpoint.config
        self.format, self.source = checkpoint.format, checkpoint.source
        self.alphabet = checkpoint.alphabet()
        self.tokenizer = get_tokenizer(tokenizer or checkpoint.config.tokenizer)
        self._checkpoint = replace(checkpoint, tensors={})
        with torch.device("meta"):
            self.bilm = BiLM(self.config)
            softmax = None
            if self.config.vocabulary_size:
                softmax = make_softmax(self.config)
        _fill(self.bilm, checkpoint.tensors, "")
        self.mix = ScalarMix(
            self.n_layers, self.config.mix.weights, self.config.mix.gamma, trainable=False
        )
        device = choose_device(device)
        if cache_mb is None:
            cache_mb = 256 if device.type == "cpu" else 1024
        self._engine = Engine(self.bilm, self.alphabet, cache_mb << 20)
        self._lm: LanguageModel | None = None
        if softmax is not None:
            _fill(softmax, checkpoint.tensors, SOFTMAX)
            vocabulary = Vocabulary(checkpoint.vocabulary or [])
            self._lm = LanguageModel(self._engine, softmax, vocabulary)
        self.to(device)
        if quantize is not None:
            self._quantize(quantize)

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        *,
        options: str | Path | None = None,
        weights: str | Path | None = None,
        softmax: str | Path | None = None,
        vocabulary: str | Path | None = None,
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
        device: str | torch.device | None = None,
        cache_mb: int | None = None,
        quantize: str | None = None,
    ) -> Elmo:
        """Open a model.

        Args:
            model: A folder or ZIP archive of any known format, or a name; nothing for the model
                that comes with the package.
            options: Instead of model, the options.json of a published model…
            weights: …and its HDF5 weights,
            softmax: with the HDF5 file of its softmax and
            vocabulary: the words of that, where they are to be had.
            tokenizer: How to split raw strings: a name of elmokit.text.tokenizers, or any function
                from a string to its tokens; nothing for what the model's config says.
            device: Where to run, as for torch; nothing for a GPU where there is one.
            cache_mb: Most memory for the vectors of words seen before; 0 for none; nothing for 256,
                or 1024 on a GPU. Those of the sentences at hand come on top.
            quantize: What the LSTMs' products are rounded to. "int8", on a CPU: twice as fast for
                large models, with vectors whose cosine to the exact ones is above 0.999.
                "bfloat16", on a GPU: several times as fast, with a cosine above 0.9999. What is
                saved stays exact.
        """
        if options is not None or weights is not None:
            if model is not None or options is None or weights is None:
                raise InputError("give either a model, or both options= and weights=")
            checkpoint = bilm_tf.read_files(options, weights, softmax, vocabulary).check()
        elif softmax is not None or vocabulary is not None:
            raise InputError("softmax= and vocabulary= go with options= and weights=")
        else:
            checkpoint = read_model(DEFAULT_MODEL if model is None else model)
        return cls(checkpoint, tokenizer, device, cache_mb, quantize)

    @classmethod
    def random(cls, config: str | ModelConfig = "small", seed: int = 0, **keywords: Any) -> Elmo:
        """A model with fresh random weights, for tests and for training.

        Args:
            config: Sizes, or the name of published ones: small, medium, original.
            seed: The same seed gives the same weights.
            **keywords: tokenizer, device, cache_mb and quantize as for :meth:`load`.
        """
        config = published_size(config) if isinstance(config, str) else config
        if config.vocabulary_size or config.token_encoder.alphabet != "utf8":
            raise ConfigError("a random model reads UTF-8 and has no vocabulary")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            bilm = BiLM(config)
        tensors = {name: tensor.detach() for name, tensor in bilm.state_dict().items()}
        return cls(Checkpoint(config, tensors, format=f"random (seed {seed})"), **keywords)

    # What it is

    @property
    def dim(self) -> int:
        """Width D of every vector."""
        return self.config.context.output_dim

    @property
    def n_layers(self) -> int:
        """Layers, the token layer included."""
        return self.config.context.n_layers + 1

    @property
    def n_parameters(self) -> int:
        """Parameters without the softmax, counted as in the paper."""
        return self.checkpoint().n_parameters

    @property
    def precision(self) -> str:
        """What the LSTMs compute with: float32, or int8 or bfloat16 where it was asked for."""
        return self.bilm.precision

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._engine.device

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Words of the softmax, where the model has one."""
        return self._lm.vocabulary if self._lm else None

    def __repr__(self) -> str:
        return (
            f"Elmo({self.source or self.format!r}, layers={self.n_layers}, dim={self.dim}, "
            f"parameters={self.n_parameters:,}, tokenizer={self.tokenizer.name!r}, "
            f"device={str(self.device)!r})"
        )

    def to(self, device: str | torch.device) -> Elmo:
        """Move the model; returns it.

        On another kind of device it computes in float32, as what it was rounded to is not for that.
        """
        if torch.device(device).type != self.device.type:
            self.bilm.precision = "float32"
        self.bilm.to(device)
        self.mix.to(device)
        if self._lm:
            self._lm.softmax.to(device)
        return self

    # Vectors

    def tokenize(self, text: Text) -> list[str]:
        """The tokens of a raw string, as all methods here see them; tokens stay as they are."""
        return self._tokens([text])[0]

    @overload
    def encode(  # type: ignore[overload-overlap]  # a string is a sequence of strings too
        self,
        texts: str,
        layers: Layers = ...,
        *,
        dtype: npt.DTypeLike = ...,
        batch_size: int | None = ...,
        state: State = ...,
        marks: bool = ...,
        progress: bool = ...,
    ) -> Array: ...
    @overload
    def encode(
        self,
        texts: Sequence[Text],
        layers: Layers = ...,
        *,
        dtype: npt.DTypeLike = ...,
        batch_size: int | None = ...,
        state: State = ...,
        marks: bool = ...,
        progress: bool = ...,
    ) -> list[Array]: ...
    def encode(
        self,
        texts: str | Sequence[Text],
        layers: Layers = "mix",
        *,
        dtype: npt.DTypeLike = np.float32,
        batch_size: int | None = None,
        state: State = "zero",
        marks: bool = False,
        progress: bool = True,
    ) -> Array | list[Array]:
        """A vector for every token.

        Args:
            texts: Strings, or lists of tokens; one string alone gives one array alone.
            layers: mix (the model's own weights, equal ones where it has none), average, top, the
                number of a layer (0 for the token layer), all, or a list of numbers.
            dtype: float32, or float16 for half the memory.
            batch_size: Most sentences run at once; nothing to choose.
            state: What the LSTMs start each sentence from: "zero", so that vectors depend on the
                sentence alone; "warm" or a state of :meth:`warm_state`, likewise; or an
                :class:`elmokit.CarriedState`, which makes them depend on all that went before, as
                in the original software.
            marks: Whether to keep the vectors of the sentence marks, one before the first token and
                one behind the last; so that there is something on either side of every token.
            progress: False for no progress bar; else one is shown in a terminal after two seconds.

        Returns:
            Arrays (T_i, D) in the order of the texts, or (K, T_i, D) where several layers are
            asked for. An empty text gives no rows, but those of the marks if they are kept.
        """
        if isinstance(texts, str):
            return self.encode(
                [texts], layers, dtype=dtype, state=state, marks=marks, progress=progress
            )[0]
        sentences = self._tokens(texts)
        found: dict[int, Array] = {}
        with DelayedProgress("embedding", len(sentences), "sentences", progress) as bar:
            for some in self._run(sentences, layers, dtype, state, batch_size, marks):
                found.update(some)
                bar.advance(len(some))
        return [found[i] for i in range(len(sentences))]

    def stream(
        self,
        texts: Iterable[Text],
        layers: Layers = "mix",
        *,
        dtype: npt.DTypeLike = np.float32,
        batch_size: int | None = None,
        state: State = "zero",
        marks: bool = False,
    ) -> Iterator[Array]:
        """Encode any number of texts in bounded memory, in order.

        Texts are read a window at a time, so ``texts`` can be a generator over a large file.

        Args:
            texts: Strings, or lists of tokens.
            layers: As for :meth:`encode`.
            dtype: As for :meth:`encode`.
            batch_size: As for :meth:`encode`.
            state: As for :meth:`encode`.
            marks: As for :meth:`encode`.

        Yields:
            One array a text, as :meth:`encode` returns it.
        """
        choice = LayerChoice.parse(layers, self.n_layers)
        start = self._start(state)
        values_per_token = math.prod((*choice.layer_shape, self.dim))
        token_bytes = values_per_token * _float_type(dtype).itemsize
        budget = _CPU_WINDOW_BYTES if self.device.type == "cpu" else _GPU_WINDOW_BYTES
        # rows of a carried state depend on where a batch starts, so windows hold whole batches
        carried = isinstance(state, CarriedState)
        multiple = (batch_size or CARRIED_BATCH_SIZE) if carried else 1
        sentences = map(self.tokenize, texts)
        for window in token_windows(sentences, budget // token_bytes, multiple):
            found: dict[int, Array] = {}
            for some in self._run(window, layers, dtype, start, batch_size, marks):
                found.update(some)
            for i in range(len(window)):
                yield found.pop(i)

    def encode_sentences(
        self,
        texts: str | Sequence[Text],
        layers: Layers = "mix",
        *,
        pooling: str = "mean",
        dtype: npt.DTypeLike = np.float32,
        batch_size: int | None = None,
        state: State = "zero",
        progress: bool = True,
    ) -> Array:
        """One vector a sentence: (N, D), or (N, K, D) for several layers; zeros for an empty text.

        Args:
            texts: As for :meth:`encode`; one string alone gives (D,).
            layers: As for :meth:`encode`.
            pooling: mean, max, or first-last (the forward half of the last token and the backward
                half of the first, where each direction has read the whole sentence).
            dtype: As for :meth:`encode`.
            batch_size: As for :meth:`encode`.
            state: As for :meth:`encode`.
            progress: As for :meth:`encode`.
        """
        check_pooling(pooling)
        if isinstance(texts, str):
            return self.encode_sentences(
                [texts], layers, pooling=pooling, dtype=dtype, state=state, progress=progress
            )[0]
        sentences = self._tokens(texts)
        layer_shape = LayerChoice.parse(layers, self.n_layers).layer_shape
        result = np.zeros((len(sentences), *layer_shape, self.dim), _float_type(dtype))
        with DelayedProgress("embedding", len(sentences), "sentences", progress) as bar:
            for some in self._run(sentences, layers, dtype, state, batch_size):
                for i, vectors in some:
                    result[i] = pool(vectors, pooling, self.config.context.bidirectional)
                bar.advance(len(some))
        return result

    def encode_spans(
        self,
        text: Text,
        spans: Sequence[tuple[int, int]],
        layers: Layers = "mix",
        *,
        unit: str | None = None,
        pooling: str = "mean",
        dtype: npt.DTypeLike = np.float32,
        state: State = "zero",
    ) -> Array:
        """One vector a phrase, in the light of the whole sentence: (S, D), or (S, K, D).

        Args:
            text: A sentence.
            spans: S pairs (start, end), end excluded.
            layers: As for :meth:`encode`.
            unit: What the spans count: "characters" (the usual for a string; a token counts as soon
                as one of its characters is inside) or "tokens" (the usual for a list of tokens).
            pooling: As for :meth:`encode_sentences`.
            dtype: As for :meth:`encode`.
            state: As for :meth:`encode`.
        """
        check_pooling(pooling)
        unit = unit or ("characters" if isinstance(text, str) else "tokens")
        if unit not in ("characters", "tokens"):
            raise InputError(f"unit must be characters or tokens, not {unit!r}")
        offsets: list[tuple[int, int]] | None = None
        if isinstance(text, str):
            found = self.tokenizer.spans(text)
            tokens = [text[start:end] for start, end in found]
            offsets = found if unit == "characters" else None
        else:
            if unit == "characters":
                raise InputError("spans in characters need the raw string, not a list of tokens")
            (tokens,) = self._tokens([text])
        slices = [tokens_of_span(span, offsets, len(tokens)) for span in spans]
        (vectors,) = self.encode([tokens], layers, dtype=dtype, state=state)
        pooled = [
            pool(vectors[..., part, :], pooling, self.config.context.bidirectional)
            for part in slices
        ]
        empty = np.zeros((0, *vectors.shape[:-2], vectors.shape[-1]), dtype)
        return np.stack(pooled) if pooled else empty

    def outputs(
        self,
        texts: Sequence[Text],
        *,
        dtype: npt.DTypeLike = np.float32,
        state: State = "zero",
    ) -> dict[str, Array]:
        """Padded arrays under the names of TF-Hub's ELMo module.

        Returns:
            word_emb (B, T, P), lstm_outputs1, lstm_outputs2, … (B, T, D), elmo (B, T, D) (their
            mix), default (B, D) (its mean over the real tokens) and sequence_len (B,). Padding is
            zero.
        """
        dtype = _float_type(dtype)
        sentences = self._tokens(texts)
        lengths = np.array([len(s) for s in sentences], np.int32).reshape(len(sentences))
        shape = (len(sentences), int(lengths.max(initial=0)), self.dim)
        stacked = self.encode(sentences, "all", dtype=np.float32, state=state)
        padded = np.zeros((self.n_layers, *shape), np.float32)
        for i, layers in enumerate(stacked):
            padded[:, i, : lengths[i]] = layers
        shares = torch.softmax(self.mix.weights, 0).cpu().numpy()
        mixed = float(self.mix.gamma) * np.tensordot(shares, padded, 1)
        named: dict[str, Array] = {"word_emb": padded[0, ..., : self.config.context.projection_dim]}
        named |= {f"lstm_outputs{k}": padded[k] for k in range(1, self.n_layers)}
        named |= {
            "elmo": mixed,
            "default": mixed.sum(1) / np.maximum(lengths, 1)[:, None],
        }
        result = {name: array.astype(dtype) for name, array in named.items()}
        return result | {"sequence_len": lengths}

    # The language model

    def score(
        self, texts: Sequence[Text], *, state: State = "zero", batch_size: int | None = None
    ) -> list[Score]:
        """Log-probability of every token, given what is before it and given what is after it."""
        lm = self._language_model()
        return lm.score(self._tokens(texts), self._start(state), batch_size)

    def stream_scores(self, texts: Iterable[Text], *, state: State = "zero") -> Iterator[Score]:
        """Score any number of texts in bounded memory, in order; see :meth:`score`."""
        lm, start = self._language_model(), self._start(state)
        carried = isinstance(state, CarriedState)
        multiple = CARRIED_BATCH_SIZE if carried else 1
        for window in token_windows(map(self.tokenize, texts), _SCORED_TOKENS, multiple):
            yield from lm.score(window, start)

    def perplexity(self, texts: Sequence[Text], *, state: State = "zero") -> Perplexity:
        """Full-softmax perplexity of some sentences, by direction, with the unknown rate."""
        return perplexity(self.score(texts, state=state))

    def substitutes(
        self, text: Text, position: int, k: int = 10, *, state: State = "zero"
    ) -> list[tuple[str, float]]:
        """The k words that fit best at a position, by both contexts, with their probabilities.

        The predictions of both directions are multiplied and divided by how frequent the word is
        by itself, which is estimated from its rank in the vocabulary (see
        :func:`elmokit.inference.scoring.zipf`).

        Args:
            text: A sentence; the word at the position itself plays no part.
            position: The number of a token, from 0.
            k: How many words.
            state: As for :meth:`encode`.
        """
        (tokens,) = self._tokens([text])
        return self._language_model().substitutes(tokens, position, k, self._start(state))

    # States, mixes, files

    def warm_state(self, texts: Sequence[Text] | None = None) -> BiLMState:
        """The state left after reading some sentences, as a fixed start for others.

        The published models were trained with carried states, so that zeros are a little strange
        to them. This gives a start that is not, and yet makes no sentence depend on another.

        Args:
            texts: What to read; nothing for the same short text each time.
        """
        carried = CarriedState()
        for sentence in self._tokens(_WARM_UP if texts is None else texts):
            list(self._engine.run([sentence], lambda batch: None, start=carried))
        return carried.rows(1, self.bilm)

    def set_mix(self, weights: Sequence[float] | None, gamma: float = 1.0) -> None:
        """Choose the weights (before the softmax) and scale that ``layers="mix"`` uses.

        They are saved with the model.
        """
        mix = MixConfig(None if weights is None else tuple(map(float, weights)), float(gamma))
        self.config = replace(self.config, mix=mix)
        self.mix = ScalarMix(self.n_layers, mix.weights, mix.gamma, trainable=False)
        self.mix.to(self.device)

    def save(
        self,
        folder: str | Path,
        *,
        format: str = "native",
        overwrite: bool = False,
        dtype: str = "float32",
    ) -> None:
        """Write the model into a folder.

        Args:
            folder: Where; it must be new or empty unless overwrite is set.
            format: native (config.json, model.safetensors, model card), or bilm-tf (options.json
                and weights.hdf5, for AllenNLP and bilm-tf).
            overwrite: Replace what is there, once the new model is written whole.
            dtype: float32, or, in the native format, float16 or int8 for a half or a quarter of
                the size, or int4, which is int8 with the softmax in four bits; the model is
                rounded by that, and runs in float32 all the same.
        """
        if format not in WRITERS:
            raise InputError(f"format must be one of {', '.join(WRITERS)}, not {format!r}")
        checkpoint, path = self.checkpoint(), Path(folder).expanduser()
        if format == "native":
            native.write(checkpoint, path, overwrite, dtype)
        elif dtype != "float32":
            raise InputError(f"the format {format} has float32 alone, not {dtype}")
        else:
            WRITERS[format](checkpoint, path, overwrite)

    def checkpoint(self) -> Checkpoint:
        """The model's parts as they are now."""
        tensors = {name: tensor.detach() for name, tensor in self.bilm.state_dict().items()}
        if self._lm:
            softmax = self._lm.softmax.state_dict().items()
            tensors |= {SOFTMAX + name: tensor.detach() for name, tensor in softmax}
        known = not self.tokenizer.name.startswith("custom:")
        config = replace(self.config, tokenizer=self.tokenizer.name) if known else self.config
        return replace(self._checkpoint, config=config, tensors=tensors)

    # Inside

    def _tokens(self, texts: Iterable[Text]) -> list[list[str]]:
        return tokenize_all(self.tokenizer, texts)

    def _start(self, state: State | None) -> StartState:
        if state is None:
            return None
        if isinstance(state, CarriedState):
            if self.config.context.kind != "lstm":
                raise InputError("a transformer has no state to carry; use the state zero")
            return state
        if isinstance(state, BiLMState):
            check_state(state, self.bilm)
            if len(state) != 1:
                raise InputError(
                    f"a fixed start is one row for every sentence, not {len(state)}; use "
                    "warm_state(), or a CarriedState for a row of its own each"
                )
            return state
        if state == "zero":
            return None
        if state == "warm":
            return self.warm_state()
        raise InputError(f"state must be zero, warm, or a state, not {state!r}")

    def _run(
        self,
        sentences: list[list[str]],
        layers: Layers,
        dtype: npt.DTypeLike,
        state: State | None,
        batch_size: int | None,
        marks: bool = False,
    ) -> Iterator[list[tuple[int, Array]]]:
        """(index, array) pairs, batch by batch."""
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size must be 1 or more, not {batch_size}")
        choice = LayerChoice.parse(layers, self.n_layers)
        kind = torch.float16 if _float_type(dtype) == np.float16 else torch.float32

        @torch.inference_mode()
        def to_arrays(batch: BatchResult) -> Arrays:
            chosen = choice.apply(batch.layers, self.mix).to(kind)
            return Arrays(batch.indices, batch.lengths, chosen, choice.stacked, marks)

        results = self._engine.run(
            sentences, to_arrays, choice.upto, self._start(state), batch_size
        )
        before: Arrays | None = None
        for arrays in results:  # a GPU has begun the next batch before the one before is taken
            if before is not None:
                yield before.take()
            before = arrays
            if self.device.type == "cpu":  # the next batch uses the memory of this one
                yield before.take()
                before = None
        if before is not None:
            yield before.take()

    def _quantize(self, precision: str) -> None:
        needed = {"int8": "cpu", "bfloat16": "cuda"}
        if precision not in needed:
            raise InputError(f"quantize must be int8, bfloat16 or nothing, not {precision!r}")
        if self.config.context.kind != "lstm":
            raise InputError(f"{precision} is for LSTMs, and this model is a transformer")
        if self.device.type != needed[precision]:
            where = "the CPU" if precision == "int8" else "a GPU"
            raise InputError(f"{precision} is for {where}, and this model is on {self.device}")
        if precision == "int8":
            check_int8()
        self.bilm.precision = precision

    def _language_model(self) -> LanguageModel:
        if self._lm is None:
            raise UnsupportedModelError(
                f"{self.source or 'this model'} has no softmax, so it gives vectors but no "
                "probabilities; load it with softmax= and vocabulary= where these files are to be "
                "had"
            )
        return self._lm


def _fill(module: torch.nn.Module, tensors: dict[str, torch.Tensor], prefix: str) -> None:
    """Give a module made on the meta device its weights, for inference."""
    own = {name: tensors[prefix + name] for name in module.state_dict()}
    module.load_state_dict(own, assign=True)
    module.requires_grad_(False).eval()


def _float_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    if np.dtype(dtype) not in (np.float32, np.float16):
        raise InputError(f"dtype must be float32 or float16, not {np.dtype(dtype)}")
    return np.dtype(dtype)
