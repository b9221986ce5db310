#!/usr/bin/env python3
"""Holds `--arithmetic sm90` on a CPU to what an NVIDIA GPU of compute capability 9.0 computes: hashes of the logits of
tiny checkpoints, and saved answers, which `motet verify` must accept, and refuse with a digit changed. With --record
the GPU is asked and sm90.json is written, as has to be done when the rules' version changes (docs/numerics.md); that
takes about a minute and nothing but Python's standard library.

usage: tests/oracle/sm90.py --motet PROGRAM [--file FILE] [--record]"""
import argparse
import base64
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import fixture  # noqa: E402
import served  # noqa: E402

# Those of the repository: dense, experts, hybrid; codes of 4 and 8 bits, bf16, FP8, mxfp8; windows, sinks, towers.
STORED = ["checkpoints/qwen3-mlx-4bit-g32", "checkpoints/llama-mlx-4bit", "checkpoints/llama-bf16",
          "checkpoints/qwen3-fp8", "checkpoints/qwen3-mlx-mxfp8", "checkpoints/qwen3moe-fused-bf16",
          "checkpoints/gptoss-mlx-mxfp4-q8", "checkpoints/qwen3moe-ct-fp8", "sighted/qwen3vl-bf16", "sighted/qwen35-mlx-4bit", "sighted/gemma3vl-mlx-4bit"]
# Those that are made here, with heads for which the GPU has kernels of their own; capped scores.
MADE = {"heads-64": (64, False), "heads-72": (72, False), "heads-96": (96, False), "heads-128": (128, False),
        "heads-256": (256, False), "capped-64": (64, True), "capped-128": (128, True), "capped-256": (256, True)}
QUICK = ["checkpoints/qwen3-mlx-4bit-g32", "sighted/qwen3vl-bf16", "sighted/qwen35-mlx-4bit", "heads-128"]
ANSWERED = [("sighted/qwen3vl-mlx-4bit", "native"), ("sighted/qwen3vl-bf16", "native"),
            ("sighted/qwen35-mlx-4bit", "native"), ("sighted/qwen35-mlx-4bit", "portable")]


# ---- checkpoints ----

def as_bf16(path):
    """Rewrites a file of fp32 tensors: the upper halves of their numbers."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    new = b""
    for tensor in header.values():
        begin, end = tensor["data_offsets"]
        halves = b"".join(data[i + 2:i + 4] for i in range(begin, end, 4))
        tensor.update(dtype="BF16", data_offsets=[len(new), len(new) + len(halves)])
        new += halves
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + new)


def make(folder, dim, capped):
    """The model of the API's tests in bf16, with heads of this size; capped: as Gemma 2."""
    fixture.HEAD_DIM, fixture.LAYERS = dim, 1
    if capped:
        plain = fixture.tensors
        name = "model.layers.0.{}_feedforward_layernorm.weight"
        norms = {name.format(when): (fixture.HIDDEN,) for when in ("pre", "post")}
        fixture.tensors = lambda: {**plain(), **norms}
    fixture.write(folder)
    as_bf16(os.path.join(folder, "model.safetensors"))
    if capped:
        fixture.tensors = plain
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        config.update(architectures=["Gemma2ForCausalLM"], model_type="gemma2", attn_logit_softcapping=5.0,
                      final_logit_softcapping=30.0, query_pre_attn_scalar=dim, sliding_window=4096,
                      hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
    return folder


# ---- what is asked ----

def hashes(motet, folder, *device):
    """Of the logits of prompts and of answers side by side, and of a picture's features."""
    parts = "steps,tower" if "sighted" in folder else "steps"
    done = subprocess.run([motet, "bench", folder, "--only", parts, "--prompt", "33,300", "--batch", "1,3", "--tokens",
                           "3", "--picture", "64", "--json", "--log-level", "error", *device], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise AssertionError("{}: {}".format(folder, done.stderr))
    report = json.loads(done.stdout)
    return [row["hash"] for part in ("steps", "tower") for row in report.get(part, [])], report["machine"]


def picture():
    with open(os.path.join(HERE, "pictures", "tiny.png"), "rb") as f:
        return "data:image/png;base64," + base64.b64encode(f.read()).decode()


def requests(folder):
    """A drawn answer with logprobs, a greedy one, one to a picture."""
    words = "Say something about singing, in many words: one voice, then two, then seven. "
    common = {"model": os.path.basename(folder), "max_tokens": 8, "seed": 7, "logprobs": True, "top_logprobs": 2}
    seen = [{"type": "image_url", "image_url": {"url": picture()}}, {"type": "text", "text": "What is this?"}]
    yield {**common, "temperature": 0.9, "messages": [{"role": "user", "content": words}]}
    yield {**common, "temperature": 0, "messages": [{"role": "user", "content": words * 5}]}
    yield {**common, "temperature": 0, "messages": [{"role": "user", "content": seen}]}


def ask(motet, folder, arithmetic, *device):
    with served.Server(motet, folder, "--precision", "fast", "--arithmetic", arithmetic, *device) as server:
        for request in requests(folder):
            answer = server.post("/v1/chat/completions", request)
            assert answer.status == 200, answer.body
            yield {"request": request, "answer": answer.json()}


# ---- recording ----

def record(motet, path, device, arithmetic):
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(4) as pool:
        folders = {name: os.path.join(HERE, name) for name in STORED}
        for name, shape in MADE.items():
            folders[name] = make(os.path.join(place, name), *shape)
        way = ("--device", device, "--arithmetic", arithmetic)
        found = dict(zip(folders, pool.map(lambda folder: hashes(motet, folder, *way), folders.values())))
        answers = [{"checkpoint": name, **saved} for name, how in ANSWERED
                   for saved in ask(motet, os.path.join(HERE, name), how, "--device", device)]
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"machine": next(iter(found.values()))[1], "hashes": {name: h for name, (h, _) in found.items()},
                   "answers": answers}, f, indent=1)
        f.write("\n")
    print("{}: {} checkpoints, {} answers".format(path, len(found), len(answers)))


