"""How a model's tensors are laid out in files: Hugging Face's ways and MLX's.

`store` writes a folder; `restore` reads it back to float32 under the names transformers uses. The oracle runs what
`restore` returns, so it sees exactly what is on disk and nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import numpy as np

from . import numbers, packed, safetensors
from .safetensors import Stored, floats, rounder

FP8_BLOCK = 128


@dataclass(frozen=True)
class Quantisation:
    """One module's MLX quantisation; affine unless mode says otherwise."""

    bits: int = 4
    group: int = 64
    mode: str = "affine"

    def entry(self, with_mode):
        entry = {"group_size": self.group, "bits": self.bits}
        return {**entry, "mode": self.mode} if with_mode or self.mode != "affine" else entry


@dataclass(frozen=True)
class Layout:
    dtype: str = "BF16"  # of everything that is not quantised, and of affine scales and biases
    shards: int = 1
    experts: str = "split"  # split: one by one; fused: gate_up and down stacked; transposed: fused, [E, in, out]
    store_tied: bool = False  # a head that is tied is stored all the same, as some savers do
    fp8: bool = False
    fp8_scale: str = "BF16"
    fp8_whole: bool = False  # one scale for a matrix, as Mistral publishes, else one for each block
    mxfp4: bool = False  # experts in blocks, as gpt-oss is published
    mlx: Quantisation | None = None
    packed: packed.Packed | None = None  # another quantiser's layout
    plain: str = r"$^"  # of that: modules that stay as they are
    overrides: dict = field(default_factory=dict)  # module name pattern -> Quantisation or False
    nested: bool = False  # as the text model of a multimodal one
    lifts: bool = True  # MLX: from latents to keys and to values by two matrices; older conversions have the one
    name_mode: bool = True  # write "mode" into the quantization entry; older conversions have none

    def for_transformers(self):
        """Whether transformers reads it alike. Not so block FP8: it spreads the scales evenly over a partial block; nor
        other quantisers' layouts, whose libraries round values to the type of their scales."""
        return not self.mlx and not self.fp8 and not self.packed and self.experts != "transposed"

    def describe(self):
        if self.mlx:
            text = f"mlx {self.mlx.mode} {self.mlx.bits}-bit group {self.mlx.group} {self.dtype.lower()}"
            return text + (" mixed" if self.overrides else "")
        if self.fp8:
            return f"hf fp8 {self.fp8_scale.lower()} {'scale a matrix' if self.fp8_whole else 'scales'}"
        if self.mxfp4:
            return "hf mxfp4 experts"
        if self.packed:
            return self.packed.describe()
        text = f"hf {self.dtype.lower()}"
        text += f" experts {self.experts}" if self.experts != "split" else ""
        return text + (f" {self.shards} shards" if self.shards > 1 else "")


# --- names ----------------------------------------------------------------------------------------------------------
# In memory, as in transformers, a layer's experts are two tensors: experts.gate_up_proj [E, 2I, H], experts.down_proj.


def _halves(gate_up):
    inter = gate_up.shape[1] // 2
    return gate_up[:, :inter], gate_up[:, inter:]


def _unstack(name, tensor):
    """A stacked expert tensor as the tensors that checkpoints publish: per projection, [E, out, in]."""
    prefix = name.rsplit(".", 1)[0]
    if name.endswith("gate_up_proj"):
        gate, up = _halves(tensor)
        return prefix, {"gate_proj": gate, "up_proj": up}
    return prefix, {name.rsplit(".", 1)[1]: tensor}


def _is_experts(name):
    return re.search(r"\.experts\.(gate_up|up|down)_proj(_bias)?$", name) is not None


def _stacked(prefix):
    """What MLX calls the module of a layer's experts, which stand in the MLP or, Gemma 4's, beside it."""
    if prefix.endswith((".mlp.experts", ".feed_forward.experts", ".block_sparse_moe.experts", ".mixer.experts")):
        return prefix.removesuffix("experts") + "switch_mlp"
    return f"{prefix}.switch_glu"


# LFM2's experts have names of their own, as its MLPs have; MLX gives both the usual ones. Mixtral's and MiniMax's, too.
LETTERS = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}


