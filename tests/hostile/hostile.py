#!/usr/bin/env python3
"""Checkpoints that are broken, or lie, or were made to harm: motet must refuse each with a sentence.

usage: hostile.py MOTET [--show]

Each case takes a good checkpoint and spoils it. `motet info` and `motet run` must then end with status 1 within seconds,
say what is wrong in one line that holds the words given here, and never take memory that only a header claims.
`--show` prints every sentence.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
import gguf  # noqa: E402 (which is there)
import gguf_encoder  # noqa: E402

GOOD = Path(__file__).resolve().parents[1] / "oracle" / "checkpoints"
SECONDS = 60  # a sanitizer on a busy machine needs some; a hang takes more
MEMORY = 384 << 10  # KiB: above what a sanitizer takes for itself, below what these headers claim

CASES = []


def case(words, start="llama-bf16"):
    """Registers a function that spoils the folder it is given, a copy of the checkpoint `start`."""

    def register(spoil):
        CASES.append((spoil.__name__, start, words, spoil))
        return spoil

    return register


# --- ways to spoil ---------------------------------------------------------------------------------------------------


def read(folder, name="model.safetensors"):
    """The header and the data of a file."""
    raw = (folder / name).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def write(folder, header, data, name="model.safetensors", claim=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    claim = len(text) if claim is None else claim
    (folder / name).write_bytes(claim.to_bytes(8, "little") + text + data)


def change_header(folder, change):
    header, data = read(folder)
    write(folder, change(header) or header, data)


def change_config(folder, **values):
    config = json.loads((folder / "config.json").read_text())
    for key, value in values.items():
        if value is ABSENT:
            config.pop(key, None)
        else:
            config[key] = value
    (folder / "config.json").write_text(json.dumps(config))


ABSENT = object()
FIRST = "model.embed_tokens.weight"
NORM = "model.norm.weight"


def config_case(words, start="llama-bf16", **values):
    name = "config_" + "_".join(f"{k}={str(v)[:24]}" for k, v in values.items())
    CASES.append((name, start, words, lambda folder: change_config(folder, **values)))


def entry_case(words, name, **values):
    """One tensor's entry in the header says something else."""

    def spoil(folder):
        change_header(folder, lambda header: header[FIRST].update(values))

    CASES.append(("header_" + name, "llama-bf16", words, spoil))


# --- files -----------------------------------------------------------------------------------------------------------


@case("does not exist")
def folder_that_is_not_there(folder):
    shutil.rmtree(folder)


@case("is not a folder")
def folder_that_is_a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("{}")


@case("has no config.json")
def folder_without_config(folder):
    (folder / "config.json").unlink()


@case("no *.safetensors")
def folder_without_weights(folder):
    (folder / "model.safetensors").unlink()


@case("not valid JSON")
def config_that_is_empty(folder):
    (folder / "config.json").write_bytes(b"")


@case("fewer than a header")
def weights_that_are_empty(folder):
    (folder / "model.safetensors").write_bytes(b"")


@case("claims a header")
def weights_cut_in_the_header(folder):
    os.truncate(folder / "model.safetensors", 100)


@case("truncated")
def weights_cut_in_the_data(folder):
    file = folder / "model.safetensors"
    os.truncate(file, file.stat().st_size - 1)


