"""Build the neighbour index of a text from its shards: no vector is computed twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from elmokit.analysis.index.build import IndexOptions, IndexSummary, build_index_of
from elmokit.cluster.shard_reader import Array, ShardFolder
from elmokit.elmo import Elmo
from elmokit.errors import InputError


def index_shards(
    elmo: Elmo,
    url: str | Path,
    output: str | Path,
    options: IndexOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> IndexSummary:
    """Write the index of the sentences in a folder of shards.

    Args:
        elmo: The model that the shards were computed with. It computes only the vectors of distinct
            words without context, which the index needs, too.
        url: The folder or URL. All its shards must be finished.
        output: The folder to write.
        options: How; default: ``IndexOptions()``. ``layer`` must be among the layers of the shards;
            ``tokenized`` has no meaning here.
        say: As for :func:`elmokit.analysis.index.build.build_index`.
    """
    options, folder = options or IndexOptions(), ShardFolder(url)
    folder.check_complete()
    settings = folder.settings
    mine = {"model": elmo.checkpoint().checksum(), "precision": elmo.precision}
    for key, value in mine.items():
        if settings[key] != value:
            raise InputError(
                f"the shards in {url} were computed with another model ({folder.plan.model}, "
                f"{settings['precision']}); choose it with model=, and quantize= if it was given"
            )
    layer, column = _column(folder, options.layer)

    def rows() -> Iterator[tuple[list[str], Array]]:
        for _, tokens, array in folder.rows([column]):
            if tokens:
                yield tokens, array

    return build_index_of(
        elmo, rows, output, layer, settings["tokenizer"], folder.n_tokens, options, say
    )


def _column(folder: ShardFolder, wanted: int | None) -> tuple[int, str]:
    """The layer to index, and its column."""
    layers = folder.settings["layers"]
    if isinstance(layers, str):
        raise InputError(
            f"the shards in {folder.store.url} contain {layers!r}, a combination of layers; an "
            "index needs the vectors of one layer; embed the text with layers= and its number"
        )
    layer = layers[-1] if wanted is None else wanted
    if layer not in layers:
        have = ", ".join(map(str, layers))
        raise InputError(f"layer must be one of those in the shards ({have}), not {layer}")
    return layer, folder.columns()[layers.index(layer)]
