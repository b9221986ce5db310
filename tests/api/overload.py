#!/usr/bin/env python3
"""A server is asked for ten times as much as it can do, and held by thousands of connections that want nothing, send
slowly, read nothing or are half open.

usage: tests/api/overload.py --motet PROGRAM [--seconds 600] [--times 10] [--connections 10000] [--fresh]

First it is found out how many answers a second there are at best, with twice as many clients as there are seats. Then
requests come so many times as often, whether or not earlier ones were answered, for so many seconds. All clients are one
thread that yields to the server and opens a connection only where none is free (--fresh: for every request); what it
takes of the cores is told beside what the server takes. What is let in must be nearly as much as before, what is not gets
a 429 that says when to come again, memory stays within --memory, and when it is over the server is idle within seconds.
Then the connections, and a client that is answered beside them all."""

import argparse
import asyncio
import collections
import concurrent.futures
import json
import math
import os
import resource
import select
import socket
import tempfile
import threading
import time

import fixture
import served

SEATS, QUEUE, MEMORY = 16, 64, 512 << 20
PART = 2.0  # seconds over which answers are counted
PROMPTS = 300


def request(number, tokens, path="/v1/completions", connection="close"):
    body = json.dumps({"prompt": [0] + [5 + (number * 7 + i * 3) % 300 for i in range(100)], "max_tokens": tokens,
                       "temperature": 0, "ignore_eos": True}).encode()
    head = "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: {}\r\ncontent-length: {}\r\n\r\n"
    return head.format(path, connection, len(body)).encode() + body


