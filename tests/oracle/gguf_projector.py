#!/usr/bin/env python3
"""Writes the vision tower of a checkpoint folder as a projector, the GGUF file that llama.cpp's converter makes with
--mmproj: the same names, orders, types and numbers.

    gguf_projector.py FOLDER FILE

Limits of pixels, sizes of tiles and windows of a tiny checkpoint are not those of the published ones, and the converter
writes only some of them: the others have keys of the same family here, which llama.cpp may not read
(image_min_pixels, image_max_pixels, preproc_image_size, preproc_min_tiles, preproc_max_tiles, window_size,
projector.scale_factor, spatial_merge_size).
Needs nothing beyond Python's standard library.
"""

import argparse
import json
import re
import struct
import sys
from pathlib import Path

from gguf import F16, Tensor, Unfit, read_safetensors, write

CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]


def read_json(path):
    return json.loads(path.read_text()) if path.exists() else {}


def f16(tensor):
    values = tensor.floats()
    return Tensor(F16, tensor.shape, struct.pack(f"<{len(values)}e", *values))


class Projector:
    """What every kind has in common; a kind below says what it has of its own."""

    kind = ""
    mixed = False  # the kind is in clip.vision.projector_type, since files may have an encoder of audio, too
    gelu = silu = False
    told = True  # keys tell how pictures are cut and resized; else only the folder's files do
    tower = r"(?:model\.)?(?:visual|vision_tower|vision_model)\.(?:vision_model\.)?"
    layer = r"(?:encoder\.layers|blocks)\.(\d+)\."
    layers = {
        "layer_norm1": "ln1",
        "layer_norm2": "ln2",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.out_proj": "attn_out",
        "mlp.fc1": "ffn_up",
        "mlp.fc2": "ffn_down",
    }
    others = {
        "embeddings.patch_embedding": "v.patch_embd",
        "embeddings.position_embedding": "v.position_embd",
        "post_layernorm": "v.post_ln",
    }
    joint = {}  # names of what joins the tower to the text model, without prefix
    joints = r"(?:model\.)?multi_modal_projector\."

    def __init__(self, folder):
        self.config = read_json(folder / "config.json")
        self.vision = dict(self.config["vision_config"])
        whole = read_json(folder / "processor_config.json")
        self.images = read_json(folder / "preprocessor_config.json") | whole | whole.get("image_processor", {})
        self.text = self.config | self.config.get("text_config", {})
        self.tensors = read_safetensors(folder / "model.safetensors")
        self.keys, self.out = {}, {}
        self.rename()

    def rename(self):
        """Gives numbers of the config the names that most have."""

    # ---- tensors

    def named(self, stem, prefix, table):
        return table.get(stem) and prefix + table[stem]

    def place(self, name):
        """The name in the file of a tensor without its suffix, and the suffix; None: it is not in it."""
        stem, dot, suffix = name.rpartition(".")
        tower = re.match(self.tower, name)
        inside = name[tower.end() :] if tower else ""
        layer = re.match(self.layer, inside)
        joint = re.match(self.joints, name)
        if layer:
            found = self.named(inside[layer.end() :].rpartition(".")[0], f"v.blk.{layer[1]}.", self.layers)
        elif tower and self.named(inside.rpartition(".")[0], "", self.others):
            found = self.named(inside.rpartition(".")[0], "", self.others)
        else:
            found = joint and self.named(name[joint.end() :].rpartition(".")[0], "", self.joint)
        return (found, dot + suffix) if found else (None, "")

    def put(self, name, tensor):
        """With the type that the converter gives it for BF16."""
        stored = len(tensor.shape) > 1 and name.endswith(".weight") and not name.endswith("_norm.weight")
        if not stored or ".position_embd." in name or ".patch_embd." in name or ".patch_merger." in name:
            tensor = tensor.f32()
        self.out[name] = tensor

    def take(self, name, tensor):
        found, suffix = self.place(name)
        if found:
            self.put(found + suffix, tensor)

    # ---- keys

    def set(self, key, value):
        if value is not None:
            self.keys[f"clip.vision.{key}"] = value

    def image_size(self):
        return self.vision["image_size"]

    def eps(self):
        return self.vision.get("layer_norm_eps", 1e-6)

    def set_common(self):
        v = self.vision
        self.keys |= {
            "general.architecture": "clip",
            "general.type": "mmproj",
            "general.file_type": 32,
            "clip.has_vision_encoder": True,
        }
        self.set("projection_dim", self.text["hidden_size"])
        self.set("image_size", self.image_size())
        self.set("patch_size", v["patch_size"])
        self.set("embedding_length", v["hidden_size"])
        self.set("feed_forward_length", v["intermediate_size"])
        self.set("block_count", v.get("num_hidden_layers", v.get("depth")))
        self.set("attention.head_count", v.get("num_attention_heads", v.get("num_heads")))
        self.set("image_mean", [float(x) for x in self.images.get("image_mean", [0, 0, 0])])
        self.set("image_std", [float(x) for x in self.images.get("image_std", [1, 1, 1])])
        self.keys["clip.vision.projector_type" if self.mixed else "clip.projector_type"] = self.kind
        self.set("attention.layer_norm_epsilon", self.eps())
        if self.gelu:
            self.keys["clip.use_gelu"] = True
        if self.silu:
            self.keys["clip.use_silu"] = True

    def set_own(self):
        """Keys of the kind."""

    def set_pixels(self):
        """Limits that the converter does not write for most kinds."""
        size = self.images.get("size", {})
        self.set("image_min_pixels", self.images.get("min_pixels", size.get("shortest_edge")))
        self.set("image_max_pixels", self.images.get("max_pixels", size.get("longest_edge")))

    def convert(self):
        for name, tensor in self.tensors.items():
            self.take(name, tensor)
        self.set_common()
        self.set_own()
        return self.keys, self.out


