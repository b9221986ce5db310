#!/usr/bin/env python3
"""What the server promises beyond single answers: nobody gets another's text, nothing hangs or crashes, clients that
leave or read slowly hurt nobody, memory stays flat, and it ends when told to.

usage: tests/api/test_server.py --motet PROGRAM [--long] [NAME ...]"""

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import threading
import time

import fixture
import served
from served import eventually

PROGRAM = FOLDER = None
LONG = QUICK = False
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def meets(function):
    """A test in which clients, or a client and what the server does by itself, meet: what the thread sanitizer runs."""
    function.meets = True
    return test(function)


def start(*options, **settings):
    return served.Server(PROGRAM, FOLDER, *options, **settings)


def prompt(i):
    """One of many prompts whose answers differ."""
    return [0] + [4 + (i * 37 + k * 11) % 370 for k in range(5 + i % 40)]


def raw_request(body, path="/v1/completions", extra=""):
    data = json.dumps(body).encode()
    head = "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n"
    return head.format(path, extra, len(data)).encode() + data


def read_all(connection):
    data = bytearray()
    while True:
        part = connection.recv(65536)
        if not part:
            return bytes(data)
        data += part


# More than the buffers on the way to a client hold: it stands still while it is not read.
LONG_ANSWER = {"prompt": [0, 9], "max_tokens": 600, "ignore_eos": True, "stream": True, "logprobs": 20, "n": 12}
# More than a server with these options computes while a test lasts. It is not streamed, so it never stands still.
LONG_WORK = {"prompt": [0, 9], "max_tokens": 2000, "ignore_eos": True, "n": 60}
OCCUPIED = ("--max-sequences", "60", "--batch-tokens", "1", "--threads", "1")


def unread(server, body):
    """The socket of a client that asks and does not read."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(served.PATIENCE)
    s.connect(("127.0.0.1", server.port))
    s.sendall(raw_request(body, extra="connection: close\r\n"))
    return s


def read_stream(connection, begun=b""):
    """The events of a chunked answer, of which the beginning was read before, up to its end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    data = (begun + read_all(connection)).split(b"\r\n\r\n", 1)[1]
    parts, at = [], 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end], 16)
        if size == 0:
            return list(served.events_of(b"".join(parts).decode()))
        parts.append(data[end + 2:end + 2 + size])
        at = end + 4 + size


def occupy(server):
    """The socket of a client whose request has all the places."""
    s = server.socket()
    s.sendall(raw_request(LONG_WORK))
    assert eventually(lambda: server.status()["running"] == 60)
    return s


def phases(server):
    return {r["phase"] for r in server.status()["requests"]}


# ---- first of all: never another's text, never a hang, never a crash


@meets
def every_client_gets_its_own_answer_alone_or_among_others():
    count = 24 if QUICK else 64
    with start("--max-sequences", "16") as server:
        def answer(i, stream):
            body = {"prompt": prompt(i), "max_tokens": 16, "seed": i, "temperature": 0.9, "logprobs": 1,
                    "return_token_ids": True, "stream": stream}
            got = server.post("/v1/completions", body)
            assert got.status == 200, got.body
            if not stream:
                choice = got.json()["choices"][0]
                return choice["text"], choice["token_ids"], choice["logprobs"]["token_logprobs"]
            chunks = [e["choices"][0] for e in got.events() if e != "[DONE]"]
            return (served.stream_text(got.events()), sum((c["token_ids"] for c in chunks), []),
                    sum((c["logprobs"]["token_logprobs"] for c in chunks if c["logprobs"]), []))
        alone = [answer(i, False) for i in range(count)]
        assert len({text for text, _, _ in alone}) > count * 3 // 4, "the prompts are meant to have different answers"
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            order = list(range(count)) * 2
            random.Random(1).shuffle(order)
            for i, got in zip(order, pool.map(lambda i: answer(i, i % 2 == 0), order)):
                assert got == alone[i], "prompt {}: {} but alone {}".format(i, got, alone[i])
        server.wait_idle()


@test
def hostile_bytes_get_an_error_or_a_closed_connection_and_the_server_lives():
    chaos = random.Random(7)
    good = raw_request({"prompt": [0, 5], "max_tokens": 2})
    with start("--max-body", "64K", "--max-header", "4K") as server:
        for i in range(60 if QUICK else 300):
            data = bytearray(good)
            for _ in range(chaos.randrange(1, 8)):
                data[chaos.randrange(len(data))] = chaos.randrange(256)
            if i % 3 == 0:
                data = data[:chaos.randrange(len(data))]
            with server.socket() as s:
                s.sendall(bytes(data))
                if i % 2:
                    s.shutdown(socket.SHUT_WR)
                    try:
                        read_all(s)
                    except ConnectionError:
                        pass
        for bad in (b"\x00" * 5000, b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\n"
                    b"host: 127.0.0.1\r\ncontent-length: -5\r\n\r\n", b"a" * 9000):
            with server.socket() as s:
                s.sendall(bad)
                s.shutdown(socket.SHUT_WR)
                try:
                    read_all(s)
                except ConnectionError:
                    pass
        assert server.complete(prompt=[0, 5], max_tokens=2).status == 200
        server.wait_idle()


@test
def bodies_of_all_shapes_get_an_answer():
    chaos = random.Random(3)
    fields = ["model", "messages", "prompt", "stream", "n", "max_tokens", "temperature", "top_p", "top_k", "stop", "seed",
              "logit_bias", "logprobs", "top_logprobs", "echo", "stop_token_ids", "stream_options", "tools", "user",
              "cache_salt", "priority", "min_tokens", "prompt_logprobs", "chat_template_kwargs", "return_token_ids"]
    values = [None, True, False, 0, 1, -1, 2.5, 1e308, 2**62, "", "a", "\x00", "é\U0001F600", [], {}, [0, 5], ["a"],
              [[0]], {"a": 1}, [{"role": "user", "content": "x"}], [{"role": "user", "content": [{"type": "text"}]}],
              {"5": 1}, [None], [[[[]]]], "x" * 3000]
    with start("--default-max-tokens", "3") as server:
        for i in range(150 if QUICK else 800):
            body = {"messages": [{"role": "user", "content": "x"}], "prompt": "x", "max_tokens": 2}
            for _ in range(chaos.randrange(1, 4)):
                body[chaos.choice(fields)] = chaos.choice(values)
            got = server.post(chaos.choice(["/v1/chat/completions", "/v1/completions", "/tokenize", "/apply-template"]),
                              body)
            assert got.status in (200, 400, 404), (got.status, body, got.body)
            if got.status != 200:
                error = got.json()["error"]
                assert error["message"] and error["type"] and "param" in error and "code" in error
        server.wait_idle()


@test
def a_body_of_many_small_values_is_refused_not_swallowed():
    if QUICK:
        raise served.Skip("one thread reads it, and tests/unit/api_json_body.c meets the same limit")
    with start() as server:
        before = server.memory()
        got = server.post("/v1/completions", b'{"prompt":[' + b"1," * 14_000_000 + b"1]}")
        assert got.status == 413, (got.status, got.body[:200])
        assert server.complete(prompt=[0, 5], max_tokens=1).status == 200
        assert server.memory() < before + (150 << 20), (before, server.memory())