UNGATED = {"up_proj": "fc1", "down_proj": "fc2"}  # of MLX's Nemotron


def _switch_part(prefix, part):
    return UNGATED[part] if prefix.endswith(".mixer.experts") else part


def _granite_to_mlx(tensors):
    """Gate and up of Granite's experts apart; of its MLP too, where that is alone."""
    out, experts = {}, any(".block_sparse_moe." in name for name in tensors)
    for name, tensor in tensors.items():
        layer = name.split(".block_sparse_moe.")[0].split(".shared_mlp.")[0]
        if name.endswith("block_sparse_moe.input_linear.weight"):
            gate, up = _halves(tensor)
            out.update({f"{layer}.block_sparse_moe.switch_mlp.{part}.weight": t for part, t in (("gate_proj", gate), ("up_proj", up))})
        elif name.endswith("block_sparse_moe.output_linear.weight"):
            out[f"{layer}.block_sparse_moe.switch_mlp.down_proj.weight"] = tensor
        elif name.endswith("shared_mlp.input_linear.weight") and not experts:
            gate, up = np.split(tensor, 2)
            out.update({f"{layer}.mlp.{part}.weight": t for part, t in (("gate_proj", gate), ("up_proj", up))})
        elif name.endswith("shared_mlp.output_linear.weight") and not experts:
            out[f"{layer}.mlp.down_proj.weight"] = tensor
        else:
            out[name] = tensor
    return out


def _granite_from_mlx(name, tensors):
    """The tensor of that name, put together; None: it is none of these."""
    for joined, module in (("block_sparse_moe.", "block_sparse_moe.switch_mlp."), ("shared_mlp.", "mlp.")):
        stem = name.split(joined)[0] + module
        if name.endswith(joined + "output_linear.weight"):
            return tensors.get(stem + "down_proj.weight")
        if name.endswith(joined + "input_linear.weight") and stem + "gate_proj.weight" in tensors:
            parts = [tensors[f"{stem}{part}.weight"] for part in ("gate_proj", "up_proj")]
            return np.concatenate(parts, parts[0].ndim - 2)
    return None


def _part(prefix, part):
    return LETTERS[part] if prefix.endswith((".feed_forward.experts", ".block_sparse_moe.experts")) else part


def _usual_mlp(name):
    """The MLPs of a model that has experts, too."""
    for usual, letters in LETTERS.items():
        name = name.replace(f".feed_forward.{letters}.", f".feed_forward.{usual}.")
    return name


def _of_hunyuan(name):
    for ours, theirs in ((".gate.weight", ".router.gate.weight"), (".e_score_correction_bias", ".expert_bias"), (".shared_experts.", ".shared_mlp.")):
        name = name.replace(".mlp" + ours, ".mlp" + theirs)
    return name


def _modules(names, config):
    """Names in memory, by those of published files, where modules are called otherwise there."""
    kind = config.get("model_type")
    if kind in ("mixtral", "minimax_m2"):
        return {name.replace(".mlp.", ".block_sparse_moe."): name for name in names}
    if kind == "ernie4_5_moe":
        return {name.replace(".gate.moe_statics.", ".moe_statics."): name for name in names}
    if kind == "nemotron_h":
        return {name.replace("model.", "backbone.", 1): name for name in names}
    if kind == "hy_v3":
        return {_of_hunyuan(name): name for name in names}
    if kind == "exaone_moe":
        return {name.replace(".mlp.gate.e_score", ".mlp.e_score"): name for name in names}
    return {name: name for name in names}


# Latents become keys and values of all heads by one matrix; MLX has two, by heads, that of keys transposed.
LIFTS = (".kv_b_proj.weight", ".embed_q.weight", ".unembed_out.weight")


def _heads_apart(name, tensor, config):
    key, value = config["qk_nope_head_dim"], config["v_head_dim"]
    heads = tensor.reshape(-1, key + value, tensor.shape[1])
    prefix = name.removesuffix(LIFTS[0])
    return {prefix + LIFTS[1]: heads[:, :key].swapaxes(1, 2), prefix + LIFTS[2]: heads[:, key:]}


