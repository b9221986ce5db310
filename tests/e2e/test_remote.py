#!/usr/bin/env python3
"""Servers share what they compute in a Redis, which is killed, filled, made to lie and slowed down. Every answer is to
the last bit what it is alone and cold.

usage: tests/e2e/test_remote.py --motet PROGRAM [--model FOLDER]"""

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import draw  # noqa: E402
import served  # noqa: E402

PASSWORD = "a:b@c"
FAST = ("--precision", "fast", "--context", "1024")
WORDS = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north ocean prism quartz".split()


class Redis:
    """A real one, and commands to it."""

    def __init__(self, port=None):
        for _ in range(100 if port else 10):  # another may have the port: for a while, or for good
            self.port = port or served.free_port()
            self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                                             "--appendonly", "no", "--requirepass", PASSWORD],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if served.eventually(lambda: self.process.poll() is not None or self.answers()) and self.process.poll() is None:
                return
            time.sleep(0.1)
        raise AssertionError("redis-server does not start")

    def answers(self):
        try:
            return self.say("PING") == b"PONG"
        except (OSError, ValueError):  # of nobody, or of somebody else
            return False

    def say(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), timeout=served.PATIENCE) as s:
            f = s.makefile("rwb")
            for command in (("AUTH", PASSWORD), words):
                words = [w if isinstance(w, bytes) else str(w).encode() for w in command]
                f.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
                f.flush()
                found = self.read(f)
            return found

    def read(self, f):
        line = f.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else f.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read(f) for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def kill(self):
        self.process.kill()
        self.process.wait()


class Proxy:
    """Between a server and the store; once it is slow, what the store says takes longer than anybody waits. What is in
    first it says before the store does, so that every reply is that to the command before."""

    def __init__(self, port):
        self.to, self.slow, self.first = port, False, b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.socket.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            near.sendall(self.first)
            threading.Thread(target=self.pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, True), daemon=True).start()

    def pump(self, source, sink, back):
        try:
            while (data := source.recv(65536)):
                for i in range(len(data) if back and self.slow else 0):  # a byte at a time
                    sink.sendall(data[i:i + 1])
                    time.sleep(0.1)
                if not (back and self.slow):
                    sink.sendall(data)
        except OSError:
            pass
        finally:
            source.close()
            sink.close()


def question(number, picture=None):
    dice = random.Random(number)
    content = [{"type": "text", "text": " ".join(dice.choice(WORDS) for _ in range(12))}]
    if picture:
        content.insert(0, picture)
    return {"messages": [{"role": "system", "content": " ".join(dice.choice(WORDS) for _ in range(70))},
                         {"role": "user", "content": content}],
            "temperature": 0, "max_tokens": 3, "logprobs": True, "top_logprobs": 3}


def said(answer):
    choice = answer["choices"][0]
    return json.dumps([choice["message"]["content"], choice["finish_reason"], choice["logprobs"]])


class Replica:
    def __init__(self, test, *options, port=None):
        self.test = test
        url = "redis://:{}@127.0.0.1:{}/0".format("a%3Ab%40c", port or test.redis.port)
        self.server = served.Server(test.motet, test.model, *FAST, *options, env={"MOTET_CACHE_REMOTE": url})

    def __enter__(self):
        return self

    def __exit__(self, *about):
        assert self.server.stop() == 0
        text = "\n".join(self.server.log)
        assert PASSWORD not in text and "a%3Ab" not in text, "the password is in the log"

    def ask(self, which):
        """How many tokens of a prompt were computed before, here or elsewhere."""
        answer = self.server.post("/v1/chat/completions", self.test.questions[which])
        assert answer.status == 200, answer.body
        assert said(answer.json()) == self.test.cold[which], "question {}: another answer".format(which)
        return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]

    def metric(self, name):
        """Of all labels together."""
        return sum(value for key, value in self.server.metrics().items() if key.split("{")[0] == "motet_remote_" + name)

    def failures(self, reason):
        return self.server.metrics()['motet_remote_failures_total{reason="%s"}' % reason]

    def impatient(self):
        """On a machine that is slow enough the store does not answer in time."""
        return self.metric("failures_total") > 0

    def wait_written(self):
        assert served.eventually(lambda: (self.metric("written_total") > 0 or self.impatient()) and
                                 self.metric("queued_bytes") == 0)


