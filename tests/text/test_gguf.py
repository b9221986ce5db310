#!/usr/bin/env python3
"""Tokenizers as tokenizer.json and as the vocabulary of a GGUF file: both have to give the same tokens and texts.

usage: tests/text/test_gguf.py PROGRAM

PROGRAM is text_corpus. Compared are small tokenizers in the form that those of well-known models have, with merges
across all characters, so that another way to split a text gives other tokens, and the tokenizers of tests/oracle."""

import json
import os
import subprocess
import sys
import tempfile

import gguf_vocab

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "\u2581"
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

TEXTS = [
    "", " ", "  ", "   a", "a   ", "\n", "\n\n\n", " \n \n\n", "\t\tx = 1;\n", "Hello, world!", "Hello,  World  !",
    "It's we'LL they'Re don't 'S 'tis", "HTTPServer parseJSON iPhone XMLHttpRequest aBC", "0 12 345 6789 01234567 3.14",
    "a1b22c333 x_1 1st 2nd", "caf\u00e9 cafe\u0301 na\u00efve \u00c5 A\u030a", "\u4e2d\u6587 \u65e5\u672c\u8a9e\u30c6"
    "\u30b9\u30c8 \ud55c\uad6d\uc5b4", "\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22", "\u0627\u0644\u0639 \u0661\u0662\u0663 \u00b2 \u00bd",
    "\U0001f600 \U0001f468\u200d\U0001f469 \U0001f1e9\U0001f1ea", "if (x != 0) { return y[i]->z; } // ok\r\n",
    "https://a.example/b?c=1&d=%20#e", "/path/to/file.c:12: \"quoted\" ...!!!???", "\u00a0\u2003\u200b\u3000x",
    "<b>bold</b> <s> </s> <|im_end|> <|im_start|>user\nhi<|im_end|>", "[INST] a [/INST]b</s>", "<unk> <0x0A> <0x41>",
    MARK + " " + MARK * 2 + "a", "\u01c5 \ufb01 \u2167 \u24d0", "aaaaaaaaaaaaaaaa bbbbbbbb", "the theme of the then",
    "in the end; the thing, the string: 'the'", " the\n the\n\n the   the",
]

SPLITS = {
    "llama3": CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
              "|\\s+(?!\\S)|\\s+",
    "qwen2": CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
             "|\\s+(?!\\S)|\\s+",
}


def recorded(name):
    """The pattern of a tokenizer whose answers by the library are recorded."""
    with open(os.path.join(HERE, "tokenizers", name + ".json"), encoding="utf-8") as file:
        return json.load(file)["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def level(regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def cut_by(*patterns):
    return {"type": "Sequence", "pretokenizers": [split(pattern) for pattern in patterns] + [level(False)]}


# What is published under the names: pre-tokenizer, normalizer, ignore_merges.
NFC = {"type": "NFC"}
TEKKEN = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
          "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}|"
          " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
SEED = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
DIGITS = {"type": "Digits", "individual_digits": True}
PUBLISHED = {
    "llama-bpe": (cut_by(SPLITS["llama3"]), None, True), "lfm2": (cut_by(SPLITS["llama3"]), None, True),
    "pixtral": (cut_by(SPLITS["llama3"]), None, True), "glm4": (cut_by(SPLITS["llama3"]), None, False),
    "chatglm-bpe": (cut_by(SPLITS["llama3"]), None, False), "qwen2": (cut_by(SPLITS["qwen2"]), NFC, False),
    "deepseek-r1-qwen": (cut_by(SPLITS["qwen2"]), NFC, False), "qwen35": (cut_by(recorded("cut-qwen3.5")), NFC, False),
    "gpt-4o": (cut_by(recorded("cut-o200k")), None, True), "tekken": (cut_by(TEKKEN), None, True),
    "gpt-2": (level(True), None, False), "roberta-bpe": (level(True), None, False),
    "minimax-m2": (cut_by(recorded("cut-o200k")), None, False), "dbrx": (cut_by(SPLITS["llama3"]), None, False),
    "smaug-bpe": (cut_by(SPLITS["llama3"]), None, False), "olmo": (level(True), None, False),
    "exaone4": (level(True), None, False), "seed-coder": (cut_by(SEED), None, False),
    "refact": ({"type": "Sequence", "pretokenizers": [DIGITS, level(True)]}, None, False),
    "starcoder": ({"type": "Sequence", "pretokenizers": [DIGITS, level(True)]}, None, False),
    "command-r": ({"type": "Sequence", "pretokenizers": [DIGITS, level(True)]}, NFC, False),
    "smollm": ({"type": "Sequence", "pretokenizers": [DIGITS, level(True)]}, None, False),
    "deepseek-v3": (cut_by("\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", recorded("cut-deepseek")),
                    None, False),
    "deepseek-coder": ({"type": "Sequence", "pretokenizers": [
        split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"),
        split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), DIGITS, level(False)]}, None, False),
}


