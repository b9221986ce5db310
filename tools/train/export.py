"""Writes a trained model as published checkpoints are: a bf16 folder, and MLX's 4-bit layout. Reads both."""

import json
import shutil
from pathlib import Path

import numpy as np
import torch

from net import Embedding, Linear, Norm
from quantise import packed, unpacked
from shape import MAX_PIXELS, MIN_PIXELS, config

HERE = Path(__file__).resolve().parent


def checkpoint(box, dtype=torch.bfloat16):
    """Tensors under the published names; what decays is kept in fp32."""
    return {
        k: v.detach().to(torch.float32 if k.endswith("A_log") else dtype).cpu().contiguous()
        for k, v in box.state_dict().items()
    }


def mlx_name(name):
    return name.replace("model.language_model.", "language_model.model.").replace("model.visual.", "vision_tower.")


def mlx(box):
    """MLX's names and layouts: rms norms hold 1 + w, kernels have their channels last, linears of the text layers are
    packed in 4 bits and those of the drafter in 8; the tower stays as it is."""
    kinds = dict(box.named_modules())
    tensors, other = {}, {}
    for name, value in checkpoint(box, torch.float32).items():
        module, _, part = name.rpartition(".")
        new = mlx_name(name)
        text = not name.startswith("model.visual.")
        if text and isinstance(kinds[module], (Linear, Embedding)) and value.shape[1] % 64 == 0:
            bits = 8 if name.startswith("mtp.") else 4
            stem = new.removesuffix(".weight")
            for suffix, tensor in zip((".weight", ".scales", ".biases"), packed(value, bits)):
                tensors[stem + suffix] = tensor
            if bits == 8:
                other[stem] = {"group_size": 64, "bits": 8}
            continue
        if isinstance(kinds[module], Norm):
            value = value + 1
        if name.endswith("conv1d.weight"):
            value = value.transpose(1, 2)
        if name.endswith("patch_embed.proj.weight"):
            value = value.permute(0, 2, 3, 4, 1)
        tensors[new] = value.to(torch.float32 if part == "A_log" else torch.bfloat16).contiguous()
    return tensors, other


def save(tensors, path):
    """safetensors with 32-bit words marked unsigned, which torch has no stored kind for."""
    kinds = {torch.bfloat16: "BF16", torch.float32: "F32", torch.int32: "U32"}
    header, at = {
        "__metadata__": {"format": "mlx" if any(t.dtype == torch.int32 for t in tensors.values()) else "pt"}
    }, 0
    for name, t in sorted(tensors.items()):
        size = t.numel() * t.element_size()
        header[name] = {"dtype": kinds[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    part = path.with_suffix(".part")  # under its name a file is whole, whenever it is looked at
    with open(part, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head)
        for _, t in sorted(tensors.items()):
            f.write(t.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    part.replace(path)
    return at


def load(path):
    """The tensors of a file that save wrote."""
    kinds = {"BF16": np.int16, "F32": np.float32, "U32": np.int32}
    data = Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, about in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            low, high = (begin + x for x in about["data_offsets"])
            flat = torch.from_numpy(np.frombuffer(data[low:high], kinds[about["dtype"]]).copy())
            flat = flat.view(torch.bfloat16) if about["dtype"] == "BF16" else flat
            tensors[name] = flat.reshape(about["shape"])
    return tensors


def read(box, folder):
    """A state_dict for the box from an exported folder; what was packed is what it stands for."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        found.update(load(path))
    if not any(name.startswith("language_model.") for name in found):
        return found
    kinds, state = dict(box.named_modules()), {}
    for name in box.state_dict():
        module, new = name.rpartition(".")[0], mlx_name(name)
        value, stem = found[new], new.removesuffix(".weight")
        if stem + ".scales" in found:
            value = unpacked(value, found[stem + ".scales"], found[stem + ".biases"])
        elif isinstance(kinds[module], Norm):
            value = value.float() - 1
        elif name.endswith("conv1d.weight"):
            value = value.transpose(1, 2)
        elif name.endswith("patch_embed.proj.weight"):
            value = value.permute(0, 4, 1, 2, 3)
        state[name] = value.float()
    return state


def shards(tensors, limit):
    """Splits into files of at most `limit` bytes."""
    parts, size = [{}], 0
    for name, t in sorted(tensors.items()):
        more = t.numel() * t.element_size()
        if parts[-1] and size + more > limit:
            parts.append({})
            size = 0
        parts[-1][name] = t
        size += more
    return parts


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def side_files(folder, shape, ids, quantization=None):
    """Everything but the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = config(shape, ids)
    if quantization:
        settings["quantization"] = settings["quantization_config"] = quantization
    write_json(folder / "config.json", settings)
    end, pad = ids["<|im_end|>"], ids["<|endoftext|>"]
    write_json(
        folder / "generation_config.json",
        {"eos_token_id": [end, pad], "pad_token_id": pad, "do_sample": False, "temperature": 0.0},
    )
    picture = {
        "size": {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS},
        "patch_size": shape.patch,
        "temporal_patch_size": 2,
        "merge_size": shape.merge,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "do_resize": True,
        "do_rescale": True,
        "do_normalize": True,
        "do_convert_rgb": True,
        "rescale_factor": 1 / 255,
        "resample": 3,
    }
    write_json(
        folder / "preprocessor_config.json",
        {**picture, "image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"},
    )
    video = {**picture, "size": {"shortest_edge": MIN_PIXELS, "longest_edge": 8 * MAX_PIXELS}}
    write_json(
        folder / "video_preprocessor_config.json",
        {
            **video,
            "video_processor_type": "Qwen3VLVideoProcessor",
            "processor_class": "Qwen3VLProcessor",
            "fps": 2,
            "min_frames": 2,
            "max_frames": 16,
        },
    )
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(HERE / "tokens" / name, folder / name)


def export_bf16(box, folder, ids, limit=15 << 20):
    side_files(folder, box.shape, ids)
    parts, where = shards(checkpoint(box), limit), {}
    total = 0
    for i, part in enumerate(parts):
        name = f"model-{i + 1:05}-of-{len(parts):05}.safetensors"
        total += save(part, folder / name)
        where.update(dict.fromkeys(part, name))
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def export_mlx(box, folder, ids):
    tensors, other = mlx(box)
    side_files(folder, box.shape, ids, {"group_size": 64, "bits": 4, "mode": "affine", **other})
    return save(tensors, folder / "model.safetensors")