class Test:
    def __init__(self, arguments):
        self.motet, self.model = arguments.motet, arguments.model
        picture = draw.picture("circle", "red", 300, 200, 80)
        self.questions = [question(n) for n in range(6)] + [question(6, picture), question(7, picture)]
        with served.Server(self.motet, self.model, *FAST) as server:
            self.cold = [said(server.post("/v1/chat/completions", q).json()) for q in self.questions]
        self.redis = Redis()

    def fill(self, *questions):
        """The store has what was computed for these questions, and nothing else."""
        for _ in range(10):
            self.redis.say("FLUSHALL")
            with Replica(self) as one:
                for which in questions:
                    one.ask(which)
                one.wait_written()
                if not one.impatient():
                    return
        raise AssertionError("the store never took all of it in time")

    def shared(self):
        """What one has computed another finds, pictures too."""
        self.fill(0, 6)
        with Replica(self) as other:
            assert other.ask(0) >= 64 or other.impatient(), "nothing came from the store"
            assert other.metric("read_total") > 0 or other.impatient()
            other.ask(7)
            encoded = other.server.metrics()["motet_media_cache_misses_total"]
            assert encoded == 0 or other.impatient(), "the picture was encoded again"
            self.gone(other)
            self.full(other)

    def gone(self, replica):
        """Killed in the middle, and back."""
        self.redis.kill()
        replica.ask(1)
        assert served.eventually(lambda: replica.metric("failures_total") > 0)
        assert replica.metric("up") == 0
        self.redis = Redis(self.redis.port)
        at = time.monotonic()

        def back():
            replica.ask(2 if time.monotonic() - at < 1 else 3)
            return replica.metric("up") == 1
        assert served.eventually(back)

    def full(self, replica):
        """It takes nothing more."""
        self.redis.say("FLUSHALL")
        self.redis.say("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.redis.say("CONFIG", "SET", "maxmemory", "1")
        new = iter(range(100, 10000))

        def refused():  # the thread that writes may have to find the store again first
            replica.server.post("/v1/chat/completions", question(next(new)))
            return replica.metric("refused_total") > 0
        assert served.eventually(refused)
        replica.ask(4)
        replica.ask(5)
        self.redis.say("CONFIG", "SET", "maxmemory", "0")

    def lying(self):
        """Bytes that nobody wrote, cut ones, and another record's: none becomes an answer, and good ones take their
        place."""
        self.fill(0)
        keys = self.redis.say("KEYS", "motet:*")
        assert len(keys) > 3
        values = [self.redis.say("GET", key) for key in keys]
        for i, (key, value) in enumerate(zip(keys, values)):
            flipped = value[:700] + bytes([value[700] ^ 1]) + value[701:]
            lies = [flipped, value[:-1], values[i - 1], b"", value + b"x" * 100000]
            self.redis.say("SET", key, lies[i % len(lies)])
        broken, slow = 0, False
        for _ in range(20):  # each meets some of them
            with Replica(self) as other:
                if other.ask(0) >= 64:
                    break
                broken += other.metric("broken_total")
                other.wait_written()
                slow = slow or other.impatient()
        else:
            raise AssertionError("the store was never good again")
        assert broken > 2 or slow

    def signed(self, folder):
        """With a secret, what is not signed with it does not count. Then the store is slow."""
        secret = os.path.join(folder, "secret")
        with open(secret, "w", encoding="utf-8") as f:
            f.write("0123456789abcdef0123456789abcdef\n")
        with Replica(self, "--cache-remote-key", secret) as one:
            assert one.ask(0) == 0
            assert one.metric("broken_total") > 0 or one.impatient()
            one.ask(3)
            one.wait_written()
            slow = one.impatient()
        proxy = Proxy(self.redis.port)
        with Replica(self, "--cache-remote-key", secret, port=proxy.port) as other:
            assert other.ask(3) >= 64 or slow or other.impatient()
            proxy.slow = True
            other.ask(1)
            assert served.eventually(lambda: other.metric("failures_total") > 0)
            other.ask(2)

    def out_of_step(self):
        """What is said of it says what was expected and what came. Once it is in step again, it is used."""
        self.fill(3)
        proxy = Proxy(self.redis.port)
        for first, sentence in ((b"+PONG\r\n", "EXISTS expects a number, and a status came"),
                                (b"*1\r\n+x\r\n", 'a reply was expected, and an array came: "*1\\x0d'),
                                (b"HTTP/1.1 400 Bad Request\r\n", 'came: "HTTP/1.1 400'),
                                (b"$x\r\n", "Bad bulk string length")):
            proxy.first = first
            with Replica(self, port=proxy.port) as other:
                other.ask(3)
                assert served.eventually(lambda: other.failures("out_of_step") > 0)
                warned = next(line for line in other.server.log if "cache.remote" in line)
                assert "out of step: " in warned and sentence in warned, warned
                assert other.metric("up") == 0

    def below_and_far(self, disk):
        """The first pages of a prompt are in the store alone, those behind them on a disk, which is quicker."""
        prompt = [10 + i * 7919 % 240 for i in range(24 * 32 + 5)]

        def ask(server, tokens):
            answer = server.complete(prompt=tokens, max_tokens=3, temperature=0, logprobs=2)
            assert answer.status == 200, answer.body
            return answer.json()["choices"][0]

        def begin():
            return served.Server(self.motet, self.model, *FAST, "--cache-dir", disk)

        with begin() as server:
            ask(server, prompt[:12 * 32 + 5])
        first = [name for name in os.listdir(disk) if name.endswith(".motet")]
        with begin() as server:
            alone = ask(server, prompt)
        with Replica(self) as other:
            assert ask(other.server, prompt) == alone
            other.wait_written()
        for name in first:
            os.remove(os.path.join(disk, name))
        with Replica(self, "--cache-dir", disk) as other:
            assert ask(other.server, prompt) == alone

    def run(self):
        try:
            self.shared()
            with tempfile.TemporaryDirectory() as folder:
                self.below_and_far(folder)
            self.out_of_step()
            self.lying()
            with tempfile.TemporaryDirectory() as folder:
                self.signed(folder)
        finally:
            self.redis.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--model", default=os.path.join(HERE, "..", "..", "models", "box"))
    arguments = parser.parse_args()
    version = subprocess.run([arguments.motet, "--version"], capture_output=True, text=True, check=True).stdout
    if not shutil.which("redis-server") or "+remote" not in version:
        print("there is no redis-server, or this motet was built without hiredis")
        print("e2e_remote: 0 passed, 0 failed, 1 skipped")
        return
    Test(arguments).run()
    print("e2e_remote: 1 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
