#!/usr/bin/env python3
"""Runs motet and llama.cpp by turns on models of random weights, and prints a table.

    bench/llama_cpp.py --llama FOLDER [--motet FILE] [--types mlx] [--shapes qwen3-0.6b] [--threads 2,8,16]
                       [--prompts 128,512,2048] [--depths 512,2048] [--answers 2,4,8,16] [--rounds 5]

FOLDER has llama.cpp's llama-bench and, for several answers, llama-batched-bench. With the type mlx, motet draws weights
in 4 bits in groups of 64 (`motet bench --shape`), and llama.cpp reads a file of Q4_0. With Q4_0, Q8_0 and others, both
read the same file, which --synth and llama.cpp's llama-quantize make. Files are written to --files once, and used again
where they are there. Several answers stand behind 32 tokens each. Needs nothing beyond Python's standard library.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))
import gguf  # noqa: E402

# hidden, layers, heads, heads of keys, feed forward, whether the output has a matrix of its own
SHAPES = {
    "qwen3-0.6b": (1024, 28, 16, 8, 3072, False),
    "qwen3-1.7b": (2048, 28, 16, 8, 6144, False),
    "qwen3-4b": (2560, 36, 32, 8, 9728, False),
    "qwen3-8b": (4096, 36, 32, 8, 12288, True),
}
HEAD_DIM, VOCABULARY, Q4_0 = 128, 151936, 2


def byte_tokens():
    """The spellings of single bytes in byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) for byte in plain] + [chr(256 + i) for i in range(len(others))]


def vocabulary(count):
    """Keys of a tokenizer of single bytes, with a pair and fillers up to `count` tokens."""
    tokens = [*byte_tokens(), "ab"]
    fillers = [f"<|filler{i}|>" for i in range(count - len(tokens))]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens + fillers,
        "tokenizer.ggml.token_type": [1] * len(tokens) + [3] * len(fillers),
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": count - 1,
    }


def random_tensors(shape):
    """Names and sizes of the tensors of a shape of Qwen3."""
    hidden, layers, heads, kv_heads, forward, output = SHAPES[shape]
    yield "token_embd.weight", [VOCABULARY, hidden]
    for i in range(layers):
        yield f"blk.{i}.attn_norm.weight", [hidden]
        yield f"blk.{i}.attn_q.weight", [heads * HEAD_DIM, hidden]
        yield f"blk.{i}.attn_k.weight", [kv_heads * HEAD_DIM, hidden]
        yield f"blk.{i}.attn_v.weight", [kv_heads * HEAD_DIM, hidden]
        yield f"blk.{i}.attn_q_norm.weight", [HEAD_DIM]
        yield f"blk.{i}.attn_k_norm.weight", [HEAD_DIM]
        yield f"blk.{i}.attn_output.weight", [hidden, heads * HEAD_DIM]
        yield f"blk.{i}.ffn_norm.weight", [hidden]
        yield f"blk.{i}.ffn_gate.weight", [forward, hidden]
        yield f"blk.{i}.ffn_up.weight", [forward, hidden]
        yield f"blk.{i}.ffn_down.weight", [hidden, forward]
    yield "output_norm.weight", [hidden]
    if output:
        yield "output.weight", [VOCABULARY, hidden]


def write_random(shape, path):
    """A GGUF file of a shape: matrices in Q4_0, random codes with one scale, and norms of 1."""
    hidden, layers, heads, kv_heads, forward, _ = SHAPES[shape]
    keys = {
        "general.architecture": "qwen3",
        "qwen3.block_count": layers,
        "qwen3.context_length": 40960,
        "qwen3.embedding_length": hidden,
        "qwen3.feed_forward_length": forward,
        "qwen3.attention.head_count": heads,
        "qwen3.attention.head_count_kv": kv_heads,
        "qwen3.attention.key_length": HEAD_DIM,
        "qwen3.attention.value_length": HEAD_DIM,
        "qwen3.attention.layer_norm_rms_epsilon": 1e-6,
        "qwen3.rope.freq_base": 1e6,
        **vocabulary(VOCABULARY),
    }
    tensors = list(random_tensors(shape))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        kind, data = gguf.value_of(value)
        head += gguf.text(key) + struct.pack("<I", kind) + data
    sizes, at = [], 0
    for name, dims in tensors:
        size = dims[0] * dims[1] // 32 * 18 if len(dims) == 2 else dims[0] * 4
        head += gguf.text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *reversed(dims))
        head += struct.pack("<IQ", Q4_0 if len(dims) == 2 else gguf.F32, at)
        sizes.append((len(dims), size))
        at += size + len(gguf.padding(size))
    block = struct.pack("<e", 0.01)
    codes = b"".join(block + os.urandom(16) for _ in range(1 << 16))
    with path.open("wb") as file:
        file.write(head + gguf.padding(len(head)))
        for dims, size in sizes:
            source = codes if dims == 2 else struct.pack("<f", 1.0) * 1024
            for begin in range(0, size, len(source)):
                file.write(source[: size - begin])
            file.write(gguf.padding(size))


