#!/usr/bin/env python3
"""How much later first tokens come while a batch runs than while none does.

Serves one model and takes turns: so many streamed requests without a batch, so many beside one, again and again, so that
whatever else the machine does falls on both. Prompts are different each time, and the pauses between them random.
Prints the median of each turn, and the medians of all requests with their ratio.

usage: bench/beside.py --motet PROGRAM (--folder DIR | --synth PROGRAM [--shape qwen3-0.6b] [--layout mlx-4bit])
       [--rounds 6] [--requests 8] [--prompt 200] [--tokens 8] [--batch-prompt 200] [--batch-tokens 64]
       [--serve OPTIONS]
"""

import argparse
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import served

LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def words(rng, count):
    """A text of `count` words of two letters; in the vocabulary of served.py each is a token with its blank."""
    return " ".join(rng.choice(LETTERS) + rng.choice(LETTERS) for _ in range(count))


def ask(url, path, body=None, method=None, kind="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.loads(answer.read())


def first_token(url, text, tokens):
    """Seconds until the first event of an answer with a token; reads the answer to its end."""
    body = {"prompt": text, "max_tokens": tokens, "stream": True, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    begin, first = time.monotonic(), None
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in answer:
            if first is None and line.startswith(b"data: {"):
                first = time.monotonic() - begin
    return first


def upload(url, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    body = ('--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x\r\ncontent-disposition: '
            'form-data; name="file"; filename="lines.jsonl"\r\n\r\n' + text + "\r\n--x--\r\n").encode()
    return ask(url, "/v1/files", body, kind="multipart/form-data; boundary=x")["id"]


class Batch:
    """A batch with more lines than are answered while it is wanted."""

    def __init__(self, url, rng, args):
        lines = [{"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                  "body": {"prompt": words(rng, args.batch_prompt), "max_tokens": args.batch_tokens,
                           "ignore_eos": True}} for i in range(2000)]
        self.url = url
        self.path = "/v1/batches/" + ask(url, "/v1/batches", {
            "input_file_id": upload(url, lines), "endpoint": "/v1/completions", "completion_window": "24h"})["id"]

    def look(self):
        return ask(self.url, self.path)

    def __enter__(self):
        while self.look()["request_counts"]["completed"] == 0:
            time.sleep(0.05)
        return self

    def __exit__(self, *about):
        ask(self.url, self.path + "/cancel", b"", "POST")
        while self.look()["status"] != "cancelled":
            time.sleep(0.05)


def turn(url, rng, args):
    got = []
    for _ in range(args.requests):
        time.sleep(rng.random() * args.pause)
        got.append(first_token(url, words(rng, args.prompt), args.tokens))
    return got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", required=True)
    parser.add_argument("--synth")
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--layout", default="mlx-4bit")
    parser.add_argument("--folder", help="where the checkpoint is, or is put; else a folder that goes again")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--requests", type=int, default=8, help="of one turn")
    parser.add_argument("--prompt", type=int, default=200, help="words of a request")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.5, help="longest pause before a request, in seconds")
    parser.add_argument("--batch-prompt", type=int, default=200, help="words of a line of the batch")
    parser.add_argument("--batch-tokens", type=int, default=64)
    parser.add_argument("--serve", default="", help="more options of motet serve")
    args = parser.parse_args()
    made = tempfile.TemporaryDirectory()
    folder = args.folder or os.path.join(made.name, "model")
    if not os.path.exists(os.path.join(folder, "config.json")):
        subprocess.run([args.synth, args.shape, folder, "--layout", args.layout], check=True)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        served.write_tokenizer(folder, config["vocab_size"], {})
    rng, alone, beside = random.Random(1), [], []
    with served.Server([args.motet, "serve", folder, "--port", "0", "--files-dir", os.path.join(made.name, "files"),
                        *shlex.split(args.serve)]) as server:
        turn(server.url, rng, args)  # until the server knows what steps cost
        for i in range(args.rounds):
            one = turn(server.url, rng, args)
            with Batch(server.url, rng, args) as batch:
                before = batch.look()["request_counts"]["completed"]
                other = turn(server.url, rng, args)
                lines = batch.look()["request_counts"]["completed"] - before
            print("{}: {:.0f} ms without, {:.0f} ms beside a batch, of which {} lines were answered".format(
                i + 1, 1e3 * statistics.median(one), 1e3 * statistics.median(other), lines), flush=True)
            alone += one
            beside += other
    for name, got in ("without", alone), ("beside a batch", beside):
        got.sort()
        print("{}: median {:.0f} ms, 9 of 10 below {:.0f} ms, of {}".format(
            name, 1e3 * statistics.median(got), 1e3 * got[len(got) * 9 // 10], len(got)))
    print("ratio of medians {:.2f}".format(statistics.median(beside) / statistics.median(alone)))
    made.cleanup()


if __name__ == "__main__":
    main()
