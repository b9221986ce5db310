#!/usr/bin/env python3
"""Three replicas behind HAProxy, with the configuration of deploy/, answer agents: each has a long system prompt that
its conversations share, and turns that send all that was said before. The same is played without a shared store and with a
Redis: how many tokens of prompts are computed, when first tokens come, and whether every answer is what one server says
alone and cold, to the last bit.

  --way round      a turn goes to any replica (no header: HAProxy goes round)
  --way affinity   agents go where their system prompt was (x-motet-prefix)
  --event NAME     what happens to the store in the middle: kill (and an empty one takes its place), full (it takes nothing
                   more), lru (it has room for a quarter, and evicts), slow (it answers 50 ms later, from the beginning)
  --restart N      after each N requests a replica is replaced by one that has just started

Without a model it is a test: a few short conversations with a tiny one, and a store that is killed.

usage: tests/e2e/agents.py --motet PROGRAM [--model FOLDER] [--stores none,redis] [options; see --help]"""

import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import queue
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import fixture  # noqa: E402
import served  # noqa: E402
import test_remote  # noqa: E402
import test_routers  # noqa: E402

REPLICAS = 3
Turn = collections.namedtuple("Turn", "said first prompt cached")


class Late(test_remote.Proxy):
    """Between replicas and the store: whatever it says is handed on later, and no slower."""

    def __init__(self, port, seconds):
        self.seconds = seconds
        super().__init__(port)

    def accept(self):
        while True:
            near, _ = self.socket.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            for source, sink, wait in ((near, far, 0), (far, near, self.seconds)):
                line = queue.Queue()
                threading.Thread(target=self.read, args=(source, line, wait), daemon=True).start()
                threading.Thread(target=self.write, args=(sink, line), daemon=True).start()

    @staticmethod
    def read(source, line, wait):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                line.put((time.monotonic() + wait, data))
        line.put((0, b""))

    @staticmethod
    def write(sink, line):
        with contextlib.suppress(OSError):
            while (given := line.get())[1]:
                time.sleep(max(0, given[0] - time.monotonic()))
                sink.sendall(given[1])
        sink.close()


class Trace:
    """What agents are told, and say. Conversations of one agent follow each other as far apart as there are agents."""

    def __init__(self, arguments):
        self.a = arguments

    def words(self, name, count):
        dice = random.Random("{} {}".format(self.a.seed, name))
        return [dice.randrange(10, 250) for _ in range(count)]

    def system(self, conversation):
        return self.words("agent {}".format(conversation % self.a.agents), self.a.system)

    def body(self, prompt):
        return {"prompt": prompt, "max_tokens": self.a.answer, "stream": True, "ignore_eos": True, "temperature": 0,
                "logprobs": 1, "return_token_ids": True, "stream_options": {"include_usage": True}}

    def converse(self, conversation, ask):
        """ask(name, body) -> a Turn, whose tokens are what the next one goes on from."""
        prompt = self.system(conversation)
        name = hashlib.sha256(json.dumps(prompt).encode()).hexdigest()
        for turn in range(self.a.turns):
            prompt = prompt + self.words("turn {} {}".format(conversation, turn), self.a.said)
            got = ask(name, self.body(prompt))
            prompt = prompt + got.said[0]
            yield (conversation, turn), got


