#!/usr/bin/env python3
"""llama.cpp's API where one answer of the usual model is not all there is to see: prompts with a gap, for which a
model's tokenizer needs tokens of its own, and times. The cases in tests/api/cases/llama.json have the answers themselves.

usage: tests/api/test_llama.py --motet PROGRAM [NAME ...]"""

import json
import os
import tempfile

import fixture
import served

SUITE = served.Suite("api_llama")
GREEDY = {"temperature": 0, "n_predict": 4}

# Which tokens a kind of model has: before the prefix, the suffix and the gap; of a repository, of a file; others.
QWEN = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>", "<|fim_pad|>"]
KINDS = {
    "qwen": QWEN,
    "codegemma": QWEN[:3] + [None, "<|file_separator|>"],
    "starcoder2": ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>", "<fim_pad>"],
    "starcoder": ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<filename>", "<fim_pad>"],
    "codellama": ["\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>", None, None, "\u2581<EOT>"],
    "deepseek": ["<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>", None, None],
}


def with_tokens(folder, tokens):
    """The fixture's model with these in place of its last tokens. Returns their ids."""
    fixture.write(folder)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    wanted = [t for t in tokens if t]
    first = fixture.VOCAB - len(wanted)
    vocab, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    tokenizer["model"]["vocab"] = {t: i for t, i in vocab.items() if i < first}
    del merges[-len(wanted):]
    for i, token in enumerate(wanted):
        tokenizer["model"]["vocab"][token] = first + i
        tokenizer["added_tokens"].append({"id": first + i, "content": token, "single_word": False, "lstrip": False,
                                          "rstrip": False, "normalized": False, "special": True})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)
    return [first + wanted.index(t) if t else None for t in tokens]


def ids_of(server, text):
    return server.post("/tokenize", {"content": text, "parse_special": False}).json()["tokens"]


def rendered(server, **body):
    answer = server.post("/v1/completions/render", body)
    assert answer.status == 200, answer.body
    return answer.json()[0]["token_ids"]


@SUITE.test
def gaps_of_every_kind():
    for kind, tokens in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            pre, suf, mid = with_tokens(folder, tokens)[:3]
            with SUITE.start(folder=folder) as server:
                wanted = [0, pre, *ids_of(server, "the fox"), suf, *ids_of(server, " dog"), mid]
                assert rendered(server, prompt="the fox", suffix=" dog") == wanted, kind
                plain = server.post("/completion", {"prompt": wanted, "return_tokens": True, **GREEDY}).json()
                gap = {"input_prefix": "the fox", "input_suffix": " dog", "return_tokens": True, **GREEDY}
                filled = server.post("/infill", gap).json()
                assert filled["tokens_evaluated"] == len(wanted), kind
                assert filled["tokens"] == plain["tokens"][:len(filled["tokens"])], kind
                same = {"prompt": "the fox", "suffix": " dog", "temperature": 0, "max_tokens": 4}
                assert server.complete(**same).json()["choices"][0]["text"] == filled["content"], kind
                same = {"model": "default", "prompt": "the fox", "suffix": " dog", "stream": False,
                        "options": {"temperature": 0, "num_predict": 4}}
                answer = server.post("/api/generate", same).json()
                assert answer["response"] == filled["content"], kind
                assert answer["prompt_eval_count"] == len(wanted), kind


def infill_ids(server, **body):
    """The tokens of the prompt, which /infill tells only as text: special tokens are in it by their spelling."""
    answer = server.post("/infill", {"input_prefix": "the", "input_suffix": " dog", **GREEDY, **body}).json()
    return answer["prompt"], answer["tokens_evaluated"]


