#!/usr/bin/env python3
"""Models that clients create of others by Ollama's /api/create and /api/copy: what they answer, in every API; that they
outlive the server; and the "context" of /api/generate.

usage: tests/api/test_created.py --motet PROGRAM [NAME ...]"""

import contextlib
import json
import os
import tempfile

import served

SUITE = served.Suite("api_created")
HELLO = [{"role": "user", "content": "hello world"}]
SYSTEM = {"role": "system", "content": "You are a fox."}
GREEDY = {"temperature": 0, "num_predict": 8}


@contextlib.contextmanager
def started(cache, *options, **settings):
    env = {"HF_HUB_CACHE": cache, "HOME": "/nowhere"}
    with SUITE.start("--allow-pull", *options, env=env, **settings) as server:
        yield server


@contextlib.contextmanager
def alone(*options, **settings):
    with tempfile.TemporaryDirectory() as cache, started(cache, *options, **settings) as server:
        yield server


def create(server, name, **body):
    answer = server.post("/api/create", {"model": name, "from": "tiny", "stream": False, **body})
    assert (answer.status, answer.json()) == (200, {"status": "success"}), answer.body


def chat(server, name, messages=None, **options):
    answer = server.post("/api/chat", {"model": name, "messages": messages or HELLO, "stream": False, "options": options})
    assert answer.status == 200, answer.body
    return answer.json()


def said(server, name, messages=None, **options):
    answer = chat(server, name, messages, **options)
    return answer["message"]["content"], answer["prompt_eval_count"]


def names(server, path="/api/tags"):
    answer = server.request("GET", path).json()  # OpenAI's list has Gemini's beside it
    return [m.get("name", m.get("id")) for m in answer.get("data") or answer["models"]]


@SUITE.test
def settings_and_messages():
    shots = [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "and then"}]
    with alone() as server:
        create(server, "fox", system=SYSTEM["content"], parameters=GREEDY, messages=shots)
        wanted = said(server, "tiny", [SYSTEM, *shots, *HELLO], **GREEDY)
        assert said(server, "fox") == wanted
        assert said(server, "fox:latest") == wanted
        other = {"role": "system", "content": "You are a dog."}
        assert said(server, "fox", [other, *HELLO]) == said(server, "tiny", [other, *shots, *HELLO], **GREEDY)
        assert chat(server, "fox", num_predict=2)["eval_count"] == 2  # those of a request count more
        answer = server.post("/api/generate", {"model": "fox", "prompt": "hello world", "stream": False}).json()
        assert (answer["response"], answer["model"]) == (wanted[0], "fox"), answer
        answer = server.post("/v1/chat/completions", {"model": "fox", "messages": HELLO}).json()
        assert answer["choices"][0]["message"]["content"] == wanted[0], answer
        answer = server.post("/v1/messages", {"model": "fox", "messages": HELLO, "max_tokens": 8}).json()
        assert answer["content"][0]["text"] == wanted[0], answer
        answer = server.post("/v1/responses", {"model": "fox", "input": "hello world"}).json()
        assert answer["output"][0]["content"][0]["text"] == wanted[0], answer
        answer = server.post("/v1/completions", {"model": "fox", "prompt": "hello world"}).json()
        assert answer["usage"]["completion_tokens"] == 8, answer


@SUITE.test
def made_of_created_ones():
    with alone() as server:
        create(server, "fox", system=SYSTEM["content"], parameters=dict(GREEDY, stop=["zzz"]))
        create(server, "vixen", **{"from": "fox:latest", "parameters": {"num_predict": 3}})
        assert chat(server, "vixen")["eval_count"] == 3
        assert said(server, "vixen")[1] == said(server, "fox")[1]  # the system message is there
        shown = server.post("/api/show", {"model": "vixen"}).json()
        assert shown["details"]["parent_model"] == "tiny" and shown["system"] == SYSTEM["content"], shown
        assert "PARAMETER num_predict 3" in shown["modelfile"] and 'PARAMETER stop "zzz"' in shown["modelfile"], shown
        assert server.post("/api/copy", {"source": "vixen", "destination": "third:1b"}).status == 200
        assert server.request("DELETE", "/api/delete", {"model": "vixen"}).status == 200
        assert chat(server, "third:1b")["eval_count"] == 3
        assert names(server) == ["tiny:latest", "fox:latest", "third:1b"]
        assert names(server, "/v1/models") == ["tiny", "fox", "third:1b"] == names(server, "/api/v0/models")


