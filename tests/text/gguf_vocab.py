"""Writes the vocabulary of a tokenizer.json as GGUF files have it: the keys tokenizer.* and no tensors."""

import base64
import json
import os
import re
import struct

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
MARK = "\u2581"
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY = range(10)
FORMS = {U8: "<B", I8: "<b", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def value(kind, item):
    return string(item) if kind == STRING else struct.pack(FORMS[kind], item)


def image(keys):
    """keys: (name, type, value) each; a list is an array of that type."""
    out = [b"GGUF", struct.pack("<IQQ", 3, 0, len(keys))]
    for name, kind, item in keys:
        out.append(string(name))
        if isinstance(item, list):
            out.append(struct.pack("<IIQ", ARRAY, kind, len(item)))
            out.extend(value(kind, each) for each in item)
        else:
            out.append(struct.pack("<I", kind))
            out.append(value(kind, item))
    return b"".join(out)


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
    keys = [("tokenizer.ggml.{}_token_id".format(key), U32, ids[text]) for key, text in names.items() if text in ids]
    keys.append(("tokenizer.ggml.add_bos_token", BOOL, bool(first) and first == names["bos"]))
    keys.append(("tokenizer.ggml.add_eos_token", BOOL, bool(last) and last == names["eos"]))
    return keys


def chat_keys(folder, config):
    template = config.get("chat_template")
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            template = file.read()
    if isinstance(template, str):
        return [("tokenizer.chat_template", STRING, template)]
    return [("tokenizer.chat_template" + ("" if each["name"] == "default" else "." + each["name"]), STRING,
             each["template"]) for each in template or []]


def merge_list(tokenizer):
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]


def gpt2(tokenizer, texts, added, _):
    """Byte-level BPE: added tokens are control tokens if they are or look special."""
    types = {i: NORMAL for i in texts}
    for i, token in added.items():
        types[i] = CONTROL if token["special"] or looks_special(token["content"]) else USER_DEFINED
    return types, {}, [("tokenizer.ggml.merges", STRING, merge_list(tokenizer))]


def llama(tokenizer, texts, added, config):
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
    return types, scores, [("tokenizer.ggml.add_space_prefix", BOOL, prefix)]


def gemma4(tokenizer, texts, added, config):
    """Merges of characters: only special tokens and bytes have types of their own."""
    types = {i: BYTE if re.fullmatch("<0x[0-9A-F]{2}>", texts[i]) else NORMAL for i in texts}
    base = len(tokenizer["model"]["vocab"])
    shown = ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>",
             '<|"|>')
    for i, token in added.items():
        types[i] = CONTROL if token["special"] else USER_DEFINED if i >= base else types[i]
        types[i] = USER_DEFINED if token["content"] in shown else types[i]
    return types, {i: -1000.0 for i in texts}, [("tokenizer.ggml.add_space_prefix", BOOL, False),
                                                ("tokenizer.ggml.merges", STRING, merge_list(tokenizer))]


def bert(tokenizer, texts, added, config):
    """WordPiece: words begin with a mark, and what continues them has none."""
    types = {i: CONTROL if i in added and added[i]["special"] else NORMAL for i in texts}
    for i, kind in types.items():
        if kind == NORMAL:
            texts[i] = texts[i][2:] if texts[i].startswith("##") else MARK + texts[i]
    keys = []
    if tokenizer["normalizer"]["type"] == "BertNormalizer":
        keys.append(("tokenizer.ggml.normalizer.lowercase", BOOL, tokenizer["normalizer"]["lowercase"]))
        if tokenizer["normalizer"]["strip_accents"] is not None:
            keys.append(("tokenizer.ggml.normalizer.strip_accents", BOOL, tokenizer["normalizer"]["strip_accents"]))
    return types, {}, keys


def t5(tokenizer, texts, added, config):
    """Unigram, with a map of characters."""
    types = {i: CONTROL if i in added and added[i]["special"] else NORMAL for i in texts}
    types.update({i: BYTE for i in texts if re.fullmatch("<0x[0-9A-F]{2}>", texts[i])})
    if tokenizer["model"].get("unk_id") is not None:
        types[tokenizer["model"]["unk_id"]] = UNKNOWN
    scores = {i: score for i, (_, score) in enumerate(tokenizer["model"]["vocab"])}
    stages = json.dumps(tokenizer["pre_tokenizer"])
    keys = [("tokenizer.ggml.add_space_prefix", BOOL, '"never"' not in stages),
            ("tokenizer.ggml.remove_extra_whitespaces", BOOL, "WhitespaceSplit" in stages)]
    if (tokenizer["normalizer"] or {}).get("type") == "Precompiled":
        charsmap = base64.b64decode(tokenizer["normalizer"]["precompiled_charsmap"])
        keys.append(("tokenizer.ggml.precompiled_charsmap", U8, list(charsmap)))
    return types, scores, keys


MODELS = {"gpt2": gpt2, "llama": llama, "gemma4": gemma4, "bert": bert, "t5": t5}


def keys_of(tokenizer, config, model, pre=None, size=0):
    """The keys as a list; size: of the vocabulary, if the model has more rows than the tokenizer has tokens."""
    texts, added = vocabulary(tokenizer)
    special = special_keys(tokenizer, config, texts)
    types, scores, more = MODELS[model](tokenizer, texts, added, config)
    count = max(size, max(texts) + 1)
    keys = [("general.architecture", STRING, "llama"), ("tokenizer.ggml.model", STRING, model)]
    if pre:
        keys.append(("tokenizer.ggml.pre", STRING, pre))
    keys.append(("tokenizer.ggml.tokens", STRING, [texts.get(i, "[PAD{}]".format(i)) for i in range(count)]))
    keys.append(("tokenizer.ggml.token_type", I32, [types.get(i, UNUSED) for i in range(count)]))
    if scores:
        keys.append(("tokenizer.ggml.scores", F32, [scores.get(i, -10000.0) for i in range(count)]))
    return keys + more + special


def read_json(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def convert(folder, to, model, pre=None, size=0):
    """The vocabulary of a folder with tokenizer.json."""
    config = read_json(os.path.join(folder, "tokenizer_config.json"))
    tokenizer = read_json(os.path.join(folder, "tokenizer.json"))
    with open(to, "wb") as file:
        file.write(image(keys_of(tokenizer, config, model, pre, size) + chat_keys(folder, config)))
