#!/usr/bin/env python3
"""A server and time: requests whose time is over, steps that take too long, signals that ask, and crashes.

usage: tests/api/test_times.py --motet PROGRAM [--hang LIBRARY] [NAME ...]"""

import json
import os
import re
import signal

import served
from served import eventually

SUITE = served.Suite("api_times")
test, start = SUITE.test, SUITE.start

# More than a server with these options computes while a test lasts.
LONG = {"max_tokens": 2000, "ignore_eos": True}
WORK = {"prompt": [0, 9], "n": 60, **LONG}
SLOW = ("--max-sequences", "60", "--batch-tokens", "1", "--threads", "1")
CHAT = {"messages": [{"role": "user", "content": "hello world"}], **LONG}


def give_back(server):
    """A server that has nothing left of what it did."""
    server.wait_idle()

    def free():
        m = server.metrics()
        return m["motet_calls"] == 0 and m["motet_requests_bytes"] == 0 and m["vllm:kv_cache_usage_perc"] == 0
    assert eventually(free), server.metrics()


def timeouts(server):
    return {k: v for k, v in server.metrics().items() if k.startswith("motet_calls_timed_out_total")}


@test
def a_request_whose_time_is_over_says_so_in_each_dialect():
    with start(*SLOW) as server:
        with served.send(server, "/v1/completions", WORK):
            assert eventually(lambda: server.status()["running"] == 60)
            late = server.post("/v1/completions", {"prompt": [0, 9], "timeout": 0.2})
            assert late.status == 504 and late.headers["x-should-retry"] == "false", late.headers
            error = late.json()["error"]
            assert error["type"] == "timeout_error" and error["code"] == "timeout", error
            assert "0.2 s" in error["message"] and "before the first token" in error["message"], error
            late = server.post("/v1/messages", dict(CHAT, timeout=0.2))
            assert late.status == 504 and late.json()["error"]["type"] == "timeout_error", late.body
            late = server.post("/api/chat", {"messages": CHAT["messages"], "timeout": 0.2, "stream": False})
            assert late.status == 504 and "0.2 s" in late.json()["error"], late.body
            late = server.post("/v1/responses", {"input": "hello", "timeout": 0.2})
            assert late.status == 504 and late.json()["error"]["code"] == "timeout", late.body
            counts = timeouts(server)
            assert counts['motet_calls_timed_out_total{phase="waiting"}'] == 4, counts
        give_back(server)
        assert sum("request.timeout" in line for line in server.log) == 4


@test
def a_stream_whose_time_is_over_ends_with_an_error():
    with start(*SLOW) as server:
        said = server.post("/v1/completions", dict(WORK, stream=True, timeout=0.3)).events()
        assert said[0]["choices"] and said[-2]["error"]["code"] == "timeout" and said[-1] == "[DONE]", said[-2:]
        said = server.post("/v1/chat/completions", dict(CHAT, n=60, stream=True, timeout=0.3)).events()
        assert said[-2]["error"]["code"] == "timeout" and said[-1] == "[DONE]", said[-2:]
        with served.send(server, "/v1/completions", WORK):
            assert eventually(lambda: server.status()["running"] == 60)
            said = server.post("/v1/messages", dict(CHAT, stream=True, timeout=0.3)).events()
            assert said[-1]["type"] == "error" and said[-1]["error"]["type"] == "timeout_error", said
            said = server.post("/v1/responses", {"input": "hi", "stream": True, "timeout": 0.3}).events()
            assert said[-1]["type"] == "response.failed", said[-1]
            assert said[-1]["response"]["error"]["code"], said[-1]
            said = server.post("/api/chat", {"messages": CHAT["messages"], "timeout": 0.3}).events()
            assert "0.3 s" in said[-1]["error"], said
        give_back(server)
        counts = timeouts(server)
        assert counts['motet_calls_timed_out_total{phase="running"}'] == 2, counts
        assert counts['motet_calls_timed_out_total{phase="waiting"}'] == 3, counts


