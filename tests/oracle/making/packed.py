"""Layouts of other quantisers: GPTQ, AWQ, compressed-tensors, ModelOpt, bitsandbytes.

`encode` makes the tensors of one module, `decode` reads them by the layout's published rules, with nothing from the
encoder but what config.json says. `entry` is config.json's `quantization_config`.
"""

import json
from dataclasses import dataclass

import numpy as np

from . import numbers
from .safetensors import Stored, floats, rounder


@dataclass(frozen=True)
class Packed:
    kind: str  # gptq, awq, int (packed by compressed-tensors), int8, fp8, nvfp4, mxfp4, modelopt, bnb4, bnb8
    bits: int = 4
    group: int = 0  # 0: one for a row
    symmetric: bool = False
    version: int = 1  # GPTQ's
    order: bool = False  # columns of a group are not neighbours
    scale: str = "F16"
    block: tuple = ()  # FP8: rows and columns with one scale; (): one for a row
    whole: bool = False  # FP8: one scale for a matrix
    double: bool = False  # bitsandbytes: factors are quantised, too
    table: str = "nf4"

    def describe(self):
        parts = [self.kind, f"{self.bits}-bit" if self.kind in ("gptq", "int") else "", f"group {self.group}" if self.group else ""]
        parts += ["symmetric" if self.symmetric else "", "v2" if self.version == 2 else "", "ordered" if self.order else ""]
        parts += [self.table if self.kind == "bnb4" else "", "nested" if self.double else "", "whole" if self.whole else ""]
        return " ".join(part for part in parts if part)


# --- integers -------------------------------------------------------------------------------------------------------


def _groups_of(columns, packed, seed):
    """The group of each column: neighbours, or shuffled."""
    size = packed.group or columns
    groups = np.arange(columns) // size
    return np.random.Generator(np.random.Philox(seed)).permutation(groups) if packed.order else groups


def _quantise(w, groups, packed):
    """Codes [n, k], scales and zeros [n, groups]; w = scale (code - zero)."""
    top, half = 2**packed.bits - 1, 2 ** (packed.bits - 1)
    count = int(groups.max()) + 1
    high = np.stack([w[:, groups == g].max(1) for g in range(count)], 1)
    low = np.stack([w[:, groups == g].min(1) for g in range(count)], 1)
    if packed.symmetric:
        scale = np.maximum(np.maximum(np.abs(high), np.abs(low)) / (top - half if top > 3 else 1.5), 1e-6)
        zero = np.full(scale.shape, half, np.float32)
    else:
        scale = np.maximum((np.maximum(high, 0) - np.minimum(low, 0)) / top, 1e-6)
        zero = np.clip(np.rint(-np.minimum(low, 0) / scale), 1, top).astype(np.float32)
    scale = rounder(packed.scale)(scale.astype(np.float32))
    codes = np.clip(np.rint(w / scale[:, groups]) + zero[:, groups], 0, top).astype(np.uint8)
    return codes, scale, zero


def _value(codes, scale, zero, groups):
    return (scale[:, groups] * (codes.astype(np.float32) - zero[:, groups])).astype(np.float32)


def _stream(codes, bits):
    """[rows, n] -> I32 [rows, n * bits / 32]: one stream of bits a row."""
    return numbers.pack(np.ascontiguousarray(codes.astype(np.uint8)), bits).view("<i4")


def _unstream(words, bits):
    return numbers.unpack(np.ascontiguousarray(words).view("<u4"), bits)


def _encode_gptq(w, packed, seed):
    groups = _groups_of(w.shape[1], packed, seed)
    codes, scale, zero = _quantise(w, groups, packed)
    zeros = _stream(zero.T - (1 if packed.version == 1 else 0), packed.bits)
    return {
        "qweight": Stored("I32", np.ascontiguousarray(_stream(codes, packed.bits).T)),
        "qzeros": Stored("I32", zeros),
        "scales": floats(scale.T, packed.scale),
        "g_idx": Stored("I32", groups.astype("<i4")),
    }


def _decode_gptq(parts, config):
    bits = config["bits"]
    codes = _unstream(np.ascontiguousarray(parts["qweight"].bits.T), bits)
    zero = _unstream(parts["qzeros"].bits, bits).T.astype(np.float32)
    zero += 1 if config["checkpoint_format"] == "gptq" else 0
    return _value(codes, parts["scales"].values().T, zero, parts["g_idx"].bits)


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the output of each nibble of a word


