"""MLX's affine quantisation: w = scale * q + bias in groups along a row, q packed little end first in 32-bit words."""

import torch


def affine(w, bits, group=64):
    """Returns q (as floats), scale and bias, the latter two rounded to bf16 as they are stored."""
    levels = 2**bits - 1
    x = w.detach().float().reshape(*w.shape[:-1], -1, group)
    high, low = x.amax(-1, keepdim=True), x.amin(-1, keepdim=True)
    scale = ((high - low) / levels).clamp_min(1e-7)
    scale = torch.where(high.abs() >= low.abs(), -scale, scale)
    edge = torch.where(high.abs() >= low.abs(), high, low)
    steps = torch.round(edge / scale)
    scale = torch.where(steps != 0, edge / torch.where(steps != 0, steps, 1), scale).bfloat16().float()
    bias = torch.where(steps != 0, edge, 0).bfloat16().float()
    return torch.round((x - bias) / scale).clamp(0, levels), scale, bias


def rounded(w, bits, group=64):
    """What the quantised weight stands for."""
    q, scale, bias = affine(w, bits, group)
    return (q * scale + bias).reshape(w.shape)


def straight_through(w, bits, group=64):
    """Rounded on the way forward, as if it were not on the way back: for training that knows of the rounding."""
    return w + (rounded(w, bits, group) - w).detach()


def packed(w, bits, group=64):
    """weight (int32 words), scales and biases (bf16) as MLX stores them."""
    q, scale, bias = affine(w, bits, group)
    per = 32 // bits
    q = q.to(torch.int64).reshape(*w.shape[:-1], -1, per)
    words = (q << (torch.arange(per, device=w.device) * bits)).sum(-1)
    words = torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
    return words, scale.squeeze(-1).bfloat16(), bias.squeeze(-1).bfloat16()


def unpacked(words, scale, bias, group=64):
    """The weight that stored words stand for; how many bits each value has follows from the shapes."""
    per = scale.shape[-1] * group // words.shape[-1]
    bits = 32 // per
    q = ((words.long() & 0xFFFFFFFF)[..., None] >> (torch.arange(per) * bits)) & (2**bits - 1)
    q = q.reshape(*words.shape[:-1], -1, group)
    return (q * scale.float()[..., None] + bias.float()[..., None]).flatten(-2)
