"""Static vectors: the same numbers from every format, and what damaged files raise."""

import gzip
import lzma

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.tasks.static_vectors import read_static_vectors

WORDS = ["the", ",", "苹果", "The"]
VECTORS = np.array([[0.5, -1], [2, 0.25], [-0.125, 3], [1e-3, 7]], np.float32)
TEXT = "".join(f"{w} {a:.9g} {b:.9g}\n" for w, (a, b) in zip(WORDS, VECTORS, strict=True))


def binary(end=b""):
    rows = zip(WORDS, VECTORS, strict=True)
    return b"4 2\n" + b"".join(w.encode() + b" " + v.tobytes() + end for w, v in rows)


def check(path):
    found = read_static_vectors(path)
    assert found.words == WORDS
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VECTORS)
    found = read_static_vectors(path, {"The", "苹果", "absent"})
    assert found.words == ["苹果", "The"]
    np.testing.assert_array_equal(found.vectors, VECTORS[2:])
    assert read_static_vectors(path, ["the"]).words == ["the"]
    for none in ([], ["absent"]):
        assert read_static_vectors(path, none).vectors.shape == (0, 2)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", TEXT),
        ("glove.txt", TEXT.replace("\n", " \r\n")),
        ("w2v.vec", "4 2\n" + TEXT),
        ("w2v.vec.gz", gzip.compress(b"4 2\n" + TEXT.encode())),
        ("glove.txt.xz", lzma.compress(TEXT.encode())),
        ("w2v.bin", binary()),
        ("w2v.bin", binary(b"\n")),
        ("w2v.bin.gz", gzip.compress(binary(b"\n"))),
    ],
    # not from the contents: gzip's have the time of packing, which differs between processes
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)
def test_files(file, name, content):
    check(file(name, content))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ("v.npy", "v.txt"),
        ("v.npy", "v.vocab"),
        ("v.f16.npy", "v.vocab.txt"),
        ("v.f16.npy", "v.f16.txt"),
        ("v.npy", "vocab.txt"),
    ],
)
def test_arrays(file, array, words):
    file(words, "\n".join(WORDS))
    path = file(array, VECTORS)
    check(path)
    check(path.parent)
    file(array, np.asfortranarray(VECTORS, np.float64))
    check(path)
    half = read_static_vectors(file(array, VECTORS.astype(np.float16)))
    np.testing.assert_array_equal(half.vectors, VECTORS.astype(np.float16))


def test_the_first_of_equal_words_counts(file):
    found = read_static_vectors(file("a.txt", "a 1 2\nb 3 4\na 5 6\n"))
    assert (found.words, found.vectors.tolist()) == (["a", "b"], [[1, 2], [3, 4]])
    file("v.txt", "a\nb\na\n")
    found = read_static_vectors(file("v.npy", np.array([[1.0], [2.0], [3.0]])))
    assert (found.words, found.vectors.tolist()) == (["a", "b"], [[1], [2]])


def test_words_of_glove_may_contain_spaces(file):
    found = read_static_vectors(file("a.txt", "the 1 2\n. . . 3 4\nat x@y.z 5 6\n\xa0 7 8\n"))
    assert found.words == ["the", ". . .", "at x@y.z", "\xa0"]


