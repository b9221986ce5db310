#!/usr/bin/env python3
"""Who may call a server, and what they may see of one another: pages in a browser, and clients with keys.

usage: tests/api/test_access.py --motet PROGRAM [NAME ...]"""

import argparse
import os
import socket
import subprocess
import tempfile

import fixture
import served

PROGRAM = FOLDER = None
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def start(*options, **settings):
    return served.Server(PROGRAM, FOLDER, *options, **settings)


# ---- pages in a browser


@test
def a_page_reaches_a_server_without_a_key_by_no_name_of_its_own():
    with start() as server:
        def status(host, path="/v1/models", **more):
            return server.request("GET", path, headers={"host": host, **more}).status
        for ours in ("127.0.0.1:{}".format(server.port), "localhost:1", "a.localhost", "[::1]:8000", "10.0.0.7",
                     socket.gethostname(), socket.gethostname() + ".local:80"):
            assert status(ours) == 200, ours
        for other in ("evil.example", "evil.example:{}".format(server.port), "127.0.0.1.evil.example"):
            for path in ("/v1/models", "/v1/status", "/metrics", "/v1/responses/resp_x"):
                assert status(other, path) == 403, (other, path)
            assert status(other, "/health") == 200  # says nothing to anybody
        got = server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 2}, {"host": "evil.example"})
        error = got.json()["error"]
        assert (got.status, error["type"], error["code"]) == (403, "permission_error", "forbidden"), got.body
        assert "--allowed-host" in error["message"], error
        got = server.post("/v1/messages", {}, {"host": "evil.example"})
        assert (got.status, got.json()["error"]["type"]) == (403, "permission_error"), got.body
        with server.socket() as s:  # HTTP/1.0 knows no host
            s.sendall(b"GET /v1/models HTTP/1.0\r\n\r\n")
            assert s.recv(100).startswith(b"HTTP/1.1 200")
    with start("--allowed-host", "llm.example,other.example", "--allowed-host", "*.corp") as server:
        for host in ("llm.example", "other.example:443", "a.b.corp"):
            assert status(host) == 200, host
        assert status("evil.example") == 403
    for options in (("--allowed-host", "*"), ("--cors", "*")):
        with start(*options) as server:
            assert status("whoever.example") == 200


@test
def a_page_of_others_starts_no_work():
    # what a form with enctype="text/plain" can be made to send
    form = {"origin": "https://evil.example", "content-type": "text/plain"}
    body = {"prompt": [0, 9], "max_tokens": 2}
    with start() as server:
        for origin in ("https://evil.example", "null", "http://localhost:1"):
            got = server.post("/v1/completions", body, dict(form, origin=origin))
            assert got.status == 403 and "--cors" in got.json()["error"]["message"], got.body
        assert server.metrics()["motet_calls_total"] == 0
        for own in ("127.0.0.1", "localhost"):
            got = server.post("/v1/completions", body, {"origin": "http://{}:{}".format(own, server.port)})
            assert got.status == 200, got.body
    with start("--cors", "https://app.example") as server:
        assert server.post("/v1/completions", body, {"origin": "https://app.example"}).status == 200
        assert server.post("/v1/completions", body, form).status == 403
    with start("--api-key", "secret") as server:  # which no page knows
        known = {"authorization": "Bearer secret", "host": "llm.example", **form}
        assert server.post("/v1/completions", body, known).status == 200
        assert server.post("/v1/completions", body, form).status == 401


@test
def what_is_allowed_must_be_names():
    command = [PROGRAM, "serve", FOLDER, "--port", "0", "--allowed-host", "http://llm.example"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode == 1 and "--allowed-host" in done.stderr, done


def main():
    global PROGRAM, FOLDER
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    PROGRAM = os.path.abspath(arguments.motet)
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = fixture.write(os.path.join(folder, "tiny"))
        served.run_tests("api_access", TESTS, arguments.names)


if __name__ == "__main__":
    main()
