#!/usr/bin/env python3
"""What of a model's speed comes through HTTP: `motet bench --url` beside `motet bench` of the same weights.

Writes a checkpoint with random weights of a real shape (tools/synth) and a tokenizer of as many tokens, serves it, and
prints three things: what prompts and answers of so many clients would take if steps followed each other without a gap,
by `motet bench`; what clients have over HTTP, and which share that is; and how soon the first token comes of a prompt
that is in the cache. Needs nothing but Python and the two programs.

usage: bench/served.py --motet PROGRAM --synth PROGRAM [--shape qwen3-8b] [--layout mlx-4bit] [--device cuda]
       [--clients 64] [--prompt 512] [--tokens 256] [--requests 0] [--cached 16384] [--picture 0] [--folder DIR]
       [--serve OPTIONS]

--picture 448: one of eight clients sends a picture of that side with each request, never the same twice. What stands
beside it then is what the same prompts, answers and pictures would take one after the other.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading

CHAT = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for c in m.content %}{% if c.type == 'text' %}{{ c.text }}{% else %}"
        "<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SEEN = {"vision_start_token_id": "<|vision_start|>", "vision_end_token_id": "<|vision_end|>",
        "image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>"}
PICTURED = 8  # one client of so many sends pictures
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_letters():
    """The letters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(others))]


def write_tokenizer(folder, size, seen):
    """Pairs of letters, and pairs of these, until there are enough. seen: words that have an id already."""
    tokens, merges = byte_letters(), []
    pairs = [a + b for a in LETTERS for b in LETTERS]
    for pair in pairs:
        tokens.append(pair)
        merges.append(list(pair))
    for i in range(len(pairs) ** 2):
        while len(tokens) in seen:
            tokens.append(seen[len(tokens)])
        if len(tokens) == size - len(SPECIAL):
            break
        a, b = pairs[i // len(pairs)], pairs[i % len(pairs)]
        tokens.append(a + b)
        merges.append([a, b])
    vocabulary = {token: i for i, token in enumerate(tokens)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False}
    words = {**seen, **{len(tokens) + i: word for i, word in enumerate(SPECIAL)}}
    added = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for i, word in sorted(words.items())]
    files = {
        "tokenizer.json": {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "NFC"}, "post_processor": None, "decoder": level,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocabulary, "merges": merges}},
        "tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "eos_token": SPECIAL[2], "chat_template": CHAT}}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            json.dump(content, out)


class Server:
    """Until it is left; its log goes to standard error."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.url = None
        for line in self.process.stderr:
            sys.stderr.write(line)
            found = re.search(r"https?://[\w.:]+\d", line)
            if found and "listening" in line:
                self.url = found.group(0)
            if "model.ready" in line:
                break
        threading.Thread(target=lambda: [sys.stderr.write(line) for line in self.process.stderr], daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *about):
        self.process.terminate()
        self.process.wait()


def measure(*commands):
    """What they print, all started at once."""
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    texts = [process.communicate()[0] for process in started]
    for command, process in zip(commands, started):
        if process.returncode:
            sys.exit("{}: exit status {}".format(" ".join(command), process.returncode))
    return [json.loads(text) for text in texts]


def loads_of(url, args):
    """The commands of all clients: those that send words alone, and those that send a picture as well."""
    pictured = args.clients // PICTURED if args.picture else 0
    each = (args.requests or 2 * args.clients) / args.clients
    for clients, options in (args.clients - pictured, []), (pictured, ["--picture", str(args.picture)]):
        if clients:
            yield [*url, "--clients", str(clients), "--prompt", str(args.prompt), "--tokens", str(args.tokens),
                   "--requests", str(int(each * clients)), "--temperature", str(args.temperature), "--top-p",
                   str(args.top_p), *options]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", required=True)
    parser.add_argument("--synth", required=True)
    parser.add_argument("--shape", default="qwen3-8b")
    parser.add_argument("--layout", default="mlx-4bit")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--requests", type=int, default=0, help="of all clients; 0: two of each")
    parser.add_argument("--cached", type=int, default=16384, help="tokens of the prompt that is in the cache; 0: none")
    parser.add_argument("--picture", type=int, default=0, help="side of pictures that every eighth client sends")
    parser.add_argument("--temperature", type=float, default=0, help="above 0, tokens are drawn")
    parser.add_argument("--top-p", type=float, default=1)
    parser.add_argument("--folder", help="where the checkpoint is, or is put; else a folder that goes again")
    parser.add_argument("--serve", default="", help="more options of motet serve")
    args = parser.parse_args()
    made = None if args.folder else tempfile.TemporaryDirectory()
    folder = args.folder or made.name
    if not os.path.exists(os.path.join(folder, "config.json")):
        subprocess.run([args.synth, args.shape, folder, "--layout", args.layout], check=True)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    write_tokenizer(folder, config.get("text_config", config)["vocab_size"],
                    {config[name]: word for name, word in SEEN.items() if name in config})

    [alone] = measure([args.motet, "bench", folder, "--device", args.device, "--only", "steps", "--json", "--prompt",
                     str(args.prompt), "--batch", str(args.clients), "--tokens", "32"])
    alone = alone["steps"][0]
    rate, step = alone["prompt_rate"], alone["step_ms"] * 1e-3
    seconds = args.clients * args.prompt / rate + args.tokens * step
    if args.picture:
        [tower] = measure([args.motet, "bench", folder, "--device", args.device, "--only", "tower", "--json",
                           "--picture", str(args.picture)])
        tower = tower["tower"][0]
        seconds += args.clients // PICTURED * (tower["seconds"] + tower["tokens"] / rate)
        print("tower: {:.1f} ms a picture of {} tokens".format(1e3 * tower["seconds"], tower["tokens"]), flush=True)
    ideal = args.clients * args.tokens / seconds
    print("bench: {:.0f} tokens/s of prompts, {:.2f} ms a step of {} answers, {:.0f} tokens/s of answers; both: {:.0f}".
          format(rate, 1e3 * step, args.clients, alone["answer_rate"], ideal), flush=True)
    with Server([args.motet, "serve", folder, "--device", args.device, "--port", "0", "--max-sequences",
                 str(args.clients), *shlex.split(args.serve)]) as server:
        url = [args.motet, "bench", "--url", server.url, "--json"]
        loads = measure(*loads_of(url, args))
        rows = [row for load in loads for row in load["loads"]]
        print(json.dumps(rows), flush=True)
        got = sum(row["rate"] for row in rows)
        print("http: {:.0f} tokens/s: {:.0f} % of what prompts and answers take alone, {:.0f} % of answers alone".
              format(got, 100 * got / ideal, 100 * got / alone["answer_rate"]), flush=True)
        if args.cached:
            print(json.dumps(*measure([*url, "--clients", "1", "--prefix", str(args.cached), "--prompt", "16",
                                      "--tokens", "4", "--requests", "12"])), flush=True)
    [first] = measure([args.motet, "bench", folder, "--device", args.device, "--only", "first", "--json", "--prompt",
                     str(args.cached or args.prompt)])
    print("engine: first token {}".format(json.dumps(first.get("first"))), flush=True)
    if made:
        made.cleanup()


if __name__ == "__main__":
    main()