class Qwen2(Projector):
    kind = "qwen2vl_merger"
    layers = {
        "norm1": "ln1",
        "norm2": "ln2",
        "attn.q": "attn_q",
        "attn.k": "attn_k",
        "attn.v": "attn_v",
        "attn.qkv": "attn_qkv",
        "attn.proj": "attn_out",
        "mlp.fc1": "ffn_up",
        "mlp.fc2": "ffn_down",
        "mlp.linear_fc1": "ffn_up",
        "mlp.linear_fc2": "ffn_down",
        "mlp.up_proj": "ffn_up",
        "mlp.gate_proj": "ffn_gate",
        "mlp.down_proj": "ffn_down",
    }
    others = {
        "patch_embed.proj": "v.patch_embd",
        "merger.ln_q": "v.post_ln",
        "merger.mlp.0": "mm.0",
        "merger.mlp.2": "mm.2",
    }

    def rename(self):
        if "embed_dim" in self.vision:
            self.vision["intermediate_size"] = self.vision["hidden_size"]  # not the MLP's, but what the converter writes
            self.vision["hidden_size"] = self.vision["embed_dim"]

    def image_size(self):
        return 560

    def eps(self):
        return self.config.get("text_config", {}).get("rms_norm_eps", 1e-6)  # not the tower's

    def take(self, name, tensor):
        if name.endswith("patch_embed.proj.weight"):
            self.put_frames(tensor)
        elif ".attn.qkv." in name and self.kind in ("qwen2vl_merger", "qwen2.5vl_merger"):
            n = tensor.shape[0] // 3
            for i, part in enumerate("qkv"):
                super().take(name.replace("qkv", part), tensor.pick(range(i * n, (i + 1) * n)))
        else:
            super().take(name, tensor)

    def put_frames(self, tensor):
        """The two frames of the convolution are tensors of their own."""
        n, channels, frames, height, width = tensor.shape
        planes = Tensor(tensor.type, [n * channels * frames, height * width], tensor.data)
        for frame in range(frames):
            half = planes.pick([i * frames + frame for i in range(n * channels)])
            name = "v.patch_embd.weight" + (f".{frame}" if frame else "")
            self.put(name, Tensor(half.type, [n, channels, height, width], half.data))

    def set_own(self):
        self.set_pixels()


class Qwen25(Qwen2):
    kind = "qwen2.5vl_merger"
    silu = True

    def set_own(self):
        full = self.vision["fullatt_block_indexes"]
        period = full[0] + 1
        if full != [i for i in range(full[-1] + 1) if (i + 1) % period == 0]:
            raise Unfit("layers that see everything are not evenly spaced")
        if self.vision["tokens_per_second"] != 2:
            raise Unfit("a second of video is not 2 tokens long")
        self.set("n_wa_pattern", period)
        if self.vision["window_size"] != 112:
            self.set("window_size", self.vision["window_size"])
        self.set_pixels()


