#!/usr/bin/env python3
"""The dashboard's stream of events: what it tells of requests, to whom, and that those who look on cost nobody else
anything.

usage: tests/api/test_dashboard.py --motet PROGRAM [NAME ...]"""

import contextlib
import json
import os
import signal
import socket
import tempfile

import served
from served import eventually

SUITE = served.Suite("api_dashboard")
test, start = SUITE.test, SUITE.start
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "vectors")
MOST = 32  # that look at a time
PREPARED, SEATED, ASIDE, CACHED, PICTURES, PROMPT, ANSWER = range(7)
VOICE, KIND, BEGIN, LENGTH, COUNT, STEPS = range(6)


class Stream:
    """The events, read one by one, and what they come to."""

    def __init__(self, server, key=None, patient=True):
        self.connection = server.connect()
        self.connection.request("GET", "/dashboard/events", headers={"authorization": "Bearer " + key} if key else {})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.head, self.live, self.ended, self.notes, self.seconds, self.errors = {}, {}, {}, [], [], []
        self.snapshots = self.now = 0
        self.voices = []  # that have ended, in that order
        self.whole = False  # all of the past has come
        if self.status == 200 and patient:
            self.step()

    def event(self):
        """(name, data), or None at the end."""
        name = data = None
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            if line == "\n":
                return name, json.loads(data)
            field, value = line.rstrip("\n").split(": ", 1)
            if field == "event":
                name = value
            else:
                data = value

    def step(self):
        event = self.event()
        if event is None:
            return False
        name, data = event
        self.now = data["now"]
        if name == "snapshot":
            self.snapshots += 1
            self.head = data
        if name == "history":
            self.whole = self.whole or not data["more"]
        for voice in data.get("live", []):
            self.live[voice["number"]] = voice
        for voice in data.get("ended", []):
            self.live.pop(voice["number"], None)
            self.ended[voice["id"], voice["choice"]] = voice
            self.voices.append(voice)
        self.notes += data.get("notes", [])
        self.seconds += data.get("seconds", [])
        self.errors += data.get("errors", [])
        return True

    def until(self, what):
        while not what():
            assert self.step(), "the stream has ended"

    def of(self, voice, kind):
        return [note for note in self.notes if note[VOICE] == voice["number"] and note[KIND] == kind]

    def count(self, voice, kind):
        return sum(note[COUNT] for note in self.of(voice, kind))

    def column(self, name):
        at = self.head["columns"].index(name)
        return [row[at] for row in self.seconds]

    def close(self):
        self.response.close()
        self.connection.close()


def watching(server, key=None):
    return contextlib.closing(Stream(server, key))


@test
def a_request_is_followed_from_its_arrival_to_its_end():
    with start() as server, watching(server) as s:
        assert s.snapshots == 1 and s.head["everybody"] is True and s.head["memory"]["budget"] > 0
        assert s.head["kinds"] == ["prepared", "seated", "aside", "cached", "pictures", "prompt", "answer"]
        prompt = list(range(40))
        ids = [server.complete(prompt=prompt, max_tokens=9, ignore_eos=True).json()["id"] for _ in range(2)]
        s.until(lambda: len(s.ended) == 2)
        first, second = s.ended[ids[0], 0], s.ended[ids[1], 0]
        s.until(lambda: all(s.count(voice, ANSWER) == 8 for voice in (first, second)))
        for voice in (first, second):
            assert (voice["prompt"], voice["tokens"], voice["finish"]) == (40, 9, "length"), voice
            assert s.count(voice, PROMPT) + s.count(voice, CACHED) == 40, s.notes
            assert len(s.of(voice, PREPARED)) == len(s.of(voice, SEATED)) == 1
            assert 0 < voice["received"] <= voice["entered"] <= voice["seated"] < voice["first"] < voice["ended"]
            for note in s.of(voice, PROMPT) + s.of(voice, ANSWER):
                assert voice["seated"] <= note[BEGIN] and note[BEGIN] + note[LENGTH] <= voice["ended"], note
        assert first["cached"] == 0 and second["cached"] == s.count(second, CACHED) > 0
        assert second["number"] == first["number"] + 1
        s.until(lambda: sum(s.column("generated_tokens")) == 18)
        assert sum(s.column("prompt_tokens")) == 80
        assert sum(s.column("cached_tokens")) == second["cached"]
        assert sum(s.column("prefilled_tokens")) == 80 - second["cached"]
        assert sum(s.column("ended_length")) == 2 and sum(s.column("lookups_found_all")) >= 1
        assert any(value for value in s.column("between_tokens_p50_ms")), s.seconds
        # all that was counted, by its length
        for name, wanted in (("first_token_times", 2), ("between_tokens_times", 16)):
            times = s.column(name)
            assert sum(sum(row[1::2]) for row in times) == wanted, times
            assert all(ms > 0 for row in times for ms in row[::2]), times
        assert all(value > 0 for value in s.column("resident_bytes"))


