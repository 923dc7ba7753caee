"""ElmoKit against an independent float64 implementation, with both clips active."""

import copy
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmokit import CarriedState, Elmo
from helpers.models import SENTENCES, TINY, write_published
from helpers.numbers import assert_close
from helpers.reference import Reference


def assert_agrees(elmo, reference, sentences, tolerance=1e-5):
    for tokens, layers in zip(sentences, elmo.encode(sentences, "all"), strict=True):
        assert_close(layers, reference.layers(tokens)[0], tolerance)


def test_vectors_agree_with_active_clips(tiny, tiny_reference):
    assert_agrees(tiny, tiny_reference, SENTENCES)
    clips = tiny_reference.clips
    assert 0.3 < clips.cells_clipped / clips.cells < 0.8
    assert 0.02 < clips.projections_clipped / clips.projections < 0.4


def test_carried_state_agrees(tiny, tiny_reference):
    """A smaller batch continues the first rows; an empty sentence does not change its row."""
    batches = [SENTENCES[:3], [SENTENCES[5]], [[], SENTENCES[0], SENTENCES[1]], SENTENCES[2:6]]
    carried, states = CarriedState(), {}
    for batch in batches:
        vectors = tiny.encode(batch, "all", state=carried)
        for row, (tokens, layers) in enumerate(zip(batch, vectors, strict=True)):
            expected, final = tiny_reference.layers(tokens, states.get(row))
            if tokens:
                states[row] = final
            assert_close(layers, expected)


def test_warm_state_agrees(tiny, tiny_reference):
    state = None
    for _ in range(8):
        _, state = tiny_reference.layers(["."], state)
    for tokens, layers in zip(SENTENCES, tiny.encode(SENTENCES, "all", state="warm"), strict=True):
        assert_close(layers, tiny_reference.layers(tokens, state)[0])
    own = tiny.warm_state(["."] * 8)
    for a, b in zip(
        tiny.encode(SENTENCES, state=own), tiny.encode(SENTENCES, state="warm"), strict=True
    ):
        np.testing.assert_array_equal(a, b)


words = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=0, max_size=70
) | st.sampled_from(["<S>", "</S>", "<UNK>", "/", " ", "\ud800"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    n_layers=st.integers(1, 3),
    p=st.integers(1, 9),
    same_width=st.booleans(),
    h=st.integers(1, 17),
    skip=st.booleans(),
    clips=st.sampled_from([(3, 3), (None, None), (0.5, None), (None, 1.25)]),
    filters=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 7)), min_size=1, max_size=4),
    n_highway=st.integers(0, 3),
    activation=st.sampled_from(["relu", "tanh"]),
    max_characters=st.integers(6, 60),
    seed=st.integers(0, 1000),
)
def test_models_of_any_size_agree_on_any_text(
    data, n_layers, p, same_width, h, skip, clips, filters, n_highway, activation, max_characters,
    seed,
):  # fmt: skip
    options = copy.deepcopy(TINY)
    options["lstm"] |= {
        "n_layers": n_layers,
        "projection_dim": p,
        "dim": p if same_width else h,
        "use_skip_connections": skip,
        "cell_clip": clips[0],
        "proj_clip": clips[1],
    }
    options["char_cnn"] |= {
        "filters": [list(pair) for pair in filters],
        "n_highway": n_highway,
        "activation": activation,
        "max_characters_per_token": max_characters,
    }
    sentences = data.draw(st.lists(st.lists(words, max_size=12), max_size=5))
    with tempfile.TemporaryDirectory() as folder:
        write_published(Path(folder), options, seed)
        elmo = Elmo.load(folder, device="cpu")
        reference = Reference.open(options, Path(folder) / "weights.hdf5")
        if sentences:
            assert_agrees(elmo, reference, sentences, 5e-5)
        else:
            assert elmo.encode(sentences) == []


@pytest.mark.parametrize("size", ["small", "medium", "original"])
def test_random_models_have_the_published_sizes(size, tmp_path):
    """The same parameter counts and, for the smallest, the same file size."""
    counts = {"small": 13_593_296, "medium": 28_027_728, "original": 93_600_848}
    Elmo.random(size, device="cpu").save(tmp_path / "model", format="bilm-tf")
    elmo = Elmo.load(
        options=tmp_path / "model/options.json",
        weights=tmp_path / "model/weights.hdf5",
        device="cpu",
    )
    assert elmo.n_parameters == counts[size]
    (vectors,) = elmo.encode([["A", "word"]])
    assert vectors.shape == (2, elmo.dim)
    if size == "small":  # the size of the published file, except for the tables of HDF5
        assert abs((tmp_path / "model/weights.hdf5").stat().st_size - 54_402_456) < 20_000
