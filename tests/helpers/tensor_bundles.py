"""TensorFlow's checkpoints of version 2, written from the definition of their format."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import h5py
import numpy as np

MAGIC = 0xDB4775248B80FB57
DTYPES = {"<f4": 1, "<f8": 2, "<i4": 3, "<f2": 19}


def checksum(data: bytes) -> int:
    """CRC-32C bit by bit, masked as in LevelDB."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n: int) -> bytes:
    """A number in groups of 7 bits."""
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field: int, n: int) -> bytes:
    """A field of a protocol buffer; 0 is not written."""
    return varint(field << 3) + varint(n) if n else b""


def message(field: int, data: bytes) -> bytes:
    """A field that contains another message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def entry(array, shard: int, offset: int, more: bytes = b"") -> bytes:
    """The value of a tensor in the index."""
    array = np.asarray(array)
    shape = b"".join(message(2, number(1, n)) for n in array.shape)
    data = array.tobytes()
    return (
        number(1, DTYPES[array.dtype.str])
        + message(2, shape)
        + number(3, shard)
        + number(4, offset)
        + number(5, len(data))
        + (varint(6 << 3 | 5) + struct.pack("<I", checksum(data)))
        + more
    )


def block(entries: list[tuple[bytes, bytes]], kind: int = 0) -> bytes:
    """A block of sorted entries; every fourth stores its whole name."""
    out, restarts, last = b"", [], b""
    for i, (name, value) in enumerate(entries):
        shared = 0
        if i % 4 == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(name), len(last)) and name[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(name) - shared) + varint(len(value))
        out += name[shared:] + value
        last = name
    restarts = restarts or [0]
    out += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts)) + bytes([kind])
    return out + struct.pack("<I", checksum(out))


def index(values: dict[str, bytes], per_block: int = 7, kind: int = 0) -> bytes:
    """The index file of a checkpoint."""
    items = sorted((name.encode(), value) for name, value in values.items())
    out, handles = b"", []
    for i in range(0, len(items), per_block):
        part = items[i : i + per_block]
        made = block(part, kind)
        handles.append((part[-1][0], varint(len(out)) + varint(len(made) - 5)))
        out += made
    places = b""
    for made in (block([]), block(handles)):
        places += varint(len(out)) + varint(len(made) - 5)
        out += made
    return out + places.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def header(n_shards: int = 1, endianness: int = 0) -> bytes:
    """The value of the entry without a name."""
    return number(1, n_shards) + number(2, endianness) + message(3, number(1, 1))


def write_bundle(prefix: Path, tensors: dict, n_shards: int = 1, **sizes) -> None:
    """Write the index and the data of a checkpoint, its tensors dealt out to the shards."""
    values, data = {"": header(n_shards)}, [b""] * n_shards
    for i, (name, array) in enumerate(sorted(tensors.items())):
        shard = i % n_shards
        values[name] = entry(array, shard, len(data[shard]))
        data[shard] += np.asarray(array).tobytes()
    prefix.with_name(prefix.name + ".index").write_bytes(index(values, **sizes))
    for shard, content in enumerate(data):
        name = f"{prefix.name}.data-{shard:05d}-of-{n_shards:05d}"
        prefix.with_name(name).write_bytes(content)


def graph_tensors(published: Path, bidirectional: bool = True) -> dict:
    """The variables of bilm-tf's training graph, with Adagrad's, from the published files."""
    options = json.loads((published / "options.json").read_text())
    n_layers, found = options["lstm"].get("n_layers", 1), {}
    with h5py.File(published / "weights.hdf5") as file:
        for group in ("CNN", "CNN_proj", *(g for g in file if g.startswith("CNN_high_"))):
            found |= {f"lm/{group}/{name}": array[()] for name, array in file[group].items()}
        found["lm/char_embed"] = file["char_embed"][()]
        for d in range(1 + bidirectional):
            scope = f"lm/RNN_{d}/rnn/" if bidirectional else "lm/rnn/"
            for layer in range(n_layers):
                cell = file[f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"]
                place = f"multi_rnn_cell/cell_{layer}/" if n_layers > 1 else ""
                for old, new in (("W_0", "kernel"), ("B", "bias"), ("W_P_0", "projection/kernel")):
                    found[f"{scope}{place}lstm_cell/{new}"] = cell[old][()]
    with h5py.File(published / "softmax.hdf5") as file:
        found["lm/softmax/W"], found["lm/softmax/b"] = file["softmax/W"][()], file["softmax/b"][()]
    found |= {f"{name}/Adagrad": np.ones_like(array) for name, array in found.items()}
    return found | {"global_step": np.float32(6), "train_perplexity": np.float32(0)}


def write_checkpoint(folder: Path, published: Path, name: str = "model.ckpt-6", **how) -> Path:
    """Write the folder of a training: checkpoint, options.json, vocab.txt; return the folder."""
    folder.mkdir(exist_ok=True)
    bidirectional = how.pop("bidirectional", True)
    write_bundle(folder / name, graph_tensors(published, bidirectional), **how)
    (folder / f"{name}.meta").write_bytes(b"a graph")
    line = f'model_checkpoint_path: "/somebody/elses/{name}"\n'
    (folder / "checkpoint").write_text(f"{line}all_{line}")
    options = json.loads((published / "options.json").read_text())
    options["char_cnn"]["n_characters"] = 261
    options["n_tokens_vocab"] = len((published / "vocab.txt").read_text().splitlines())
    (folder / "options.json").write_text(json.dumps(options | {"bidirectional": bidirectional}))
    shutil.copy(published / "vocab.txt", folder)
    return folder
