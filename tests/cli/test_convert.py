"""elmokit convert."""

import json

import pytest


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
    for option in (["--to", "pickle"], ["--dtype", "int2"]):
        done = cli("convert", tiny_folder, tmp_path / "new", *option)
        assert done.returncode == 2
        assert done.stderr.startswith("elmokit: ")
        assert done.stderr.count("\n") == 1


def test_convert_to_onnx(cli, tiny_folder, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    path = tmp_path / "tiny.onnx"
    done = cli("convert", tiny_folder, path, "--to", "onnx")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: onnx, ")
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.onnx"]
    onnx.checker.check_model(path, full_check=True)
    before = path.read_bytes()
    refused = cli("convert", tiny_folder, path, "--to", "onnx", "--dtype", "int8")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert path.read_bytes() == before
    again = cli("convert", tiny_folder, path, "--to", "onnx", "--dtype", "int8", "--force")
    assert again.returncode == 0, again.stderr
    stored = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
    assert stored["dtype"] == "int8"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("new.onnx", ["--dtype", "int4"], "--dtype must be float32, float16 or int8"),
        ("new", [], "must end in .onnx"),
        ("missing/new.onnx", [], "does not exist"),
    ],
)
def test_convert_to_onnx_refuses_in_one_sentence(cli, tiny_folder, tmp_path, name, options, words):
    done = cli("convert", tiny_folder, tmp_path / name, "--to", "onnx", *options)
    assert done.returncode == 2
    assert done.stderr.startswith("elmokit: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []
