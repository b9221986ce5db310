#!/usr/bin/env python3
"""Ollama's API where one answer is not all there is to see: heads, times, tags of names, keys, what is counted. The cases
in tests/api/cases/ollama.json have the answers themselves.

usage: tests/api/test_ollama.py --motet PROGRAM [NAME ...]"""

import contextlib
import datetime
import json
import os
import shutil
import sys
import tempfile
import threading
import time

import served

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import hub as hubs  # pylint: disable=wrong-import-position

SUITE = served.Suite("api_ollama")
ASK = {"model": "tiny", "messages": [{"role": "user", "content": "hello world"}],
       "options": {"temperature": 0, "num_predict": 8}}


def taken(server):
    """The socket of a client that does not read its answers, which are too long to be sent all the same."""
    return served.send(server, "/v1/completions", {"prompt": [[5, 6]] * 32, "max_tokens": 2000, "ignore_eos": True,
                                                   "logprobs": 20, "stream": True})


def moment(text):
    """Seconds since 1970 of a time as Go writes it."""
    head, fraction = text[:-1].split(".")
    assert text.endswith("Z") and len(fraction) == 9, text
    parsed = datetime.datetime.strptime(head, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=datetime.timezone.utc)
    return parsed.timestamp() + int(fraction) / 1e9


@SUITE.test
def test_streams():
    """A stream is lines of JSON, each with its own time, and the last tells what it took."""
    with SUITE.start() as server:
        begin = time.time()
        answer = server.post("/api/chat", ASK)
        end = time.time()
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.body.endswith(b"}\n") and b"\n\n" not in answer.body
        events = answer.events()
        times = [moment(e["created_at"]) for e in events]
        assert times == sorted(times) and begin - 1 < times[0] and times[-1] < end + 1
        last = events[-1]
        assert last["eval_count"] == 8 and last["done_reason"] == "length"
        assert 0 < last["eval_duration"] < last["total_duration"] <= (end - begin) * 1e9
        assert 0 < last["prompt_eval_duration"] < last["total_duration"]
        assert set(last) - set(events[0]) == {"done_reason", "total_duration", "load_duration", "prompt_eval_count",
                                              "prompt_eval_duration", "eval_count", "eval_duration"}
        whole = server.post("/api/chat", dict(ASK, stream=False))
        assert whole.headers["content-type"] == "application/json"
        assert whole.json()["message"]["content"] == "".join(e["message"]["content"] for e in events)
        assert whole.json()["message"]["content"] == server.chat(temperature=0, max_tokens=8).text()


@SUITE.test
def test_silence():
    """A stream that has long nothing to say says so in a line that is one of its own."""
    with SUITE.start("--keep-alive-seconds", "1", "--max-sequences", "1") as server:
        first = taken(server)
        assert served.eventually(lambda: server.status()["running"] == 1)
        asked = [(served.send(server, path, body), key) for path, body, key in (
            ("/api/chat", {"model": "tiny", "messages": ASK["messages"]}, "message"),
            ("/api/generate", {"model": "tiny", "prompt": "hello"}, "response"))]
        for s, key in asked:
            lines = s.makefile("rb")
            while not (line := lines.readline()).startswith(b"{"):
                assert line
            assert json.loads(line)["done"] is False and key in json.loads(line) and b"created_at" not in line
            s.close()
        first.close()
        server.wait_idle()


@SUITE.test
def test_what_is_not_looked_at_is_told():
    with SUITE.start() as server:
        options = dict(ASK["options"], mirostat=2, num_gpu=1, num_ctx=100, tfs_z=None)
        answer = server.post("/api/chat", dict(ASK, options=options, no_such=1, keep_alive="5m", truncate=True))
        assert answer.headers["warning"] == "299 motet \"not looked at: no_such, options.mirostat\"", answer.headers
        assert "warning" not in server.post("/api/chat", ASK).headers


@SUITE.test
def test_names():
    """A name may have the tag that says nothing, in every API."""
    with SUITE.start("--alias", "a/b") as server:
        for name in ("tiny", "tiny:latest", "a/b", "a/b:latest", "default"):
            assert server.post("/api/show", {"model": name}).status == 200, name
            assert server.chat(model=name, max_tokens=1).status == 200, name
        for name in ("tiny:", "tiny:8b", "tiny:latest2", ":latest", "a:latest"):
            assert server.post("/api/show", {"model": name}).status == 404, name
            assert server.chat(model=name, max_tokens=1).status == 404, name
        listed = server.request("GET", "/api/tags").json()["models"]
        assert [m["name"] for m in listed] == ["tiny:latest", "a/b:latest"]
        assert len({m["digest"] for m in listed}) == 1 and len(listed[0]["digest"]) == 64


