#!/usr/bin/env python3
"""Who may call a server, and what they may see of one another: pages in a browser, and clients with keys.

usage: tests/api/test_access.py --motet PROGRAM [NAME ...]"""

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time

import served
from served import eventually

SUITE = served.Suite("api_access")
test, start = SUITE.test, SUITE.start


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
    command = [SUITE.program, "serve", SUITE.folder, "--port", "0", "--allowed-host", "http://llm.example"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode == 1 and "--allowed-host" in done.stderr, done


# ---- clients with keys


def bearer(key):
    return {"authorization": "Bearer " + key}


@contextlib.contextmanager
def key_file(*lines):
    with tempfile.NamedTemporaryFile("w") as file:  # which nobody else may read
        file.write("# keys\n" + "\n".join(lines) + "\n")
        file.flush()
        yield file.name


def respond(server, key, **body):
    return server.post("/v1/responses", {"input": "hello world", "max_output_tokens": 4, **body}, bearer(key))


def ways_to(name):
    """All that can be done with a response by its id."""
    path = "/v1/responses/" + name
    return [("GET", path, None), ("GET", path + "?stream=true", None), ("GET", path + "/input_items", None),
            ("POST", path + "/cancel", None),
            ("POST", "/v1/responses", {"input": "more", "previous_response_id": name, "max_output_tokens": 2}),
            ("POST", "/v1/responses", {"input": [{"type": "item_reference", "id": name.replace("resp_", "msg_") + "_i0"},
                                                 {"role": "user", "content": "x"}], "max_output_tokens": 2}),
            ("DELETE", path, None)]


def hidden(server, name, key):
    """Whether everything that is tried with a response is answered as if there were none."""
    nowhere = "resp_" + "0" * 24
    for (method, path, body), (_, other, nobody) in zip(ways_to(name), ways_to(nowhere)):
        got = server.request(method, path, body, bearer(key))
        missing = server.request(method, other, nobody, bearer(key))
        plain = lambda answer, name: answer.body.decode().replace(name[5:], "ID")
        assert missing.status == (400 if "previous_response_id" in (body or {}) else 404), missing.body
        if (got.status, plain(got, name)) != (missing.status, plain(missing, nowhere)):
            return False
    return True


@test
def what_a_key_stored_is_not_there_for_another():
    with start("--api-key", "a", "--api-key", "b") as server:
        got = respond(server, "a", background=True, stream=True)
        name = got.events()[0]["response"]["id"]
        assert hidden(server, name, "b")
        for method, path, body in ways_to(name):
            got = server.request(method, path, body, bearer("a"))
            assert got.status == 200, (method, path, got.body)
        assert hidden(server, name, "a")  # it was deleted last


@test
def what_runs_is_not_there_for_another_key():
    with key_file("a name=one", "b name=two", "c name=ops admin") as keys, \
            start("--keys", keys, "--max-sequences", "60", "--batch-tokens", "1", "--threads", "1") as server:
        rows = lambda key: server.request("GET", "/v1/status", headers=bearer(key)).json()
        ids = lambda key: {r["id"] for r in rows(key)["requests"]}
        work = {"prompt": [0, 9], "max_tokens": 2000, "ignore_eos": True, "n": 60}  # more than the test lasts
        waiting = server.socket()
        data = json.dumps(work).encode()
        waiting.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\r\n"
                        b"x-request-id: mine\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        assert eventually(lambda: rows("a")["running"] == 60)
        background = respond(server, "a", background=True, max_output_tokens=2000).json()["id"]
        assert rows("b")["requests"] == [] and rows("b")["running"] + rows("b")["waiting"] + rows("b")["preparing"] == 0
        assert eventually(lambda: background in ids("a"))
        name = next(i for i in ids("a") if i.startswith("cmpl"))
        assert {name, background} <= ids("c")
        assert hidden(server, background, "b") and hidden(server, background, "c")
        cancel = lambda key: server.request("DELETE", "/v1/requests/" + name, headers=bearer(key))
        assert cancel("b").status == 404 and cancel("b").json()["error"]["code"] == "request_not_found"
        assert server.request("POST", "/v1/requests/mine/cancel", headers=bearer("b")).status == 404
        assert name in ids("a")
        assert cancel("c").status == 200
        assert eventually(lambda: name not in ids("a"))
        assert server.request("POST", "/v1/responses/" + background + "/cancel", headers=bearer("a")).status == 200
        waiting.close()


@test
def a_file_remembers_whose_its_answers_are():
    with tempfile.TemporaryDirectory() as folder:
        store = ("--store", os.path.join(folder, "store.db"))
        get = lambda server, name, key: server.request("GET", "/v1/responses/" + name, headers=bearer(key)).status
        with start(*store) as server:
            first = respond(server, "none").json()["id"]
        with start(*store, "--api-key", "a") as server:  # there is nobody else whose it could be
            assert get(server, first, "a") == 200
            second = respond(server, "a").json()["id"]
        with start(*store, "--api-key", "b", "--api-key", "a") as server:
            assert (get(server, first, "a"), get(server, second, "a")) == (200, 200)
            assert (get(server, first, "b"), get(server, second, "b")) == (404, 404)
        with key_file("x name=team", "b") as keys, start(*store, "--keys", keys) as server:
            third = respond(server, "x").json()["id"]
        with key_file("y name=team", "b") as keys, start(*store, "--keys", keys) as server:  # the key was changed
            assert (get(server, third, "y"), get(server, third, "b"), get(server, first, "y")) == (200, 404, 404)


@test
def what_a_key_sent_is_not_cached_for_another():
    body = {"prompt": [0] + list(range(10, 110)), "max_tokens": 1}

    def cached(server, key, **more):
        got = server.post("/v1/completions", {**body, **more}, bearer(key)).json()
        return got["usage"]["prompt_tokens_details"]["cached_tokens"]

    def misses(server, key):
        text = server.request("GET", "/metrics", headers=bearer(key)).body.decode()
        found = re.findall(r'^motet_prefix_lookups_total{[^}]*miss="(\w+)"} (\d+)$', text, re.M)
        return {name for name, count in found if int(count)}
    with key_file("a", "b", "c admin") as keys, start("--keys", keys) as server:
        assert cached(server, "a") == 0
        assert cached(server, "b") == 0
        assert eventually(lambda: "salt" in misses(server, "c"))
        assert misses(server, "b") == {"first_sight"}
        assert cached(server, "a") > 90 and cached(server, "b") > 90
        assert cached(server, "b", cache_salt="s") == 0
        assert cached(server, "a", cache_salt="s") == 0
    with start("--api-key", "a", "--api-key", "b", "--isolate", "off") as server:
        assert cached(server, "a") == 0
        assert cached(server, "b") > 90
    with key_file("a name=one", "b name=one") as keys, start("--keys", keys, "--isolate", "on") as server:
        assert cached(server, "a") == 0
        assert cached(server, "b") > 90  # two keys of one account


@test
def a_key_that_asks_too_often_waits_and_no_other_does():
    with key_file("a name=one requests/min=1", "b name=two") as keys, start("--keys", keys) as server:
        begin = time.monotonic()
        got = [server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}, bearer("a")) for _ in range(5)]
        allowed = sum(g.status == 200 for g in got)
        assert 1 <= allowed <= 2 + (time.monotonic() - begin) / 60, [g.status for g in got]
        refused = next(g for g in got if g.status != 200)
        error = refused.json()["error"]
        assert (refused.status, error["code"], error["type"]) == (429, "rate_limit_exceeded", "rate_limit_error")
        assert 1 <= int(refused.headers["retry-after"]) <= 60 and "\"one\"" in error["message"], error
        for g in got:
            assert g.headers["x-ratelimit-limit-requests"] == "1", g.headers
            assert g.headers["x-ratelimit-remaining-requests"] == "0", g.headers
            assert "x-ratelimit-limit-tokens" not in g.headers
        assert re.fullmatch(r"[\d.]+m?s|\dm\d+s", got[0].headers["x-ratelimit-reset-requests"]), got[0].headers
        # what asks nothing of the model is not counted
        for path in ("/v1/models", "/v1/status", "/metrics"):
            assert server.request("GET", path, headers=bearer("a")).status == 200
        got = [server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}, bearer("b")) for _ in range(5)]
        assert all(g.status == 200 and "x-ratelimit-limit-requests" not in g.headers for g in got)


