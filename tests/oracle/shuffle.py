#!/usr/bin/env python3
"""Checkpoints like those of a folder with other weights: every tensor's numbers are shuffled.

    shuffle.py DIR OUT --seed N        each checkpoint in DIR to OUT, under its name and -N

What is quantised stays as well quantised as it was: groups change places within their tensor with their scales and
biases, and elements within their group. The answers are other ones, so oracle.json stays behind. Needs nothing beyond
Python's standard library.
"""

import argparse
import json
import random
import shutil
from pathlib import Path

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U32": 4, "U8": 1, "F8_E4M3": 1}


def shuffled(rng, items):
    items = list(items)
    rng.shuffle(items)
    return items


def pieces(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


def elements_of(group, bits):
    value, mask = int.from_bytes(group, "little"), (1 << bits) - 1
    return [value >> at & mask for at in range(0, 8 * len(group), bits)]


def group_of(elements, bits):
    value = sum(element << at * bits for at, element in enumerate(elements))
    return value.to_bytes(len(elements) * bits // 8, "little")


def shuffle_groups(rng, weight, others, bits):
    """weight: its bytes; others: bytes and size of an element of scales, and of biases where there are some."""
    count = len(others[0][0]) // others[0][1]
    order = shuffled(rng, range(count))
    groups = pieces(weight, len(weight) // count)
    groups = [group_of(shuffled(rng, elements_of(groups[i], bits)), bits) for i in order]
    return b"".join(groups), [b"".join(pieces(data, size)[i] for i in order) for data, size in others]


def bits_of(tensors, module):
    """Elements of a row are columns of the scales times the group: 16, 32, 64 or 128; the config is not asked."""
    words, groups = tensors[module + ".weight"]["shape"][-1], tensors[module + ".scales"]["shape"][-1]
    fits = [(bits, 32 * words // groups // bits) for bits in (2, 3, 4, 5, 6, 8) if 32 * words % (groups * bits) == 0]
    return [bits for bits, group in fits if group in (16, 32, 64, 128)]


def settings_of(config, module):
    """What config.json says about a module's quantisation: its own entry, or that of all."""
    entry = config.get("quantization", {})
    return entry[module] if isinstance(entry.get(module), dict) else entry


def shuffle_file(rng, path, out, config):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8 : 8 + size])
    tensors.pop("__metadata__", None)
    body = bytearray(data[8 + size :])

    def get(name):
        return bytes(body[slice(*tensors[name]["data_offsets"])])

    for name in sorted(tensors):
        module, _, part = name.rpartition(".")
        packed = module + ".scales" in tensors
        if packed and part == "weight":
            names = [module + "." + p for p in ("scales", "biases") if module + "." + p in tensors]
            bits = settings_of(config, module)["bits"]
            assert bits in bits_of(tensors, module), name
            others = [(get(n), SIZES[tensors[n]["dtype"]]) for n in names]
            weight, others = shuffle_groups(rng, get(name), others, bits)
            values = {name: weight, **dict(zip(names, others))}
        elif packed and part in ("scales", "biases"):
            continue
        else:
            values = {name: b"".join(shuffled(rng, pieces(get(name), SIZES[tensors[name]["dtype"]])))}
        for n, value in values.items():
            body[slice(*tensors[n]["data_offsets"])] = value
    out.write_bytes(data[: 8 + size] + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    for folder in sorted(path for path in chosen.dir.iterdir() if (path / "config.json").exists()):
        out = chosen.out / f"{folder.name}-{chosen.seed}"
        out.mkdir(parents=True, exist_ok=True)
        config = json.loads((folder / "config.json").read_text())
        rng = random.Random(f"{folder.name} {chosen.seed}")
        for path in sorted(folder.iterdir()):
            if path.suffix == ".safetensors":
                shuffle_file(rng, path, out / path.name, config)
            elif path.name != "oracle.json":
                shutil.copy(path, out / path.name)


if __name__ == "__main__":
    main()
