#!/usr/bin/env python3
"""What Ollama does, one line each, in the order of its own tests of its routes: how it answers, refuses, loads and unloads. Where
motet does something else on purpose, the line says what.

usage: tests/api/test_ollama_behaviours.py --motet PROGRAM [NAME ...]"""

import base64
import contextlib
import hashlib
import json
import os
import tempfile

import served

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BOX = os.path.join(ROOT, "models", "box")
SUITE = served.Suite("api_ollama_behaviours")
SUM = "What is 123 + 456?"
WEATHER = "What is the weather in Paris?"
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.",
                                         "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                                                        "required": ["city"]}}}
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
COUNTED = {"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"}
EMPTY = "sha256:" + hashlib.sha256(b"").hexdigest()
with open(os.path.join(ROOT, "examples", "triangles.png"), "rb") as f:
    PICTURE = base64.b64encode(f.read()).decode()


class Ollama:
    """A server with the box, which sees, thinks and calls, and a model that only writes."""

    def __init__(self, server):
        self.server = server

    def post(self, path, body, status=200):
        answer = self.server.post(path, body)
        assert answer.status == status, (path, body, answer.status, answer.body)
        return answer

    def refused(self, path, body, status, words):
        got = self.post(path, body, status).json()
        assert set(got) == {"error"} and words in got["error"], (path, body, got)

    def chat(self, text=SUM, status=200, **fields):
        body = {"model": "box", "messages": [{"role": "user", "content": text}], "stream": False, **fields}
        body["options"] = {"temperature": 0, "num_predict": 100, **body.get("options", {})}
        return self.post("/api/chat", body, status).json()

    def generate(self, prompt=SUM, status=200, **fields):
        body = {"model": "box", "prompt": prompt, "stream": False, **fields}
        body["options"] = {"temperature": 0, "num_predict": 100, **body.get("options", {})}
        return self.post("/api/generate", body, status).json()

    def lines(self, path, **body):
        options = {"temperature": 0, "num_predict": 100}
        answer = self.post(path, {"model": "box", "options": options, **body})
        assert answer.headers["content-type"] == "application/x-ndjson", answer.headers
        return answer.events()

    def loaded(self):
        return [m["name"] for m in self.server.request("GET", "/api/ps").json()["models"]]

    def names(self):
        return [m["name"] for m in self.server.request("GET", "/api/tags").json()["models"]]


@contextlib.contextmanager
def ollama():
    with tempfile.TemporaryDirectory() as cache:
        with SUITE.start("--model", "box=" + BOX, "--allow-pull", "--precision", "fast",
                         env={"HF_HUB_CACHE": cache, "HOME": "/nowhere", "HF_ENDPOINT": "http://127.0.0.1:9"}) as server:
            yield Ollama(server)


def check(behaviours):
    """Runs each, and tells all that fail."""
    failed = []
    with ollama() as o:
        for name, behaves in behaviours.items():
            try:
                result = behaves(o)
                ok, why = result is None or bool(result), ""
            except (AssertionError, KeyError, IndexError, ValueError) as e:
                ok, why = False, ": {!r}".format(e)[:600]
            if not ok:
                failed.append(name + why)
    assert not failed, "{} of {} differ:\n{}".format(len(failed), len(behaviours), "\n".join(failed))


def get(o, path):
    return o.server.request("GET", path).json()


def head(o, path):
    return o.server.request("HEAD", path).status


def show(o, **fields):
    return o.post("/api/show", {"model": "box", **fields}).json()


def says_same(lines, whole):
    return "".join(e["message"]["content"] for e in lines) == whole["message"]["content"]


def create(o, name, **fields):
    return o.post("/api/create", {"model": name, "from": "box", "stream": False, **fields}).json()


def deleted(o, name, status=200):
    return o.server.request("DELETE", "/api/delete", {"model": name}).status == status