def _heads_together(tensors):
    out = dict(tensors)
    for name in tensors:
        if name.endswith(LIFTS[1]):
            prefix = name.removesuffix(LIFTS[1])
            keys, values = out.pop(name).swapaxes(1, 2), out.pop(prefix + LIFTS[2])
            out[prefix + LIFTS[0]] = np.concatenate([keys, values], 1).reshape(-1, values.shape[2])
    return out


# gpt-oss has them as [E, in, out] with gate and up by turns, and biases: experts.gate_up_proj, experts.gate_up_proj_bias.


def _is_gpt_oss(names):
    return any(name.endswith("gate_up_proj_bias") for name in names)


def _gpt_oss_to_mlx(name, tensor):
    """Gate and up apart, out before in."""
    prefix, part = name.rsplit(".", 1)
    kind = "bias" if part.endswith("_bias") else "weight"
    tensor = tensor if kind == "bias" else tensor.swapaxes(1, 2)
    if part.startswith("down_proj"):
        return {f"{prefix}.down_proj.{kind}": tensor}
    return {f"{prefix}.gate_proj.{kind}": tensor[:, ::2], f"{prefix}.up_proj.{kind}": tensor[:, 1::2]}


def _gpt_oss_from_mlx(name, tensors):
    prefix, part = name.rsplit(".", 1)
    kind = "bias" if part.endswith("_bias") else "weight"
    if part.startswith("down_proj"):
        tensor = tensors[f"{prefix}.down_proj.{kind}"]
    else:
        pair = [tensors[f"{prefix}.{half}_proj.{kind}"] for half in ("gate", "up")]
        tensor = np.stack(pair, 2).reshape(len(pair[0]), -1, *pair[0].shape[2:])
    return tensor if kind == "bias" else tensor.swapaxes(1, 2)


def _encode_blocks(name, tensor):
    """[E, in, out] as blocks of 32 inputs, two to a byte, and their exponents."""
    parts = numbers.micro_quantise(np.ascontiguousarray(tensor.swapaxes(1, 2)), "mxfp4")
    scales = parts["scales"]
    blocks = parts["weight"].view(np.uint8).reshape(*scales.shape, 16)
    return {f"{name}_blocks": Stored("U8", blocks), f"{name}_scales": Stored("U8", scales)}


def _decode_blocks(blocks, scales):
    words = np.ascontiguousarray(blocks).reshape(*scales.shape[:2], -1).view("<u4")
    return numbers.micro_dequantise(words, scales, "mxfp4").swapaxes(1, 2)


def _has_one(name):
    """Norms that a conversion to MLX adds the 1 to, where it has turned convolutions too."""
    return name.endswith("norm.weight") and "linear_attn" not in name


CONVS = ("conv1d.weight", "conv.conv.weight")


def _is_recurrent(names):
    return any(name.endswith(CONVS) for name in names)


def _is_short(names):
    """Convolutions and no more, or Mamba2; their norms have no 1 to be added."""
    return any(name.endswith(("conv.conv.weight", ".D")) for name in names)


def _to_mlx(tensors):
    """Recurrent models as MLX stores them."""
    out = {}
    one = 0 if _is_short(tensors) else 1
    for name, tensor in tensors.items():
        if name.endswith(CONVS):
            tensor = tensor.swapaxes(1, 2)
        out[name] = tensor + one if _has_one(name) else tensor
    return out


def _from_mlx(tensors):
    turned = {name: tensor for name, tensor in tensors.items() if name.endswith(CONVS)}
    if not any(tensor.shape[2] == 1 for tensor in turned.values()):
        return tensors
    one = 0 if _is_short(tensors) else 1
    out = {name: tensor - one if _has_one(name) else tensor for name, tensor in tensors.items()}
    return {**out, **{name: tensor.swapaxes(1, 2) for name, tensor in turned.items()}}


def _nest(name, layout):
    """model.layers... within a multimodal model."""
    if not layout.nested:
        return name
    if layout.mlx:
        return "language_model." + name
    return name.replace("model.", "model.language_model.", 1) if name.startswith("model.") else name


def _unnest(name):
    for prefix, plain in (("model.language_model.", "model."), ("language_model.", "")):
        if name.startswith(prefix):
            return plain + name.removeprefix(prefix)
    return name


