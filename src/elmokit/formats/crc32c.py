"""The checksum CRC-32C (Castagnoli) of large data, in numpy.

A checksum is linear over bits, so many parts of the data can be processed at once. The data is a
table of 32-bit words with a fixed number of columns. Each column has a state of its own: moving on
by one row multiplies the states by a fixed matrix of bits and adds the row. In the end the states
are added, each multiplied by the matrix that moves it to the end of the data.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78  # with the lowest bit first
_COLUMNS = 1 << 14
_ALL_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8

Words: TypeAlias = npt.NDArray[np.uint32]


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the checksum of data."""
    octets = np.frombuffer(data, np.uint8)
    # the register starts with ones, which add to what zeros would give
    start = _apply(_moved_by(octets.size), np.array([_ALL_ONES], np.uint32))
    return int(_remainder(octets) ^ start[0]) ^ _ALL_ONES


def masked_crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the checksum as TensorFlow stores it: rotated by 15 bits, with a constant added."""
    checksum = crc32c(data)
    return ((checksum >> 15 | checksum << 17) + _MASK_DELTA) & _ALL_ONES


def _remainder(octets: npt.NDArray[np.uint8]) -> np.uint32:
    """Return the checksum's register after data, if it starts with zeros."""
    head = octets.size % (4 * _COLUMNS)
    first = np.zeros(4 * _COLUMNS, np.uint8)  # zeros in front of the data change nothing
    if head:
        first[-head:] = octets[:head]
    states = first.view("<u4").astype(np.uint32)
    rows = octets[head:].view("<u4").reshape(-1, _COLUMNS)
    if len(rows):
        low, high = _row_tables()
        for row in rows:
            states = low[states & 0xFFFF] ^ high[states >> 16] ^ row
    while states.size > 1:
        half = states.size // 2
        states = _apply(_moved_by(4 * half), states[:half]) ^ states[half:]
    return np.uint32(_apply(_moved_by(4), states)[0])


@cache
def _row_tables() -> tuple[Words, Words]:
    """Return what becomes of the low and the high half of a state after a row."""
    halves = np.arange(1 << 16, dtype=np.uint32)
    matrix = _moved_by(4 * _COLUMNS)
    return _apply(matrix, halves), _apply(matrix, halves << np.uint32(16))


@cache
def _moved_by(n: int) -> Words:
    """Return the matrix that moves a register on by n bytes of zeros, as its 32 columns."""
    if n == 0:
        return np.uint32(1) << np.arange(32, dtype=np.uint32)
    if n == 1:
        register = _moved_by(0)
        for _ in range(8):
            register = (register >> np.uint32(1)) ^ (register & 1) * np.uint32(_POLYNOMIAL)
        return register
    half = _moved_by(n // 2)
    whole = _apply(half, half)
    return _apply(_moved_by(1), whole) if n % 2 else whole


def _apply(matrix: Words, states: Words) -> Words:
    """Multiply states by a matrix of bits."""
    result = np.zeros_like(states)
    for bit in range(32):
        result ^= (states >> np.uint32(bit) & 1) * matrix[bit]
    return result
