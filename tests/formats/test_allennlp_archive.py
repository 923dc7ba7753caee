"""The ELMo of AllenNLP's models, compared with the same ELMo in the published format."""

import copy
import json
import shutil
import tarfile

import numpy as np
import pytest
import torch

from elmokit import Elmo
from elmokit.errors import FormatError, InputError, ShapeError, UnsupportedModelError
from elmokit.formats.allennlp_archive import bilm_table
from elmokit.formats.tables import write_all
from helpers.allennlp_files import ELMO, MIX, elmo_state, model_files, saved, tar_gz
from helpers.checkpoints import same_tensors
from helpers.models import SENTENCES, TINY, write_published
from helpers.numbers import assert_close
from helpers.processes import run_python

ASSUMED = "no options file: clips of 3, relu and 50 characters assumed"


def same_vectors(found, expected, layers="all"):
    pairs = zip(found.encode(SENTENCES, layers), expected.encode(SENTENCES, layers), strict=True)
    for a, b in pairs:
        assert_close(a, b)


@pytest.fixture
def archive(tiny_folder, tmp_path):
    """Write a model.tar.gz; return its path."""

    def write(state=None, **others):
        path = tmp_path / "model.tar.gz"
        files = model_files(elmo_state(tiny_folder) if state is None else state)
        path.write_bytes(tar_gz(files | others))
        return path

    return write


@pytest.mark.parametrize("prefix", [ELMO, "_text_field_embedder.token_embedder_x._elmo.", "_elmo.",
                                    "module._elmo.", ""])  # fmt: skip
@pytest.mark.parametrize("legacy", [True, False])
def test_vectors_are_those_of_the_published_files(tiny, tiny_folder, tmp_path, prefix, legacy):
    path = tmp_path / "model.tar.gz"
    path.write_bytes(tar_gz(model_files(elmo_state(tiny_folder, prefix), legacy)))
    elmo = Elmo.load(path, device="cpu")
    assert elmo.format == f"AllenNLP (tar.gz; {ASSUMED})"
    assert elmo.config.context == tiny.config.context
    assert elmo.config.token_encoder == tiny.config.token_encoder
    same_vectors(elmo, tiny)
    tiny.set_mix(*MIX)
    same_vectors(elmo, tiny, "mix")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("folder", ["", "./", "x" * 60 + "/" + "y" * 60 + "/"])
def test_formats_of_tar(tiny, tiny_folder, tmp_path, form, folder):
    files = {folder + name: data for name, data in model_files(elmo_state(tiny_folder)).items()}
    (tmp_path / "model.tar.gz").write_bytes(tar_gz(files, form))
    same_vectors(Elmo.load(tmp_path / "model.tar.gz", device="cpu"), tiny)


