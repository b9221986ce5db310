#!/usr/bin/env python3
"""A server with a cache on disk is killed at random moments under a mixed load (load.py), again and again; in between
its files are torn, their bits flipped, or its disk is full. Each time it starts, every answer is to the last bit what it
is alone and cold, and what was lost is counted.

usage: tests/e2e/test_kill.py --motet PROGRAM [--rounds N] [--seed N] [--questions N] [--folder FOLDER]

--folder is where the cache is: on a small file system it is really full."""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import resource
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import damage  # noqa: E402
import draw    # noqa: E402
import load    # noqa: E402
import served  # noqa: E402

CLIENTS = 4
OPTIONS = ("--precision", "fast", "--threads", "2", "--memory", "2G", "--cache-disk", "64M")
LONGEST = 0.5  # seconds between a server's first answers and its end
FULL = (256 << 10, 2 << 20)  # bytes of a file from which a full disk takes no more; decoded pictures have to fit
SALTED = 0.3  # of what is asked: it is new to the cache, and is written


class Storm:
    def __init__(self, arguments):
        self.arguments = arguments
        self.dice = random.Random(arguments.seed)
        self.asked = load.questions(arguments.questions)
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.known = None  # records, when the last server was killed; where that is to be compared
        self.torn = 0      # bytes in no whole record, when the last server began
        load.learn(arguments.motet, self.asked, "--precision", "fast")

    def count(self, **more):
        with self.lock:
            self.counts.update(more)

    def once(self, server, dice):
        question = dice.choice(self.asked)
        salt = {"cache_salt": str(dice.random())} if load.salted(question) and dice.random() < SALTED else {}
        answer = server.post(question.path, {**question.body, **salt})
        if answer.status != 200:
            raise AssertionError("{}: {}".format(answer.status, answer.body[:300]))
        found = answer.json()
        usage = found.get("usage", {})
        self.count(compared=1, prompt=usage.get("prompt_tokens", 0),
                   cached=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0))
        if question.said(found) != question.cold:
            self.count(wrong=1)
            print("{}:\n  {}\nbut cold\n  {}".format(json.dumps(question.body)[:300], question.said(found)[:600],
                                                     question.cold[:600]), flush=True)

    def ask(self, server, until, seed):
        """Asks until the server is gone, or the time has come."""
        dice = random.Random(seed)
        while time.monotonic() < until:
            try:
                self.once(server, dice)
            except (OSError, served.http.client.HTTPException):
                if server.process.poll() is None and not server.doomed:
                    raise
                self.count(cut_off=1)
                return

    def look(self, server):
        """What the server found of what the one before it had."""
        served.eventually(lambda: server.metrics()["motet_disk_scanned"] == 1)
        found = server.metrics()
        torn, self.torn = self.torn, int(found["motet_disk_lost_bytes_total"])
        self.count(lost_bytes=max(0, self.torn - torn))
        if self.known is not None:
            self.count(records_lost=max(0, int(self.known - found["motet_disk_records"])),
                       records_found=int(found["motet_disk_records"]))

    def fill(self, server):
        """The disk is full from a random byte on."""
        limit = self.dice.randrange(*FULL)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        self.count(full_disks=1)

    def live(self, server, full):
        """The load, and a kill in the middle of it."""
        until = time.monotonic() + served.PATIENCE
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            running = [clients.submit(self.ask, server, until, self.dice.random()) for _ in range(CLIENTS)]
            enough = self.counts["compared"] + self.dice.randrange(10)
            served.eventually(lambda: self.counts["compared"] >= enough or any(r.done() for r in running))
            if full:
                self.fill(server)
            time.sleep(self.dice.random() * LONGEST)
            found = server.metrics()
            making_way = found["motet_disk_bytes"] + (8 << 20) > found["motet_disk_limit_bytes"]
            self.known = None if making_way else found["motet_disk_records"]
            self.count(records_read=int(found["motet_disk_read_total"]), broken=int(found["motet_disk_broken_total"]),
                       written=int(found["motet_disk_written_total"]), failed=int(found["motet_disk_failed"]))
            time.sleep(self.dice.random() * 0.02)
            server.doomed = True
            server.process.kill()
            for each in running:
                each.result()

    def start(self, folder, **settings):
        server = served.Server(self.arguments.motet, load.FOLDERS, "--cache-dir", folder, *OPTIONS, **settings)
        server.doomed = False
        return server

    def round(self, folder, number):
        starting = number % 7 == 0
        server = self.start(folder, ready=not starting)
        try:
            if starting:  # it is killed while it begins, perhaps
                time.sleep(self.dice.random() * 0.1)
                return
            self.look(server)
            self.live(server, number % 5 == 2)
        except Exception:
            status = server.process.poll()
            print("in round {} the server {}:\n{}".format(number, "ran" if status is None else "had ended with {}".format(
                status), "\n".join(server.log[-40:])), flush=True)
            raise
        finally:
            server.process.kill()
            server.process.wait()
        if number % 4 == 3 and damage.damage(self.dice, folder):
            self.known = None  # what is lost now is the damage's doing
            self.count(damaged=1)

    def run(self):
        with tempfile.TemporaryDirectory(dir=self.arguments.folder) as folder:
            for number in range(self.arguments.rounds):
                self.round(folder, number)
                if number % 50 == 49:
                    print("{} rounds: {}".format(number + 1, dict(self.counts)), flush=True)
            with self.start(folder) as server:  # and an orderly end
                self.ask(server, time.monotonic() + 1, 1)
        print("{} rounds: {}".format(self.arguments.rounds, dict(self.counts)))
        assert self.counts["wrong"] == 0, "{} answers are wrong".format(self.counts["wrong"])
        for what in ("compared", "cached", "written", "records_read"):
            assert self.counts[what] > 0, "nothing was " + what


def look_after_a_restart(arguments):
    """What the encoder made of a picture is on disk: after a restart nothing is encoded, whatever is asked about it."""
    picture = draw.picture("circle", "red", 400, 300, 120)

    def ask(*options, text):
        question = load.Question("picture", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": [{"type": "text", "text": text}, picture]}], "temperature": 0,
            "max_tokens": 16, "logprobs": True, "top_logprobs": 3})
        with served.Server(arguments.motet, load.FOLDERS[0], *options) as server:
            answer = question.said(server.post(question.path, question.body).json())
            metrics = server.metrics()
            assert server.stop() == 0
            return answer, metrics

    with tempfile.TemporaryDirectory() as folder:
        cold, metrics = ask(text="Name the shape.")
        assert metrics["motet_media_cache_misses_total"] == 1
        _, metrics = ask("--cache-dir", folder, text="What do you see?")
        assert metrics["motet_media_cache_misses_total"] == 1
        warm, metrics = ask("--cache-dir", folder, text="Name the shape.")
        assert metrics["motet_media_cache_misses_total"] == 0, "it was encoded again"
        assert metrics["motet_restored_features_total"] == 1
        assert warm == cold


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=int, default=18)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    look_after_a_restart(arguments)
    Storm(arguments).run()
    print("e2e_kill: 2 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