@SUITE.test
def test_licenses():
    """The licence in a model's folder is shown, if it is a text."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "tiny")
        shutil.copytree(SUITE.folder, tiny)
        with SUITE.start(folder=tiny) as server:
            def shown():
                return server.post("/api/show", {"model": "tiny"}).json().get("license")
            assert shown() is None
            for name, text, want in (("LICENSE.md", b"Do as you like.\n", "Do as you like.\n"), ("LICENSE", b"\xff\x00", None),
                                     ("LICENSE", "MIT \u00a9".encode(), "MIT \u00a9"), ("LICENSE", b"x" * 300000, None)):
                with open(os.path.join(tiny, name), "wb") as file:
                    file.write(text)
                assert shown() == (want or "Do as you like.\n"), (name, shown())


@SUITE.test
def test_probes():
    """How clients find out who is there."""
    with SUITE.start() as server:
        assert "Ollama is running" in server.request("GET", "/").body.decode()
        for path in ("/", "/api/version", "/api/tags"):
            head = server.request("HEAD", path)
            assert head.status == 200 and head.body == b"", path
        version = server.request("GET", "/api/version").json()["version"]
        assert [int(n) for n in version.split(".")] >= [0, 6, 4]
        assert server.request("GET", "/version").json()["version"]
        assert server.request("GET", "/ping").status == server.post("/ping", "").status == 200
        assert server.request("GET", "/load").json() == {"server_load": 0}
        with taken(server):
            assert served.eventually(lambda: server.request("GET", "/load").json() == {"server_load": 1})
        assert served.eventually(lambda: server.request("GET", "/load").json() == {"server_load": 0})


@SUITE.test
def test_keys():
    """Errors that no route has seen are Ollama's on its paths; a key comes as it does elsewhere."""
    with SUITE.start("--api-key", "secret") as server:
        for path in ("/api/chat", "/api/tags", "/api/show", "/props", "/slots"):
            method = "GET" if path in ("/api/tags", "/props", "/slots") else "POST"
            refused = server.request(method, path, "{}" if method == "POST" else None)
            assert refused.status == 401, path
            assert isinstance(refused.json()["error"], str if path.startswith("/api/") else dict), path
        key = {"authorization": "Bearer secret"}
        assert server.request("GET", "/api/tags", headers=key).status == 200
        assert server.post("/api/chat", ASK, key).status == 200


@SUITE.test
def test_vectors():
    """Those of /api/embed have length 1, those of /api/embeddings the length that the model gives them."""
    with SUITE.start() as server:
        new = server.post("/api/embed", {"model": "tiny", "input": ["hello world"]}).json()
        old = server.post("/api/embeddings", {"model": "tiny", "prompt": "hello world"}).json()["embedding"]
        length = sum(x * x for x in old) ** 0.5
        assert abs(sum(x * x for x in new["embeddings"][0]) - 1) < 1e-5 and length > 2
        assert all(abs(x / length - y) < 1e-5 for x, y in zip(old, new["embeddings"][0]))
        assert new["prompt_eval_count"] > 0 and 0 < new["total_duration"]


@SUITE.test
def test_slots():
    """Of as many places as there are, those are taken that somebody has."""
    with SUITE.start("--max-sequences", "3") as server:
        def count():
            slots = server.request("GET", "/slots").json()
            assert [s["id"] for s in slots] == [0, 1, 2] and all(s["n_ctx"] == 2048 for s in slots)
            return sum(s["is_processing"] for s in slots)
        assert count() == 0 and server.request("GET", "/props").json()["total_slots"] == 3
        with taken(server):
            assert served.eventually(lambda: count() == 3)
        assert served.eventually(lambda: count() == 0)


@SUITE.test
def test_paths_without_v1():
    """What llama.cpp has without /v1 as well, since clients of it leave that out."""
    asked = {"max_tokens": 4, "temperature": 0}
    with SUITE.start() as server:
        chat = dict(asked, messages=[{"role": "user", "content": "hello world"}])
        assert server.post("/chat/completions", chat).text() == server.post("/v1/chat/completions", chat).text()
        said = [server.post(path, {"max_output_tokens": 4, "temperature": 0, "input": "hello world"}).json()
                for path in ("/responses", "/v1/responses")]
        assert said[0]["object"] == "response" and said[0]["usage"]["output_tokens"] == 4
        assert said[0]["output"][0]["content"] == said[1]["output"][0]["content"]
        models = [server.request("GET", path).json()["data"][0]["id"] for path in ("/models", "/v1/models")]
        assert models == ["tiny", "tiny"]
        assert server.request("GET", "/chat/completions").status == 405


