"""The vocabulary of a tokenizer.json as the keys of a GGUF file."""

import base64
import json
import os
import re
import sys
from pathlib import Path

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import gguf  # noqa: E402

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
MARK = "\u2581"


def looks_special(text):
    return text in ("<pad>", "<mask>", "<2mass>", "[@BOS@]") or re.fullmatch(
        r"<\|.*\|>|<\uff5c.*\uff5c>|<unused.*>", text, re.S) is not None


def vocabulary(tokenizer):
    """Token texts by id, and the added ones of them by id."""
    vocab = tokenizer["model"]["vocab"]
    if isinstance(vocab, list):
        vocab = {text: i for i, (text, _) in enumerate(vocab)}
    texts = {i: text for text, i in vocab.items()}
    added = {}
    for token in tokenizer["added_tokens"]:
        texts[token["id"]] = token["content"]
        added[token["id"]] = token
    return texts, added


def templated(tokenizer):
    """The first and the last token that the post-processor puts around a text, or None."""
    post = tokenizer.get("post_processor") or {}
    for part in post.get("processors", [post]):
        if part.get("type") in ("BertProcessing", "RobertaProcessing"):
            return part["cls"][0], part["sep"][0]
        if part.get("type") == "TemplateProcessing":
            ids = [place.get("SpecialToken", {}).get("id") for place in part["single"]]
            return ids[0], ids[-1]
    return None, None


def special_keys(tokenizer, config, texts):
    """Keys of the special tokens and whether they are added."""
    ids = {text: i for i, text in texts.items()}
    first, last = templated(tokenizer)

    def named(key):
        token = config.get(key)
        return token["content"] if isinstance(token, dict) else token

    names = {"bos": named("bos_token") or named("cls_token") or first, "eos": named("eos_token") or last,
             "unknown": named("unk_token") or tokenizer["model"].get("unk_token"),
             "padding": named("pad_token"), "seperator": named("sep_token"), "mask": named("mask_token")}
    keys = {"{}_token_id".format(key): ids[text] for key, text in names.items() if text in ids}
    return {**keys, "add_bos_token": bool(first) and first == names["bos"],
            "add_eos_token": bool(last) and last == names["eos"]}


def chat_keys(folder, config):
    template = config.get("chat_template")
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            template = file.read()
    if isinstance(template, str):
        return {"tokenizer.chat_template": template}
    return {"tokenizer.chat_template" + ("" if each["name"] == "default" else "." + each["name"]): each["template"]
            for each in template or []}


def merge_list(tokenizer):
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]


def gpt2(tokenizer, texts, added):
    """Byte-level BPE: added tokens are control tokens if they are or look special."""
    types = {i: NORMAL for i in texts}
    for i, token in added.items():
        types[i] = CONTROL if token["special"] or looks_special(token["content"]) else USER_DEFINED
    return types, {}, {"merges": merge_list(tokenizer)}


def llama(tokenizer, texts, added):
    """SentencePiece: no merges, but scores in their order; added tokens lose theirs."""
    types, scores, ranks = {}, {}, {}
    for merge in merge_list(tokenizer):
        ranks.setdefault(merge.replace(" ", ""), -float(len(ranks)))
    for i in sorted(texts):
        types[i] = BYTE if re.fullmatch("<0x[0-9A-F]{2}>", texts[i]) else NORMAL
        scores[i] = ranks.get(texts[i], -float(len(ranks))) if types[i] == NORMAL else 0.0
        if i in added:
            token = added[i]
            special = token["special"] or looks_special(token["content"])
            types[i] = CONTROL if special else USER_DEFINED
            texts[i] = texts[i] if special else texts[i].replace(MARK, " ")
            scores[i] = -1000.0
    if tokenizer["model"].get("unk_token"):
        types[next(i for i in texts if texts[i] == tokenizer["model"]["unk_token"])] = UNKNOWN
    stages = json.dumps([tokenizer["normalizer"], tokenizer["pre_tokenizer"]])
    prefix = '"Prepend"' in stages or '"first"' in stages
    return types, scores, {"add_space_prefix": prefix}