def post(port, body, headers, until):
    """A connection, and an answer on it. While HAProxy says that no replica is well, one asks again."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=served.PATIENCE)
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        response = connection.getresponse()
        if response.status == 200:
            return connection, response
        assert response.status == 503 and time.monotonic() < until, (response.status, response.read())
        connection.close()
        time.sleep(0.2)


def ask(port, body, headers):
    began = time.monotonic()
    connection, response = post(port, body, headers, began + served.PATIENCE)
    first, usage, tokens, logs, whole = None, None, [], [], False
    with contextlib.closing(connection):
        for line in response:
            whole |= line.startswith(b"data: [DONE]")
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            assert "error" not in event, event
            for choice in event["choices"]:
                first = first or time.monotonic() - began
                tokens += choice.get("token_ids") or []
                logs += (choice.get("logprobs") or {}).get("token_logprobs") or []
            usage = event.get("usage") or usage
    assert whole and usage and len(tokens) == body["max_tokens"] == len(logs), (whole, usage, tokens, logs)
    return Turn([tokens, logs], first, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"])


def cold_answers(trace):
    """What one server says that has nothing to go on from: each request has a salt of its own."""
    number = iter(range(1 << 30))
    with served.Server(trace.a.motet, trace.a.model, "--precision", "fast") as server:
        def alone(_, body):
            return ask(server.port, dict(body, cache_salt=str(next(number))), {})
        return {key: turn.said for c in range(trace.a.conversations) for key, turn in trace.converse(c, alone)}


class Replicas:
    """Three of them; one at a time is replaced by a new one, which has the same port."""

    def __init__(self, arguments, url):
        self.a, self.url = arguments, url
        self.servers = [self.start(0) for _ in range(REPLICAS)]
        self.ports = [server.port for server in self.servers]
        self.gone, self.next = [], 0

    def start(self, port):
        options = ["--port", str(port), "--threads", str(self.a.threads), "--precision", "fast", "--drain-seconds", "60"]
        if self.a.memory:
            options += ["--memory", self.a.memory]
        return served.Server(self.a.motet, self.a.model, *options, env={"MOTET_CACHE_REMOTE": self.url} if self.url else {})

    def replace(self):
        i = self.next = (self.next + 1) % REPLICAS
        self.note(self.servers[i])
        assert self.servers[i].stop() == 0
        self.servers[i] = self.start(self.ports[i])

    def note(self, server):
        self.gone.append({k[13:]: v for k, v in server.metrics().items() if k.startswith("motet_remote_")})

    def stop(self):
        for server in self.servers:
            with contextlib.suppress(OSError):
                self.note(server)
            server.stop(signal.SIGKILL)

    def counted(self, name):
        return int(sum(value for each in self.gone for key, value in each.items() if key.split("{")[0] == name))


class Play:
    """One run of the trace."""

    def __init__(self, trace, replicas, port, disturb):
        self.trace, self.replicas, self.port, self.disturb = trace, replicas, port, disturb
        self.turns, self.lock, self.done = {}, threading.Lock(), 0
        self.all = trace.a.conversations * trace.a.turns
        self.beside = concurrent.futures.ThreadPoolExecutor(1)
        self.jobs = []

    def ask(self, name, body):
        got = ask(self.port, body, {"x-motet-prefix": name} if self.trace.a.way == "affinity" else {})
        with self.lock:
            self.done += 1
            if self.trace.a.restart and self.done % self.trace.a.restart == 0 and self.done < self.all:
                self.jobs.append(self.beside.submit(self.replicas.replace))
            if self.disturb and self.done in (self.all // 3, self.all // 2):
                self.jobs.append(self.beside.submit(self.disturb, self.done == self.all // 2))
        time.sleep(self.trace.a.pause)
        return got

    def converse(self, conversation):
        for key, got in self.trace.converse(conversation, self.ask):
            with self.lock:
                self.turns[key] = got

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.trace.a.clients) as pool:
            for _ in pool.map(self.converse, range(self.trace.a.conversations)):
                pass
        for job in self.jobs:
            job.result()
        self.beside.shutdown()
        return self.turns


class Store:
    """A Redis, and what befalls it."""

    def __init__(self, event):
        self.event, self.redis = event, test_remote.Redis()
        port = Late(self.redis.port, 0.05).port if event == "slow" else self.redis.port
        self.url = "redis://:a%3Ab%40c@127.0.0.1:{}/0".format(port)
        self.redis.say("CONFIG", "SET", "maxmemory-policy", "allkeys-lru" if event == "lru" else "noeviction")

    def memory(self):
        return int(dict(line.split(b":", 1) for line in self.redis.say("INFO", "memory").split(b"\r\n")
                        if b":" in line)[b"used_memory"])

    def disturb(self, again):
        if self.event == "kill" and not again:
            self.redis.kill()
        elif self.event == "kill":
            self.redis = test_remote.Redis(self.redis.port)
        elif self.event == "full" and not again:
            self.redis.say("CONFIG", "SET", "maxmemory", self.memory())
        elif self.event == "lru" and not again:
            self.redis.say("CONFIG", "SET", "maxmemory", self.memory() // 4)


def play(trace, stored):
    a = trace.a
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = Store(a.event) if stored else None
        if store:
            stack.callback(lambda: store.redis.kill())  # pylint: disable=unnecessary-lambda
        replicas = Replicas(a, store and store.url)
        stack.callback(replicas.stop)
        port = stack.enter_context(test_routers.running(test_routers.haproxy, replicas.ports, folder))
        began = time.monotonic()
        turns = Play(trace, replicas, port, store.disturb if store and a.event else None).run()
        took = time.monotonic() - began
        stack.pop_all().close()
    return turns, took, replicas


def show(name, turns, took, replicas):
    first = sorted(turn.first for turn in turns.values())
    prompt, cached = (sum(getattr(turn, what) for turn in turns.values()) for what in ("prompt", "cached"))
    print("| {:<8} | {:>7} of {:>7} | {:>6.3f} | {:>6.3f} | {:>6.3f} | {:>5.1f} | {:>6} | {:>6} | {:>5} | {:>5} |".format(
        name, prompt - cached, prompt, statistics.median(first), statistics.mean(first), first[int(0.95 * len(first))],
        took, replicas.counted("read_total"), replicas.counted("written_total"), replicas.counted("dropped_total"),
        replicas.counted("failures_total")), flush=True)
    return prompt - cached, statistics.median(first)


def read_answers(trace):
    """Cold answers, which are made once where there is a file for them."""
    path = trace.a.answers
    if not path or not os.path.exists(path):
        found = cold_answers(trace)
        if path:
            with open(path, "w", encoding="utf-8") as f:
                json.dump([[list(key), said] for key, said in found.items()], f)
        return found
    with open(path, encoding="utf-8") as f:
        return {tuple(key): said for key, said in json.load(f)}


def compare(trace):
    """Plays the trace without a store and with one; fails where an answer is wrong."""
    cold = read_answers(trace)
    print("|          | prompt tokens computed | median | mean | p95 | took s | read | written | dropped | failures |")
    shown = []
    for store in filter(None, trace.a.stores.split(",")):
        turns, took, replicas = play(trace, store == "redis")
        shown.append(show(store, turns, took, replicas))
        wrong = [key for key in cold if turns[key].said != cold[key]]
        assert not wrong, "wrong answers: {}".format(wrong)
    if len(shown) == 2:
        print("{:.2f} times less to compute, first tokens {:.2f} times earlier at the median; {} answers each, all right".format(
            shown[0][0] / shown[1][0], shown[0][1] / shown[1][1], len(cold)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--motet", required=True)
    parser.add_argument("--model")
    parser.add_argument("--stores", default="none,redis")
    parser.add_argument("--way", choices=("round", "affinity"), default="round")
    parser.add_argument("--event", choices=("kill", "full", "lru", "slow"))
    parser.add_argument("--restart", type=int, default=0)
    parser.add_argument("--memory", default="", help="of a replica (--memory)")
    parser.add_argument("--threads", type=int, default=1, help="of a replica")
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--system", type=int, default=2000, help="tokens of an agent's system prompt")
    parser.add_argument("--conversations", type=int, default=16, help="in all; the agents have as many each")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--said", type=int, default=60, help="tokens that a turn adds")
    parser.add_argument("--answer", type=int, default=8, help="tokens of an answer")
    parser.add_argument("--clients", type=int, default=2, help="conversations at a time")
    parser.add_argument("--pause", type=float, default=0, help="seconds between an answer and the next turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answers", help="a file that keeps what is said alone and cold; made where there is none")
    arguments = parser.parse_args()
    if arguments.model:
        compare(Trace(arguments))
        return
    version = subprocess.run([arguments.motet, "--version"], capture_output=True, text=True, check=True).stdout
    if not shutil.which("redis-server") or not shutil.which("haproxy", path=test_routers.PATH) or "+remote" not in version:
        print("there is no redis-server, no haproxy, or this motet was built without hiredis")
        print("e2e_agents: 0 passed, 0 failed, 1 skipped")
        return
    with tempfile.TemporaryDirectory() as folder:
        short = {"model": fixture.write(os.path.join(folder, "tiny")), "stores": "redis", "event": "kill", "agents": 2,
                 "system": 300, "conversations": 6, "said": 40}
        compare(Trace(argparse.Namespace(**dict(vars(arguments), **short))))
    print("e2e_agents: 1 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
