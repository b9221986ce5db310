#!/usr/bin/env python3
"""The wall clock jumps: ahead, back, before 1970 and beyond the year 9999, while a server starts, answers, counts
requests or keeps something. What must last a time is measured by another clock, so nothing ends too soon, or never.

usage: tests/attack/clock.py --motet PROGRAM --clock LIBRARY [NAME ...]"""

import contextlib
import email.utils
import json
import os
import re
import struct
import sys
import tempfile
import time

import alive
import served
from alive import Attack

SUITE = served.Suite("attack_clock")
test = SUITE.test
DAY, YEAR = 86400, 365 * 86400
JUMPS = (DAY, -DAY, 20 * YEAR, -20 * YEAR, -100 * YEAR, 9000 * YEAR)
CLOCK = None


class Clock:
    """The wall clock of servers that are started by it."""

    def __init__(self, ahead=0):
        self.file = tempfile.NamedTemporaryFile()
        self.jump(ahead)

    def jump(self, ahead):
        self.ahead = ahead
        self.file.seek(0)
        self.file.write(struct.pack("=q", ahead))
        self.file.flush()

    def start(self, *options, **settings):
        if "MOTET_TEST_QUICK" in os.environ:
            raise served.Skip("the sanitizers want to be loaded first")
        return SUITE.start(*options, env={"LD_PRELOAD": CLOCK, "MOTET_TEST_CLOCK": self.file.name}, **settings)

    def is_now(self, seconds):
        return abs(seconds - time.time() - self.ahead) < served.PATIENCE


def stream(server, **more):
    """The lines of an answer that is streamed, which has begun."""
    body = {"prompt": [0, 9], "max_tokens": 300, "ignore_eos": True, "temperature": 0, "stream": True, **more}
    s = served.send(server, "/v1/completions", body, "connection: close\r\n")
    lines = s.makefile("rb")
    assert b" 200 " in lines.readline()
    while not lines.readline().startswith(b"data: "):
        pass
    return s, lines


@test
def a_server_starts_at_any_time():
    before = None
    for jump in JUMPS:
        clock = Clock(jump)
        with clock.start() as server:
            before = before or alive.answer(server)
            assert alive.answer(server) == before
            got = server.post("/v1/completions", alive.QUESTION)
            assert clock.is_now(got.json()["created"]), (jump, got.json()["created"])


@test
def an_answer_goes_on_when_the_clock_jumps():
    clock = Clock()
    with clock.start("--request-timeout", "1h") as server, Attack(server, opens=True):
        whole = server.complete(prompt=[0, 9], max_tokens=300, ignore_eos=True, temperature=0).text()
        for jump in JUMPS:
            clock.jump(0)
            s, lines = stream(server)
            clock.jump(jump)
            rest = lines.read()
            s.close()
            assert b"[DONE]" in rest and b'"error"' not in rest, (jump, rest[-200:])
            got = server.complete(prompt=[0, 9], max_tokens=300, ignore_eos=True, temperature=0, timeout=600)
            assert got.status == 200 and got.text() == whole, jump


@test
def a_timeout_is_not_met_by_a_jump_and_is_met_without_one():
    clock = Clock()
    with clock.start("--batch-tokens", "1", "--threads", "1", "--max-sequences", "60") as server, Attack(server, opens=True):
        clock.jump(-DAY)
        got = server.complete(prompt=[0, 9], max_tokens=2000, ignore_eos=True, n=60, timeout=1)
        assert got.status == 504 or got.json().get("error"), got.body[:300]
        clock.jump(DAY)
        assert server.complete(prompt=[0, 9], max_tokens=4, timeout=600).status == 200


@contextlib.contextmanager
def keys(*lines):
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        yield file.name


def ask(server, key):
    return server.post("/v1/completions", {"prompt": [0, 9], "max_tokens": 1}, {"authorization": "Bearer " + key})


@test
def a_jump_ahead_gives_nobody_more_requests():
    clock = Clock()
    with keys("a requests/min=1") as file, clock.start("--keys", file) as server:
        begin = time.monotonic()
        first = [ask(server, "a").status for _ in range(3)]
        assert first[0] == 200 and 429 in first, first
        for jump in JUMPS:
            clock.jump(jump)
            got = ask(server, "a")
            assert got.status == 429 or time.monotonic() - begin > 50, (jump, got.status)


@test
def a_jump_back_takes_nobody_theirs():
    clock = Clock()
    with keys("a requests/min=600", "b requests/min=1") as file, clock.start("--keys", file) as server:
        assert ask(server, "a").status == 200 and ask(server, "b").status == 200
        for jump in (-DAY, -100 * YEAR):
            clock.jump(jump)
            assert ask(server, "a").status == 200
            got = ask(server, "b")
            assert got.status == 200 or 1 <= int(got.headers["retry-after"]) <= 60, got.headers


