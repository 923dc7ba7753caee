"""The tokenizer of the transformers integration: words as rows of character ids.

Use it from :mod:`elmokit.integrations.transformers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.arguments import strings
from elmokit.config import ModelConfig
from elmokit.errors import InputError, MissingExtraError
from elmokit.formats.checkpoint import Checkpoint
from elmokit.io.atomic import new_file
from elmokit.text.tokenizers import get_tokenizer

try:
    from transformers import BatchEncoding, PreTrainedTokenizerBase
    from transformers.tokenization_utils_base import TruncationStrategy
    from transformers.utils import PaddingStrategy
except ImportError as error:
    raise MissingExtraError("transformers>=5.22", "transformers", "ElmoTokenizer") from error

if TYPE_CHECKING:
    from elmokit.elmo import Elmo

_PADDING = {"attention_mask": 0, "special_tokens_mask": 1, "offset_mapping": (0, 0)}


@dataclass
class Words:
    """The tokens of one text, for the methods ``tokens``, ``word_ids`` … of a BatchEncoding."""

    tokens: list[str]
    """The tokens; those of the padding are <pad>."""
    word_ids: list[int | None]
    """The number of the word of each token, which is the token itself; None in the padding."""
    sequence_ids: list[int | None]
    """0; None in the padding."""
    n_sequences: int = 1


class ElmoTokenizer(PreTrainedTokenizerBase):
    """Texts to character ids: ``input_ids`` (B, T, C) and ``attention_mask`` (B, T).

    Every word is one token, a row of C ids. Zeros are padding. The model adds the sentence marks
    itself. Strings are split by the model's tokenizer; lists of words stay as they are, with
    ``is_split_into_words=True``.

    Args:
        elmo: The settings of the model, as :meth:`elmokit.ModelConfig.to_dict` returns them.
        characters_file: The characters of a model with the alphabet codepoints, one per line.
        words_file: Its words.
        characters: The same as a list.
        words: The same as a list.
        **keywords: As for every tokenizer of transformers.
    """

    vocab_files_names = {"characters_file": "characters.txt", "words_file": "words.txt"}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012
    is_fast = False

    def __init__(
        self,
        elmo: dict[str, Any] | None = None,
        characters_file: str | None = None,
        words_file: str | None = None,
        characters: Sequence[str] = (),
        words: Sequence[str] = (),
        **keywords: Any,
    ) -> None:
        config = ModelConfig.from_dict(elmo or {})
        config = replace(config, vocabulary_size=0, softmax_cutoffs=())
        self.characters = _lines(characters_file) if characters_file else list(characters)
        self.words = _lines(words_file) if words_file else list(words)
        self._alphabet = Checkpoint(
            config, {}, characters=self.characters, words=self.words
        ).alphabet()
        self._columns = config.token_encoder.max_characters
        self._split = get_tokenizer(config.tokenizer)
        self.n_characters = config.token_encoder.n_characters
        keywords["pad_token"] = "<pad>"
        super().__init__(elmo=config.to_dict(), **keywords)

    @classmethod
    def from_elmo(cls, elmo: Elmo, **keywords: Any) -> ElmoTokenizer:
        """Return the tokenizer of a loaded model."""
        checkpoint = elmo.checkpoint()
        return cls(
            checkpoint.config.to_dict(),
            characters=checkpoint.characters,
            words=checkpoint.words,
            **keywords,
        )

    @property
    def pad_token_id(self) -> int:
        """0, the id in all columns of a padded token."""
        return 0

    @property
    def vocab_size(self) -> int:
        """Number of character ids, with that of the padding."""
        return 1 + self.n_characters

    def __len__(self) -> int:
        return self.vocab_size

    def get_vocab(self) -> dict[str, int]:
        """Return nothing: words are not numbered, every word has characters."""
        return {}

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """Nothing: there is no vocabulary to add to."""
        return {}

    def marks(self) -> list[list[int]]:
        """Character ids (2, C) of the two sentence marks, which the model adds to a sentence."""
        return self.convert_tokens_to_ids([self._alphabet.begin, self._alphabet.end])

    def tokenize(self, text: str, **keywords: Any) -> list[str]:
        """Split a string into words."""
        return self._split(text)

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """Character ids (T, C) of words, or (C,) of a single word."""
        if isinstance(tokens, str):
            return self.convert_tokens_to_ids([tokens])[0]
        return self._alphabet.encode(tokens, self._columns).tolist()

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Not possible: a word has many ids, and a long one is cut."""
        raise InputError("ids of characters cannot be turned into words; keep the words themselves")

    def decode(self, token_ids: Any, *args: Any, **keywords: Any) -> Any:
        """Not possible; see :meth:`convert_ids_to_tokens`."""
        return self.convert_ids_to_tokens(token_ids)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """0: the model adds the sentence marks."""
        return 0

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """Write the lists of characters and words, if the model has them."""
        prefix, written = f"{filename_prefix}-" if filename_prefix else "", []
        for name, items in (("characters.txt", self.characters), ("words.txt", self.words)):
            if items:
                path = Path(save_directory) / f"{prefix}{name}"
                with new_file(path) as new:
                    new.write_bytes("".join(f"{item}\n" for item in items).encode("utf-8"))
                written.append(str(path))
        return tuple(written)

    def _save_pretrained(
        self,
        save_directory: Any,
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        return file_names + self.save_vocabulary(str(save_directory), filename_prefix)

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        **others: Any,
    ) -> BatchEncoding:
        if text_pair is not None:
            raise InputError("ELMo reads one sentence at a time; pass text alone, not text_pair=")
        if return_overflowing_tokens:
            raise InputError("return_overflowing_tokens= is not supported; split the text instead")
        single = isinstance(text, str) or (
            is_split_into_words and all(isinstance(item, str) for item in text)
        )
        sentences = [
            self._words(item, is_split_into_words) for item in ([text] if single else text)
        ]
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE and max_length is not None:
            left = self.truncation_side == "left"
            sentences = [
                s[-max_length:] if left and max_length else s[:max_length] for s in sentences
            ]
        rows = iter(self.convert_tokens_to_ids([word for s in sentences for word, _ in s]))
        encoded = []
        for sentence in sentences:
            values: dict[str, Any] = {"input_ids": [next(rows) for _ in sentence]}
            if return_attention_mask is not False:
                values["attention_mask"] = [1] * len(sentence)
            if return_special_tokens_mask:
                values["special_tokens_mask"] = [0] * len(sentence)
            if return_offsets_mapping:
                values["offset_mapping"] = [span for _, span in sentence]
            encoded.append(values)
        if padding_strategy == PaddingStrategy.LONGEST:
            padding_strategy = PaddingStrategy.MAX_LENGTH
            max_length = max(map(len, sentences), default=0)
        sizes = (max_length, padding_strategy, pad_to_multiple_of, padding_side)
        encoded = [self._pad(values, *sizes, return_attention_mask) for values in encoded]
        for values in encoded if return_length else ():
            values["length"] = len(values["input_ids"])
        found = [
            self._padded_words([word for word, _ in sentence], len(values["input_ids"]))
            for sentence, values in zip(sentences, encoded, strict=True)
        ]
        names = encoded[0] if encoded else {"input_ids": [], "attention_mask": []}
        if single:
            return BatchEncoding(
                encoded[0], found, tensor_type=return_tensors, prepend_batch_axis=True
            )
        data = {name: [values[name] for values in encoded] for name in names}
        return BatchEncoding(data, found, tensor_type=return_tensors)

    def _words(self, text: Any, is_split: bool) -> list[tuple[str, tuple[int, int]]]:
        """The words of a text with their offsets: in the text, or in the word if it is split."""
        if is_split:
            return [(word, (0, len(word))) for word in strings(text, "text")]
        if not isinstance(text, str):
            raise InputError(
                "text must be strings; for lists of words pass is_split_into_words=True"
            )
        return [(text[start:end], (start, end)) for start, end in self._split.spans(text)]

    def _padded_words(self, words: list[str], length: int) -> Words:
        n, rest = len(words), length - len(words)
        none: list[int | None] = [None] * rest
        return Words(words + ["<pad>"] * rest, [*range(n), *none], [*[0] * n, *none])

    def pad(self, encoded_inputs: Any, *args: Any, **keywords: Any) -> BatchEncoding:
        """Pad encoded texts to the same number of words, as all tokenizers of transformers do."""
        if not isinstance(encoded_inputs, Mapping) or _depth(encoded_inputs["input_ids"]) != 2:
            return super().pad(encoded_inputs, *args, **keywords)
        batch = super().pad([dict(encoded_inputs)], *args, **keywords)  # a single text
        return BatchEncoding({name: values[0] for name, values in batch.items()})

    def _pad(
        self,
        encoded_inputs: Any,
        max_length: int | None = None,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
    ) -> dict[str, Any]:
        values = dict(encoded_inputs)
        rows = list(values["input_ids"])
        if return_attention_mask is not False and "attention_mask" not in values:
            values["attention_mask"] = [1] * len(rows)
        if padding_strategy == PaddingStrategy.DO_NOT_PAD:
            return values
        if (padding_side or self.padding_side) != "right":
            raise InputError("ELMo pads after the last word; use padding_side='right'")
        length = max_length if padding_strategy == PaddingStrategy.MAX_LENGTH else None
        length = max(1, len(rows) if length is None else length)  # a tensor needs one row
        multiple = pad_to_multiple_of or 1
        missing = max(0, -(-length // multiple) * multiple - len(rows))
        zeros = [0] * (self._columns + bool(self.words))
        values["input_ids"] = rows + [zeros for _ in range(missing)]
        for name, padding in _PADDING.items():
            if name in values:
                values[name] = list(values[name]) + [padding] * missing
        return values


def _depth(values: Any) -> int:
    """Return how deeply lists are nested, or the number of axes of an array."""
    if hasattr(values, "ndim"):
        return int(values.ndim)
    if not isinstance(values, Sequence):
        return 0
    return 1 + max((_depth(item) for item in values[:1]), default=0)


def _lines(path: str) -> list[str]:
    return Path(path).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