@SUITE.test
def what_is_there():
    check({
        "somebody is there": lambda o: b"Ollama is running" in o.server.request("GET", "/").body,
        "HEAD says so, too": lambda o: head(o, "/") == 200,
        "the version is three numbers": lambda o: len(get(o, "/api/version")["version"].split(".")) == 3,
        "HEAD of the version": lambda o: head(o, "/api/version") == 200,
        "all models are listed, with a tag": lambda o: o.names() == ["tiny:latest", "box:latest"],
        "a listed model": lambda o: {"name", "model", "modified_at", "size", "digest", "details"} <= set(
            get(o, "/api/tags")["models"][0]),
        "its details": lambda o: {"parent_model", "format", "family", "families", "parameter_size", "quantization_level"} ==
            set(get(o, "/api/tags")["models"][0]["details"]),
        "what a model is": lambda o: {"modelfile", "parameters", "template", "details", "model_info", "capabilities",
                                      "modified_at"} <= set(show(o)),
        "what it can": lambda o: {"completion", "vision", "tools", "thinking"} <= set(show(o)["capabilities"]),
        "what it cannot": lambda o: show(o, model="tiny")["capabilities"] == ["completion"],
        "the old name of the field": lambda o: o.post("/api/show", {"name": "box"}),
        "a model that is not there": lambda o: o.refused("/api/show", {"model": "nobody"}, 404, "not found"),
        "no model": lambda o: o.refused("/api/show", {}, 400, "model is missing"),
        "a path that takes other methods": lambda o: o.server.request("GET", "/api/chat").status == 405,
        "OpenAI's list beside it": lambda o: [m["id"] for m in get(o, "/v1/models")["data"]] == ["tiny", "box"],
        "OpenAI's model": lambda o: get(o, "/v1/models/box")["id"] == "box",
    })


