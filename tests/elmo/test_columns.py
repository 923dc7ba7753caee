"""Columns of tables as input: pandas, polars, Arrow, numpy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from elmokit import InputError

TEXTS = ["the bank of the river", "", "money"]
TOKENS = [["the", "bank"], [], ["money"]]
COLUMNS = {
    "pandas": pd.Series,
    "pandas with another index": lambda texts: pd.Series(texts, index=[7, 3, 5]),
    "pandas string": lambda texts: pd.Series(texts, dtype="string"),
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow in chunks": lambda texts: pa.chunked_array([texts[:2], texts[2:]]),
    "numpy": np.array,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_strings_is_a_list_of_texts(tiny, kind):
    column = COLUMNS[kind](TEXTS)
    for found, expected in zip(tiny.encode(column), tiny.encode(TEXTS), strict=True):
        assert np.array_equal(found, expected)
    assert np.array_equal(tiny.encode_sentences(column), tiny.encode_sentences(TEXTS))


@pytest.mark.parametrize("kind", sorted(set(COLUMNS) - {"numpy", "pandas string"}))
def test_a_column_of_lists_of_tokens(tiny, kind):
    column = COLUMNS[kind](TOKENS)
    for found, expected in zip(tiny.encode(column), tiny.encode(TOKENS), strict=True):
        assert np.array_equal(found, expected)
    assert len(list(tiny.stream(column))) == 3


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_is_refused(tiny, table):
    with pytest.raises(InputError, match='texts is a table .*; pass one of its columns.*"text"'):
        tiny.encode(table({"text": TEXTS}))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", None]),
        pd.Series(["a", float("nan")], dtype=object),
        pd.Series(["a", pd.NA], dtype="string"),
        pl.Series(["a", None]),
        pa.array(["a", None]),
    ],
)
def test_missing_values_are_named(tiny, column):
    with pytest.raises(InputError, match=r"text 1 is missing .*; drop such rows, or fill"):
        tiny.encode_sentences(column)
