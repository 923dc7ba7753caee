"""elmokit perplexity."""

import json

import pytest

from elmokit import Elmo
from elmokit.analysis.text_perplexity import perplexity_of_files


def test_perplexity(cli, arguments, lm_folder):
    (text,) = arguments["perplexity"]
    found = perplexity_of_files(Elmo.load(lm_folder, device="cpu"), [text])
    done = cli("perplexity", text, "--model", lm_folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"tokens               {found.n_tokens:,} in {found.n_sentences:,} sentences",
        f"unknown              {found.unknown_rate:.2%}",
        f"perplexity forward   {found.forward:.2f}",
        f"perplexity backward  {found.backward:.2f}",
        f"perplexity mean      {found.mean:.2f}",
        f"bits per character   {found.bits_per_character:.3f}",
    ]
    values = json.loads(cli("perplexity", text, "-m", lm_folder, "--json").stdout)
    assert values["mean"] == pytest.approx(found.mean)
    assert values["n_tokens"] == found.n_tokens


def test_max_tokens(cli, arguments, lm_folder):
    (text,) = arguments["perplexity"]
    done = cli("perplexity", text, "-m", lm_folder, "--max-tokens", 9, "--json")
    assert json.loads(done.stdout)["n_tokens"] == 9
    done = cli("perplexity", text, "-m", lm_folder, "--max-tokens", 0)
    assert done.returncode == 2
    assert done.stderr.startswith("elmokit: --max-tokens ")


def test_a_model_without_softmax(cli, arguments, tiny_folder):
    done = cli("perplexity", *arguments["perplexity"], "-m", tiny_folder)
    assert done.returncode == 2
    assert "softmax" in done.stderr
    assert done.stderr.count("\n") == 1