@SUITE.test
def test_counts():
    """What vLLM counts of each answer is counted: tokens of prompts and answers, what was asked for, what took long."""
    with SUITE.start() as server:
        for n, tokens in ((1, 8), (3, 2)):
            server.complete(prompt=[5, 6, 7, 8 + n], n=n, max_tokens=tokens, ignore_eos=True)
        server.wait_idle()
        found = served.eventually(lambda: server.metrics().get("vllm:request_generation_tokens_count") == 4 and
                                  server.metrics())

        def histogram(name):
            return found["vllm:" + name + "_count"], found["vllm:" + name + "_sum"]
        assert histogram("request_prompt_tokens") == (4, 16)
        assert histogram("request_generation_tokens") == (4, 14)
        assert histogram("request_params_n") == (2, 4)
        assert histogram("request_params_max_tokens") == (2, 10)
        assert found['vllm:request_generation_tokens_bucket{le="2"}'] == 3
        assert found['vllm:request_generation_tokens_bucket{le="10"}'] == 4
        for name in ("request_inference_time_seconds", "request_decode_time_seconds",
                     "request_time_per_output_token_seconds", "e2e_request_latency_seconds"):
            assert histogram(name)[0] == 4 and histogram(name)[1] > 0, name
        assert histogram("time_per_output_token_seconds") == histogram("inter_token_latency_seconds")
        steps, rows = histogram("iteration_tokens_total")
        assert rows >= 4 + 7 + 3 * 2 and steps == found["motet_step_seconds_count"]
        assert found['motet_step_seconds_bucket{le="0.0001"}'] <= found['motet_step_seconds_bucket{le="5000"}']
        blocks = [name for name in found if name.startswith("vllm:cache_config_info{block_size=\"32\",num_gpu_blocks=")]
        assert len(blocks) == 1 and found[blocks[0]] == 1