def test_folders_and_single_files(tiny, tiny_folder, tmp_path):
    folder = tmp_path / "model"
    for name, data in model_files(elmo_state(tiny_folder)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    shutil.make_archive(tmp_path / "model", "zip", folder)
    for model in (folder, tmp_path / "model.zip", folder / "weights.th"):
        same_vectors(Elmo.load(model, device="cpu"), tiny)
    (folder / "weights.th").rename(folder / "best.th")  # as training leaves it
    same_vectors(Elmo.load(folder, device="cpu"), tiny)


@pytest.fixture
def odd(tmp_path):
    """Options and weights that no published model has, so that assumed options would be wrong."""
    options = copy.deepcopy(TINY)
    options["lstm"] |= {"cell_clip": 0.7, "proj_clip": 0.5, "n_layers": 1}
    options["char_cnn"] |= {"activation": "tanh", "max_characters_per_token": 9, "n_highway": 1}
    return write_published(tmp_path / "odd", options)


def test_options_in_the_archive(odd, tmp_path):
    expected = Elmo.load(odd, device="cpu")
    options = (odd / "options.json").read_bytes()
    state = elmo_state(odd, mixes=[([0.1, 0.2], 1.0)])
    name = "fta/model.text_field_embedder.token_embedders.elmo."
    for others in (
        {name + "options_file": options, name + "weight_file": b"HDF5"},
        {"options.json": options, "training_options.json": b'{"epochs": 3}'},
    ):
        (tmp_path / "x.tar.gz").write_bytes(tar_gz(model_files(state, **others)))
        elmo = Elmo.load(tmp_path / "x.tar.gz", device="cpu")
        assert elmo.format == "AllenNLP (tar.gz)"
        same_vectors(elmo, expected)


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("name", ["weights.th", "model.tar.gz", "any-name.bin"])
def test_given_options_come_first(odd, tmp_path, name, legacy):
    files = model_files(elmo_state(odd, mixes=[([0.1, 0.2], 1.0)]), legacy)
    wrong = json.dumps(TINY).encode()
    data = tar_gz(files | {"options.json": wrong}) if "tar" in name else files["weights.th"]
    (tmp_path / name).write_bytes(data)
    elmo = Elmo.load(options=odd / "options.json", weights=tmp_path / name, device="cpu")
    same_vectors(elmo, Elmo.load(odd, device="cpu"))
    assert elmo.config.mix.weights == pytest.approx((0.1, 0.2))
    for argument in ("softmax", "vocabulary"):
        with pytest.raises(InputError, match=f"{argument}= goes with"):
            Elmo.load(
                options=odd / "options.json",
                weights=tmp_path / name,
                **{argument: odd / "options.json"},
            )


def test_several_mixes_and_several_elmos(archive, tiny, tiny_folder, cli, tmp_path):
    other = ([5.0, 0.0, 0.0], 2.0)
    path = archive(elmo_state(tiny_folder, "_elmo.", [MIX, other]))
    with pytest.raises(InputError, match="_elmo.scalar_mix_0, _elmo.scalar_mix_1; choose one"):
        Elmo.load(path)
    elmo = Elmo.load(path, part="scalar_mix_1", device="cpu")
    assert (list(elmo.config.mix.weights), elmo.config.mix.gamma) == other
    assert "choose one with --part" in cli("convert", path, tmp_path / "new").stderr
    assert cli("convert", path, tmp_path / "new", "--part", "scalar_mix_0").returncode == 0
    assert Elmo.load(tmp_path / "new").config.mix.weights == pytest.approx(MIX[0])
    double = {name: tensor * 2 for name, tensor in elmo_state(tiny_folder, "elmo_fr.").items()}
    path = archive(elmo_state(tiny_folder, "elmo_en.") | double)
    for part in ("elmo_en", "elmo_en.scalar_mix_0"):
        same_vectors(Elmo.load(path, part=part, device="cpu"), tiny)
    for part in (None, "scalar_mix_0", "elmo_it", ""):
        with pytest.raises(InputError, match=r"elmo_en\.scalar_mix_0, elmo_fr\.scalar_mix_0"):
            Elmo.load(path, part=part)
    with pytest.raises(InputError, match="part= chooses an ELMo in a model of AllenNLP"):
        Elmo.load(tiny_folder, part="elmo_en")
    with pytest.raises(InputError, match="part must be the name"):
        Elmo.load(path, part=3)


def test_an_elmo_without_a_mix(archive, tiny, tiny_folder):
    """The biLM alone, as AllenNLP's ElmoEmbedder contains it."""
    state = elmo_state(tiny_folder, "", mixes=())
    path = archive({name.removeprefix("_elmo_lstm."): t for name, t in state.items()})
    elmo = Elmo.load(path, device="cpu")
    assert elmo.config.mix.weights is None
    same_vectors(elmo, tiny)


def test_a_mix_with_layer_normalisation_is_mentioned(archive):
    # AllenNLP reads its config with Jsonnet, which allows the comma at the end
    text = b'{"model": {"do_layer_norm" : true, },}'
    elmo = Elmo.load(archive(**{"config.json": text}), device="cpu")
    assert elmo.format == f"AllenNLP (tar.gz; {ASSUMED}; mix trained with layer normalisation)"


def test_convert_both_ways_and_reload_in_a_new_process(archive, cli, tmp_path, tiny):
    path = archive()
    for to in ("native", "bilm-tf"):
        assert cli("convert", path, tmp_path / to, "--to", to).returncode == 0
        again = Elmo.load(tmp_path / to, device="cpu")
        assert same_tensors(again, Elmo.load(path, device="cpu"))
        same_vectors(again, tiny)
    code = (
        "import sys, numpy; from elmokit import Elmo; elmo = Elmo.load(sys.argv[1], device='cpu');"
        "numpy.save(sys.argv[2], elmo.encode('a new process'))"
    )
    done = run_python("-c", code, str(tmp_path / "native"), str(tmp_path / "vectors.npy"))
    assert done.returncode == 0, done.stderr
    tiny.set_mix(*MIX)
    assert_close(np.load(tmp_path / "vectors.npy"), tiny.encode("a new process"))


def test_the_table_works_in_both_directions(archive, tiny_folder):
    elmo = Elmo.load(archive(), device="cpu")
    written = write_all(bilm_table(elmo.config, ELMO + "_elmo_lstm."), elmo.checkpoint().tensors)
    state = elmo_state(tiny_folder, mixes=())
    assert written.keys() == state.keys()
    assert all(torch.equal(written[name], state[name]) for name in state)


def test_models_without_elmo(archive):
    with pytest.raises(UnsupportedModelError, match="has no ELMo in it"):
        Elmo.load(archive({"text_field_embedder.weight": torch.ones(2, 2)}))
    with pytest.raises(UnsupportedModelError, match="language model of AllenNLP's own kind"):
        Elmo.load(archive({"_contextualizer._forward_transformer.norm.beta": torch.ones(2)}))


def test_a_language_model_of_allennlp(fixtures):
    """Its transformer has other positions, activations and norms than ElmoKit's."""
    with pytest.raises(UnsupportedModelError, match="language model of AllenNLP's own kind"):
        Elmo.load(fixtures / "allennlp-models/lm/language_model/model.tar.gz")


def test_published_weights_in_allennlp(fixtures, tmp_path):
    published = tmp_path / "elmo"
    published.mkdir()
    shutil.copy(fixtures / "allennlp/elmo/options.json", published)
    shutil.copy(fixtures / "allennlp/elmo/lm_weights.hdf5", published / "weights.hdf5")
    (tmp_path / "model.tar.gz").write_bytes(tar_gz(model_files(elmo_state(published))))
    same_vectors(Elmo.load(tmp_path / "model.tar.gz", device="cpu"), Elmo.load(published))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s, b: s.pop(b + "_elmo_lstm.backward_layer_1.state_linearity.bias"), ShapeError,
         "must be a tensor .*backward_layer_1.state_linearity.bias of shape"),
        (lambda s, b: s.pop(b + "_elmo_lstm.forward_layer_0.input_linearity.weight"), ShapeError,
         "has no tensor .*forward_layer_0.input_linearity.weight of"),
        (lambda s, b: s.update({b + "_token_embedder.char_conv_1.weight": torch.ones(3)}),
         ShapeError, "has no tensor .*char_conv_1.weight of 3 or more axes"),
        (lambda s, b: s.update({b + "_token_embedder._projection.weight": torch.ones(8, 9)}),
         ShapeError, r"_projection.weight must have shape \(8, 24\), but it has \(8, 9\)"),
        (lambda s, b: s.update({b + "_token_embedder._char_embedding_weights": torch.ones(261, 4)}),
         ShapeError, r"must have shape \(262, 4\), but it has \(261, 4\)"),
        (lambda s, b: s.update({ELMO + "scalar_mix_0.gamma": torch.tensor([np.nan])}),
         FormatError, "gamma must be within"),
        (lambda s, b: s.update({ELMO + "scalar_mix_0.gamma": torch.ones(2)}),
         FormatError, r"scalar_mix_0.gamma of shape \(1,\)"),
        (lambda s, b: s.pop(ELMO + "scalar_mix_0.scalar_parameters.1"), ShapeError,
         "has 2 layer weights, but the ELMo has 3 layers"),
        (lambda s, b: [s.pop(k) for k in list(s) if "char_conv" in k], FormatError,
         "one or more filters"),
    ],
)  # fmt: skip
def test_damaged_weights(archive, tiny_folder, change, error, message):
    state = elmo_state(tiny_folder)
    change(state, ELMO + "_elmo_lstm.")
    with pytest.raises(error, match=message):
        Elmo.load(archive(state))


def test_options_that_differ(archive, odd):
    others = {"options.json": json.dumps(TINY).encode()}
    others["fta/model.elmo.options_file"] = (odd / "options.json").read_bytes()
    with pytest.raises(FormatError, match="several options files that differ"):
        Elmo.load(archive(**others))


def test_code_in_the_weights_is_not_run(archive, tmp_path, refused):
    class Malicious:
        def __reduce__(self):
            return open, (str(tmp_path / "marker"), "w")

    for legacy in (True, False):
        path = archive(**{"weights.th": saved({"x": Malicious()}, legacy)})
        assert "not a complete PyTorch file with tensors only" in refused(path)
    assert not (tmp_path / "marker").exists()