def _rename(tensors, layout, config):
    """Names and shapes as the layout writes them, still float32."""
    out = {}
    if layout.mlx and _is_recurrent(tensors):
        tensors = _to_mlx(tensors)
    woven = _is_gpt_oss(tensors)
    mixed = any(".feed_forward.experts." in name for name in tensors)
    for name, tensor in tensors.items():
        name = _nest(_usual_mlp(name) if layout.mlx and mixed else name, layout)
        if layout.mlx and layout.lifts and name.endswith(LIFTS[0]):
            out.update(_heads_apart(name, tensor, config))
        elif not _is_experts(name) or woven and not layout.mlx:
            out[name] = tensor
        elif layout.mlx and config.get("model_type") == "llama4_text":  # in memory, inputs come before outputs
            prefix, parts = _unstack(name, tensor.swapaxes(1, 2))
            out.update({f"{prefix}.{part}.weight": value for part, value in parts.items()})
        elif woven:
            out.update(_gpt_oss_to_mlx(name, tensor))
        elif layout.mlx:
            prefix, parts = _unstack(name, tensor)
            for part, value in parts.items():
                out[f"{_stacked(prefix)}.{_switch_part(prefix, part)}.weight"] = value
        elif layout.experts == "split":
            prefix, parts = _unstack(name, tensor)
            for part, value in parts.items():
                named = _part(prefix, part)
                out.update({f"{prefix}.{i}.{named}.weight": expert for i, expert in enumerate(value)})
        else:
            out[name] = tensor.swapaxes(1, 2) if layout.experts == "transposed" else tensor
    return _granite_to_mlx(out) if layout.mlx else out


def _rename_back(tensors, shapes):
    """The inverse of _rename, whatever the layout was: decided by the names and shapes found."""
    out = {}
    tensors = _heads_together(_from_mlx({_unnest(name): tensor for name, tensor in tensors.items()}))
    for name, shape in shapes.items():
        found = name if name in tensors else _usual_mlp(name)
        if found in tensors:
            tensor = tensors[found]
            out[name] = tensor if tensor.shape == shape else tensor.swapaxes(1, 2)
            continue
        joined = _granite_from_mlx(name, tensors)
        if joined is not None:
            out[name] = joined
            continue
        if _is_gpt_oss(shapes):
            out[name] = _gpt_oss_from_mlx(name, tensors)
            continue
        prefix, part = name.rsplit(".", 1)
        if f"{prefix}.down_proj.weight" in tensors:
            parts = ("gate_proj", "up_proj") if part == "gate_up_proj" else (part,)
            out[name] = np.concatenate([tensors[f"{prefix}.{p}.weight"] for p in parts], 1).swapaxes(1, 2)
            continue
        switch = _stacked(prefix)

        def stacked(projection):
            switched = f"{switch}.{_switch_part(prefix, projection)}.weight"
            if switched in tensors:
                return tensors[switched]
            named = _part(prefix, projection)
            return np.stack([tensors[f"{prefix}.{i}.{named}.weight"] for i in range(shape[0])])

        if part == "gate_up_proj":
            out[name] = np.concatenate([stacked("gate_proj"), stacked("up_proj")], 1)
        else:
            out[name] = stacked(part)
    for name, shape in shapes.items():
        assert out[name].shape == shape, (name, out[name].shape, shape)
    return out


# --- encoding -------------------------------------------------------------------------------------------------------


def _mlx_override(module, width, layout):
    """What config.json says about this module alone: a Quantisation, False, or None for nothing."""
    for pattern, choice in layout.overrides.items():
        if re.fullmatch(pattern, module):
            return choice if choice and width % choice.group == 0 else False
    return None


def _mlx_choice(module, width, layout):
    """The Quantisation of a module, or None where it stays as it is."""
    override = _mlx_override(module, width, layout)
    if override is not None:
        return override or None
    return layout.mlx if width % layout.mlx.group == 0 else None


def _is_linear(name, tensor):
    return name.endswith(".weight") and tensor.ndim >= 2 and not name.endswith(CONVS)


