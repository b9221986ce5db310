#!/usr/bin/env python3
"""Writes a checkpoint folder as a GGUF file, with the names, orders and numbers that llama.cpp's converter gives.

    gguf.py FOLDER FILE            the text model; weights keep their type, vectors become F32

A few numbers of a config have no key that the converter writes. Where a checkpoint has another value than the
architecture's, a key of the same family says it, which llama.cpp may not read: attention.scale,
attention.sliding_window_pattern, expert_weights_norm and expert_weights_scale.
Needs nothing beyond Python's standard library.
"""

import argparse
import json
import math
import re
import struct
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

F32, F16, Q8_0, BF16 = 0, 1, 8, 30
BLOCK = 32  # elements of a block of Q8_0
TYPES = {"F32": F32, "F16": F16, "BF16": BF16}
SIZES = {F32: 4, F16: 2, BF16: 2}
ALIGNMENT = 32


class Unfit(Exception):
    """A checkpoint that no GGUF file can hold."""


@dataclass
class Tensor:
    type: int
    shape: list  # the slowest dimension first
    data: bytes

    def rows(self):
        """The rows of a matrix or the elements of a vector, as bytes."""
        size = len(self.data) // self.shape[0]
        return [self.data[i * size : (i + 1) * size] for i in range(self.shape[0])]

    def pick(self, order):
        rows = self.rows()
        return Tensor(self.type, [len(order), *self.shape[1:]], b"".join(rows[i] for i in order))

    def items(self):
        """Of a stack, its matrices."""
        return [Tensor(self.type, self.shape[1:], row) for row in self.rows()]

    def columns(self, order, piece):
        size = piece * SIZES[self.type]
        rows = [b"".join(row[i * size : (i + 1) * size] for i in order) for row in self.rows()]
        return Tensor(self.type, self.shape, b"".join(rows))

    def transposed(self):
        kind = "I" if SIZES[self.type] == 4 else "H"
        values, (n, k) = array(kind, self.data), self.shape
        return Tensor(self.type, [k, n], array(kind, [values[r * k + c] for c in range(k) for r in range(n)]).tobytes())

    def floats(self):
        if self.type == F32:
            return list(array("f", self.data))
        if self.type == F16:
            return list(struct.unpack(f"<{len(self.data) // 2}e", self.data))
        return list(array("f", b"".join(b"\0\0" + self.data[i : i + 2] for i in range(0, len(self.data), 2))))

    def f32(self, change=lambda x: x):
        return Tensor(F32, self.shape, array("f", [change(x) for x in self.floats()]).tobytes())


def q8_0(tensor):
    """(the matrix in blocks of Q8_0, the numbers these stand for)."""
    blocks, numbers, values = [], array("f"), tensor.floats()
    for at in range(0, len(values), BLOCK):
        part = values[at : at + BLOCK]
        (scale,) = struct.unpack("<e", struct.pack("<e", max(map(abs, part)) / 127))
        codes = [max(-127, min(127, round(x / scale))) if scale else 0 for x in part]
        blocks.append(struct.pack("<e32b", scale, *codes))
        numbers.extend(scale * code for code in codes)
    return Tensor(Q8_0, tensor.shape, b"".join(blocks)), Tensor(F32, tensor.shape, numbers.tobytes())


def stack(tensors):
    return Tensor(tensors[0].type, [len(tensors), *tensors[0].shape], b"".join(t.data for t in tensors))


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    out = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in TYPES:
            raise Unfit(f"{name} is {entry['dtype']}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        out[name] = Tensor(TYPES[entry["dtype"]], entry["shape"], data[begin:end])
    return out


PREFIXES = ("model.text_model.", "model.language_model.", "language_model.model.", "model.", "language_model.", "")


def text_tensors(folder):
    """The tensors of the text model and its drafting head, without the prefix of the former."""
    every = {}
    for path in sorted(folder.glob("*.safetensors")):
        every.update(read_safetensors(path))
    prefix = next(p for p in PREFIXES if p + "embed_tokens.weight" in every)
    out = {}
    for name, tensor in every.items():
        if name.startswith(prefix) and re.match(r"(layers\.|norm\.|embed|per_layer)", name[len(prefix) :]):
            out[name[len(prefix) :]] = tensor
        elif name.endswith("lm_head.weight"):
            out["lm_head.weight"] = tensor
        elif re.match(r"(model\.)?mtp\.", name):
            out[name[name.index("mtp.") :]] = tensor
    return out


# What is called what. {} is the number of the layer.
WHOLE = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "embedding_norm": "token_embd_norm",
    "embed_tokens_per_layer": "per_layer_token_embd",
    "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_projection_norm": "per_layer_proj_norm",
}
LAYER = {
    "input_layernorm": "attn_norm",
    "operator_norm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "ffn_norm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w3": "ffn_up",
    "feed_forward.w2": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "router.proj": "ffn_gate_inp",
    "feed_forward.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "conv.conv": "shortconv.conv",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
    "self_attn.qkv_proj": "attn_qkv",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "post_feedforward_layernorm_2": "post_ffw_norm_2",
}
for part in ("gate", "up", "down"):
    LAYER[f"mlp.shared_expert.{part}_proj"] = LAYER[f"mlp.shared_experts.{part}_proj"] = f"ffn_{part}_shexp"