async def exchange(port, data):
    """The status of an answer, its headers, and its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, json.loads(body)
    finally:
        writer.close()


class Exchange:
    """A request that was sent, and what has come of its answer."""

    def __init__(self, connection, kept):
        self.connection, self.kept = connection, kept
        self.begin, self.got, self.end = time.monotonic(), b"", None

    def read(self):
        """Whether the answer is whole; OSError where it will never be."""
        try:
            data = self.connection.recv(1 << 18)
        except BlockingIOError:
            return False
        if not data:
            raise ConnectionResetError("the server closed")
        self.got += data
        if self.end is None:
            at = self.got.find(b"\r\n\r\n")
            if at < 0:
                return False
            self.end = at + 4 + int(self.header(b"content-length", b"0"))
        return len(self.got) >= self.end

    def header(self, name, otherwise=None):
        at = self.got.find(b"\r\n" + name + b": ", 0, self.got.find(b"\r\n\r\n") + 2)
        return self.got[at + len(name) + 4:self.got.index(b"\r\n", at + 2)] if at >= 0 else otherwise


class Overload:
    """Clients of a server, all on one thread: what they take of the machine is little, and is told."""

    def __init__(self, server, tokens, fresh):
        self.server, self.tokens, self.fresh = server, tokens, fresh
        self.requests = [request(i, tokens, connection="close" if fresh else "keep-alive") for i in range(PROMPTS)]
        self.number = 0
        self.poll, self.running, self.idle = select.epoll(), {}, []
        self.done = []  # when answers came
        self.waits = []
        self.refused = self.peak = 0
        self.wrong = collections.Counter()

    def send(self):
        """One more request, on a connection that is there already unless each is to have its own."""
        self.number += 1
        data = self.requests[self.number % PROMPTS]
        kept = bool(self.idle)
        if kept:
            connection = self.idle.pop()
        else:
            connection = socket.create_connection(("127.0.0.1", self.server.port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self.poll.register(connection, select.EPOLLIN)
        e = self.running[connection.fileno()] = Exchange(connection, kept)
        try:
            assert connection.send(data) == len(data)
        except OSError as why:
            self.fail(e, why)

    def drop(self, connection):
        self.poll.unregister(connection)
        connection.close()

    def fail(self, e, why):
        """Who keeps connections finds some that the server has closed for being idle, and asks again on another."""
        if e.kept and not e.got:
            del self.running[e.connection.fileno()]
            self.drop(e.connection)
            self.send()
        else:
            self.finish(e, repr(why)[:60])

    def finish(self, e, wrong=None):
        """An exchange is over: counted, and its connection kept for another."""
        del self.running[e.connection.fileno()]
        status = int(e.got[9:12]) if not wrong else 0
        if wrong:
            self.wrong[wrong] += 1
        elif status == 200 and b'"completion_tokens":%d' % self.tokens in e.got.replace(b" ", b""):
            self.done.append(time.monotonic())
            self.waits.append(time.monotonic() - e.begin)
        elif status == 429 and int(e.header(b"retry-after", b"0")) > 0 and b'"queue_full"' in e.got:
            self.refused += 1
        else:
            self.wrong["{} {}".format(status, e.got[-200:])] += 1
        if wrong or self.fresh or e.header(b"connection", b"") == b"close":
            self.drop(e.connection)
        else:
            self.idle.append(e.connection)

    def look(self, seconds):
        """Takes what comes within that time."""
        for number, _ in self.poll.poll(max(0, seconds)):
            e = self.running.get(number)
            if not e:  # closed by the server while it was idle
                for connection in [c for c in self.idle if c.fileno() == number]:
                    self.idle.remove(connection)
                    self.drop(connection)
                continue
            try:
                if e.read():
                    self.finish(e)
            except OSError as why:
                self.fail(e, why)

    def drain(self):
        begin = time.monotonic()
        while self.running:
            self.look(0.1)
        return time.monotonic() - begin

    def closed(self, clients, seconds):
        """As many clients, each of which asks anew when it was answered. Answers a second."""
        begin, before = time.monotonic(), len(self.done)
        while time.monotonic() < begin + seconds:
            while len(self.running) < clients:
                self.send()
            self.look(0.1)
        rate = (len(self.done) - before) / (time.monotonic() - begin)
        self.drain()
        return rate

    def open(self, rate, seconds):
        """Requests at a rate, whatever becomes of them. Answers a second, in parts."""
        begin, sent, looked = time.monotonic(), 0, 0
        while (now := time.monotonic() - begin) < seconds:
            while sent < now * rate:
                self.send()
                sent += 1
            if now > looked + 0.1:
                self.peak, looked = max(self.peak, self.server.memory()), now
            self.look(0.01)  # a few at a time cost less
        done = [t - begin for t in self.done if begin <= t < begin + seconds]
        first = done[0] if done else 0  # until then all were waited for
        rates = [sum(at <= t < at + PART for t in done) / PART for at in
                 (PART * i for i in range(int(seconds / PART)))]
        return sent, len(done) / (seconds - first), rates, self.drain()


class Clock:
    """Processor time: of the server, of its thread that talks to clients, and of the thread that plays them."""

    def __init__(self, server):
        self.server, self.begin = server, self.now(server)

    @staticmethod
    def now(server):
        return time.monotonic(), server.cpu(), server.cpu("/task/{}".format(server.process.pid)), time.thread_time()

    def taken(self):
        """Seconds of the three since, and what part of all cores that was."""
        wall, *taken = (b - a for a, b in zip(self.begin, self.now(self.server)))
        return taken, ["{:.1f} %".format(100 * t / wall / (os.cpu_count() or 1)) for t in taken]


def flood(server, seconds, times, tokens, fresh=False):
    """What came of it, as a dictionary."""
    load = Overload(server, tokens, fresh)
    load.closed(SEATS, min(2, seconds))  # warm
    load.waits, clock = [], Clock(server)
    before = load.closed(2 * SEATS, min(10, seconds))
    (spent_before, talked_before, _), shares_before = clock.taken()
    given_before = max(len(load.waits), 1)
    load.waits, clock = [], Clock(server)
    # However slow it is, more come than there are places and answers.
    sent, rate, rates, drained = load.open(max(before * times, 4 * (SEATS + QUEUE) / min(1, seconds)), seconds)
    (spent, talked, _), shares = clock.taken()
    waits, given, refused = sorted(load.waits) or [0], max(len(load.waits), 1), max(load.refused, 1)
    begin = time.monotonic()
    load.send()
    load.drain()
    alone = time.monotonic() - begin
    after = load.closed(2 * SEATS, min(10, seconds))
    return {"answers a second before, after": [round(before, 1), round(after, 1)],
            "answers a second at best": round(max(before, after), 1), "asked a second": round(sent / seconds, 1),
            "answers a second meanwhile": round(rate, 1), "the least in {:g} s".format(PART): min(rates, default=0),
            "part of the best": round(rate / (max(before, after) or math.inf), 3),
            "server's, its io's, clients' cores": [shares_before, shares],
            "processor time of an answer, ms": [round(1000 * spent_before / given_before, 2), round(1000 * spent / given, 2)],
            "of a refusal, by the io thread, ms": round(
                1000 * (talked - talked_before / given_before * given) / refused, 3),
            "429 with retry-after": load.refused, "anything else": dict(load.wrong),
            "first and last wait, s": [round(waits[0], 2), round(waits[-1], 2)],
            "most memory, MiB": load.peak >> 20, "idle again after, s": round(drained, 2),
            "an answer alone then, ms": round(1000 * alone, 1)}


def aside(nice, work, *arguments):
    """What a thread returns that others come before, the server above all."""
    def run():
        if nice:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
        return work(*arguments)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


# --- connections ---------------------------------------------------------------------------------------------------------

KINDS = {"idle": b"", "half a head": b"POST /v1/completions HTTP/1.1\r\nhost: ", "half a body":
         b"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5000\r\n\r\n{",
         "does not read": None, "half open": b""}


async def hold(server, count):
    """Opens so many connections of all kinds, from many addresses, and asks beside them."""
    opened, failed = [], 0
    stream = json.dumps({"prompt": [0, 9], "max_tokens": 1500, "ignore_eos": True, "stream": True}).encode()
    unread = "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n".format(
        len(stream)).encode() + stream
    for i in range(count):
        kind = list(KINDS)[i % len(KINDS)]
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024,
                                                      local_addr=("127.0.{}.{}".format(1 + i // 200 % 50, 1 + i % 200), 0))
        except OSError:
            failed += 1
            continue
        if kind == "does not read":
            if i % 500 == 3:  # a few ask for much and do not read it
                writer.write(unread)
        elif KINDS[kind]:
            writer.write(KINDS[kind])
        if kind == "half open":
            writer.write_eof()
        opened.append(writer)
        if i % 200 == 0:
            await asyncio.sleep(0)
    times = []
    for i in range(50):
        begin = time.monotonic()
        status, _, _ = await exchange(server.port, request(i, 8))
        times.append((time.monotonic() - begin, status))
    found = server.metrics()
    drip = [w for i, w in enumerate(opened) if i % 5 == 1 and not w.is_closing()]
    for writer in drip[:500]:  # slow writers go on, a byte at a time
        writer.write(b"x")
    result = {"connections opened": len(opened), "refused by the system": failed,
              "open in the server": int(found["motet_http_connections"]), "answers beside them": collections.Counter(
                  s for _, s in times), "slowest of these, ms": round(1000 * max(t for t, _ in times), 1),
              "memory, MiB": server.memory() >> 20}
    for writer in opened:
        writer.transport.abort()
    return result


def measure(program, folder, seconds, times, connections, tokens, nice=0, fresh=False):
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    # Room for all connections there may be: where they run short, those make way that have sent nothing yet.
    with served.Server(program, folder, "--max-sequences", str(SEATS), "--max-queue", str(QUEUE), "--memory", str(MEMORY),
                       "--max-connections", "16384") as server:
        flooded = aside(nice, flood, server, seconds, times, tokens, fresh)
        server.wait_idle()
    with served.Server(program, folder, "--memory", str(MEMORY), "--max-connections", str(connections)) as server:
        held = asyncio.run(hold(server, connections))
        held["gone again"] = bool(served.eventually(lambda: server.metrics()["motet_http_connections"] < 8))
        server.wait_idle()
    return flooded, held


def judge(flooded, held, share):
    """What must be so however slow a machine is; and which part of the best must be left."""
    assert not flooded["anything else"], flooded
    assert flooded["429 with retry-after"] > 0, flooded
    assert flooded["most memory, MiB"] <= MEMORY >> 20, flooded
    assert flooded["part of the best"] >= share, flooded
    assert set(held["answers beside them"]) == {200} and held["gone again"], held
    assert held["memory, MiB"] <= MEMORY >> 20, held


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--nice", type=int, default=10, help="of the thread that plays the clients")
    parser.add_argument("--fresh", action="store_true", help="a connection for every request")
    parser.add_argument("--share", type=float, default=0.9, help="what must be left of the best")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(os.path.abspath(arguments.motet), fixture.write(os.path.join(folder, "tiny")), arguments.seconds,
                        arguments.times, arguments.connections, arguments.tokens, arguments.nice, arguments.fresh)
    for each in found:
        for name, value in each.items():
            print("{:36} {}".format(name, dict(value) if isinstance(value, collections.Counter) else value))
    judge(*found, arguments.share)


if __name__ == "__main__":
    main()