@SUITE.test
def they_outlive_the_server():
    with tempfile.TemporaryDirectory() as cache:
        with started(cache) as server:
            create(server, "fox", system=SYSTEM["content"], parameters=GREEDY)
            create(server, "gone")
            assert server.request("DELETE", "/api/delete", {"model": "gone"}).status == 200
            before = said(server, "fox")
        with started(cache) as server:
            assert names(server) == ["tiny:latest", "fox:latest"]
            assert said(server, "fox") == before
            assert server.post("/api/chat", {"model": "gone", "messages": HELLO}).status == 404
        with started(cache, "--served-name", "another") as server:  # what it is made from is not here
            assert names(server) == ["another:latest"]
            assert server.post("/api/chat", {"model": "fox", "messages": HELLO}).status == 404


@SUITE.test
def statuses():
    with alone() as server:
        answer = server.post("/api/create", {"model": "fox", "from": "tiny", "system": "Be brief.", "wheels": 4,
                                             "parameters": {"wings": 2}})
        assert answer.headers["content-type"] == "application/x-ndjson", answer.headers
        assert [e["status"] for e in answer.events()] == [
            "reading model metadata", "creating system layer", "creating parameters layer", "writing manifest",
            "success"], answer.body
        assert answer.headers["warning"] == '299 motet "not looked at: wheels, parameters.wings"', answer.headers
        answer = server.post("/api/copy", {"source": "tiny", "destination": "copy"})
        assert (answer.status, answer.body) == (200, b"")
        assert said(server, "copy", **GREEDY) == said(server, "tiny", **GREEDY)


@SUITE.test
def refusals():
    long = "x" * 300000
    with alone() as server:
        for status, word, body in (
                (400, "model", {}), (400, "from", {"model": "x"}), (404, "none", {"model": "x", "from": "none"}),
                (409, "already", {"model": "tiny", "from": "tiny"}), (409, "already", {"model": "default", "from": "tiny"}),
                (400, "no name", {"model": "../x", "from": "tiny"}), (400, "no name", {"model": "x" * 121, "from": "tiny"}),
                (400, "parameters.temperature", {"model": "x", "from": "tiny", "parameters": {"temperature": 99}}),
                (400, "parameters", {"model": "x", "from": "tiny", "parameters": []}),
                (400, "messages", {"model": "x", "from": "tiny", "messages": [{"role": "elf", "content": "a"}]}),
                (400, "messages", {"model": "x", "from": "tiny", "messages": "a"}),
                (400, "system", {"model": "x", "from": "tiny", "system": 5}),
                (400, "quantize", {"model": "x", "from": "tiny", "quantize": "q4_K_M"}),
                (400, "files", {"model": "x", "files": {"model.gguf": "sha256:00"}}),
                (400, "adapters", {"model": "x", "from": "tiny", "adapters": {"a": "b"}}),
                (400, "Go's", {"model": "x", "from": "tiny", "template": "{{ .Prompt }}"}),
                (400, "--allow-chat-template", {"model": "x", "from": "tiny", "template": "{{ messages }}"}),
                (413, "large", {"model": "x", "from": "tiny", "system": long})):
            answer = server.post("/api/create", body)
            assert answer.status == status and word in answer.json()["error"], (body, answer.status, answer.body[:300])
        for status, body in ((400, {}), (400, {"source": "tiny"}), (404, {"source": "none", "destination": "x"}),
                             (409, {"source": "tiny", "destination": "tiny"}), (400, {"source": "tiny", "destination": "/"})):
            assert server.post("/api/copy", body).status == status, body
        assert names(server) == ["tiny:latest"]
    with SUITE.start() as server:  # without --allow-pull
        assert server.post("/api/create", {"model": "x", "from": "tiny"}).status == 403
        assert server.post("/api/copy", {"source": "tiny", "destination": "x"}).status == 403