@case("truncated", "qwen3-sharded-bf16")
def shard_that_is_cut(folder):
    file = folder / "model-00002-of-00003.safetensors"
    os.truncate(file, file.stat().st_size // 2)


@case("not a regular file")
def weights_that_are_a_fifo(folder):
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


@case("not a regular file")
def config_that_is_a_fifo(folder):
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


@case("not a regular file")
def index_that_is_a_fifo(folder):
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors.index.json")


@case("not a regular file")
def weights_that_are_a_device(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/dev/zero")


@case("is a folder")
def weights_that_are_a_folder(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


@case("model.safetensors")
def weights_that_are_a_dangling_link(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("nowhere")


@case("model.safetensors")
def weights_that_are_a_circle_of_links(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("model.safetensors")


@case("config.json")
def config_that_is_a_circle_of_links(folder):
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("config.json")


@case("malformed")
def weights_that_are_100_gigabytes_of_nothing(folder):
    with open(folder / "model.safetensors", "wb") as file:
        file.write((4096).to_bytes(8, "little"))
        file.truncate(100 << 30)


@case("longer than the")
def header_of_50_gigabytes(folder):
    with open(folder / "model.safetensors", "wb") as file:
        file.write((50 << 30).to_bytes(8, "little"))
        file.truncate(100 << 30)


@case("larger than the")
def config_of_100_gigabytes(folder):
    os.truncate(folder / "config.json", 100 << 30)


@case("at most", "qwen3-sharded-bf16")
def index_of_100_gigabytes(folder):
    os.truncate(folder / "model.safetensors.index.json", 100 << 30)


@case("may not be read")
def folder_without_permissions(folder):
    folder.chmod(0)


@case("may not be read")
def weights_without_permissions(folder):
    (folder / "model.safetensors").chmod(0)


@case("git-lfs pointer")
def weights_that_are_a_pointer(folder):
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1000\n"
    (folder / "model.safetensors").write_text(text)


# --- headers ---------------------------------------------------------------------------------------------------------


@case("claims a header")
def header_length_of_all_ones(folder):
    header, data = read(folder)
    write(folder, header, data, claim=2**64 - 1)


@case("claims a header")
def header_length_that_wraps(folder):
    header, data = read(folder)
    write(folder, header, data, claim=2**64 - 8)


@case("malformed")
def header_of_no_bytes(folder):
    write(folder, b"", b"")


@case("no JSON object")
def header_that_is_an_array(folder):
    write(folder, b"[]", b"")


@case("holds no tensors")
def header_without_tensors(folder):
    write(folder, b"{}", b"")


@case("containers inside one another")
def header_that_nests(folder):
    write(folder, b'{"a":' * 100000, b"")


@case("twice")
def header_with_a_name_twice(folder):
    header, data = read(folder)
    text = json.dumps(header)
    again = json.dumps({NORM: header[NORM]})
    write(folder, (text[:-1] + ", " + again[1:]).encode(), data)


@case("overlap")
def tensors_that_overlap(folder):
    def change(header):
        begin = header[FIRST]["data_offsets"][0]
        header["again"] = {"dtype": "BF16", "shape": [2], "data_offsets": [begin, begin + 4]}

    change_header(folder, change)


@case("UTF-8")
def name_that_is_not_utf8(folder):
    header, data = read(folder)
    write(folder, json.dumps(header).encode().replace(b"embed_tokens", b"embed\xff\xfeens"), data)


@case("control characters")
def name_with_an_escape(folder):
    header, data = read(folder)
    header["\x1b[2J"] = header.pop(NORM)
    write(folder, header, data)


@case("1 to 512")
def name_of_a_megabyte(folder):
    change_header(folder, lambda header: header.update({"a" * (1 << 20): header[NORM]}))


@case("1 to 512")
def name_that_is_empty(folder):
    change_header(folder, lambda header: header.update({"": header[NORM]}))


entry_case("truncated", "end_behind_the_file", data_offsets=[0, 1 << 40])
entry_case("wrong", "offsets_in_reverse", data_offsets=[8, 0])
entry_case("wrong", "offset_that_is_negative", data_offsets=[-8, 8])
entry_case("wrong", "offset_that_is_no_integer", data_offsets=[0.5, 8])
entry_case("wrong", "offset_that_no_integer_holds", data_offsets=[0, 2**64])
entry_case("wrong", "one_offset", data_offsets=[0])
entry_case("wrong", "three_offsets", data_offsets=[0, 8, 16])
entry_case("wrong", "offsets_that_are_text", data_offsets="0, 8")
entry_case("lies", "shape_whose_product_wraps", shape=[2**32, 2**32, 2])
entry_case("lies", "shape_whose_bytes_wrap", shape=[2**62])
entry_case("lies", "shape_that_hides_behind_a_zero", shape=[2**62, 2**62, 0])
entry_case("wrong", "shape_that_is_negative", shape=[-1, 64])
entry_case("wrong", "shape_that_is_not_whole", shape=[1.5, 64])
entry_case("wrong", "shape_that_no_integer_holds", shape=[2**64, 1])
entry_case("more than 8 dimensions", "shape_of_nine", shape=[1] * 9)
entry_case("wrong", "shape_that_is_a_number", shape=64)
entry_case("lies", "dtype_of_another_size", dtype="F32")
entry_case("F99", "dtype_unknown", dtype="F99")
entry_case("wrong", "dtype_that_is_a_number", dtype=7)
entry_case("wrong", "dtype_that_is_long", dtype="F" * 1000)
entry_case("found I16", "dtype_of_the_same_size", dtype="I16")


# --- the index -------------------------------------------------------------------------------------------------------


def index_case(words, name, change):
    def spoil(folder):
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        path.write_text(json.dumps(change(index) or index))

    CASES.append(("index_" + name, "qwen3-sharded-bf16", words, spoil))


def point(to):
    return lambda index: index["weight_map"].update({FIRST: to})


index_case("lacks 1 of its 4 shards", "names_a_missing_shard", point("model-00009-of-00009.safetensors"))
index_case("of the folder itself", "leaves_the_folder", point("../x.safetensors"))
index_case("of the folder itself", "is_absolute", point("/etc/passwd"))
index_case("of the folder itself", "goes_down", point("sub/x.safetensors"))
index_case("of the folder itself", "is_hidden", point(".x.safetensors"))
index_case("of the folder itself", "names_another_kind", point("config.json"))
index_case("of the folder itself", "is_empty", point(""))
index_case("of the folder itself", "holds_a_nul", point("a\0b.safetensors"))
index_case("of the folder itself", "is_long", point("a" * 5000 + ".safetensors"))
index_case("name of a file", "gives_a_number", point(7))
index_case("name of a file", "gives_null", point(None))
index_case("does not hold it", "names_the_wrong_shard", point("model-00003-of-00003.safetensors"))
index_case(
    "does not hold it", "invents_a_tensor", lambda i: i["weight_map"].update(x="model-00001-of-00003.safetensors")
)
index_case("weight_map", "has_no_map", lambda i: {"metadata": {}})
index_case("weight_map", "has_an_empty_map", lambda i: {"weight_map": {}})
index_case("weight_map", "has_an_array", lambda i: {"weight_map": []})
index_case("weight_map", "is_an_array", lambda i: [1])


@case("lacks 1 of its 3 shards", "qwen3-sharded-bf16")
def shard_that_is_missing(folder):
    (folder / "model-00002-of-00003.safetensors").unlink()


@case("lacks 1 of its 3 shards", "qwen3-sharded-bf16")
def shard_that_is_missing_without_an_index(folder):
    (folder / "model-00002-of-00003.safetensors").unlink()
    (folder / "model.safetensors.index.json").unlink()


@case("is in both", "qwen3-sharded-bf16")
def shard_that_is_there_twice(folder):
    shutil.copy(folder / "model-00002-of-00003.safetensors", folder / "other.safetensors")
    (folder / "model.safetensors.index.json").unlink()


@case("JSON", "qwen3-sharded-bf16")
def index_that_is_cut(folder):
    os.truncate(folder / "model.safetensors.index.json", 200)


# --- config.json -----------------------------------------------------------------------------------------------------


@case("no object")
def config_that_is_an_array(folder):
    (folder / "config.json").write_text("[]")


@case("not valid JSON")
def config_that_is_cut(folder):
    os.truncate(folder / "config.json", 50)


@case("not valid JSON")
def config_that_is_not_utf8(folder):
    (folder / "config.json").write_bytes(b'{"model_type": "\xff\xfe"}')


@case("config.json")
def config_that_nests(folder):
    (folder / "config.json").write_text('{"a":' * 1500 + "1" + "}" * 1500)


config_case("is missing in config.json", model_type=ABSENT)
config_case("is missing in config.json", model_type=7)
config_case("is none that motet runs", model_type="martian")
config_case("num_hidden_layers", num_hidden_layers=0)
config_case("num_hidden_layers", num_hidden_layers=-1)
config_case("num_hidden_layers", num_hidden_layers=10**9)
config_case("num_hidden_layers", num_hidden_layers="2")
config_case("num_hidden_layers", num_hidden_layers=2.5)
config_case("does not hold", num_hidden_layers=ABSENT)  # the default of its class has more
config_case("does not hold", num_hidden_layers=5)
config_case("does not hold", num_hidden_layers=512, hidden_size=1 << 20)
config_case("vocab_size", vocab_size=0)
config_case("vocab_size", vocab_size=1 << 40)
config_case("vocab_size", vocab_size=[256])
config_case("does not hold", vocab_size=1 << 22)
config_case("hidden_size", hidden_size=0)
config_case("hidden_size", hidden_size={})
config_case("does not hold", hidden_size=65)
config_case("num_attention_heads", num_attention_heads=0)
config_case("no multiple", num_attention_heads=3)
config_case("does not hold", num_attention_heads=1 << 20, num_key_value_heads=1 << 20)
config_case("num_key_value_heads", num_key_value_heads=0)
config_case("no multiple", num_key_value_heads=3)
config_case("num_key_value_heads", num_key_value_heads=8)
config_case("head_dim", head_dim=0)
config_case("even", head_dim=15)
config_case("head_dim", head_dim=1 << 30)
config_case("intermediate_size", intermediate_size=0)
config_case("max_position_embeddings", max_position_embeddings=0)
config_case("max_position_embeddings", max_position_embeddings=10**30)
config_case("rms_norm_eps", rms_norm_eps="small")
config_case("rms_norm_eps", rms_norm_eps=-1)
config_case("hidden_act", hidden_act="step")
config_case("rope type", rope_scaling={"rope_type": "spiral"})
config_case("factor", rope_scaling={"rope_type": "linear", "factor": 0})
config_case("rope_theta", rope_theta=0)
config_case("rope_theta", rope_theta=None, rope_scaling={"rope_theta": -1})
config_case("decoder_sparse_step", "qwen3moe-bf16", decoder_sparse_step=0)
config_case("num_experts", "qwen3moe-bf16", num_experts=-1)
config_case("num_experts", "qwen3moe-bf16", num_experts=1 << 30)
config_case("num_experts_per_tok", "qwen3moe-bf16", num_experts_per_tok=0)
config_case("num_experts_per_tok", "qwen3moe-bf16", num_experts_per_tok=9)
config_case("moe_intermediate_size", "qwen3moe-bf16", moe_intermediate_size=0)
config_case("does not hold", "qwen3moe-bf16", num_experts=4096, moe_intermediate_size=1 << 20)
config_case("does not hold", "qwen3moe-bf16", num_hidden_layers=512, num_experts=4096)
config_case("kv_lora_rank", "glm47flash-bf16", kv_lora_rank=0)
config_case("both together at most", "glm47flash-bf16", kv_lora_rank=1020)
config_case("both together at most", "glm47flash-bf16", qk_rope_head_dim=15)
config_case("does not hold", "glm47flash-bf16", kv_lora_rank=47)
config_case("does not hold", "glm47flash-bf16", qk_nope_head_dim=23)
config_case("does not hold", "glm47flash-bf16", v_head_dim=21)
config_case("does not hold", "glm47flash-bf16", q_lora_rank=None)
config_case("does not hold", "glm47flash-mlx-4bit", qk_nope_head_dim=64)
config_case("does not hold", "glm47flash-bf16", num_attention_heads=1 << 20, num_key_value_heads=1 << 20)
config_case("topk_group", "deepseekv3-bf16", topk_group=5)
config_case("cannot be chosen", "deepseekv3-bf16", n_group=3)
config_case("scoring_func", "deepseekv3-bf16", scoring_func="softmax")
config_case("moe_layer_freq", "deepseekv3-bf16", moe_layer_freq=2)
config_case("sliding_window", "gemma3-bf16", sliding_window=0)
config_case("query_pre_attn_scalar", "gemma3-bf16", query_pre_attn_scalar=0)
config_case("group_size", "llama-mlx-4bit", quantization={"group_size": 0, "bits": 4})
config_case("group_size", "llama-mlx-4bit", quantization={"group_size": 1 << 20, "bits": 4})
config_case("groups of 48", "llama-mlx-4bit", quantization={"group_size": 48, "bits": 4})
config_case("7 bits", "llama-mlx-4bit", quantization={"group_size": 64, "bits": 7})
config_case("bits", "llama-mlx-4bit", quantization={"group_size": 64, "bits": 0})
config_case("bits", "llama-mlx-4bit", quantization={"group_size": 64, "bits": "4"})
config_case("mode", "llama-mlx-4bit", quantization={"group_size": 64, "bits": 4, "mode": "int3"})
for other in ("exl3", "hqq", "aqlm", "torchao", "quanto", "spqr"):
    config_case("use the original checkpoint, or one in", quantization_config={"quant_method": other, "bits": 4})
config_case("version", "llama-awq", quantization_config={"quant_method": "awq", "version": "gemv"})
config_case("group_size", "llama-awq", quantization_config={"quant_method": "awq", "group_size": "64"})
config_case("checkpoint_format", quantization_config={"quant_method": "gptq", "checkpoint_format": "marlin"})
config_case("bits", quantization_config={"quant_method": "gptq", "bits": 1 << 40})
config_case("packing_format", quantization_config={"quant_method": "auto-round", "packing_format": "auto_round"})
config_case("format", quantization_config={"quant_method": "compressed-tensors", "format": "marlin-24"})
config_case("quant_algo", quantization_config={"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})
config_case("e5m2", "qwen3-fp8", quantization_config={"quant_method": "fp8", "fmt": "e5m2"})
config_case("blocks of", "qwen3-fp8", quantization_config={"quant_method": "fp8", "weight_block_size": [0, 128]})
config_case("queries, keys and values that are cut off", "olmoe-bf16", clip_qkv=8)
config_case("norms of queries and keys with other weights", "cohere-bf16", use_qk_norm=True)
config_case('"logits_scaling"', "granite-bf16", logits_scaling=0)
config_case('"residual_multiplier"', "granite-bf16", residual_multiplier="much")
config_case("6 experts", "mixtral-bf16", num_experts_per_tok=7)
config_case("6 experts", "ernie45moe-bf16", moe_k=7)
config_case("6 experts", "hyv3-bf16", num_experts_per_tok=7)
config_case("entries for 3 layers", "smollm3-window-mlx-4bit", no_rope_layers=[1, 0])
config_case("entries for 2 layers", "hyv3-bf16", mlp_layer_types=["dense"])
config_case('"rotary_dim"', "minimaxm2-bf16", rotary_dim=64, rope_parameters=None)
config_case("experts with biases", "ernie45moe-bf16", use_bias=True)
config_case('"short_factor" has 1 numbers', "phi3-bf16",
            rope_scaling={"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]})
config_case("not above 0", "phi3-bf16", rope_scaling={"type": "su", "short_factor": [0.0] * 8})
config_case('"sliding_window_pattern"', "exaone4-bf16", sliding_window_pattern=-1)


# --- GGUF files -----------------------------------------------------------------------------------------------------


def as_gguf(folder, change=lambda keys, tensors: None, name="model.gguf"):
    """Makes the folder's only file a GGUF file, of what `change` leaves."""
    keys, tensors = gguf.Converter(folder).convert()
    change(keys, tensors)
    for file in folder.iterdir():
        file.unlink()
    gguf.write(folder / name, keys, tensors)
    return folder / name


def gguf_case(words, name, change, start="llama-bf16"):
    """A file whose keys or tensors say something else."""
    CASES.append(("gguf_" + name, start, words, lambda folder: as_gguf(folder, change)))


def bytes_case(words, name, change, start="llama-bf16"):
    """A file with other bytes."""

    def spoil(folder):
        file = as_gguf(folder)
        file.write_bytes(change(file.read_bytes()))

    CASES.append(("gguf_" + name, start, words, spoil))


def key(name, value):
    return lambda keys, tensors: keys.update({name: value})


def no_key(name):
    return lambda keys, tensors: keys.pop(name)


def tensor(name, *shape, type=gguf.F32):
    """Gives the tensor another shape, with data of that size."""
    size = gguf.SIZES[type]
    for length in shape:
        size *= length
    return lambda keys, tensors: tensors.update({name: gguf.Tensor(type, list(shape), b"\0" * size)})


def claim_u64(at, value):
    return lambda data: data[:at] + value.to_bytes(8, "little") + data[at + 8 :]


def info_of(data, name):
    """Where the entry of a tensor is, behind its name."""
    return data.index(name.encode()) + len(name)


def change_info(name, offset, size, value):
    def change(data):
        at = info_of(data, name) + offset
        return data[:at] + value.to_bytes(size, "little") + data[at + size :]

    return change


EMBED, QUERY = "token_embd.weight", "blk.0.attn_q.weight"
bytes_case("does not begin with", "of_another_kind", lambda data: b"GGML" + data[4:])
bytes_case("big-endian", "for_other_machines", lambda data: data[:4] + b"\0\0\0\3" + data[8:])
bytes_case("version 1 of GGUF", "of_version_1", lambda data: data[:4] + b"\1\0\0\0" + data[8:])
bytes_case("truncated", "that_is_empty", lambda data: b"")
bytes_case("truncated", "cut_in_the_header", lambda data: data[:200])
bytes_case("truncated", "cut_in_the_data", lambda data: data[:-100])
bytes_case("tensors; at most", "with_too_many_tensors", claim_u64(8, 1 << 63))
bytes_case("keys; at most", "with_too_many_keys", claim_u64(16, (1 << 64) - 1))
bytes_case("truncated", "with_a_key_without_end", claim_u64(24, (1 << 64) - 8))
bytes_case("git-lfs pointer", "that_is_a_pointer", lambda data: b"version https://git-lfs.github.com/spec/v1\n")
bytes_case("dimensions; at most", "with_nine_dimensions", change_info(EMBED, 0, 4, 9))
bytes_case("a dimension of 0", "with_no_columns", change_info(EMBED, 4, 8, 0))
bytes_case("truncated", "with_a_wide_tensor", change_info(EMBED, 12, 8, 1 << 40))
bytes_case("a dimension of", "with_a_size_that_wraps", change_info(EMBED, 12, 8, 1 << 62))
bytes_case("which motet does not know", "of_an_unknown_type", change_info(EMBED, 20, 4, 77))
bytes_case("do not fill", "with_half_a_block", change_info(EMBED, 20, 4, 12))
bytes_case("truncated", "that_points_behind_its_end", change_info(EMBED, 24, 8, 1 << 40))
bytes_case("truncated", "with_an_offset_that_wraps", change_info(EMBED, 24, 8, (1 << 64) - 32))
bytes_case("not aligned", "with_an_odd_offset", change_info(EMBED, 24, 8, 33))
bytes_case("overlap", "with_tensors_that_overlap", change_info(QUERY, 24, 8, 0))
bytes_case(
    "twice", "with_a_key_twice", lambda data: data.replace(b"llama.rope.freq_base", b"llama.context_length")
)
gguf_case("architecture \"martian\" is none that motet runs", "of_a_martian", key("general.architecture", "martian"))
gguf_case("no \"general.architecture\"", "of_no_architecture", no_key("general.architecture"))
gguf_case("no \"general.architecture\"", "of_architecture_7", key("general.architecture", 7))
gguf_case("mlp.gate", "of_mixtral_without_experts", key("llama.expert_count", 8))
gguf_case("is an adapter (LoRA)", "of_an_adapter", key("general.type", "adapter"))
gguf_case("is an importance matrix", "of_an_importance_matrix", key("general.type", "imatrix"))
gguf_case("no weights", "of_a_vocabulary", lambda keys, tensors: tensors.clear())
gguf_case("found type Q4_0_4_4, which is laid out", "of_interleaved_rows",
          lambda keys, tensors: tensors.update({QUERY: gguf.Tensor(31, [64, 64], b"\0" * (64 * 2 * 18))}))
bytes_case("is of GGML", "of_ggml", lambda data: b"tjgg" + data[4:])
gguf_case("general.alignment", "aligned_to_48", key("general.alignment", 48))
gguf_case("general.alignment", "aligned_to_nothing", key("general.alignment", 0))
gguf_case("block_count", "without_layers", key("llama.block_count", 0))
gguf_case("block_count", "with_endless_layers", key("llama.block_count", 4000000000))
gguf_case("block_count", "that_drafts_alone", key("llama.nextn_predict_layers", 2))
gguf_case("does not hold", "with_more_layers", key("llama.block_count", 5))
gguf_case("attention.head_count", "without_heads", key("llama.attention.head_count", 0))
gguf_case("numbers of heads", "with_3_heads", key("llama.attention.head_count", 3))
gguf_case("numbers of heads", "with_endless_heads", key("llama.attention.head_count", 4000000000))
gguf_case("numbers of heads", "with_heads_of_odd_size", tensor(QUERY, 68, 64))
gguf_case("embedding_length", "without_width", no_key("llama.embedding_length"))
gguf_case("layer_norm_rms_epsilon", "without_epsilon", no_key("llama.attention.layer_norm_rms_epsilon"))
gguf_case("layer_norm_rms_epsilon", "with_a_word_as_epsilon", key("llama.attention.layer_norm_rms_epsilon", "small"))
gguf_case("rms_norm_eps", "with_no_number_as_epsilon", key("llama.attention.layer_norm_rms_epsilon", -1.0))
gguf_case("max_position_embeddings", "without_context", key("llama.context_length", 0))
gguf_case("rope type", "that_turns_in_spirals", key("llama.rope.scaling.type", "spiral"), "llama-yarn-f16")
gguf_case("frequencies", "with_too_many_factors", tensor("rope_freqs.weight", 9))
gguf_case("not above 0", "with_factors_of_0", tensor("rope_freqs.weight", 8))
gguf_case("no matrix", "without_embeddings", lambda keys, tensors: tensors.pop(EMBED))
gguf_case("no matrix", "with_an_embedding_of_one_dimension", tensor(EMBED, 256 * 64))
gguf_case("ssm", "without_value_heads", key("qwen35.ssm.time_step_rank", 0), "qwen35-bf16")
gguf_case("ssm", "with_5_value_heads", key("qwen35.ssm.time_step_rank", 5), "qwen35-bf16")
gguf_case("numbers of heads", "with_wrong_value_heads", key("qwen35.ssm.time_step_rank", 4), "qwen35-bf16")
gguf_case("numbers of heads", "with_wrong_key_heads", key("qwen35.ssm.state_size", 1024), "qwen35-bf16")


@case("is absent; download it too")
def gguf_shard_that_is_missing(folder):
    as_gguf(folder, name="model-00001-of-00002.gguf")


@case("its name 1 of 2")
def gguf_shard_of_another(folder):
    as_gguf(folder, lambda keys, tensors: keys.update({"split.no": 1, "split.count": 2}), "model-00001-of-00002.gguf")
    shutil.copy(folder / "model-00001-of-00002.gguf", folder / "model-00002-of-00002.gguf")


@case("is one of 3")
def gguf_shard_without_a_number(folder):
    as_gguf(folder, key("split.count", 3))


@case("is not a checkpoint")
def gguf_that_is_a_fifo(folder):
    path = as_gguf(folder)
    path.unlink()
    os.mkfifo(path)


def encoder_case(words, name, change, start="xlmr-cls-f32"):
    """An encoder's GGUF file whose keys or tensors say something else."""

    def spoil(folder):
        keys, tensors = gguf_encoder.convert(folder)
        change(keys, tensors)
        shutil.rmtree(folder)
        folder.mkdir()
        gguf.write(folder / "model.gguf", keys, tensors)

    CASES.append(("gguf_encoder_" + name, f"../vectors/{start}", words, spoil))


PADDING = "tokenizer.ggml.padding_token_id"
encoder_case("layer_norm_epsilon", "without_epsilon", no_key("bert.attention.layer_norm_epsilon"))
encoder_case("layer_norm_eps", "with_epsilon_below_0", key("bert.attention.layer_norm_epsilon", -1.0))
encoder_case("bert.block_count", "without_layers", key("bert.block_count", 0))
encoder_case("num_hidden_layers", "with_endless_layers", key("bert.block_count", 4000000000))
encoder_case("3 heads cannot share", "with_3_heads", key("bert.attention.head_count", 3))
encoder_case("pad_token_id", "with_padding_beyond_its_tokens", key(PADDING, 84))
encoder_case("position_embeddings", "with_padding_far_beyond", key(PADDING, 3000000))
encoder_case("classifier.out_proj.bias", "with_3_labels", tensor("cls.output.weight", 3, 32))
encoder_case("reads a pooler", "without_a_pooler", tensor("cls.output.weight", 1, 32), "bert-mean-f32")
encoder_case("vocab_size", "without_embeddings", lambda keys, tensors: tensors.pop(EMBED))
encoder_case("max_position_embeddings", "without_positions", lambda keys, tensors: tensors.pop("position_embd.weight"),
             "bert-mean-f32")


# --- layouts of other quantisers: a tensor away, of another shape or type, and none of it read as something else ------

LAYOUTS = [  # checkpoint, module, tensors without which it is nothing, others whose shape is turned around
    ("llama-gptq-3bit-order", "model.layers.0.mlp.up_proj", ["scales", "qzeros", "qweight"], ["g_idx"]),
    ("llama-awq", "model.layers.0.mlp.up_proj", ["scales", "qzeros", "qweight"], []),
    ("qwen3-ct-int4-order", "model.layers.0.mlp.up_proj", ["weight_scale", "weight_packed"], ["weight_zero_point"]),
    ("qwen3-ct-int8", "model.layers.0.mlp.up_proj", ["weight_scale", "weight"], []),
    ("qwen3moe-ct-fp8", "model.layers.0.self_attn.q_proj", ["weight_scale", "weight"], []),
    ("llama-ct-nvfp4", "model.layers.0.mlp.up_proj", ["weight_scale", "weight_global_scale", "weight_packed"], []),
    ("qwen3-ct-mxfp4", "model.layers.0.mlp.up_proj", ["weight_scale", "weight_packed"], []),
    ("llama-bnb-nf4", "model.layers.0.mlp.up_proj", ["weight.absmax", "weight.quant_map", "weight"], []),
    ("llama-bnb-int8", "model.layers.0.mlp.up_proj", ["SCB", "weight"], []),
]


def layout_case(name, start, tensor, change):
    def spoil(folder):
        change_header(folder, lambda header: change(header, tensor))

    CASES.append((f"{start}_{tensor.rsplit('up_proj.')[-1].rsplit('q_proj.')[-1]}_{name}", start, "does not hold", spoil))


def rename(header, tensor):
    header["elsewhere"] = header.pop(tensor)


def longer(header, tensor):
    """One dimension more at the front, and what was there in another order."""
    shape = header[tensor]["shape"]
    header[tensor]["shape"] = [1, *reversed(shape)] if len(shape) > 1 else [1, 1, *shape, 1]


def other_type(header, tensor):
    same = {"I32": "F32", "F16": "I16", "BF16": "I16", "F32": "I32", "U8": "BOOL", "I8": "BOOL", "F8_E4M3": "F8_E5M2"}
    header[tensor]["dtype"] = same[header[tensor]["dtype"]]


ANY_SHAPE = ("qwen3moe-ct-fp8.weight_scale", "llama-ct-nvfp4.weight_global_scale")  # dimensions of 1 mean nothing
for start, module, needed, more in LAYOUTS:
    for suffix in needed:
        layout_case("away", start, f"{module}.{suffix}", rename)
    for suffix in needed + more:
        if f"{start}.{suffix}" not in ANY_SHAPE:
            layout_case("turned", start, f"{module}.{suffix}", longer)
        layout_case("of_another_type", start, f"{module}.{suffix}", other_type)


# --- running them ----------------------------------------------------------------------------------------------------


class Wrong(Exception):
    pass


def run(command, as_user):
    """(status, stderr). Past its time or its memory the program counts as wrong."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # A slow machine is told how far reading is.
        environment = dict(os.environ, MOTET_LOG_LEVEL="warn")
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, **as_user)
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if not timer.is_alive():
            raise Wrong(f"no end within {SECONDS} s")
        timer.cancel()
        if usage.ru_maxrss > MEMORY:
            raise Wrong(f"took {usage.ru_maxrss >> 10} MiB")
        err.seek(0)
        return process.returncode, err.read().decode(errors="surrogateescape")


def check(motet, folder, words, as_user, both, show):
    commands = (["run", str(folder), "--token-ids", "1,2", "--max-tokens", "1"], ["info", str(folder)])
    for command in commands if both else commands[:1]:
        status, said = run([motet, *command], as_user)
        if show:
            print(f"    {command[0]:5} {status} {said.strip()}")
        if status != 1:
            raise Wrong(f"{command[0]} ended with {status}: {said[-500:]}")
        if not said.startswith("motet: ") or said.count("\n") != 1:
            raise Wrong(f"{command[0]} did not say one sentence: {said[-500:]}")
        if words not in said and not (command[0] == "run" and "is an encoder" in said):
            raise Wrong(f'{command[0]} does not speak of "{words}": {said.strip()}')
        if not said[:-1].isprintable():
            raise Wrong(f"{command[0]} prints bytes of the file as they are: {said!r}")


NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}  # nothing is closed to root


def may_be_nobody(motet):
    try:
        return subprocess.run([motet, "help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **NOBODY).returncode == 0
    except OSError:
        return False


def check_case(motet, start, words, spoil, as_user, both, show):
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        folder = Path(scratch) / "checkpoint"
        shutil.copytree(GOOD / start, folder)
        spoil(folder)
        try:
            check(motet, folder, words, as_user, both, show)
        finally:
            if folder.is_dir():
                folder.chmod(0o700)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    motet, show = os.path.abspath(sys.argv[1]), "--show" in sys.argv
    failed, skipped = 0, 0
    # Sanitizers see what readers of files do with a third of them; fuzzers of each reader have more.
    cases = CASES[::3] if "MOTET_TEST_QUICK" in os.environ else CASES
    full = "MOTET_TEST_FULL" in os.environ
    for number, (name, start, words, spoil) in enumerate(cases):
        # Both commands open a folder with the same functions, so one of them does for most cases.
        both = full or (number % 4 == 0 and "MOTET_TEST_QUICK" not in os.environ)
        closed = "permissions" in name and os.geteuid() == 0
        if closed and not may_be_nobody(motet):
            skipped += 1
            continue
        if show:
            print(name)
        try:
            check_case(motet, start, words, spoil, NOBODY if closed else {}, both, show)
        except Wrong as wrong:
            failed += 1
            print(f"{name}: {wrong}", flush=True)
    print(f"hostile: {len(cases) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
