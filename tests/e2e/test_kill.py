#!/usr/bin/env python3
"""A server with a cache on disk is killed in the middle of its work, again and again, and its files are torn and
damaged in between. Each time it starts, and every answer is to the last bit what it is alone and cold.

usage: tests/e2e/test_kill.py --motet PROGRAM [--rounds N] [--seed N] [--model FOLDER]"""

import argparse
import concurrent.futures
import json
import os
import random
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import draw  # noqa: E402
import served  # noqa: E402


CLIENTS = 4
WORDS = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north ocean prism quartz".split()


def questions():
    """Bodies of chats: long ones with a common beginning, some with a picture or a schema."""
    dice = random.Random(5)
    asked = []
    for number in range(24):
        instructions = " ".join(WORDS[(number // 6 * 7 + i * 5) % len(WORDS)] for i in range(90))
        content = [{"type": "text", "text": dice.choice(["What do you see?", "Who are you?", "What is 3 + 4?"])}]
        if number % 3 == 0:
            content.insert(0, draw.picture(dice.choice(list(draw.SHAPES)), dice.choice(list(draw.COLOURS)),
                                               60 + number, 70, 40))
        body = {"messages": [{"role": "system", "content": instructions}, {"role": "user", "content": content}],
                "temperature": 0, "max_tokens": 24, "logprobs": True, "top_logprobs": 3}
        if number % 5 == 1:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": {
                "type": "object", "properties": {"a": {"type": "string", "maxLength": 8}}, "required": ["a"]}}}
        asked.append(body)
    return asked


def said(answer):
    """What must be the same."""
    choice = answer["choices"][0]
    return json.dumps([choice["message"]["content"], choice["finish_reason"], choice["logprobs"]])


class Storm:
    def __init__(self, arguments):
        self.arguments = arguments
        self.dice = random.Random(arguments.seed)
        self.asked = questions()
        self.compared = self.cached = self.prompt = self.wrong = self.damaged = 0
        with served.Server(arguments.motet, arguments.model) as server:
            self.cold = [said(server.post("/v1/chat/completions", body).json()) for body in self.asked]

    def ask(self, server, until, seed):
        """Asks until the server is gone, or the time has come."""
        dice = random.Random(seed)
        while time.monotonic() < until:
            which = dice.randrange(len(self.asked))
            try:
                answer = server.post("/v1/chat/completions", self.asked[which])
            except (OSError, served.http.client.HTTPException):
                return
            if answer.status != 200:
                raise AssertionError("{}: {}".format(answer.status, answer.body[:300]))
            found = answer.json()
            self.compared += 1
            self.prompt += found["usage"]["prompt_tokens"]
            self.cached += found["usage"]["prompt_tokens_details"]["cached_tokens"]
            if said(found) != self.cold[which]:
                self.wrong += 1
                print("question {}:\n  {}\nbut cold\n  {}".format(which, said(found)[:600], self.cold[which][:600]))

    def damage(self, folder):
        """Tears the end of a file, or flips a few bits."""
        files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".motet")]
        if not files:
            return
        path = self.dice.choice(files[-3:])
        size = os.path.getsize(path)
        self.damaged += 1
        with open(path, "r+b") as f:
            if self.dice.random() < 0.5:
                f.truncate(self.dice.randrange(size + 1))
                return
            for _ in range(self.dice.randrange(1, 6)):
                at = self.dice.randrange(max(size, 1))
                f.seek(at)
                byte = f.read(1)
                f.seek(at)
                f.write(bytes([byte[0] ^ 1 << self.dice.randrange(8)]) if byte else b"")

    def round(self, folder, number):
        starting = number % 7 == 0
        server = served.Server(self.arguments.motet, self.arguments.model, "--cache-dir", folder, "--cache-disk", "64M",
                               ready=not starting)
        try:
            if starting:  # it is killed while it opens the model, perhaps
                time.sleep(self.dice.random() * 0.1)
                return
            until = time.monotonic() + served.PATIENCE
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
                running = [clients.submit(self.ask, server, until, self.dice.random()) for _ in range(CLIENTS)]
                enough = self.compared + self.dice.randrange(10)
                served.eventually(lambda: self.compared >= enough)
                time.sleep(self.dice.random() * 0.2)
                server.process.kill()
                for each in running:
                    each.result()
        finally:
            server.process.kill()
            server.process.wait()
        if number % 4 == 3:
            self.damage(folder)

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            for number in range(self.arguments.rounds):
                self.round(folder, number)
                if number % 50 == 49:
                    print("{} rounds: {} answers compared, {} wrong".format(number + 1, self.compared, self.wrong),
                          flush=True)
            with served.Server(self.arguments.motet, self.arguments.model, "--cache-dir", folder, "--cache-disk",
                               "64M") as server:  # and an orderly end
                self.ask(server, time.monotonic() + 1, 1)
        print("{} rounds, {} files damaged; {} answers compared, {} wrong; {} of {} prompt tokens were cached".format(
            self.arguments.rounds, self.damaged, self.compared, self.wrong, self.cached, self.prompt))
        assert self.wrong == 0 and self.compared > 0 and self.cached > 0


def look_after_a_restart(arguments):
    """What the encoder made of a picture is on disk: after a restart nothing is encoded, whatever is asked about it."""
    picture = draw.picture("circle", "red", 400, 300, 120)

    def body(text):
        return {"messages": [{"role": "user", "content": [{"type": "text", "text": text}, picture]}], "temperature": 0,
                "max_tokens": 16, "logprobs": True, "top_logprobs": 3}

    def ask(*options, text):
        with served.Server(arguments.motet, arguments.model, *options) as server:
            answer = said(server.post("/v1/chat/completions", body(text)).json())
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
    parser.add_argument("--model", default=os.path.join(HERE, "..", "..", "models", "box"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    look_after_a_restart(arguments)
    Storm(arguments).run()
    print("e2e_kill: 2 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
