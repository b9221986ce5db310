#!/usr/bin/env python3
"""Writes a tiny model that can be served: a Llama with random weights, a byte-level tokenizer, a chat template and a
generation_config.json. The same bytes every time, with nothing but Python's standard library.

usage: tests/api/fixture.py FOLDER"""

import array
import json
import os
import shutil
import struct
import sys

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN, CONTEXT = 384, 64, 2, 4, 2, 16, 96, 2048

SPECIAL = ["<|begin|>", "<|end|>", "<|turn|>", "<|done|>"]
WORDS = ("the quick brown fox jumps over lazy dog and then there were seven other stories hello world of many voices "
         "singing each its own text while all move together through one measure without changing another line here")

TEMPLATE = """{%- for m in messages -%}
<|turn|>{{ m.role }}
{{ m.content }}<|done|>
{% endfor -%}
{%- if add_generation_prompt %}<|turn|>assistant
{% endif -%}"""


class Random:
    """SplitMix64: a sequence that no version of Python changes."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return z ^ (z >> 31)

    def weights(self, count, scale):
        """Sums of four uniform numbers: near enough to a normal distribution."""
        out = array.array("f")
        for _ in range(count):
            bits = self.next()
            total = sum((bits >> (16 * k)) & 0xFFFF for k in range(4)) / 65536 - 2
            out.append(total * 1.7 * scale)
        return out


def byte_chars():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    chars, extra = {}, 0
    for byte in range(256):
        chars[byte] = chr(byte) if byte in plain else chr(256 + extra)
        extra += byte not in plain
    return chars


def learn(words, count):
    """The merges that byte-pair encoding learns; the commonest pair first, the smallest of equal ones."""
    chars, merges = byte_chars(), []
    words = [[chars[b] for b in w.encode()] for w in words]
    while len(merges) < count:
        pairs = {}
        for w in words:
            for pair in zip(w, w[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def tokenizer():
    merges = learn([(" " if i else "") + w for i, w in enumerate(WORDS.split())], VOCAB - 256 - len(SPECIAL))
    chars = byte_chars()
    vocab = {t: i for i, t in enumerate(SPECIAL + [chars[b] for b in range(256)] + ["".join(m) for m in merges])}
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, t in enumerate(SPECIAL)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    around = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": SPECIAL[0], "type_id": 0}},
                                                       {"Sequence": {"id": "A", "type_id": 0}}],
              "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
              "special_tokens": {SPECIAL[0]: {"id": SPECIAL[0], "ids": [0], "tokens": [SPECIAL[0]]}}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": level, "post_processor": around, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocab, "merges": [" ".join(m) for m in merges]}}


def config():
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": HIDDEN,
            "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "max_position_embeddings": CONTEXT,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu",
            "attention_bias": False, "mlp_bias": False, "torch_dtype": "float32", "bos_token_id": 0,
            "eos_token_id": 1}


def tensors():
    shapes = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,),
              "lm_head.weight": (VOCAB, HIDDEN)}
    for layer in range(LAYERS):
        at = "model.layers.{}.".format(layer)
        shapes.update({at + "input_layernorm.weight": (HIDDEN,), at + "post_attention_layernorm.weight": (HIDDEN,),
                       at + "self_attn.q_proj.weight": (HEADS * HEAD_DIM, HIDDEN),
                       at + "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
                       at + "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
                       at + "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
                       at + "mlp.gate_proj.weight": (FFN, HIDDEN), at + "mlp.up_proj.weight": (FFN, HIDDEN),
                       at + "mlp.down_proj.weight": (HIDDEN, FFN)})
    return shapes


def write_weights(path, seed):
    random, header, data = Random(seed), {}, b""
    for name, shape in sorted(tensors().items()):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        scale = 0.3 if name == "lm_head.weight" else 1.0 if "embed" in name else 0.12
        values = random.weights(count, scale) if len(shape) > 1 else array.array("f", [1.0] * count)
        if sys.byteorder == "big":
            values.byteswap()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + 4 * count]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write(folder, seed=20):
    """Another seed is another model."""
    os.makedirs(folder, exist_ok=True)
    files = {"config.json": config(), "tokenizer.json": tokenizer(),
             "tokenizer_config.json": {"eos_token": SPECIAL[3], "bos_token": {"content": SPECIAL[0]},
                                       "chat_template": TEMPLATE},
             "generation_config.json": {"eos_token_id": [1, 3], "temperature": 0.8, "top_p": 0.95, "do_sample": True}}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False)
    write_weights(os.path.join(folder, "model.safetensors"), seed)
    return folder


def write_classifier(folder, labels, **more):
    """The scorer of tests/oracle/vectors with several labels: the second's logit is the negative of what it scores, those of others are 0."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "vectors", "xlmr-rerank-bf16")
    shutil.copy(os.path.join(source, "tokenizer.json"), folder)
    with open(os.path.join(source, "config.json"), encoding="utf-8") as f:
        config = dict(json.load(f), id2label={str(i): label for i, label in enumerate(labels)}, **more)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    with open(os.path.join(source, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    for name in ("classifier.out_proj.bias", "classifier.out_proj.weight"):  # of bf16 numbers: signs are the highest bits
        begin, end = header[name]["data_offsets"]
        old = data[begin:end]
        header[name]["shape"][0] = len(labels)
        header[name]["data_offsets"] = [len(data), len(data) + len(labels) * len(old)]
        data += old + bytes(b ^ 0x80 if i % 2 else b for i, b in enumerate(old)) + bytes((len(labels) - 2) * len(old))
    old = header.pop("__metadata__", None)
    text = json.dumps(dict(header, **({"__metadata__": old} if old else {}))).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
