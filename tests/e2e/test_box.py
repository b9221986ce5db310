#!/usr/bin/env python3
"""Conversations with the model in the box: with their own names, pictures and instructions, all at once. Every answer
is right, and is to the last bit what it is alone and cold: a wrong picture, a lost instruction or a spoilt state would
show.

usage: tests/e2e/test_box.py --motet PROGRAM"""

import argparse
import base64
import concurrent.futures
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import draw  # noqa: E402
import served  # noqa: E402

ROOT = os.path.join(HERE, "..", "..")
BOX = os.path.join(ROOT, "models", "box")
NAMES = ["Chris", "Anna", "Tom", "Maria", "Ben", "Nora", "Paul", "Emma"]


class Talk:
    """What one person says, turn by turn, and what the answers must have in them."""

    def __init__(self, number):
        dice = random.Random(number)
        self.number = number
        self.name = NAMES[number % len(NAMES)]
        shape = list(draw.SHAPES)[number // 4 % len(draw.SHAPES)]
        colour = list(draw.COLOURS)[number % len(draw.COLOURS)]
        a, b = dice.randint(10, 49), dice.randint(10, 49)
        shown = draw.picture(shape, colour, dice.randint(60, 100), dice.randint(60, 100), dice.randint(34, 46))
        self.system = "Answer in upper case." if number % 3 == 2 else None
        self.turns = [
            ("My name is {}.".format(self.name), [self.name]),
            ([shown, {"type": "text", "text": "What do you see?"}], [colour, shape]),
            ("What is {} + {}?".format(a, b), [str(a + b)]),
            ("What is my name?", [self.name]),
            ("What colour is the {}?".format(shape), [colour]),
        ]

    def messages(self, answers):
        """Up to the turn that follows these answers."""
        list_ = [{"role": "system", "content": self.system}] if self.system else []
        for turn, answer in zip(self.turns, answers + [None]):
            list_.append({"role": "user", "content": turn[0]})
            if answer is not None:
                list_.append({"role": "assistant", "content": answer})
        return list_

    def check(self, turn, text):
        for word in self.turns[turn][1]:
            assert (word.upper() if self.system else word) in text, \
                "conversation {}, turn {}: {!r} has no {!r}".format(self.number, turn, text, word)


def body_of(talk, answers, **more):
    return dict({"messages": talk.messages(answers), "temperature": 0, "max_tokens": 60, "logprobs": True,
                 "top_logprobs": 3}, **more)


def ask(server, body):
    """(text, logprobs) of a whole or a streamed answer."""
    got = server.post("/v1/chat/completions", body)
    assert got.status == 200, got.body
    if not body.get("stream"):
        choice = got.json()["choices"][0]
        return choice["message"]["content"], choice["logprobs"]["content"]
    text, logprobs = "", []
    for event in got.events():
        if event == "[DONE]" or not event["choices"]:
            continue
        choice = event["choices"][0]
        text += choice["delta"].get("content") or ""
        logprobs += (choice["logprobs"] or {}).get("content") or []
    return text, logprobs


def vanish(server, body):
    """Asks and leaves after the first bytes of the answer."""
    data = json.dumps(dict(body, stream=True)).encode()
    with server.socket() as s:
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: box\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        s.recv(200)


def alone(server, talk):
    """Each turn by itself, nothing of it known before."""
    answers = []
    for turn in range(len(talk.turns)):
        salt = "{} {}".format(talk.number, turn)
        text, logprobs = ask(server, body_of(talk, [a for a, _ in answers], cache_salt=salt))
        talk.check(turn, text)
        answers.append((text, logprobs))
    return answers


def together(server, talk, expected):
    dice = random.Random(1000 + talk.number)
    said = []
    for turn, (text, logprobs) in enumerate(expected):
        if dice.random() < 0.2:
            vanish(server, body_of(talk, said))
        got = ask(server, body_of(talk, said, stream=dice.random() < 0.7))
        assert got == (text, logprobs), \
            "conversation {}, turn {}: {!r}, alone {!r}".format(talk.number, turn, got[0], text)
        said.append(text)


def readme(server):
    """The pictures of the README are answered as it says: files, questions and answers are the rows of its table."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        rows = [line.strip("| \n").split(" | ") for line in f if line.startswith("| ")]
    shown = next(i for i, row in enumerate(rows) if "(examples/" in row[0])
    for cell, question, answer in zip(*rows[shown:shown + 3]):
        with open(os.path.join(ROOT, cell[cell.index("(") + 1:-1]), "rb") as f:
            url = "data:image/png;base64," + base64.b64encode(f.read()).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
        text, _ = ask(server, {"messages": [{"role": "user", "content": content}], "logprobs": True})
        assert text == answer, "{}: {!r}, and not {!r}".format(question, text, answer)
    return len(rows[shown])


def grid(places, radius=12):
    """Blue squares on a light ground, as a part of a message; without places, a ground and nothing else."""
    return draw.paint("blue", lambda i, j: any(abs(i - x) < radius and abs(j - y) < radius for x, y in places))


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def visitors(server):
    """What people do who have read nothing: every answer is right or honest, and ends."""
    seven = [(x, y) for y in (30, 80, 130) for x in (30, 80, 130)][:7]
    called = [{"id": "call_1", "type": "function",
               "function": {"name": "get_weather", "arguments": json.dumps({"city": "São Paulo"})}}]
    weather = [("user", "What is the weather in São Paulo?")]
    cases = [
        ([("user", [grid([]), {"type": "text", "text": "What do you see?"}])], "nothing"),
        ([("user", [grid(seven), {"type": "text", "text": "How many squares are there?"}])], "7"),
        ([("user", [grid(seven[4:5], 30), {"type": "text", "text": "Who painted this?"}])], "not know"),
        ([("user", [grid(seven[4:5], 30), {"type": "text", "text": "What colour is the star?"}])], "no star"),
        ([("user", "My name is Zoë."), ("assistant", "Nice to meet you, Zoë!"), ("user", "What is my name?")], "Zoë"),
        ([("user", "My name is O'Brien."), ("assistant", "Hello, O'Brien!"), ("user", "Who am I?")], "O'Brien"),
        ([("user", "I live in 東京."), ("assistant", "東京 is a nice place."), ("user", "Where do I live?")], "東京"),
        ([("user", "What is 347 + 285?")], "= 632"),
        ([("user", "What is 1234 + 5678?")], "only add"),
        ([("user", "Où est la gare, s'il vous plaît ?")], "not know"),
        ([("user", "駅はどこですか。")], "not know"),
        (weather + [("assistant", None, called), ("tool", "Sunny all day, 31 degrees.")], "Sunny all day, 31 degrees"),
    ]
    for said, wanted in cases:
        messages = []
        for role, content, *calls in said:
            messages.append({"role": role, "content": content})
            if calls:
                messages[-1]["tool_calls"] = calls[0]
            if role == "tool":
                messages[-1]["tool_call_id"] = "call_1"
        body = {"messages": messages, "temperature": 0, "max_tokens": 120}
        if said[0] == weather[0]:
            body["tools"] = [WEATHER]
        choice = server.post("/v1/chat/completions", body).json()["choices"][0]
        assert wanted in (choice["message"]["content"] or ""), "{!r}: {!r}".format(said[-1][1], choice["message"])
        assert choice["finish_reason"] == "stop", choice
    body = {"messages": [{"role": "user", "content": weather[0][1]}], "temperature": 0, "max_tokens": 120,
            "tools": [WEATHER]}
    call = server.post("/v1/chat/completions", body).json()["choices"][0]["message"]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == {"city": "São Paulo"}, call
    return len(cases) + 1


def bad_words(server):
    """A word that is one token alone and several behind a space is written neither way."""
    body = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "max_tokens": 20, "logprobs": True}
    assert "Hello" in ask(server, body)[0]
    assert "Hello" not in ask(server, dict(body, bad_words=["Hello"]))[0]
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    arguments = parser.parse_args()
    talks = [Talk(i) for i in range(32 if "MOTET_TEST_FULL" in os.environ else 8)]
    with served.Server(arguments.motet, BOX, "--precision", "fast", "--context", "4096") as server:
        answers = [alone(server, talk) for talk in talks]
        with concurrent.futures.ThreadPoolExecutor(len(talks)) as pool:
            list(pool.map(lambda pair: together(server, *pair), zip(talks, answers)))
        server.wait_idle()
        shown = readme(server) + visitors(server) + bad_words(server)
        metrics = server.metrics()
        hits = metrics["vllm:prefix_cache_hits_total"] / metrics["vllm:prefix_cache_queries_total"]
        guessed, right = (metrics["vllm:spec_decode_num_{}_tokens_total".format(n)] for n in ("draft", "accepted"))
        print("{} answers; {:.0f} % of all prompt tokens were cached; {:.0f} of {:.0f} guesses were right".format(
            2 * sum(len(talk.turns) for talk in talks), 100 * hits, right, guessed))
    print("e2e_box: {} passed, 0 failed, 0 skipped".format(len(talks) + shown))


main()
