#!/usr/bin/env python3
"""A server is asked for ten times as much as it can do, and held by thousands of connections that want nothing, send
slowly, read nothing or are half open.

usage: tests/api/overload.py --motet PROGRAM [--seconds 600] [--times 10] [--connections 10000]

First it is found out how many answers a second there are at best, with as many clients as there are seats. Then requests
come so many times as often, whether or not earlier ones were answered, for so many seconds. What is let in must be nearly
as much as before, what is not gets a 429 that says when to come again, memory stays within --memory, and when it is over the
server is idle within seconds. Then the connections, and a client that is answered beside them all."""

import argparse
import asyncio
import collections
import json
import os
import resource
import tempfile
import time

import fixture
import served

SEATS, QUEUE, MEMORY = 16, 64, 512 << 20
PART = 2.0  # seconds over which answers are counted


def request(number, tokens, path="/v1/completions"):
    body = json.dumps({"prompt": [0] + [5 + (number * 7 + i * 3) % 300 for i in range(100)], "max_tokens": tokens,
                       "temperature": 0, "ignore_eos": True}).encode()
    head = "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n"
    return head.format(path, len(body)).encode() + body


async def exchange(port, data):
    """The status of an answer, its headers, and whether all of it came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, json.loads(body)
    finally:
        writer.close()


class Overload:
    def __init__(self, server, tokens):
        self.server, self.tokens = server, tokens
        self.number = 0
        self.done = []  # when answers came
        self.waits = []
        self.refused = self.flight = self.peak = 0
        self.wrong = collections.Counter()

    async def one(self):
        self.number += 1
        begin = time.monotonic()
        self.flight += 1
        try:
            status, headers, body = await exchange(self.server.port, request(self.number, self.tokens))
        except (OSError, asyncio.IncompleteReadError) as why:
            self.wrong[repr(why)[:60]] += 1
            return False
        finally:
            self.flight -= 1
        if status == 200 and body["usage"]["completion_tokens"] == self.tokens:
            self.done.append(time.monotonic())
            self.waits.append(time.monotonic() - begin)
        elif status == 429 and int(headers.get("retry-after", 0)) > 0:
            self.refused += 1
        else:
            self.wrong["{} {}".format(status, headers.get("retry-after"))] += 1
        return status == 200

    async def closed(self, clients, seconds):
        """As many clients, each of which asks anew when it was answered. Answers a second."""
        end = time.monotonic() + seconds

        async def client():
            while time.monotonic() < end:
                await self.one()
        begin, before = time.monotonic(), len(self.done)
        await asyncio.gather(*(client() for _ in range(clients)))
        return (len(self.done) - before) / (time.monotonic() - begin)

    async def open(self, rate, seconds):
        """Requests at a rate, whatever becomes of them. Answers a second, in parts."""
        running, begin = set(), time.monotonic()
        sent = 0
        while (now := time.monotonic() - begin) < seconds:
            while sent < now * rate:
                task = asyncio.create_task(self.one())
                running.add(task)
                task.add_done_callback(running.discard)
                sent += 1
            self.peak = max(self.peak, self.server.memory())
            await asyncio.sleep(0.02)
        done = [t - begin for t in self.done if begin <= t < begin + seconds]
        first = done[0] if done else 0  # until then all were waited for
        rates = [sum(at <= t < at + PART for t in done) / PART for at in
                 (PART * i for i in range(int(seconds / PART)))]
        idle = time.monotonic()
        while running:
            await asyncio.sleep(0.01)
        return sent, len(done) / (seconds - first), rates, time.monotonic() - idle


async def flood(server, seconds, times, tokens):
    """What came of it, as a dictionary."""
    load = Overload(server, tokens)
    await load.closed(SEATS, min(2, seconds))  # warm
    load.waits, used = [], server.cpu()
    before = await load.closed(2 * SEATS, min(10, seconds))
    each = (server.cpu() - used) / max(len(load.waits), 1)
    load.waits, used = [], server.cpu()
    # However slow it is, more come than there are places and answers.
    sent, rate, rates, drained = await load.open(max(before * times, 4 * (SEATS + QUEUE) / min(1, seconds)), seconds)
    spent = server.cpu() - used
    waits = sorted(load.waits) or [0]
    begin = time.monotonic()
    await load.one()
    alone = time.monotonic() - begin
    after = await load.closed(2 * SEATS, min(10, seconds))
    return {"answers a second at best": round(max(before, after), 1), "asked a second": round(sent / seconds, 1),
            "answers a second meanwhile": round(rate, 1), "the least in {:g} s".format(PART): min(rates, default=0),
            "part of the best": round(rate / max(before, after), 3),
            "processor time of an answer, ms": [round(1000 * each, 2), round(1000 * spent / max(len(load.waits), 1), 2)],
            "429 with retry-after": load.refused, "anything else": dict(load.wrong),
            "first and last wait, s": [round(waits[0], 2), round(waits[-1], 2)],
            "most memory, MiB": load.peak >> 20, "idle again after, s": round(drained, 2),
            "an answer alone then, ms": round(1000 * alone, 1)}


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


def measure(program, folder, seconds, times, connections, tokens):
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    # Room for all connections there may be: where they run short, those make way that have sent nothing yet.
    with served.Server(program, folder, "--max-sequences", str(SEATS), "--max-queue", str(QUEUE), "--memory", str(MEMORY),
                       "--max-connections", "16384") as server:
        flooded = asyncio.run(flood(server, seconds, times, tokens))
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
    parser.add_argument("--share", type=float, default=0.9, help="what must be left of the best")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(os.path.abspath(arguments.motet), fixture.write(os.path.join(folder, "tiny")), arguments.seconds,
                        arguments.times, arguments.connections, arguments.tokens)
    for each in found:
        for name, value in each.items():
            print("{:36} {}".format(name, dict(value) if isinstance(value, collections.Counter) else value))
    judge(*found, arguments.share)


if __name__ == "__main__":
    main()