def byte_letters():
    """The character that stands for each byte."""
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    rest = iter(range(256, 512))
    return [chr(byte if byte in plain else next(rest)) for byte in range(256)]


def train(words, count):
    """The most frequent pairs of neighbours, one after another. Words are lists of symbols."""
    merges = []
    for _ in range(count):
        pairs = {}
        for word in words:
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < 2:
            break
        merges.append(best)
        for word in words:
            at = 0
            while at < len(word) - 1:
                if (word[at], word[at + 1]) == best:
                    word[at:at + 2] = ["".join(best)]
                at += 1
    return merges


def added(token_id, content, special=True):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special}


def around(first, ids):
    return {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": first, "type_id": 0}},
                                                     {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {first: {"id": first, "ids": [ids[first]], "tokens": [first]}}}


def tokenizer_of(vocab, merges, tokens, **parts):
    """tokens: (content, special) each, behind the vocabulary."""
    ids = {content: len(vocab) + i for i, (content, _) in enumerate(tokens)}
    tokenizer = {"version": "1.0",
                 "added_tokens": [added(ids[content], content, special) for content, special in tokens],
                 "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                 "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                 "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                           "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                           "ignore_merges": False, "vocab": vocab, "merges": [list(merge) for merge in merges]}}
    tokenizer["model"].update(parts.pop("model", {}))
    tokenizer.update(parts)
    return tokenizer, ids


def byte_level(pre, merges):
    """A tokenizer that splits as `pre`; some words are tokens that merges do not make."""
    letters = byte_letters()
    whole = ["".join(letters[b] for b in word) for word in (b" theme", b"HTTP", b"345", b"\n\n\n")]
    texts = letters + ["".join(merge) for merge in merges]
    texts += [word for word in whole if word not in texts]
    cut, normalizer, ignore = PUBLISHED[pre]
    tokenizer, ids = tokenizer_of(
        {text: i for i, text in enumerate(dict.fromkeys(texts))}, merges,
        [("<s>", True), ("<|im_end|>", True), ("<b>", False)], pre_tokenizer=cut, normalizer=normalizer,
        model={"ignore_merges": ignore})
    if pre != "gpt-2":
        tokenizer["post_processor"] = around("<s>", ids)
    return tokenizer, {"bos_token": "<s>", "eos_token": "<|im_end|>"}


