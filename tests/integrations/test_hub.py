"""Models on the Hugging Face Hub: real huggingface_hub, against a hub on this machine."""

import hashlib
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elmokit import (
    Elmo,
    FormatError,
    InputError,
    MissingExtraError,
    ModelNotFoundError,
    OutputError,
)
from elmokit.formats import bundled_models, bundled_path
from elmokit.formats.checkpoint import SUMS
from helpers.fake_hub import TOKEN
from helpers.models import SENTENCES, many_langs_folder
from helpers.processes import run_python

# how huggingface_hub calls its HTTP library
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
REPOSITORY = "ann/tiny-elmo"


@pytest.fixture
def pushed(hub, lm):
    """A hub with one model that ElmoKit uploaded."""
    lm.push_to_hub(REPOSITORY, token=TOKEN)
    hub.requests.clear()
    return hub


def same_vectors(one, other):
    for a, b in zip(one.encode(SENTENCES, "all"), other.encode(SENTENCES, "all"), strict=True):
        assert np.array_equal(a, b)
    return True


def test_upload_and_download_give_the_same_model(pushed, lm):
    found = Elmo.from_pretrained(REPOSITORY)
    assert same_vectors(found, lm)
    assert found.vocabulary.words == lm.vocabulary.words
    assert found.score("the cat").forward == pytest.approx(lm.score("the cat").forward)


def test_a_second_time_comes_from_the_cache(pushed, lm):
    Elmo.from_pretrained(REPOSITORY)
    assert any("/resolve/" in path for _, path in pushed.requests)
    pushed.requests.clear()
    assert same_vectors(Elmo.from_pretrained(REPOSITORY), lm)
    assert pushed.requests
    assert not any("/resolve/" in path or "/lfs/" in path for _, path in pushed.requests)
    pushed.requests.clear()
    Elmo.from_pretrained(REPOSITORY, force_download=True)
    assert any("/resolve/" in path for _, path in pushed.requests)


def test_without_the_network_the_cache_is_enough(pushed, lm, monkeypatch):
    from huggingface_hub import constants

    Elmo.from_pretrained(REPOSITORY)
    pushed.requests.clear()
    assert same_vectors(Elmo.from_pretrained(REPOSITORY, local_files_only=True), lm)
    assert pushed.requests == []
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert same_vectors(Elmo.from_pretrained(REPOSITORY), lm)


