#!/usr/bin/env python3
"""usage: make_tokenizer.py

Learns the tokenizer from conversations of our own and writes tokens/tokenizer.json and tokens/tokenizer_config.json."""

import collections
import json
import re

from bpe import BYTES, WORD, learn
from data.dice import Dice
from data.mix import conversation
from shape import Shape
from template import PLAIN, SPECIAL, TOKENS, load, render

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SEED, COUNT = 71, 30000


def counted():
    template, marks = load(), re.compile("|".join(re.escape(t) for t in SPECIAL + PLAIN))
    counts = collections.Counter()
    for i in range(COUNT):
        for piece in marks.split(render(template, conversation(Dice(f"{SEED} {i}")))):
            counts.update(WORD.findall(piece))
    return counts


def main():
    added = SPECIAL + PLAIN
    vocab = Shape().vocab - len(added)
    merges = learn(counted(), vocab - 256)
    known = [a + b for a, b in merges]
    # Capitals stay alone: what is printed in a picture, or written in upper case, is then spelled letter by letter,
    # which is easier than to guess how a word never seen would be cut. The places of the joined ones remain unused.
    merges = [m for m in merges if len(re.findall("[A-Z]", "".join(m))) < 2]
    ids = {c: i for i, c in enumerate(sorted(BYTES.values()))}
    for token in known:
        ids.setdefault(token, len(ids))
    entry = lambda t, special: {
        "id": vocab + added.index(t),
        "content": t,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [entry(t, t in SPECIAL) for t in added],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False},
                byte_level,
            ],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": [list(m) for m in merges],
        },
    }
    (TOKENS / "tokenizer.json").write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n")
    settings = {
        "tokenizer_class": "Qwen2Tokenizer",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "unk_token": None,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": False,
        "model_max_length": Shape().positions,
        "additional_special_tokens": SPECIAL[1:],
        "added_tokens_decoder": {str(e["id"]): {k: v for k, v in e.items() if k != "id"} for e in made["added_tokens"]},
    }
    (TOKENS / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    print(len(ids), "tokens and", len(added), "marks")


if __name__ == "__main__":
    main()