@SUITE.test
def a_template():
    with alone("--allow-chat-template") as server:
        create(server, "bare", template="{{ messages[-1].content }}", parameters=GREEDY)
        answer = server.post("/v1/completions", {"prompt": "hello world", "temperature": 0, "max_tokens": 8,
                                                 "add_special_tokens": False}).json()
        assert said(server, "bare")[0] == answer["choices"][0]["text"], answer
        assert server.post("/api/show", {"model": "bare"}).json()["template"] == "{{ messages[-1].content }}"
    with tempfile.TemporaryDirectory() as cache:
        with started(cache, "--allow-chat-template") as server:
            create(server, "bare", template="{{ messages[-1].content }}")
        with started(cache) as server:  # which does not take it any more
            answer = server.post("/api/chat", {"model": "bare", "messages": HELLO})
            assert answer.status == 400 and "was created with a chat template" in answer.json()["error"], answer.body


@SUITE.test
def unloading():
    with alone("--model", SUITE.folder, "--keep-alive", "-1", folder=[]) as server:
        create(server, "fox")
        said(server, "fox", **GREEDY)
        answer = server.post("/api/generate", {"model": "fox", "keep_alive": 0}).json()
        assert (answer["model"], answer["done_reason"]) == ("fox", "unload"), answer


@SUITE.test
def context():
    with alone() as server:
        def generate(**body):
            answer = server.post("/api/generate", {"model": "tiny", "stream": False, "options": GREEDY, **body})
            assert answer.status == 200, answer.body
            return answer.json()
        first = generate(prompt="hello world")
        assert len(first["context"]) == first["prompt_eval_count"] + first["eval_count"], first
        second = generate(prompt="the fox", context=first["context"])
        alone_count = generate(prompt="the fox")["prompt_eval_count"]
        assert second["prompt_eval_count"] == len(first["context"]) + alone_count, second
        assert second["context"][:len(first["context"])] == first["context"], second
        whole = server.post("/v1/completions", {"prompt": second["context"][:second["prompt_eval_count"]],
                                                "temperature": 0, "max_tokens": 8}).json()
        assert whole["choices"][0]["text"] == second["response"], (whole, second)
        events = server.post("/api/generate", {"model": "tiny", "options": GREEDY, "prompt": "hello world"}).events()
        assert events[-1]["context"] == first["context"] and "context" not in events[0], events
        ended = server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status
        assert ended == 200 and "context" not in generate(prompt="hello world", raw=True)
        create(server, "fox", system=SYSTEM["content"], parameters=GREEDY)
        again = generate(model="fox", prompt="the fox", context=first["context"])  # its beginning is in the context
        assert again["context"] == second["context"], again
        for body in ({"context": "a"}, {"context": [-1]}, {"context": [99999]}, {"context": [1], "raw": True},
                     {"context": [1], "images": ["aGk="]}, {"context": [5] * 2048}):
            answer = server.post("/api/generate", {"model": "tiny", "prompt": "a", "stream": False, **body})
            assert answer.status == 400, (body, answer.body)


@SUITE.test
def files_are_named_by_digits():
    """No name of a model leads anywhere else on the disk."""
    with tempfile.TemporaryDirectory() as cache, started(cache) as server:
        create(server, "a/b.c:d")
        folder = os.path.join(cache, "motet-created")
        assert os.listdir(folder) == ["a/b.c:d".encode().hex() + ".json"], os.listdir(folder)
        with open(os.path.join(folder, os.listdir(folder)[0]), encoding="utf-8") as f:
            assert json.load(f) == {"from": "tiny", "name": "a/b.c:d"}


if __name__ == "__main__":
    SUITE.main()