# ---- streams


@test
def a_prompt_has_as_many_answers_as_are_asked_for_whatever_runs_at_once():
    body = {"prompt": prompt(1), "max_tokens": 4, "seed": 7}
    with start("--max-sequences", "3") as server:
        answers = server.complete(n=128, **body).json()["choices"]
        assert [c["index"] for c in answers] == list(range(128)), answers
        few = server.complete(n=5, **body).json()["choices"]
        assert [c["text"] for c in few] == [c["text"] for c in answers[:5]]
        refused = server.complete(n=129, **body)
        assert refused.status == 400 and refused.json()["error"]["param"] == "n", refused.body
    with start("--max-sequences", "2", "--max-queue", "1") as server:
        assert len(server.complete(n=4, **body).json()["choices"]) == 4  # a third more than these three
        error = server.complete(n=5, **body).json()["error"]
        assert (error["param"], error["code"]) == ("n", "invalid_value") and "--max-queue" in error["message"], error


@test
def a_stream_says_what_a_whole_answer_says():
    with start() as server:
        for i in range(12):
            body = {"max_tokens": 20, "seed": i, "temperature": 1.2, "logprobs": True, "top_logprobs": 2, "n": 2,
                    "return_token_ids": True, "stop": ["th", "ou", "x"]}
            whole = server.chat("tell {}".format(i), **body).json()
            events = server.chat("tell {}".format(i), stream=True, stream_options={"include_usage": True}, **body).events()
            assert events[-1] == "[DONE]"
            usage = events[-2]["usage"]
            assert usage["completion_tokens"] == whole["usage"]["completion_tokens"]
            for k in range(2):
                mine = [c for e in events[:-1] for c in e["choices"] if c["index"] == k]
                choice = whole["choices"][k]
                assert served.stream_text(events[:-1], k) == choice["message"]["content"]
                assert sum((c.get("token_ids", []) for c in mine), []) == choice["token_ids"]
                assert sum((c["logprobs"]["content"] for c in mine if c["logprobs"]), []) == choice["logprobs"]["content"]
                assert [c["finish_reason"] for c in mine][-1] == choice["finish_reason"]
                assert all(c["finish_reason"] is None for c in mine[:-1])


