"""Ways to damage the files of a model, each determined by a random generator."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import pickle
import random
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from safetensors.torch import load, save

from elmokit.formats.crc32c import masked_crc32c

_ODD_NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 8, 24, 25, 255, 261, 262, 1000, 1001, 65_536, 200_000, 10**6, 10**8),
    *(2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**40, 10**400),
]
_ODD_VALUES: list[Any] = [
    *_ODD_NUMBERS,
    *(0.0, -0.0, 0.5, 1e-300, 1e30, 1e38, 1e39, 1e300, np.nan, np.inf, -np.inf),
    *(True, False, None, "", "x", "1", "é日\U0001f642", "\ud800", "\n", "x" * 100_000),
    *("custom:x", "chinese", "../../etc/passwd", "transformer", "codepoints", "tanh"),
    *([], [[]], [[[1]]], [1, 2], [[1, 2]], [[1, 200_000]], [[2**63 - 1, 1]], [["1", "4"]]),
    *([[1, 4]] * 2000, [1] * 5000, {}, {"x": 1}, {"dim": 10**9}, {"y" * 5000: 1}),
]
_BIG = 64 << 20  # of a bomb, in bytes


def damaged(rng: random.Random, name: str, data: bytes, marker: Path) -> bytes:
    """A file of a model with some damage; a pickle may try to create the marker."""
    if rng.random() < 0.4:
        return damaged_bytes(rng, data)
    if name.endswith(".json"):
        return damaged_json(rng, data)
    if name.endswith(".safetensors"):
        return rng.choice([_safetensors_header, _safetensors_values])(rng, data)
    if name.endswith(".hdf5"):
        return damaged_hdf5(rng, data, marker)
    if name.endswith((".pkl", ".th")):
        return damaged_pickle(rng, data, marker)
    if ".ckpt" in name:
        return damaged_bytes(rng, data) if rng.random() < 0.5 else damaged_index(rng, data)
    return damaged_list(rng, data)


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes with flipped bits, a missing end, another size field, or a part elsewhere."""
    changed = bytearray(data)
    # headers are short, and most of the damage should be there
    near = rng.choice([64, 512, 4096, len(data), len(data)])
    at = rng.randrange(max(1, min(near, len(data))))
    if rng.random() < 0.2:
        at = max(0, len(data) - 1 - at)
    n = min(rng.choice([1, 2, 4, 8, 100, 1000]), max(0, len(data) - at))
    way = rng.randrange(10)
    if way == 0:
        for _ in range(rng.choice([1, 3, 30])):
            if changed:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del changed[at:]
    elif way == 2:
        changed[at : at + n] = bytes(n)
    elif way == 3:
        changed[at : at + n] = b"\xff" * n
    elif way == 4:
        changed[at : at + n] = rng.randbytes(n)
    elif way == 5:
        form = rng.choice(["<H", "<I", "<Q", ">I", ">Q"])
        size = struct.calcsize(form)
        value = rng.choice(_ODD_NUMBERS) % (1 << 8 * size)
        changed[at : at + size] = struct.pack(form, value)
    elif way == 6:
        other = rng.randrange(max(1, len(data)))
        changed[at : at + n] = data[other : other + n]
    elif way == 7:
        changed[at:at] = rng.randbytes(n)
    elif way == 8:
        del changed[at : at + n]
    elif changed:
        changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def damaged_json(rng: random.Random, data: bytes) -> bytes:
    """A JSON object with odd values, or a text that a parser may trip over."""
    if rng.random() < 0.1:
        return rng.choice(
            [
                b"",
                b"null",
                b"[" * 2000 + b"]" * 2000,
                b'{"a":' * 100_000,
                b'{"format_version": ' + b"1" * 5000 + b"}",
                b"{}" + b" " * (2 << 20),
                b'{"a": "\xff"}',
                b"\xef\xbb\xbf" + data,
                data.replace(b"1", b"1e999"),
                data.decode().encode("utf-16"),
            ]
        )
    values = json.loads(data)
    for _ in range(rng.choice([1, 1, 2])):
        places = _places(values)
        if not places:
            break
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.15:
            value = holder.pop(key)
            if rng.random() < 0.5:
                holder[rng.choice(["x", "n_layers", "z" * 1000, "a\nb"])] = value
        elif isinstance(holder[key], float | None) and rng.random() < 0.5:
            holder[key] = _magnitude(rng)
        elif isinstance(holder[key], int) and rng.random() < 0.3:
            holder[key] += rng.choice([-1, 1])
        else:
            holder[key] = copy.deepcopy(rng.choice(_ODD_VALUES))
    return json.dumps(values).encode("utf-8", "surrogatepass")


