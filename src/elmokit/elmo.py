"""Elmo: a loaded model and everything you can do with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch

from elmokit.arguments import (
    each,
    file_path,
    flag,
    instance,
    number,
    numbers,
    one_of,
    pair_of_numbers,
    whole_number,
    wrong,
)
from elmokit.config import MixConfig, ModelConfig, published_size
from elmokit.devices import check_memory, choose_device
from elmokit.errors import ConfigError, InputError, ShapeError, UnsupportedModelError, shown
from elmokit.formats import DEFAULT_MODEL, WRITERS, hub, model_name, native, read_files, read_model
from elmokit.formats.checkpoint import SOFTMAX, Checkpoint
from elmokit.formats.rounding import DTYPES
from elmokit.inference.arrays import Array
from elmokit.inference.batches import token_windows
from elmokit.inference.engine import CARRIED_BATCH_SIZE, Engine
from elmokit.inference.layers import LayerChoice, Layers
from elmokit.inference.perplexity import Perplexity
from elmokit.inference.pooling import POOLINGS, pool, tokens_of_span
from elmokit.inference.scoring import LanguageModel, Score
from elmokit.inference.states import CarriedState, StartState, fitting_state
from elmokit.inference.vectors import (
    VectorOptions,
    check_batch_size,
    check_done,
    encode_batches,
    float_type,
    resume_arrays,
    stream_arrays,
)
from elmokit.io.html_table import facts, html_table
from elmokit.io.notebook import Displayed, Shown
from elmokit.io.progress import DelayedProgress
from elmokit.kernels.cpu_products import check_int8
from elmokit.nn.bilm import BiLM
from elmokit.nn.context import BiLMState
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.nn.softmax import make_softmax
from elmokit.text.languages import LanguageCheck
from elmokit.text.tokenizers import Tokenizer, get_tokenizer, tokenize_each, tokenize_one
from elmokit.text.vocabulary import Vocabulary

Text = str | Sequence[str]
"""A raw string, or a list of tokens."""
State = str | BiLMState | CarriedState
"""What every sentence starts from: "zero", "warm", a fixed state, or a carried one."""

# of a window of stream_scores: a CPU's softmax is slow, and small windows make progress visible
_CPU_SCORED_TOKENS, _GPU_SCORED_TOKENS = 4096, 65_536
_MOST_SEED = 2**63 - 1
_WARM_UP = [["."]] * 8  # the state settles after a few repetitions of a sentence


class Elmo(Displayed):
    """An ELMo model. Create one with :meth:`load`.

    Attributes:
        config: Sizes and settings.
        bilm: The network.
        tokenizer: Splits raw strings.
        alphabet: Turns words into character ids.
        mix: The layer weights of ``layers="mix"``.
        format: The format of the files it was loaded from.

    Examples:
        >>> from elmokit import Elmo
        >>> elmo = Elmo.load()                                       # the bundled English model
        >>> vectors = elmo.encode("I sat by the bank of the river")  # (8 tokens, 768)
        >>> vectors.shape
        (8, 768)
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
        device: str | torch.device | None = None,
        cache_mb: int | None = None,
        quantize: str | None = None,
    ) -> None:
        instance(checkpoint, "checkpoint", Checkpoint, "a Checkpoint")
        device = choose_device(device)
        if cache_mb is None:
            cache_mb = 256 if device.type == "cpu" else 1024
        cache_mb = whole_number(cache_mb, "cache_mb", 0)
        self.config = checkpoint.config
        self.format, self.source = checkpoint.format, checkpoint.source
        self.alphabet = checkpoint.alphabet()
        self.tokenizer = get_tokenizer(
            checkpoint.config.tokenizer if tokenizer is None else tokenizer
        )
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
        self._engine = Engine(self.bilm, self.alphabet, cache_mb << 20)
        self._lm: LanguageModel | None = None
        if softmax is not None:
            _fill(softmax, checkpoint.tensors, SOFTMAX)
            vocabulary = Vocabulary(checkpoint.vocabulary or [], self.config.script)
            self._lm = LanguageModel(self._engine, softmax, vocabulary)
        words = checkpoint.vocabulary or checkpoint.words or checkpoint.characters
        self._language = LanguageCheck(words)
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
        part: str | None = None,
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
        device: str | torch.device | None = None,
        cache_mb: int | None = None,
        quantize: str | None = None,
    ) -> Elmo:
        """Load a model of any known format.

        Args:
            model: A folder, a ZIP archive, the model.tar.gz of an AllenNLP model, a training
                checkpoint of bilm-tf (its folder, or a path such as ``model.ckpt-935588``), or the
                name of a bundled model. Default: ``en``.
            options: Instead of ``model``: the options.json of a published model. Needs ``weights``.
            weights: The HDF5 weights that go with ``options``. Also the weights.th or model.tar.gz
                of an AllenNLP model, or a training checkpoint.
            softmax: The HDF5 file of the softmax, if you have it. Needs ``vocabulary``.
            vocabulary: The vocabulary of the softmax, one word per line.
            part: Which ELMo of an AllenNLP model, or which of its trained mixes, if it has several:
                a name, or its end, such as ``"scalar_mix_1"``. The error without it lists them.
            tokenizer: How to split raw strings: a name from elmokit.text.tokenizers, or a function
                from a string to its tokens. Default: what the model's config says.
            device: A torch device. Default: GPU if available.
            cache_mb: Memory limit of the cache of token vectors; 0 disables it. Default: 256 on a
                CPU, 1024 on a GPU. The words of the current batch come on top.
            quantize: Round the LSTMs' weights. "int8" (CPU) is about twice as fast for large
                models, and the least exact: with the bundled model, the mean cosine similarity to
                the float32 vectors is 0.997 in the worst layer. "bfloat16" (GPU) is several times
                as fast, with a mean cosine similarity above 0.9999. Saved weights stay exact.
        """
        files = {"model": model, "options": options, "weights": weights, "softmax": softmax,
                 "vocabulary": vocabulary}  # fmt: skip
        for name, path in files.items():
            if path is not None:
                file_path(path, name)
        if part is not None:
            instance(part, "part", str, "the name of an ELMo or of a mix")
        if options is not None or weights is not None:
            if model is not None or options is None or weights is None:
                raise InputError("pass either model=, or both options= and weights=")
            checkpoint = read_files(options, weights, softmax, vocabulary, part)
        elif softmax is not None or vocabulary is not None:
            raise InputError("softmax= and vocabulary= go with options= and weights=")
        else:
            checkpoint = read_model(DEFAULT_MODEL if model is None else model, part)
        return cls(checkpoint, tokenizer, device, cache_mb, quantize)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | None = None,
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        **keywords: Any,
    ) -> Elmo:
        """Load a model from the Hugging Face Hub, or whatever :meth:`load` accepts.

        Needs ``pip install 'elmokit[huggingface]'``. Models are kept in the cache of
        huggingface_hub, which also obeys its environment variables, such as ``HF_HUB_OFFLINE``.
        Only model files are downloaded, and their SHA-256 is compared.

        Args:
            model: A repository, "user/model". A path or a bundled name is loaded from there.
            revision: A branch, a tag or a commit of the repository. Default: its main branch.
            token: An access token for a private repository, or False to send none. Default: the
                token that ``hf auth login`` saved.
            cache_dir: Another cache.
            local_files_only: Use what is in the cache, without the network.
            force_download: Download all files again.
            **keywords: The other arguments of :meth:`load`.
        """
        flag(local_files_only, "local_files_only")
        flag(force_download, "force_download")
        options: dict[str, Any] = {
            "revision": revision,
            "token": token,
            "cache_dir": cache_dir,
            "local_files_only": local_files_only or None,
            "force_download": force_download or None,
        }
        given = {name: value for name, value in options.items() if value is not None}
        if isinstance(model, str) and hub.is_repository(model):
            return cls.load(hub.download(model, **given), **keywords)
        if given:
            raise InputError(
                f"{next(iter(given))}= is for repositories of the Hugging Face Hub, named "
                f"user/model, and {shown(model)} is none"
            )
        return cls.load(model, **keywords)

    @classmethod
    def random(cls, config: str | ModelConfig = "small", seed: int = 0, **keywords: Any) -> Elmo:
        """Create a model with random weights, for tests and benchmarks.

        Args:
            config: Sizes, or the name of a published size: small, medium or original.
            seed: The same seed gives the same weights.
            **keywords: tokenizer, device, cache_mb and quantize, as for :meth:`load`.
        """
        if isinstance(config, str):
            config = published_size(config)
        instance(config, "config", ModelConfig, "a ModelConfig or the name of a published size")
        seed = whole_number(seed, "seed", 0, _MOST_SEED)
        if config.vocabulary_size or config.token_encoder.alphabet != "utf8":
            raise ConfigError("a random model reads UTF-8 and has no vocabulary")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            bilm = BiLM(config)
        tensors = {name: tensor.detach() for name, tensor in bilm.state_dict().items()}
        return cls(Checkpoint(config, tensors, format=f"random (seed {seed})"), **keywords)

    @property
    def dim(self) -> int:
        """Width D of every vector."""
        return self.config.context.output_dim

    @property
    def n_layers(self) -> int:
        """Number of layers, token layer included."""
        return self.config.n_layers

    @property
    def n_parameters(self) -> int:
        """Number of parameters without the softmax, counted as in the paper."""
        return self.checkpoint().n_parameters

    @property
    def precision(self) -> str:
        """What the LSTMs compute with: float32, int8 or bfloat16."""
        return self.bilm.precision

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self._engine.device

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary of the softmax; None for a model without one."""
        return self._lm.vocabulary if self._lm else None

    @property
    def layer_names(self) -> list[str]:
        """Names of all layers: token layer, LSTM layer 1, and so on."""
        kind = self.config.context.label
        return ["token layer", *(f"{kind} layer {k}" for k in range(1, self.n_layers))]

    def _shown(self) -> Shown:
        values = {
            "model": model_name(self.source) or self.format,
            "layers": ", ".join(self.layer_names),
            "vector width": self.dim,
            "parameters": self.n_parameters,
            "vocabulary": len(self.vocabulary) if self.vocabulary else "none",
            "tokenizer": self.tokenizer.name,
            "device": str(self.device),
            "precision": self.precision,
        }
        return Shown(html_table(facts("Elmo", values)))

    def __repr__(self) -> str:
        name = model_name(self.source) or self.format
        return (
            f"Elmo({name!r}, layers={self.n_layers}, dim={self.dim}, "
            f"parameters={self.n_parameters:,}, tokenizer={self.tokenizer.name!r}, "
            f"device={str(self.device)!r})"
        )

    def to(self, device: str | torch.device) -> Elmo:
        """Move the model to a device, and return it.

        On another type of device it computes in float32: each quantization is for one type only.
        """
        device = choose_device(device)
        if device.type != self.device.type:
            self.bilm.precision = "float32"
        self.bilm.to(device)
        self.mix.to(device)
        if self._lm:
            self._lm.softmax.to(device)
        return self

    def tokenize(self, text: Text) -> list[str]:
        """The tokens of a text, as all methods see them; a list of tokens stays as it is."""
        return tokenize_one(self.tokenizer, text)

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
        texts: Iterable[Text],
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
        texts: str | Iterable[Text],
        layers: Layers = "mix",
        *,
        dtype: npt.DTypeLike = np.float32,
        batch_size: int | None = None,
        state: State = "zero",
        marks: bool = False,
        progress: bool = True,
    ) -> Array | list[Array]:
        """Compute a vector for every token.

        Args:
            texts: A string, or a list of texts: of strings or of lists of tokens. The column of a
                table (pandas, polars, Arrow, datasets) is a list, too.
            layers: "mix" (the model's own layer weights, equal by default), "average", "top", the
                number of a layer (0 is the token layer), "all", or a list of numbers.
            dtype: float32, or float16 for half the memory.
            batch_size: Most sentences per batch. None chooses automatically.
            state: What the LSTMs start each sentence from. With "zero", "warm" or a state from
                :meth:`warm_state`, a sentence's vectors depend on the sentence alone. A
                :class:`CarriedState` continues from earlier sentences, as the original software
                does.
            marks: Keep the vectors of the sentence marks, one before the first token and one after
                the last.
            progress: Show progress on standard error if the work takes long: a bar in a terminal
                after two seconds, a line in a notebook, and a line every 30 seconds in a log.

        Returns:
            One array (T, D) per text, in order; (K, T, D) if several layers are chosen. An empty
            text gives an array without rows. A single string gives a single array.
        """
        if isinstance(texts, str):
            return self.encode(
                [texts],
                layers,
                dtype=dtype,
                batch_size=batch_size,
                state=state,
                marks=marks,
                progress=progress,
            )[0]
        flag(progress, "progress")
        options = self._options(layers, dtype, state, batch_size, marks)
        sentences = self._tokens(texts)
        n_tokens = sum(map(len, sentences)) + 2 * options.marks * len(sentences)
        values = n_tokens * math.prod((*options.choice.layer_shape, self.dim))
        check_memory(
            values * options.dtype.itemsize,
            torch.device("cpu"),
            f"the vectors of {n_tokens:,} tokens",
            "use stream(), or choose fewer layers",
        )
        found: dict[int, Array] = {}
        with DelayedProgress("embedding", len(sentences), "sentences", progress) as bar:
            for some in encode_batches(self._engine, self.mix, sentences, options):
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
        done: Sequence[int] | None = None,
    ) -> Iterator[Array]:
        """Encode any number of texts in bounded memory, in order.

        Texts are read one window at a time, so ``texts`` can be a generator over a large file.

        Args:
            texts: Strings, or lists of tokens.
            layers: As for :meth:`encode`.
            dtype: As for :meth:`encode`.
            batch_size: As for :meth:`encode`.
            state: As for :meth:`encode`.
            marks: As for :meth:`encode`.
            done: For work that can be resumed: the number of tokens of each text at the start
                whose array you have already; ``[]`` for none. These texts are read, but their
                arrays are left out. All other arrays have the same bits, whatever is done, and
                whatever this model encoded before. This holds on the same machine and device, with
                the same number of threads and the same ``batch_size``. None uses the words cached
                by earlier calls, which may change the last bits.

        Returns:
            An iterator over one array per text, as :meth:`encode` returns it.
        """
        options = self._options(layers, dtype, state, batch_size, marks)
        texts = [texts] if isinstance(texts, str) else texts
        if done is not None:
            done = check_done(done)
            return resume_arrays(self._engine, self.mix, texts, self._each, options, done)
        return stream_arrays(self._engine, self.mix, self._each(texts), options)

    def _each(self, texts: Iterable[Text]) -> Iterator[list[str]]:
        """Tokenize texts one by one, and warn of text that the model does not know."""
        return self._language.watch(tokenize_each(self.tokenizer, texts))

    def encode_sentences(
        self,
        texts: str | Iterable[Text],
        layers: Layers = "mix",
        *,
        pooling: str = "mean",
        dtype: npt.DTypeLike = np.float32,
        batch_size: int | None = None,
        state: State = "zero",
        progress: bool = True,
    ) -> Array:
        """Compute one vector per sentence.

        Args:
            texts: As for :meth:`encode`.
            layers: As for :meth:`encode`.
            pooling: "mean", "max", or "first-last": the forward half of the last token and the
                backward half of the first, where each direction has read the whole sentence.
            dtype: As for :meth:`encode`.
            batch_size: As for :meth:`encode`.
            state: As for :meth:`encode`.
            progress: As for :meth:`encode`.

        Returns:
            (N, D), or (N, K, D) if several layers are chosen; without the first axis for a single
            string. An empty text gives zeros.
        """
        if isinstance(texts, str):
            return self.encode_sentences(
                [texts],
                layers,
                pooling=pooling,
                dtype=dtype,
                batch_size=batch_size,
                state=state,
                progress=progress,
            )[0]
        one_of(pooling, "pooling", POOLINGS)
        flag(progress, "progress")
        options = self._options(layers, dtype, state, batch_size)
        sentences = self._tokens(texts)
        shape = (len(sentences), *options.choice.layer_shape, self.dim)
        result = np.zeros(shape, options.dtype)
        with DelayedProgress("embedding", len(sentences), "sentences", progress) as bar:
            for some in encode_batches(self._engine, self.mix, sentences, options):
                for i, vectors in some:
                    result[i] = pool(vectors, pooling, self.config.context.bidirectional)
                bar.advance(len(some))
        return result

    def encode_spans(
        self,
        text: Text,
        spans: Sequence[tuple[int, int]] | Array,
        layers: Layers = "mix",
        *,
        unit: str | None = None,
        pooling: str = "mean",
        dtype: npt.DTypeLike = np.float32,
        state: State = "zero",
    ) -> Array:
        """Compute one vector per phrase, in the context of its sentence.

        Args:
            text: One sentence: a string or a list of tokens.
            spans: S pairs (start, end), end excluded, or an array (S, 2).
            layers: As for :meth:`encode`.
            unit: What spans count: "characters" (default for a string; a token belongs to a span if
                one of its characters does) or "tokens" (default for a list of tokens).
            pooling: As for :meth:`encode_sentences`.
            dtype: As for :meth:`encode`.
            state: As for :meth:`encode`.

        Returns:
            (S, D), or (S, K, D) if several layers are chosen.
        """
        one_of(pooling, "pooling", POOLINGS)
        default = "characters" if isinstance(text, str) else "tokens"
        unit = one_of(default if unit is None else unit, "unit", ("characters", "tokens"))
        pairs = each(spans, "spans", "a list of pairs (start, end)")
        checked = [pair_of_numbers(pair, "each of spans") for pair in pairs]
        offsets: list[tuple[int, int]] | None = None
        tokens = self.tokenize(text)
        if unit == "characters":
            if not isinstance(text, str):
                raise InputError("spans in characters need the raw string, not a list of tokens")
            offsets = self.tokenizer.spans(text)
        slices = [tokens_of_span(span, offsets, len(tokens)) for span in checked]
        (vectors,) = self.encode([tokens], layers, dtype=dtype, state=state)
        pooled = np.zeros((len(slices), *vectors.shape[:-2], self.dim), vectors.dtype)
        for i, part in enumerate(slices):
            pooled[i] = pool(vectors[..., part, :], pooling, self.config.context.bidirectional)
        return pooled

    def outputs(
        self,
        texts: str | Iterable[Text],
        *,
        dtype: npt.DTypeLike = np.float32,
        state: State = "zero",
    ) -> dict[str, Array]:
        """Padded arrays under the names of TF-Hub's ELMo module.

        Args:
            texts: As for :meth:`encode`.
            dtype: As for :meth:`encode`.
            state: As for :meth:`encode`.

        Returns:
            word_emb (B, T, P), lstm_outputs1, lstm_outputs2, … (B, T, D), elmo (B, T, D) (their
            mix), default (B, D) (its mean over the real tokens) and sequence_len (B,). Padding is
            zero. A single string gives the same without the batch axis.
        """
        if isinstance(texts, str):
            batch = self.outputs([texts], dtype=dtype, state=state)
            return {name: array[0] for name, array in batch.items()}
        dtype = float_type(dtype)
        sentences = self._tokens(texts)
        lengths = np.array([len(s) for s in sentences], np.int32).reshape(len(sentences))
        shape = (len(sentences), int(lengths.max(initial=0)), self.dim)
        check_memory(
            12 * (self.n_layers + 1) * math.prod(shape),  # padded, unpadded, and as results
            torch.device("cpu"),
            f"the padded vectors of {shape[0]:,} texts of up to {shape[1]:,} tokens",
            "pass fewer texts, or texts of similar length",
        )
        padded = np.zeros((self.n_layers, *shape), np.float32)
        for i, layers in enumerate(self.encode(sentences, "all", state=state)):
            padded[:, i, : lengths[i]] = layers
        shares = torch.softmax(self.mix.weights, 0).cpu().numpy()
        mixed = float(self.mix.gamma) * np.tensordot(shares, padded, 1)
        named: dict[str, Array] = {"word_emb": padded[0, ..., : self.config.context.projection_dim]}
        named |= {f"lstm_outputs{k}": padded[k] for k in range(1, self.n_layers)}
        named |= {"elmo": mixed, "default": mixed.sum(1) / np.maximum(lengths, 1)[:, None]}
        result = {name: array.astype(dtype) for name, array in named.items()}
        return result | {"sequence_len": lengths}

    @overload
    def score(  # type: ignore[overload-overlap]  # a string is a sequence of strings too
        self, texts: str, *, state: State = ..., batch_size: int | None = ...
    ) -> Score: ...
    @overload
    def score(
        self, texts: Iterable[Text], *, state: State = ..., batch_size: int | None = ...
    ) -> list[Score]: ...
    def score(
        self, texts: str | Iterable[Text], *, state: State = "zero", batch_size: int | None = None
    ) -> Score | list[Score]:
        """Log-probability of every token given the tokens before it, and given those after it.

        Args:
            texts: As for :meth:`encode`; a single string gives a single score.
            state: As for :meth:`encode`.
            batch_size: As for :meth:`encode`.
        """
        if isinstance(texts, str):
            return self.score([texts], state=state, batch_size=batch_size)[0]
        lm, batch_size = self._language_model(), check_batch_size(batch_size)
        start = self._start(state)
        return lm.score(self._tokens(texts), start, batch_size)

    def stream_scores(self, texts: Iterable[Text], *, state: State = "zero") -> Iterator[Score]:
        """Score any number of texts in bounded memory, in order; see :meth:`score`."""
        lm, start = self._language_model(), self._start(state)
        multiple = CARRIED_BATCH_SIZE if isinstance(state, CarriedState) else 1
        sentences = self._each([texts] if isinstance(texts, str) else texts)
        max_tokens = _CPU_SCORED_TOKENS if self.device.type == "cpu" else _GPU_SCORED_TOKENS
        windows = token_windows(sentences, max_tokens, multiple)
        return (score for window in windows for score in lm.score(window, start))

    def perplexity(self, texts: str | Iterable[Text], *, state: State = "zero") -> Perplexity:
        """Full-softmax perplexity of some texts, by direction, with the rate of unknown tokens."""
        return Perplexity.from_scores(self.stream_scores(texts, state=state))

    def substitutes(
        self, text: Text, position: int, k: int = 10, *, state: State = "zero"
    ) -> list[tuple[str, float]]:
        """The k words that fit a position best, given both contexts, with their probabilities.

        The predictions of both directions are multiplied and divided by the word's own frequency,
        which is estimated from its rank in the vocabulary (see
        :func:`elmokit.inference.scoring.zipf`).

        Args:
            text: One sentence. The word at the position itself has no influence.
            position: The index of a token, from 0.
            k: How many words to return.
            state: As for :meth:`encode`.
        """
        lm, start = self._language_model(), self._start(state)
        tokens, position = self._place(text, position)
        return lm.substitutes(tokens, position, whole_number(k, "k", 1), start)

    def expected(
        self, text: Text, position: int, k: int = 10, *, state: State = "zero"
    ) -> dict[str, list[tuple[str, float]]]:
        """The k words that each direction alone expects at a position, with their probabilities.

        Args:
            text: One sentence. The word at the position itself has no influence.
            position: The index of a token, from 0.
            k: How many words to return.
            state: As for :meth:`encode`.

        Returns:
            Words by direction, "forward" and "backward"; only "forward" for a forward-only model.
        """
        lm, start = self._language_model(), self._start(state)
        tokens, position = self._place(text, position)
        found = lm.expected(tokens, position, whole_number(k, "k", 1), start)
        return dict(zip(("forward", "backward"), found, strict=False))

    def _place(self, text: Text, position: int) -> tuple[list[str], int]:
        """The tokens of a text, and a checked position in it."""
        (tokens,) = self._language.watch(iter([self.tokenize(text)]))
        if not tokens:
            raise InputError("text must have at least one token, and this one is empty")
        return tokens, whole_number(position, "position", 0, len(tokens) - 1)

    def warm_state(self, texts: str | Iterable[Text] | None = None) -> BiLMState:
        """The state after reading some sentences, for use as a fixed start of others.

        The published models were trained with carried state, so zeros are slightly unfamiliar to
        them. A warm state avoids that without making a sentence depend on another.

        Args:
            texts: What to read. Default: the same short text each time.
        """
        carried, engine = CarriedState(), self._engine.fresh()  # the same bits in every call
        texts = [texts] if isinstance(texts, str) else texts
        for sentence in self._tokens(_WARM_UP if texts is None else texts):
            list(engine.run([sentence], lambda batch: None, start=carried))
        return carried.rows(1, self.bilm)

    def set_mix(self, weights: Sequence[float] | None, gamma: float = 1.0) -> None:
        """Set the layer weights (before the softmax) and the scale of ``layers="mix"``.

        They are saved with the model.
        """
        own = None if weights is None else tuple(numbers(weights, "weights"))
        if own is not None and len(own) != self.n_layers:
            raise wrong("weights", f"{self.n_layers} numbers, one per layer", weights)
        mix = MixConfig(own, number(gamma, "gamma"))
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
            folder: A new or empty folder, unless ``overwrite`` is set.
            format: "native" (config.json, model.safetensors, model card), or "bilm-tf"
                (options.json and weights.hdf5, for AllenNLP and bilm-tf).
            overwrite: Replace an existing model, after the new one is complete.
            dtype: "float32"; in the native format also "float16" or "int8" for a half or a quarter
                of the size, or "int4": int8 with the softmax in four bits. Rounded weights run in
                float32 too.
        """
        one_of(format, "format", WRITERS)
        one_of(dtype, "dtype", DTYPES)
        flag(overwrite, "overwrite")
        checkpoint, path = self.checkpoint(), file_path(folder, "folder").expanduser()
        if format == "native":
            native.write(checkpoint, path, overwrite, dtype)
        elif dtype != "float32":
            raise InputError(f"the format {format} stores float32 only, not {dtype}")
        else:
            WRITERS[format](checkpoint, path, overwrite)

    def push_to_hub(
        self,
        repository: str,
        *,
        dtype: str = "float32",
        private: bool | None = None,
        revision: str | None = None,
        token: str | bool | None = None,
        license: str | None = None,
        language: str | None = None,
        message: str | None = None,
    ) -> str:
        """Upload the model to the Hugging Face Hub, in the native format with a model card.

        Needs ``pip install 'elmokit[huggingface]'`` and a token that may write. A model card that
        the repository already has keeps its text.

        Args:
            repository: Its name, "user/model". It is created if it does not exist.
            dtype: As for :meth:`save`.
            private: Whether a new repository is private. Default: what the account says.
            revision: The branch, created if it does not exist. Default: the main branch.
            token: An access token. Default: the one that ``hf auth login`` saved.
            license: The licence for the model card, such as "apache-2.0". Default: that of the
                bundled model this one comes from, if any.
            language: The language for the model card, such as "en". Default: that of the
                tokenizer, if it is made for one.
            message: The commit message.

        Returns:
            The address of the commit.
        """
        one_of(dtype, "dtype", DTYPES)
        return hub.upload(
            self.checkpoint(),
            repository,
            dtype=dtype,
            private=private,
            revision=revision,
            token=token,
            license=license,
            language=language,
            message=message,
        )

    def checkpoint(self) -> Checkpoint:
        """The config and weights as they are now, ready to be written in any format."""
        tensors = {name: tensor.detach() for name, tensor in self.bilm.state_dict().items()}
        if self._lm:
            softmax = self._lm.softmax.state_dict().items()
            tensors |= {SOFTMAX + name: tensor.detach() for name, tensor in softmax}
        known = not self.tokenizer.name.startswith("custom:")
        config = replace(self.config, tokenizer=self.tokenizer.name) if known else self.config
        return replace(self._checkpoint, config=config, tensors=tensors)

    def _tokens(self, texts: Iterable[Text]) -> list[list[str]]:
        return list(self._each(texts))

    def _options(
        self,
        layers: Layers,
        dtype: npt.DTypeLike,
        state: State,
        batch_size: int | None,
        marks: bool = False,
    ) -> VectorOptions:
        choice = LayerChoice.parse(layers, self.n_layers)
        size = check_batch_size(batch_size)
        kind, marks = float_type(dtype), flag(marks, "marks")
        return VectorOptions(choice, kind, self._start(state), size, marks)

    def _start(self, state: State) -> StartState:
        if isinstance(state, CarriedState):
            if not self.config.context.carries_state:
                raise InputError("a transformer has no state to carry; use state='zero'")
            return state
        if isinstance(state, BiLMState):
            fixed = fitting_state(state, self.bilm)
            if len(fixed) != 1:
                raise InputError(
                    f"a fixed start has one row for every sentence, not {len(fixed)}; use "
                    "warm_state(), or a CarriedState for one row each"
                )
            return fixed
        if isinstance(state, str) and state == "zero":
            return None
        if isinstance(state, str) and state == "warm":
            return self.warm_state()
        raise wrong("state", "zero, warm, or a state", state)

    def _quantize(self, precision: str) -> None:
        needed = {"int8": "cpu", "bfloat16": "cuda"}
        one_of(precision, "quantize", needed)
        if not self.config.context.quantizable:
            raise InputError(f"{precision} is for LSTMs, and this model is a transformer")
        if self.device.type != needed[precision]:
            where = "a CPU" if precision == "int8" else "a GPU"
            raise InputError(f"{precision} needs {where}, and this model is on {self.device}")
        if precision == "int8":
            check_int8()
        self.bilm.precision = precision

    def _language_model(self) -> LanguageModel:
        if self._lm is None:
            raise UnsupportedModelError(
                f"{self.source or 'this model'} has no softmax, so it gives vectors but no "
                "probabilities; if you have softmax.hdf5 and vocab.txt, put them into its folder"
            )
        return self._lm


def _fill(module: torch.nn.Module, tensors: dict[str, torch.Tensor], prefix: str) -> None:
    """Give a module created on the meta device its weights, for inference."""
    own = {}
    for name, expected in module.state_dict().items():
        found = tensors.get(prefix + name)
        if found is None or found.shape != expected.shape:
            given = "is missing" if found is None else f"has the shape {tuple(found.shape)}"
            raise ShapeError(
                f"the weight {prefix + name} {given}; expected {tuple(expected.shape)}"
            )
        own[name] = found
    module.load_state_dict(own, assign=True)
    module.requires_grad_(False).eval()