@test
def the_second_time_a_prefix_is_seen_it_is_cached_and_the_answer_is_the_same():
    with start() as server:
        long = [0] + [4 + k * 7 % 370 for k in range(600)]
        first = server.complete(prompt=long, max_tokens=8, temperature=0).json()
        again = server.complete(prompt=long, max_tokens=8, temperature=0).json()
        salted = server.complete(prompt=long, max_tokens=8, temperature=0, cache_salt="mine").json()
        assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 600
        assert salted["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        assert first["choices"] == again["choices"] == salted["choices"]


@test
def an_answer_tells_how_long_it_took_where_it_is_asked():
    with start() as server:
        want = {"max_tokens": 24, "ignore_eos": True, "temperature": 0, "timings_per_token": True}
        streamed = server.chat(stream=True, stream_options={"include_usage": True}, **want).events()
        for answer in (server.chat(**want).json(), server.complete(prompt=[0, 9, 9, 9], **want).json(), streamed[-2]):
            told = answer["timings"]
            assert told["cache_n"] + told["prompt_n"] == answer["usage"]["prompt_tokens"], answer
            assert told["predicted_n"] == 24 and told["prompt_ms"] > 0 and told["predicted_ms"] > 0, told
            assert 0.98 < told["predicted_per_second"] * told["predicted_ms"] / 23e3 < 1.02, told
            assert 0 <= told["draft_n_accepted"] <= told["draft_n"] and told["draft_n_accepted"] < 24, told
        kept = server.post("/v1/responses", {"input": "hello", "max_output_tokens": 4, "timings_per_token": True}).json()
        assert kept["timings"]["predicted_n"] == kept["usage"]["output_tokens"], kept
        assert "timings" not in server.chat(max_tokens=1).json()


@meets
def a_client_that_leaves_cancels_in_preparation_in_prefill_and_in_decoding():
    with start("--batch-tokens", "4") as server:
        for i, wanted in enumerate((set(), {"preparing", "prefill", "decode"}, {"prefill", "decode"}, {"decode"}) * 2):
            s = server.socket()
            s.sendall(raw_request({"prompt": [5 + i] * 500, "max_tokens": 1500, "ignore_eos": True, "stream": i < 4,
                                   "n": 60}))
            assert not wanted or eventually(lambda: wanted & phases(server))
            s.close()
            server.wait_idle()
        assert eventually(lambda: server.metrics()["motet_calls"] == 0)
        assert server.metrics()['vllm:request_success_total{finished_reason="length"}'] == 0


@test
def memory_stays_within_its_budget():
    if os.environ.get("MOTET_TEST_QUICK"):
        return  # a sanitizer takes memory of its own
    served.on_the_host()
    budget = 48 << 20
    with start("--memory", str(budget), "--max-sequences", "16", "--batch-tokens", "256") as server:
        answers = 0
        while server.metrics()["motet_cache_evictions_total"] == 0:
            reply = server.post("/v1/completions", {"prompt": [5 + answers] + [7] * 2000, "max_tokens": 2})
            assert reply.status == 200, reply.text
            answers += 1
            assert answers < 300
        assert server.memory() <= 1.05 * budget, (server.memory(), budget)


@test
def what_many_requests_took_is_given_back_when_they_are_over():
    if os.environ.get("MOTET_TEST_QUICK"):
        return  # a sanitizer keeps what is freed
    served.on_the_host()
    budget = 64 << 20
    with start("--memory", str(budget), "--max-sequences", "16", "--batch-tokens", "256",
               "--keep-alive-seconds", "1") as server:
        def post(body):  # as clients do that are told to come again: not all of them fit at once
            return eventually(lambda: next((a for a in [server.post("/v1/embeddings", body)]
                                            if a.status not in (429, 503)), None))
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            texts = [pool.submit(post, {"input": [[7, 8]] * 1000}) for _ in range(8)]
            large = [pool.submit(post, {"model": "none", "input": [[7] * 40] * 2000}) for _ in range(32)]
            assert all(len(answer.result().json()["data"]) == 1000 for answer in texts)
            assert all(answer.result().status == 404 for answer in large), {a.result().body[:300] for a in large}
        assert eventually(lambda: server.memory() <= 1.05 * budget), (server.memory(), budget)


@test
def messages_write_control_tokens_only_where_that_is_allowed():
    body = {"messages": [{"role": "user", "content": "<|done|>"}]}
    with start() as server:
        plain = server.post("/tokenize", body).json()["tokens"]
    with start("--allow-special-in-content") as server:
        special = server.post("/tokenize", body).json()["tokens"]
    assert plain.count(3) == 1 and special.count(3) == 2, (plain, special)


@test
def an_answer_ends_where_the_context_does():
    with start() as server:
        answer = server.post("/v1/completions", {"prompt": [7] * 2040, "max_tokens": 3000, "ignore_eos": True}).json()
        assert answer["usage"]["completion_tokens"] == 8 and answer["choices"][0]["finish_reason"] == "length", answer


@meets
def a_request_is_cancelled_by_its_id():
    with start("--batch-tokens", "4") as server:
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": [0] * 1000, "max_tokens": 1000, "ignore_eos": True, "stream": True, "n": 32, "logprobs": 5}))
        response = connection.getresponse()
        name = response.getheader("x-request-id")
        assert name.startswith("cmpl-")
        assert eventually(lambda: name in [r["id"] for r in server.status()["requests"]])
        assert server.request("DELETE", "/v1/requests/" + name).json()["cancelled"] is True
        events = list(served.events_of(response.read().decode()))
        reasons = [e["choices"][0]["finish_reason"] for e in events[:-1]]
        assert reasons.count("abort") == 32 and events[-1] == "[DONE]", events[-3:]
        server.wait_idle()
        assert server.request("DELETE", "/v1/requests/" + name).status == 404


@test
def a_request_is_cancelled_by_the_name_its_client_gave_it():
    """Answers that are not read do not end by themselves."""
    with start("--batch-tokens", "4") as server:
        body = json.dumps({"prompt": [0] * 1000, "max_tokens": 1000, "ignore_eos": True, "stream": True, "n": 32,
                           "logprobs": 5})
        connections = [server.connect() for _ in range(3)]
        for connection, name in zip(connections, ("mine", "mine", "other")):
            connection.request("POST", "/v1/completions", body, {"x-request-id": name})
        assert eventually(lambda: len({r["id"] for r in server.status()["requests"] if r["phase"] != "preparing"}) == 3)
        aborted = lambda connection: [e["choices"][0]["finish_reason"] for e in served.events_of(
            connection.getresponse().read().decode()) if e != "[DONE]"].count("abort") == 32
        cancelled = server.request("POST", "/v1/requests/mine/cancel")
        assert cancelled.status == 200 and cancelled.json()["cancelled"] is True, cancelled.body
        assert aborted(connections[0]) and aborted(connections[1])
        assert server.request("POST", "/v1/requests/mine/cancel").status == 404
        assert server.request("DELETE", "/v1/requests/other").status == 200
        assert aborted(connections[2])
        server.wait_idle()


@test
def more_than_are_listed_are_counted_as_what_they_are():
    with start("--max-sequences", "128", "--max-queue", "2000", "--batch-tokens", "1") as server:
        sockets = [server.socket() for _ in range(10)]
        for s in sockets:
            s.sendall(raw_request({"prompt": [0] * 1000, "n": 128, "max_tokens": 1000, "ignore_eos": True}))
        assert eventually(lambda: sum(server.status()[k] for k in ("running", "waiting")) == 1280)
        assert server.status()["running"] <= 128, server.status()["running"]
        for s in sockets:
            s.close()
        server.wait_idle()


@test
def a_slow_reader_pauses_only_itself_and_loses_nothing():
    body = dict(LONG_ANSWER, seed=3)
    with start("--max-sequences", "12") as server:  # it has all the places, and makes way
        expected = served.stream_text(server.post("/v1/completions", body).events())
        with unread(server, body) as slow:
            begun = bytearray()

            def told():
                return [r["completion_tokens"] for r in server.status()["requests"] if r.get("prompt_tokens") == 2]

            def stands_still():
                begun.extend(slow.recv(4096))  # who takes nothing for a minute is dropped
                before = told()
                assert server.complete(prompt=prompt(1), max_tokens=50, ignore_eos=True).status == 200
                return len(before) == 12 and told() == before
            assert eventually(stands_still)
            assert all(count < LONG_ANSWER["max_tokens"] for count in told())
            assert served.stream_text(read_stream(slow, bytes(begun))) == expected
        server.wait_idle()


def crowd(server, clients, chaos, tokens):
    """Streaming clients, a third of which vanish at random. Returns how many heard their whole answer."""
    def client(i):
        vanish = i % 3 == 0
        body = {"prompt": prompt(i), "max_tokens": tokens, "ignore_eos": True, "stream": True, "seed": i}
        with server.socket() as s:
            s.sendall(raw_request(body, extra="connection: close\r\n"))
            if vanish:
                limit = chaos.randrange(1, 4000)
                got = 0
                while got < limit:
                    part = s.recv(512)
                    if not part:
                        break
                    got += len(part)
                return None
            data = read_all(s)
            if data.startswith(b"HTTP/1.1 429"):
                return None
            assert data.startswith(b"HTTP/1.1 200"), data[:200]
            assert b"data: [DONE]" in data, data[-300:]
            return True
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return sum(1 for whole in pool.map(client, range(clients)) if whole)


@test
def a_stream_that_repeats_itself_is_no_longer_than_it_must_be():
    """SGLang's chunks have all that was said before: the longer they are, the fewer there are."""
    ask = {"text": "hello", "sampling_params": {"max_new_tokens": 400, "ignore_eos": True}, "stream": True,
           "return_logprob": True, "top_logprobs_num": 20, "return_text_in_logprobs": True}
    with start() as server:
        got = server.post("/generate", ask)
        events = [json.loads(e[6:]) for e in got.body.decode().split("\n\n") if e.startswith("data: {")]
        last = events[-1]["meta_info"]
        assert len(events[-1]["output_ids"]) == len(last["output_token_logprobs"]) == 400, last
        assert 30 < len(events) < 200 and len(events[1]["output_ids"]) <= 3, len(events)


@test
def calls_whose_members_are_null():
    with start() as server:
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "custom": None}
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": "done"}]
        assert server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1}).status == 200


@meets
def two_hundred_clients_stream_while_a_third_vanishes():
    rounds, clients, tokens = (1, 60, 12) if QUICK else (3, 200, 30)
    end = time.time() + (60 if LONG else 0)
    chaos = random.Random(11)
    memory = () if QUICK or served.ON_GPU else ("--memory", "56M")  # a sanitizer takes memory of its own
    with start("--max-sequences", "32", "--max-connections", "1000", *memory) as server:
        crowd(server, clients, chaos, tokens)
        while memory and server.metrics()["motet_cache_evictions_total"] == 0:  # from then on the cache is full
            crowd(server, clients, chaos, tokens)
        server.wait_idle()
        before = server.memory()
        threads = len(os.listdir("/proc/{}/task".format(server.process.pid)))
        files = len(os.listdir("/proc/{}/fd".format(server.process.pid)))
        while rounds > 0 or time.time() < end:
            assert crowd(server, clients, chaos, tokens) == clients - (clients + 2) // 3
            rounds -= 1
        server.wait_idle()
        assert eventually(lambda: server.metrics()["vllm:kv_cache_usage_perc"] == 0)
        spare = 8  # MT_LIMIT_PREPARING_SPARE: threads of the lane for small calls that start when they are first needed
        assert len(os.listdir("/proc/{}/task".format(server.process.pid))) <= threads + spare
        assert eventually(lambda: len(os.listdir("/proc/{}/fd".format(server.process.pid))) <= files)
        if memory:
            assert server.memory() < before + (2 << 20), (before, server.memory())
        assert eventually(lambda: server.metrics()["motet_calls"] == 0)


# ---- limits and keys


FULL_PATHS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages")


