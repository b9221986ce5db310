#!/usr/bin/env python3
"""motet bench --url and --compare: servers that answer, and servers that do not as they should."""
import collections
import csv
import http.server
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

import helpers
import served
from test_bench import Page

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Wayward(http.server.BaseHTTPRequestHandler):
    """Counts words, answers with as many as are asked for, and misbehaves as its server is told."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, text):
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):  # pylint: disable=invalid-name
        self.whole(200, json.dumps({"data": [{"id": "wayward"}]}))

    def do_POST(self):  # pylint: disable=invalid-name
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.lock:
            number = len(server.asked)
            server.asked.append(body)
        words = sum(len(m["content"].split()) for m in body["messages"] if isinstance(m["content"], str))
        manner = server.manner(number, body)
        if manner == "strict" and "ignore_eos" in body:
            return self.whole(400, json.dumps({"error": {"message": "ignore_eos: unknown field"}}))
        if manner == "error":
            return self.whole(503, json.dumps({"error": {"message": "too much to do"}}))
        if manner == "garbage":
            return self.whole(200, "<html>hello</html>")
        if manner == "gone":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(body, words, manner)
        except OSError:
            pass
        return None

    def stream(self, body, words, manner):
        tokens = body["max_tokens"]
        if manner == "silent":
            self.server.released.wait(helpers.PATIENCE)
            return
        self.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for i in range(0 if manner == "empty" else tokens):
            if manner == "cut" and i == 2:
                return
            key = "reasoning_content" if manner == "thinks" and i < 2 else "content"
            self.event({"choices": [{"delta": {key: "word "}, "finish_reason": None}]})
        if manner == "broken":
            self.event({"error": {"message": "the model fell over"}})
            return
        self.event({"choices": [{"delta": {}, "finish_reason": "length"}]})
        if manner not in ("uncounted", "strict"):
            self.event({"choices": [], "usage": {"prompt_tokens": 10 + 2 * words, "completion_tokens": tokens,
                                                 "prompt_tokens_details": {"cached_tokens": 5}}})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()


def wayward(manner=lambda number, body: ""):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wayward)
    server.daemon_threads = True
    server.asked, server.manner = [], manner
    server.lock, server.released = threading.Lock(), threading.Event()
    server.url = "http://127.0.0.1:{}".format(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def bench(motet, *arguments):
    return helpers.run(motet, "bench", *arguments)


def measured(motet, *arguments, status=0):
    code, out, err = bench(motet, *arguments, "--json")
    assert code == status, (code, out, err)
    return json.loads(out)


def words_of(body):
    return [m["content"] for m in body["messages"]]


@test
def loads_are_measured_and_told_in_every_form(motet, _):
    server = wayward()
    with tempfile.TemporaryDirectory() as folder:
        page, table = os.path.join(folder, "page.html"), os.path.join(folder, "table.csv")
        report = measured(motet, "--url", server.url + "/v1/", "--clients", "1,3", "--requests", "6", "--tokens", "5",
                          "--prompt", "50", "--plot", page, "--csv", table)
        rows = report["loads"]
        assert [(r["clients"], r["requests"], r["failed"], r["tokens"]) for r in rows] == [(1, 6, 0, 5), (3, 6, 0, 5)]
        for row in rows:
            assert 45 <= row["prompt"] <= 55, row  # two tokens a word and ten around were found out
            assert row["rate"] > 0 and row["first_p50"] <= row["first_p90"] <= row["first_p99"], row
            assert 0 <= row["between_p50"] <= row["between_p99"], row
        with open(table, newline="", encoding="utf-8") as f:
            lines = list(csv.DictReader(f))
        assert len(lines) == 12 and {l["clients"] for l in lines} == {"1", "3"}, lines
        assert all(l["answer_tokens"] == "5" and l["pieces"] == "5" and not l["error"] for l in lines), lines
        with open(page, encoding="utf-8") as f:
            count = Page(f.read()).count
        assert count["svg"] == 3 and count["table"] == 1, count
    asked = server.asked[2:]
    assert all(a["stream"] and a["max_tokens"] == 5 and a["ignore_eos"] and a["model"] == "wayward" for a in asked)
    assert len({str(a["messages"]) for a in asked}) == 12  # no prompt is another's
    code, out, _ = bench(motet, server.url, "--clients", "2", "--requests", "2", "--tokens", "2")
    assert code == 0 and "tokens/s" in out and "2 clients" in out and "between tokens" in out, out


@test
def tokens_are_drawn_where_that_is_asked_for(motet, _):
    for options, wanted in ([], (0, None)), (["--temperature", "0.7", "--top-p", "0.9"], (0.7, 0.9)):
        server = wayward()
        measured(motet, "--url", server.url, "--clients", "1", "--requests", "2", "--tokens", "1", *options)
        assert {(a["temperature"], a.get("top_p")) for a in server.asked} == {wanted}, server.asked


@test
def a_seed_decides_what_is_said(motet, _):
    said = []
    for seed in "7", "7", "8", "0", "0":
        server = wayward()
        measured(motet, "--url", server.url, "--clients", "1", "--requests", "3", "--tokens", "1", "--seed", seed)
        said.append(sorted(str(a["messages"]) for a in server.asked[2:]))
    assert said[0] == said[1] and said[0] != said[2] and said[3] != said[4]


@test
def requests_arrive_at_random_whether_others_are_answered_or_not(motet, _):
    held = threading.Event()
    server = wayward()

    def manner(number, _):
        if number >= 2 + 5:  # the sixth comes while all others are held
            held.set()
        if number >= 2:
            held.wait(helpers.PATIENCE)
        return ""

    server.manner = manner
    rows = measured(motet, "--url", server.url, "--rate", "200", "--requests", "6", "--tokens", "1")["loads"]
    assert held.is_set() and rows[0]["requests"] == 6 and rows[0]["request_rate"] == 200, rows


@test
def prefixes_pictures_and_turns_are_sent(motet, _):
    server = wayward()
    measured(motet, "--url", server.url, "--clients", "2", "--requests", "4", "--tokens", "1", "--prefix", "40",
             "--prompt", "30")
    asked = server.asked[2:]
    assert all([m["role"] for m in a["messages"]] == ["system", "user"] for a in asked)
    assert len({words_of(a)[0] for a in asked}) == 1 and len({words_of(a)[1] for a in asked}) == 4
    assert len(words_of(asked[0])[0].split()) == 20
    server = wayward()
    measured(motet, "--url", server.url, "--clients", "1", "--requests", "2", "--tokens", "1", "--picture", "32")
    parts = [a["messages"][0]["content"] for a in server.asked[2:]]
    assert [p["type"] for p in parts[0]] == ["image_url", "text"], parts[0]
    urls = [p[0]["image_url"]["url"] for p in parts]
    assert urls[0] != urls[1] and all(u.startswith("data:image/png;base64,iVBOR") for u in urls), urls
    server = wayward()
    report = measured(motet, "--url", server.url, "--clients", "2", "--requests", "6", "--tokens", "2", "--agents", "3")
    assert [r["turn"] for r in report["turns"]] == [1, 2, 3] and report["loads"][0]["requests"] == 6, report
    talks = [[m["role"] for m in a["messages"]] for a in server.asked[2:]]
    assert collections.Counter(len(t) for t in talks) == {1: 2, 3: 2, 5: 2}, talks
    longest = [a for a in server.asked if len(a["messages"]) == 5]
    assert all(words_of(a)[1] == words_of(a)[3] == "word word " for a in longest), longest
    for turn in longest:  # each turn repeats what was said before, word for word
        assert any(words_of(a) == words_of(turn)[:3] for a in server.asked), turn


@test
def faults_are_counted_and_named(motet, _):
    faults = {"error": "too much to do", "garbage": "no stream of events", "gone": "broke off", "cut": "stream was cut",
              "empty": "answer is empty", "broken": "the model fell over"}
    for manner, what in faults.items():
        server = wayward(lambda number, _, manner=manner: manner if number >= 2 and number % 2 else "")
        code, out, err = bench(motet, "--url", server.url, "--clients", "1", "--requests", "4", "--tokens", "3")
        assert (code, err) == (0, ""), (manner, code, out, err)
        assert "2 requests to " + server.url + " failed: " in out and what in out, (manner, out)
        server.manner = lambda number, _, manner=manner, from_here=len(server.asked): (
            manner if number >= from_here + 2 else "")
        code, out, err = bench(motet, "--url", server.url, "--clients", "2", "--requests", "4", "--tokens", "3")
        assert code == 1 and "answered no request" in err and what in err, (manner, code, err)
    server = wayward(lambda *_: "error")
    code, _, err = bench(motet, "--url", server.url)
    assert code == 1 and "too much to do" in err, err
    code, _, err = bench(motet, "--url", "http://127.0.0.1:1")
    assert code == 1 and "no server answers" in err, err


@test
def a_server_that_says_nothing_is_given_up(motet, _):
    server = wayward(lambda number, _: "silent" if number >= 2 else "")
    began = time.monotonic()
    code, _, err = bench(motet, "--url", server.url, "--clients", "2", "--requests", "2", "--timeout", "1")
    server.released.set()
    assert code == 1 and "longer than --timeout" in err, err
    assert time.monotonic() - began < helpers.PATIENCE


@test
def ctrl_c_ends_it(motet, _):
    server = wayward(lambda number, _: "silent" if number >= 2 else "")
    child = subprocess.Popen([motet, "bench", "--url", server.url, "--clients", "2"], stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
    assert served.eventually(lambda: len(server.asked) == 4)
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=helpers.PATIENCE)[1]
    server.released.set()
    assert child.returncode == 1 and b"interrupted" in err, (child.returncode, err)


@test
def servers_that_know_less_are_measured_too(motet, _):
    server = wayward(lambda *_: "strict")
    code, out, err = bench(motet, "--url", server.url, "--clients", "1", "--requests", "2", "--tokens", "4")
    assert (code, err) == (0, "") and "does not know ignore_eos" in out and "words count as tokens" in out, (out, err)
    server = wayward(lambda *_: "uncounted")
    row = measured_uncounted(motet, server)
    assert row["tokens"] == 4 and "prompt" not in row, row  # pieces are tokens where nobody counts
    row = measured(motet, "--url", wayward(lambda *_: "thinks").url, "--clients", "1", "--requests", "2",
                   "--tokens", "4")["loads"][0]
    assert row["requests"] == 2 and row["tokens"] == 4, row


def measured_uncounted(motet, server):
    code, out, err = bench(motet, "--url", server.url, "--clients", "1", "--requests", "2", "--tokens", "4", "--json")
    assert (code, err) == (0, ""), err
    return json.loads(out)["loads"][0]


@test
def two_servers_are_asked_the_same_by_turns(motet, _):
    order, lock = [], threading.Lock()

    def noting(name):
        def manner(number, _):
            with lock:
                order.extend([name] * (number >= 2))
            return ""
        return manner

    one, two = wayward(noting(1)), wayward(noting(2))
    report = measured(motet, "--compare", one.url, two.url, "--rounds", "3", "--clients", "1,2", "--requests", "2",
                      "--tokens", "3")
    assert order == [1, 1, 2, 2] * 2 + [2, 2, 1, 1] * 2 + [1, 1, 2, 2] * 2, order

    def said(server):
        return sorted(str(a["messages"]) for a in server.asked[2:])

    assert said(one) == said(two) and len(set(said(one))) == 12
    assert [r["what"] for r in report["ratios"]] == ["tokens/s", "first token, ms", "between tokens, ms",
                                                     "whole answer, s"] * 2
    for row in report["ratios"]:
        if "ratio" in row:
            assert row["least"] <= row["ratio"] <= row["most"], row
    assert {(r["server"], r["clients"]) for r in report["loads"]} == {(1, 1), (1, 2), (2, 1), (2, 2)}


@test
def motet_itself_is_measured(motet, tiny):
    with served.Server(motet, tiny) as server:
        url = "http://127.0.0.1:{}".format(server.port)
        rows = measured(motet, "--url", url, "--clients", "2", "--requests", "4", "--prompt", "20", "--tokens", "6")["loads"]
        assert rows[0]["requests"] == 4 and rows[0]["failed"] == 0 and rows[0]["tokens"] == 6, rows


@test
def what_makes_no_sense_is_said(motet, _):
    for arguments, what in ((["--clients", "1", "--rate", "1"], "exclude each other"), (["--clients", "0"], "--clients"),
                            (["--prompt", "1,2"], "one number"), (["--tokens", "0"], "1 or more")):
        code, out, err = bench(motet, "--url", "http://127.0.0.1:1", *arguments)
        assert (code, out) == (1, "") and what in err, (arguments, err)


helpers.main("cli_bench_server", TESTS, needs="fetch")