class Qwen3(Qwen2):
    kind = "qwen3vl_merger"
    gelu = True
    others = {
        "patch_embed.proj": "v.patch_embd",
        "pos_embed": "v.position_embd",
        "merger.norm": "v.post_ln",
        "merger.linear_fc1": "mm.0",
        "merger.linear_fc2": "mm.2",
    }

    def image_size(self):
        return int(self.vision["num_position_embeddings"] ** 0.5 * self.vision["patch_size"])

    def take(self, name, tensor):
        tap = re.search(r"deepstack_merger_list\.(\d+)\.(?:linear_)?(norm|fc1|fc2)(.*)", name)
        if tap:
            layer = self.vision["deepstack_visual_indexes"][int(tap[1])]
            self.put(f"v.deepstack.{layer}.{tap[2]}{tap[3]}", tensor)
        else:
            super().take(name, tensor)

    def set_own(self):
        self.set("spatial_merge_size", self.vision["spatial_merge_size"])
        taps = self.vision.get("deepstack_visual_indexes", [])
        self.set("is_deepstack_layers", [i in taps for i in range(self.vision["depth"])])
        self.set_pixels()


class Gemma3(Projector):
    kind = "gemma3"
    gelu = True
    joint = {"mm_soft_emb_norm": "mm.soft_emb_norm"}

    def take(self, name, tensor):
        if name.endswith("mm_input_projection_weight"):
            self.out["mm.input_projection.weight"] = f16(tensor)
        elif name.endswith("mm_soft_emb_norm.weight"):
            super().take(name, tensor.f32(lambda x: x + 1))
        else:
            super().take(name, tensor)

    def set_own(self):
        side = int(self.config["mm_tokens_per_image"] ** 0.5)
        factor = self.vision["image_size"] // self.vision["patch_size"] // side
        if factor != 4:
            self.set("projector.scale_factor", factor)