EXACT = {
    "self_attn.sinks": "attn_sinks.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "feed_forward.expert_bias": "exp_probs_b.bias",
    "mlp.moe_statics.e_score_correction_bias": "exp_probs_b.bias",
    "block_sparse_moe.e_score_correction_bias": "exp_probs_b.bias",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "layer_scalar": "layer_output_scale.weight",
}
BEHIND = {"post_attention_layernorm": "post_attention_norm"}
GEMMA = BEHIND | {"pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
GLM = {"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}
OLMO = BEHIND | {"post_feedforward_layernorm": "post_ffw_norm"}
NUMBERS_OF_YARN = (
    ("yarn_attn_factor", "attention_factor"),
    ("yarn_beta_fast", "beta_fast"),
    ("yarn_beta_slow", "beta_slow"),
)
DRAFTING = {"fc": "eh_proj", "pre_fc_norm_embedding": "enorm", "pre_fc_norm_hidden": "hnorm", "norm": "shared_head_norm"}

# model_type of the text model: architecture, names of its own
ARCHITECTURES = {
    "llama": ("llama", {}),
    "mistral": ("llama", {}),
    "mistral3": ("mistral3", {}),
    "ministral3": ("mistral3", {}),
    "smolvlm": ("llama", {}),
    "qwen2": ("qwen2", {}),
    "qwen2_vl": ("qwen2vl", {}),
    "qwen2_5_vl": ("qwen2vl", {}),
    "qwen3": ("qwen3", {}),
    "qwen3_moe": ("qwen3moe", {}),
    "qwen3_vl": ("qwen3vl", {}),
    "qwen3_vl_moe": ("qwen3vlmoe", {}),
    "qwen3_next": ("qwen3next", BEHIND),
    "qwen3_5": ("qwen35", BEHIND),
    "qwen3_5_moe": ("qwen35moe", BEHIND),
    "gemma2": ("gemma2", GEMMA),
    "gemma3": ("gemma3", GEMMA),
    "gemma4": ("gemma4", GEMMA),
    "gemma4_unified": ("gemma4", GEMMA),
    "gpt_oss": ("gpt-oss", BEHIND),
    "lfm2": ("lfm2", {}),
    "lfm2_moe": ("lfm2moe", {}),
    "glm4v": ("glm4", GLM),
    "glm_ocr": ("glm4", GLM),
    "glm4v_moe": ("glm4moe", BEHIND),
    "paddleocr_vl": ("paddleocr", {}),
    "seed_oss": ("seed_oss", BEHIND),
    "smollm3": ("smollm3", {}),
    "granite": ("granite", {}),
    "phi3": ("phi3", {}),
    "gemma": ("gemma", {}),
    "olmo2": ("olmo2", OLMO),
    "olmo3": ("olmo2", OLMO),
    "olmoe": ("olmoe", {}),
    "exaone4": ("exaone4", OLMO),
    "ernie4_5": ("ernie4_5", {}),
    "ernie4_5_moe": ("ernie4_5-moe", {}),
    "mixtral": ("llama", {}),
    "minimax_m2": ("minimax-m2", {}),
    "qwen2_moe": ("qwen2moe", {}),
    "glm4": ("glm4", GLM),
    "glm4_moe": ("glm4moe", BEHIND),
    "cohere": ("command-r", {}),
    "cohere2": ("cohere2", {}),
}
# families that no architecture is for, or one of another age, and those that motet reads from safetensors alone
UNKNOWN = (
    *("glm", "hy_v3", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa"),
    *("exaone_moe", "llama4_text", "falcon_h1", "granitemoehybrid", "nemotron_h", "mistral4"),
)
TURNED = ("llama", "mistral3", "smollm3", "granite")
PLUS_ONE = ("gemma", "gemma2", "gemma3", "qwen3next", "qwen35", "qwen35moe")
# kept in F32 whatever the file's type is
PRECISE = ("ffn_gate_inp.", "ffn_gate_inp_shexp.", "ssm_conv1d.", "shortconv.conv.")


class Converter:
    def __init__(self, folder):
        whole = json.loads((folder / "config.json").read_text())
        self.config = whole | whole.get("text_config", {})
        kind, text = whole["model_type"], self.config["model_type"].removesuffix("_text")
        if kind in ("mistral3", "smolvlm") and text not in UNKNOWN:
            text = kind
        elif text not in ARCHITECTURES and text not in UNKNOWN:
            text = kind
        if text in UNKNOWN:
            raise Unfit("no architecture is for its family")
        self.arch, self.own = ARCHITECTURES[text]
        self.tensors = text_tensors(folder)
        self.layers = self.config["num_hidden_layers"]
        self.keys, self.out = {}, {}

    def get(self, *names, default=None):
        for name in names:
            if self.config.get(name) is not None:
                return self.config[name]
        return default

    def rope(self):
        found = self.config.get("rope_parameters") or self.config.get("rope_scaling") or {}
        if "full_attention" in found:
            return found["full_attention"]
        return found

    @property
    def heads(self):
        return self.config["num_attention_heads"]

    @property
    def kv_heads(self):
        return self.get("num_key_value_heads", default=self.heads)

    @property
    def head_dim(self):
        return self.get("head_dim", default=self.config["hidden_size"] // self.heads)

    def linear(self):
        """Key heads, value heads and their sizes of recurrent layers."""
        c = self.config
        return [
            c["linear_num_key_heads"],
            c["linear_num_value_heads"],
            c["linear_key_head_dim"],
            c["linear_value_head_dim"],
        ]

    # ---- tensors

    def order(self, name):
        """What rows of a tensor are written one after the other; None: all as they are."""
        if self.arch in TURNED and re.match(r"attn_[qk]\.", name):
            count = self.heads if name[5] == "q" else self.kv_heads
            dim = self.head_dim
            return [h * dim + s * dim // 2 + i for h in range(count) for i in range(dim // 2) for s in (0, 1)]
        if self.arch == "glm4" and "mrope_section" in self.rope() and re.match(r"attn_[qk]\.", name):
            count, dim = (self.heads if name[5] == "q" else self.kv_heads), self.head_dim
            turned = int(dim * self.rope().get("partial_rotary_factor", 0.5))
            head = [*range(0, turned, 2), *range(1, turned, 2), *range(turned, dim)]
            return [h * dim + i for h in range(count) for i in head]
        if self.arch in ("qwen35", "qwen35moe"):
            keys, values, key_dim, value_dim = self.linear()
            skip = {"attn_qkv.weight": 1, "ssm_conv1d.weight": 1}.get(name, 0) * 2 * keys * key_dim
            wide = name in ("attn_qkv.weight", "ssm_conv1d.weight", "attn_gate.weight")
            if wide or name in ("ssm_alpha.weight", "ssm_beta.weight", "ssm_a", "ssm_dt.bias"):
                dim = value_dim if wide else 1
                tiled = [k * (values // keys) + j for j in range(values // keys) for k in range(keys)]
                return [*range(skip), *(skip + h * dim + i for h in tiled for i in range(dim))]
        return None

    def put(self, name, tensor, local):
        order = self.order(local)
        if order:
            tensor = tensor.pick(order)
        if self.arch in ("qwen35", "qwen35moe") and local == "ssm_out.weight":
            keys, values, _, value_dim = self.linear()
            tiled = [k * (values // keys) + j for j in range(values // keys) for k in range(keys)]
            tensor = tensor.columns(tiled, value_dim)
        if local == "ssm_a":
            tensor = tensor.f32(lambda x: -math.exp(x))
        if self.arch in PLUS_ONE and "norm" in local and not local.startswith("ssm_norm"):
            tensor = tensor.f32(lambda x: x + 1)
        if local.startswith(("ssm_conv1d.", "shortconv.conv.weight")):
            tensor = Tensor(tensor.type, [tensor.shape[0], tensor.shape[2]], tensor.data)
        vector = len(tensor.shape) <= 1 or local.startswith(PRECISE) or local.endswith((".bias", "_norm.weight"))
        self.out[name] = tensor.f32() if vector or not local.endswith(".weight") else tensor

    def put_of_layer(self, layer, name, tensor):
        stem, _, suffix = name.rpartition(".")
        if name in EXACT:
            local = EXACT[name]
        elif stem in self.own:
            local = f"{self.own[stem]}.{suffix}"
        else:
            local = f"{LAYER[stem]}.{suffix}"
        self.put(f"blk.{layer}.{local}", tensor, local)

    def put_joined(self, layer, tensor):
        """Qwen3-Next's projection: q, k, v and z of each key head, one head after the other."""
        keys, values, key_dim, value_dim = self.linear()
        each = values // keys * value_dim
        sizes = [key_dim, key_dim, each, each]
        begins = [sum(sizes[:i]) for i in range(4)]
        parts = [
            [h * sum(sizes) + begins[p] + i for h in range(keys) for i in range(sizes[p])] for p in range(4)
        ]
        self.put(f"blk.{layer}.attn_qkv.weight", tensor.pick(parts[0] + parts[1] + parts[2]), "attn_qkv.weight")
        self.put(f"blk.{layer}.attn_gate.weight", tensor.pick(parts[3]), "attn_gate.weight")

    def put_experts(self, layer, named):
        """The experts of a layer, which GGUF files have stacked. named: without what stands before "experts."."""
        hidden = self.config["hidden_size"]
        count = self.get("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
        if "0.gate_proj.weight" in named or "0.w1.weight" in named:
            short = "0.w1.weight" in named
            for part, other in (("gate", "w1"), ("up", "w3"), ("down", "w2")):
                each = [named[f"{e}.{other if short else part + '_proj'}.weight"] for e in range(count)]
                self.put(f"blk.{layer}.ffn_{part}_exps.weight", stack(each), f"ffn_{part}_exps.weight")
            return
        both, down = named["gate_up_proj"], named["down_proj"]
        woven = self.arch == "gpt-oss"
        inner = down.shape[1] * down.shape[2] // hidden
        if woven or (both.shape[1] == hidden and both.shape[2] == 2 * inner and 2 * inner != hidden):
            both, down = (stack([item.transposed() for item in t.items()]) for t in (both, down))
        self.put(f"blk.{layer}.ffn_down_exps.weight", down, "ffn_down_exps.weight")
        if self.arch == "gemma4":
            self.put(f"blk.{layer}.ffn_gate_up_exps.weight", both, "ffn_gate_up_exps.weight")
            return
        step, behind = (2, 1) if woven else (1, inner)
        for part, first in (("gate", 0), ("up", behind)):
            rows = [first + step * i for i in range(inner)]
            one = stack([item.pick(rows) for item in both.items()])
            self.put(f"blk.{layer}.ffn_{part}_exps.weight", one, f"ffn_{part}_exps.weight")
            if woven:
                bias = stack([item.pick(rows) for item in named["gate_up_proj_bias"].items()])
                self.put(f"blk.{layer}.ffn_{part}_exps.bias", bias, f"ffn_{part}_exps.bias")
        if woven:
            self.put(f"blk.{layer}.ffn_down_exps.bias", named["down_proj_bias"], "ffn_down_exps.bias")

    def put_tensors(self):
        experts = {}
        for name, tensor in self.tensors.items():
            head = name.startswith("mtp.")
            layer = re.match(r"(?:mtp\.)?layers\.(\d+)\.(.*)", name)
            if not layer:
                stem, _, suffix = name.removeprefix("mtp.").rpartition(".")
                local = f"{(DRAFTING if head else WHOLE)[stem]}.{suffix}"
                self.put(f"blk.{self.layers}.nextn.{local}" if head else local, tensor, local)
                continue
            number, rest = int(layer[1]) + (self.layers if head else 0), layer[2]
            inside = re.match(r"(?:mlp\.|feed_forward\.|block_sparse_moe\.)?experts\.(.*)", rest)
            if inside:
                experts.setdefault(number, {})[inside[1]] = tensor
            elif rest == "linear_attn.in_proj_qkvz.weight":
                self.put_joined(number, tensor)
            else:
                self.put_of_layer(number, rest, tensor)
        for number, named in experts.items():
            self.put_experts(number, named)
        if self.rope_type() == "llama3":
            self.out["rope_freqs.weight"] = self.llama3_factors()
        if self.arch == "gemma4":
            half = self.full_head_dim() // 2
            turning = int(half * self.rope()["partial_rotary_factor"])
            factors = array("f", [1.0] * turning + [1e30] * (half - turning))
            self.out["rope_freqs.weight"] = Tensor(F32, [half], factors.tobytes())

    def llama3_factors(self):
        rope, dim, factors = self.rope(), self.head_dim, []
        low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
        theta = rope.get("rope_theta", self.get("rope_theta"))
        for i in range(0, dim, 2):
            turns = original / (2 * math.pi * theta ** (i / dim))
            smooth = min(max((turns - low) / (high - low), 0), 1)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
        return Tensor(F32, [dim // 2], array("f", factors).tobytes())

    # ---- keys

    def rope_type(self):
        return self.rope().get("rope_type", self.rope().get("type"))

    def full_head_dim(self):
        each = self.config.get("per_layer_config") or {}
        full = [v["head_dim"] for k, v in each.items() if self.config["layer_types"][int(k)] == "full_attention"]
        return self.get("global_head_dim", default=full[0] if full else None)

    def set(self, key, value):
        if value is not None:
            self.keys[f"{self.arch}.{key}"] = value

    def set_common(self):
        c, get = self.config, self.get
        self.keys["general.architecture"] = self.arch
        self.set("block_count", self.layers + (1 if "mtp.fc.weight" in self.tensors else 0))
        if "mtp.fc.weight" in self.tensors:
            self.set("nextn_predict_layers", 1)
        self.set("context_length", c["max_position_embeddings"])
        self.set("embedding_length", c["hidden_size"])
        self.set("feed_forward_length", get("intermediate_size"))
        self.set("attention.head_count", self.heads)
        self.set("attention.head_count_kv", self.kv_heads)
        if get("layer_norm_eps"):
            self.set("attention.layer_norm_epsilon", float(c["layer_norm_eps"]))
        else:
            self.set("attention.layer_norm_rms_epsilon", float(get("rms_norm_eps", "norm_eps")))
        if get("head_dim"):
            self.set("attention.key_length", c["head_dim"])
            self.set("attention.value_length", c["head_dim"])
        self.set("rope.freq_base", float(self.rope().get("rope_theta", get("rope_theta", default=10000.0))))
        local = (c.get("rope_parameters") or {}).get("sliding_attention", {}).get("rope_theta", get("rope_local_base_freq"))
        self.set("rope.freq_base_swa", float(local) if local else None)
        self.set("expert_count", get("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"))
        self.set("expert_used_count", get("num_experts_per_tok", "top_k_experts", "moe_k"))
        self.set("expert_feed_forward_length", get("moe_intermediate_size"))
        self.set("expert_shared_feed_forward_length", get("shared_expert_intermediate_size"))
        if "mrope_section" in self.rope():
            self.set("rope.dimension_sections", [*self.rope()["mrope_section"][:3], 0])

    def set_scaling(self):
        rope = self.rope()
        if self.rope_type() not in ("linear", "yarn"):
            return
        self.set("rope.scaling.type", self.rope_type())
        self.set("rope.scaling.factor", float(rope["factor"]))
        if self.rope_type() == "yarn":
            self.set("rope.scaling.original_context_length", rope["original_max_position_embeddings"])
            for key, name in NUMBERS_OF_YARN:
                self.set(f"rope.scaling.{key}", float(rope[name]) if name in rope else None)

    def set_own(self):
        c, get = self.config, self.get
        if self.arch in TURNED:
            self.set("vocab_size", c["vocab_size"])
            self.set("rope.dimension_count", self.head_dim)
        if c["model_type"] == "ministral3":
            self.set("rope.scaling.yarn_log_multiplier", float(self.rope()["mscale_all_dim"]))
            self.set("attention.temperature_scale", float(self.rope()["llama_4_scaling_beta"]))
        windows = ("gemma2", "gemma3", "gemma4", "gpt-oss", "exaone4", "cohere2")
        if get("use_sliding_window") or (self.arch == "llama" and get("sliding_window")):
            raise Unfit("its architecture has no windows")
        if self.arch in windows or c["model_type"] == "olmo3":
            self.set("attention.sliding_window", get("sliding_window"))
        if self.arch == "phi3":
            self.set("attention.sliding_window", get("sliding_window", default=0))
        if self.arch in ("gemma2", "gemma3") and c["query_pre_attn_scalar"] != self.head_dim:
            self.set("attention.scale", c["query_pre_attn_scalar"] ** -0.5)
        if self.arch in ("gemma2", "gemma3", "gemma4"):
            self.set("attn_logit_softcapping", get("attn_logit_softcapping") if self.arch == "gemma2" else None)
            self.set("final_logit_softcapping", get("final_logit_softcapping"))
        if self.arch == "gemma3":
            every = get("sliding_window_pattern", default=6)
            kinds = get("layer_types", default=[("full" if (i + 1) % every == 0 else "sliding") for i in range(self.layers)])
            usual = [(i + 1) % 6 == 0 for i in range(self.layers)]
            if [kind.startswith("full") for kind in kinds] != usual:
                self.set("attention.sliding_window_pattern", [kind.startswith("sliding") for kind in kinds])
        if self.arch in ("gpt-oss", "minimax-m2"):
            self.set("expert_feed_forward_length", c["intermediate_size"])
        if self.arch in ("qwen3moe", "qwen3vlmoe") and get("norm_topk_prob") is False:
            self.set("expert_weights_norm", False)
        if self.arch == "glm4moe":
            self.set("expert_shared_count", get("n_shared_experts"))
            self.set("leading_dense_block_count", get("first_k_dense_replace"))
            self.set("expert_gating_func", 2)
            self.set("expert_weights_scale", float(get("routed_scaling_factor", default=1.0)))
            self.set("expert_weights_norm", get("norm_topk_prob"))
            self.set("expert_group_count", get("n_group"))
            self.set("expert_group_used_count", get("topk_group"))
        if self.arch in ("olmoe", "qwen2moe") and get("norm_topk_prob"):
            raise Unfit("its architecture does not divide by the sum")
        if self.arch in ("minimax-m2", "phi3"):
            part = self.rope().get("partial_rotary_factor", get("partial_rotary_factor", default=1.0))
            self.set("rope.dimension_count", int(self.head_dim * part))
        if self.arch in ("exaone4", "olmo2") and get("sliding_window"):
            kinds = get("layer_types", default=["full" if (i + 1) % 4 == 0 else "sliding" for i in range(self.layers)])
            self.set("attention.sliding_window_pattern", [kind.startswith("sliding") for kind in kinds])
        self.set_factors()
        if self.arch in ("glm4", "glm4moe"):
            part = self.rope().get("partial_rotary_factor", get("partial_rotary_factor", default=0.5))
            self.set("rope.dimension_count", int(self.head_dim * part))

    def set_factors(self):
        """Granite's, Cohere's, ERNIE's and Phi's."""
        c, get = self.config, self.get
        if self.arch == "granite":
            self.set("attention.scale", float(c["attention_multiplier"]))
            self.set("embedding_scale", float(c["embedding_multiplier"]))
            self.set("residual_scale", float(c["residual_multiplier"]))
            self.set("logit_scale", float(c["logits_scaling"]))
        if self.arch in ("command-r", "cohere2"):
            self.set("logit_scale", float(c["logit_scale"]))
            self.set("rope.scaling.type", "none")
        if self.arch == "ernie4_5-moe":
            self.set("interleave_moe_layer_step", get("moe_layer_interval"))
            self.set("leading_dense_block_count", get("moe_layer_start_index"))
            self.set("expert_shared_count", get("moe_num_shared_experts"))
        if self.arch == "phi3":
            original = c.get("original_max_position_embeddings", c["max_position_embeddings"])
            self.set("rope.scaling.original_context_length", original)
        if self.rope_type() == "longrope":
            factor = c["max_position_embeddings"] / original
            self.set("rope.scaling.attn_factor", math.sqrt(1 + math.log(factor) / math.log(original)))
            for kind in ("long", "short"):
                each = array("f", self.rope()[f"{kind}_factor"])
                self.out[f"rope_factors_{kind}.weight"] = Tensor(F32, [len(each)], each.tobytes())

    def set_recurrent(self):
        if self.arch in ("qwen3next", "qwen35", "qwen35moe"):
            keys, values, key_dim, value_dim = self.linear()
            self.set("ssm.conv_kernel", self.config["linear_conv_kernel_dim"])
            self.set("ssm.state_size", key_dim)
            self.set("ssm.group_count", keys)
            self.set("ssm.time_step_rank", values)
            self.set("ssm.inner_size", values * value_dim)
            self.set("full_attention_interval", self.get("full_attention_interval", default=4))
            part = self.rope().get("partial_rotary_factor", self.get("partial_rotary_factor", default=0.25))
            self.set("rope.dimension_count", int(self.head_dim * part))
        if self.arch in ("qwen35", "qwen35moe") and "mrope_section" not in self.rope():
            self.set("rope.dimension_sections", [11, 11, 10, 0])

    def set_lfm2(self):
        c, get = self.config, self.get
        if self.arch not in ("lfm2", "lfm2moe"):
            return
        attend = get("full_attn_idxs", default=range(self.layers))
        kinds = get("layer_types", default=["full_attention" if i in attend else "conv" for i in range(self.layers)])
        self.set("attention.head_count_kv", [0 if kind == "conv" else self.kv_heads for kind in kinds])
        self.set("shortconv.l_cache", c["conv_L_cache"])
        self.set("vocab_size", c["vocab_size"])
        if self.arch == "lfm2moe":
            self.set("leading_dense_block_count", c["num_dense_layers"])
            self.set("expert_gating_func", 2)
            if get("routed_scaling_factor", default=1.0) != 1.0:
                self.set("expert_weights_scale", float(c["routed_scaling_factor"]))
            return
        width = get("block_ff_dim", "intermediate_size")
        if get("block_auto_adjust_ff_dim", default=True):
            width = int(get("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
            width = -(-width // c["block_multiple_of"]) * c["block_multiple_of"]
        self.set("feed_forward_length", width)

    def set_gemma4(self):
        c, get = self.config, self.get
        if self.arch != "gemma4":
            return
        windows = [kind == "sliding_attention" for kind in c["layer_types"]]
        shared = get("num_kv_shared_layers", default=0)
        each = c.get("per_layer_config") or {}
        full_heads = [v.get("num_key_value_heads") for k, v in each.items() if not windows[int(k)]]
        full_heads = get("num_global_key_value_heads", default=full_heads[0] if full_heads else None)
        self.set("attention.shared_kv_layers", shared)
        self.set("embedding_length_per_layer_input", get("hidden_size_per_layer_input", default=0))
        self.set("attention.sliding_window_pattern", windows)
        for key, dim in (("", self.full_head_dim()), ("_swa", c["head_dim"])):
            self.set(f"attention.key_length{key}", dim)
            self.set(f"attention.value_length{key}", dim)
            self.set(f"rope.dimension_count{key}", dim)
        if c.get("use_double_wide_mlp"):
            width, first = c["intermediate_size"], self.layers - shared
            self.set("feed_forward_length", [width if i < first else 2 * width for i in range(self.layers)])
        if full_heads is not None:
            self.set("attention.head_count_kv", [self.kv_heads if window else full_heads for window in windows])

    def convert(self):
        self.put_tensors()
        self.set_common()
        self.set_scaling()
        self.set_own()
        self.set_recurrent()
        self.set_lfm2()
        self.set_gemma4()
        return self.keys, self.out


# ---- the file


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value):
    """The number of a value's type and its bytes, as the converter chooses them."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, str):
        return 8, text(value)
    kinds = [value_of(item) for item in value]
    kind = 8 if not kinds else 5 if kinds[0][0] == 4 else kinds[0][0]
    return 9, struct.pack("<IQ", kind, len(kinds)) + b"".join(data for _, data in kinds)


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write(path, keys, tensors):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        kind, data = value_of(value)
        head += text(key) + struct.pack("<I", kind) + data
    body = []
    at = 0
    for name, tensor in tensors.items():
        head += text(name) + struct.pack("<I", len(tensor.shape))
        head += struct.pack(f"<{len(tensor.shape)}Q", *reversed(tensor.shape)) + struct.pack("<IQ", tensor.type, at)
        body += [tensor.data, padding(len(tensor.data))]
        at += len(tensor.data) + len(body[-1])
    path.write_bytes(head + padding(len(head)) + b"".join(body))


def convert(folder, path, extra=None):
    """Writes the folder's text model to path. extra: more keys, such as a tokenizer's."""
    keys, tensors = Converter(Path(folder)).convert()
    write(Path(path), keys | (extra or {}), tensors)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    convert(options.folder, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