@SUITE.test
def test_what_does_not_fit():
    """A chat that is too long loses its oldest turns, as many as it must, and neither the system's words nor the last."""
    system = {"role": "system", "content": "the quick brown fox"}
    turns = [[{"role": "user", "content": "hello {} ".format(i) + "world " * 60},
              {"role": "assistant", "content": "many voices {}".format(i)}] for i in range(40)]
    last = {"role": "user", "content": "each its own text"}

    def chat(first):
        return [system, *(message for turn in turns[first:] for message in turn), last]
    with SUITE.start() as server:
        body = {"model": "tiny", "stream": False, "options": {"temperature": 0, "num_predict": 100}}
        cut = server.post("/api/chat", dict(body, messages=chat(0)))
        count = cut.json()["prompt_eval_count"]
        assert cut.status == 200 and 1700 < count <= 2048 - 100, cut.body
        gone = int(cut.headers["warning"].split("room: ")[1].split(" ")[0])
        assert gone % 2 == 0 and gone > 10
        same = server.post("/api/chat", dict(body, messages=chat(gone // 2), truncate=False))
        assert same.json()["message"] == cut.json()["message"] and same.json()["prompt_eval_count"] == count
        more = server.post("/api/chat", dict(body, messages=chat(gone // 2 - 1), truncate=False)).json()
        assert more.get("prompt_eval_count", 9999) > 2048 - 100, "no more than it must"
        assert server.post("/api/chat", dict(body, messages=chat(0), truncate=False)).status == 400
        assert server.post("/api/chat", dict(body, messages=chat(0), truncate="yes")).status == 400
        alone = [system, {"role": "user", "content": "hello " * 2100}]
        assert "context length" in server.post("/api/chat", dict(body, messages=alone)).json()["error"]
        asked = {"input": chat(0), "temperature": 0, "max_output_tokens": 100}
        assert server.post("/v1/responses", asked).status == 400
        auto = server.post("/v1/responses", dict(asked, truncation="auto")).json()
        assert auto["usage"]["input_tokens"] == count, auto


def loaded_with(server, key):
    return server.request("GET", "/api/ps", headers={"authorization": "Bearer " + key}).json()["models"]


def loaded(server):
    """{name: seconds that it stays}"""
    now = time.time()
    return {m["name"]: datetime.datetime.strptime(m["expires_at"], "%Y-%m-%dT%H:%M:%SZ").replace(
        tzinfo=datetime.timezone.utc).timestamp() - now for m in server.request("GET", "/api/ps").json()["models"]}


@SUITE.test
def test_keep_alive():
    """A model stays for as long as the last request says, goes when it is told to, and comes back."""
    with SUITE.start() as server:
        assert loaded(server)["tiny:latest"] > 1e9
        for value, least, most in (("1h", 3500, 3601), (1800, 1700, 1801), ("1h30m", 5300, 5401), (-1, 1e9, 1e10),
                                   ("-1m", 1e9, 1e10), (None, 1e9, 1e10)):
            assert server.post("/api/chat", dict(ASK, keep_alive=value)).status == 200, value
            assert served.eventually(lambda: least < loaded(server)["tiny:latest"] < most), (value, loaded(server))
        for value in ("soon", "5x", [], True, ""):
            assert server.post("/api/chat", dict(ASK, keep_alive=value)).status == 400, value
        gone = server.post("/api/generate", {"model": "tiny", "keep_alive": 0}).json()
        assert (gone["done"], gone["done_reason"], gone["response"]) == (True, "unload", "")
        assert served.eventually(lambda: not loaded(server))
        gone = server.post("/api/chat", {"model": "tiny:latest", "messages": [], "keep_alive": "0s"}).json()
        assert gone["done_reason"] == "unload" and gone["message"]["content"] == "" and not loaded(server)
        assert server.post("/api/chat", {"model": "nobody", "keep_alive": 0}).status == 404
        for path, unnamed in (("/api/generate", {}), ("/api/chat", {}), ("/api/generate", {"model": ""})):
            refused = server.post(path, dict(unnamed, keep_alive=0))
            assert refused.status == 400 and "is missing" in refused.json()["error"], refused.body
        back = server.post("/api/chat", dict(ASK, stream=False)).json()
        assert 0 < back["load_duration"] < back["total_duration"], back
        assert 0 < back["prompt_eval_duration"] < back["total_duration"] - back["load_duration"], back
        assert loaded(server)
        again = server.post("/api/chat", dict(ASK, stream=False)).json()
        assert 0 < again["load_duration"] < again["total_duration"], again  # clients divide by it
        server.post("/api/embed", {"model": "tiny", "input": "hello", "keep_alive": 0})
        assert served.eventually(lambda: not loaded(server))
        assert server.post("/api/generate", {"model": "tiny"}).json()["done_reason"] == "load" and loaded(server)


NAME = "Owner/Tiny"


@contextlib.contextmanager
def with_hub(*options, folder=None):
    """A hub with the fixture's model, a cache, and a server that fetches from the one into the other."""
    with tempfile.TemporaryDirectory() as cache, hubs.Hub() as hub:
        hub.add(NAME, hubs.files_of(SUITE.folder))
        env = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": cache, "HOME": "/nowhere", "no_proxy": "127.0.0.1"}
        with SUITE.start(*options, folder=folder, env=env) as server:
            yield server, hub, cache


def weights(hub):
    return hubs.sha256(hub.repositories[NAME]["commits"][hub.repositories[NAME]["refs"]["main"]]["model.safetensors"])


def is_there(cache):
    return os.path.exists(os.path.join(cache, "models--Owner--Tiny", "refs", "main"))


@SUITE.test
def test_pull():
    """A model is fetched, and the client told how far that is; then it is deleted."""
    served.need(SUITE.program, "fetch")
    with with_hub("--allow-pull") as (server, hub, cache):
        answer = server.post("/api/pull", {"model": NAME + ":latest"})
        assert answer.status == 200 and answer.headers["content-type"] == "application/x-ndjson", answer.body
        lines = answer.events()
        assert lines[0] == {"status": "pulling manifest"} and lines[-1] == {"status": "success"}, lines
        files = {line["digest"]: line for line in lines if "digest" in line}
        size = len(hub.large[weights(hub)])
        assert files["sha256:" + weights(hub)]["total"] == files["sha256:" + weights(hub)]["completed"] == size
        assert is_there(cache)
        again = server.post("/api/pull", {"name": NAME, "stream": False})
        assert (again.status, again.json()) == (200, {"status": "success"})
        for model, status in ((NAME, 200), (NAME, 404), ("tiny", 409), ("../x", 400), ("", 400)):
            gone = server.request("DELETE", "/api/delete", {"model": model})
            assert gone.status == status, (model, gone.status, gone.body)
            assert status == 200 or isinstance(gone.json()["error"], str)
        assert not is_there(cache)


@SUITE.test
def test_from_a_pull_to_an_answer():
    """A server that was given no model: one is fetched, found, loaded, asked, and deleted, loaded as it is."""
    served.need(SUITE.program, "fetch")
    with with_hub("--allow-pull", folder=[]) as (server, _, cache):
        ask = dict(ASK, model=NAME, stream=False)
        assert server.request("GET", "/api/tags").json() == {"models": []}
        assert server.post("/api/chat", ask).status == 404
        assert server.post("/api/pull", {"model": NAME, "stream": False}).status == 200
        listed = served.eventually(lambda: server.request("GET", "/api/tags").json()["models"])
        assert [m["name"] for m in listed] == [NAME + ":latest"] and not loaded(server)
        shown = server.post("/api/show", {"model": NAME}).json()
        assert shown["capabilities"] == ["completion"] and not loaded(server), shown
        answer = server.post("/api/chat", dict(ask, model=NAME + ":latest")).json()
        assert answer["message"]["content"] == "+ne otherxicesick" and answer["load_duration"] > 0, answer
        assert 250 < loaded(server)[NAME + ":latest"] < 301
        again = server.post("/api/show", {"model": NAME}).json()
        for key in ("template", "parameters"):
            assert shown[key] and shown[key] == again[key], (key, shown, again)
        assert server.request("DELETE", "/api/delete", {"model": NAME}).status == 200 and not is_there(cache)
        assert served.eventually(lambda: not loaded(server))
        assert served.eventually(lambda: not server.request("GET", "/api/tags").json()["models"])


@SUITE.test
def test_pulls_that_fail():
    served.need(SUITE.program, "fetch")
    with with_hub("--allow-pull") as (server, _, _):
        missing = server.post("/api/pull", {"model": "Owner/Nothing"}).events()
        assert missing[0] == {"status": "pulling manifest"} and list(missing[-1]) == ["error"], missing
        whole = server.post("/api/pull", {"model": "Owner/Nothing", "stream": False})
        assert whole.status == 404 and whole.json()["error"] == missing[-1]["error"], whole.body
        for body in ({}, {"model": ""}, {"model": 3}):
            assert server.post("/api/pull", body).status == 400, body
        assert server.post("/api/pull", "{").status == 400
        assert server.post("/api/pull", {"model": "x" * 5000}).status == 413


@SUITE.test
def test_pulls_that_are_left():
    """Who leaves ends his pull, and the next goes on; a server that ends does not wait for one."""
    served.need(SUITE.program, "fetch")
    with with_hub("--allow-pull") as (server, hub, cache):
        def hold(handler, data):
            begun.set()
            go_on.wait(served.PATIENCE)
            handler.cut(data, 1000)
        begun, go_on = threading.Event(), threading.Event()
        hub.faults[weights(hub)] = [hold]
        with served.send(server, "/api/pull", {"model": NAME}):
            assert begun.wait(served.PATIENCE)
        assert served.eventually(lambda: any("model.pulled" in line for line in list(server.log)))
        go_on.set()
        assert server.post("/api/pull", {"model": NAME, "stream": False}).json() == {"status": "success"}
        server.request("DELETE", "/api/delete", {"name": NAME})
        begun, go_on = threading.Event(), threading.Event()
        hub.faults[weights(hub)] = [hold]
        ended = []
        with served.send(server, "/api/pull", {"model": NAME}):
            assert begun.wait(served.PATIENCE)
            stopping = threading.Thread(target=lambda: ended.append(server.stop()))
            stopping.start()
            assert served.eventually(lambda: "download was stopped" in
                                     "".join(list(server.log)).partition("server.draining")[2])
        stopping.join()
        assert ended == [0] and not is_there(cache)
        go_on.set()


@SUITE.test
def test_who_may_pull():
    """Nobody, unless the operator says so; and where there are keys, an admin."""
    with with_hub() as (server, hub, _):
        for method, path in (("POST", "/api/pull"), ("DELETE", "/api/delete")):
            refused = server.request(method, path, {"model": NAME})
            assert refused.status == 403 and "--allow-pull" in refused.json()["error"], refused.body
        assert not hub.asked
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys")
        with open(path, "w", encoding="utf-8") as f:
            f.write("one name=one\ntwo name=two admin\n")
        with with_hub("--allow-pull", "--keys", path) as (server, hub, _):
            for key, status in ((None, 401), ("one", 403), ("two", 404)):
                headers = {"authorization": "Bearer " + key} if key else {}
                refused = server.request("DELETE", "/api/delete", {"model": NAME}, headers)
                assert refused.status == status, (key, refused.body)
            headers = {"authorization": "Bearer one"}
            assert server.request("POST", "/api/chat", {"model": "tiny", "keep_alive": 0}, headers).status == 403
            assert server.request("POST", "/api/chat", dict(ASK, keep_alive=0), headers).status == 200
            assert loaded_with(server, "two"), "how long it stays is not for all to say"
            assert server.request("POST", "/api/pull", {"model": NAME}, headers).status == 403 and not hub.asked


SUITE.main()
