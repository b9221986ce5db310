"""Safetensors files, written and read in numpy: a length, a JSON header, the bytes."""

import json
from dataclasses import dataclass

import numpy as np

from . import numbers

STORED = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "U32": "<u4", "U8": "u1", "F8_E4M3": "u1", "I64": "<i8", "I32": "<i4", "I8": "i1"}


@dataclass
class Stored:
    """A tensor as it stands in the file: the type's name and its raw bits."""

    dtype: str
    bits: np.ndarray

    def values(self):
        """Floats decoded to float32; integers as they are."""
        if self.dtype == "BF16":
            return numbers.bf16_decode(self.bits)
        if self.dtype in ("F32", "F16"):
            return self.bits.astype(np.float32)
        return self.bits


def floats(x, dtype):
    """A float tensor rounded to F32, F16 or BF16."""
    bits = numbers.bf16_encode(x) if dtype == "BF16" else np.asarray(x, np.float32).astype(STORED[dtype])
    return Stored(dtype, bits.reshape(np.shape(x)))  # a single number has no dimension


def rounder(dtype):
    """x -> x as it will be read back after storing it as dtype."""
    return lambda x: floats(x, dtype).values()


def write(path, tensors, metadata):
    header, position = {"__metadata__": metadata}, 0
    for name in sorted(tensors):
        size = tensors[name].bits.nbytes
        header[name] = {
            "dtype": tensors[name].dtype,
            "shape": list(tensors[name].bits.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(tensors):
            stored = tensors[name]
            out.write(np.ascontiguousarray(stored.bits.astype(STORED[stored.dtype], copy=False)).tobytes())


def read(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        bits = np.frombuffer(data[begin:end], STORED[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = Stored(entry["dtype"], bits)
    return tensors