@SUITE.test
def other_files_come_first():
    files = [{"filename": "a.c", "text": "the fox"}, {"text": "dog"}]
    with tempfile.TemporaryDirectory() as folder:
        with_tokens(folder, QWEN)
        with SUITE.start(folder=folder) as server:
            text, _ = infill_ids(server, input_extra=files, prompt=" lazy")
            assert text == ("<|begin|><|repo_name|>repository\n<|file_sep|>a.c\nthe fox<|file_sep|>\ndog"
                            "<|file_sep|>file\n<|fim_prefix|>the lazy<|fim_suffix|> dog<|fim_middle|>"), text
            assert infill_ids(server)[0] == "<|begin|><|fim_prefix|>the<|fim_suffix|> dog<|fim_middle|>"
            warning = server.post("/infill", {"input_prefix": "a", "input_suffix": "b", **GREEDY,
                                              "input_extra": [{"text": "x", "time": 5}]}).headers["warning"]
            assert "input_extra[].time" in warning, warning
    with tempfile.TemporaryDirectory() as folder:
        with_tokens(folder, KINDS["deepseek"])
        with SUITE.start(folder=folder) as server:
            text, _ = infill_ids(server, input_extra=files)
            assert text.startswith("<|begin|>the fox\n\ndog\n\n<\uff5cfim\u2581begin\uff5c>the"), text


@SUITE.test
def texts_have_no_special_tokens():
    """Code that is about such tokens is text."""
    with tempfile.TemporaryDirectory() as folder:
        with_tokens(folder, QWEN)
        with SUITE.start(folder=folder) as server:
            ids = rendered(server, prompt="<|fim_suffix|>", suffix="<|end|>")
            assert len(ids) > 10 and sum(i >= fixture.VOCAB - len(QWEN) for i in ids) == 3 and 1 not in ids, ids


@SUITE.test
def another_gap_ends_an_answer():
    with tempfile.TemporaryDirectory() as folder:
        ids = with_tokens(folder, QWEN)
        with SUITE.start(folder=folder) as server:
            for at in (0, 4, 5):
                answer = server.post("/infill", {"input_prefix": "the", "input_suffix": " dog", "temperature": 0,
                                                 "n_predict": 8, "logit_bias": [[ids[at], 100]]}).json()
                assert (answer["stop_type"], answer["content"]) == ("eos", ""), answer
            # those of the client end it, too, and no more are sent than there may be
            full = list(range(10, 266))
            answer = server.complete(prompt="the", suffix=" dog", stop_token_ids=full, temperature=0, max_tokens=2)
            assert answer.status == 200, answer.body


@SUITE.test
def a_gap_that_is_too_long():
    with tempfile.TemporaryDirectory() as folder:
        with_tokens(folder, QWEN)
        with SUITE.start(folder=folder) as server:
            for gap in ({"input_prefix": "x" * 5000, "input_suffix": ""}, {"input_prefix": "", "input_suffix": "x" * 500000}):
                answer = server.post("/infill", gap)
                assert answer.status == 400 and "maximum context length" in answer.json()["error"]["message"], answer.body


@SUITE.test
def times_of_each_token():
    with SUITE.start() as server:
        body = {"prompt": "hello world", "stream": True, "ignore_eos": True, **GREEDY}
        events = server.post("/completion", dict(body, timings_per_token=True)).events()
        assert all("timings" in e for e in events), events
        numbers = [e["timings"]["predicted_n"] for e in events]
        assert numbers == sorted(numbers) and numbers[-1] == 4, numbers
        assert all(e["timings"]["prompt_n"] + e["timings"]["cache_n"] == 4 for e in events), events
        events = server.post("/completion", body).events()
        assert ["timings" in e for e in events] == [False] * (len(events) - 1) + [True], events


@SUITE.test
def what_is_cached():
    with SUITE.start() as server:
        body = {"prompt": list(range(10, 210)), **GREEDY}
        assert server.post("/completion", body).json()["tokens_cached"] == 0
        answer = server.post("/completion", body).json()
        assert answer["tokens_cached"] >= 128 and answer["tokens_evaluated"] == 200, answer
        assert answer["timings"]["cache_n"] == answer["tokens_cached"], answer


if __name__ == "__main__":
    SUITE.main()