def _awq_words(codes):
    """[rows, outputs] -> I32 [rows, outputs / 8]."""
    eights = codes.astype(np.uint32).reshape(codes.shape[0], -1, 8)
    words = sum(eights[:, :, column] << np.uint32(4 * nibble) for nibble, column in enumerate(AWQ_ORDER))
    return words.astype("<u4").view("<i4")


def _awq_codes(words):
    eights = np.zeros((*words.shape, 8), np.uint8)
    for nibble, column in enumerate(AWQ_ORDER):
        eights[:, :, column] = words.view("<u4") >> np.uint32(4 * nibble) & 15
    return eights.reshape(words.shape[0], -1)


def _encode_awq(w, packed, seed):
    codes, scale, zero = _quantise(w, _groups_of(w.shape[1], packed, seed), packed)
    return {
        "qweight": Stored("I32", _awq_words(np.ascontiguousarray(codes.T))),
        "qzeros": Stored("I32", _awq_words(np.ascontiguousarray(zero.T))),
        "scales": floats(scale.T, packed.scale),
    }


def _decode_awq(parts, config):
    codes, zero = _awq_codes(parts["qweight"].bits).T, _awq_codes(parts["qzeros"].bits).T.astype(np.float32)
    scale = parts["scales"].values().T
    return _value(codes, scale, zero, np.arange(codes.shape[1]) // (codes.shape[1] // scale.shape[1]))


def _fields(codes, bits):
    """[rows, n] -> I32: whole codes in each word, the last padded."""
    each = 32 // bits
    padded = np.zeros((codes.shape[0], -(-codes.shape[1] // each) * each), np.uint32)
    padded[:, : codes.shape[1]] = codes
    shifts = np.arange(each, dtype=np.uint32) * np.uint32(bits)
    words = (padded.reshape(codes.shape[0], -1, each) << shifts).sum(2).astype("<u4")
    return words.view("<i4")


def _unfields(words, bits, n):
    each = 32 // bits
    shifts = np.arange(each, dtype=np.uint32) * np.uint32(bits)
    codes = (np.ascontiguousarray(words).view("<u4")[:, :, None] >> shifts & np.uint32(2**bits - 1)).astype(np.uint8)
    return codes.reshape(words.shape[0], -1)[:, :n]


def _encode_int(w, packed, seed):
    groups = _groups_of(w.shape[1], packed, seed)
    codes, scale, zero = _quantise(w, groups, packed)
    parts = {
        "weight_packed": Stored("I32", _fields(codes, packed.bits)),
        "weight_scale": floats(scale, packed.scale),
        "weight_shape": Stored("I64", np.array(w.shape, "<i8")),
    }
    if not packed.symmetric:
        words = _fields(np.ascontiguousarray(zero.T), packed.bits)
        parts["weight_zero_point"] = Stored("I32", np.ascontiguousarray(words.T))
    if packed.order:
        parts["weight_g_idx"] = Stored("I32", groups.astype("<i4"))
    return parts


def _decode_int(parts, config):
    bits = config["config_groups"]["group_0"]["weights"]["num_bits"]
    n, k = parts["weight_shape"].bits
    codes, scale = _unfields(parts["weight_packed"].bits, bits, k), parts["weight_scale"].values()
    zero = np.full(scale.shape, 2 ** (bits - 1), np.float32)
    if "weight_zero_point" in parts:
        zero = _unfields(np.ascontiguousarray(parts["weight_zero_point"].bits.T), bits, n).T.astype(np.float32)
    groups = parts["weight_g_idx"].bits if "weight_g_idx" in parts else np.arange(k) // (k // scale.shape[1])
    return _value(codes, scale, zero, groups)


def _encode_int8(w, packed, seed):
    codes, scale, zero = _quantise(w, _groups_of(w.shape[1], packed, seed), packed)
    parts = {
        "weight": Stored("I8", (codes.astype(np.int16) - 128).astype("i1")),
        "weight_scale": floats(scale, packed.scale),
    }
    if not packed.symmetric:
        parts["weight_zero_point"] = Stored("I8", (zero - 128).astype("i1"))
    return parts


def _decode_int8(parts, _config):
    scale, codes = parts["weight_scale"].values(), parts["weight"].bits.astype(np.float32)
    zero = parts["weight_zero_point"].bits.astype(np.float32) if "weight_zero_point" in parts else 0 * scale
    return _value(codes, scale, zero, np.arange(codes.shape[1]) // (codes.shape[1] // scale.shape[1]))


# --- small floats ---------------------------------------------------------------------------------------------------


def _spread(scale, shape, block):
    return np.repeat(np.repeat(scale, block[0], 0), block[1], 1)[: shape[0], : shape[1]]


def _encode_fp8(w, packed, _seed):
    block = w.shape if packed.whole else packed.block or (1, w.shape[1])
    down, across = (-(-n // size) for n, size in zip(w.shape, block))
    padded = np.zeros((down * block[0], across * block[1]), np.float32)
    padded[: w.shape[0], : w.shape[1]] = np.abs(w)
    amax = padded.reshape(down, block[0], across, block[1]).max((1, 3))
    scale = rounder(packed.scale)(np.maximum(amax, 1e-6) / 448)
    codes = numbers.e4m3_encode(w / _spread(scale, w.shape, block))
    scale = scale.reshape(()) if packed.whole else scale
    return {"weight": Stored("F8_E4M3", codes), "weight_scale": floats(scale, packed.scale)}


def _decode_fp8(parts, config):
    codes, scale = parts["weight"].bits, parts["weight_scale"].values()
    weights = config.get("config_groups", {}).get("group_0", {}).get("weights", {})
    scale = scale.reshape(scale.shape or (1, 1))
    block = weights.get("block_structure") or config.get("weight_block_size")
    block = block or (codes.shape[0] // scale.shape[0], codes.shape[1])
    return numbers.e4m3_decode(codes) * _spread(scale, codes.shape, block)


def _encode_nvfp4(w, packed, _seed):
    whole = np.float32(448 * 6 / np.abs(w).max())
    amax = np.abs(w.reshape(w.shape[0], -1, 16)).max(2)
    scale = numbers.e4m3_encode(amax / 6 * whole)
    step = numbers.e4m3_decode(scale) / whole
    codes = numbers.e2m1_encode(w / np.where(step == 0, 1, step).repeat(16, 1))
    bytes_ = numbers.pack(codes, 4).view("u1")
    if packed.kind == "modelopt":
        return {
            "weight": Stored("U8", bytes_),
            "weight_scale": Stored("F8_E4M3", scale),
            "weight_scale_2": floats(1 / whole, "F32"),
            "input_scale": floats(np.float32(0.01), "F32"),
        }
    return {
        "weight_packed": Stored("U8", bytes_),
        "weight_scale": Stored("F8_E4M3", scale),
        "weight_global_scale": floats(np.array([whole]), "F32"),
        "input_global_scale": floats(np.array([100.0]), "F32"),
    }


def _decode_nvfp4(parts, _config):
    codes = numbers.unpack((parts.get("weight_packed") or parts["weight"]).bits.view("<u4"), 4)
    scale = numbers.e4m3_decode(parts["weight_scale"].bits)
    if "weight_scale_2" in parts:
        scale = scale * parts["weight_scale_2"].values()
    else:
        scale = scale / parts["weight_global_scale"].values()
    return numbers.e2m1_decode(codes) * scale.repeat(16, 1)


def _encode_mxfp4(w, _packed, _seed):
    parts = numbers.micro_quantise(w, "mxfp4")
    return {
        "weight_packed": Stored("U8", parts["weight"].view("u1")),
        "weight_scale": Stored("U8", parts["scales"]),
    }


def _decode_mxfp4(parts, _config):
    return numbers.micro_dequantise(parts["weight_packed"].bits.view("<u4"), parts["weight_scale"].bits, "mxfp4")


# --- bitsandbytes ---------------------------------------------------------------------------------------------------

NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334]
NF4 += [-0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224]
NF4 += [0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
FP4 = [0.0, 0.0052083334885537624, 0.6666666865348816, 1.0, 0.3333333432674408, 0.5, 0.1666666716337204, 0.25]
TABLES = {"nf4": NF4, "fp4": FP4 + [-x for x in FP4]}
BNB_BLOCK, BNB_NESTED = 64, 256


def _encode_bnb4(w, packed, _seed):
    table = np.array(TABLES[packed.table], np.float32)
    blocks = w.reshape(-1, BNB_BLOCK)
    absmax = np.abs(blocks).max(1)
    state = {"quant_type": packed.table, "blocksize": BNB_BLOCK, "dtype": "bfloat16", "shape": list(w.shape)}
    parts = {}
    if packed.double:
        offset = float(absmax.mean())
        nested_map = np.linspace(-1, 1, 256, dtype=np.float32)
        chunks = np.zeros(-(-len(absmax) // BNB_NESTED) * BNB_NESTED, np.float32)
        chunks[: len(absmax)] = absmax - offset
        chunks = chunks.reshape(-1, BNB_NESTED)
        outer = np.abs(chunks).max(1)
        codes = np.abs((chunks / outer[:, None])[:, :, None] - nested_map).argmin(2).astype("u1").reshape(-1)
        codes = codes[: len(absmax)]
        parts["weight.nested_absmax"] = floats(outer, "F32")
        parts["weight.nested_quant_map"] = floats(nested_map, "F32")
        parts["weight.absmax"] = Stored("U8", codes)
        state.update(nested_blocksize=BNB_NESTED, nested_dtype="float32", nested_offset=offset)
        absmax = nested_map[codes] * outer.repeat(BNB_NESTED)[: len(codes)] + np.float32(offset)
    else:
        parts["weight.absmax"] = floats(absmax, "F32")
    codes = np.abs((blocks / absmax[:, None])[:, :, None] - table).argmin(2).astype("u1").reshape(-1)
    text = np.frombuffer(json.dumps(state).encode(), "u1")
    return {
        **parts,
        "weight": Stored("U8", (codes[::2] << 4 | codes[1::2]).reshape(-1, 1)),
        "weight.quant_map": floats(table, "F32"),
        f"weight.quant_state.bitsandbytes__{packed.table}": Stored("U8", text),
    }


def _decode_bnb4(parts, _config):
    text = next(part.bits for name, part in parts.items() if "quant_state" in name)
    state = json.loads(text.tobytes())
    absmax = parts["weight.absmax"].values()
    if "weight.nested_absmax" in parts:
        outer = parts["weight.nested_absmax"].values().repeat(state["nested_blocksize"])[: len(absmax)]
        absmax = parts["weight.nested_quant_map"].values()[absmax] * outer + np.float32(state["nested_offset"])
    flat = parts["weight"].bits.reshape(-1)
    codes = np.stack([flat >> 4, flat & 15], 1).reshape(-1, state["blocksize"])
    values = parts["weight.quant_map"].values()[codes] * absmax[:, None]
    return values.reshape(state["shape"]).astype(np.float32)


def _encode_bnb8(w, _packed, _seed):
    scale = np.abs(w).max(1).astype(np.float32)
    codes = np.rint(w / scale[:, None] * 127).astype("i1")
    return {"weight": Stored("I8", codes), "SCB": floats(scale, "F32"), "weight_format": Stored("U8", np.uint8(0))}


def _decode_bnb8(parts, _config):
    return parts["weight"].bits.astype(np.float32) * parts["SCB"].values()[:, None] / np.float32(127)


# --- which is which -------------------------------------------------------------------------------------------------

ENCODERS = {
    "gptq": _encode_gptq,
    "awq": _encode_awq,
    "int": _encode_int,
    "int8": _encode_int8,
    "fp8": _encode_fp8,
    "nvfp4": _encode_nvfp4,
    "modelopt": _encode_nvfp4,
    "mxfp4": _encode_mxfp4,
    "bnb4": _encode_bnb4,
    "bnb8": _encode_bnb8,
}


def has_room(packed, shape):
    """Whether a matrix of this shape can be stored: words of codes and whole groups."""
    if packed.kind in ("fp8", "int8", "bnb8"):
        return not packed.group or shape[1] % packed.group == 0
    return shape[0] % 32 == 0 and shape[1] % max(32, packed.group) == 0


def encode(module, w, packed, seed):
    parts = ENCODERS[packed.kind](np.ascontiguousarray(w, np.float32), packed, seed)
    return {f"{module}.{suffix}": stored for suffix, stored in parts.items()}


def _reader(parts):
    if "qweight" in parts:
        return _decode_gptq if "g_idx" in parts else _decode_awq
    if "weight_packed" in parts:
        if parts["weight_packed"].dtype == "I32":
            return _decode_int
        return _decode_nvfp4 if "weight_global_scale" in parts else _decode_mxfp4
    if "SCB" in parts:
        return _decode_bnb8
    if "weight.absmax" in parts:
        return _decode_bnb4
    if "weight_scale_2" in parts:
        return _decode_nvfp4
    return {"I8": _decode_int8, "F8_E4M3": _decode_fp8}[parts["weight"].dtype]


def decode(module, stored, config):
    """The values of a module, by its tensors and config.json's entry."""
    parts = {name.removeprefix(module + "."): part for name, part in stored.items() if name.startswith(module + ".")}
    return _reader(parts)(parts, config)


def modules(stored):
    """Names of the modules that are quantised in one of these layouts."""
    ends = (".qweight", ".weight_packed", ".SCB", ".weight.absmax", ".weight_scale")
    return {name.removesuffix(end) for name in stored for end in ends if name.endswith(end)}


def _scheme(packed):
    """compressed-tensors' description of the weights."""
    kind = {"fp8": "float", "nvfp4": "float", "mxfp4": "float"}.get(packed.kind, "int")
    strategy = "tensor" if packed.whole else "block" if packed.block else "group" if packed.group else "channel"
    weights = {
        "num_bits": {"fp8": 8, "int8": 8, "nvfp4": 4, "mxfp4": 4}.get(packed.kind, packed.bits),
        "type": kind,
        "symmetric": packed.symmetric or kind == "float",
        "strategy": {"nvfp4": "tensor_group", "mxfp4": "group"}.get(packed.kind, strategy),
        "group_size": {"nvfp4": 16, "mxfp4": 32}.get(packed.kind, packed.group or None),
        "block_structure": list(packed.block) or None,
        "actorder": "group" if packed.order else None,
        "dynamic": False,
        "observer": "minmax",
    }
    if packed.kind == "mxfp4":
        weights["scale_dtype"] = "torch.uint8"
    return {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}


FORMATS = {
    "int": "pack-quantized",
    "int8": "int-quantized",
    "fp8": "float-quantized",
    "nvfp4": "nvfp4-pack-quantized",
    "mxfp4": "mxfp4-pack-quantized",
}


def entry(packed, plain):
    """quantization_config. plain: names of the linear modules that stay as they are."""
    if packed.kind == "gptq":
        return {
            "quant_method": "gptq",
            "bits": packed.bits,
            "group_size": packed.group or -1,
            "sym": packed.symmetric,
            "desc_act": packed.order,
            "checkpoint_format": "gptq" if packed.version == 1 else "gptq_v2",
        }
    if packed.kind == "awq":
        kept = sorted(plain)
        return {
            "quant_method": "awq",
            "bits": 4,
            "group_size": packed.group,
            "version": "gemm",
            "zero_point": True,
            "modules_to_not_convert": kept,
        }
    if packed.kind == "modelopt":
        return {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": sorted(plain)}
    if packed.kind.startswith("bnb"):
        four = packed.kind == "bnb4"
        entry = {"quant_method": "bitsandbytes", "load_in_4bit": four, "load_in_8bit": not four}
        return {**entry, "bnb_4bit_quant_type": packed.table, "bnb_4bit_use_double_quant": packed.double}
    return {
        "quant_method": "compressed-tensors",
        "format": FORMATS[packed.kind],
        "quantization_status": "compressed",
        "config_groups": {"group_0": _scheme(packed)},
        "ignore": sorted(plain),
    }


def confirm(stored, entry):
    """compressed-tensors, with scales in float32, must decode its layouts as `decode` does."""
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationConfig

    scheme = QuantizationConfig.model_validate(entry).config_groups["group_0"]
    compressor = BaseCompressor.get_value_from_registry(entry["format"])
    for module in modules(stored):
        state = {}
        for name, part in stored.items():
            if name.startswith(module + ".weight"):
                kind = {"F8_E4M3": torch.float8_e4m3fn}.get(part.dtype)
                bits = torch.from_numpy(np.array(part.values() if part.dtype in ("BF16", "F16", "F32") else part.bits))
                state[name.removeprefix(module + ".")] = bits.view(kind) if kind else bits
        found = compressor.decompress(state, scheme)["weight"].float().numpy()
        wanted = decode(module, stored, entry)
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        assert error < (0.01 if "nvfp4" in entry["format"] or "mxfp4" in entry["format"] else 1e-6), (module, error)
