#!/usr/bin/env python3
"""Writes an encoder of BERT's family as a GGUF file, with the names, orders and numbers that llama.cpp's converter gives.

    gguf_encoder.py FOLDER FILE

The tokenizer is in the file, too. Needs nothing beyond Python's standard library.
"""

import argparse
import json
import sys
from pathlib import Path

import gguf

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "text"))

import gguf_vocab  # noqa: E402

WHOLE = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "classifier": "cls.output",
    "classifier.dense": "cls",
    "classifier.out_proj": "cls.output",
}
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
POOLING = {"pooling_mode_mean_tokens": 1, "pooling_mode_cls_token": 2, "pooling_mode_lasttoken": 3}
PRECISE = ("position_embd.", "token_types.")  # kept in F32 whatever the file's type is


def renamed(name):
    """The name in the file; None: the converter leaves it out."""
    name = name.removeprefix("bert.").removeprefix("roberta.")
    stem, _, suffix = name.rpartition(".")
    if stem == "pooler.dense":
        return None
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{suffix}"
    layer, _, rest = stem.removeprefix("encoder.layer.").partition(".")
    return f"blk.{layer}.{LAYER[rest]}.{suffix}"


def tensors_of(folder, offset):
    out = {}
    for name, tensor in gguf.read_safetensors(folder / "model.safetensors").items():
        to = renamed(name)
        if to == "position_embd.weight":
            tensor = tensor.pick(range(offset, tensor.shape[0]))
        if to:
            vector = len(tensor.shape) == 1 or to.startswith(PRECISE)
            out[to] = tensor.f32() if vector else tensor
    return out


def tokenizer_keys(folder):
    tokenizer = gguf_vocab.read_json(folder / "tokenizer.json")
    config = gguf_vocab.read_json(folder / "tokenizer_config.json")
    return gguf_vocab.keys_of(tokenizer, config, "bert" if tokenizer["model"]["type"] == "WordPiece" else "t5")


def convert(folder):
    """The file's keys and tensors."""
    config = json.loads((folder / "config.json").read_text())
    roberta = config["model_type"] != "bert"
    offset = config["pad_token_id"] + 1 if roberta else 0
    keys = {
        "general.architecture": "bert",
        "bert.block_count": config["num_hidden_layers"],
        "bert.context_length": config["max_position_embeddings"] - offset,
        "bert.embedding_length": config["hidden_size"],
        "bert.feed_forward_length": config["intermediate_size"],
        "bert.attention.head_count": config["num_attention_heads"],
        "bert.attention.layer_norm_epsilon": float(config["layer_norm_eps"]),
        "bert.attention.causal": False,
        "tokenizer.ggml.token_type_count": config["type_vocab_size"],
    }
    pooling = gguf_vocab.read_json(folder / "1_Pooling" / "config.json")
    keys |= {"bert.pooling_type": number for flag, number in POOLING.items() if pooling.get(flag)}
    if "id2label" in config:
        keys["bert.classifier.output_labels"] = list(config["id2label"].values())
    return keys | tokenizer_keys(folder), tensors_of(folder, offset)


def write(folder, path):
    gguf.write(Path(path), *convert(Path(folder)))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    write(options.folder, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
