#!/usr/bin/env python3
"""motet verify: an answer that a server has given is computed again, and every digit of it counts."""
import copy
import json
import os
import tempfile

import helpers
import served

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def ask(server, path, request):
    """A request and its answer, as a client saves them."""
    answer = server.post(path, request)
    assert answer.status == 200, answer.body
    return {"request": request, "answer": answer.json()}


CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "hello world"}], "max_tokens": 8, "seed": 5,
        "temperature": 0.9, "logprobs": True, "top_logprobs": 3}
PLAIN = {"model": "tiny", "prompt": "hello", "max_tokens": 6, "temperature": 0, "logprobs": 2}


def verify(motet, saved, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answer.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(saved if isinstance(saved, str) else json.dumps(saved))
        return helpers.run(motet, "verify", path, *options)


def changed(saved, *path):
    """The same with the last digit of a number changed, or another value in place of what is no number."""
    other = copy.deepcopy(saved)
    at = other
    for key in path[:-1]:
        at = at[key]
    digits = repr(at[path[-1]])
    at[path[-1]] = float(digits[:-1] + str((int(digits[-1]) + 1) % 10)) if digits[-1].isdigit() else "other"
    assert other != saved
    return other


@test
def an_answer_is_the_same_in_each_way_of_computing(motet, tiny):
    for options in ([], ["--precision", "fast"], ["--precision", "fast", "--kv-bits", "8", "--cpu-mask", "portable"],
                    ["--precision", "fast", "--arithmetic", "sm90"]):
        with served.Server(motet, tiny, *options) as server:
            for saved in ask(server, "/v1/chat/completions", CHAT), ask(server, "/v1/completions", PLAIN):
                code, out, err = verify(motet, saved, tiny)
                assert (code, err) == (0, "") and out.startswith("the same: "), (options, code, out, err)
                assert saved["answer"]["system_fingerprint"] in out, out


@test
def a_changed_digit_is_refused(motet, tiny):
    with served.Server(motet, tiny) as server:
        saved = ask(server, "/v1/chat/completions", CHAT)
    first = ("answer", "choices", 0, "logprobs", "content")
    for path in ((*first, 3, "logprob"), (*first, 7, "top_logprobs", 2, "logprob"), (*first, 1, "token"),
                 ("answer", "choices", 0, "message", "content"), ("answer", "usage", "completion_tokens")):
        code, out, err = verify(motet, changed(saved, *path), tiny)
        place = "".join("[{}]".format(p) if isinstance(p, int) else "." + p for p in path[1:])[1:]
        assert (code, err) == (1, "") and out.startswith("differs at {}: ".format(place)), (path, code, out, err)


@test
def what_is_left_out_or_added_differs(motet, tiny):
    with served.Server(motet, tiny) as server:
        saved = ask(server, "/v1/chat/completions", CHAT)
    less, more = copy.deepcopy(saved), copy.deepcopy(saved)
    del less["answer"]["choices"][0]["logprobs"]["content"][7]
    more["answer"]["choices"][0].update(none=None, said="more")
    code, out, _ = verify(motet, less, tiny)
    assert code == 1 and "content[7]: the saved answer has nothing" in out, (code, out)
    code, out, _ = verify(motet, more, tiny)
    assert code == 1 and "choices[0].said" in out and "computed is nothing" in out, (code, out)
    del more["answer"]["choices"][0]["said"]  # null is as good as nothing
    more["answer"] = {name: value for name, value in more["answer"].items() if value is not None}
    code, out, _ = verify(motet, more, tiny)
    assert code == 0, (code, out)


@test
def an_answer_that_was_drawn_without_a_seed_is_not_blamed(motet, tiny):
    with served.Server(motet, tiny) as server:
        saved = ask(server, "/v1/chat/completions", {k: v for k, v in CHAT.items() if k != "seed"} | {"temperature": 2})
    code, out, _ = verify(motet, saved, tiny)
    assert code == 1 and 'has no "seed"' in out, (code, out)


@test
def what_cannot_be_verified_is_status_2(motet, tiny):
    with served.Server(motet, tiny) as server:
        saved = ask(server, "/v1/completions", PLAIN)
    answer = saved["answer"]
    for wrong, what in (("{", "JSON"), ("[]", "no object with the members"), ({"request": {}, "answer": {}}, '"object"'),
                        ({**saved, "answer": {**answer, "system_fingerprint": "fp_44709d6fcb"}}, "no \"system_fingerprint\""),
                        ({**saved, "answer": {**answer, "system_fingerprint": "fp_00010000"}}, "version 1 of the rules"),
                        ({**saved, "request": {**PLAIN, "max_tokens": "x"}}, "is not answered")):
        code, out, err = verify(motet, wrong, tiny)
        assert (code, out) == (2, "") and what in err, (wrong, code, out, err)
    assert verify(motet, saved, "/nowhere")[0] == 2
    assert helpers.run(motet, "verify")[0] == 2


if __name__ == "__main__":
    helpers.main("cli_verify", TESTS, "fetch")
