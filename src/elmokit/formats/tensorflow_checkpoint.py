"""A training checkpoint of bilm-tf: options.json and TensorFlow's files, softmax included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, ModelNotFoundError, ShapeError, shortened, shown
from elmokit.formats.bilm_tf import listed, options_names, read_words, vocabulary_names
from elmokit.formats.bilm_tf_layout import read_options, softmax_table, weights_table
from elmokit.formats.checkpoint import Checkpoint
from elmokit.formats.places import checkpoint_files, given_files
from elmokit.formats.source import JSON_BYTES, Source
from elmokit.formats.tables import Entry, read_all
from elmokit.formats.tensor_bundle import TensorBundle, open_bundle

LOOKS_FOR = "options.json and model.ckpt-N.index (a checkpoint of bilm-tf)"
"""The files that identify this format."""
_INDEX = ".index"
_SCOPE = "lm/"  # of the variables in the training graph
_SOFTMAX_BIAS = "softmax/b"
_GRAPH_NAMES = (
    (r"^(RNN_\d)/RNN/", r"\1/rnn/"),
    ("/MultiRNNCell/Cell", "/multi_rnn_cell/cell_"),
    ("/LSTMCell/", "/lstm_cell/"),
    ("/W_P_0$", "/projection/kernel"),
    ("/W_0$", "/kernel"),
    ("/B$", "/bias"),
)
"""Names in HDF5 and those of the graph: bilm-tf's ``dump_weights`` renames them the other way."""


def matches(source: Source) -> bool:
    """Return whether a folder or archive has this format."""
    return any(name.endswith(_INDEX) for name in source.names)


def read(source: Source) -> Checkpoint:
    """Read a checkpoint from a folder or archive; of several, the latest.

    The softmax is read if there is a vocabulary file.
    """
    options, vocabularies = options_names(source), vocabulary_names(source)
    if len(options) != 1:
        found = f"several options files ({listed(options)})" if options else "no options.json"
        raise FormatError(
            f"{source.path} has a TensorFlow checkpoint but {found}; pass the file as options= and "
            "the checkpoint as weights="
        )
    if len(vocabularies) > 1:
        raise FormatError(
            f"{source.path} has several vocabulary files ({listed(vocabularies)}); choose one with "
            "options=, weights= and vocabulary="
        )
    vocabulary = vocabularies[0] if vocabularies else None
    return _read(source, _latest(source), options[0], vocabulary)


def read_files(
    options: str | Path, weights: Path, vocabulary: str | Path | None = None
) -> Checkpoint:
    """Read a checkpoint whose options file is given.

    Args:
        options: The options JSON.
        weights: One of the checkpoint's files, or the name that they share.
        vocabulary: The words of the softmax, one per line; without it, the softmax is left out.
    """
    given = given_files(options=options, vocabulary=vocabulary, weights=None)
    names = {name.removesuffix(".gz"): name for name in given.names}
    files = checkpoint_files(weights)
    prefix = next(name for name in files if name.endswith(_INDEX)).removesuffix(_INDEX)
    files |= {name: path for name in given.names if (path := given.local_path(name))}
    source = Source(weights, files, "files")
    return _read(source, prefix, names["options"], names.get("vocabulary"))


def _latest(source: Source) -> str:
    """Return the name of the checkpoint that the file ``checkpoint`` calls the latest."""
    found = [name.removesuffix(_INDEX) for name in source.names if name.endswith(_INDEX)]
    if len(found) == 1:
        return found[0]
    text = source.text("checkpoint", JSON_BYTES) if "checkpoint" in source.names else ""
    line = re.search(r'^model_checkpoint_path: *"([^"\n]*)"', text, re.MULTILINE)
    named = re.split(r"[/\\]", line[1])[-1] if line else ""  # often a path on another machine
    if named not in found:
        what = f"the one called {shown(named)} is missing" if line else "no file says which to use"
        raise ModelNotFoundError(
            f"{source.path} has several checkpoints ({listed(found)}), and {what}; give the path "
            f"of one, such as {source.path}/{shortened(found[-1])}"
        )
    return named


def _read(source: Source, prefix: str, options: str, vocabulary: str | None) -> Checkpoint:
    label, values = source.label(options), source.json(options)
    with open_bundle(source, prefix) as bundle:
        names = bundle.names
        config = read_options(
            values, label, bidirectional=not any(n.startswith(_SCOPE + "rnn/") for n in names)
        )
        table = list(_in_graph(weights_table(config), names))
        words, left_out = None, ""
        if vocabulary is not None:
            words = _words(source, vocabulary, bundle, values, label)
            config = replace(config, vocabulary_size=len(words))
            table += _in_graph(softmax_table(config), names)
        elif _SCOPE + _SOFTMAX_BIAS in names:
            left_out = "; softmax left out: no vocabulary file"
        tensors = read_all(table, bundle.get, label, bundle.label)
    return Checkpoint(
        config,
        tensors,
        words,
        format=f"TensorFlow checkpoint ({source.kind}{left_out})",
        source=str(source.path),
    )


def _in_graph(table: Iterable[Entry], names: list[str]) -> Iterator[Entry]:
    """Yield the entries of HDF5 files under the names of the training graph."""
    has_cells = any("/multi_rnn_cell/" in name for name in names)
    for entry in table:
        name = entry.foreign
        for hdf5, graph in _GRAPH_NAMES:
            name = re.sub(hdf5, graph, name)
        if not has_cells:  # a single layer
            name = name.replace("/multi_rnn_cell/cell_0", "")
        yield replace(entry, foreign=_SCOPE + name)


def _words(
    source: Source, vocabulary: str, bundle: TensorBundle, options: dict[str, Any], label: str
) -> list[str]:
    """Return the words of the softmax, which must be as many as its rows and the options say."""
    bias = bundle.get(_SCOPE + _SOFTMAX_BIAS)
    if bias is None or len(bias.shape) != 1:
        raise FormatError(
            f"{bundle.label} has no tensor {_SCOPE}{_SOFTMAX_BIAS} of one dimension, so it is not "
            "a training checkpoint of bilm-tf"
        )
    (n,) = bias.shape
    declared = options.get("n_tokens_vocab", n)
    if declared != n:
        raise ShapeError(
            f"{label} has n_tokens_vocab {shown(declared)}, but {bundle.label} has a softmax of "
            f"{n} words; use the files of the same training"
        )
    return read_words(source, vocabulary, n, bundle.label)