@test
def idle_connections_are_not_ended_by_a_jump():
    clock = Clock()
    with clock.start() as server, Attack(server, opens=True):
        held = server.connect()
        for jump in JUMPS:
            held.request("GET", "/v1/models")
            response = held.getresponse()
            assert response.status == 200 and response.read()
            clock.jump(jump)
        half = server.socket()  # half a head waits as long as it may
        half.sendall(b"GET /v1/models HTTP/1.1\r\n")
        clock.jump(DAY)
        alive.answer(server)
        half.sendall(b"host: localhost\r\nconnection: close\r\n\r\n")
        assert half.recv(100).startswith(b"HTTP/1.1 200")
        half.close()
        held.close()


@test
def models_are_not_unloaded_by_a_jump():
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(SUITE.folder, os.path.join(folder, "tiny"))
        with clock.start("--models-dir", folder, "--keep-alive", "1h", folder=[]) as server:
            body = {"model": "tiny", **alive.QUESTION}
            before = server.post("/v1/completions", body).json()["choices"]
            for jump in JUMPS:
                clock.jump(jump)
                assert server.post("/v1/completions", body).json()["choices"] == before
                running = server.request("GET", "/api/ps").json()["models"]
                assert len(running) == 1, (jump, running)
            assert server.metrics_by_model("motet_model_loads_total")["tiny"] == 1


@test
def what_is_stored_is_found_at_any_time():
    """Written in the future and in the past, read today, and the other way round."""
    with tempfile.TemporaryDirectory() as folder:
        store, names, said = os.path.join(folder, "store.db"), [], {}
        for jump in (0, *JUMPS, 0):
            clock = Clock(jump)
            with clock.start("--store", store) as server:
                for name in names:
                    got = server.request("GET", "/v1/responses/" + name)
                    assert got.status == 200 and got.json()["output"] == said[name], (jump, got.body)
                body = {"input": "hello", "max_output_tokens": 2}
                if names:
                    body["previous_response_id"] = names[-1]
                made = server.post("/v1/responses", body)
                assert made.status == 200 and clock.is_now(made.json()["created_at"]), (jump, made.body)
                names.append(made.json()["id"])
                said[names[-1]] = made.json()["output"]


@test
def what_a_disk_has_is_found_at_any_time():
    prompt = [0, *range(10, 200)]
    with tempfile.TemporaryDirectory() as folder:
        said = None
        for jump in (0, *JUMPS, 0):
            with Clock(jump).start("--cache-dir", folder) as server:
                got = server.complete(prompt=prompt, max_tokens=4, temperature=0).json()
                cached = got["usage"]["prompt_tokens_details"]["cached_tokens"]
                assert cached >= 96 if said else cached == 0, (jump, cached)
                said = said or got["choices"][0]["text"]
                assert got["choices"][0]["text"] == said, jump


@test
def dates_are_dates_at_any_time():
    clock = Clock()
    with clock.start() as server, Attack(server, opens=True):
        for jump in (0, *JUMPS):
            clock.jump(jump)
            got = server.request("GET", "/v1/models")
            if 0 <= time.time() + jump < 253402300800:  # a year of four digits, as the header has it
                sent = email.utils.parsedate_to_datetime(got.headers["date"]).timestamp()
                assert clock.is_now(sent), (jump, got.headers["date"])
            made = server.post("/api/generate", {"model": "tiny", "prompt": "hi", "stream": False,
                                                 "options": {"num_predict": 1}})
            assert made.status == 200, made.body
            assert re.fullmatch(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", made.json()["created_at"]), made.body
    for line in server.log:
        assert re.match(r"\d\d:\d\d:\d\d\.\d{3} (info|warn) ", line), line


@test
def templates_tell_any_time():
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write("{{ strftime_now('%Y-%m-%d %H:%M %j %A') }} {% for m in messages %}{{ m.content }}{% endfor %}")
        template.flush()
        clock = Clock()
        with clock.start("--chat-template", template.name) as server, Attack(server, opens=True):
            for jump in (0, *JUMPS):
                clock.jump(jump)
                got = server.post("/apply-template", {"messages": [{"role": "user", "content": "hi"}]})
                assert got.status == 200, (jump, got.body)
                year = int(re.search(r"(-?\d+)-\d\d-\d\d", got.json()["prompt"]).group(1))
                assert abs(year - 2026 - jump / YEAR) < 12, (jump, got.json())  # a year has more than 365 days


@test
def figures_are_never_below_nothing():
    clock = Clock()
    with clock.start() as server, Attack(server, opens=True):
        for jump in (0, *JUMPS):
            clock.jump(jump)
            alive.answer(server)
            for name, value in server.metrics().items():
                assert value >= 0 or "loadavg" in name, (jump, name, value)
            status = json.dumps(server.status())
            assert not re.search(r'(seconds|_ms|_s|age)": -', status), (jump, status)
        total = server.metrics()
        for name, value in total.items():
            if re.match(r"motet_\w+_seconds_sum", name):
                assert value < DAY / 2, (name, value)


@test
def a_clock_that_does_not_stand_still():
    clock = Clock()
    with clock.start() as server, Attack(server, opens=True):
        before = alive.answer(server)
        for i in range(100):
            clock.jump((-1) ** i * i * 3600)
            assert alive.answer(server) == before


def main():
    global CLOCK
    if "--clock" in sys.argv:
        at = sys.argv.index("--clock")
        CLOCK = os.path.abspath(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    SUITE.main()


main()