def sentencepiece(merges, prefix):
    """As Llama 2's (prefix) or Gemma's; pieces that were added stand behind the others."""
    runs = ["\n" * n for n in range(2, 6)] + [MARK * n for n in range(2, 6)]
    ranked = [left + right for left, right in merges]
    chars = sorted(set("".join(TEXTS).replace(" ", MARK)) - set("\U0001f600\u0939\u4e2d"))
    texts = ["<unk>", "<s>", "</s>"] + ["<0x{:02X}>".format(i) for i in range(256)] + ranked + chars
    vocab = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    decoders = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}]
    normalizer = replace
    if prefix:
        normalizer = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, replace]}
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    # Each way to make a piece of two is a merge, in the order of the pieces; those of added ones come first.
    pieces = [] if prefix else runs
    vocab.update({run: len(vocab) + i for i, run in enumerate(run for run in pieces if run not in vocab)})
    pairs = [(-10 if piece in pieces else order, -cut, cut - len(piece), vocab[piece], (piece[:cut], piece[cut:]))
             for order, piece in enumerate(pieces + [piece for piece in ranked if piece not in pieces])
             for cut in range(1, len(piece)) if piece[:cut] in vocab and piece[cut:] in vocab]
    tokenizer, ids = tokenizer_of(
        vocab, [pair[-1] for pair in sorted(pairs)], [("<|im_end|>", True)], normalizer=normalizer,
        decoder={"type": "Sequence", "decoders": decoders},
        model={"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True})
    tokenizer["added_tokens"] += [added(vocab[text], text) for text in ("<unk>", "<s>", "</s>")]
    tokenizer["added_tokens"] += [added(vocab[piece], piece, False) for piece in pieces]
    tokenizer["post_processor"] = around("<s>", {"<s>": vocab["<s>"], **ids})
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def put(folder, name, tokenizer, config, model, pre=None):
    """NAME.gguf and NAME-json.json"""
    with open(os.path.join(folder, name + "-json.json"), "w", encoding="utf-8") as file:
        json.dump(tokenizer, file)
    gguf_vocab.write(os.path.join(folder, name + ".gguf"), gguf_vocab.keys_of(tokenizer, config, model, pre, 600))


def put_all(folder):
    letters = byte_letters()
    names = []

    def keep(name, *what):
        put(folder, name, *what)
        names.append(name)

    merges = train([[letters[byte] for byte in text.encode()] for text in TEXTS], 150)
    for pre in PUBLISHED:
        keep(pre, *byte_level(pre, merges), "gpt2", pre)
    merges = train([list(text.replace(" ", MARK)) for text in TEXTS], 150)
    keep("llama", *sentencepiece(merges, True), "llama", "default")
    keep("gemma", *sentencepiece(merges, False), "llama", "default")
    gemma4, config = sentencepiece(merges, False)
    gemma4["added_tokens"] = [token for token in gemma4["added_tokens"] if token["special"]]
    keep("gemma4", gemma4, config, "gemma4")
    for name, path, model, pre in (
            ("bert", "oracle/vectors/bert-cls-bf16/tokenizer.json", "bert", None),
            ("xlmr", "oracle/vectors/xlmr-cls-f32/tokenizer.json", "t5", None),
            ("gemma3vl", "oracle/sighted/gemma3vl-bf16/tokenizer.json", "llama", "default"),
            ("qwen3vl", "oracle/sighted/qwen3vl-bf16/tokenizer.json", "gpt2", "qwen2")):
        path = os.path.join(HERE, "..", path)
        tokenizer = gguf_vocab.read_json(path)
        config = gguf_vocab.read_json(os.path.join(os.path.dirname(path), "tokenizer_config.json"))
        if model == "bert":
            tokenizer["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
        if model == "t5":
            charsmap = gguf_vocab.read_json(os.path.join(HERE, "tokenizers", "normal-charsmap.json"))
            tokenizer["normalizer"] = charsmap["normalizer"]
            tokenizer["decoder"] = tokenizer["pre_tokenizer"]
        keep(name, tokenizer, config, model, pre)
    return names


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        names = put_all(folder)
        lines = os.path.join(folder, "lines.jsonl")
        with open(lines, "w", encoding="utf-8") as file:
            for name in names:
                for text in TEXTS:
                    file.write(json.dumps({"tokenizer": name, "like": name + "-json", "text": text}) + "\n")
        sys.exit(subprocess.run([sys.argv[1], lines, folder, "text_gguf"]).returncode)


main()
