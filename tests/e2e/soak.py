#!/usr/bin/env python3
"""A server works for a long time under a mixed load (load.py) with a tenth of hostile input (malice.py), is killed at
random moments and started again with its cache on disk. Every answer is compared with what a server says that is asked
nothing else and has no cache. In the end: how many were compared, and a picture of memory, descriptors, latency and hits.

usage: tests/e2e/soak.py --motet PROGRAM [--time 1h] [--picture FILE.svg] [--clients N] [--rate N] [--questions N]
       [--seed N]"""

import argparse
import collections
import http.client
import json
import os
import random
import re
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import chart    # noqa: E402
import damage   # noqa: E402
import load     # noqa: E402
import malice   # noqa: E402
import served   # noqa: E402

LIVES = (2, 5, 15, 60, 60, 240)  # seconds that a server has at most, drawn
MEMORY = 1 << 30
SALTED = 0.2  # of what is asked: nothing of it is in the cache yet, and it drives out what is
OPTIONS = ("--precision", "fast", "--threads", "2", "--memory", str(MEMORY), "--cache-disk", "64M", "--request-timeout",
           "120")
GONE = (OSError, http.client.HTTPException)


def seconds(given):
    number, unit = re.fullmatch(r"(\d+)([smh]?)", given).groups()
    return int(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit]


class Failure(Exception):
    """What must not happen, with what was seen."""


class Later(Exception):
    """A 429 with retry-after: there is no room at this moment, as for more constraints than fit side by side."""


def judge(status, headers, what):
    if status == 429 and int(headers.get("retry-after") or 0) > 0:
        raise Later()
    if status != 200:
        raise Failure("{}: {}".format(status, what[:600]))


