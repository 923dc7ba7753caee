"""Vectors as the client wants them: JSON, npy, or Arrow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from fastapi import Request
from starlette.responses import Response

from elmokit.errors import MissingExtraError
from elmokit.serve.refusals import RefusedError

Floats = npt.NDArray[np.float32]

NPY, NPZ = "application/x-npy", "application/x-npz"
ARROW = "application/vnd.apache.arrow.stream"
_MOST_NUMBERS = 5_000_000  # of a JSON answer, about 55 MB


class JsonResponse(Response):
    """JSON, with numpy arrays as lists."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of a value."""
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def vector_answers(description: str) -> dict[int | str, dict[str, Any]]:
    """Describe an answer that comes as JSON, npy or Arrow."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    kinds = {"application/json": {}, NPY: binary, NPZ: binary, ARROW: binary}
    return {200: {"description": description, "content": kinds}}


def wanted(request: Request) -> str:
    """Return the type of answer that a client accepts: npy or Arrow if named, otherwise JSON."""
    accepted = [part.split(";")[0].strip() for part in request.headers.get("accept", "").split(",")]
    return next((kind for kind in accepted if kind in (NPY, ARROW)), "application/json")


def check_numbers(request: Request, n: int) -> None:
    """Refuse JSON with too many numbers, before they are computed."""
    if n > _MOST_NUMBERS and wanted(request) == "application/json":
        raise RefusedError(
            413,
            f"the answer would have {n:,} numbers, too many for JSON; send Accept: {NPY}, or fewer "
            "texts",
        )


def sentence_vectors(request: Request, vectors: Floats) -> Response:
    """Return vectors (N, D), one for each text."""
    kind = wanted(request)
    if kind == NPY:
        return Response(_npy(vectors), media_type=NPY)
    if kind == ARROW:
        return Response(_arrow({"vector": [vectors]}, flat=True), media_type=ARROW)
    return JsonResponse(np.ascontiguousarray(vectors))


def token_vectors(request: Request, arrays: Sequence[Floats]) -> Response:
    """Return the vectors (T, D) or (L + 1, T, D) of each text.

    One text is npy and several are npz, with arrays ``arr_0``, ``arr_1`` and so on. In Arrow, each
    text is a row; layers are columns.
    """
    kind = wanted(request)
    if kind == NPY and len(arrays) == 1:
        return Response(_npy(arrays[0]), media_type=NPY)
    if kind == NPY:
        file = io.BytesIO()
        np.savez(file, *arrays)
        return Response(file.getvalue(), media_type=NPZ)
    if kind == ARROW:
        if arrays[0].ndim == 2:
            columns = {"vectors": list(arrays)}
        else:
            columns = {f"layer_{k}": [a[k] for a in arrays] for k in range(len(arrays[0]))}
        return Response(_arrow(columns), media_type=ARROW)
    return JsonResponse([np.ascontiguousarray(array) for array in arrays])


def _npy(array: Floats) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _arrow(columns: dict[str, list[Floats]], flat: bool = False) -> bytes:
    """Return a stream of one table.

    Args:
        columns: The vectors (T, D) of each row.
        flat: Whether a row is one vector: the first array has all rows.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Arrow") from None
    made = {}
    for name, arrays in columns.items():
        values = np.concatenate(arrays)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        if flat:
            made[name] = vectors
        else:
            ends = np.cumsum([0, *(len(array) for array in arrays)])
            made[name] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), vectors)
    table, sink = pa.table(made), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