def full_of_small_and_large(server):
    """Where no place is free bodies are not looked at: of small ones the connection goes on, large ones are not read."""
    connection = server.connect()
    for path in FULL_PATHS:
        connection.request("POST", path, b"{no JSON")
        answer = connection.getresponse()
        assert answer.status == 429 and answer.getheader("retry-after") == "1", path
        assert "wait or run already" in json.loads(answer.read())["error"]["message"], path
        assert answer.getheader("connection") != "close", path
    kept = connection.sock
    connection.request("POST", "/v1/messages/count_tokens", json.dumps(
        {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}))  # which needs none
    answer = connection.getresponse()
    assert answer.status == 200 and connection.sock is kept, answer.read()
    connection.close()
    for length in ("content-length: 5000000", "transfer-encoding: chunked"):
        with server.socket() as s:
            s.sendall("POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n{}\r\n\r\n".format(length).encode())
            answer = read_all(s)  # the body is not waited for
            assert answer.startswith(b"HTTP/1.1 429") and b"retry-after: 1" in answer, answer
            assert b"connection: close" in answer and b'"queue_full"' in answer, answer


@meets
def a_full_queue_is_a_429_with_retry_after():
    with start("--max-queue", "2", *OCCUPIED) as server:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            with occupy(server):
                answers = [pool.submit(server.complete, prompt=prompt(i), max_tokens=4) for i in range(2)]
                assert eventually(lambda: server.status()["waiting"] == 2)
                for _ in range(3):
                    refused = server.complete(prompt=[0, 5], max_tokens=4)
                    assert refused.status == 429 and refused.headers["retry-after"] == "1", refused.body
                    assert refused.json()["error"]["code"] == "queue_full"
                full_of_small_and_large(server)
            assert [a.result().status for a in answers] == [200] * 2
        assert eventually(lambda: server.metrics()["motet_calls_refused_total"] == 3 + len(FULL_PATHS) + 2)


def vectors(server, texts, **more):
    answer = server.post("/v1/embeddings", dict(more, input=texts))
    assert answer.status == 200, answer.text
    return [entry["embedding"] for entry in answer.json()["data"]]


def encoder(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "vectors", name)


@meets
def more_texts_than_the_queue_holds_are_embedded_a_few_at_a_time():
    texts = [prompt(i) for i in range(100)]
    with start("--max-sequences", "2", "--max-queue", "3") as server:
        together = vectors(server, texts)
        assert [vectors(server, [text])[0] for text in texts[:10]] == together[:10]
    with start("--max-queue", "3", "--embedding-model", encoder("bert-mean-f32")) as server:
        texts = [[2 + (i + k) % 90 for k in range(1 + i % 200)] for i in range(100)]
        together = vectors(server, texts, model="bert-mean-f32")
        assert [vectors(server, [text], model="bert-mean-f32")[0] for text in texts[:10]] == together[:10]
        metrics = server.metrics()
        assert metrics["motet_encoder_texts_total"] == 110, metrics


@test
def a_call_for_many_texts_is_let_in_or_refused_as_a_whole():
    with start("--max-sequences", "1", "--max-queue", "1") as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        texts = [[1 + i] * 50 for i in range(40 if QUICK else 200)]
        ended = threading.Event()

        def come():
            answers = []
            while not ended.is_set():
                answers.append(server.complete(prompt=[0, 5], max_tokens=1).status)
            return answers
        others = [pool.submit(come) for _ in range(4)]
        many = server.post("/v1/embeddings", {"input": texts})
        while many.status == 429:
            many = server.post("/v1/embeddings", {"input": texts})
        ended.set()
        answers = sum((o.result() for o in others), [])
        assert many.status == 200 and set(answers) <= {200, 429}, (many.status, answers)
        server.wait_idle()
        computed = 50 * len(texts) + 2 * answers.count(200)  # and nothing of what was refused
        told = lambda: server.metrics()["vllm:prompt_tokens_total"]
        assert eventually(lambda: told() >= computed) and told() == computed, (told(), computed)


@meets
def a_client_that_leaves_takes_its_texts_along():
    with start("--batch-tokens", "4", "--embedding-model", encoder("bert-mean-f32")) as server:
        for body in ({"input": [[7] * 1000] * 500}, {"input": [[7] * 300] * 2000, "model": "bert-mean-f32"}):
            for wait in (0, 0.01, 0.1):
                s = server.socket()
                s.sendall(raw_request(body, "/v1/embeddings"))
                time.sleep(wait)
                s.close()
        assert eventually(lambda: server.metrics()["motet_calls"] == 0)
        assert len(vectors(server, "fox")) == 1