@test
def who_comes_later_is_told_what_was_before():
    with start() as server:
        ids = {server.complete(prompt=[0, n], max_tokens=3, ignore_eos=True, n=2).json()["id"] for n in range(150)}
        with watching(server) as s:
            s.until(lambda: s.whole)
            assert {id for id, _ in s.ended} == ids and len(s.ended) == 300
            assert all(s.count(voice, ANSWER) == 2 for voice in s.ended.values())
            assert len({tuple(note) for note in s.notes}) == len(s.notes)  # each once
            assert s.snapshots == 1


@test
def one_that_runs_is_there_from_the_first_event_on():
    with start("--batch-tokens", "1", "--threads", "1") as server:
        running = served.send(server, "/v1/completions", {"prompt": [0, 9], "max_tokens": 2000, "ignore_eos": True,
                                                          "n": 30})  # which takes longer than the test
        assert eventually(lambda: server.status()["running"] == 30)
        with watching(server) as s:
            assert len(s.live) == 30, s.live
            assert all(voice["seated"] and "ended" not in voice for voice in s.live.values()), s.live
            running.close()
            s.until(lambda: len(s.ended) == 30)
            assert {voice["finish"] for voice in s.ended.values()} == {"cancelled"} and not s.live
        with watching(server) as s:
            s.until(lambda: s.whole)
            assert len(s.ended) == 30


@test
def errors_are_told_in_their_own_words():
    with start("--served-name", "</script><img src=x onerror=alert(1)>\"\\") as server, watching(server) as s:
        assert s.head["model"] == "</script><img src=x onerror=alert(1)>\"\\"
        got = server.post("/v1/completions", {"prompt": [0, 1], "temperature": "<b>\u2028hot"})
        s.until(lambda: s.errors)
        assert s.errors[0]["text"] == got.json()["error"]["message"] and s.errors[0]["status"] == 400, s.errors
        s.until(lambda: sum(s.column("http_4xx")) == 1)
        assert sum(s.column("http_5xx")) == 0  # whatever was asked before the model was there
    with start() as server:
        for i in range(70):
            server.post("/v1/completions", {"prompt": [0, 1], "temperature": "x"})
        with watching(server) as s:
            assert len(s.errors) == 64


@contextlib.contextmanager
def server_with_keys(*options):
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as f:
        f.write("one-key name=one\ntwo-key name=two\nroot-key name=root admin\n")
        f.flush()
        with start("--keys", f.name, *options) as server:
            yield server