@test
def the_operator_has_the_last_word_on_time():
    with start(*SLOW, "--request-timeout", "0.5s") as server:
        late = server.post("/v1/completions", dict(WORK, timeout=86400))
        assert late.status == 504 and "0.5 s" in late.json()["error"]["message"], late.body
        give_back(server)
        assert server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}).status == 200
    with start("--request-timeout", "never") as server:
        for wrong in 0, -1, 1e9, "5", True, [1], {}:
            bad = server.post("/v1/completions", {"prompt": [0, 9], "timeout": wrong})
            assert bad.status == 400 and bad.json()["error"]["param"] == "timeout", (wrong, bad.body)
        for fine in None, 60, 0.5e3:
            answer = server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1, "timeout": fine})
            assert answer.status == 200 and "warning" not in answer.headers, answer.headers
        answer = server.post("/api/generate", {"prompt": "a", "timeout": 60, "stream": False,
                                               "options": {"num_predict": 1}})
        assert answer.status == 200 and "warning" not in answer.headers, answer.headers


@test
def time_runs_while_a_request_is_prepared():
    if not SUITE.hang:
        raise served.Skip("no library that hangs")
    server = start("--drain-seconds", "0", env={"LD_PRELOAD": SUITE.hang})
    late = server.post("/v1/completions", {"prompt": "hang", "max_tokens": 1, "timeout": 0.3})
    assert late.status == 504 and "prepared" in late.json()["error"]["message"], late.body
    assert timeouts(server)['motet_calls_timed_out_total{phase="preparing"}'] == 1
    assert server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}).status == 200
    server.process.kill()
    server.process.wait(served.PATIENCE)


@test
def a_background_response_whose_time_is_over_has_failed():
    with start(*SLOW) as server:
        with served.send(server, "/v1/completions", WORK):
            assert eventually(lambda: server.status()["running"] == 60)
            said = server.post("/v1/responses", {"input": "hi", "background": True, "timeout": 0.3}).json()

            def ended():
                now = server.request("GET", "/v1/responses/" + said["id"]).json()
                return now if now["status"] not in ("queued", "in_progress") else None
            assert eventually(ended)["status"] == "failed"
        give_back(server)


@test
def a_step_that_takes_too_long_is_named_with_its_batch():
    with start("--slow-step", "0.000001s") as server:
        assert server.post("/v1/completions", {"prompt": [0, 9, 8], "max_tokens": 2}).status == 200
        assert eventually(lambda: server.metrics()["motet_slow_steps_total"] > 0)
        named = [line for line in server.log if "engine.slow_step" in line]
        assert re.search(r"a step took \S+ s: 3 rows of 1 answers: cmpl-\w+ 3 behind 0", named[0]), named
    with start("--slow-step", "never") as server:
        assert server.post("/v1/completions", {"prompt": [0, 9, 8], "max_tokens": 2}).status == 200
        assert server.metrics()["motet_slow_steps_total"] == 0


@test
def a_signal_asks_for_the_state_and_the_server_goes_on():
    with start(*SLOW) as server:
        with served.send(server, "/v1/completions", dict(WORK, n=3)):
            assert eventually(lambda: server.status()["running"] == 3)
            server.process.send_signal(signal.SIGQUIT)
            line = eventually(lambda: [l for l in server.log if '"server.state"' in l])[0]
            state = json.loads(line)
            assert state["ready"] and len(state["calls"]) == 1, state
            call = state["calls"][0]
            assert call["id"].startswith("cmpl-") and call["api"] == "completions" and call["prepared"], call
            model = state["models"][0]
            assert model["name"] == "tiny" and model["running"] == 3 and model["pages"]["held"] > 0, model
            assert {r["id"] for r in state["status"]["requests"]} == {call["id"]}, state["status"]
        assert server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}).status == 200


@test
def a_crash_names_what_was_worked_on_and_ends_by_its_signal():
    if os.environ.get("ASAN_OPTIONS") or os.environ.get("TSAN_OPTIONS"):
        raise served.Skip("a sanitizer has words of its own")
    for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS:
        server = start(*SLOW)
        with served.send(server, "/v1/completions", dict(WORK, n=3)):
            assert eventually(lambda: server.status()["running"] == 3)
            name = server.status()["requests"][0]["id"]
            server.process.send_signal(number)
            assert server.process.wait(served.PATIENCE) == -number
            server.reader.join(served.PATIENCE)
        said = "\n".join(server.log)
        assert "crashed by " + number.name in said and "in flight: " + name in said, said[-2000:]
        assert re.search(r"motet\(.*\) ?\[0x", said), said[-2000:]


SUITE.main()
