#!/usr/bin/env python3
"""What one client cannot take from the others: all seats, the whole queue, every connection.

usage: tests/api/test_crowd.py --motet PROGRAM [NAME ...]"""

import contextlib
import http.client
import json
import os
import signal
import socket

import overload
import served
from served import eventually

SUITE = served.Suite("api_crowd")
test, start = SUITE.test, SUITE.start

# Every seat, for longer than a test lasts; not streamed, so it never stands still.
SEATS = 60
WORK = {"prompt": [0, 9], "max_tokens": 2000, "ignore_eos": True, "n": SEATS}
SEATED = ("--max-sequences", str(SEATS), "--batch-tokens", "1", "--threads", "1")


class Client:
    """Asks from an address of its own, with headers of its own."""

    def __init__(self, server, address="127.0.0.1", **headers):
        self.server, self.address, self.headers = server, address, headers

    def connect(self):
        try:
            s = socket.create_connection(("127.0.0.1", self.server.port), served.PATIENCE, (self.address, 0))
        except OSError as why:
            raise served.Skip("{}: {}".format(self.address, why)) from why
        return s

    def send(self, body):
        """The socket of a request whose answer is not waited for."""
        s, data = self.connect(), json.dumps(body).encode()
        lines = ["{}: {}".format(k.replace("_", "-"), v) for k, v in self.headers.items()]
        head = ["POST /v1/completions HTTP/1.1", "host: 127.0.0.1", "content-type: application/json",
                "content-length: {}".format(len(data)), *lines, "", ""]
        s.sendall("\r\n".join(head).encode() + data)
        return s

    def complete(self, **body):
        with contextlib.closing(self.send(body)) as s:
            response = http.client.HTTPResponse(s)
            response.begin()
            return served.Answer(response.status, response.getheaders(), response.read())


def check_shares(server, greedy, other, **key):
    """The greedy one has every seat and waits for more; the other one is answered at once, and only the other one."""
    def status():
        return server.request("GET", "/v1/status", headers=key).json()
    with contextlib.ExitStack() as stack:
        stack.enter_context(greedy.send(WORK))
        assert eventually(lambda: status()["running"] == SEATS)
        stack.enter_context(greedy.send(dict(WORK, n=1)))
        assert eventually(lambda: status()["waiting"] == 1)
        refused = greedy.complete(prompt=[0, 8], max_tokens=4)
        assert refused.status == 429 and "61 of them yours" in refused.json()["error"]["message"], refused.body
        answered = other.complete(prompt=[0, 8], max_tokens=4, ignore_eos=True)
        assert answered.status == 200 and answered.json()["usage"]["completion_tokens"] == 4, answered.body
        assert eventually(lambda: status()["running"] + status()["waiting"] == SEATS + 1), "its work goes on"


@test
def an_address_leaves_seats_and_queue_to_another():
    with start(*SEATED, "--max-queue", "1") as server:
        # who is no proxy that is trusted may say what it likes
        check_shares(server, Client(server, x_forwarded_for="192.0.2.1"), Client(server, "127.0.0.2"))
        assert server.metrics()["motet_seats_yielded_total"] > 0


@test
def a_client_behind_a_proxy_leaves_them_to_another():
    with start(*SEATED, "--max-queue", "1", "--trusted-proxy", "127.0.0.0/8") as server:
        check_shares(server, Client(server, x_forwarded_for="198.51.100.9, 192.0.2.1"),
                     Client(server, forwarded="for=192.0.2.2"))


@test
def a_key_leaves_them_to_another():
    with start(*SEATED, "--max-queue", "1", "--api-key", "one", "--api-key", "two") as server:
        check_shares(server, Client(server, x_api_key="one"), Client(server, x_api_key="two"), **{"x-api-key": "one"})


@test
def a_client_leaves_room_to_be_prepared_to_another():
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("the sanitizers want to be loaded first")
    server = start("--prep-threads", "1", "--drain-seconds", "0", env={"LD_PRELOAD": SUITE.hang})
    with contextlib.closing(contextlib.ExitStack()) as stack:
        def preparing():
            return server.status()["preparing"]
        greedy, wanted = Client(server), {"prompt": "hello", "max_tokens": 1}
        for i in range(5):  # as many as the threads that one client may have, with those for work beside long work
            stack.enter_context(greedy.send({"prompt": "hang", "max_tokens": 1}))
            assert eventually(lambda: preparing() == i + 1)
        for _ in range(300):
            stack.enter_context(greedy.send(wanted))
        assert eventually(lambda: preparing() + server.metrics()["motet_calls_refused_total"] == 305)
        taken = preparing()
        assert 250 < taken < 270, taken
        assert Client(server, "127.0.0.2").complete(**wanted).status == 200
        assert preparing() == taken
    server.stop(signal.SIGKILL)  # it would wait for the thread


@test
def a_stream_goes_on_after_its_outbox_was_full():
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("the sanitizers want to be loaded first")
    with start(env={"LD_PRELOAD": SUITE.hang, "MOTET_TEST_LAZY_LOOP": "1"}) as server:
        answer = server.complete(prompt=[0, 9], n=32, max_tokens=60, ignore_eos=True)
        assert answer.status == 200 and answer.json()["usage"]["completion_tokens"] == 32 * 60, answer.body


@test
def health_and_metrics_are_told_when_connections_run_short():
    with start("--max-connections", "4", *SEATED) as server, contextlib.ExitStack() as stack:
        greedy = Client(server)
        for _ in range(4):
            stack.enter_context(greedy.send(dict(WORK, n=15)))
        assert eventually(lambda: server.status()["running"] == SEATS)  # at the limit already
        for path in ("/", "/health", "/live", "/ready", "/metrics", "/v1/status"):
            assert server.request("GET", path).status == 200, path
        refused = greedy.complete(prompt=[0, 8], max_tokens=4)
        assert refused.status == 503 and refused.headers["retry-after"] == "1", refused.body
        assert refused.json()["error"]["code"] == "overloaded", refused.body
        assert Client(server, "127.0.0.2").complete(prompt=[0, 8], max_tokens=4, ignore_eos=True).status == 200
        assert server.metrics()["motet_http_connections_refused_total"] == 1


@test
def idle_and_slow_connections_make_way():
    with start("--max-connections", "8") as server, contextlib.ExitStack() as stack:
        for i in range(100):
            s = stack.enter_context(Client(server).connect())
            with contextlib.suppress(OSError):  # it may be closed already
                s.sendall(b"GET /health HTTP/1.1\r\n" if i % 2 else b"")
        for address in ("127.0.0.1", "127.0.0.2"):
            # who is one of a crowd may be told to come again before what the crowd has sent is read
            assert eventually(lambda: Client(server, address).complete(prompt=[0, 8], max_tokens=4).status == 200)
        assert server.metrics()["motet_http_connections_yielded_total"] > 50


@test
def ten_times_what_can_be_done_is_refused_and_nobody_else_suffers():
    overload.judge(*overload.measure(SUITE.program, SUITE.folder, 1, 10, 500, 100), 0)


SUITE.main()
