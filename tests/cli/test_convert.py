"""elmokit convert."""

import json


def test_convert_there_and_back(cli, tiny_folder, tmp_path):
    done = cli("convert", tiny_folder, tmp_path / "native")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{tmp_path / 'native'}: native, ")
    again = cli("convert", tmp_path / "native", tmp_path / "back", "--to", "bilm-tf")
    assert again.returncode == 0
    sums = {
        json.loads(cli("info", "-m", folder, "--json").stdout)["weights sha256"]
        for folder in (tiny_folder, tmp_path / "native", tmp_path / "back")
    }
    assert len(sums) == 1
    refused = cli("convert", tiny_folder, tmp_path / "native")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert cli("convert", tiny_folder, tmp_path / "native", "--force").returncode == 0


def test_wrong_choices_are_one_sentence(cli, tiny_folder, tmp_path):
    for option in (["--to", "onnx"], ["--dtype", "int2"]):
        done = cli("convert", tiny_folder, tmp_path / "new", *option)
        assert done.returncode == 2
        assert done.stderr.startswith("elmokit: ")
        assert done.stderr.count("\n") == 1
