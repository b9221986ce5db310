#!/usr/bin/env python3
"""Checkpoints whose tokenizer.json is broken, lies, or was made to take all memory or all time.

usage: tests/attack/tokenizer_files.py --motet PROGRAM [NAME ...]"""

import json

from checkpoints import Attack, added, fixture, message, with_tokens

attack = Attack("attack_tokenizer_files")
LEVEL = fixture.tokenizer()["pre_tokenizer"]
LETTERS = [chr(i) for i in range(32, 127)]
WORD = "a" * 60000  # near the longest token that is read
FLAGS = ('{{"content":"<{}>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}},')


def tokenizer(**sections):
    return {**fixture.tokenizer(), **sections}


def model(**members):
    honest = fixture.tokenizer()
    return {**honest, "model": {**honest["model"], **members}}


def bpe(vocab, merges=(), **more):
    return tokenizer(model={"type": "BPE", "vocab": vocab, "merges": list(merges), **more}, added_tokens=[],
                     post_processor=None)


def unigram(pieces, **more):
    return tokenizer(model={"type": "Unigram", "unk_id": 0, "vocab": pieces, **more}, added_tokens=[],
                     pre_tokenizer=None, post_processor=None, decoder=None)


def wordpiece(vocab, **more):
    return tokenizer(model={"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                            "max_input_chars_per_word": 100, "vocab": vocab, **more}, added_tokens=[],
                     pre_tokenizer=None, post_processor=None, decoder=None)


def sequence(section, parts):
    lists = {"normalizer": "normalizers", "decoder": "decoders", "pre_tokenizer": "pretokenizers"}
    return {"type": "Sequence", lists[section]: parts}


def replace(pattern, content, regex=False):
    return {"type": "Replace", "pattern": {"Regex" if regex else "String": pattern}, "content": content}


def split(regex):
    return sequence("pre_tokenizer", [{"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated",
                                       "invert": False}, {**LEVEL, "use_regex": False}])


def file(name, content, words=None, **more):
    attack.checkpoint(name, {"tokenizer.json": content}, words, **more)


def text(count, what="a"):
    return [message(what * count)]


# Files that are none
WHOLE = json.dumps(fixture.tokenizer())
file("cut_short", WHOLE[:len(WHOLE) // 2], "")
file("empty", "", "")
file("bytes_of_nothing", bytes(100000), "")
file("deep", '{"model":' * 100000, "containers inside one another")
file("deep_where_nobody_looks", WHOLE[:-1] + ', "x": ' + "[" * 100000 + "]" * 100000 + "}", "")
file("deep_settings", WHOLE.replace(
    '"normalizer": null', '"normalizer": ' + '{"type":"Sequence","normalizers":[' * 200 + "]}" * 200))
file("two_models", WHOLE[:-1] + ', "model": {}}', "twice")
file("not_utf8", WHOLE.encode().replace(b'"the"', b'"t\xff\xfe"', 1), "")
file("half_characters", WHOLE.replace('"!"', '"\\ud800"', 1))
for name, kind in (("null", None), ("a_number", 7), ("a_text", "x"), ("a_list", []), ("lists", [[]]), ("true", True),
                   ("objects", {"a": {}})):
    file("a_vocabulary_that_is_" + name, model(vocab=kind), "")
for section in ("normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens", "model"):
    for name, kind in (("a_number", 7), ("a_text", "x"), ("a_list", [1]), ("of_no_type", {"type": 7}),
                       ("of_control_characters", {"type": "\x1b[2J\n"})):
        file("{}_that_is_{}".format(section, name), tokenizer(**{section: kind}), "")
file("a_version_of_control_characters", tokenizer(version="\x1b[2J\r\n/etc/passwd"), "")

# Numbers
BEYOND = "the model's last is 383"
HONEST = fixture.tokenizer()["model"]["vocab"]
file("ids_twice", model(vocab={t: i // 2 for t, i in HONEST.items()}))
file("one_id_for_all", model(vocab={t: 7 for t in HONEST}))
file("ids_with_gaps", model(vocab={t: 3 * i for t, i in HONEST.items()}), BEYOND, status=(400,))
file("ids_beyond_the_model", model(vocab={t: i + 380 for t, i in HONEST.items()}), BEYOND, status=(400,))
file("ids_as_far_as_can_be", model(vocab={t: (1 << 22) - 1 - i for t, i in HONEST.items()}), BEYOND, status=(400,))
file("ids_beyond_all", model(vocab={t: i + (1 << 22) for t, i in HONEST.items()}), "ids must be below")
file("ids_beyond_numbers", model(vocab={t: i + (1 << 64) for t, i in HONEST.items()}), "")
file("ids_below_none", model(vocab={t: -i for t, i in HONEST.items()}), "")
file("a_post_processor_with_ids_beyond_the_model", tokenizer(post_processor={
    "type": "BertProcessing", "sep": ["x", 4000000], "cls": ["y", 400]}))
file("a_post_processor_of_many", tokenizer(post_processor={
    "type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["x", 1], "cls": ["y", 2]}] * 65}),
     "more than 64")



@attack.test
def ids_around_a_prompt_that_are_beyond_the_model(server):
    answer = server.complete(model="a_post_processor_with_ids_beyond_the_model", prompt="hello", max_tokens=4)
    attack.judge(answer, BEYOND, (400,), None)


# Merges
file("merges_of_unknown_tokens", model(merges=["zz yy"]), "not in the vocabulary")
file("merges_of_one", model(merges=["th"]), "")
file("merges_of_three", model(merges=[["t", "h", "e"]]), "")
file("merges_of_nothing", model(merges=["  ", " "]), "")
file("merges_that_make_what_they_are_made_of", bpe({**HONEST, "tt": HONEST["t"]}, ["t t"] * 1000))
file("merges_in_a_circle", bpe({"a": 0, "b": 1, "ab": 0, "aba": 1, "aab": 0}, ["a b", "ab a", "a ab"]))
file("merges_by_the_hundred_thousand", model(merges=fixture.tokenizer()["model"]["merges"][:1] * 100000))
file("a_vocabulary_without_most_bytes", bpe({"a": 0, "b": 1}))
file("an_empty_vocabulary", bpe({}), "the prompt has no tokens", status=(400,))
file("an_unknown_token_that_is_unknown", bpe({"a": 0}, unk_token="?"), "unk_token", status=(400,))
file("an_empty_token", model(vocab={**HONEST, "": 5}))

# Added tokens
file("an_empty_added_token", tokenizer(added_tokens=[added("")] * 100))
file("added_tokens_that_overlap", with_tokens(*("<" + "|" * i for i in range(1, 60))), messages=text(400, "<|||"))
file("an_added_token_of_a_megabyte", tokenizer(added_tokens=[added("x" * (1 << 20))]), "at most 65536")
file("added_tokens_of_control_characters", with_tokens("\x00", "\x1b[2J", "\u202e", "\ud7ff", "\ufeff", "\n"),
     messages=text(1, "\x00\x1b[2J\u202e\n"))
file("every_letter_is_a_special_token", tokenizer(added_tokens=[added(c) for c in LETTERS]))
file("a_million_added_tokens",
     WHOLE.replace('"added_tokens": [', '"added_tokens": [' + "".join(FLAGS.format(i) for i in range(1000000))))
file("added_tokens_with_too_many_beginnings",
     tokenizer(added_tokens=[added(str(i) + "x" * 60000) for i in range(150)]), "different beginnings")
file("added_tokens_that_are_normalized_without_end",
     tokenizer(normalizer=sequence("normalizer", [replace("a", "aaaa")] * 40),
               added_tokens=[added("a", normalized=True)]),
     "more than 2048 bytes")

# Growth
file("a_normalizer_that_grows", tokenizer(normalizer=sequence("normalizer", [replace("l", "llll")] * 60)),
     "more than 2048 bytes", status=(400, 413))
file("a_normalizer_that_grows_at_once", tokenizer(normalizer=replace("l", "l" * 1000000)), "more than",
     status=(400, 413), messages=text(1000, "l"))
file("a_normalizer_that_grows_where_nothing_is", tokenizer(normalizer=replace("", "l" * 10000, True)), "more than",
     status=(400, 413), messages=text(1000, "l"))
file("a_normalizer_that_prepends_much", tokenizer(normalizer={"type": "Prepend", "prepend": "l" * 1000000}),
     "more than", status=(400, 413))
file("a_pre_tokenizer_that_doubles",
     tokenizer(pre_tokenizer=sequence("pre_tokenizer", [{**LEVEL, "use_regex": False}] * 60)), "more than 2048 bytes",
     status=(400, 413), messages=text(1, "é"))
file("a_decoder_that_grows", tokenizer(decoder=replace("a", "b" * 1000000)), "more than 32 times")
file("a_decoder_that_grows_in_steps",
     tokenizer(decoder=sequence("decoder", [replace("a", "a" * 30)] * 8)), "more than 32 times")
file("a_decoder_that_holds_back",
     tokenizer(decoder=sequence("decoder", [{"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 0,
                                                               "stop": 1000000}])), "strips more than 64")
file("a_decoder_of_many_steps", tokenizer(decoder=sequence("decoder", [replace("a", "b")] * 9)), "more than 8 steps")
file("a_charsmap_of_noise", tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "////" * 1000}), "")

# Expressions
file("an_expression_that_goes_back", tokenizer(pre_tokenizer=split("(?:a+)+$|(?:a|aa)+b")), "too long",
     status=(400, 413), messages=text(5000))
file("an_expression_that_goes_back_far", tokenizer(pre_tokenizer=split("(?:.*.*.*.*.*)*x")), "too long",
     status=(400, 413), messages=text(5000))
file("an_expression_of_itself", tokenizer(pre_tokenizer=split("(?<x>a\\g<x>?b)")),
     messages=text(500, "ab") + text(500) + text(500, "b"))
file("an_expression_without_end", tokenizer(pre_tokenizer=split("(?:)*")))
file("an_expression_of_repeats", tokenizer(pre_tokenizer=split("(?:(?:(?:a{1,1000}){1,1000}){1,1000}){1,1000}")), "")
file("an_expression_of_brackets", tokenizer(pre_tokenizer=split("(" * 5000 + ")" * 5000)), "")
file("an_expression_of_many_ways", tokenizer(pre_tokenizer=split("|".join("a" * i for i in range(1, 170)))))
file("an_expression_beyond_its_length", tokenizer(pre_tokenizer=split("a" * 20000)), "")
file("an_expression_with_code", tokenizer(pre_tokenizer=split("(?C1)(*MARK:x)(*ACCEPT)(?{system})")), "")
file("expressions_by_the_dozen",
     tokenizer(pre_tokenizer=sequence("pre_tokenizer", [split("\\p{L}+")["pretokenizers"][0]] * 63 + [LEVEL])), "")

# Other models
UNKNOWN = [["<unk>", 0]]
file("a_unigram_of_no_numbers", '{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",NaN],["a",Infinity]]}}', "")
file("a_unigram_of_numbers_beyond_all", unigram([["<unk>", -1e308], ["h", 1e308], ["e", 1e308], ["he", -1e308]]))
file("a_unigram_of_texts", unigram([["<unk>", "-1"], ["a", "x"]]), "")
file("a_unigram_without_pieces", unigram([]), "")
file("a_unigram_without_unknown", unigram([["a", 0]], unk_id=None), "no token for a character", status=(400,))
file("a_unigram_whose_unknown_is_none", unigram([["a", 0]], unk_id=9), "unk_id")
file("a_unigram_of_one_piece_often", unigram(UNKNOWN + [["a", -1]] * 300))
file("a_unigram_of_too_many_beginnings", unigram(UNKNOWN + [[str(i) + "x" * 60000, -1] for i in range(150)]),
     "different beginnings")
file("a_wordpiece_without_prefix", wordpiece({"[UNK]": 0, "a": 1}, continuing_subword_prefix=""))
file("a_wordpiece_of_a_long_prefix", wordpiece({"[UNK]": 0}, continuing_subword_prefix="#" * 1000), "")
file("a_wordpiece_without_unknown", wordpiece({"a": 1}), "unk_token", status=(400,))
file("a_wordlevel_without_words", tokenizer(model={"type": "WordLevel", "unk_token": "?", "vocab": {}}), "unk_token",
     status=(400,))
file("a_model_of_no_kind", tokenizer(model={"type": "../../x", "vocab": {}}), "which motet does not know")

# Work that its client ends
LONG = 2000000
for name, content in (
        ("a_unigram_of_a_long_piece", unigram(UNKNOWN + [["a", -1], [WORD + "b", -2]])),
        ("a_wordpiece_of_a_long_piece", wordpiece({"[UNK]": 0, "a": 1, WORD + "b": 2}, continuing_subword_prefix="",
                                                  max_input_chars_per_word=1 << 30)),
        ("an_added_token_that_nearly_is_there", tokenizer(added_tokens=[added(WORD + "b", special=False)])),
        ("an_added_token_that_takes_all_blanks", tokenizer(added_tokens=[added("a", special=False, rstrip=True),
                                                                         added(" ", special=False, rstrip=True)])),
        ("an_expression_that_looks_far_ahead", tokenizer(pre_tokenizer=split("(?=(?:a|b)*c)a|.")))):
    attack.leaves(name, {"tokenizer.json": content}, messages=text(LONG, " " if "blanks" in name else "a"))

attack.commands("tokenize")
attack.main()