def test_offline_by_environment_in_a_fresh_process(pushed, tmp_path):
    code = (
        f"from elmokit import Elmo; print(Elmo.from_pretrained({REPOSITORY!r}).encode('a b').shape)"
    )
    environment = {
        **os.environ,
        "HF_HUB_CACHE": str(tmp_path / "fresh"),
        "HF_ENDPOINT": pushed.url,
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    done = run_python("-c", code, env=environment)
    assert done.stdout == "(2, 16)\n", done.stderr
    offline = environment | {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert run_python("-c", code, env=offline).stdout == "(2, 16)\n"


def test_the_cache_can_be_elsewhere(pushed, tmp_path):
    Elmo.from_pretrained(REPOSITORY, cache_dir=tmp_path / "elsewhere")
    assert list((tmp_path / "elsewhere").glob("models--ann--tiny-elmo/snapshots/*/config.json"))
    assert not (tmp_path / "cache").exists()


def test_revisions(pushed, tiny, lm):
    first = pushed.repositories[REPOSITORY].refs["main"]
    address = tiny.push_to_hub(REPOSITORY, revision="small", token=TOKEN, message="Another one")
    assert address.startswith(f"{pushed.url}/{REPOSITORY}/commit/")
    commit = address.rsplit("/", 1)[1]
    assert same_vectors(Elmo.from_pretrained(REPOSITORY, revision="small"), tiny)
    assert same_vectors(Elmo.from_pretrained(REPOSITORY, revision=commit), tiny)
    assert same_vectors(Elmo.from_pretrained(REPOSITORY, revision=first), lm)
    assert same_vectors(Elmo.from_pretrained(REPOSITORY), lm)
    with pytest.raises(ModelNotFoundError, match="has no revision 'no-such'; give a branch"):
        Elmo.from_pretrained(REPOSITORY, revision="no-such")


def test_what_is_uploaded(pushed, lm):
    files = pushed.files(REPOSITORY)
    assert set(files) == {
        ".gitattributes", "README.md", "SHA256SUMS", "config.json", "model.safetensors",
        "vocabulary.txt",
    }  # fmt: skip
    lines = files[SUMS].decode().splitlines()
    assert lines == [
        f"{hashlib.sha256(files[name]).hexdigest()}  {name}"
        for name in ("config.json", "model.safetensors", "vocabulary.txt")
    ]
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: elmokit\ntags:\n- elmo\n---\n")
    assert f'Elmo.from_pretrained("{REPOSITORY}")' in card
    assert lm.checkpoint().checksum() in card


def test_smaller_weights_and_private_repositories(hub, lm):
    lm.push_to_hub(REPOSITORY, token=TOKEN)
    lm.push_to_hub("ann/half", token=TOKEN, dtype="float16", private=True)
    sizes = [len(hub.files(name)["model.safetensors"]) for name in (REPOSITORY, "ann/half")]
    assert sizes[1] < 0.75 * sizes[0]
    assert not hub.repositories[REPOSITORY].private
    assert hub.repositories["ann/half"].private
    with pytest.raises(ModelNotFoundError, match="that you can access; check the name"):
        Elmo.from_pretrained("ann/half")
    assert Elmo.from_pretrained("ann/half", token=TOKEN).dim == lm.dim


def front_matter(hub, name):
    """The metadata of a model card: lines between dashes."""
    _, front, _ = hub.files(name)["README.md"].decode().split("---\n", 2)
    return front.splitlines()


def test_the_card_has_licence_and_language(hub, tiny_folder):
    tiny = Elmo.load(tiny_folder, tokenizer="chinese", device="cpu")
    tiny.push_to_hub(REPOSITORY, token=TOKEN)
    assert front_matter(hub, REPOSITORY) == [
        "library_name: elmokit", "language: zh", "tags:", "- elmo"
    ]  # fmt: skip
    tiny.push_to_hub("ann/other", token=TOKEN, license="apache-2.0", language="fr")
    assert {"language: fr", "license: apache-2.0"} < set(front_matter(hub, "ann/other"))


@pytest.mark.parametrize("name", bundled_models())
def test_the_licence_of_what_is_made_from_a_bundled_model_is_known(hub, tiny, name):
    card = (bundled_path(name) / "README.md").read_text(encoding="utf-8")
    version = {"en": "4.0", "zh": "3.0"}[name]
    assert re.search(rf"## Licence\n\n.*CC BY-SA {re.escape(version)}", card)
    checkpoint = replace(tiny.checkpoint(), source=str(bundled_path(name)))
    Elmo(checkpoint, device="cpu").push_to_hub("ann/copy", token=TOKEN)
    assert f"license: cc-by-sa-{version}" in front_matter(hub, "ann/copy")


def test_a_card_on_the_hub_keeps_its_text(pushed, tiny, lm):
    repository = pushed.repositories[REPOSITORY]
    card = pushed.files(REPOSITORY)["README.md"].decode()
    written = card.replace("Describe here", "Trained on tales. Do not describe here")
    written = written.replace("tags:\n- elmo\n", "license: mit\ntags:\n- tales\n")
    repository.commit({"README.md": written.encode()})
    tiny.push_to_hub(REPOSITORY, token=TOKEN, language="en")
    card = pushed.files(REPOSITORY)["README.md"].decode()
    assert "Trained on tales." in card
    for line in ("license: mit", "- tales", "- elmo", "language: en", "library_name: elmokit"):
        assert line in front_matter(pushed, REPOSITORY)
    assert tiny.checkpoint().checksum() in card
    assert lm.checkpoint().checksum() not in card
    assert "vocabulary.txt" not in pushed.files(REPOSITORY)  # of the earlier model
    larger = replace(tiny.config, context=replace(tiny.config.context, cell_dim=40))
    Elmo.random(larger).push_to_hub(REPOSITORY, token=TOKEN)
    card = pushed.files(REPOSITORY)["README.md"].decode()
    assert "Trained on tales." in card
    assert "license: mit" not in card
    assert f"parameters without softmax | {Elmo.random(larger).n_parameters:,} |" in card


def test_a_damaged_download_is_refused(pushed, lm):
    content = pushed.files(REPOSITORY)["model.safetensors"]
    damaged = bytearray(content)
    damaged[-1] ^= 1
    checksum = hashlib.sha256(content).hexdigest()
    pushed.served[checksum] = bytes(damaged)
    with pytest.raises(FormatError, match="model.safetensors of the repository ann/tiny-elmo has"):
        Elmo.from_pretrained(REPOSITORY)
    pushed.served.clear()
    with pytest.raises(FormatError, match="pass force_download=True"):  # the cache is still damaged
        Elmo.from_pretrained(REPOSITORY)
    assert same_vectors(Elmo.from_pretrained(REPOSITORY, force_download=True), lm)


def test_a_file_that_was_changed_on_the_hub_is_refused(pushed):
    words = pushed.files(REPOSITORY)["vocabulary.txt"].replace(b"cat", b"dog")
    pushed.repositories[REPOSITORY].commit({"vocabulary.txt": words})
    with pytest.raises(FormatError, match="vocabulary.txt of the repository .* instead of"):
        Elmo.from_pretrained(REPOSITORY)


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        (b"not a checksum\n", "has the line 'not a checksum'; expected a SHA-256"),
        (b"0" * 64 + b"  ../../../etc/passwd\n", "has the line"),
        (b"0" * 64 + b"  absent.txt\n", "lists absent.txt in SHA256SUMS but does not have it"),
    ],
)
def test_strange_checksums_are_refused(pushed, sums, message):
    pushed.repositories[REPOSITORY].commit({SUMS: sums})
    with pytest.raises(FormatError, match=message):
        Elmo.from_pretrained(REPOSITORY)


