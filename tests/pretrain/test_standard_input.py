"""Pretraining on text from standard input."""

import gzip
import io
import sys

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.pretrain.data.prepare import TextOptions, prepare
from helpers.pretraining import SMALL, arguments, sentences
from helpers.processes import run_process

OPTIONS = TextOptions(tokenized=True)


@pytest.mark.parametrize("processes", [1, 2])
def test_it_is_read_again_each_time(tmp_path, monkeypatch, processes):
    def piped(lines):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
        return prepare(["-"], tmp_path / "piped", OPTIONS, processes)

    lines = sentences(50)
    (tmp_path / "text.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    expected = prepare([tmp_path / "text.gz"], tmp_path / "file", OPTIONS, 1)
    found = piped(lines)
    assert found.digest == expected.digest
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    assert piped(lines[:20]).digest != expected.digest
    with pytest.raises(InputError, match="no words in -"):
        piped([])


def test_a_run(text, tmp_path):
    command = ["pretrain", *arguments(text, SMALL, tmp_path / "run")[1:]]
    piped = ["-" if argument == text[0][0] else argument for argument in command]
    done = run_process(*piped, stdin=text[0][0].read_text())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/best/config.json").is_file()
    twice = ["-" if argument == text[1][0] else argument for argument in piped]
    assert "validation text" in run_process(*twice, stdin="").stderr
