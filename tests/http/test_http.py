#!/usr/bin/env python3
"""usage: test_http.py ECHO

Clients, good and bad, of the test server ECHO (tests/http/echo.c)."""

import json
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import clients
import websocket
from clients import PATIENCE, Server

GET = "GET {} HTTP/1.1\r\nHost: a\r\n\r\n"
POST = "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}"


def post(path, body):
    return POST.format(path, len(body), body)


def reset(sock):
    """Closes as a killed machine's firewall would: with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Shared(unittest.TestCase):
    """Tests that share one server, which is looked at for leaks at the end."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("body_bytes=2000000", leaks=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.client = self.server.connect()
        self.addCleanup(self.client.sock.close)


class Requests(Shared):
    def test_a_request_is_understood(self):
        answer = self.client.ask("GET /show/a%20b%2Fc?x=%20y HTTP/1.1\r\nHost: h\r\nX-Thing:  some thing \r\n\r\n")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.text().splitlines(), ["GET /show/a b/c", "query x=%20y", "peer 127.0.0.1",
                                                      "client 127.0.0.1", "param a b/c",
                                                      "host: h", "x-thing: some thing"])
        self.assertIn("param x/y%z", self.client.ask(GET.format("/rest/x/y%25z")).text())
        self.assertIn("date", answer.headers)

    def test_bodies_come_back(self):
        for size in (0, 1, 1000, 1500000):
            body = "".join(random.choices("abc\r\n0", k=size))
            self.assertEqual(self.client.ask(post("/echo", body)).text(), body)
            chunks = "".join(f"{len(body[i:i + 70001]):x}\r\n{body[i:i + 70001]}\r\n" for i in range(0, size, 70001))
            answer = self.client.ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks +
                                     "0\r\nSome: trailer\r\n\r\n")
            self.assertEqual(answer.text(), body)

    def test_a_request_in_single_bytes(self):
        for byte in post("/echo", "hello"):
            self.client.send(byte)
        self.assertEqual(self.client.response().text(), "hello")

    def test_expect_continue(self):
        head = "POST {} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n"
        self.client.send(head.format("/echo", 5))
        self.assertEqual(self.client.head(), (100, {}))
        self.assertEqual(self.client.ask("hello").text(), "hello")
        self.client.send(head.format("/echo", 5) + "hello")
        self.assertEqual(self.client.response().text(), "hello")
        for path, size, status in (("/nowhere", 5, 404), ("/echo", 2000001, 413)):
            with self.server.connect() as client:
                self.assertEqual(client.ask(head.format(path, size)).status, status)
                self.assertTrue(client.ended())

    def test_pipelined_requests_are_answered_in_order(self):
        count = 100
        self.client.send("".join(post("/echo", str(i)) + GET.format(f"/stream?n=1&size={i}") for i in range(count)))
        for i in range(count):
            self.assertEqual(self.client.response().text(), str(i))
            self.assertEqual(self.client.response().text(), f"data: {'x' * i}\n\n")

    def test_http_1_0(self):
        with self.server.connect() as client:
            answer = client.ask("GET /show HTTP/1.0\r\n\r\n")
            self.assertEqual((answer.status, answer.headers["connection"]), (200, "close"))
            self.assertTrue(client.ended())
        with self.server.connect() as client:
            answer = client.ask("GET /stream?n=2&size=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            self.assertNotIn("transfer-encoding", answer.headers)
            self.assertEqual(answer.text(), "data: x\n\n" * 2)
        for _ in range(2):
            answer = self.client.ask("GET /show HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            self.assertEqual(answer.headers["connection"], "keep-alive")

    def test_head_has_the_headers_of_get(self):
        got = self.client.ask(GET.format("/large?bytes=77"))
        head = self.client.ask("HEAD /large?bytes=77 HTTP/1.1\r\nHost: a\r\n\r\n", bodiless=True)
        self.assertEqual((head.status, head.headers["content-length"]), (200, "77"))
        self.assertEqual(set(got.headers), set(head.headers))
        self.client.ask("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n", bodiless=True)
        self.client.ask("HEAD /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", bodiless=True)
        self.assertEqual(self.client.ask(GET.format("/show")).status, 200)

    def test_options(self):
        answer = self.client.ask("OPTIONS /show HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual((answer.status, answer.headers["allow"]), (204, "GET, HEAD, POST, OPTIONS"))
        self.assertNotIn("access-control-allow-origin", answer.headers)
        answer = self.client.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(answer.headers["allow"], "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
        self.assertEqual(self.client.ask("OPTIONS /nowhere HTTP/1.1\r\nHost: a\r\n\r\n").status, 404)

    def test_errors_have_the_applications_shape(self):
        answer = self.client.ask(GET.format("/no%22where"))
        self.assertEqual((answer.status, answer.headers["content-type"]), (404, "application/json"))
        self.assertEqual(json.loads(answer.body), {"status": 404, "path": '/no"where',
                                                   "error": "there is nothing at this path"})
        answer = self.client.ask("DELETE /show HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "GET, HEAD, POST, OPTIONS"))
        self.assertEqual(self.client.ask(GET.format("/show")).status, 200)  # the connection lives on
        self.assertEqual(json.loads(self.client.ask(GET.format("/fail")).body)["error"], 'said "no"')
        answer = self.client.ask("nonsense\r\n\r\n")
        self.assertEqual((answer.status, answer.headers["connection"]), (400, "close"))
        self.assertEqual(json.loads(answer.body)["path"], "")
        self.assertTrue(self.client.ended())

    def test_a_refused_body_is_not_taken_for_a_request(self):
        answer = self.client.ask(post("/nowhere", GET.format("/show")))
        self.assertEqual((answer.status, answer.headers["connection"]), (404, "close"))
        self.assertTrue(self.client.ended())

    def test_headers_cannot_be_forged(self):
        self.assertEqual(self.client.ask(GET.format("/header")).headers["x-quoted"], "a  x-forged: b")

    def test_an_aborted_answer_is_seen_to_be_cut(self):
        self.client.send(GET.format("/abort"))
        self.client.head()
        self.assertEqual(self.client.chunk(), b"half")
        self.assertTrue(self.client.ended())


class Smuggling(Shared):
    def refused(self, text, status=400):
        with self.server.connect() as client:
            answer = client.ask(text)
            self.assertEqual((answer.status, answer.headers["connection"]), (status, "close"), text)
            self.assertTrue(client.ended(), text)

    def test_what_is_unclear_is_refused_and_the_rest_not_read(self):
        hidden = GET.format("/show")
        for headers in ("Content-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length: 4\r\nContent-Length: 5",
                        "Content-Length: 4, 4", "Content-Length: +4", "Content-Length : 4",
                        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding:\x0bchunked",
                        "X: a\r\n Content-Length: 4", "X: a\nContent-Length: 4", "X: a\rContent-Length: 4", "X: \0",
                        "Host: b"):
            self.refused(f"POST /echo HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n0\r\n\r\n{hidden}")
        self.refused(f"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{hidden}", 501)
        self.refused(f"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}")
        for chunks in ("4\nabcd\r\n0\r\n\r\n", "4\r\nabcd\n0\r\n\r\n", "0x4\r\nabcd\r\n0\r\n\r\n", "4 \r\nabcd\r\n0\r\n\r\n",
                       "4\r\nabcdef\r\n0\r\n\r\n", "-4\r\nabcd\r\n", "4;a\nb\r\nabcd\r\n0\r\n\r\n", "0\r\nX y\r\n\r\n"):
            self.refused(f"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{hidden}")
        self.refused("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n" + hidden)
        self.refused("GET /a/../show HTTP/1.1\r\nHost: a\r\n\r\n" + hidden)
        self.refused("GET /show HTTP/3.0\r\nHost: a\r\n\r\n" + hidden, 505)


class Vanishing(Shared):
    def test_leaving_before_the_first_byte_cancels(self):
        for leave in (lambda s: s.close(), reset, lambda s: s.shutdown(socket.SHUT_WR)):
            before = self.server.stats()
            client = self.server.connect()
            client.send(GET.format("/wait"))
            self.server.wait_for(live=before["live"] + 1)
            leave(client.sock)
            self.server.wait_for(live=before["live"], app_gone=before["app_gone"] + 1, exchanges=1)
            client.sock.close()

    def test_leaving_in_mid_stream_cancels(self):
        for leave in (lambda s: s.close(), reset, lambda s: s.shutdown(socket.SHUT_WR)):
            before = self.server.stats()
            client = self.server.connect()
            client.send(GET.format("/stream?n=1000000&ms=1"))
            client.head()
            client.chunk()
            leave(client.sock)
            self.server.wait_for(live=before["live"], app_gone=before["app_gone"] + 1)
            client.sock.close()

    def test_leaving_in_mid_body_frees_it(self):
        client = self.server.connect()
        client.send(post("/echo", "x" * 1000000)[:-1])
        self.server.wait_for(bodies=lambda now: now >= 900000)
        client.sock.close()
        self.server.wait_for(bodies=0)

    def test_an_answer_that_is_complete_reaches_a_half_closed_client(self):
        self.client.send(GET.format("/large?bytes=3000000") * 2)
        self.client.sock.shutdown(socket.SHUT_WR)
        for _ in range(2):
            self.assertEqual(len(self.client.response().body), 3000000)
        self.assertTrue(self.client.ended())

    def test_a_late_answer_does_not_reach_another_client(self):
        for _ in range(20):
            with self.server.connect() as client:
                client.send(GET.format("/late?ms=20"))
        for _ in range(20):
            self.assertEqual(self.client.ask(GET.format("/large?bytes=3")).text(), "zzz")
            with self.server.connect() as client:
                self.assertEqual(client.ask(GET.format("/large?bytes=3")).text(), "zzz")
            time.sleep(0.02)
        self.server.wait_for(exchanges=1, open=2)


    def test_a_late_answer_does_not_reach_who_waits_in_its_place(self):
        with Server("connections=3") as server:
            with server.connect() as gone:
                gone.send(GET.format("/held"))
                server.wait_for(exchanges=2)
            server.wait_for(exchanges=1, open=1)
            with server.connect() as one, server.connect() as two:  # one of them has the place
                one.send(GET.format("/wait"))
                two.send(GET.format("/wait"))
                server.wait_for(live=2, open=3)
                self.assertEqual(server.get("/release").status, 200)
                self.assertEqual(server.wait_for(open=3)["exchanges"], 3)


class Crowds(Shared):
    def test_two_hundred_streams_of_which_a_third_vanishes(self):
        wrong, choice = [], random.Random(1)
        vanish_at = [choice.randrange(30) if choice.random() < 1 / 3 else None for _ in range(200)]

        def stream(number):
            try:
                with self.server.connect() as client:
                    pieces = 30 if vanish_at[number] is None else 1000000
                    client.send(GET.format(f"/stream?n={pieces}&ms=10&size={number}"))
                    client.head()
                    for i in range(30):
                        if i == vanish_at[number]:
                            return reset(client.sock) if number % 2 else None
                        if client.chunk() != b"data: " + b"x" * number + b"\n\n":
                            wrong.append(number)
                    if client.chunk() != b"":
                        wrong.append(number)
            except Exception as error:  # a thread's own would be lost
                wrong.append((number, repr(error)))

        gone = self.server.stats()["app_gone"]
        threads = [threading.Thread(target=stream, args=(i,)) for i in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        stats = self.server.wait_for(live=0, exchanges=1, open=2, bodies=0)
        self.assertEqual(stats["app_gone"] - gone, sum(at is not None for at in vanish_at))

    def test_a_slow_reader_pauses_only_itself(self):
        pauses = self.server.stats()["pauses"]
        with self.server.connect() as slow:
            slow.send(GET.format("/flood?n=1000&size=20000"))
            slow.head()
            self.server.wait_for(pauses=lambda now: now > pauses)
            for _ in range(3):
                self.assertEqual(len(self.client.ask(GET.format("/flood?n=100&size=20000")).body), 100 * 20008)
            body = b"".join(iter(slow.chunk, b""))
            self.assertEqual(len(body), 1000 * 20008)
        self.server.wait_for(live=0)


class Shortage(unittest.TestCase):
    """One address may have as many connections as the limit says, and others a third more."""

    def serve(self, *settings):
        self.server = Server(*settings)
        self.addCleanup(self.server.stop)

    def connect(self, address="127.0.0.1"):
        client = self.server.connect(address)
        self.addCleanup(client.sock.close)
        return client

    def busy(self, *addresses):
        """Clients whose answers never come."""
        live = self.server.stats()["live"]
        clients = [self.connect(address) for address in addresses]
        for client in clients:
            client.send(GET.format("/wait"))
        self.server.wait_for(live=live + len(clients))
        return clients

    def idle(self, *addresses):
        """Clients that have had an answer, one after the other, and ask for nothing more."""
        clients = []
        for address in addresses:
            clients.append(self.connect(address))
            self.assertEqual(clients[-1].ask(GET.format("/show")).status, 200)
        return clients

    def show(self, address="127.0.0.1"):
        return self.connect(address).ask(GET.format("/show"))

    def test_an_address_leaves_connections_to_others(self):
        self.serve("connections=3")
        self.busy(*["127.0.0.1"] * 3)
        refused = self.show()
        self.assertEqual((refused.status, refused.headers["retry-after"]), (503, "1"))
        self.assertEqual(refused.headers["connection"], "close")
        self.assertIn("too many connections", refused.text())
        self.assertEqual(self.connect().ask(post("/echo", "body")).status, 503)
        other = self.idle("127.0.0.2")[0]
        self.assertEqual(other.ask(GET.format("/show")).status, 200)
        self.assertEqual(self.server.stats()["refused"], 2)

    def test_what_is_always_answered_is(self):
        self.serve("connections=3", "spare=2")
        self.busy("127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2")
        self.assertEqual(self.show("127.0.0.3").status, 503)
        for address in ("127.0.0.1", "127.0.0.3"):
            answer = self.connect(address).ask(GET.format("/stats"))
            self.assertEqual((answer.status, answer.headers["connection"]), (200, "close"))
        silent = [self.connect() for _ in range(9)]  # which are too many even to be told so
        self.assertEqual(self.server.stats()["live"], 4)
        self.assertTrue(silent[0].ended())
        self.assertEqual(self.show().status, 503)

    def test_who_came_too_early_is_served_when_there_is_room(self):
        self.serve("connections=3")
        busy = self.busy(*["127.0.0.1"] * 3)
        early = self.connect()
        early.send("GET /show HTTP/1.1\r\n")
        busy[0].sock.close()
        self.server.wait_for(live=2)
        answer = early.ask("Host: a\r\n\r\n")
        self.assertEqual((answer.status, answer.headers.get("connection")), (200, None))
        self.assertEqual(early.ask(GET.format("/show")).status, 200)

    def test_idle_ones_make_way(self):
        self.serve("connections=3")
        first, second, third = self.idle(*["127.0.0.1"] * 3)
        self.assertEqual(first.ask(GET.format("/show")).status, 200)  # the second has been idle for longest now
        self.assertEqual(self.show().status, 200)
        self.assertTrue(second.ended())
        for client in (first, third):
            self.assertEqual(client.ask(GET.format("/show")).status, 200)
        self.assertEqual(self.server.stats()["yielded"], 2)  # who asks for it takes a place, too

    def test_those_of_the_address_with_the_most_make_way_first(self):
        self.serve("connections=3")
        many, other = self.idle(*["127.0.0.1"] * 3), self.idle("127.0.0.2")[0]
        for client in many:  # the other one has been idle for longest now
            self.assertEqual(client.ask(GET.format("/show")).status, 200)
        self.assertEqual(self.show("127.0.0.3").status, 200)
        self.assertTrue(many[0].ended())
        self.assertEqual(other.ask(GET.format("/show")).status, 200)

    def test_slow_senders_make_way(self):
        self.serve("connections=3")
        heads = [self.connect() for _ in range(3)]
        for client in heads:
            client.send("GET /show HTTP/1.1\r\nX: ")
        deadline = time.monotonic() + PATIENCE
        while self.show().status != 200:  # what they sent has yet to be read
            self.assertLess(time.monotonic(), deadline)
        self.assertGreaterEqual(self.server.stats()["yielded"], 1)
        bodies = [self.connect() for _ in range(3)]
        for client in bodies:
            client.send(post("/echo", "body")[:-1])
        self.server.wait_for(bodies=9)
        self.busy("127.0.0.2")
        self.assertEqual(self.show().status, 503)  # its own are as good as the new one
        self.assertEqual(self.show("127.0.0.3").status, 200)
        self.server.wait_for(bodies=6)

    def test_a_storm_of_connections_shuts_nobody_out(self):
        self.serve("connections=20")
        storm = [self.connect() for _ in range(400)]
        for client in storm[:200:7]:
            try:
                client.send("GET /")
            except OSError:
                pass  # it was closed
        self.assertEqual(self.show("127.0.0.2").status, 200)
        self.assertEqual(self.show().status, 200)
        stats = self.server.stats()
        self.assertLessEqual(stats["open"], 27 + 32)  # with spare ones
        self.assertGreater(stats["yielded"], 300)


class Limits(unittest.TestCase):
    def serve(self, *settings):
        server = Server(*settings)
        self.addCleanup(server.stop)
        return server

    def test_sizes(self):
        server = self.serve("head_bytes=1000", "headers=10", "body_bytes=100", "bodies_bytes=300")
        rows = [
            (GET.format("/show?" + "x" * 1000), 414),
            ("GET /show HTTP/1.1\r\nHost: a\r\nX: " + "x" * 1000 + "\r\n\r\n", 431),
            ("GET /show HTTP/1.1\r\nHost: a\r\n" + "X: y\r\n" * 10 + "\r\n", 431),
            (post("/echo", "x" * 101), 413),
            (post("/echo", "x" * 100), 200),
            (post("/ten", "x" * 11), 413),
            (post("/ten", "x" * 10), 200),
            ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", 413),
        ]
        for text, status in rows:
            self.assertEqual(server.ask(text).status, status, text)
        with server.connect() as one, server.connect() as two:
            one.send(post("/echo", "x" * 100)[:-1])
            server.wait_for(bodies=99)
            self.assertEqual(two.ask(post("/echo", "x" * 100)).status, 503)
            self.assertEqual(one.ask("x").status, 200)

    def test_the_room_of_a_body_is_given_back(self):
        server = self.serve("body_bytes=100", "bodies_bytes=300")
        whole = post("/echo", "x" * 100)
        chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        for _ in range(3):  # each alone takes so much that there is none left for another
            self.assertEqual(server.ask(whole).status, 200)
            with server.connect() as leaves:
                leaves.send(whole[:-1])
                server.wait_for(bodies=99)
            server.wait_for(bodies=0, open=1)
            self.assertEqual(server.ask(chunked + "60\r\n" + "x" * 96 + "\r\n60\r\n").status, 413)
            with server.connect() as slow:  # pieces take no more than the whole
                for first, last in ((0, -60), (-60, -20)):
                    slow.send(whole[first:last])
                    server.wait_for(bodies=100 + last)
                self.assertEqual(slow.ask(whole[-20:]).status, 200)
            with server.connect() as waits:
                waits.send(post("/wait", "x" * 100))
                server.wait_for(live=1, bodies=0)
                self.assertEqual(server.ask(post("/ten", "x" * 10)).status, 200)
            server.wait_for(live=0)

    def test_a_large_refused_body_still_shows_the_answer(self):
        server = self.serve("body_bytes=100")
        with server.connect() as client:
            client.send(POST.format("/echo", 5000000, ""))
            try:
                client.send("x" * 5000000)
            except OSError:
                pass  # it need not take it all
            self.assertEqual(client.response().status, 413)

    def test_what_still_comes_of_a_refused_body_is_waited_for(self):
        server = self.serve("body_bytes=100", "linger_ms=200", "body_ms=800")

        def send(client, seconds):
            """The longest pause, and whether a byte now and then was taken for so long."""
            begin = last = time.monotonic()
            pause = 0
            while last < begin + seconds:
                time.sleep(0.01)
                pause, last = max(pause, time.monotonic() - last), time.monotonic()
                try:
                    client.send("x")
                except OSError:
                    return pause, False
            return pause, True
        for _ in range(50):  # as often as the machine lets us sleep for too long
            with server.connect() as client:
                client.send(POST.format("/echo", 5000000, ""))
                self.assertEqual(client.response().status, 413)
                pause, taken = send(client, 0.4)
                if not taken and pause > 0.1:
                    continue
                self.assertTrue(taken)
                self.assertFalse(send(client, PATIENCE)[1])  # and not for ever
                return
        self.skipTest("this machine is too busy")

    def trickle(self, client, text):
        """Sends a byte every 20 ms; false when the server would not hear the end of it."""
        client.sock.settimeout(0.02)
        for byte in text:
            client.send(byte)
            try:
                if client.more():
                    client.sock.settimeout(PATIENCE)
                    return False
            except TimeoutError:
                pass
        return True

    def test_times(self):
        server = self.serve("head_ms=300", "body_ms=300", "idle_ms=2000")
        start = time.monotonic()
        with server.connect() as head, server.connect() as body, server.connect() as idle, server.connect() as busy:
            body.send(post("/echo", "hello")[:-1])
            busy.send(GET.format("/stream?n=2&ms=1100"))
            self.assertFalse(self.trickle(head, "GET /show HTTP/1.1\r\nX: " + "y" * 1000))
            self.assertEqual(head.response().status, 408)
            self.assertEqual(body.response().status, 408)
            self.assertTrue(idle.ended())
            self.assertGreater(time.monotonic() - start, 1.9)
            self.assertEqual(busy.response().text(), "data: xxxxxxxxxx\n\n" * 2)
        self.assertEqual(server.wait_for(live=0, open=1)["timed_out"], 2)

    def test_many_slow_senders_keep_nobody_out(self):
        server = self.serve("head_ms=300")
        slow = [server.connect() for _ in range(100)]
        for client in slow:
            client.send("GET /show HTTP/1.1\r\nX: ")
        self.assertEqual(server.get("/show").status, 200)
        for client in slow:
            self.assertEqual(client.response().status, 408)
            client.sock.close()
        server.wait_for(open=1)

    def test_who_sends_too_much_ahead_is_cut_off(self):
        server = self.serve("pipeline_bytes=10000")
        with server.connect() as client:
            try:
                client.send(GET.format("/wait") + GET.format("/show") * 100000)
                self.assertTrue(client.ended())
            except OSError:
                pass
        self.assertEqual(server.wait_for(live=0)["app_gone"], 1)

    def test_a_pipeline_without_end_is_served_while_it_is_read(self):
        server = self.serve("pipeline_bytes=10000", "output_pause=10000")
        with server.connect() as client:
            sender = threading.Thread(target=client.send, args=(GET.format("/large?bytes=500") * 5000,))
            sender.start()
            for _ in range(5000):
                self.assertEqual(len(client.response().body), 500)
            sender.join()

    def test_who_reads_nothing_is_dropped(self):
        server = self.serve("output_drop=1000000", "send_ms=500")
        with server.connect() as rude, server.connect() as deaf:
            rude.send(GET.format("/flood?rude=1&n=10000&size=10000"))
            deaf.send(GET.format("/large?bytes=30000000"))
            self.assertEqual(server.wait_for(slow=2, open=1)["app_gone"], 1)
        self.assertEqual(server.stop().count("http.slow"), 2)


class Counting(unittest.TestCase):
    def test_what_comes_and_goes_is_counted(self):
        server = Server()
        self.addCleanup(server.stop)
        before = server.stats()
        with server.connect() as client, server.connect() as leaves:
            asked = [GET.format("/large?bytes=1000"), GET.format("/nowhere"), post("/echo", "hello")]
            for text in asked:
                client.ask(text)
            self.assertEqual(server.wait_for(open=3)["exchanges"], 1)
            leaves.send(GET.format("/wait"))
            now = server.wait_for(live=1, open=3)
            self.assertEqual((now["exchanges"], now["gone"]), (2, 0))
        after = server.wait_for(live=0, open=1)
        self.assertEqual((after["gone"], after["bad"] - before["bad"]), (1, 1))
        self.assertEqual(after["refused"] + after["yielded"] + after["slow"] + after["timed_out"], 0)

    def test_bytes_connections_and_answers(self):
        server = Server()
        self.addCleanup(server.stop)
        with server.connect() as client:
            def stats():
                client.send(GET.format("/stats"))
                status, headers = client.head()
                self.assertEqual(status, 200)
                return json.loads(client.exactly(int(headers["content-length"])))
            first, second = stats(), stats()
            self.assertEqual((first["accepted"], first["open"], first["exchanges"]), (1, 1, 1))
            self.assertEqual(second["in"] - first["in"], len(GET.format("/stats")))
            self.assertEqual((second["ok"] - first["ok"], second["accepted"]), (1, 1))
            client.ask(GET.format("/large?bytes=100000"))
            third = stats()
            self.assertGreater(third["out"] - second["out"], 100000)
            self.assertLess(third["out"] - second["out"], 102000)
            self.assertEqual((third["ok"] - second["ok"], third["bad"]), (2, 0))


class Access(unittest.TestCase):
    def serve(self, *settings):
        server = Server(*settings)
        self.addCleanup(server.stop)
        return server

    def test_keys_are_asked_for_before_the_body(self):
        server = self.serve("key=secret")
        head = "POST /echo HTTP/1.1\r\nHost: a\r\n{}Content-Length: 5\r\n\r\n"
        for header in ("", "Authorization: Bearer wrong\r\n", "Authorization: Basic secret\r\n", "X-Api-Key: secre\r\n"):
            with server.connect() as client:
                answer = client.ask(head.format(header))
                self.assertEqual((answer.status, answer.headers["www-authenticate"]), (401, "Bearer"))
        for header in ("Authorization: Bearer secret\r\n", "authorization: bearer  secret\r\n", "x-api-key: secret\r\n",
                       "X-Goog-Api-Key: secret\r\n"):
            self.assertEqual(server.ask(head.format(header) + "hello").text(), "hello")
        self.assertEqual(server.get("/stats").status, 200)
        self.assertEqual(server.ask("OPTIONS /echo HTTP/1.1\r\nHost: a\r\n\r\n").status, 204)

    def test_pages_of_named_origins_may_call(self):
        server = self.serve("origin=https://one.example", "origin=https://two.example")
        ask = "{} /echo HTTP/1.1\r\nHost: a\r\nOrigin: {}\r\n{}\r\n"
        wish = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type, x-y\r\n"
        answer = server.ask(ask.format("OPTIONS", "https://two.example", wish))
        self.assertEqual(answer.status, 204)
        self.assertEqual(answer.headers["access-control-allow-origin"], "https://two.example")
        self.assertEqual(answer.headers["access-control-allow-methods"], "POST, OPTIONS")
        self.assertEqual(answer.headers["access-control-allow-headers"], "content-type, x-y")
        self.assertEqual(answer.headers["vary"], "origin")
        answer = server.ask(ask.format("POST", "https://one.example", "Content-Length: 0\r\n"))
        self.assertEqual(answer.headers["access-control-allow-origin"], "https://one.example")
        for method in ("OPTIONS", "POST"):
            answer = server.ask(ask.format(method, "https://three.example", ""))
            self.assertNotIn("access-control-allow-origin", answer.headers)

    def test_any_origin(self):
        server = self.serve("origin=*")
        answer = server.ask("GET /nowhere HTTP/1.1\r\nHost: a\r\nOrigin: null\r\n\r\n")
        self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (404, "*"))
        self.assertNotIn("vary", answer.headers)  # it is the same for all


class Listening(unittest.TestCase):
    def fails(self, *settings):
        with self.assertRaises(RuntimeError) as caught:
            Server(*settings)
        return str(caught.exception)

    def test_what_cannot_be_had_is_said(self):
        with Server() as server:
            self.assertEqual(self.fails(f"port={server.port}"), f'port {server.port} of "127.0.0.1" is in use by another '
                             "program: stop it or choose another port")
        self.assertIn('"192.0.2.1" is not an address of this machine', self.fails("host=192.0.2.1"))
        self.assertIn('host "no.such.host.invalid" is not known', self.fails("host=no.such.host.invalid"))
        for port in (-1, 65536, 70000):
            self.assertIn(f"port {port} does not exist", self.fails(f"port={port}"))

    def test_an_address_of_ipv6(self):
        try:
            server = Server("host=::1")
        except RuntimeError as why:
            self.skipTest(str(why))
        with socket.create_connection(("::1", server.port), PATIENCE) as sock:
            client = clients.Client(sock)
            self.assertIn("peer ::1\n", client.ask(GET.format("/show")).text())
            client.ask(post("/drain", ""))
        server.stop()

    def test_a_socket_takes_no_files_place(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            path = os.path.join(folder, "file")
            with open(path, "w", encoding="utf-8") as file:
                file.write("mine")
            self.assertIn("in use by another program", self.fails("host=unix:" + path))
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "mine")
            most = 103 if sys.platform == "darwin" else 107
            for wrong in ("", folder.ljust(most + 1, "x")):
                self.assertIn(f"must have 1 to {most} bytes", self.fails("host=unix:" + wrong))
            longest = os.path.join(folder, "").ljust(most, "x")
            server = Server("host=unix:" + longest)
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(longest)
                clients.Client(sock).ask(post("/drain", ""))
            server.stop()

    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # the path of a socket has to be short
            path = os.path.join(folder, "socket")
            stale = socket.socket(socket.AF_UNIX)
            stale.bind(path)
            stale.close()
            server = Server("host=unix:" + path)
            self.assertIn("in use by another program", self.fails("host=unix:" + path))
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(path)
                client = clients.Client(sock)
                self.assertIn("peer unix", client.ask(GET.format("/show")).text())
                client.ask(post("/drain", ""))
            server.stop()
            self.assertFalse(os.path.exists(path))


class Draining(unittest.TestCase):
    def test_what_runs_ends_and_the_rest_is_closed(self):
        server = Server()
        with server.connect() as idle, server.connect() as busy, server.connect() as begun, server.connect() as late:
            idle.ask(GET.format("/show"))
            busy.send(GET.format("/flood?n=1000&size=20000"))  # ends when it is read
            busy.head()
            begun.send("GET /release HTTP/1.1\r\n")
            late.send(GET.format("/held"))
            server.wait_for(exchanges=3)
            server.ask(post("/drain?ms=600000", ""))
            self.assertTrue(idle.ended())
            with self.assertRaises(OSError):
                server.connect()
            answer = begun.ask("Host: a\r\n\r\n")
            self.assertEqual((answer.status, answer.headers["connection"]), (200, "close"))
            self.assertEqual(late.response().headers["connection"], "close")
            self.assertEqual(len(b"".join(iter(busy.chunk, b""))), 1000 * 20008)
            self.assertTrue(busy.ended())
        server.stop()

    def test_a_deadline_ends_it(self):
        server = Server()
        with server.connect() as client, server.connect() as stream:
            client.send(GET.format("/wait"))
            stream.send(GET.format("/stream?n=100000&ms=10"))
            server.wait_for(live=2)
            start = time.monotonic()
            server.ask(post("/drain?ms=500", ""))
            self.assertTrue(client.ended())
            self.assertGreater(time.monotonic() - start, 0.49)
        server.stop()


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name in ("one", "two"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                            "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                            cls.path(name + ".key"), "-out", cls.path(name + ".pem")], check=True, capture_output=True)
        subprocess.run(["openssl", "ec", "-in", cls.path("one.key"), "-aes128", "-passout", "pass:x", "-out",
                        cls.path("locked.key")], check=True, capture_output=True)
        with open(cls.path("junk"), "w", encoding="utf-8") as file:
            file.write("junk\n")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def settings(self, certificate, key):
        return ["certificate=" + self.path(certificate), "tls_key=" + self.path(key)]

    def secure(self, server, **options):
        context = ssl.create_default_context(cafile=self.path("one.pem"))
        context.set_alpn_protocols(["h2", "http/1.1"])
        sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        return clients.Client(context.wrap_socket(sock, server_hostname="localhost", **options))

    def test_files_that_do_not_do_are_named(self):
        rows = [
            (("none.pem", "one.key"), 'certificate file ".*none.pem" cannot be read: No such file'),
            (("one.pem", "none.key"), 'key file ".*none.key" cannot be read: No such file'),
            (("junk", "one.key"), 'certificate file ".*junk" holds no certificate that can be used: give a PEM file'),
            (("one.pem", "junk"), 'key file ".*junk" holds no key that can be used'),
            (("one.pem", "locked.key"), 'key file ".*locked.key" holds no key that can be used: .* without a passphrase'),
            (("one.pem", "two.key"), 'key file ".*two.key" does not belong to certificate ".*one.pem"'),
        ]
        for files, sentence in rows:
            with self.assertRaisesRegex(RuntimeError, sentence):
                Server(*self.settings(*files))
        with self.assertRaisesRegex(RuntimeError, "give both"):
            Server(self.settings("one.pem", "one.key")[0])

    def test_everything_works_inside_tls(self):
        server = Server(*self.settings("one.pem", "one.key"), leaks=True)
        with self.secure(server) as client:
            self.assertEqual(client.sock.selected_alpn_protocol(), "http/1.1")
            body = "z" * 1000000
            self.assertEqual(client.ask(post("/echo", body)).text(), body)
            client.send(GET.format("/stream?n=5&size=1") * 3)
            for _ in range(3):
                self.assertEqual(client.response().text(), "data: x\n\n" * 5)
            self.assertEqual(len(client.ask(GET.format("/flood?n=1000&size=10000")).body), 10008000)
            self.assertEqual(client.ask("nonsense\r\n\r\n").status, 400)
            self.assertTrue(client.ended())
        self.leave_early(server)
        self.drain(server)

    def leave_early(self, server):
        for leave in (lambda s: s.close(), lambda s: reset(s), lambda s: s.unwrap()):
            with self.secure(server) as watcher:
                before = json.loads(watcher.ask(GET.format("/stats")).body)["app_gone"]
                client = self.secure(server)
                client.send(GET.format("/stream?n=1000000&ms=1"))
                client.head()
                try:
                    leave(client.sock)
                except (OSError, ssl.SSLError):
                    pass  # what the server still sends is in the way of the goodbye
                deadline = time.monotonic() + PATIENCE
                while json.loads(watcher.ask(GET.format("/stats")).body)["app_gone"] == before:
                    self.assertLess(time.monotonic(), deadline)
                client.sock.close()

    def test_who_does_not_speak_tls_is_closed(self):
        server = Server(*self.settings("one.pem", "one.key"), "head_ms=500")
        with server.connect() as plain, server.connect() as mute:
            plain.send(GET.format("/show"))
            try:
                plain.rest()
            except OSError:
                pass
            self.assertTrue(mute.ended())  # a handshake may not take forever
        self.drain(server)

    def drain(self, server):
        while server.process.poll() is None:
            try:
                with self.secure(server) as client:
                    client.ask(post("/drain", ""))
                    self.assertTrue(client.ended())
                break
            except (OSError, EOFError):
                pass  # its handshake took too long
        server.stop()


class WebSockets(Shared):
    """Of the routes below /socket."""

    def open(self, path="/socket", server=None, **headers):
        made = websocket.WebSocket((server or self.server).connect().sock, path, **headers)
        self.addCleanup(made.sock.close)
        return made

    def test_messages_come_back(self):
        ws = self.open()
        for size in (1, 125, 126, 65535, 65536, 1500000):
            text = "".join(random.choices("abc\u00e9\U0001f600", k=size // 2 or 1))
            ws.send(text, mask=websocket.random_mask())
            self.assertEqual(ws.text(), text)

    def test_each_line_is_a_message(self):
        ws = self.open()
        ws.send("one\ntwo\n\nthree\n")
        self.assertEqual([ws.receive() for _ in range(4)], [(websocket.TEXT, b"one"), (websocket.TEXT, b"two"),
                                                            (websocket.PING, b""), (websocket.TEXT, b"three")])

    def test_a_message_is_a_post_and_the_socket_has_a_state(self):
        one, other = self.open(), self.open()
        for count in range(1, 4):
            one.send("count")
            self.assertEqual(one.text(), f"POST {count}")
        other.send("count")
        self.assertEqual(other.text(), "POST 1")
        stats = self.server.stats()
        self.assertGreaterEqual(stats["sockets"], 2)
        one.sock.close()
        other.sock.close()
        self.server.wait_for(sockets=lambda n: n <= stats["sockets"] - 2)

    def test_single_bytes_and_fragments(self):
        ws = self.open()
        whole = (websocket.frame("he", last=False) + websocket.frame("p", websocket.PING) +
                 websocket.frame("", 0, last=False) + websocket.frame("llo", 0))
        for byte in whole:
            ws.send_raw(bytes([byte]))
        self.assertEqual(ws.receive(), (websocket.PONG, b"p"))
        self.assertEqual(ws.text(), "hello")

    def test_many_messages_at_once(self):
        ws = self.open()
        ws.send_raw(b"".join(websocket.frame(f"m{i}") for i in range(200)))
        self.assertEqual([ws.text() for _ in range(200)], [f"m{i}" for i in range(200)])

    def test_what_breaks_the_rules(self):
        frame = websocket.frame
        rules = [(1002, frame("a", mask=None)), (1002, frame("a", flags=0x40)), (1002, frame("a", 3)),
                 (1002, frame("a", 11)), (1002, frame("a", 0)), (1002, frame("a", last=False) + frame("b")),
                 (1002, frame("a", websocket.PING, last=False)), (1002, frame("a" * 126, websocket.PING)),
                 (1002, frame("a", length=16)), (1002, frame("a" * 300, length=64)),
                 (1002, bytes([0x81, 0xFF]) + b"\xff" * 12), (1002, frame("x", websocket.CLOSE)),
                 (1002, websocket.close_frame(999)), (1002, websocket.close_frame(1005)),
                 (1002, websocket.close_frame(5000)), (1007, websocket.close_frame(1000, b"\xff")),
                 (1007, frame(b"\xc3")), (1007, frame(b"\xed\xa0\x80")), (1003, frame("a", websocket.BINARY)),
                 (1009, bytes([0x81, 0xFF]) + struct.pack(">Q", 2000001) + b"1234")]
        beside = self.open()
        for code, data in rules:
            ws = self.open()
            ws.send_raw(data)
            self.assertEqual(ws.closed(), code, data[:20])
        beside.send("still here")
        self.assertEqual(beside.text(), "still here")

    def test_a_limit_of_the_route_holds_for_all_fragments(self):
        ws = self.open("/socket/ten")
        ws.send("0123456789")
        self.assertEqual(ws.text(), "0123456789")
        ws.send("01234", last=False)
        ws.send("567890", 0)
        self.assertEqual(ws.closed(), 1009)

    def test_closing(self):
        for sent, code in ((websocket.close_frame(1000, b"bye"), 1000), (websocket.close_frame(3001), 3001),
                           (websocket.frame("", websocket.CLOSE), 1000)):
            ws = self.open()
            ws.send_raw(sent)
            self.assertEqual(ws.closed(), code)

    def test_control_frames_while_answering(self):
        ws = self.open("/socket/wait")
        ws.send("work")
        self.server.wait_for(live=1)
        ws.send("a", websocket.PING)
        self.assertEqual(ws.receive(), (websocket.PONG, b"a"))
        ws.send("b", websocket.PONG)
        gone = self.server.stats()["app_gone"]
        ws.send_raw(websocket.close_frame(1001))
        self.assertEqual(ws.closed(), 1001)
        self.server.wait_for(live=0, app_gone=gone + 1)

    def test_control_frames_that_lie_in_two_pieces_of_the_input(self):
        """A client that does not read its pongs makes the server stop between two pings, with some in the input."""
        with Server("output_pause=2000", leaks=True) as server:
            for size in range(100, 125):
                ws = self.open("/socket/wait", server)
                ws.send("work")
                server.wait_for(live=1)
                pings = [os.urandom(size) for _ in range(300)]
                ws.send_raw(b"".join(websocket.frame(ping, websocket.PING) for ping in pings))
                self.assertEqual([ws.receive() for _ in pings], [(websocket.PONG, ping) for ping in pings])
                ws.sock.close()
                server.wait_for(live=0)

    def test_a_client_that_leaves_is_noticed(self):
        for leave in (reset, lambda sock: sock.shutdown(socket.SHUT_WR)):
            ws = self.open("/socket/wait")
            ws.send("work")
            self.server.wait_for(live=1)
            leave(ws.sock)
            self.server.wait_for(live=0)

    def test_a_broken_frame_while_answering(self):
        ws = self.open("/socket/wait")
        ws.send("work")
        self.server.wait_for(live=1)
        ws.send_raw(websocket.frame("a" * 126, websocket.PING))
        self.assertEqual(ws.closed(), 1002)
        self.server.wait_for(live=0)

    def test_messages_answered_side_by_side(self):
        """As many as MT_LIMIT_HTTP_SOCKET_MANY beside one: what follows waits."""
        ws, limit = self.open("/socket/many"), 64 + 1
        ws.send("hold")
        ws.send("at once")
        self.assertEqual(ws.text(), "at once")
        ws.send("error")
        self.assertEqual(json.loads(ws.text())["error"]["status"], 422)
        ws.send_raw(websocket.frame("hold") * 2 + websocket.frame("more") + websocket.frame("p", websocket.PING))
        self.assertEqual([ws.text(), ws.receive()], ["more", (websocket.PONG, b"p")])
        self.assertEqual(self.server.get("/many").status, 200)
        self.assertEqual([ws.text() for _ in range(6)], ["held 2", "more", "held 1", "more", "held 0", "more"])
        gone = self.server.stats()["app_gone"]
        ws.send_raw(websocket.frame("hold") * limit + websocket.frame("late") + websocket.frame("a", last=False))
        self.server.wait_for(exchanges=limit + 1)  # and the one that asks
        self.assertEqual(self.server.get("/many").status, 200)
        lines = [ws.text() for _ in range(2 * limit + 1)]
        self.assertEqual(sorted(lines), sorted(["more"] * limit + ["late"] + [f"held {i}" for i in range(limit)]))
        ws.send("t once", 0)
        self.assertEqual(ws.text(), "at once")
        self.assertEqual(self.server.stats()["app_gone"], gone)

    def test_a_client_that_leaves_messages_is_noticed(self):
        gone = self.server.stats()["app_gone"]
        for leave in (lambda ws: reset(ws.sock), lambda ws: ws.sock.shutdown(socket.SHUT_WR),
                      lambda ws: ws.send_raw(websocket.close_frame(1000)),
                      lambda ws: ws.send_raw(websocket.frame("a" * 126, websocket.PING))):
            ws = self.open("/socket/many")
            ws.send_raw(websocket.frame("hold") * 3 + websocket.frame("here"))
            self.assertEqual(ws.text(), "here")
            leave(ws)
            gone += 3
            self.server.wait_for(app_gone=gone)
            self.assertEqual(self.server.get("/many").status, 200)  # handles of what has gone

    def test_errors_and_ends_of_answers(self):
        ws = self.open("/socket/fail")
        for _ in range(2):
            ws.send("x")
            self.assertEqual(json.loads(ws.text())["status"], 422)
        ws = self.open("/socket/abort")
        ws.send("x")
        self.assertEqual(ws.text(), "half")
        self.assertEqual(ws.closed(), 1011)

    def test_handshakes_that_are_none(self):
        for status, headers in ((426, {"Upgrade": None}), (426, {"Upgrade": "h2c"}), (426, {"Connection": "close"}),
                                (426, {"Sec_WebSocket_Version": "8"}), (400, {"Sec_WebSocket_Key": None}),
                                (400, {"Sec_WebSocket_Key": "short"}), (400, {"Sec_WebSocket_Key": "!" * 24})):
            with self.server.connect() as client:
                answer = client.ask(websocket.greeting("/socket", **headers))
                self.assertEqual(answer.status, status, headers)
                if status == 426:
                    self.assertEqual(answer.headers["sec-websocket-version"], "13")
        with self.server.connect() as client:
            self.assertEqual(client.ask(websocket.greeting("/socket").replace(b"HTTP/1.1", b"HTTP/1.0")).status, 426)
        with self.server.connect() as client:
            self.assertEqual(client.ask(websocket.greeting("/socket", Content_Length="3") + b"abc").status, 400)
        with self.server.connect() as client:
            self.assertEqual(client.ask(websocket.greeting("/show")).status, 200)  # who asks need not get one

    def test_keys_are_looked_at_for_each_message(self):
        with Server("key=secret") as server:
            with server.connect() as client:
                self.assertEqual(client.ask(websocket.greeting("/socket")).status, 401)
            ws = self.open(server=server, Authorization="Bearer secret")
            ws.send("a")
            self.assertEqual(ws.text(), "a")

    def test_a_slow_reader_pauses_its_producer_alone(self):
        with Server("output_pause=10000") as server:
            ws = self.open("/socket/flood?n=3000&size=10000", server=server)
            ws.send("go")
            server.wait_for(pauses=lambda n: n > 0)
            self.assertEqual(server.get("/show").status, 200)
            for _ in range(3000):
                self.assertEqual(len(ws.text()), 10006)

    def test_a_reader_that_reads_nothing_is_dropped(self):
        with Server("output_pause=10000", "output_drop=1000000") as server:
            ws = self.open("/socket/flood?n=100000&size=10000&rude=1", server=server)
            ws.send("go")
            server.wait_for(slow=1, live=0)

    def test_too_much_ahead_of_an_answer(self):
        with Server("pipeline_bytes=10000") as server:
            ws = self.open("/socket/wait", server=server)
            ws.send("work")
            server.wait_for(live=1)
            ws.send("a" * 20000)
            server.wait_for(live=0, sockets=0)

    def test_bodies_share_their_room(self):
        with Server("bodies_bytes=300") as server:
            ws = self.open(server=server)
            ws.send("a" * 200)
            self.assertEqual(ws.closed(), 1013)

    def test_times(self):
        with Server("head_ms=300", "body_ms=300", "idle_ms=300") as server:
            for begun in (b"\x81", websocket.frame("abc")[:-1], websocket.frame("a", last=False)):
                ws = self.open(server=server)
                ws.send_raw(begun)
                self.assertEqual(ws.closed(), 1008)

    def test_an_old_socket_is_closed(self):
        with Server("socket_ms=300", "idle_ms=100") as server:
            ws = self.open(server=server)
            self.assertEqual(json.loads(ws.text())["status"], 400)
            self.assertEqual(ws.closed(), 1001)

    def test_a_drain_says_goodbye(self):
        with Server() as server:
            idle, busy = self.open(server=server), self.open("/socket/wait", server=server)
            busy.send("work")
            server.wait_for(live=1)
            server.ask("POST /drain?ms=0 HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(idle.closed(), 1001)
            with self.assertRaises((EOFError, ConnectionResetError)):
                busy.text()


if __name__ == "__main__":
    clients.ECHO = sys.argv[1]
    outcome = unittest.main(argv=sys.argv[:1] + sys.argv[2:], exit=False, verbosity=2).result
    failed, skipped = len(outcome.failures) + len(outcome.errors), len(outcome.skipped)
    print(f"http_server: {outcome.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(bool(failed))