def test_reading_ends_with_the_last_wanted_word(file):
    path = file("a.txt", b"a 1 2\nb 3 4\n\xff broken")
    assert read_static_vectors(path, {"b"}).words == ["b"]
    with pytest.raises(InputError, match="line 3 of .* is not UTF-8"):
        read_static_vectors(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no vectors; expected a word and its values"),
        ("\n\n", "contains no vectors"),
        ("0 2\n", "contains no vectors"),
        ("5 2\n", "ends after 0 words; its first line says 5; is it complete"),
        ("2 2\na 1 2\n", "ends after 1 words; its first line says 2"),
        ("word\n", "line 1 of .* has 0 values after the word; expected at least one"),
        ("a\t1\t2\n", "line 1 of .* has 0 values"),
        ("a 1 2\n\nb 3\n", "line 3 of .* has 1 values after the word; expected 2"),
        ("a 1 2\nb 3 4 5\n", "line 2 of .* has 3 values after the word; expected 2"),
        ("1 3\na 1 2\n", "line 2 of .* has 2 values after the word; expected 3"),
        ("a 1 2\nb 3 x\n", "line 2 of .* has 'x' as a value; expected numbers"),
        ("a 1 2\nb 3 nan\n", "line 2 of .* contains nan; expected finite numbers"),
        ("a 1 2\nb -inf 4\n", "line 2 of .* contains -inf"),
        ("a 1 2\nb 1e300 4\n", "line 2 of .* contains inf"),
        ("a 1 2\n 3 4\n", "line 2 of .* has an empty word"),
        ("a 1 2\nb\0 3 4\n", "line 2 of .* contains a NUL"),
    ],
)
def test_malformed_text(file, text, message):
    with pytest.raises(InputError, match=message):
        read_static_vectors(file("a.txt", text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin with the number and the width"),
        (b"\xba\x16\x4f\x2f" * 30, "does not begin with .* of fastText, use the file .vec"),
        (b"4 0\n", "does not begin with"),
        (b"4 999999\n", "does not begin with"),
        (binary()[:-1], "ends after 3 words; its first line says 4"),
        (b"999999999999 2\n" + binary()[4:], "ends after 4 words; its first line says 999,999"),
        (b"1 2\n" + b"x" * 20_000, "word 1 of .* is longer than 10,000 bytes"),
        (b"1 1\n\xff \0\0\0\0", r"word 1 of .* is b'\\xff'; expected UTF-8"),
        (b"1 1\n \0\0\0\0", "word 1 of .* is empty"),
        (b"1 1\na \0\0\xc0\x7f", r"word 1 of .* \('a'\) contains nan"),
    ],
)
def test_malformed_binary(file, content, message):
    with pytest.raises(InputError, match=message):
        read_static_vectors(file("a.bin", content))


def test_malformed_arrays(file, tmp_path):
    with pytest.raises(InputError, match=r"expected one .npy file in .*; found none"):
        read_static_vectors(tmp_path)
    path = file("v.npy", VECTORS)
    with pytest.raises(InputError, match=r"no file with the words of .* in v.txt, .* or words.txt"):
        read_static_vectors(path)
    for text, message in [
        ("a\nb\n", "has 4 vectors, but .* has 2 words"),
        ("a\n\nb\nc\n", "line 2 of .*v.txt has no word"),
    ]:
        file("v.txt", text)
        with pytest.raises(InputError, match=message):
            read_static_vectors(path)
    file("v.txt", "\n".join(WORDS))
    for content, message in [
        (b"", "cannot read .*v.npy"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4', ", "cannot read .*v.npy"),
        (path.read_bytes()[:-1], "cannot read .*v.npy"),
        (np.array([{}]), "cannot read .*v.npy"),
        (VECTORS[0], r"is an array \(2,\) of float32; expected \(words, width\) of floats"),
        (VECTORS.astype(np.int64), "of int64"),
        (VECTORS[:, :0], "of float32|cannot read"),
        (VECTORS * np.nan, "the vector of 'the' in .* contains nan"),
        (VECTORS.astype(np.float64) * 1e300, "the vector of 'the' in .* contains inf"),
    ]:
        with pytest.raises(InputError, match=message):
            read_static_vectors(file("v.npy", content))
    with pytest.raises(InputError, match="is packed; unpack it"):
        read_static_vectors(file("v.npy.gz", b""))


def test_arguments(file):
    path = file("a.txt", TEXT)
    with pytest.raises(InputError, match="words must be a collection of words, or None, not 'the'"):
        read_static_vectors(path, "the")
    with pytest.raises(InputError, match="words must be a collection"):
        read_static_vectors(path, iter(WORDS))
    with pytest.raises(InputError, match="there is no file"):
        read_static_vectors("nowhere.txt")


def test_wide_vectors(file):
    path = file("a.txt", "a " + " ".join(["1"] * 100_000) + "\n")
    assert read_static_vectors(path).vectors.shape == (1, 100_000)