def _encode_mlx(name, tensor, layout):
    module = name.removesuffix(".weight")
    choice = _mlx_choice(module, tensor.shape[-1], layout) if _is_linear(name, tensor) else None
    if choice is None:
        return {name: floats(tensor, layout.dtype)}
    if choice.mode != "affine":
        parts = numbers.micro_quantise(tensor, choice.mode)
        return {f"{module}.weight": Stored("U32", parts["weight"]), f"{module}.scales": Stored("U8", parts["scales"])}
    parts = numbers.affine_quantise(tensor, choice.bits, choice.group, rounder(layout.dtype))
    return {
        f"{module}.weight": Stored("U32", parts["weight"]),
        f"{module}.scales": floats(parts["scales"], layout.dtype),
        f"{module}.biases": floats(parts["biases"], layout.dtype),
    }


def _encode_fp8(name, tensor, layout):
    if not name.endswith(("_proj.weight", "_mqa.weight", ".w1.weight", ".w2.weight", ".w3.weight")):  # embeddings, head, norms and routers stay
        return {name: floats(tensor, layout.dtype)}
    if layout.fp8_whole:
        parts = numbers.fp8_quantise(tensor, max(tensor.shape), rounder(layout.fp8_scale))
        parts["weight_scale_inv"] = parts["weight_scale_inv"].reshape(())
    else:
        parts = numbers.fp8_quantise(tensor, FP8_BLOCK, rounder(layout.fp8_scale))
    stored = {
        name: Stored("F8_E4M3", parts["weight"]),
        name + "_scale_inv": floats(parts["weight_scale_inv"], layout.fp8_scale),
    }
    if layout.fp8_whole:  # for who rounds activations as well
        stored[name.removesuffix("weight") + "activation_scale"] = floats(np.float32(0.01), layout.fp8_scale)
    return stored


PACKED = re.compile(r".*(_proj|_with_mqa|in_proj_qkv|in_proj_z|in_proj_qkvz)\.weight")


def _is_packed(name, tensor, layout):
    """Embeddings, head, norms, routers and what the layout leaves out stay, and what it has no room for."""
    named = layout.packed and PACKED.fullmatch(name) and not re.search(layout.plain, name)
    return bool(named and tensor.ndim == 2 and packed.has_room(layout.packed, tensor.shape))


def _encode(name, tensor, layout):
    if name.endswith("A_log"):
        return {name: floats(tensor, "F32")}
    if layout.mlx:
        return _encode_mlx(name, tensor, layout)
    if _is_packed(name, tensor, layout):
        seed = sum(name.replace("up_proj", "gate_proj").encode())
        return packed.encode(name.removesuffix(".weight"), tensor, layout.packed, seed)
    if layout.fp8:
        return _encode_fp8(name, tensor, layout)
    if layout.mxfp4 and name.endswith(("gate_up_proj", "down_proj")):
        return _encode_blocks(name, tensor)
    return {name: floats(tensor, layout.dtype)}


def _quantization_entry(tensors, layout):
    """config.json's `quantization`: the global values, then every module that differs."""
    entry = layout.mlx.entry(layout.name_mode)
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        override = _mlx_override(module, tensor.shape[-1], layout) if _is_linear(name, tensor) else None
        if override is not None:
            entry[module] = override.entry(False) if override else False
    return entry


def _config_with_layout(config, tensors, layout):
    config = dict(config)
    if layout.mlx:
        config["quantization"] = config["quantization_config"] = _quantization_entry(tensors, layout)
    elif layout.packed:
        plain = [name for name, t in tensors.items() if _is_linear(name, t) and not _is_packed(name, t, layout)]
        plain = [name.removesuffix(".weight") for name in plain if "embed" not in name]
        config["quantization_config"] = packed.entry(layout.packed, {*plain, "lm_head"})
    elif layout.mxfp4:
        kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
        config["quantization_config"] = {"modules_to_not_convert": kept, "quant_method": "mxfp4"}
    elif layout.fp8_whole:
        config["quantization_config"] = {
            "activation_scheme": "static",
            "dequantize": False,
            "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"],
            "quant_method": "fp8",
            "weight_block_size": None,
        }
    elif layout.fp8:
        config["quantization_config"] = {
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "quant_method": "fp8",
            "weight_block_size": [FP8_BLOCK, FP8_BLOCK],
        }
    return config