def _magnitude(rng: random.Random) -> float:
    """A number anywhere in the range of float32, as often near its end as in the middle."""
    return rng.choice([1, -1]) * 10 ** rng.choice([rng.uniform(-40, 38), rng.uniform(10, 40)])


def _places(values: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of nested values."""
    found: list[tuple[Any, Any]] = []
    keys = values.keys() if isinstance(values, dict) else range(len(values))
    for key in keys:
        found.append((values, key))
        if isinstance(values[key], dict | list):
            found += _places(values[key])
    return found


def _safetensors_header(rng: random.Random, data: bytes) -> bytes:
    n = int.from_bytes(data[:8], "little")
    header = damaged_json(rng, data[8 : 8 + n])
    if rng.random() < 0.3:
        dtype = rng.choice(["C64", "I64", "BOOL", "F8_E4M3", "F64", "F16", "U8", "I8", "X", "F4"])
        header = data[8 : 8 + n].replace(b"F32", dtype.encode(), rng.choice([1, -1]))
    size = len(header) if rng.random() < 0.8 else rng.choice(_ODD_NUMBERS) % 2**64
    return size.to_bytes(8, "little") + header + data[8 + n :]


def _safetensors_values(rng: random.Random, data: bytes) -> bytes:
    tensors = load(data)
    for name in _some(rng, list(tensors)):
        tensor = tensors[name]
        change: Callable[[Any], Any] = rng.choice(
            [
                lambda t: (t.double() * _magnitude(rng)).float(),
                lambda t: (t.double() * _magnitude(rng)).float(),
                lambda t: (t.double() * _magnitude(rng)).to(t.dtype),
                lambda t: t.float() * 1e37,
                lambda t: t.float() * float("nan"),
                lambda t: t.double() * 1e300,
                lambda t: t.to(torch.complex64),
                lambda t: t.to(torch.int64),
                lambda t: t.to(torch.bfloat16),
                lambda t: t.flatten(),
                lambda t: t.new_zeros(0),
                lambda t: t.sum(),
                lambda t: t[:1],
                lambda t: torch.zeros(1 << 20),
            ]
        )
        tensors[name] = change(tensor).contiguous().clone()
    if rng.random() < 0.1:
        tensors[rng.choice(["x", "x" * 2000, "forward_layers.9.bias"])] = torch.zeros(3)
    if rng.random() < 0.1:
        tensors.pop(rng.choice(list(tensors)))
    return save(tensors)


def _some(rng: random.Random, names: list[str]) -> list[str]:
    return names if rng.random() < 0.2 else rng.sample(names, min(len(names), rng.randint(1, 3)))


def damaged_hdf5(rng: random.Random, data: bytes, marker: Path) -> bytes:
    """An HDF5 file with odd datasets and links."""
    held = io.BytesIO(data)
    outside = str(marker.with_name("outside.bin"))
    marker.with_name("outside.bin").write_bytes(bytes(1 << 16))
    with h5py.File(held, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name))
        for name in _some(rng, names):
            try:
                old = file[name]
            except (KeyError, RuntimeError):  # in a group that is a link by now
                continue
            values = old[()] if isinstance(old, h5py.Dataset) else np.zeros((3, 4), np.float32)
            del file[name]
            _odd_dataset(rng, file, name, values, outside)
    return held.getvalue()


def _odd_dataset(rng: random.Random, file: Any, name: str, values: Any, outside: str) -> None:
    shape, flat = values.shape, [("x", "f4"), ("y", "i4")]
    huge = tuple(n * rng.choice([1, 1000]) for n in shape)
    virtual = h5py.VirtualLayout(shape, "f4")
    virtual[...] = h5py.VirtualSource(outside, "x", shape)
    ways: list[Callable[[], Any]] = [
        lambda: file.create_dataset(name, data=values.astype("f8") * _magnitude(rng)),
        lambda: file.create_dataset(name, data=values.astype("f8") * _magnitude(rng)),
        lambda: file.create_dataset(name, data=values * np.float32("nan")),
        lambda: file.create_dataset(name, data=values.astype("f8") * 1e300),
        lambda: file.create_dataset(name, data=values.astype(rng.choice(["f2", "f8", ">f4"]))),
        lambda: file.create_dataset(name, data=values.astype(rng.choice(["i4", "c8", "?"]))),
        lambda: file.create_dataset(name, data=3.0),
        lambda: file.create_dataset(name, data=h5py.Empty("f4")),
        lambda: file.create_dataset(name, data="text"),
        lambda: file.create_dataset(name, shape, dtype=np.dtype(flat)),
        lambda: file.create_dataset(name, shape, dtype=np.dtype(("f4", (3,)))),
        lambda: file.create_dataset(name, shape, dtype=h5py.vlen_dtype("f4")),
        lambda: file.create_dataset(name, shape, dtype=h5py.ref_dtype),
        lambda: file.create_dataset(name, huge, "f4", chunks=True),
        lambda: file.create_dataset(name, huge, "f4"),
        lambda: file.create_dataset(name, shape, "f4", chunks=True),
        lambda: file.create_dataset(name, data=values, chunks=True, maxshape=(None,) * len(shape)),
        lambda: file.create_dataset(name, data=values, compression="gzip", shuffle=True),
        lambda: file.create_dataset(name, data=values, compression="lzf", fletcher32=True),
        lambda: file.create_dataset(name, data=np.zeros(shape, "f4"), compression="gzip"),
        lambda: _gzip_bomb(file, name, shape),
        lambda: file.create_dataset(name, shape, "f4", external=[(outside, 0, 1 << 16)]),
        lambda: file.create_dataset(name, data=values.reshape(-1)),
        lambda: file.create_dataset(name, data=values[:0]),
        lambda: file.create_virtual_dataset(name, virtual),
        lambda: file.create_group(name),
        lambda: file.__setitem__(name, h5py.SoftLink(rng.choice(["/", "/x", name]))),
        lambda: file.__setitem__(name, h5py.ExternalLink(outside, rng.choice(["/", "/x"]))),
        lambda: file.__setitem__(name, np.dtype("f4")),
        lambda: None,
    ]
    rng.choice(ways)()


def _gzip_bomb(file: Any, name: str, shape: tuple[int, ...]) -> None:
    dataset = file.create_dataset(name, shape, "f4", chunks=shape, compression="gzip")
    dataset.id.write_direct_chunk((0,) * len(shape), zlib.compress(bytes(_BIG // 2)))


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


def damaged_pickle(rng: random.Random, data: bytes, marker: Path) -> bytes:
    """A PyTorch file with odd tensors, or another pickle."""
    warnings.simplefilter("ignore")  # about making odd tensors
    tensors = torch.load(io.BytesIO(data), weights_only=True)
    if rng.random() < 0.3:
        others: list[Any] = [[], 3, {"a": Malicious(marker)}, tensors | {"x": Malicious(marker)},
                             {i: [i] for i in range(100)}, list(tensors.values())]  # fmt: skip
        made = rng.choice(others)
        if rng.random() < 0.5:
            return pickle.dumps(made, protocol=rng.choice([0, 2, 4]))
        return _saved(rng, made)
    if rng.random() < 0.1:
        return rng.choice([b"", b"abc", b"\x80\x02.", b"PK\x03\x04", rng.randbytes(1000)])
    for name in _some(rng, list(tensors)):
        tensor = tensors[name]
        change: Callable[[Any], Any] = rng.choice(
            [
                lambda t: t.to_sparse(),
                lambda t: t.to("meta"),
                lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
                lambda t: t.to(rng.choice([torch.complex64, torch.int32, torch.bool])),
                lambda t: t.to(rng.choice([torch.float64, torch.float16, torch.bfloat16])),
                lambda t: t.double() * _magnitude(rng),
                lambda t: t.double() * _magnitude(rng),
                lambda t: t.double() * 1e300,
                lambda t: t / 0,
                lambda t: torch.zeros(()).expand(t.shape),
                lambda t: torch.zeros(()).expand(100_000, 100_000),
                lambda t: t.T if t.dim() == 2 else t,
                lambda t: torch.nn.Parameter(t),
                lambda t: t[:0],
                lambda t: None,
                lambda t: t.tolist(),
                lambda t: torch.nested.nested_tensor([t.flatten()]),
            ]
        )
        tensors[name] = change(tensor)
    if rng.random() < 0.05:
        tensors.pop(rng.choice(list(tensors)))
    return _saved(rng, tensors)


def _saved(rng: random.Random, values: Any) -> bytes:
    held = io.BytesIO()
    torch.save(values, held, _use_new_zipfile_serialization=rng.random() < 0.6)
    if rng.random() < 0.15 and zipfile.is_zipfile(held):
        packed = io.BytesIO()
        with zipfile.ZipFile(held) as old, zipfile.ZipFile(packed, "w", 8) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name) + bytes(rng.choice([0, _BIG // 2])))
        return packed.getvalue()
    return held.getvalue()


def damaged_list(rng: random.Random, data: bytes) -> bytes:
    """A list of words or characters with missing, double or odd entries."""
    lines = data.split(b"\n")[:-1]
    at = rng.randrange(len(lines))
    way = rng.randrange(10)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines[at] = lines[at - 1]
    elif way == 2:
        lines[at] = rng.choice([b"", b" ", b"\xff\xfe", b"x" * 10_000, b"a\tb", b"\t", b"9" * 5000])
    elif way == 3:
        lines.append(b"more")
    elif way == 4:
        return b""
    elif way == 5:
        return b"\n" * rng.choice([1, len(lines), 1 << 24])
    elif way == 6:
        return gzip.compress(rng.choice([data, bytes(_BIG // 2)]))
    elif way == 7:
        rng.shuffle(lines)
    elif way == 8:
        marks = [i for i, line in enumerate(lines) if line.startswith(b"<")]
        lines[rng.choice(marks or [0])] = b"other\t3"
    else:
        return b"\r\n".join(lines)
    return b"\n".join([*lines, b""])


def archive(rng: random.Random, files: dict[str, bytes]) -> bytes:
    """A ZIP archive of a model: packed in unusual ways, or with bombs in it."""
    held = io.BytesIO()
    methods = [zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED] * 3
    methods += [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]
    prefix = rng.choice(
        ["", "", "model/", "a/b/", "a/b/c/d/e/f/", "../", "/", "日本/", "x" * 300 + "/"]
    )
    bomb = rng.choice(sorted(files)) if rng.random() < 0.1 else None
    with zipfile.ZipFile(held, "w") as made:
        for name, data in files.items():
            extra = bytes(rng.choice([_BIG // 2, _BIG])) if name == bomb else b""
            method = zipfile.ZIP_DEFLATED if extra else rng.choice(methods)
            made.writestr(prefix + name, data + extra, method)
        if rng.random() < 0.05:
            for i in range(2000):
                made.writestr(f"f{i}/{rng.choice(sorted(files))}", b"x")
    packed = bytearray(held.getvalue())
    if rng.random() < 0.3:  # a field of the directory
        at = packed.find(b"PK\1\2", rng.randrange(len(packed)))
        if at >= 0:
            field = at + rng.choice([4, 6, 8, 10, 16, 20, 24, 28, 30, 32, 34, 38, 42])
            packed[field : field + 2] = struct.pack("<H", rng.choice(_ODD_NUMBERS) % 65_536)
    return bytes(packed)


def damaged_index(rng: random.Random, data: bytes) -> bytes:
    """A TensorFlow index with odd bytes but right checksums, so that they are not found at once."""
    if len(data) < 60 or int.from_bytes(data[-8:], "little") != 0xDB4775248B80FB57:
        return damaged_bytes(rng, data)
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(changed) - 8)
        changed[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    for start, end in _blocks(data):
        checksum = masked_crc32c(changed[start:end]).to_bytes(4, "little")
        changed[end : end + 4] = checksum
    return bytes(changed)


@cache
def _blocks(data: bytes) -> list[tuple[int, int]]:
    """Where the blocks of an index begin and where their checksums do."""
    found, start = [], 0
    for end in range(1, len(data) - 48):
        checksum = data[end : end + 4]
        if data[end - 1] == 0 and masked_crc32c(data[start:end]).to_bytes(4, "little") == checksum:
            found.append((start, end))
            start = end + 4
    return found


def tar_archive(rng: random.Random, files: dict[str, bytes]) -> bytes:
    """A tar.gz archive of a model: with links, odd headers, or bombs in it."""
    held = io.BytesIO()
    form = rng.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    prefix = rng.choice(["", "", "model/", "./", "../", "/", "日本/", "x" * 90 + "/"])
    odd = rng.choice(sorted(files)) if rng.random() < 0.3 else None
    with tarfile.open(fileobj=held, mode="w", format=form) as made:
        for name, data in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.mtime = rng.choice([0, 1, 2**31])
            if name == odd:
                info.type = rng.choice([*b"0123456789xgLKSVD"]).to_bytes(1, "little")
                info.linkname = rng.choice(["/etc/passwd", name, "../../x", "weights.th"])
                data += bytes(rng.choice([0, 0, _BIG // 2]))
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    plain = bytearray(held.getvalue())
    if rng.random() < 0.3:  # a field of a header, with the checksum that fits
        at = rng.choice(
            [m for m in range(0, len(plain) - 512, 512) if plain[m + 257 : m + 262] == b"ustar"]
        )
        field = at + rng.choice([0, 100, 124, 125, 135, 156, 157, 257, 263, 345])
        size = rng.choice([1, 4, 11])
        plain[field : field + size] = rng.choice([b"\xff", b"\0", b"7", b"-", b"\x80", b" "]) * size
        plain[at + 148 : at + 156] = b" " * 8
        plain[at + 148 : at + 156] = b"%06o\0 " % sum(plain[at : at + 512])
    if rng.random() < 0.2:
        plain = bytearray(damaged_bytes(rng, bytes(plain)))
    return gzip.compress(bytes(plain), 1)


def odd_path(rng: random.Random, files: dict[str, bytes], folder: Path) -> dict[str, Any]:
    """Arguments for a path that is no model, or a model with a file that is not a file."""
    model = folder / "model"
    model.mkdir()
    for name, data in files.items():
        (model / name).write_bytes(data)
    victim = model / rng.choice(sorted(files))
    odd = folder / "odd"
    kind = rng.randrange(12)
    if kind < 6:
        victim.unlink()
        if kind == 0:
            os.mkfifo(victim)
        elif kind == 1:
            victim.mkdir()
        elif kind == 2:
            victim.symlink_to(rng.choice(["/dev/zero", "nowhere", victim.name, "/proc/kcore"]))
        elif kind == 3:
            with open(victim, "wb") as file:
                file.truncate(1 << 40)
        elif kind == 4:
            real = folder / "real"
            real.write_bytes(files[victim.name])
            victim.symlink_to(real)
        if kind < 5 and "options.json" in files and rng.random() < 0.5:
            return {"options": model / "options.json", "weights": model / "weights.hdf5"}
        return {"model": model}
    if kind == 6:
        os.mkfifo(odd)
        return rng.choice([{"model": odd}, {"options": odd, "weights": odd}])
    if kind == 7:
        for i in range(500):
            (model / f"f{i}").touch()
        deep = model
        for _ in range(60):
            deep = deep / "d"
            deep.mkdir()
        return {"model": model}
    names = ["/dev/zero", "/", "..", "", " ", "a\0b", "x" * 300, "x" * 253, "~nobody-here/x"]
    names += ["/etc/passwd/x", "日本", "\ud800", "http://example.org/x", "en/", "-"]
    name = rng.choice(names)
    if kind == 8:
        return {"options": name, "weights": name}
    return {"model": rng.choice([name, Path(name)])}
