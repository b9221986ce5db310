#!/usr/bin/env python3
"""Runs the same GGUF files through llama.cpp and motet, by turns, and prints a table.

    bench/llama_cpp.py --llama FOLDER [--motet FILE] [--synth FILE] [--types Q4_0,Q8_0,Q4_K_M]

FOLDER has llama.cpp's llama-quantize and llama-bench. The model has random weights and the shape of --shape; it is
written to --files once, and used again where it is there. Needs nothing beyond Python's standard library.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))
import gguf  # noqa: E402


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


def make_files(options):
    """The paths of a file for each type."""
    folder = options.files
    folder.mkdir(parents=True, exist_ok=True)
    plain = folder / f"{options.shape}-bf16.gguf"
    if not plain.exists():
        with tempfile.TemporaryDirectory(dir=folder) as checkpoint:
            subprocess.run([options.synth, options.shape, checkpoint], check=True, capture_output=True)
            count = json.loads((Path(checkpoint) / "config.json").read_text())["vocab_size"]
            gguf.convert(checkpoint, plain, vocabulary(count))
    for kind in options.types:
        path = folder / f"{options.shape}-{kind}.gguf"
        if not path.exists():
            command = [options.llama / "llama-quantize", plain, path, kind]
            subprocess.run(command, check=True, capture_output=True)
        yield kind, path


def run_motet(options, path):
    """Tokens a second: of the prompt, and of an answer behind it."""
    command = [options.motet, "bench", path, "--only", "steps", "--prompt", options.prompt, "--batch", 1]
    command += ["--threads", options.threads, "--tokens", options.tokens, "--json", "--log-level", "error"]
    result = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    step = json.loads(result.stdout)["steps"][0]
    return step["prompt_rate"], step["answer_rate"]


def run_llama(options, path):
    command = [options.llama / "llama-bench", "-m", path, "-t", options.threads, "-r", 1, "-o", "json"]
    rates = []
    for what in (["-p", options.prompt, "-n", 0], ["-p", 0, "-n", options.tokens, "-d", options.prompt]):
        words = [str(word) for word in command + what]
        result = subprocess.run(words, check=True, capture_output=True, text=True)
        rates.append(json.loads(result.stdout)[0]["avg_ts"])
    return tuple(rates)


def shown(rates):
    return f"{statistics.median(rates):.1f} ({', '.join(f'{rate:.1f}' for rate in rates)})"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--motet", type=Path, default=Path("build/motet"), metavar="FILE")
    parser.add_argument("--synth", type=Path, default=Path("build/tools/synth"), metavar="FILE")
    parser.add_argument("--files", type=Path, default=Path("build/llama-cpp"), metavar="FOLDER")
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--types", type=lambda text: text.split(","), default=["Q4_0", "Q8_0", "Q4_K_M"])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| file | | motet | llama.cpp | ratio of medians |\n|---|---|---|---|---|")
    for kind, path in make_files(options):
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(run_motet(options, path))
            theirs.append(run_llama(options, path))
        for i, what in enumerate((f"prompt of {options.prompt} tokens", "one answer behind it")):
            a, b = [rates[i] for rates in ours], [rates[i] for rates in theirs]
            ratio = statistics.median(a) / statistics.median(b)
            print(f"| {kind} | {what} | {shown(a)} | {shown(b)} | {ratio:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
