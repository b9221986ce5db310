"""A mixed load for servers that run long or are killed: text, pictures, tools, constraints and embeddings on two models
that write and one that embeds, all of them tiny. Every question has one right answer, greedy or seeded: the one of a server
that was just started, has no cache and is asked nothing else."""

import itertools
import json
import os
import random
import threading

import draw
import served

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "..", "oracle")
HYBRID, DENSE, ENCODER = "qwen35-mlx-4bit", "mistral3-bf16", "bert-mean-f32"
FOLDERS = [os.path.join(ORACLE, "sighted", HYBRID), os.path.join(ORACLE, "sighted", DENSE),
           os.path.join(ORACLE, "vectors", ENCODER)]
WORDS = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north ocean prism quartz".split()
TOOL = {"type": "object", "properties": {"zone": {"enum": ["CET", "UTC"]}, "short": {"type": "boolean"}},
        "required": ["zone", "short"], "additionalProperties": False}
ABOUT = {"name": "get_time", "description": "The time."}
SHAPES = [{"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {
              "type": "object", "properties": {"a": {"type": "string", "maxLength": 8}, "b": {"type": "integer"}},
              "required": ["a", "b"], "additionalProperties": False}}}},
          {"structured_outputs": {"regex": "[a-f]{2,6}-[0-9]{1,4}"}},
          {"structured_outputs": {"choice": ["amber", "birch", "amberish"]}},
          {"response_format": {"type": "json_object"}},
          {"structured_outputs": {"grammar": 'root ::= ("a" | "b" root "c"){1,4}'}}]


def salted(question):
    """Whether a salt may make it new to the cache."""
    return question.path.endswith("completions")


def text(dice, count):
    return " ".join(dice.choice(WORDS) for _ in range(count))


class Question:
    """What is sent, and what of an answer has to be the same. `alike` is what streams say, too."""

    def __init__(self, kind, path, body):
        self.kind, self.path, self.body = kind, path, body
        self.cold = self.alike = None

    def streams(self):
        return self.path in ("/v1/chat/completions", "/v1/completions") and "n" not in self.body

    def said(self, answer):
        if self.path == "/v1/embeddings":
            return json.dumps([each["embedding"] for each in answer["data"]])
        if self.path == "/v1/messages":
            return json.dumps([answer["stop_reason"], [[b.get(k) for k in ("type", "text", "name", "input")]
                                                       for b in answer["content"]]])
        if self.path == "/v1/responses":
            return json.dumps([[i.get(k) for k in ("type", "name", "arguments")] + [
                part["text"] for part in i.get("content", [])] for i in answer["output"]])
        return json.dumps([[c["finish_reason"], c["logprobs"], whole(c)] for c in answer["choices"]])


def whole(choice):
    """A choice's text and calls, without the calls' ids."""
    message = choice.get("message", {})
    calls = [c["function"] for c in message.get("tool_calls") or []]
    return [choice.get("text", message.get("content")) or "", calls]


def collect(events):
    """A stream's text and calls, and how it ended: what whole() says of an answer that comes at once."""
    said, calls, end = "", [], None
    for event in events:
        for choice in event["choices"] if isinstance(event, dict) else []:
            delta = choice.get("delta", {})
            said += choice.get("text", delta.get("content")) or ""
            end = choice["finish_reason"] or end
            for part in delta.get("tool_calls", []):
                if part["index"] == len(calls):
                    calls.append({"name": part["function"]["name"], "arguments": ""})
                calls[part["index"]]["arguments"] += part["function"].get("arguments", "")
    return [end, [said, calls]]


def how(dice, number):
    """Half greedy with logprobs, half drawn with a seed."""
    if number % 2:
        return {"temperature": 0.9, "top_p": 0.95, "seed": dice.randrange(1 << 30)}
    return {"temperature": 0, "logprobs": True, "top_logprobs": 2}


