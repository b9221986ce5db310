#!/usr/bin/env python3
"""Sends the requests of Ollama's own page about its API, which is not part of this repository, to a server, and looks
whether the answers have what the page shows.

usage: tests/clients/ollama_examples.py --motet PROGRAM --ollama FOLDER

--ollama: a checkout of github.com/ollama/ollama, of which docs/api.md is read. Every `curl` in it is an example. One
passes where the status is one that is documented (200, unless the page names others), and each member of the last
object that the page shows is in the last object of the answer. Every model of the page is the one in the box, with
tokens for gaps in the place of four others; it is also what a hub on this machine has under the name that is pulled.
Files that the page has by their digests are replaced by the box's, and by a GGUF file that is made here; comments in
bodies are left out."""

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile

import suites

for folder in ("api", "cli", "oracle", "text"):
    sys.path.insert(0, os.path.join(suites.HERE, "..", folder))
# pylint: disable=wrong-import-position
import gguf
import gguf_vocab
import hub as hubs
import served
# pylint: enable=wrong-import-position

SIGHTED = os.path.join(suites.HERE, "..", "oracle", "sighted", "qwen3vl-bf16")

# What the examples need that is not here.
KNOWN = {"POST /api/create quantize": "nothing is quantised here", "POST /api/push": "nothing is sent to a hub"}
# The last object of a stream has these only where a client asks for them in another way now.
GONE = {"context"}


def objects(text):
    """The JSON objects of a block, in which comments and "..." may stand."""
    text = re.sub(r",?\s*\.\.\.", "", re.sub(r"^\s*//.*$", "", text, flags=re.M))
    decoder, at, found = json.JSONDecoder(strict=False), 0, []
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        except ValueError:
            at = len(text)
    return found


def examples(page):
    """(heading, method, path, body, words behind it, objects that are shown) of each request."""
    blocks = list(re.finditer(r"^```(\w*)\n(.*?)^```", page, flags=re.M | re.S))
    asks = [b for b in blocks if b.group(2).startswith("curl")]
    for number, block in enumerate(asks):
        end = asks[number + 1].start() if number + 1 < len(asks) else len(page)
        shown = [o for b in blocks if block.end() <= b.start() < end and b.group(1).startswith("json")
                 for o in objects(b.group(2))]
        command = block.group(2)
        data = re.search(r"-d '(.*)'", command, flags=re.S)
        path = re.search(r"localhost:11434(\S+)", command).group(1)
        method = re.search(r"-X (\w+)", command)
        method = method.group(1) if method else "HEAD" if "curl -I" in command else "POST" if data else "GET"
        heading = re.findall(r"^#+ (.*)$", page[:block.start()], flags=re.M)
        yield (" / ".join(h for h in heading[-2:]), method, path, data.group(1) if data else None,
               page[block.end():end], shown)


GAPS = {"<|vision_pad|>": "<|fim_pad|>", "<tool_response>": "<|fim_prefix|>", "</tool_response>": "<|fim_suffix|>",
        "<|endoftext|>": "<|fim_middle|>"}


def with_gaps(model):
    """Gives tokens of the model that the page does not use the names by which models fill in gaps."""
    path = os.path.join(model, "tokenizer.json")
    tokenizer = gguf_vocab.read_json(path)
    for token in tokenizer["added_tokens"]:
        token["content"] = GAPS.get(token["content"], token["content"])
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {GAPS.get(word, word): number for word, number in vocabulary.items()}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)


def upload(server, path):
    """Uploads a file, and returns its digest."""
    with open(path, "rb") as f:
        data = f.read()
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    answer = server.request("POST", "/api/blobs/" + digest, data)
    assert answer.status == 201, answer.body
    return digest


def make_gguf(path):
    """A small model, of which the tests have the folder."""
    config = gguf_vocab.read_json(os.path.join(SIGHTED, "tokenizer_config.json"))
    tokenizer = gguf_vocab.read_json(os.path.join(SIGHTED, "tokenizer.json"))
    gguf.convert(SIGHTED, path, gguf_vocab.keys_of(tokenizer, config, "gpt2", "gpt-2", 320) |
                 gguf_vocab.chat_keys(SIGHTED, config))


def with_files(server, files, work):
    """The page's {name: digest} with the digests of files that were uploaded."""
    made = {}
    for name in files:
        path = os.path.join(suites.BOX, name)
        if not os.path.exists(path):
            path = os.path.join(work, name)
            if name.endswith(".gguf"):
                make_gguf(path)
            else:
                with open(path, "w", encoding="utf-8") as f:
                    f.write("{}")
        made[name] = upload(server, path)
    return made


def reason(method, path, body):
    for begin, why in KNOWN.items():
        words = begin.split()
        if method == words[0] and path == words[1] and all(w in body for w in words[2:]):
            return why
    return None


def ollama(motet, suite, work):
    with open(os.path.join(suite, "docs", "api.md"), encoding="utf-8") as f:
        page = f.read()
    names = sorted(set(re.findall(r'"(?:model|source|from)": "([^"]+)"', page)))
    created = {"mario", "llama3-backup", "llama3:13b", "deepseek-r1:latest", "mistral:latest", "my-gguf-model", "fred"}
    options = [w for n in names if n not in created for w in ("--alias", n)]
    model = shutil.copytree(suites.BOX, os.path.join(work, "box"))
    with_gaps(model)
    with hubs.Hub() as hub:
        hub.add("meta-llama/Llama-3.2-3B-Instruct", hubs.files_of(model))
        env = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": os.path.join(work, "hub"), "HOME": work, "no_proxy": "127.0.0.1"}
        yield from ask_all(motet, page, model, options, env, work)


def ask_all(motet, page, model, options, env, work):
    with served.Server(motet, model, "--allow-pull", *options, env=env) as server:
        for heading, method, path, text, behind, shown in examples(page):
            body = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M), strict=False) if text else None
            if isinstance(body, dict) and path.startswith(("/api/generate", "/api/chat")):
                body["options"] = {"num_predict": 256, **body.get("options", {})}
            if "files" in (body or {}):
                body["files"] = with_files(server, body["files"], work)
            if method == "POST" and path.startswith("/api/blobs/"):
                body = b"a file"
                path = "/api/blobs/sha256:" + hashlib.sha256(body).hexdigest()
            known = reason(method, path, body)
            answer = server.request(method, path, body)
            statuses = [int(n) for n in re.findall(r"(\d\d\d) (?:OK|Created|Not Found)", behind)] or [200]
            got = objects(answer.body.decode()) if method != "HEAD" else []
            # where the page shows what a "response" says as well, the answer is the one with a time
            wanted = ([o for o in shown if "created_at" in o] or shown or [{}])[-1]
            lacks = set(wanted) - set(got[-1] if got else {}) - GONE
            ok = answer.status in statuses and not lacks
            name = "{} {} ({})".format(method, path, heading)
            if not ok and known:
                yield "{}: {}".format(name, known), None, None
            else:
                yield name, ok, "{} lacks {}: {}".format(answer.status, sorted(lacks), answer.body[-300:])


if __name__ == "__main__":
    suites.main("ollama_examples", {"ollama": ollama})