class Soak:
    def __init__(self, arguments):
        self.arguments = arguments
        self.dice = random.Random(arguments.seed)
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.kinds = collections.Counter()
        self.window, self.samples, self.kills, self.failures = [], [], [], []
        self.server, self.over = None, False
        self.malice = malice.Malice()
        self.asked = load.questions(arguments.questions)
        begin = time.monotonic()
        print("alone and cold:", load.learn(arguments.motet, self.asked, "--precision", "fast"),
              "in {:.0f} s".format(time.monotonic() - begin), flush=True)

    # --- clients -----------------------------------------------------------------------------------------------------

    def check(self, right, what, found, wanted):
        if not right:
            raise Failure("{}\n  {}\nbut alone and cold\n  {}".format(what, str(found)[:800], str(wanted)[:800]))

    def whole(self, server, question, more=None):
        answer = server.post(question.path, {**question.body, **(more or {})})
        judge(answer.status, answer.headers, answer.body)
        found = answer.json()
        said = question.said(found)
        self.check(said == question.cold, question.kind, said, question.cold)
        return found.get("usage", {})

    def stream(self, server, question, dice, more):
        """Read to its end, or left in the middle: then what had come must be how the answer begins."""
        connection = server.connect()
        try:
            connection.request("POST", question.path, json.dumps({**question.body, **more, "stream": True}))
            response = connection.getresponse()
            if response.status != 200:
                judge(response.status, response.headers, response.read())
            leave = dice.random() < 0.4
            came, events = b"", dice.randrange(1, 12)
            while True:
                line = response.readline()
                came += line
                events -= line.startswith(b"data:")
                if not line or (leave and events <= 0):
                    break
        finally:
            connection.close()
        if b"data: [DONE]" in came:
            found = load.collect(served.events_of(came.decode()))
            self.check(found == question.alike, question.kind + ", streamed", found, question.alike)
            return "streamed"
        if not leave:
            raise http.client.IncompleteRead(came)  # the server went away
        came = came[:came.rfind(b"\n\n") + 1]
        _, (said, calls) = load.collect(served.events_of(came.decode()))
        text, wanted = question.alike[1]
        begun = "".join(c["arguments"] for c in calls), "".join(c["arguments"] for c in wanted)
        self.check(text.startswith(said) and begun[1].startswith(begun[0]), question.kind + ", cancelled", said, text)
        return "cancelled"

    def once(self, server, dice):
        if dice.random() < 0.1:
            status = self.malice.send(server, dice)
            if not malice.refused(status):
                raise Failure("hostile input got {}".format(status))
            return "hostile", {}
        question, more = dice.choice(self.asked), {}
        if load.salted(question) and dice.random() < SALTED:
            more["cache_salt"] = str(dice.random())
        if question.streams() and dice.random() < 0.4:
            return self.stream(server, question, dice, more), {"kind": question.kind}
        return "whole", {"kind": question.kind, **self.whole(server, question, more)}

    def client(self, seed):
        dice = random.Random(seed)
        while not self.over:
            server = self.server
            if server is None:
                time.sleep(0.01)
                continue
            begin = time.monotonic()
            try:
                how, found = self.once(server, dice)
            except GONE as why:
                with self.lock:
                    if server.ended:
                        self.counts["cut off by a kill"] += 1
                    else:
                        self.fail("{!r} from a server that runs".format(why))
                continue
            except Later:
                with self.lock:
                    self.counts["told to come again"] += 1
                continue
            except Failure as why:
                with self.lock:
                    self.fail(str(why))
                continue
            took = time.monotonic() - begin
            self.note(how, found, took)
            if self.arguments.rate:
                time.sleep(max(0, self.arguments.clients / self.arguments.rate * 2 * dice.random() - took))

    def fail(self, why):
        self.counts["wrong"] += 1
        self.failures.append(why)
        if len(self.failures) <= 20:
            print("WRONG: " + why, flush=True)

    def note(self, how, found, took):
        with self.lock:
            self.counts[how] += 1
            if how == "hostile":
                return
            self.counts["compared"] += 1
            self.kinds[found["kind"]] += 1
            cached = found.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            self.window.append((took, found.get("prompt_tokens", 0) if found["kind"] in ("text", "chat", "picture") else 0,
                                cached))

    # --- what is drawn -----------------------------------------------------------------------------------------------

    def sample(self, at, every):
        with self.lock:
            window, self.window = self.window, []
        took = sorted(t for t, _, _ in window)
        prompt = sum(p for _, p, _ in window)
        seen = {"at": at, "rate": len(window) / every, "p50": None, "p99": None, "hits": None, "rss": None, "fds": None}
        if took:
            seen.update(p50=1000 * took[len(took) // 2], p99=1000 * took[int(len(took) * 0.99)])
        if prompt:
            seen["hits"] = 100 * sum(c for _, p, c in window if p) / prompt
        server = self.server
        try:
            if server:
                seen.update(rss=server.memory() / 2**20, fds=len(os.listdir("/proc/{}/fd".format(server.process.pid))))
        except (OSError, AttributeError):
            pass
        self.samples.append(seen)

    def picture(self, length):
        title = "{:,} compared answers, {} of them wrong; {} kills".format(
            self.counts["compared"], self.counts["wrong"], len(self.kills))
        drawn = chart.Chart(title, length, self.kills, "ticks: kill -9")
        step = max(1, len(self.samples) // 360)  # as fine as can be seen
        rows = [s for s in self.samples if s["at"] <= length][::step]

        def line(name):
            return [(r["at"], r[name]) for r in rows]
        drawn.panel("answers a second", {"compared": line("rate")})
        drawn.panel("latency of an answer, ms", {"median": line("p50"), "99th of 100": line("p99")})
        drawn.panel("prompt tokens that were cached, %", {"hits": line("hits")}, 100)
        drawn.panel("memory of the server, MiB", {"resident": line("rss")})
        drawn.panel("descriptors", {"open": line("fds")})
        return drawn.svg()

    # --- the run -----------------------------------------------------------------------------------------------------

    def life(self, folder, end):
        """A server from its start to its kill."""
        server = served.Server(self.arguments.motet, load.FOLDERS, "--cache-dir", folder, *OPTIONS)
        server.ended = False
        until = min(end, time.monotonic() + self.dice.random() * self.dice.choice(LIVES))
        self.server = server
        try:
            while time.monotonic() < until and server.process.poll() is None:
                time.sleep(min(0.05, max(until - time.monotonic(), 0)))
            if server.process.poll() is not None:
                with self.lock:
                    self.fail("the server ended by itself with {}:\n{}".format(server.process.poll(),
                                                                               "\n".join(server.log[-20:])))
        finally:
            server.ended, self.server = True, None
            server.process.kill()
            server.process.wait()

    def last(self, folder):
        """The server that comes after: an orderly end, and nothing that is left open."""
        with served.Server(self.arguments.motet, load.FOLDERS, "--cache-dir", folder, *OPTIONS) as server:
            for question in self.asked[:50]:
                self.whole(server, question)
            server.wait_idle()

    def run(self):
        length = seconds(self.arguments.time)
        every = min(2.0, length / 20)
        threads = [threading.Thread(target=self.client, args=(self.arguments.seed * 1000 + i,), daemon=True)
                   for i in range(self.arguments.clients)]
        begin = time.monotonic()

        def watch():
            while not self.over:
                time.sleep(every)
                self.sample(time.monotonic() - begin, every)
                if len(self.samples) % 150 == 0:
                    print("{:.0f} s: {}".format(time.monotonic() - begin, dict(self.counts)), flush=True)
        threads.append(threading.Thread(target=watch, daemon=True))
        with tempfile.TemporaryDirectory() as folder:
            for each in threads:
                each.start()
            while time.monotonic() < begin + length or not self.counts["compared"]:
                self.life(folder, max(begin + length, time.monotonic() + 1))
                self.kills.append(time.monotonic() - begin)
                if len(self.kills) % 4 == 3 and damage.damage(self.dice, folder):
                    self.counts["files damaged"] += 1
            self.over = True
            for each in threads:
                each.join()
            self.last(folder)
        self.report(length)

    def report(self, length):
        with open(self.arguments.picture, "w", encoding="utf-8") as f:
            f.write(self.picture(length))
        memory = [s["rss"] for s in self.samples if s["rss"]]
        counts = dict(self.counts, kills=len(self.kills), kinds=dict(self.kinds))
        counts["most memory, MiB"] = round(max(memory, default=0))
        counts["most descriptors"] = max((s["fds"] or 0 for s in self.samples), default=0)
        print(json.dumps(counts))
        assert self.counts["wrong"] == 0, "{} answers are wrong".format(self.counts["wrong"])
        assert self.counts["told to come again"] < self.counts["compared"] / 50, "too few had room"
        assert max(memory, default=0) * 2**20 < MEMORY + (128 << 20), "more memory than was given"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--time", default="1h")
    parser.add_argument("--picture", default="soak.svg")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--questions", type=int, default=480)
    parser.add_argument("--rate", type=float, default=0, help="answers a second at most, about; 0: as many as come")
    parser.add_argument("--seed", type=int, default=1)
    Soak(parser.parse_args()).run()
    print("soak: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