def chat(dice, model, system, *content, turns=0, **more):
    messages = [{"role": "system", "content": system}]
    for _ in range(turns):
        messages += [{"role": "user", "content": text(dice, 6)}, {"role": "assistant", "content": text(dice, 12)}]
    messages.append({"role": "user", "content": [*content, {"type": "text", "text": text(dice, 5) + "?"}]})
    return Question("chat", "/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 24, **more})


def tools(dice, number, system):
    """The same tool in three dialects."""
    asked = {"model": DENSE, "temperature": 0}
    user = [{"role": "user", "content": system[:60 + 20 * (number % 7)] + text(dice, 3)}]
    if number % 3 == 0:
        return Question("tools", "/v1/messages", {**asked, "messages": user, "max_tokens": 200, "tools": [
            {**ABOUT, "input_schema": TOOL}], "tool_choice": {"type": "any"}})
    if number % 3 == 1:
        return Question("tools", "/v1/responses", {**asked, "input": user[0]["content"], "max_output_tokens": 200,
                                                   "tools": [{"type": "function", **ABOUT, "parameters": TOOL}],
                                                   "tool_choice": "required"})
    return Question("tools", "/v1/chat/completions", {
        **asked, "messages": user, "max_tokens": 200, "tool_choice": "required",
        "tools": [{"type": "function", "function": {**ABOUT, "parameters": TOOL}}]})


def questions(count, seed=5):
    """As many, a sixth of each kind: prompts, conversations, pictures, constraints, tools, embeddings. Some dozen
    beginnings are shared."""
    dice = random.Random(seed)
    systems = [text(dice, dice.choice((12, 40, 90, 180))) for _ in range(max(2, count // 24))]
    pictures = [draw.picture(dice.choice(list(draw.SHAPES)), dice.choice(list(draw.COLOURS)), 40 + 7 * i, 70, 20 + 4 * i)
                for i in range(min(10, count // 6))]
    asked = []
    for number in range(count):
        system, model, more = dice.choice(systems), dice.choice((HYBRID, DENSE)), how(dice, number // 6)
        kind = number % 6
        if kind == 0:
            prompt = system + " " + text(dice, 4)
            several = {"n": 2} if "seed" in more and number % 4 == 0 else {}
            logprobs = {"logprobs": 2} if more.pop("logprobs", None) else {}
            more.pop("top_logprobs", None)
            each = Question("text", "/v1/completions", {"model": model, "prompt": prompt, "max_tokens": 24,
                                                        **more, **several, **logprobs})
        elif kind == 1:
            each = chat(dice, model, system, turns=dice.randrange(4), **more)
        elif kind == 2:
            several = dice.choice((1, 1, 1, 2)) if pictures[1:] else 1
            each = chat(dice, model, system, *dice.sample(pictures, several), **more)
            each.kind = "picture"
        elif kind == 3:
            each = chat(dice, model, system, **{**more, **dice.choice(SHAPES)})
            each.kind = "constraint"
        elif kind == 4:
            each = tools(dice, number // 6, system)
        else:
            each = Question("embedding", "/v1/embeddings", {
                "model": ENCODER, "input": [text(dice, dice.randrange(1, 30)) for _ in range(dice.randrange(1, 4))]})
        asked.append(each)
    return asked


def learn(program, asked, *options, workers=2):
    """Asks each of a server of its own, which has just been started and has no cache on disk."""
    todo, lock, failed = iter(asked), threading.Lock(), []

    def work():
        while not failed:
            with lock:
                question = next(todo, None)
            if question is None:
                return
            try:
                with served.Server(program, FOLDERS, "--threads", "1", *options) as server:
                    answer = server.post(question.path, question.body)
                    assert answer.status == 200, "{}: {} {}".format(question.body, answer.status, answer.body[:300])
                    question.cold = question.said(answer.json())
                    if question.streams():
                        choice = answer.json()["choices"][0]
                        question.alike = [choice["finish_reason"], whole(choice)]
            except Exception as why:  # pylint: disable=broad-except
                failed.append(why)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]
    kinds = itertools.groupby(sorted(q.kind for q in asked))
    return {kind: len(list(group)) for kind, group in kinds}
