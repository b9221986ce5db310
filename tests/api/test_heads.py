#!/usr/bin/env python3
"""What stands around bodies: names of requests, paths, whether the server is there, and how bodies are packed.

usage: tests/api/test_heads.py --motet PROGRAM [--hang LIBRARY] [NAME ...]"""

import gzip
import json
import os
import re
import signal
import subprocess
import tempfile
import zlib

import fixture
import served
from served import eventually

SUITE = served.Suite("api_heads")
test, start = SUITE.test, SUITE.start


def first_line(s):
    with s.makefile("rb") as f:
        return f.readline().decode().strip()


# ---- names


@test
def a_request_is_called_as_its_client_says_in_every_answer():
    with start("--api-key", "k") as server:
        def name(method, path, body=None, **headers):
            got = server.request(method, path, body, {"authorization": "Bearer k", **headers})
            return got.headers["x-request-id"], got.headers.get("request-id")
        chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        mine = {"x-request-id": "trace:1/a=b@c_d-e.f"}
        given = mine["x-request-id"]
        for method, path, body in (("POST", "/v1/chat/completions", chat), ("GET", "/v1/status", None),
                                   ("POST", "/v1/chat/completions", dict(chat, stream=True)),
                                   ("POST", "/v1/chat/completions", {}), ("GET", "/nowhere", None),
                                   ("PUT", "/v1/models", None), ("GET", "/metrics", None)):
            assert name(method, path, body, **mine) == (given, None), (method, path)
        assert name("GET", "/v1/status", **mine, authorization="Bearer wrong") == (given, None)
        for body in (chat, dict(chat, stream=True), {}, "{"):
            assert name("POST", "/v1/messages", body, **mine) == (given, given), body
        assert name("POST", "/v1/messages", chat, authorization="Bearer wrong", **mine) == (given, given)
        assert any(" as " + given in line for line in server.log if "request.done" in line), server.log


@test
def a_request_that_is_not_called_anything_gets_a_name():
    with start() as server:
        seen = set()
        for headers in ({}, {"x-request-id": ""}, {"x-request-id": "a b"}, {"x-request-id": 'a"b'},
                        {"x-request-id": "x" * 129}, {"x-request-id": "a,b"}):
            name = server.request("GET", "/v1/models", headers=headers).headers["x-request-id"]
            assert re.fullmatch("req_[0-9a-f]{24}", name), name
            seen.add(name)
        assert len(seen) == 6
        assert server.request("GET", "/", headers={"x-request-id": "x" * 128}).headers["x-request-id"] == "x" * 128
        got = server.chat("hi", max_tokens=1)
        assert got.headers["x-request-id"] == got.json()["id"]
        with server.socket() as s:
            s.sendall(b"nonsense\r\n\r\n")
            assert b"x-request-id: req_" in s.recv(65536)


# ---- paths


@test
def slashes_that_stand_for_nothing_are_forgiven():
    with start() as server:
        for path in ("/v1/models/", "//v1//models", "/v1/models///", "/v1/models/tiny/", "//", "/health/?x=/y/"):
            assert server.request("GET", path).status == 200, path
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        assert server.post("//v1/chat/completions/", body).status == 200
        assert server.post("//v1/messages/", {}).json()["type"] == "error", "not in Anthropic's shape"
        assert server.request("GET", "/v1%2Fmodels").status == 404


# ---- hosts


def status_of(server, host, target="/v1/models", version="1.1", method="GET"):
    """The status of a request with that host; None: without one."""
    with server.socket() as s:
        header = "" if host is None else "host: {}\r\n".format(host)
        s.sendall("{} {} HTTP/{}\r\n{}connection: close\r\n\r\n".format(method, target, version, header).encode())
        return int(first_line(s).split()[1])