# ---- the test ----

def verify(motet, saved, folder):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump({k: saved[k] for k in ("request", "answer")}, f)
        f.flush()
        done = subprocess.run([motet, "verify", f.name, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def changed(saved):
    """The same with the last digit of a logprob changed."""
    other = copy.deepcopy(saved)
    at = other["answer"]["choices"][0]["logprobs"]["content"][-1]
    digits = repr(at["logprob"])
    at["logprob"] = float(digits[:-1] + str((int(digits[-1]) + 1) % 10))
    return other


def check(motet, path):
    with open(path, encoding="utf-8") as f:
        recorded = json.load(f)
    quick = bool(os.environ.get("MOTET_TEST_QUICK"))
    right = []

    def count(ok, what):
        right.append(ok)
        if not ok:
            print("FAIL", what, flush=True)

    with tempfile.TemporaryDirectory() as place:
        for name in QUICK if quick else recorded["hashes"]:
            folder = make(os.path.join(place, name), *MADE[name]) if name in MADE else os.path.join(HERE, name)
            got, want = hashes(motet, folder, "--device", "cpu", "--arithmetic", "sm90")[0], recorded["hashes"][name]
            count(got == want, "{}: {}, the GPU had {}".format(name, got, want))
    for i, saved in enumerate(recorded["answers"][::5 if quick else 1]):
        folder, what = os.path.join(HERE, saved["checkpoint"]), "answer {} of {}".format(i, saved["checkpoint"])
        code, out = verify(motet, saved, folder)
        count(code == 0, "{}: {}".format(what, out))
        if i % 3 == 0:
            code, out = verify(motet, changed(saved), folder)
            count(code == 1, "{} with another digit: {}".format(what, out))
    print("oracle-sm90: {} passed, {} failed".format(sum(right), len(right) - sum(right)))
    return all(right)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", required=True)
    parser.add_argument("--file", default=os.path.join(HERE, "sm90.json"))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--device", default="cuda", help="what is asked")
    parser.add_argument("--arithmetic", default="native", help="of what is asked for hashes")
    args = parser.parse_args()
    motet = os.path.abspath(args.motet) if os.sep in args.motet else shutil.which(args.motet)
    if args.record:
        record(motet, args.file, args.device, args.arithmetic)
        return 0
    return 0 if check(motet, args.file) else 1


if __name__ == "__main__":
    sys.exit(main())
