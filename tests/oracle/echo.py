#!/usr/bin/env python3
"""Makes a head and a drafter that guess the last token again, for two of the checkpoints that see, into echoes/.

usage: tests/oracle/echo.py

Heads with random weights hardly ever guess right. These do wherever an answer repeats a token: attention and MLP add
nothing, the hidden state is not looked at, and what is left is the embedding of the last token, which is most like
itself. Needs nothing but Python.
"""

import json
import struct
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOKENS = 256  # of the vocabulary: the text's


def read(path):
    """Shape and bytes of each tensor."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    at = {name: slice(8 + size + t["data_offsets"][0], 8 + size + t["data_offsets"][1]) for name, t in header.items()}
    assert all(t["dtype"] == "BF16" for t in header.values())
    return {name: (t["shape"], data[at[name]]) for name, t in header.items()}


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, data) in sorted(tensors.items()):
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, (_, data) in sorted(tensors.items())))


def bf16(*values):
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def full(value, *shape):
    count = 1
    for n in shape:
        count *= n
    return list(shape), bf16(value) * count


def beside_zeros(width):
    """[I 0]: of two vectors the first."""
    rows = ([float(i == k) for k in range(2 * width)] for i in range(width))
    return [width, 2 * width], b"".join(bf16(*row) for row in rows)


def check(embedding):
    """The embedding of each token, normalised, is most like itself."""
    (_, width), data = embedding
    numbers = [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, TOKENS * width * 2, 2)]
    rows = [numbers[i : i + width] for i in range(0, len(numbers), width)]
    for token, row in enumerate(rows):
        like = [sum(a * b for a, b in zip(row, other)) for other in rows]
        assert max(range(TOKENS), key=like.__getitem__) == token, token


def make_head(name):
    """Qwen3.5's, in the shapes of one that was made for a text model of the same widths. Its norms lack a 1."""
    check(read(HERE / "sighted" / name / "model.safetensors")["model.language_model.embed_tokens.weight"])
    shapes = read(HERE / "guesses" / "qwen35-text-bf16" / "model-mtp.safetensors")
    tensors = {key: full(0, *shape) for key, (shape, _) in shapes.items()}
    tensors["mtp.fc.weight"] = beside_zeros(tensors["mtp.fc.weight"][0][0])
    write(HERE / "echoes" / name / "model-mtp.safetensors", tensors)


def make_drafter(name):
    """Gemma 4's, as wide as the model, with the model's embeddings and one layer for each kind of attention."""
    text = json.loads((HERE / "sighted" / name / "config.json").read_text())["text_config"]
    config = json.loads((HERE / "drafts" / "gemma4-bf16" / "config.json").read_text())
    own, width, heads = config["text_config"], text["hidden_size"], text["num_attention_heads"]
    own |= {key: text[key] for key in own if key in text and "per_layer_input" not in key}
    own |= {"intermediate_size": 16, "num_hidden_layers": 2, "num_kv_shared_layers": 2}
    own |= {"layer_types": ["sliding_attention", "full_attention"]}
    config["backbone_hidden_size"] = width
    embedding = read(HERE / "sighted" / name / "model.safetensors")["model.language_model.embed_tokens.weight"]
    check(embedding)
    tensors = {"model.embed_tokens.weight": embedding, "model.norm.weight": full(1, width)}
    tensors["pre_projection.weight"] = beside_zeros(width)
    tensors["post_projection.weight"] = full(0, width, width)
    for layer, head in enumerate((own["head_dim"], own["global_head_dim"])):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}{norm}.weight"] = full(1, width)
        for norm in ("pre_feedforward_layernorm", "post_feedforward_layernorm"):
            tensors[f"{at}{norm}.weight"] = full(1, width)
        tensors[f"{at}layer_scalar"] = full(1, 1)
        tensors[f"{at}self_attn.q_norm.weight"] = full(1, head)
        tensors[f"{at}self_attn.q_proj.weight"] = full(0, heads * head, width)
        tensors[f"{at}self_attn.o_proj.weight"] = full(0, width, heads * head)
        tensors[f"{at}mlp.gate_proj.weight"] = full(0, own["intermediate_size"], width)
        tensors[f"{at}mlp.up_proj.weight"] = full(0, own["intermediate_size"], width)
        tensors[f"{at}mlp.down_proj.weight"] = full(0, width, own["intermediate_size"])
    write(HERE / "echoes" / name / "model.safetensors", tensors)
    (HERE / "echoes" / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    make_head("qwen35-bf16")
    make_drafter("gemma4vl-bf16")
