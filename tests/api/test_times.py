#!/usr/bin/env python3
"""A server and time: requests whose time is over, steps that take too long, signals that ask, and crashes.

usage: tests/api/test_times.py --motet PROGRAM [--hang LIBRARY] [NAME ...]"""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile

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


def timeouts(server, phase):
    return server.metrics()['motet_calls_timed_out_total{{phase="{}"}}'.format(phase)]


def late(server, path, body, phase):
    """The answer to a request whose time was over in a phase, and that time. It gets more and more of it: a slow machine
    may not have come so far before."""
    for seconds in 0.2, 1, 5, 25:
        before = timeouts(server, phase)
        answer = server.post(path, dict(body, timeout=seconds))
        if timeouts(server, phase) > before:
            return answer, "{:g} s".format(seconds)
    raise AssertionError("{} is never late while it is {}".format(path, phase))


@test
def a_request_whose_time_is_over_says_so_in_each_dialect():
    with start(*SLOW) as server:
        with served.send(server, "/v1/completions", WORK):
            assert eventually(lambda: server.status()["running"] == 60)
            got, time = late(server, "/v1/completions", {"prompt": [0, 9]}, "waiting")
            assert got.status == 504 and got.headers["x-should-retry"] == "false", got.headers
            error = got.json()["error"]
            assert error["type"] == "timeout_error" and error["code"] == "timeout", error
            assert time in error["message"] and "before the first token" in error["message"], error
            got, _ = late(server, "/v1/messages", CHAT, "waiting")
            assert got.status == 504 and got.json()["error"]["type"] == "timeout_error", got.body
            got, time = late(server, "/api/chat", {"model": "tiny", "messages": CHAT["messages"], "stream": False}, "waiting")
            assert got.status == 504 and time in got.json()["error"], got.body
            got, _ = late(server, "/v1/responses", {"input": "hello"}, "waiting")
            assert got.status == 504 and got.json()["error"]["code"] == "timeout", got.body
            count = timeouts(server, "waiting") + timeouts(server, "preparing")
        give_back(server)
        assert count >= 4 and sum("request.timeout" in line for line in server.log) == count, (count, server.log)


@test
def a_stream_whose_time_is_over_ends_with_an_error():
    with start(*SLOW) as server:
        said = late(server, "/v1/completions", dict(WORK, stream=True), "running")[0].events()
        assert said[0]["choices"] and said[-2]["error"]["code"] == "timeout" and said[-1] == "[DONE]", said[-2:]
        said = late(server, "/v1/chat/completions", dict(CHAT, n=60, stream=True), "running")[0].events()
        assert said[-2]["error"]["code"] == "timeout" and said[-1] == "[DONE]", said[-2:]
        with served.send(server, "/v1/completions", WORK):
            assert eventually(lambda: server.status()["running"] == 60)
            said = late(server, "/v1/messages", dict(CHAT, stream=True), "waiting")[0].events()
            assert said[-1]["type"] == "error" and said[-1]["error"]["type"] == "timeout_error", said
            said = late(server, "/v1/responses", {"input": "hi", "stream": True}, "waiting")[0].events()
            assert said[-1]["type"] == "response.failed", said[-1]
            assert said[-1]["response"]["error"]["code"], said[-1]
            got, time = late(server, "/api/chat", {"model": "tiny", "messages": CHAT["messages"]}, "waiting")
            assert time in got.events()[-1]["error"], got.body
        give_back(server)


@test
def the_operator_has_the_last_word_on_time():
    with start(*SLOW, "--request-timeout", "0.5s") as server:
        got = server.post("/v1/completions", dict(WORK, timeout=86400))
        assert got.status == 504 and "0.5 s" in got.json()["error"]["message"], got.body
        give_back(server)
        assert server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}).status == 200
    with start("--request-timeout", "never") as server:
        for wrong in 0, -1, 1e9, "5", True, [1], {}:
            bad = server.post("/v1/completions", {"prompt": [0, 9], "timeout": wrong})
            assert bad.status == 400 and bad.json()["error"]["param"] == "timeout", (wrong, bad.body)
        for fine in None, 60, 0.5e3:
            answer = server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1, "timeout": fine})
            assert answer.status == 200 and "warning" not in answer.headers, answer.headers
        answer = server.post("/api/generate", {"model": "tiny", "prompt": "a", "timeout": 60, "stream": False,
                                               "options": {"num_predict": 1}})
        assert answer.status == 200 and "warning" not in answer.headers, answer.headers


@test
def time_runs_while_a_request_is_prepared():
    if not SUITE.hang:
        raise served.Skip("no library that hangs")
    server = start("--drain-seconds", "0", env={"LD_PRELOAD": SUITE.hang})
    got = server.post("/v1/completions", {"prompt": "hang", "max_tokens": 1, "timeout": 0.3})
    assert got.status == 504 and "prepared" in got.json()["error"]["message"], got.body
    assert timeouts(server, "preparing") == 1
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
        named = eventually(lambda: [line for line in server.log if "engine.slow_step" in line])
        assert re.search(r"a step took \S+ s: 3 rows of 1 answers: cmpl-\w+ 3 behind 0", named[0]), named
    with start("--slow-step", "never") as server:
        assert server.post("/v1/completions", {"prompt": [0, 9, 8], "max_tokens": 2}).status == 200
        assert server.metrics()["motet_slow_steps_total"] == 0


