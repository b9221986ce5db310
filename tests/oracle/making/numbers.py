"""The number formats checkpoints use, and MLX's quantisers, in numpy alone.

Every format has an encoder and a decoder. The oracle runs decoded values, so what counts is that the decoders say what
the format says; the encoders only have to be sensible.
"""

import numpy as np

# --- bf16 ---------------------------------------------------------------------------------------------------------


def bf16_encode(x):
    """float32 -> uint16, rounded to nearest even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_decode(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


# --- small floats -------------------------------------------------------------------------------------------------

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def _e4m3_values():
    """The 127 non-negative finite values of E4M3, by code; code 127 is NaN and left out."""
    codes = np.arange(127)
    exponent, mantissa = codes >> 3, codes & 7
    subnormal = mantissa * 2.0**-9
    normal = (1 + mantissa / 8) * 2.0 ** (exponent.astype(np.float64) - 7)
    return np.where(exponent == 0, subnormal, normal).astype(np.float32)


E4M3 = _e4m3_values()


def _nearest(x, values):
    """Code of the nearest of ascending non-negative values; a tie goes to the even code. The sign is left out."""
    magnitude = np.minimum(np.abs(x), values[-1])
    above = np.clip(np.searchsorted(values, magnitude), 1, len(values) - 1)
    below = above - 1
    gap_below, gap_above = magnitude - values[below], values[above] - magnitude
    take_above = (gap_above < gap_below) | ((gap_above == gap_below) & (above % 2 == 0))
    return np.where(take_above, above, below).astype(np.uint8)


def e2m1_encode(x):
    return _nearest(x, E2M1) | (np.signbit(x).astype(np.uint8) << 3)


def e2m1_decode(code):
    return np.where(code & 8, -1, 1).astype(np.float32) * E2M1[code & 7]


def e4m3_encode(x):
    return _nearest(x, E4M3) | (np.signbit(x).astype(np.uint8) << 7)


def e4m3_decode(code):
    return np.where(code & 128, -1, 1).astype(np.float32) * E4M3[code & 127]


def e8m0_decode(code):
    return np.exp2(code.astype(np.float32) - 127)


# --- packed integers ----------------------------------------------------------------------------------------------


def pack(codes, bits):
    """uint8 [.., n] -> uint32 [.., n*bits/32]: one little-endian bit stream per row, low bit first."""
    stream = (codes[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
    stream = stream.reshape(*codes.shape[:-1], -1)
    return np.ascontiguousarray(np.packbits(stream, axis=-1, bitorder="little")).view("<u4")


def unpack(words, bits):
    """The inverse of pack."""
    stream = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    stream = stream.reshape(*words.shape[:-1], -1, bits)
    return (stream << np.arange(bits, dtype=np.uint8)).sum(-1).astype(np.uint8)


# --- MLX quantisers: [.., in] -> dict of parts, and back -----------------------------------------------------------


def _grouped(x, group):
    return x.reshape(*x.shape[:-1], -1, group)


def affine_quantise(w, bits, group, store):
    """store: rounds scales and biases to the type they are written in."""
    top = 2**bits - 1
    groups = _grouped(w.astype(np.float32), group)
    high, low = groups.max(-1), groups.min(-1)
    scale = np.maximum((high - low) / top, 1e-7)
    scale = np.where(np.abs(high) >= np.abs(low), -scale, scale)
    edge = np.where(np.abs(high) >= np.abs(low), high, low)
    steps = np.rint(edge / scale)
    scale = store(np.where(steps != 0, edge / np.where(steps != 0, steps, 1), scale))
    bias = store(np.where(steps != 0, edge, 0))
    codes = np.clip(np.rint((groups - bias[..., None]) / scale[..., None]), 0, top).astype(np.uint8)
    return {"weight": pack(codes.reshape(w.shape), bits), "scales": scale, "biases": bias}


def affine_dequantise(words, scales, biases, bits, group):
    codes = _grouped(unpack(words, bits), group).astype(np.float32)
    w = scales[..., None] * codes + biases[..., None]
    return w.reshape(*words.shape[:-1], -1)


def _power_of_two_scale(amax, largest):
    exponent = np.rint(np.log2(np.maximum(amax, 2.0**-100) / largest))
    return (exponent + 127).astype(np.uint8)


MICRO = {  # mode: (bits, group, largest element, encode element, decode element, decode scale)
    "mxfp4": (4, 32, 6.0, e2m1_encode, e2m1_decode, e8m0_decode),
    "nvfp4": (4, 16, 6.0, e2m1_encode, e2m1_decode, e4m3_decode),
    "mxfp8": (8, 32, 448.0, e4m3_encode, e4m3_decode, e8m0_decode),
}


def micro_quantise(w, mode):
    bits, group, largest, encode, _, decode_scale = MICRO[mode]
    groups = _grouped(w.astype(np.float32), group)
    amax = np.abs(groups).max(-1)
    scale = e4m3_encode(amax / largest) if mode == "nvfp4" else _power_of_two_scale(amax, largest)
    step = decode_scale(scale)
    codes = encode(groups / np.where(step == 0, 1, step)[..., None])
    return {"weight": pack(codes.reshape(w.shape), bits), "scales": scale}


def micro_dequantise(words, scales, mode):
    bits, group, _, _, decode, decode_scale = MICRO[mode]
    elements = _grouped(decode(unpack(words, bits)), group)
    return (decode_scale(scales)[..., None] * elements).reshape(*words.shape[:-1], -1)


# --- block FP8 as in Qwen's releases --------------------------------------------------------------------------------


def _spread(per_block, shape, block):
    return np.repeat(np.repeat(per_block, block, 0), block, 1)[: shape[0], : shape[1]]


def fp8_quantise(w, block, store):
    rows, cols = (-(-n // block) for n in w.shape)
    padded = np.zeros((rows * block, cols * block), np.float32)
    padded[: w.shape[0], : w.shape[1]] = w
    amax = np.abs(padded.reshape(rows, block, cols, block)).max((1, 3))
    scale = store(np.maximum(amax, 1e-12) / 448)
    return {"weight": e4m3_encode(w / _spread(scale, w.shape, block)), "weight_scale_inv": scale}


def fp8_dequantise(codes, scale, block):
    return e4m3_decode(codes) * _spread(scale, codes.shape, block)
