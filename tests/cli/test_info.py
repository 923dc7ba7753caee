"""elmokit info."""

import json

from elmokit import Elmo


def test_info(cli, tiny_folder):
    facts = json.loads(cli("info", "-m", tiny_folder, "--json").stdout)
    tiny = Elmo.load(tiny_folder)
    assert facts["parameters"] == tiny.n_parameters
    assert facts["weights sha256"] == tiny.checkpoint().checksum()
    assert facts["tokenizer"] == "whitespace"
    assert facts["format"] == "bilm-tf HDF5 (folder)"
    plain = cli("info", "--model", tiny_folder).stdout
    for value in (facts["weights sha256"], f"{tiny.n_parameters:,}", "1:4 2:8 3:12"):
        assert value in plain


def test_the_bundled_model_is_the_default(cli):
    facts = json.loads(cli("info", "--json").stdout)
    assert facts["model"].endswith("en")
    assert facts["format"] == "native (folder)"


def test_published_files(cli, tiny_folder):
    options, weights = tiny_folder / "options.json", tiny_folder / "weights.hdf5"
    done = cli("info", "--json", "--options-file", options, "--weight-file", weights)
    facts = json.loads(done.stdout)
    assert facts["model"] == str(weights)
    assert facts["bytes on disk"] == options.stat().st_size + weights.stat().st_size
