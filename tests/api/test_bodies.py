#!/usr/bin/env python3
"""What large bodies may cost others: time, memory, and the end of the server.

usage: tests/api/test_bodies.py --motet PROGRAM [NAME ...]"""

import argparse
import contextlib
import json
import os
import tempfile

import fixture
import served
from served import eventually

PROGRAM = FOLDER = HANG = None
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def start(*options, **settings):
    return served.Server(PROGRAM, FOLDER, *options, **settings)


def send(server, path, body, extra=""):
    """The socket of a client that has asked and does not read."""
    data = json.dumps(body).encode() if not isinstance(body, bytes) else body
    s = server.socket()
    head = "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}content-length: {}\r\n\r\n".format(path, extra, len(data))
    s.sendall(head.encode() + data)
    return s


def preparing(server):
    return sum(r["phase"] == "preparing" for r in server.status()["requests"])


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


# ---- the end


@test
def a_thread_that_hangs_does_not_outlive_the_time_to_end():
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("the sanitizers want to be loaded first")
    server = start("--drain-seconds", "0", env={"LD_PRELOAD": HANG})
    with send(server, "/v1/completions", {"prompt": "hang", "max_tokens": 1}):
        assert eventually(lambda: preparing(server) == 1)
        assert server.complete(prompt="come back", max_tokens=1).status == 200
        assert server.stop() == 1
    assert any("server.stuck a thread is still at work" in line for line in server.log), server.log


def main():
    global PROGRAM, FOLDER, HANG  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--hang", help="a library that makes a thread hang: tests/api/hang.c")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    PROGRAM, HANG = arguments.motet, arguments.hang
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = fixture.write(os.path.join(folder, "tiny"))
        served.run_tests("api_bodies", TESTS, arguments.names)


main()