def test_published_formats_without_checksums(hub, tiny_folder, lm_folder, lm, tmp_path):
    hub.add("bob/published", lm_folder)
    assert same_vectors(Elmo.from_pretrained("bob/published"), lm)
    many = many_langs_folder(tmp_path / "many")
    hub.add("bob/many", many)
    assert Elmo.from_pretrained("bob/many").dim == 8
    content = hub.files("bob/published")["weights.hdf5"]
    hub.served[hashlib.sha256(content).hexdigest()] = content[:-1] + b"?"
    with pytest.raises(FormatError, match="weights.hdf5 of the repository bob/published"):
        Elmo.from_pretrained("bob/published", force_download=True)


def test_only_model_files_are_downloaded(hub, tiny_folder, tmp_path):
    folder = tmp_path / "repository"
    shutil.copytree(tiny_folder, folder)
    for name in ("modeling_elmo.py", "pytorch_model.bin", "training_args.bin", "setup.sh"):
        (folder / name).write_text("raise SystemExit('executed')")
    hub.add("bob/mixed", folder)
    found = Elmo.from_pretrained("bob/mixed")
    names = {path.name for path in Path(found.source).iterdir()}
    assert names == {"options.json", "weights.hdf5"}


def test_a_repository_without_a_model(hub, tmp_path):
    (tmp_path / "code.py").write_text("")
    hub.add("bob/code", tmp_path)
    with pytest.raises(ModelNotFoundError, match="bob/code has no model that ElmoKit reads: look"):
        Elmo.from_pretrained("bob/code")


def test_paths_and_bundled_names_need_no_hub(tiny_folder, tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert same_vectors(Elmo.from_pretrained(tiny_folder), tiny)
    shutil.copytree(tiny_folder, tmp_path / "ann/tiny-elmo")
    monkeypatch.chdir(tmp_path)
    assert same_vectors(Elmo.from_pretrained(REPOSITORY, device="cpu", cache_mb=1), tiny)
    assert Elmo.from_pretrained("en").dim == Elmo.from_pretrained().dim == 768
    weights = {"options": tiny_folder / "options.json", "weights": tiny_folder / "weights.hdf5"}
    assert same_vectors(Elmo.from_pretrained(**weights), tiny)


def test_a_missing_package_is_named(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        MissingExtraError, match=r"'ann/x', .* pip install 'elmokit\[huggingface\]'"
    ):
        Elmo.from_pretrained("ann/x")
    with pytest.raises(MissingExtraError, match="Uploading a model needs the package"):
        tiny.push_to_hub("ann/x")


def test_mistakes_in_arguments(tiny):
    with pytest.raises(InputError, match="^revision= is for repositories .* and 'en' is none$"):
        Elmo.from_pretrained("en", revision="main")
    with pytest.raises(InputError, match="local_files_only must be True or False"):
        Elmo.from_pretrained("ann/x", local_files_only="yes")
    for name in ("model", "a/b/c", "/x", 3, "ann/.."):
        with pytest.raises(InputError, match="repository must be named user/model"):
            tiny.push_to_hub(name)
    with pytest.raises(InputError, match="dtype must be"):
        tiny.push_to_hub("ann/x", dtype="float8")


def test_a_missing_repository_is_one_sentence(hub):
    with pytest.raises(ModelNotFoundError) as caught:
        Elmo.from_pretrained("ann/mispelt")
    assert str(caught.value) == (
        "there is no folder ann/mispelt, and no repository of this name on the Hugging Face Hub "
        "that you can access; check the name, and for a private repository run hf auth login or "
        "pass token="
    )
    with pytest.raises(ModelNotFoundError, match="'nobody' is not|there is no model 'nobody'"):
        Elmo.from_pretrained("nobody")


def test_no_network_is_one_sentence(hub, tiny, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    for keywords in ({}, {"local_files_only": True}):
        with pytest.raises(ModelNotFoundError) as caught:
            Elmo.from_pretrained(REPOSITORY, **keywords)
        assert str(caught.value) == (
            "the model ann/tiny-elmo is not in the cache, and the Hugging Face Hub cannot be "
            "reached or must not be; download it once with a connection, or give a folder"
        )
    with pytest.raises(OutputError, match=r"^cannot upload to the repository ann/x \(.*\); check"):
        tiny.push_to_hub("ann/x", token=TOKEN)


def test_uploading_without_a_token_is_one_sentence(hub, tiny):
    for token in (None, "hf_wrong"):
        with pytest.raises(OutputError, match=r"repository ann/x \(.*\); check") as caught:
            tiny.push_to_hub("ann/x", token=token)
        assert "\n" not in str(caught.value)
    assert hub.repositories == {}