@test
def a_call_for_embeddings_is_cancelled_by_its_id():
    with start("--batch-tokens", "4") as server:
        texts = [[1 + i % 200] * 1000 + [1 + i // 200] * 1000 for i in range(200 if QUICK else 1000)]  # none is another's prefix
        names = lambda: [r["id"] for r in server.status()["requests"] if r["phase"] == "prefill"]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.post, "/v1/embeddings", {"input": texts})
            name = eventually(names)[0]
            assert server.request("DELETE", "/v1/requests/" + name).json()["cancelled"] is True
            assert answer.result().status == 409, answer.result().text
        server.wait_idle()


@meets
def streams_go_on_while_an_encoder_is_busy():
    """Turns are taken: neither waits for the other's end."""
    with start("--embedding-model", encoder("bert-mean-f32")) as server:
        alone = server.complete(prompt=prompt(1), max_tokens=200, ignore_eos=True, seed=1).json()["choices"]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            busy = pool.submit(vectors, server, [[7] * 300] * 8, model="bert-mean-f32")
            said = server.complete(prompt=prompt(1), max_tokens=200, ignore_eos=True, seed=1).json()["choices"]
            assert said == alone
            assert len(set(map(tuple, busy.result()))) == 1


@test
def keys_are_needed_where_they_are_set():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("# keys\nfrom-file\n\n")
        file.flush()
        with start("--api-key", "secret", "--api-key", "@" + file.name, env={"MOTET_API_KEY": "unused"}) as server:
            get = lambda headers: server.request("GET", "/v1/models", headers=headers).status
            assert get({}) == 401
            assert get({"authorization": "Bearer wrong"}) == 401
            assert get({"authorization": "Bearer unused"}) == 401
            assert get({"authorization": "Bearer secret"}) == 200
            assert get({"x-api-key": "from-file"}) == 200
            error = server.chat().json()["error"]
            assert error["code"] == "invalid_api_key" and error["type"] == "authentication_error", error
            assert server.request("GET", "/health").status == 200
    with start(env={"MOTET_API_KEY": "secret"}) as server:
        assert server.request("GET", "/v1/models").status == 401


@test
def anthropics_clients_are_told_in_their_own_shape():
    body = {"model": "tiny", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}
    with start("--api-key", "secret") as server:
        for key, status, kind in (("secret", 200, None), ("wrong", 401, "authentication_error")):
            answer = server.post("/v1/messages", body, {"x-api-key": key})
            assert answer.status == status, answer.body
            said = answer.json()
            assert kind is None or (said["type"], said["error"]["type"]) == ("error", kind), said
        answer = server.post("/v1/messages", dict(body, model="claude-x"), {"x-api-key": "secret"})
        assert (answer.status, answer.json()["error"]["type"]) == (404, "not_found_error"), answer.body
        assert server.request("HEAD", "/").status == 200  # asked before anybody has a key
    with start("--any-model") as server:
        assert server.post("/v1/messages", dict(body, model="claude-x")).status == 200
        assert server.request("GET", "/v1/models/claude-x").status == 200


@test
def a_stream_that_waits_is_told_that_it_does():
    second = {"stream": True, "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}
    signs = {"/v1/chat/completions": b": still at work\n\n", "/v1/messages": b"event: ping\n"}
    with start("--keep-alive-seconds", "1", *OCCUPIED) as server, occupy(server):
        for path, sign in signs.items():
            with server.socket() as waiting:
                waiting.sendall(raw_request(second, path))
                seen = b""
                while sign not in seen:
                    seen += waiting.recv(65536)
                assert b"message_start" not in seen and b"choices" not in seen, seen


@meets
def responses_in_a_file_outlive_the_server():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers.db")
        with start("--store", path, "--store-entries", "2") as server:
            body = {"input": "hello", "max_output_tokens": 3}
            ids = [server.post("/v1/responses", body).json()["id"] for _ in range(3)]
            assert server.request("GET", "/v1/responses/" + ids[2]).status == 200  # it is written now
            assert server.metrics()["motet_store_entries"] == 2
        with start("--store", path) as server:
            status = [server.request("GET", "/v1/responses/" + i).status for i in ids]
            assert status == [404, 200, 200], status
            answer = server.post("/v1/responses", dict(body, previous_response_id=ids[2]))
            assert answer.status == 200 and answer.json()["previous_response_id"] == ids[2], answer.body
    status, sentence = fails("--store", "/nowhere/at/all.db")
    assert status == 1 and '"/nowhere/at/all.db" cannot be used' in sentence, (status, sentence)


def respond(server, size=0, **more):
    """size: bytes that are kept with the answer"""
    body = {"input": "hello", "max_output_tokens": 2, "metadata": {"x": "x" * size}, **more}
    answer = server.post("/v1/responses", body)
    assert answer.status == 200, answer.body
    return answer.json()["id"]


@test
def a_server_that_is_killed_leaves_a_whole_store():
    """What was answered last may be lost, but nothing else, and whatever is there is right."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers.db")
        with start("--store", path) as server:
            first = [respond(server) for _ in range(5)]  # an orderly end writes them
        killed, answered = start("--store", path), []

        def ask(_):
            try:
                answered.append(respond(killed, 5000))
            except (OSError, http.client.HTTPException):
                return
            if len(answered) == 20:
                killed.process.kill()

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(60)))
        killed.process.kill()
        assert killed.stop() == -signal.SIGKILL
        with contextlib.closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        with start("--store", path) as server:
            for i in first + answered:
                got = server.request("GET", "/v1/responses/" + i)
                assert got.status == 200 if i in first else got.status in (200, 404), (i, got.body)
                assert got.status == 404 or got.json()["id"] == i, got.body
            respond(server, previous_response_id=first[0])


@test
def a_disk_that_is_full_costs_what_would_be_kept_and_nothing_else():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers.db")
        with served.Server(PROGRAM, FOLDER, "--store", path) as server:
            # No file may grow beyond this; from now on, since sanitizers write larger ones when they start.
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (128 << 10, 128 << 10))
            first = respond(server)
            ids = [respond(server, 20000) for _ in range(12)]
            status = [server.request("GET", "/v1/responses/" + i).status for i in [first] + ids]
            assert status[0] == 200 and status[-1] == 404, status
            assert server.metrics()["motet_store_failed_total"] == status.count(404)
            told = "store.failed " + ids[-1] + " was given, but is not kept: "
            assert eventually(lambda: any(told in line for line in server.log)), server.log
            respond(server, previous_response_id=first)


def wait_for(server, response):
    """The response once it has ended, and what its status was on the way."""
    seen = []

    def ended():
        seen.append(server.request("GET", "/v1/responses/" + response).json())
        return seen[-1]["status"] not in ("queued", "in_progress")

    assert eventually(ended), seen[-1]
    return seen[-1], [s["status"] for s in seen]


@meets
def a_response_in_the_background_is_there_later():
    body = {"input": "hello", "max_output_tokens": 40, "seed": 1, "metadata": {"a": "b"}}
    with start() as server:
        told = server.post("/v1/responses", dict(body, background=True))
        assert told.status == 200 and told.json()["background"] is True, told.body
        assert told.json()["status"] in ("queued", "in_progress", "completed", "incomplete"), told.body
        found, _ = wait_for(server, told.json()["id"])
        whole = server.post("/v1/responses", body).json()
        for response in (found, whole):
            response["output"][0]["id"] = None
        for key in ("output", "status", "metadata"):
            assert found[key] == whole[key], (found, whole)
        server.wait_idle()
        assert server.metrics()["motet_calls_background_total"] == 1
        more = server.post("/v1/responses", {"input": "and?", "max_output_tokens": 1,
                                             "previous_response_id": told.json()["id"]})
        assert more.status == 200, more.body


@test
def a_response_that_runs_lists_what_it_was_asked():
    with start(*OCCUPIED) as server:
        first = server.post("/v1/responses", {"input": "hello", "max_output_tokens": 2}).json()
        with occupy(server):
            told = server.post("/v1/responses", {"input": [{"role": "user", "content": "and \"more\""}],
                                                 "previous_response_id": first["id"], "background": True}).json()
            path = "/v1/responses/" + told["id"]
            items = lambda more="": server.request("GET", path + "/input_items?order=asc" + more)
            listed = items()
            assert server.request("GET", path).json()["status"] == "queued"
            assert listed.status == 200, listed.body
            data = listed.json()["data"]
            assert [i["type"] for i in data] == ["message", "message", "message"], data
            assert data[0]["content"][0]["text"] == "hello" and data[1]["id"] == first["output"][0]["id"], data
            assert data[2]["content"] == [{"type": "input_text", "text": "and \"more\""}], data
            assert items("&after=" + data[0]["id"]).json()["data"] == data[1:]
            text = server.post("/v1/responses", {"input": "text", "background": True}).json()["id"]
            alone = server.request("GET", "/v1/responses/{}/input_items".format(text)).json()["data"]
            assert alone[0]["content"][0]["text"] == "text" and len(alone) == 1, alone
            assert server.post(path + "/cancel", {}).json()["status"] == "cancelled"
            wait_for(server, told["id"])
            assert items().json()["data"] == data, "it is kept now"


@meets
def a_response_in_the_background_waits_and_is_cancelled():
    with start(*OCCUPIED) as server, occupy(server):
        told = server.post("/v1/responses", {"input": "hello", "background": True}).json()
        assert told["status"] == "queued" and told["output"] == [], told
        path = "/v1/responses/" + told["id"]
        assert server.request("GET", path).json()["status"] == "queued"
        assert server.post(path + "/cancel", {}).json()["status"] == "cancelled"
        found, _ = wait_for(server, told["id"])
        assert found["status"] == "cancelled" and found["background"], found
        path = "/v1/responses/" + server.post("/v1/responses", {"input": "hello", "background": True}).json()["id"]
        assert server.request("DELETE", path).json()["deleted"] is True
        assert server.request("GET", path).status == 404


@test
def a_response_in_the_background_ends_where_nobody_follows_it():
    """One that is asked about goes on; so does every one with --background-alone never."""
    body = {"input": "hello", "background": True, "stream": True, "max_output_tokens": 5}
    with start("--background-alone", "1s", *OCCUPIED) as server, occupy(server):
        def begin():
            connection = server.connect()
            connection.request("POST", "/v1/responses", json.dumps(body))
            path = "/v1/responses/" + connection.getresponse().getheader("x-request-id")
            connection.close()
            return path

        alone, followed = begin(), begin()
        assert eventually(lambda: server.request("GET", followed).json()["status"] == "queued" and
                          server.metrics()["motet_calls_forsaken_total"] == 1)
        assert server.request("GET", alone).json()["status"] == "cancelled"
        assert server.request("GET", followed).json()["status"] == "queued"
        assert server.post(followed + "/cancel", {}).json()["status"] == "cancelled"


@meets
def a_response_in_the_background_ends_with_the_server():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers.db")
        body = {"input": "hello", "background": True}
        with start("--store", path) as server:
            ids = [server.post("/v1/responses", body).json()["id"] for _ in range(20)]
        with start("--store", path) as server:
            for i in ids:
                found = server.request("GET", "/v1/responses/" + i)
                assert found.status == 200, found.body
                assert found.json()["status"] in ("completed", "incomplete", "cancelled"), found.body


@meets
def a_stream_in_the_background_goes_on_when_its_client_leaves():
    body = {"input": "hello", "background": True, "stream": True, "max_output_tokens": 900}
    with start() as server:
        with server.socket() as client:
            client.sendall(raw_request(body, "/v1/responses"))
            seen = b""
            while not (created := re.search(rb'response\.created.*?"id":"(\w+)"', seen, re.DOTALL)):
                seen += client.recv(65536)
        response = created.group(1).decode()
        found, _ = wait_for(server, response)
        assert found["status"] in ("completed", "incomplete"), found


@meets
def clients_come_back_to_a_stream_in_the_background():
    """One that has not begun is followed by two clients from its first event on, one of which leaves. What the other
    saw is what is streamed again, from any event on, once it has ended."""
    def follow(query=""):
        connection = server.connect()
        connection.request("GET", path + "?stream=true" + query)
        return connection, connection.getresponse()

    body = {"input": "hello", "background": True, "stream": True, "max_output_tokens": 40, "seed": 1}
    with start(*OCCUPIED) as server:
        with occupy(server):
            first = server.connect()
            first.request("POST", "/v1/responses", json.dumps(body))
            path = "/v1/responses/" + first.getresponse().getheader("x-request-id")
            first.close()
            waiting = [follow() for _ in range(16)]
            assert all(w.status == 200 for _, w in waiting)
            refused, answer = follow()
            assert answer.status == 429 and b"follow this response" in answer.read()
            refused.close()
            for leaving, _ in waiting[1:]:
                leaving.close()
        assert waiting[0][1].getheader("content-type") == "text/event-stream"
        seen = waiting[0][1].read().decode()
        waiting[0][0].close()
        events = list(served.events_of(seen))
        assert [e["sequence_number"] for e in events] == list(range(len(events))), seen
        assert events[0]["type"] == "response.created" and events[-1]["response"]["output"], seen
        wait_for(server, path.rsplit("/", 1)[1])
        ends = [m.end() for m in re.finditer("\n\n", seen)]
        for after in range(-1, len(events) + 1):
            again = server.request("GET", path + "?stream=true" + ("&starting_after={}".format(after) if after >= 0 else ""))
            rest = seen if after < 0 else seen[ends[min(after, len(ends) - 1)]:]
            assert again.status == 200 and again.body.decode() == rest, (after, again.body)
        for query, field in (("&starting_after=-1", "starting_after"), ("&starting_after=1x", "starting_after")):
            answer = server.request("GET", path + "?stream=true" + query)
            assert answer.status == 400 and answer.json()["error"]["param"] == field, answer.body
        unstreamed = server.post("/v1/responses", dict(body, stream=False)).json()["id"]
        wait_for(server, unstreamed)
        answer = server.request("GET", "/v1/responses/{}?stream=true".format(unstreamed))
        assert answer.status == 400 and answer.json()["error"]["param"] == "stream", answer.body
        assert server.request("GET", "/v1/responses/resp_none?stream=true").status == 404


@test
def a_response_whose_events_are_too_many_to_keep_ends_for_who_follows_it():
    """Three events repeat what the request said, and two of them are kept: who follows sees that there is no end."""
    body = {"input": "hello", "background": True, "stream": True, "max_output_tokens": 1, "user": "u" * (12 << 20)}
    with start(*OCCUPIED) as server:
        with occupy(server):
            first, follower = server.connect(), server.connect()
            first.request("POST", "/v1/responses", json.dumps(body))
            name = first.getresponse().getheader("x-request-id")
            first.close()
            follower.request("GET", "/v1/responses/{}?stream=true".format(name))
            response = follower.getresponse()
            assert response.status == 200, response.read()
        try:
            response.read()
            assert False, "a stream without an end was ended"
        except http.client.IncompleteRead as e:
            assert b"response.created" in e.partial and b"response.completed" not in e.partial
        follower.close()
        assert eventually(lambda: server.metrics()["motet_calls"] == 0)


@test
def a_response_is_cancelled_by_its_id():
    with start(*OCCUPIED) as server, occupy(server):
        connection = server.connect()
        connection.request("POST", "/v1/responses", json.dumps({"input": "hello", "stream": True}))
        response = connection.getresponse()
        name = response.getheader("x-request-id")
        answer = server.post("/v1/responses/{}/cancel".format(name), {})
        assert answer.status == 200 and answer.json()["status"] == "cancelled", answer.body
        final = list(served.events_of(response.read().decode()))[-1]["response"]
        assert (final["id"], final["status"], final["output"]) == (name, "cancelled", []), final
        connection.close()


@test
def what_is_not_looked_at_is_said():
    with start() as server:
        known = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1, "user": "me", "metadata": {"a": "b"}}
        odd = 'a "b"\r\nx: y'
        for body in (known, dict(known, stream=True)):
            assert "warning" not in server.post("/v1/chat/completions", body).headers
            told = server.post("/v1/chat/completions", dict(body, temperatur=0, **{odd: 1})).headers
            assert told.get("warning") == "299 motet \"not looked at: temperatur (did you mean temperature?), a 'b'  x: y\"", told
            told = server.post("/v1/chat/completions", dict(body, **{"": 1})).headers
            assert told.get("warning") == "299 motet \"not looked at: ''\"", told
            assert "x" not in told
        told = server.post("/v1/embeddings", {"input": "hello", "input_type": "query"}).headers
        assert told.get("warning") == '299 motet "not looked at: input_type"', told
        many = server.post("/v1/chat/completions", dict(known, **{"unknown{}".format(i): i for i in range(1000)}))
        assert many.status == 200 and len(many.headers["warning"]) < 500, many.headers


@test
def pages_of_named_origins_may_call():
    with start("--cors", "https://app.example") as server:
        got = server.request("OPTIONS", "/v1/chat/completions", headers={
            "origin": "https://app.example", "access-control-request-method": "POST"})
        assert got.headers.get("access-control-allow-origin") == "https://app.example", got.headers
        got = server.request("GET", "/v1/models", headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in got.headers


@meets
def metrics_add_up():
    with start() as server:
        for i in range(5):
            assert server.complete(prompt=prompt(40), max_tokens=7, ignore_eos=True).status == 200
        assert eventually(lambda: server.metrics()['vllm:request_success_total{finished_reason="length"}'] == 5)
        m = server.metrics()
        tokens = len(prompt(40))
        assert m["vllm:generation_tokens_total"] == 35
        assert m["vllm:prompt_tokens_total"] == 5 * tokens
        assert m["vllm:prefix_cache_hits_total"] == 4 * (tokens - 1)
        for name, count in (("time_to_first_token", 5), ("e2e_request_latency", 5), ("inter_token_latency", 30)):
            name = "vllm:" + name + "_seconds"
            assert m[name + "_count"] == count, (name, m[name + "_count"])
            assert m[name + '_bucket{le="+Inf"}'] == count
            buckets = [v for k, v in m.items() if k.startswith(name + "_bucket")]
            assert buckets == sorted(buckets) and m[name + "_sum"] > 0
        assert m["vllm:num_requests_running"] == m["vllm:num_requests_waiting"] == 0


@meets
def guesses_and_predictions_change_no_answer():
    def ask(server, **more):
        got = server.post("/v1/chat/completions", dict({"messages": [{"role": "user", "content": "go on " * 20}],
                                                        "max_tokens": 64, "seed": 3, "temperature": 0.4}, **more))
        assert got.status == 200, got.body
        return got.json()["choices"][0]["message"]
    with start("--speculate", "off") as server:
        plain = ask(server)
        assert ask(server, prediction={"type": "content", "content": plain["content"]}) == plain
        assert server.metrics()["vllm:spec_decode_num_draft_tokens_total"] == 0
    with start() as server:
        assert ask(server) == plain
        assert ask(server, prediction={"type": "content", "content": [{"type": "text", "text": "no"}]}) == plain
        for content in plain["content"], plain["content"][len(plain["content"]) // 2:]:
            assert ask(server, prediction={"type": "content", "content": content}) == plain
        bad = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "prediction": "x"})
        assert bad.status == 400 and bad.json()["error"]["param"] == "prediction", bad.body


@test
def an_answer_that_goes_in_circles_is_ended():
    """At the same token however it is computed: with guesses, which are right here, in chunks, beside others."""
    body = {"prompt": [0, 9], "logit_bias": {"7": 100}, "temperature": 0, "max_tokens": 60, "return_token_ids": True}

    def ended(reply):
        assert reply.status == 200, reply.body
        return [(len(c["token_ids"]), c["finish_reason"], c["stop_reason"]) for c in reply.json()["choices"]]
    for speculate in "off", "ngram":
        with start("--speculate", speculate, "--repeat-limit", "20") as server:
            assert ended(server.post("/v1/completions", body)) == [(21, "length", "repetition")]
            assert ended(server.post("/v1/completions", dict(body, n=3))) == [(21, "length", "repetition")] * 3
            assert ended(server.post("/v1/completions", dict(body, repeat_limit=33))) == [(34, "length", "repetition")]
            assert ended(server.post("/v1/completions", dict(body, repeat_limit=0))) == [(60, "length", None)]
            assert ended(server.post("/v1/completions", dict(body, min_tokens=40))) == [(40, "length", "repetition")]
            assert eventually(lambda: server.metrics()["motet_repeated_total"] == 6)
            chat = {"messages": [{"role": "user", "content": "go"}], "temperature": 0, "max_tokens": 60}
            said = server.post("/v1/messages", dict(chat, repeat_limit=1)).json()
            assert said["stop_reason"] in ("max_tokens", "end_turn"), said
    with start() as server:
        assert ended(server.post("/v1/completions", body)) == [(60, "length", None)]


@test
def a_checkpoint_says_how_long_answers_are():
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(FOLDER, os.path.join(place, "model"))
        path = os.path.join(folder, "generation_config.json")
        with open(path, encoding="utf-8") as f:
            known = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(known, max_new_tokens=5), f)
        for options, wanted in ((), 5), (("--default-max-tokens", "7"), 7):
            with served.Server(PROGRAM, folder, *options) as server:
                for more, tokens in ({}, wanted), ({"max_tokens": 9}, 9), ({"max_tokens": 3}, 3):
                    reply = server.chat(ignore_eos=True, **more).json()
                    assert reply["usage"]["completion_tokens"] == tokens, (options, more, reply)


@test
def a_finished_request_is_one_line_in_the_log():
    with start() as server:
        name = server.chat(max_tokens=3, ignore_eos=True).json()["id"]
        lines = eventually(lambda: [line for line in server.log if "request.done" in line])
        assert len(lines) == 1 and name in lines[0] and "generated 3 finish length" in lines[0], server.log


@test
def a_finished_request_has_members_in_a_json_log():
    with served.Server(PROGRAM, FOLDER, "--log-format", "json", ready=False) as server:
        server.wait_ready()
        name = server.chat(max_tokens=3, ignore_eos=True).json()["id"]
        done = eventually(lambda: [json.loads(line) for line in server.log if "request.done" in line])[0]
        assert (done["id"], done["dialect"], done["tokens"], done["finish"]) == (name, "chat", 3, "length"), done
        assert done["total_ms"] >= done["first_ms"] > 0 and done["prompt_tokens"] > 0 and "key" not in done, done


# ---- beginning and end


@test
def it_listens_in_under_a_second():
    with start(ready=False) as server:
        assert server.cpu() < (20 if QUICK else 1), server.cpu()  # however busy the machine is
        server.wait_ready()


def says_that_it_drains(server):
    """What a balancer and its clients see of a server that ends."""
    for path in ("/ready", "/health"):
        got = server.request("GET", path)
        assert got.status == 503 and got.json()["error"]["code"] == "draining" and "retry-after" in got.headers, got.body
    assert server.request("GET", "/live").status == 200
    assert server.request("GET", "/metrics").status == 200
    for path, body in (("/v1/completions", {"prompt": "a"}), ("/v1/messages", {"messages": []}), ("/tokenize", {})):
        got = server.post(path, body)
        assert got.status == 503 and "ask another" in got.body.decode(), (path, got.body)
        assert got.headers["retry-after"] == "1" and got.headers["connection"] == "close", (path, got.headers)


@meets
def a_signal_lets_answers_end_and_sends_new_requests_elsewhere():
    with start("--drain-seconds", "600") as server, unread(server, LONG_ANSWER) as s:
        assert eventually(lambda: server.status()["running"] == 12)
        before = server.metrics()["motet_calls_refused_total"]
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "server.draining" in "".join(server.log))
        says_that_it_drains(server)
        assert server.metrics()["motet_calls_refused_total"] == before + 3
        events = read_stream(s)
        reasons = [e["choices"][0]["finish_reason"] for e in events[:-1]]
        assert reasons.count("length") == 12 and events[-1] == "[DONE]", events[-3:]
        assert server.process.wait(served.PATIENCE) == 0


@test
def a_server_without_answers_listens_as_long_as_it_is_told():
    with start("--drain-seconds", "600", "--drain-listen-seconds", "600") as server, server.socket() as early:
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "server.draining" in "".join(server.log))
        says_that_it_drains(server)
        early.sendall(b"GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\n")  # who has not asked yet is answered, too
        assert early.recv(65536).startswith(b"HTTP/1.1 503 ")
        assert server.process.poll() is None
        assert server.stop(signal.SIGINT) == 128 + signal.SIGINT
        server.process.returncode = 0  # as it was told
    with start("--drain-seconds", "600", "--drain-listen-seconds", "1") as server:
        assert server.stop() == 0
    with start("--drain-seconds", "1", "--drain-listen-seconds", "600") as server:
        assert server.stop() == 0
    with start("--drain-listen-seconds", "600") as server:  # nobody waits at a terminal
        assert server.stop(signal.SIGINT) == 0


@test
def answers_that_take_too_long_are_cut_off():
    with start("--batch-tokens", "1", "--drain-seconds", "1", "--threads", "1") as server:
        with unread(server, LONG_ANSWER):
            assert eventually(lambda: server.status()["requests"])
            assert server.stop() == 0


@test
def texts_that_wait_for_their_turn_end_with_the_server():
    with start("--batch-tokens", "1", "--drain-seconds", "0", "--threads", "1") as server:
        s = server.socket()
        s.sendall(raw_request({"input": [[1 + i] * 2000 for i in range(200)]}, "/v1/embeddings"))
        assert eventually(lambda: server.status()["running"])
        assert server.stop() == 0
        s.close()


@test
def a_second_signal_ends_at_once():
    server = start("--batch-tokens", "1", "--drain-seconds", "600", "--threads", "1")
    with unread(server, LONG_ANSWER):
        assert eventually(lambda: server.status()["requests"])
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "server.draining" in "".join(server.log))
        assert server.process.poll() is None, "it did not wait for its answer"
        assert server.stop(signal.SIGINT) == 128 + signal.SIGINT


@test
def a_second_signal_does_not_wait_for_a_long_text_that_is_being_read():
    server = start("--drain-seconds", "0")
    s = server.socket()
    work = lambda: server.cpu() - server.cpu("/task/{}".format(server.process.pid))  # of all threads but the first
    before = work()
    s.sendall(raw_request({"prompt": "the quick brown fox " * 1000000}, "/tokenize"))
    assert eventually(lambda: work() > before + 0.2)  # it is begun: it will not be left out
    server.process.send_signal(signal.SIGTERM)
    assert eventually(lambda: "server.draining" in "".join(server.log))
    status = server.stop()  # 0: the first signal was enough
    assert status in (0, -signal.SIGTERM, 128 + signal.SIGTERM), (status, server.log)
    s.close()


def fails(*options, folder=None):
    done = subprocess.run([PROGRAM, "serve", folder or FOLDER, *options], stderr=subprocess.PIPE, text=True,
                          timeout=served.PATIENCE, check=False)
    return done.returncode, done.stderr.strip().splitlines()[-1]


@test
def what_cannot_begin_says_why_in_a_sentence():
    with start() as server:
        status, line = fails("--port", str(server.port))
        assert status == 1 and line.startswith("motet: ") and str(server.port) in line, line
    status, line = fails("--port", "0", folder="/nowhere")
    assert status == 1 and line.startswith("motet: ") and "/nowhere" in line, line
    status, line = fails("--port", "0", "--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key")
    assert status == 1 and "/nowhere.pem" in line, line
    status, line = fails("--port", "0", "--api-key", "@/nowhere")
    assert status == 1 and "/nowhere" in line, line
    status, line = fails("--port", "0", "--host", "203.0.113.7")
    assert status == 1 and "203.0.113.7" in line, line
    status, line = fails("--port", "0", "--memory", "1K")
    assert status == 1 and line.startswith("motet: "), line


@test
def weights_that_are_cut_off_end_it_with_a_sentence():
    served.on_the_host()
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(shutil.copytree(FOLDER, os.path.join(folder, "model")), "model.safetensors")
        server = served.Server(PROGRAM, os.path.dirname(weights))
        assert server.complete(prompt=[0, 9], max_tokens=2).status == 200
        os.truncate(weights, 5000)
        try:
            server.complete(prompt=[0, 9, 10], max_tokens=2)
            raise AssertionError("it answered with weights that are not there")
        except (http.client.HTTPException, OSError):
            pass
        assert server.stop() == 3, server.log
        assert server.log[-1].startswith('motet: "{}" was shortened while it was in use: '.format(weights)), server.log


@test
def a_certificate_makes_it_https():
    with tempfile.TemporaryDirectory() as folder:
        key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                               "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"],
                              capture_output=True, check=False)
        if made.returncode:
            raise served.Skip("openssl cannot make a certificate")
        with start("--tls-cert", cert, "--tls-key", key, ready=False) as server:
            context = ssl.create_default_context(cafile=cert)
            context.check_hostname = False

            def ready():
                with context.wrap_socket(server.socket()) as s:
                    s.sendall(b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
                    return b"200 OK" in read_all(s)
            assert eventually(ready)
            with context.wrap_socket(server.socket()) as s:
                s.sendall(raw_request({"prompt": [0, 5], "max_tokens": 3, "stream": True}, extra="connection: close\r\n"))
                assert b"[DONE]" in read_all(s)
    return None


@test
def a_folder_without_a_tokenizer_is_asked_with_ids():
    with tempfile.TemporaryDirectory() as folder:
        bare = os.path.join(folder, "bare")
        os.mkdir(bare)
        for name in ("config.json", "model.safetensors"):
            os.symlink(os.path.join(FOLDER, name), os.path.join(bare, name))
        with served.Server(PROGRAM, bare) as server:
            got = server.complete(prompt=[0, 5, 9], max_tokens=4, return_token_ids=True, logprobs=1, ignore_eos=True)
            choice = got.json()["choices"][0]
            assert len(choice["token_ids"]) == 4 and choice["text"] == "", choice
            assert choice["logprobs"]["tokens"][0] == "token_id:{}".format(choice["token_ids"][0])
            for refused in (server.chat(), server.complete(prompt="text"), server.post("/tokenize", {"prompt": "x"})):
                assert refused.status == 400 and refused.json()["error"]["code"] == "no_tokenizer", refused.body


def main():
    global PROGRAM, FOLDER, LONG, QUICK
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--long", action="store_true", help="a minute of clients that come and vanish")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    PROGRAM, LONG, QUICK = arguments.motet, arguments.long, "MOTET_TEST_QUICK" in os.environ
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = fixture.write(os.path.join(folder, "tiny"))
        races = "MOTET_TEST_RACES" in os.environ
        tests = [each for each in TESTS if not races or hasattr(each, "meets")]
        served.run_tests("api_server", tests, arguments.names)


main()