@test
def a_key_shows_its_own_requests_and_an_admins_all():
    with server_with_keys() as server:
        assert server.request("GET", "/dashboard/events").status == 401
        assert server.request("GET", "/dashboard/events", headers={"authorization": "Bearer no"}).status == 401
        with watching(server, "one-key") as one, watching(server, "root-key") as root:
            ids = {}
            for name in ("one", "two"):
                bearer = {"authorization": "Bearer {}-key".format(name)}
                for _ in range(2):
                    got = server.post("/v1/completions", {"prompt": list(range(40)), "max_tokens": 2}, bearer)
                    ids[got.json()["id"]] = name
                server.post("/v1/completions", {"prompt": [0, 9], "top_p": "wrong " + name}, bearer)
            root.until(lambda: len(root.ended) == 4 and len(root.errors) == 2)
            assert {id: voice["key"] for (id, _), voice in root.ended.items()} == ids
            one.until(lambda: one.now > root.now)
            assert {id for id, _ in one.ended} == {id for id, name in ids.items() if name == "one"}
            own = {voice["number"] for voice in one.ended.values()}
            assert {note[VOICE] for note in one.notes} == own and not any("key" in v for v in one.ended.values())
            assert len(one.errors) == 1 and one.head["everybody"] is False and root.head["everybody"] is True
            # whose lookup found a page that is somebody else's is not told
            root.until(lambda: sum(root.column("lookups_salt")) >= 1)
            one.until(lambda: sum(one.column("lookups_first_sight")) >= 2)
            assert sum(one.column("lookups_salt")) == 0
        with watching(server, "two-key") as two:
            two.until(lambda: two.whole)
            assert {id for id, _ in two.ended} == {id for id, name in ids.items() if name == "two"}
            assert {note[VOICE] for note in two.notes} == {voice["number"] for voice in two.ended.values()}


@test
def no_more_look_on_than_may_and_those_who_leave_make_room():
    with start() as server:
        streams = [Stream(server, patient=False) for _ in range(200)]
        assert [s.status for s in streams].count(200) == MOST
        refused = next(s for s in streams if s.status != 200)
        assert refused.status == 503 and "try again" in json.loads(refused.response.read())["error"]["message"]
        assert server.complete(prompt=[0, 9], max_tokens=2).status == 200
        for s in streams:
            s.close()
        def admitted():
            s = Stream(server, patient=False)
            try:
                return s.status == 200
            finally:
                s.close()
        assert eventually(admitted)
        assert eventually(lambda: server.metrics()["motet_http_connections"] <= 1)


@test
def one_that_does_not_read_misses_nothing_that_is_kept():
    with start() as server:
        for n in range(60):
            server.complete(prompt=[0, n], max_tokens=2, ignore_eos=True, n=16)
        with server.socket() as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            idle.sendall(b"GET /dashboard/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with watching(server) as s:
                s.until(lambda: s.whole)
                assert len(s.ended) == 960
                ids = {server.complete(prompt=[0, n], max_tokens=2).json()["id"] for n in range(5)}
                s.until(lambda: len(s.ended) == 965)
            got = b""
            while not (b'"more":false' in got and all(id.encode() in got for id in ids)):
                got += idle.recv(1 << 20)
            assert got.count(b'"ended":') - got.count(b'"ended":[') == 965 and got.count(b"event: snapshot") == 1
        assert server.metrics()["motet_http_slow_total"] == 0


@test
def nobody_waits_for_who_looks_on():
    with start("--drain-seconds", "3000") as server:
        with watching(server) as s:
            server.process.send_signal(signal.SIGTERM)
            while s.step():
                pass
            s.close()
            assert server.process.wait(served.PATIENCE) == 0


@test
def texts_at_an_encoder_are_voices_too():
    with start(folder=os.path.join(VECTORS, "bert-cls-bf16")) as server, watching(server) as s:
        assert s.head["encoders"] == ["bert-cls-bf16"] and s.head["memory"]["weights"] > 0
        got = server.post("/v1/embeddings", {"input": [[5, 6, 7], [8, 9]]}).json()
        assert len(got["data"]) == 2, got
        s.until(lambda: sum(s.column("texts_encoded")) == 2)
        s.until(lambda: len(s.voices) == 2)
        assert sorted(s.count(voice, PROMPT) for voice in s.voices) == [2, 3], s.notes
        assert all(voice["encoder"] == 1 and voice["finish"] == "stop" for voice in s.voices), s.voices
        assert sum(s.column("prefilled_tokens")) == 5


@test
def without_pages_there_is_no_stream():
    with start("--web", "off") as server:
        assert server.request("GET", "/dashboard/events").status == 404
    with start() as server:
        assert server.request("HEAD", "/dashboard/events").status == 200
        assert server.request("GET", "/dashboard/events", headers={"host": "evil.example"}).status == 403


SUITE.main()