# --- folders --------------------------------------------------------------------------------------------------------


def _write_shards(folder, stored, layout, metadata):
    names = sorted(stored)
    bounds = [len(names) * i // layout.shards for i in range(layout.shards + 1)]
    index = {}
    for i in range(layout.shards):
        file = f"model-{i + 1:05d}-of-{layout.shards:05d}.safetensors"
        part = {name: stored[name] for name in names[bounds[i] : bounds[i + 1]]}
        safetensors.write(folder / file, part, metadata)
        index.update(dict.fromkeys(part, file))
    total = sum(t.bits.nbytes for t in stored.values())
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2)
    (folder / "model.safetensors.index.json").write_text(text + "\n")


def store(folder, config, tensors, layout):
    """tensors: float32 by transformers' names; config: config.json without quantisation."""
    inner = config.get("text_config", config)
    renamed = _rename({name: tensors[of] for name, of in _modules(tensors, config).items()}, layout, inner)
    if layout.store_tied and config.get("tie_word_embeddings", config.get("tie_embedding")):
        renamed[_nest("lm_head.weight", layout)] = renamed[_nest("model.embed_tokens.weight", layout)]
    stored = {}
    for name, tensor in renamed.items():
        stored.update(_encode(name, tensor, layout))
    metadata = {"format": "mlx" if layout.mlx else "pt"}
    if layout.shards > 1:
        _write_shards(folder, stored, layout, metadata)
    else:
        safetensors.write(folder / "model.safetensors", stored, metadata)
    config = _config_with_layout(config, renamed, layout)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def _decode_mlx(module, parts, quantization):
    """Parameters from config.json as MLX looks them up: the module's own entry whole, else the global one."""
    entry = quantization.get(module, quantization)
    mode = entry.get("mode", "affine")
    weight, scales = parts[f"{module}.weight"].values(), parts[f"{module}.scales"].values()
    if mode != "affine":
        return numbers.micro_dequantise(weight, scales, mode)
    biases = parts[f"{module}.biases"].values()
    return numbers.affine_dequantise(weight, scales, biases, entry["bits"], entry["group_size"])


def _owners(name):
    """The modules whose names a tensor's name begins with."""
    parts = name.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def _read(folder):
    stored = {}
    for file in sorted(folder.glob("model*.safetensors")):
        stored.update(safetensors.read(file))
    return stored


def confirm(folder, layout):
    """compressed-tensors must read its layouts as `restore` does; not so blocks, of which it divides the last unevenly."""
    entry = json.loads((folder / "config.json").read_text()).get("quantization_config", {})
    if layout.packed and not layout.packed.block and entry["quant_method"] == "compressed-tensors":
        packed.confirm(_read(folder), entry)


def restore(folder, shapes):
    """The folder's tensors as float32, under the names and shapes given."""
    config = json.loads((folder / "config.json").read_text())
    stored = _read(folder)
    values = {}
    entry = config.get("quantization_config", {})
    modules = () if "quantization" in config else packed.modules(stored)
    for module in modules:
        values[f"{module}.weight"] = packed.decode(module, stored, entry)
    for name, tensor in stored.items():
        module = name.removesuffix(".weight")
        if any(name.startswith(module + ".") and not name.endswith(".bias") for module in _owners(name) if module in modules):
            continue
        if f"{module}.scales" in stored and name.endswith(".weight"):
            values[name] = _decode_mlx(module, stored, config["quantization"])
        elif name.endswith("_blocks"):
            module = name.removesuffix("_blocks")
            values[module] = _decode_blocks(tensor.bits, stored[f"{module}_scales"].bits)
        elif f"{name}_scale_inv" in stored:
            scale = stored[f"{name}_scale_inv"].values()
            block = FP8_BLOCK if scale.ndim else max(tensor.bits.shape)
            values[name] = numbers.fp8_dequantise(tensor.bits, scale.reshape(scale.shape or (1, 1)), block)
        elif not name.endswith((".scales", ".biases", "_scale_inv", "_scales", ".activation_scale")):
            values[name] = tensor.values()
    modules = _modules(shapes, config)
    found = _rename_back(values, {name: shapes[of] for name, of in modules.items()})
    return {of: found[name] for name, of in modules.items()}