def file_of(options, shape, kind):
    """The path of a shape's file of a type."""
    options.files.mkdir(parents=True, exist_ok=True)
    path = options.files / f"{shape}-{kind}.gguf"
    if path.exists():
        return path
    if kind == "mlx":
        write_random(shape, path)
        return path
    plain = options.files / f"{shape}-bf16.gguf"
    if not plain.exists():
        with tempfile.TemporaryDirectory(dir=options.files) as checkpoint:
            subprocess.run([options.synth, shape, checkpoint], check=True, capture_output=True)
            count = json.loads((Path(checkpoint) / "config.json").read_text())["vocab_size"]
            gguf.convert(checkpoint, plain, vocabulary(count))
    subprocess.run([options.llama / "llama-quantize", plain, path, kind], check=True, capture_output=True)
    return path


def output(command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)


def listed(numbers):
    return ",".join(str(number) for number in numbers)


def run_motet(options, shape, kind, path, threads):
    """Tokens a second of each row."""
    model = ["--shape", shape] if kind == "mlx" else [path]
    command = [options.motet, "bench", *model, "--threads", threads, "--tokens", options.tokens]
    command += ["--json", "--log-level", "error"]
    rates = {}
    only = [word for word, wanted in (("steps", options.prompts), ("depths", options.depths)) if wanted]
    if only:
        words = ["--only", listed(only), "--batch", 1]
        words += ["--prompt", listed(options.prompts)] if options.prompts else []
        words += ["--depth", listed(options.depths)] if options.depths else []
        found = json.loads(output(command + words).stdout)
        rates |= {("prompt", step["prompt"]): step["prompt_rate"] for step in found.get("steps", [])}
        rates |= {("depth", int(step["depth"])): step["answer_rate"] for step in found.get("depths", [])}
    if options.answers:
        words = ["--only", "depths", "--depth", 32, "--batch", listed(options.answers)]
        found = json.loads(output(command + words).stdout)
        rates |= {("answers", step["batch"]): step["answer_rate"] for step in found["depths"]}
    return rates


def run_llama(options, path, threads):
    command = [options.llama / "llama-bench", "-m", path, "-t", threads, "-r", 1, "-o", "json", *options.flags]
    rates = {}
    if options.prompts:
        found = json.loads(output([*command, "-p", listed(options.prompts), "-n", 0]).stdout)
        rates |= {("prompt", test["n_prompt"]): test["avg_ts"] for test in found}
    if options.depths:
        words = ["-p", 0, "-n", options.tokens, "-d", listed(options.depths)]
        rates |= {("depth", test["n_depth"]): test["avg_ts"] for test in json.loads(output(command + words).stdout)}
    if options.answers:
        command = [options.llama / "llama-batched-bench", "-m", path, "-t", threads, "-npp", 32]
        command += ["-ntg", options.tokens, "-npl", listed(options.answers), "--output-format", "jsonl", *options.flags]
        command += ["-c", max(options.answers) * (32 + options.tokens)]
        for line in output(command).stdout.splitlines():
            if line.startswith("{"):
                found = json.loads(line)
                rates["answers", found["pl"]] = found["speed_tg"]
    return rates


def shown(rates):
    return f"{statistics.median(rates):.4g} ({', '.join(f'{rate:.4g}' for rate in rates)})"


def named(row):
    what, number = row
    texts = {
        "prompt": f"prompt of {number} tokens",
        "depth": f"one answer behind {number}",
        "answers": f"{number} answers",
    }
    return texts[what]


def numbers(text):
    return [int(word) for word in text.split(",")] if text else []


def whole(text):
    """A path that names a program, wherever it is."""
    return Path(text).resolve()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", type=whole, required=True, metavar="FOLDER")
    parser.add_argument("--flags", type=str.split, default=[], help="more options of llama.cpp's programs: '-fa 1'")
    parser.add_argument("--motet", type=whole, default="build/motet", metavar="FILE")
    parser.add_argument("--synth", type=whole, default="build/tools/synth", metavar="FILE")
    parser.add_argument("--files", type=Path, default=Path("build/llama-cpp"), metavar="FOLDER")
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=["qwen3-0.6b"])
    parser.add_argument("--types", type=lambda text: text.split(","), default=["mlx"])
    parser.add_argument("--threads", type=numbers, default=[2])
    parser.add_argument("--prompts", type=numbers, default=[512])
    parser.add_argument("--depths", type=numbers, default=[512])
    parser.add_argument("--answers", type=numbers, default=[])
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| shape | type | threads | | motet | llama.cpp | ratio of medians |\n|---|---|---|---|---|---|---|")
    for shape in options.shapes:
        for kind in options.types:
            path = file_of(options, shape, kind)
            for threads in options.threads:
                ours, theirs = [], []
                for _ in range(options.rounds):
                    ours.append(run_motet(options, shape, kind, path, threads))
                    theirs.append(run_llama(options, path, threads))
                for row in ours[0]:
                    a, b = [rates[row] for rates in ours], [rates[row] for rates in theirs]
                    ratio = statistics.median(a) / statistics.median(b)
                    head = f"| {shape} | {kind} | {threads} | {named(row)}"
                    print(f"{head} | {shown(a)} | {shown(b)} | {ratio:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