@test
def tokens_are_counted_and_those_that_were_too_many_are_waited_for():
    long = {"prompt": [0, 9], "max_tokens": 300, "ignore_eos": True}
    with key_file("a name=one tokens/min=2", "b name=two", "c name=ops admin") as keys, \
            start("--keys", keys) as server:
        got = server.post("/v1/completions", long, bearer("a"))
        assert got.status == 200 and got.json()["usage"]["completion_tokens"] == 300
        assert got.headers["x-ratelimit-remaining-tokens"] == "0", got.headers
        assert re.fullmatch(r"\d+m\d+s", got.headers["x-ratelimit-reset-tokens"]), got.headers
        # 300 tokens at two a minute: the debt outlasts the test
        got = server.post("/v1/completions", long, bearer("a"))
        assert got.status == 429 and int(got.headers["retry-after"]) > 1000, (got.status, got.headers)
        assert "tokens a minute" in got.json()["error"]["message"]
        messages = {"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "model": "tiny"}
        got = server.post("/v1/messages", messages, {"x-api-key": "a"})
        assert (got.status, got.json()["error"]["type"]) == (429, "rate_limit_error"), got.body
        assert server.post("/v1/completions", dict(long, max_tokens=1), bearer("b")).status == 200

        def seen(key):
            text = server.request("GET", "/metrics", headers=bearer(key)).body.decode()
            return {(m[1], m[2]): int(m[3]) for m in
                    re.finditer(r'^motet_key_(\w+)_total{[^}]*key="([^"]*)"} (\d+)$', text, re.M)}
        assert {name for _, name in seen("a")} == {"one"}
        every = seen("c")
        assert {name for _, name in every} == {"one", "two", "ops"}
        assert every["requests", "one"] == 3 and every["limited", "one"] == 2, every
        assert (every["prompt_tokens", "one"], every["generation_tokens", "one"]) == (2, 300), every
        assert every["requests", "two"] == 1 and every["requests", "ops"] == 0, every
        assert eventually(lambda: any("request.done" in l and l.endswith(" key two") for l in server.log))


@test
def a_key_with_a_larger_share_has_more_seats():
    work = json.dumps({"prompt": [0, 9], "max_tokens": 2000, "ignore_eos": True, "n": 8}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n"
    with key_file("a name=one share=3", "b name=two") as keys, \
            start("--keys", keys, "--max-sequences", "8", "--batch-tokens", "1", "--threads", "1") as server, \
            contextlib.ExitStack() as stack:
        running = lambda key: server.request("GET", "/v1/status", headers=bearer(key)).json()["running"]

        def ask(key):
            for _ in range(4):
                s = stack.enter_context(server.socket())
                s.sendall(head.format(key, len(work)).encode() + work)
        ask("b")
        assert eventually(lambda: running("b") == 8)
        ask("a")
        assert eventually(lambda: running("a") == 6 and running("b") == 2), (running("a"), running("b"))


@test
def keys_that_others_may_read_are_warned_of_and_faults_name_their_line():
    with key_file("secret") as keys:
        os.chmod(keys, 0o644)
        with start("--keys", keys) as server:
            assert any("keys.readable" in line for line in server.log), server.log
        with open(keys, "w", encoding="utf-8") as file:
            file.write("sha256:" + hashlib.sha256(b"secret").hexdigest())
        with start("--keys", keys) as server:
            assert not any("keys.readable" in line for line in server.log), server.log
            assert server.request("GET", "/v1/models", headers=bearer("secret")).status == 200
            assert server.request("GET", "/v1/models").status == 401
        with open(keys, "w", encoding="utf-8") as file:
            file.write("one\ntwo requests/min=many\n")
        done = subprocess.run([SUITE.program, "serve", SUITE.folder, "--port", "0", "--keys", keys], capture_output=True, text=True,
                              timeout=served.PATIENCE, check=False)
        assert done.returncode == 1 and "line 2" in done.stderr and "requests/min=many" in done.stderr, done


SUITE.main()
