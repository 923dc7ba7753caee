"""Vectors of words from an ONNX file, with numpy and onnxruntime only.

elmokit convert en en.onnx --to onnx
python examples/onnx_standalone.py en.onnx
"""

import sys

import numpy as np
import onnxruntime

TEXTS = [
    "She took the money to the bank",
    "The bank lends money",
    "He sat on the bank of the river",
]
COLUMNS, WORD_BEGIN, WORD_END, PADDING = 50, 259, 260, 261  # also in the metadata of the file


def ids_of_word(word):
    """UTF-8 bytes plus one, between two marks; too long words are cut."""
    ids = [WORD_BEGIN, *(byte + 1 for byte in word.encode()[: COLUMNS - 2]), WORD_END]
    return ids + [PADDING] * (COLUMNS - len(ids))


sentences = [text.split() for text in TEXTS]
lengths = np.array([len(words) for words in sentences], np.int64)
ids = np.zeros((len(sentences), lengths.max(), COLUMNS), np.int64)
for row, words in zip(ids, sentences, strict=True):
    row[: len(words)] = [ids_of_word(word) for word in words]
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
(mix,) = session.run(["mix"], {"ids": ids, "lengths": lengths})  # (sentences, words, dim)
banks = [vectors[words.index("bank")] for vectors, words in zip(mix, sentences, strict=True)]
for other in (1, 2):
    cosine = banks[0] @ banks[other] / np.linalg.norm(banks[0]) / np.linalg.norm(banks[other])
    print(f"{cosine:.3f}  bank: {TEXTS[0]} / {TEXTS[other]}")
