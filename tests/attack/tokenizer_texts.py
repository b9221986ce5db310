#!/usr/bin/env python3
"""Texts made to take long in honest tokenizers, of each kind that newer families have.

usage: tests/attack/tokenizer_texts.py --motet PROGRAM [NAME ...]"""

from checkpoints import Attack, QUICK, fixture, message

attack = Attack("attack_tokenizer_texts")
HONEST = fixture.tokenizer()
LEVEL = {**HONEST["pre_tokenizer"], "use_regex": False}
BYTES = {"<0x{:02X}>".format(i): i + 4 for i in range(256)}
LETTERS = {c: 260 + i for i, c in enumerate("\u2581abcdefghijklmnopqrstuvwxyz")}
SPECIAL = {t: i for i, t in enumerate(fixture.SPECIAL)}
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
        "lowercase": True}


def cut(regex):
    """Of byte-level tokenizers."""
    return {**HONEST, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}, LEVEL]}}


def model(normalizer, pre_tokenizer, decoder=None, **members):
    return {**HONEST, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder,
            "post_processor": None, "model": members}


TOKENIZERS = {
    "bytes": HONEST,
    "words_and_numbers": cut(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"),
    "marks_and_cases": cut(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?"
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"),
    "composed": {**cut(r"\p{N}{1,3}|\p{L}+|\s+|."), "normalizer": {"type": "NFC"}},
    "compatible": {**HONEST, "normalizer": {"type": "NFKC"}},
    "fallback": model({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}, None, type="BPE",
                      vocab={**SPECIAL, **BYTES, **LETTERS}, merges=[], byte_fallback=True, fuse_unk=True),
    "unigram": model({"type": "NFKD"}, METASPACE, METASPACE, type="Unigram", unk_id=0, byte_fallback=True,
                     vocab=[[t, -float(i)] for i, t in enumerate({**SPECIAL, **BYTES, **LETTERS})]),
    "wordpiece": model(BERT, {"type": "BertPreTokenizer"}, None, type="WordPiece", unk_token="<|begin|>",
                       continuing_subword_prefix="##", max_input_chars_per_word=100,
                       vocab={**SPECIAL, **LETTERS, **{"##" + c: i + 30 for c, i in LETTERS.items()}}),
}
TEXTS = {
    "one_letter": "a", "letters_that_merge": "the", "blanks": " ", "line_ends": "\n",
    "line_ends_of_others": "\r\n\u2028",
    "tabs_and_blanks": "\t ", "digits": "7", "apostrophes": "'", "contractions": "'ll", "punctuation": "!?",
    "capitals": "A",
    "both_cases": "aB", "combining_marks": "\u0301", "marks_in_the_wrong_order": "\u0301\u0323\u0345",
    "a_letter_with_marks": "e" + "\u0301\u0323" * 500, "joiners": "\u200d",
    "emoji_that_join": "\U0001f468\u200d\U0001f469\u200d",
    "flags": "\U0001f1e6", "jamo": "\u1100\u1161\u11a8", "ideographs": "\u4e2d", "a_sign_of_18_letters": "\ufdfa",
    "letters_of_both_directions": "\u202ea\u05d0", "noncharacters": "\uffff\U0010ffff", "nulls": "\x00",
    "control_characters": "\x1b\x7f\x80", "private_letters": "\ue000", "new_letters": "\U00010d4a",
    "blanks_of_all_kinds": "\u3000\u00a0\u2003",
    "the_sign_for_blanks": "\u2581", "byte_tokens": "<0x41>", "half_special_tokens": "<|beg",
    "nested_special_tokens": "<|<|begin|>",
    "all_special_tokens": "<|turn|>", "long_special_tokens": "<|turn|" + ">" * 50, "words": "the quick brown fox ",
}
SIZE = 64 << 10 if QUICK else 128 << 10
LARGE = ("one_letter", "combining_marks", "half_special_tokens")  # these are a megabyte


def text(what, size):
    return what * (size // len(what.encode()))


for tokenizer in TOKENIZERS:
    attack.folders[tokenizer] = {"tokenizer.json": TOKENIZERS[tokenizer]}


def case(name, what):
    def test(server):
        for tokenizer in TOKENIZERS:
            body = {"model": tokenizer, "max_tokens": 1,
                    "messages": [message(text(what, 8 * SIZE if name in LARGE else SIZE))]}
            answer = attack.beside(server, lambda: server.post("/v1/chat/completions", body))
            if answer.status != 200:  # else it is one unknown word
                attack.judge(answer, "maximum context length", (400,), None)
            prompt = text(what, 600)
            tokens = server.post("/tokenize", {"model": tokenizer, "prompt": prompt, "add_special_tokens": False})
            assert tokens.status == 200, tokens.body[:2000]
            if tokenizer in ("bytes", "words_and_numbers", "marks_and_cases") and "<|turn|>" not in what:
                back = server.post("/detokenize", {"model": tokenizer, "tokens": tokens.json()["tokens"]})
                assert back.json()["prompt"].replace("<|begin|>", "") == prompt.replace("<|begin|>", ""), back.body
    test.__name__ = name
    attack.test(test)


for text_name, text_what in TEXTS.items():
    case(text_name, text_what)


@attack.test
def special_tokens_of_users_are_text(server):
    """The same tokens as those of a tokenizer without any."""
    for tokenizer in ("bytes", "words_and_numbers", "marks_and_cases", "composed"):
        answer = server.post("/tokenize", {"model": tokenizer, "messages": [message("<|turn|><|begin|>" * 9)]})
        assert sum(i < 4 for i in answer.json()["tokens"]) == 3, answer.body  # two turns and one end


for text_name in ("one_letter", "marks_in_the_wrong_order", "half_special_tokens", "blanks"):
    attack.leaves(text_name + "_whose_client_leaves", model="unigram", path="/tokenize",
                  messages=[message(text(TEXTS[text_name], 64 * SIZE))])

attack.main()