@test
def a_host_that_no_browser_could_send_is_no_request():
    wrong = ("[::1]evil.example", "[::1", "localhost:80:evil", "localhost:65536", "localhost:x", ":80", "[evil]", "::1",
             "a,localhost", "user@localhost", "localhost/", "b\u00fccher.example")
    for options in ((), ("--api-key", "k")):  # where names do not matter, too
        with start(*options, ready=False) as server:
            for host in wrong:
                for target in ("/v1/models", "/health", "/nowhere"):
                    assert status_of(server, host, target) == 400, (host, target)
                assert status_of(server, host, version="1.0") == 400, host
            assert eventually(lambda: status_of(server, "", "/ready") == 200)
            for target in ("/health", "/live", "/health?x", "//health/"):
                assert status_of(server, "", target) == 200, target
            assert status_of(server, "", "/metrics") == (401 if options else 200)
            for method, target in (("GET", "/v1/models"), ("GET", "/"), ("GET", "/nowhere"), ("OPTIONS", "*"),
                                   ("OPTIONS", "/v1/models"), ("PUT", "/health"), ("POST", "/v1/chat/completions")):
                assert status_of(server, "", target, method=method) == 400, (method, target)
            assert status_of(server, None) == 400
            assert status_of(server, None, version="1.0") == (401 if options else 200)


@test
def a_target_with_a_host_has_that_of_the_header():
    with start() as server:
        for target, host in (("http://localhost/v1/models", "localhost"), ("http://LOCALHOST/v1/models", "localhost:80"),
                             ("http://127.0.0.1:8000/v1/models", "127.0.0.1:8000"),
                             ("https://[::1]/v1/models", "[::1]:443"), ("http://localhost?x", "localhost")):
            assert status_of(server, host, target) == 200, (target, host)
        for target, host in (("http://evil.example/v1/models", "localhost"), ("http://localhost/v1/models", "evil.example"),
                             ("http://localhost:81/v1/models", "localhost"), ("http://localhost/v1/models", ""),
                             ("http://u@localhost/v1/models", "localhost"), ("http://[::1/v1/models", "[::1]"),
                             ("http://evil.example/health", "")):
            assert status_of(server, host, target) == 400, (target, host)
        assert status_of(server, "evil.example", "http://evil.example/v1/models") == 403
        assert status_of(server, None, "http://localhost/v1/models", "1.0") == 200


# ---- how bodies are packed


def zstd(text):
    """A frame of blocks that are not packed."""
    blocks = [text[i:i + 100000] for i in range(0, len(text), 100000)]
    frame = b"\x28\xb5\x2f\xfd\x00\x58"
    for i, block in enumerate(blocks):
        frame += (len(block) << 3 | (i + 1 == len(blocks))).to_bytes(3, "little") + block
    return frame


def zstd_bomb(megabytes):
    """A frame of blocks that say how often a byte is repeated."""
    block = (128 << 10) << 3 | 1 << 1
    count = megabytes * 8
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(
        (block | (i + 1 == count)).to_bytes(3, "little") + b" " for i in range(count))


PACKERS = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd,
           "GZip": lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:])}


def post(server, body, coding, path="/v1/chat/completions"):
    return server.post(path, body, {"content-encoding": coding, "content-type": "application/json"})


@test
def packed_bodies_are_answered_like_others():
    words = " ".join("word{}".format(i) for i in range(100))
    small = {"messages": [{"role": "user", "content": words}], "max_tokens": 8, "temperature": 0}
    large = {"prompt": "some words " * 25_000}  # goes on among the large ones once that is known
    with start() as server:
        plain = server.post("/v1/chat/completions", small).json()["choices"]
        count = server.post("/tokenize", large).json()["count"]
        kept = server.post("/v1/responses", {"input": "hello", "max_output_tokens": 1}).json()["id"]
        for coding, packed in PACKERS.items():
            got = post(server, packed(json.dumps(small).encode()), coding)
            assert got.status == 200 and got.json()["choices"] == plain, (coding, got.body)
            got = post(server, packed(json.dumps(large).encode()), coding, "/tokenize")
            assert got.status == 200 and got.json()["count"] == count, (coding, got.body[:200])
            got = post(server, packed(b"{}"), coding, "/v1/responses/{}/cancel".format(kept))
            assert got.status == 200 and got.json()["id"] == kept, (coding, got.body)
            assert post(server, packed(json.dumps(small).encode())[:-1], coding).status == 400
            assert post(server, b"{}", coding).status == 400
        assert eventually(lambda: server.metrics()["motet_requests_bytes"] == 0)
        assert post(server, json.dumps(small).encode(), "identity").status == 200