@SUITE.test
def chats():
    def streamed(o):
        lines = o.lines("/api/chat", messages=[{"role": "user", "content": SUM}])
        assert COUNTED <= set(lines[-1]) and not COUNTED & set(lines[0]) and lines[-1]["done_reason"] == "stop"
        assert all(e["message"]["role"] == "assistant" and e["done"] == (e is lines[-1]) for e in lines)
        return says_same(lines, o.chat())

    def call(o, **fields):
        return o.chat(WEATHER, tools=[TOOL], **fields)["message"]["tool_calls"][0]["function"]

    def streamed_call(o):
        lines = o.lines("/api/chat", messages=[{"role": "user", "content": WEATHER}], tools=[TOOL])
        calls = [c["function"] for e in lines for c in e["message"].get("tool_calls", ())]
        return [(c["name"], c["arguments"]) for c in calls] == [("get_weather", {"city": "Paris"})]

    def result(o):
        messages = [{"role": "user", "content": WEATHER},
                    {"role": "assistant", "content": "", "tool_calls": [
                        {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
                    {"role": "tool", "tool_name": "get_weather", "content": "sunny, 21 degrees"}]
        return "21" in o.chat(messages=messages, tools=[TOOL])["message"]["content"]

    def thinks(o, think, wanted):
        message = o.chat(think=think)["message"]
        assert "<think>" not in message["content"] and "579" in message["content"], message
        return bool(message.get("thinking")) == wanted

    check({
        "a whole answer": lambda o: "579" in o.chat()["message"]["content"],
        "a stream": streamed,
        "no body": lambda o: o.refused("/api/chat", "", 400, ""),
        "no model": lambda o: o.refused("/api/chat", {"messages": []}, 400, "model is required"),
        "a model that is not there": lambda o: o.refused("/api/chat", {"model": "nobody"}, 404, "not found"),
        "nothing said loads": lambda o: (lambda a: a["done_reason"] == "load" and a["message"]["content"] == "")(
            o.post("/api/chat", {"model": "box", "messages": [], "stream": False}).json()),
        "nothing said at all loads": lambda o: o.post("/api/chat", {"model": "box"}).json()["done_reason"] == "load",
        "a system message counts": lambda o: o.chat(messages=[
            {"role": "system", "content": "Answer in upper case."}, {"role": "user", "content": "Hello!"}])
            ["message"]["content"].isupper(),
        "a system message in between is taken": lambda o: o.chat(messages=[
            {"role": "user", "content": "Hello!"}, {"role": "system", "content": "Be brief."},
            {"role": "user", "content": SUM}])["message"]["content"],
        "a call": lambda o: call(o)["name"] == "get_weather" and call(o)["arguments"] == {"city": "Paris"},
        "a call in a stream": streamed_call,
        "a result is used": result,
        "thinking apart": lambda o: thinks(o, True, True),
        "thinking by how much": lambda o: thinks(o, "high", True),
        "no thinking": lambda o: thinks(o, False, False),
        "thinking that is no such word": lambda o: o.chat(think="much", status=400)["error"],
        "thinking of a model that does not (motet: 200, and a header)": lambda o: "warning" in o.post("/api/chat", {
            "model": "tiny", "think": "low", "stream": False, "messages": [{"role": "user", "content": "hello"}],
            "options": {"num_predict": 2}}).headers,
        "no thinking of a model that does not": lambda o: o.chat("hello", model="tiny", think=False,
                                                                 options={"num_predict": 2}),
        "a picture": lambda o: "3 triangles" in o.chat(messages=[
            {"role": "user", "content": "How many triangles are there?", "images": [PICTURE]}])["message"]["content"],
        "a picture for a model that sees nothing": lambda o: o.chat(model="tiny", status=400, messages=[
            {"role": "user", "content": "hello", "images": [PICTURE]}])["error"],
        "JSON": lambda o: o.chat(format="json")["message"]["content"][0] in '{["-0123456789tfn',
        "a schema": lambda o: isinstance(json.loads(o.chat(format=SCHEMA)["message"]["content"])["sum"], int),
        "a schema behind thinking": lambda o: (lambda m: m["thinking"] and json.loads(m["content"])["sum"])(
            o.chat(format=SCHEMA, think=True)["message"]),
        "a format that is none": lambda o: o.chat(format="yaml", status=400)["error"],
        "logprobs": lambda o: {"token", "logprob", "bytes"} <= set(o.chat(logprobs=True)["logprobs"][0]),
        "top logprobs": lambda o: len(o.chat(logprobs=True, top_logprobs=3)["logprobs"][0]["top_logprobs"]) == 3,
        "fewer than none": lambda o: o.chat(logprobs=True, top_logprobs=-1, status=400)["error"],
        "too many": lambda o: o.chat(logprobs=True, top_logprobs=21, status=400)["error"],
        "an end by number": lambda o: (lambda a: a["done_reason"] == "length" and a["eval_count"] == 2)(
            o.chat(options={"num_predict": 2})),
        "an end by a word": lambda o: "579" not in o.chat(options={"stop": ["5"]})["message"]["content"],
        "only the prompt": lambda o: SUM in o.chat(_debug_render_only=True)["_debug_info"]["rendered_template"],
    })


@SUITE.test
def prompts():
    def goes_on(o):
        first = o.generate("My name is Ada. Remember it.")
        return len(first["context"]) < len(o.generate("What is my name?", context=first["context"])["context"])

    def streamed(o):
        lines = o.lines("/api/generate", prompt=SUM)
        assert COUNTED <= set(lines[-1]) and lines[-1]["done"] and "context" in lines[-1]
        return "".join(e["response"] for e in lines) == o.generate()["response"]

    check({
        "a prompt": lambda o: "579" in o.generate()["response"],
        "a prompt, streamed": streamed,
        "no body": lambda o: o.refused("/api/generate", "", 400, ""),
        "no model": lambda o: o.refused("/api/generate", {"prompt": "a"}, 400, "model is required"),
        "a model that is not there": lambda o: o.refused("/api/generate", {"model": "nobody"}, 404, "not found"),
        "no prompt loads": lambda o: o.post("/api/generate", {"model": "box"}).json()["done_reason"] == "load",
        "a system text": lambda o: o.generate("Hello!", system="Answer in upper case.")["response"].isupper(),
        "a template of Go's (motet: an error)": lambda o: o.generate(template="{{ .Prompt }}", status=400)["error"],
        "what comes behind, of a model that fills no gaps": lambda o: o.generate(suffix="b", status=400)["error"],
        "a prompt as it is": lambda o: o.generate("hello", raw=True)["prompt_eval_count"] <
            o.generate("hello")["prompt_eval_count"],
        "what went before": goes_on,
        "pictures": lambda o: "3 triangles" in o.generate("How many triangles are there?", images=[PICTURE])["response"],
        "several pictures": lambda o: o.generate("What do you see?", images=[PICTURE, PICTURE])["prompt_eval_count"] >
            o.generate("What do you see?", images=[PICTURE])["prompt_eval_count"],
        "thinking": lambda o: o.generate(think=True)["thinking"],
        "a schema": lambda o: isinstance(json.loads(o.generate(format=SCHEMA)["response"])["sum"], int),
        "too many logprobs": lambda o: o.generate(logprobs=True, top_logprobs=21, status=400)["error"],
        "only the prompt": lambda o: SUM in o.generate(_debug_render_only=True)["_debug_info"]["rendered_template"],
    })


@SUITE.test
def models_come_and_go():
    def unloaded(o, path):
        assert o.post(path, {"model": "box", "keep_alive": 0}).json()["done_reason"] == "unload"
        return served.eventually(lambda: "box:latest" not in o.loaded())

    def loaded(o):
        o.post("/api/generate", {"model": "box"})
        model = next(m for m in get(o, "/api/ps")["models"] if m["name"] == "box:latest")
        return {"expires_at", "size_vram", "context_length", "details", "digest", "size"} <= set(model)

    def kept(o, keep):
        o.post("/api/generate", {"model": "box", "keep_alive": keep})
        model = next(m for m in get(o, "/api/ps")["models"] if m["name"] == "box:latest")
        return (int(model["expires_at"][:4]) > 2100) == (keep in (-1, "-1m"))

    def statuses(o):
        lines = o.post("/api/create", {"model": "loud", "from": "box", "system": "Answer in upper case."}).events()
        return lines[-1] == {"status": "success"} and o.chat("Hello!", model="loud")["message"]["content"].isupper()

    def copied(o):
        o.post("/api/copy", {"source": "loud", "destination": "louder"})
        return "louder:latest" in o.names() and o.chat("Hello!", model="louder")["message"]["content"].isupper()

    def blob(o):
        answer = o.server.request("POST", "/api/blobs/" + EMPTY, b"")
        return answer.status == 201 and head(o, "/api/blobs/" + EMPTY) == 200

    def wrong_blob(o):
        return o.server.request("POST", "/api/blobs/sha256:" + "0" * 64, b"a").status == 400

    check({
        "a prompt that is none loads": loaded,
        "seconds": lambda o: kept(o, 60), "minutes": lambda o: kept(o, "5m"),
        "for ever": lambda o: kept(o, -1), "for ever, as a time": lambda o: kept(o, "-1m"),
        "no time": lambda o: o.refused("/api/generate", {"model": "box", "keep_alive": "soon"}, 400, "keep_alive"),
        "a prompt that is none unloads": lambda o: unloaded(o, "/api/generate"),
        "and it comes back": loaded,
        "a chat that is none unloads": lambda o: unloaded(o, "/api/chat"),
        "made of another, with statuses": statuses,
        "made of one that is not there": lambda o: o.post("/api/create", {
            "model": "x", "from": "nobody", "stream": False}, 404).json()["error"],
        "made of nothing": lambda o: o.post("/api/create", {"model": "x", "stream": False}, 400).json()["error"],
        "copied": copied,
        "a copy of nothing": lambda o: o.refused("/api/copy", {"source": "nobody", "destination": "x"}, 404, "not found"),
        "deleted": lambda o: deleted(o, "louder") and "louder:latest" not in o.names(),
        "deleted again": lambda o: deleted(o, "louder", 404),
        "no file by that digest": lambda o: head(o, "/api/blobs/sha256:" + "1" * 64) == 404,
        "a file by its digest": blob,
        "a file with another digest": wrong_blob,
        "a pull of nothing": lambda o: o.refused("/api/pull", {}, 400, ""),
        "a push (motet: a 501)": lambda o: o.post("/api/push", {"model": "box"}, 501).json()["error"],
    })


@SUITE.test
def vectors():
    def embed(o, status=200, **fields):
        return o.post("/api/embed", {"model": "box", "input": "hello", **fields}, status).json()

    check({
        "one": lambda o: len(embed(o)["embeddings"]) == 1,
        "of length 1": lambda o: abs(sum(x * x for x in embed(o)["embeddings"][0]) - 1) < 1e-3,
        "several": lambda o: len(embed(o, input=["a", "b", "a"])["embeddings"]) == 3,
        "what it took": lambda o: {"total_duration", "load_duration", "prompt_eval_count"} <= set(embed(o)),
        "shorter ones": lambda o: len(embed(o, dimensions=64)["embeddings"][0]) == 64,
        "nothing": lambda o: embed(o, input=[])["embeddings"] == [],
        "no model": lambda o: o.refused("/api/embed", {"input": "a"}, 400, "model is required"),
        "a number": lambda o: embed(o, input=1, status=400)["error"],
        "the old path": lambda o: len(o.post("/api/embeddings", {"model": "box", "prompt": "hello"}).json()["embedding"]) == 384,
    })


SUITE.main()