def gemma4(tokenizer, texts, added):
    """Merges of characters: only special tokens and bytes have types of their own."""
    types = {i: BYTE if re.fullmatch("<0x[0-9A-F]{2}>", texts[i]) else NORMAL for i in texts}
    base = len(tokenizer["model"]["vocab"])
    shown = ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>",
             '<|"|>')
    for i, token in added.items():
        types[i] = CONTROL if token["special"] else USER_DEFINED if i >= base else types[i]
        types[i] = USER_DEFINED if token["content"] in shown else types[i]
    return types, {i: -1000.0 for i in texts}, {"add_space_prefix": False, "merges": merge_list(tokenizer)}


def bert(tokenizer, texts, added):
    """WordPiece: words begin with a mark, and what continues them has none."""
    types = {i: CONTROL if i in added and added[i]["special"] else NORMAL for i in texts}
    for i, kind in types.items():
        if kind == NORMAL:
            texts[i] = texts[i][2:] if texts[i].startswith("##") else MARK + texts[i]
    keys = {"normalizer.lowercase": tokenizer["normalizer"]["lowercase"]}
    if tokenizer["normalizer"]["strip_accents"] is not None:
        keys["normalizer.strip_accents"] = tokenizer["normalizer"]["strip_accents"]
    return types, {}, keys


def t5(tokenizer, texts, added):
    """Unigram, with a map of characters."""
    types = {i: CONTROL if i in added and added[i]["special"] else NORMAL for i in texts}
    types.update({i: BYTE for i in texts if re.fullmatch("<0x[0-9A-F]{2}>", texts[i])})
    if tokenizer["model"].get("unk_id") is not None:
        types[tokenizer["model"]["unk_id"]] = UNKNOWN
    scores = {i: score for i, (_, score) in enumerate(tokenizer["model"]["vocab"])}
    stages = json.dumps(tokenizer["pre_tokenizer"])
    keys = {"add_space_prefix": '"never"' not in stages, "remove_extra_whitespaces": "WhitespaceSplit" in stages}
    if (tokenizer["normalizer"] or {}).get("type") == "Precompiled":
        keys["precompiled_charsmap"] = list(base64.b64decode(tokenizer["normalizer"]["precompiled_charsmap"]))
    return types, scores, keys


MODELS = {"gpt2": gpt2, "llama": llama, "gemma4": gemma4, "bert": bert, "t5": t5}


def keys_of(tokenizer, config, model, pre=None, size=0):
    """The keys by name; size: of the vocabulary, if the model has more rows than the tokenizer has tokens."""
    texts, added = vocabulary(tokenizer)
    special = special_keys(tokenizer, config, texts)
    types, scores, more = MODELS[model](tokenizer, texts, added)
    count = max(size, max(texts) + 1)
    keys = {"model": model, "tokens": [texts.get(i, "[PAD{}]".format(i)) for i in range(count)],
            "token_type": [types.get(i, UNUSED) for i in range(count)], **more, **special}
    if pre:
        keys["pre"] = pre
    if scores:
        keys["scores"] = [float(scores.get(i, -10000)) for i in range(count)]
    return {"tokenizer.ggml." + key: value for key, value in keys.items()}


def read_json(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, keys):
    """A file without tensors."""
    gguf.write(Path(path), {"general.architecture": "llama", **keys}, {})


def convert(folder, to, model, pre=None, size=0):
    """The vocabulary of a folder with tokenizer.json."""
    config = read_json(os.path.join(folder, "tokenizer_config.json"))
    tokenizer = read_json(os.path.join(folder, "tokenizer.json"))
    write(to, {**keys_of(tokenizer, config, model, pre, size), **chat_keys(folder, config)})