@test
def unknown_packings_are_told_which_are_known():
    with start() as server:
        for coding in ("br", "compress", "gzip, gzip", "nonsense"):
            got = post(server, b"xyz", coding)
            assert got.status == 415 and got.headers["accept-encoding"] == "gzip, deflate, zstd", got.body
            assert got.json()["error"]["code"] == "unsupported_media_type", got.body


@test
def a_bomb_is_a_body_that_is_too_large():
    with start("--max-body", "4M") as server:
        before = server.memory_peak()
        blanks = b" " * (16 << 20)
        for coding, bomb in (("gzip", gzip.compress(blanks)), ("deflate", zlib.compress(blanks)),
                             ("zstd", zstd_bomb(60))):
            assert len(bomb) < 100_000
            got = post(server, bomb, coding)
            assert got.status == 413, (coding, got.status, got.body[:200])
        if "MOTET_TEST_QUICK" not in os.environ:
            assert server.memory_peak() < before + (32 << 20), (before, server.memory_peak())
        assert eventually(lambda: server.metrics()["motet_requests_bytes"] == 0)


# ---- whether it is there


def hanging(folder):
    """A folder whose tokenizer the library never comes back from reading."""
    fixture.write(folder)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    tokenizer["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "hang"}, "behavior": "Isolated", "invert": False}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)
    return folder


@test
def a_server_that_loads_is_alive_and_not_healthy():
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("the sanitizers want to be loaded first")
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        server = start("--drain-seconds", "600", folder=hanging(folder), ready=False, env={"LD_PRELOAD": SUITE.hang})
        for path in ("/health", "/ready"):
            got = server.request("GET", path)
            assert got.status == 503 and got.json()["error"]["code"] == "loading", got.body
            assert "retry-after" in got.headers
        assert server.request("GET", "/live").status == 200
        assert server.request("GET", "/v1/models").status == 200
        assert server.chat("hi").status == 503
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "server.draining" in "".join(server.log))
        assert server.stop() in (-signal.SIGTERM, 128 + signal.SIGTERM)


@test
def a_server_that_ends_is_alive_and_not_healthy():
    with start("--batch-tokens", "1", "--threads", "1") as server:
        assert server.request("GET", "/health").status == 200
        probes = [server.socket() for _ in range(2)]
        for s, path in zip(probes, ("health", "live")):
            s.sendall("GET /{} HTTP/1.1\r\nhost: 127.0.0.1\r\n".format(path).encode())
        assert eventually(lambda: server.metrics()["motet_http_connections"] == 3)
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: not server.listens())
        for s, status in zip(probes, ("503 Service Unavailable", "200 OK")):
            s.sendall(b"\r\n")
            assert first_line(s) == "HTTP/1.1 " + status
            s.close()
        assert server.process.wait(served.PATIENCE) == 0


@test
def a_folder_that_does_not_do_is_told_before_anybody_listens():
    def fails(folder, *options):
        done = subprocess.run([SUITE.program, "serve", folder, "--port", "0", *options], stderr=subprocess.PIPE, text=True,
                              timeout=served.PATIENCE, check=False)
        assert done.returncode == 1 and "server.listening" not in done.stderr, done.stderr
        return done.stderr.strip().splitlines()[-1]
    assert "/nowhere" in fails("/nowhere")
    assert "--memory" in fails(SUITE.folder, "--memory", "100K")
    with tempfile.TemporaryDirectory() as folder:
        assert folder in fails(folder)
        fixture.write(folder)
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(config, model_type="unheard-of", architectures=["UnheardOf"]), f)
        assert "unheard-of" in fails(folder).lower()
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        os.truncate(os.path.join(folder, "model.safetensors"), 1000)
        assert "model.safetensors" in fails(folder)


SUITE.main()
