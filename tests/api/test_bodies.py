#!/usr/bin/env python3
"""What large bodies may cost others: time, memory, and the end of the server.

usage: tests/api/test_bodies.py --motet PROGRAM [NAME ...]"""

import contextlib
import json
import os
import select
import signal
import time

import served
from served import eventually, preparing, send

SUITE = served.Suite("api_bodies")
test, start = SUITE.test, SUITE.start
LITTLE = "384M" if "MOTET_TEST_QUICK" in os.environ else "64M"  # a sanitizer takes memory of its own


def readable(s):
    return bool(select.select([s], [], [], 0)[0])


# ---- time


@test
def small_requests_do_not_wait_for_large_ones():
    text = "the quick brown fox " * 1_000_000  # its tokens are counted for longer than a small request takes
    with start("--prep-threads", "1") as server, contextlib.ExitStack() as clients:
        for _ in range(3):
            clients.enter_context(send(server, "/tokenize", {"prompt": text}))
        assert eventually(lambda: preparing(server) == 3)
        for _ in range(3):
            assert server.complete(prompt="hello", max_tokens=1).status == 200
            assert server.chat("hello", max_tokens=1).status == 200
        assert preparing(server) == 3, "a large one was waited for"
        clients.close()
        server.wait_idle()


@test
def a_prompt_that_is_much_too_long_is_not_read_to_its_end():
    text = "the quick brown fox " * 100_000
    with start() as server:
        for path, body, param in (("/v1/completions", {"prompt": text}, "prompt"),
                                  ("/v1/embeddings", {"input": text}, "input")):
            got = server.post(path, body)
            assert got.status == 400, got.body[:200]
            error = got.json()["error"]
            assert error["code"] == "context_length_exceeded" and error["param"] == param, error
            assert "more than" in error["message"], error


# ---- memory


def room(server):
    """Bytes for bodies, and for what is made of them until they are answered."""
    return server.metrics()['motet_memory_bytes{kind="requests"}'] * 2 / 5


def held(server):
    return server.metrics()["motet_requests_bytes"]


@test
def bodies_count_while_they_are_received():
    with start("--memory", LITTLE) as server, contextlib.ExitStack() as clients:
        most = int(room(server))
        part = most // 6  # a buffer that grows takes twice what is in it; a quarter is left to small bodies
        head = "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n".format(part + 1)
        for i in range(2):
            s = clients.enter_context(server.socket())
            s.sendall(head.encode() + b"x" * part)
            assert eventually(lambda: held(server) == 2 * part * (i + 1)), held(server)
        got = server.post("/v1/completions", b"x" * part)
        assert got.status == 503 and "retry-after" in got.headers, (got.status, got.body)
        assert server.complete(prompt=[0, 5], max_tokens=1).status == 200, "a small one fits beside them"
        clients.close()
        assert eventually(lambda: held(server) == 0)
        assert server.post("/v1/completions", b"x" * part).status == 400
        assert server.post("/v1/completions", b"x" * most).status == 413


@test
def prompts_that_wait_count():
    with start("--memory", LITTLE, "--max-sequences", "1", "--batch-tokens", "1", "--threads", "1", "--max-queue",
               "8192") as server:
        with contextlib.ExitStack() as clients:
            most, answer = room(server), None
            body = {"prompt": ["a b " * 450] * 20, "max_tokens": 2000, "ignore_eos": True}
            while not answer and held(server) <= most:
                before = held(server)
                s = clients.enter_context(send(server, "/v1/completions", body))
                assert eventually(lambda: preparing(server) == 0 and held(server) != before or readable(s))
                answer = readable(s) and s.recv(65536).decode()
            # there is no room for what the last one becomes, or already none to read it
            assert answer.startswith(("HTTP/1.1 429 ", "HTTP/1.1 503 ")) and "retry-after" in answer, answer
            assert "take as much memory as they may" in answer or "too many large requests" in answer, answer
            assert held(server) > most / 2
        assert eventually(lambda: held(server) == 0)


@test
def what_an_answer_repeats_of_its_request_counts():
    def status_beside_three(server):
        """Of a fourth. Where those that wait are answered before it comes, there is room."""
        body = {"input": "a", "max_output_tokens": 1, "user": "u" * int(room(server) / 6)}
        with contextlib.ExitStack() as clients:
            for i in range(3):
                clients.enter_context(send(server, "/v1/responses", body))
                if not eventually(lambda: preparing(server) == 0 and held(server) > len(body["user"]) * (i + 1)):
                    return None
            return server.post("/v1/responses", body).status

    with start("--memory", LITTLE, "--max-sequences", "1", "--batch-tokens", "1", "--threads", "1") as server:
        with contextlib.ExitStack() as clients:
            work = {"prompt": ["a"] * 100, "max_tokens": 2000, "ignore_eos": True}
            clients.enter_context(send(server, "/v1/completions", work))
            assert eventually(lambda: server.status()["running"] == 1)
            assert any(status_beside_three(server) == 503 for _ in range(3))
        assert eventually(lambda: held(server) == 0)


@test
def the_process_stays_within_its_memory_whatever_is_sent():
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("a sanitizer takes memory of its own")
    budget = 160 << 20
    with start("--memory", str(budget), "--max-queue", "100") as server, contextlib.ExitStack() as clients:
        largest = int(room(server) / 4)
        for text in ("the quick brown fox ", "a", "\n", "e\u0301 ", "[1,"):
            body = json.dumps({"prompt": text * (largest // len(json.dumps(text)))}, ensure_ascii=False).encode()
            for path in ("/v1/completions", "/tokenize"):
                for _ in range(3):
                    clients.enter_context(send(server, path, body[:largest]))
        assert eventually(lambda: preparing(server) == 0)
        peak = server.memory_peak()
        assert peak < budget, (peak, budget)


# ---- the end


@test
def a_thread_that_hangs_does_not_outlive_the_time_to_end():
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("the sanitizers want to be loaded first")
    server = start("--drain-seconds", "0", env={"LD_PRELOAD": SUITE.hang})
    with send(server, "/v1/completions", {"prompt": "hang", "max_tokens": 1}):
        assert eventually(lambda: preparing(server) == 1)
        assert server.complete(prompt="come back", max_tokens=1).status == 200
        server.process.terminate()
        while server.process.poll() is None:  # what is asked meanwhile changes nothing
            server.process.send_signal(signal.SIGHUP)
            server.process.send_signal(signal.SIGQUIT)
            time.sleep(0.02)
        assert server.stop() == 1
    assert any("server.stuck a thread is still at work" in line for line in server.log), server.log


SUITE.main()