@test
def a_signal_asks_for_the_state_and_the_server_goes_on():
    with start(*SLOW) as server:
        with served.send(server, "/v1/completions", dict(WORK, n=30)):
            assert eventually(lambda: server.status()["running"] == 30)
            server.process.send_signal(signal.SIGQUIT)
            line = eventually(lambda: [l for l in server.log if '"server.state"' in l])[0]
            state = json.loads(line)
            assert state["ready"] and len(state["calls"]) == 1, state
            call = state["calls"][0]
            assert call["id"].startswith("cmpl-") and call["api"] == "completions" and call["prepared"], call
            model = state["models"][0]
            assert model["name"] == "tiny" and model["running"] == 30 and model["pages"]["held"] > 0, model
            assert {r["id"] for r in state["status"]["requests"]} == {call["id"]}, state["status"]
        assert server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}).status == 200


@test
def a_crash_names_what_was_worked_on_and_ends_by_its_signal():
    if os.environ.get("ASAN_OPTIONS") or os.environ.get("TSAN_OPTIONS"):
        raise served.Skip("a sanitizer has words of its own")
    for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS:
        server = start(*SLOW)
        with served.send(server, "/v1/completions", dict(WORK, n=30)):
            assert eventually(lambda: server.status()["running"] == 30)
            name = server.status()["requests"][0]["id"]
            server.process.send_signal(number)
            assert server.process.wait(served.PATIENCE) == -number
            server.reader.join(served.PATIENCE)
        said = "\n".join(server.log)
        assert "crashed by " + number.name in said and "in flight: " + name in said, said[-2000:]
        assert re.search(r"motet\(.*\) ?\[0x", said), said[-2000:]


def bearer(key):
    return {"authorization": "Bearer " + key}


def reload(server, wanted):
    """Sends SIGHUP; the line that says what became of it."""
    before = len(server.log)
    server.process.send_signal(signal.SIGHUP)
    return eventually(lambda: [line for line in server.log[before:] if wanted in line])[0]


@test
def keys_are_read_again_and_requests_that_run_are_not_touched():
    with tempfile.TemporaryDirectory() as folder:
        path, conf = os.path.join(folder, "keys"), os.path.join(folder, "motet.conf")

        def write(*lines):
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            os.replace(path + ".new", path)
        write("sk-old name=a requests/min=1000", "sk-both name=b")
        with open(conf, "w", encoding="utf-8") as f:
            f.write("drain-seconds = 1\n")
        os.utime(conf, (1, 1))
        with start(*SLOW, "--keys", path, "--config", conf) as server:
            def ask(key, **more):
                return server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1, **more}, bearer(key))
            runs = served.send(server, "/v1/completions", dict(WORK, n=30), "authorization: Bearer sk-old\r\n")
            assert ask("sk-both").status == 200 and ask("sk-new").status == 401
            kept = server.post("/v1/responses", {"input": "hi", "max_output_tokens": 1}, bearer("sk-both")).json()["id"]
            write("sk-new name=b tokens/min=5", "sk-ops name=ops admin")
            assert "2 keys" in reload(server, "server.reloaded")
            assert ask("sk-old").status == ask("sk-both").status == 401
            assert server.request("GET", "/v1/responses/" + kept, headers=bearer("sk-new")).status == 200
            assert ask("sk-new").headers["x-ratelimit-limit-tokens"] == "5"
            running = server.request("GET", "/v1/status", headers=bearer("sk-ops")).json()["running"]
            assert running == 30, running
            write("sk-ops name=ops admin", "sk-wrong nonsense=1")
            assert "nonsense" in reload(server, "the keys stay as they are")
            assert ask("sk-ops").status == 200 and ask("sk-wrong").status == 401
            os.utime(conf)
            assert conf in reload(server, "take effect when the server is restarted")
            runs.close()
            said = server.request("GET", "/metrics", headers=bearer("sk-ops")).body.decode()
            assert re.search(r'motet_reloads_total\{[^}]*result="ok"\} 1\n', said), said[-3000:]
            assert re.search(r'motet_reloads_total\{[^}]*result="failed"\} 2\n', said), said[-3000:]


@test
def a_certificate_is_read_again():
    if not shutil.which("openssl"):
        raise served.Skip("no openssl")
    with tempfile.TemporaryDirectory() as folder:
        cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")

        def certify(name):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=" + name, "-days", "1"], check=True,
                           capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def shown(server):
            with socket.create_connection(("127.0.0.1", server.port), timeout=served.PATIENCE) as plain:
                with context.wrap_socket(plain) as s:
                    return ssl.DER_cert_to_PEM_cert(s.getpeercert(True))
        certify("one")
        with start("--tls-cert", cert, "--tls-key", key, ready=False) as server:
            with open(cert, encoding="utf-8") as f:
                assert shown(server) == f.read()
            certify("two")
            reload(server, "server.reloaded")
            with open(cert, encoding="utf-8") as f:
                assert shown(server) == f.read()
            before = shown(server)
            with open(key, "w", encoding="utf-8") as f:
                f.write("nothing")
            assert "key file" in reload(server, "the certificate stays as it is")
            assert shown(server) == before


SUITE.main()