class Gemma4(Projector):
    kind = "gemma4v"
    mixed = True
    layers = {
        "input_layernorm": "ln1",
        "pre_feedforward_layernorm": "ln2",
        "post_attention_layernorm": "attn_post_norm",
        "post_feedforward_layernorm": "ffn_post_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_out",
        "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    others = {"patch_embedder.input_proj": "v.patch_embd"}
    joint = {"embedding_projection": "mm.input_projection"}
    joints = r"model\.embed_vision\."

    def image_size(self):
        return 224

    def take(self, name, tensor):
        if not tensor.shape:
            tensor = Tensor(tensor.type, [1], tensor.data)
        if name.endswith("patch_embedder.input_proj.weight"):
            tensor = colours_first(tensor, [3, self.vision["patch_size"], self.vision["patch_size"]])
        whole = re.search(r"\.(std_bias|std_scale)$", name)
        if whole:
            self.put(f"v.{whole[1]}", tensor)
        elif name.endswith("position_embedding_table"):
            self.put("v.position_embd.weight", tensor)
        else:
            super().take(name.replace(".linear.weight", ".weight"), tensor)

    def set_own(self):
        side = self.vision["patch_size"] * self.vision["pooling_kernel_size"]
        if self.vision["pooling_kernel_size"] != 3:
            self.set("projector.scale_factor", self.vision["pooling_kernel_size"])
        self.set("image_max_pixels", self.images["max_soft_tokens"] * side * side)


def colours_first(tensor, shape):
    """Pixels with colours first, which the checkpoint has last; shape: of a row."""
    pixels = tensor.shape[-1]
    order = [i % (pixels // 3) * 3 + i // (pixels // 3) for i in range(pixels)]
    if len(tensor.shape) == 1:
        return tensor.pick(order)
    return Tensor(tensor.type, [tensor.shape[0], *shape], tensor.columns(order, 1).data)


class Gemma4Unified(Gemma4):
    kind = "gemma4uv"
    others = {"patch_dense": "v.patch_embd", "patch_ln1": "v.patch_norm.1", "patch_ln2": "v.patch_norm.2"}
    tower = r"model\.vision_embedder\."

    def rename(self):
        self.vision |= {"hidden_size": self.vision["mm_embed_dim"], "intermediate_size": 0, "num_hidden_layers": 0}
        self.vision["num_attention_heads"] = 0

    def take(self, name, tensor):
        if name.endswith("pos_embedding"):
            places, axes, hidden = tensor.shape
            rows = Tensor(tensor.type, [places * axes, hidden], tensor.data)
            swapped = rows.pick([i * axes + axis for axis in range(axes) for i in range(places)])
            self.put("v.position_embd.weight", Tensor(tensor.type, [axes, places, hidden], swapped.data))
        elif ".pos_norm." in name:
            self.put("v.patch_norm.3." + name.rpartition(".")[2], tensor)
        elif re.search(r"patch_(dense\.weight|ln1\.)", name):
            super().take(name, colours_first(tensor, tensor.shape[-1:]))
        else:
            super().take(name, tensor)


class Pixtral(Projector):
    kind = "pixtral"
    layer = r"transformer\.layers\.(\d+)\."
    layers = {
        "attention_norm": "ln1",
        "ffn_norm": "ln2",
        "attention.q_proj": "attn_q",
        "attention.k_proj": "attn_k",
        "attention.v_proj": "attn_v",
        "attention.o_proj": "attn_out",
        "feed_forward.gate_proj": "ffn_gate",
        "feed_forward.up_proj": "ffn_up",
        "feed_forward.down_proj": "ffn_down",
    }
    others = {"patch_conv": "v.patch_embd", "ln_pre": "v.pre_ln"}
    joint = {
        "norm": "mm.input_norm",
        "patch_merger.merging_layer": "mm.patch_merger",
        "linear_1": "mm.1",
        "linear_2": "mm.2",
    }

    def rename(self):
        self.silu = self.vision["hidden_act"] == "silu"
        self.gelu = not self.silu

    def eps(self):
        return 1e-5

    def take(self, name, tensor):
        if re.search(r"\.[qk]_proj\.weight$", name) and re.match(self.tower, name):
            heads = self.vision["num_attention_heads"]
            dim = tensor.shape[0] // heads
            half = range(dim // 2)
            tensor = tensor.pick([h * dim + s * dim // 2 + i for h in range(heads) for i in half for s in (0, 1)])
        super().take(name, tensor)

    def set_own(self):
        self.set("spatial_merge_size", self.config["spatial_merge_size"])
        longest = self.images["size"]["longest_edge"]
        if longest != self.vision["image_size"]:
            self.set("preproc_image_size", longest)


class Idefics3(Projector):
    kind = "idefics3"
    gelu = True
    joint = {"modality_projection.proj": "mm.model.fc"}
    joints = r"model\.connector\."

    def set_own(self):
        self.set("projector.scale_factor", self.config["scale_factor"])
        self.set("preproc_image_size", self.images["size"]["longest_edge"])


class InternVL(Projector):
    kind = "internvl"
    gelu = True
    layer = r"encoder\.layer\.(\d+)\."
    layers = {
        "layernorm_before": "ln1",
        "layernorm_after": "ln2",
        "attention.q_proj": "attn_q",
        "attention.k_proj": "attn_k",
        "attention.v_proj": "attn_v",
        "attention.projection_layer": "attn_out",
        "attention.q_norm": "attn_q_norm",
        "attention.k_norm": "attn_k_norm",
        "mlp.fc1": "ffn_up",
        "mlp.fc2": "ffn_down",
    }
    others = {"embeddings.patch_embeddings.projection": "v.patch_embd", "layernorm": "v.post_ln"}
    joint = {"layer_norm": "mm.model.mlp.0", "linear_1": "mm.model.mlp.1", "linear_2": "mm.model.mlp.3"}

    def rename(self):
        for key in ("image_size", "patch_size"):
            value = self.vision[key]
            self.vision[key] = value[0] if isinstance(value, list) else value

    def take(self, name, tensor):
        scale = re.search(r"layer\.(\d+)\.lambda_([12])$", name)
        if scale:
            self.put(f"v.blk.{scale[1]}.ls{scale[2]}.weight", tensor)
        elif name.endswith("embeddings.cls_token"):
            self.put("v.class_embd", tensor)
        elif name.endswith("embeddings.position_embeddings"):
            self.put("v.position_embd.weight", tensor)
        else:
            super().take(name, tensor)

    def set_own(self):
        self.set("projector.scale_factor", int(1 / self.config["downsample_ratio"]))
        self.set("preproc_min_tiles", self.images["min_patches"])
        self.set("preproc_max_tiles", self.images["max_patches"])
        self.told = self.images["size"]["height"] == self.vision["image_size"]


class Lfm2(Projector):
    kind = "lfm2"
    gelu = True
    joint = {"layer_norm": "mm.input_norm", "linear_1": "mm.1", "linear_2": "mm.2"}

    def image_size(self):
        return 256

    def take(self, name, tensor):
        if name.endswith("patch_embedding.weight"):
            tensor = colours_first(tensor, [3, self.vision["patch_size"], self.vision["patch_size"]])
        super().take(name, tensor)

    def set_own(self):
        token = (self.vision["patch_size"] * self.config["downsample_factor"]) ** 2
        self.told = self.images["use_thumbnail"] and self.images["max_pixels_tolerance"] == 2
        self.set("projector.scale_factor", self.config["downsample_factor"])
        self.set("image_min_pixels", self.images["min_image_tokens"] * token)
        self.set("image_max_pixels", self.images["max_image_tokens"] * token)
        self.set("preproc_image_size", self.images["tile_size"])
        self.set("preproc_min_tiles", self.images["min_tiles"])
        self.set("preproc_max_tiles", self.images["max_tiles"])


class Glm(Qwen2):
    kind = "glm4v"
    silu = True
    layers = Qwen2.layers | {"attn.q_norm": "attn_q_norm", "attn.k_norm": "attn_k_norm"}
    others = {
        "patch_embed.proj": "v.patch_embd",
        "post_conv_layernorm": "v.norm_embd",
        "embeddings.position_embedding": "v.position_embd",
        "post_layernorm": "v.post_ln",
        "downsample": "mm.patch_merger",
        "merger.proj": "mm.model.fc",
        "merger.post_projection_norm": "mm.post_norm",
        "merger.gate_proj": "mm.gate",
        "merger.up_proj": "mm.up",
        "merger.down_proj": "mm.down",
    }

    def image_size(self):
        return self.vision["image_size"]

    def eps(self):
        return self.vision["rms_norm_eps"]


class PaddleOCR(Projector):
    kind = "paddleocr"
    gelu = True
    joint = {"pre_norm": "mm.input_norm", "linear_1": "mm.1", "linear_2": "mm.2"}
    joints = r"mlp_AR\."

    def image_size(self):
        return int(self.images["max_pixels"] ** 0.5)

    def set_own(self):
        self.set_pixels()


class MiniCPM(Projector):
    kind = "minicpmv4_6"
    gelu = True
    others = Projector.others | {
        "vit_merger.layer_norm1": "v.vit_merger.ln1",
        "vit_merger.self_attn.q_proj": "v.vit_merger.attn_q",
        "vit_merger.self_attn.k_proj": "v.vit_merger.attn_k",
        "vit_merger.self_attn.v_proj": "v.vit_merger.attn_v",
        "vit_merger.self_attn.out_proj": "v.vit_merger.attn_out",
        "vit_merger.pre_norm": "v.vit_merger.ds_ln",
        "vit_merger.linear_1": "v.vit_merger.ds_ffn_up",
        "vit_merger.linear_2": "v.vit_merger.ds_ffn_down",
    }
    joint = {"pre_norm": "mm.input_norm", "linear_1": "mm.up", "linear_2": "mm.down"}
    joints = r"model\.merger\.mlp\.0\."

    def image_size(self):
        return self.images["scale_resolution"]

    def set_own(self):
        self.set("projector.scale_factor", 2 if self.config.get("downsample_mode") == "4x" else 4)
        self.set("wa_layer_indexes", [self.config["insert_layer_id"]])
        self.set("preproc_max_tiles", self.images["max_slice_nums"])


KINDS = {
    "qwen2_vl": Qwen2,
    "qwen2_5_vl": Qwen25,
    "qwen3_vl": Qwen3,
    "qwen3_vl_moe": Qwen3,
    "qwen3_5": Qwen3,
    "qwen3_5_moe": Qwen3,
    "gemma3": Gemma3,
    "gemma4": Gemma4,
    "gemma4_unified": Gemma4Unified,
    "mistral3": Pixtral,
    "smolvlm": Idefics3,
    "internvl": InternVL,
    "lfm2_vl": Lfm2,
    "glm4v": Glm,
    "glm46v": Glm,
    "glm4v_moe": Glm,
    "glm_ocr": Glm,
    "paddleocr_vl": PaddleOCR,
    "minicpmv4_6": MiniCPM,
}


def kind_of(folder):
    return KINDS.get(read_json(folder / "config.json")["model_type"])


def convert(folder, path):
    """Writes the folder's tower to path. Returns whether its keys tell how pictures are cut and resized."""
    projector = kind_of(Path(folder))(Path(folder))
    write(Path(path), *projector.convert())
    return projector.told


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    convert(options.folder, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
