#!/usr/bin/env python3
"""No answer tells where the server has its files: errors of every kind that has to do with files, and of some that have
not. The tests of the API look at all their answers alike (served.Server.check_private).

usage: tests/attack/paths.py --motet PROGRAM [NAME ...]"""

import contextlib
import json
import os
import shutil
import tempfile

import reach
import fixture
import hub as hubs
import served
from served import eventually

PART = 13  # models that a server is started with
TESTS = []


def test(function):
    TESTS.append(function)
    return function


@contextlib.contextmanager
def models():
    """A folder with two models whose path has words of its own, and the environment of a server."""
    with tempfile.TemporaryDirectory(prefix="secret-place-") as folder:
        fixture.write(folder + "/models/good", 1)
        fixture.write(folder + "/models/bad", 2)
        os.makedirs(folder + "/cache")
        yield folder, {"HF_HUB_CACHE": folder + "/cache", "HOME": folder + "/home", "TMPDIR": folder + "/tmp"}


def change(path, function):
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    function(data)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f)


def overwrite(path, data):
    os.remove(path)
    with open(path, "wb") as f:
        f.write(data)


def as_folder(path):
    os.remove(path)
    os.mkdir(path)


def as_fifo(path):
    os.remove(path)
    os.mkfifo(path)


def as_index(folder):
    """Weights in shards, of which some are missing."""
    os.rename(folder + "/model.safetensors", folder + "/model-00001-of-00003.safetensors")
    with open(folder + "/model.safetensors.index.json", "w", encoding="ascii") as f:
        json.dump({"weight_map": {"a": "model-00001-of-00003.safetensors", "b": "model-00003-of-00003.safetensors"}}, f)


BROKEN = [
    ("no config", lambda d: os.remove(d + "/config.json"), 404),
    ("no weights", lambda d: os.remove(d + "/model.safetensors"), 404),
    ("nothing", shutil.rmtree, 404),
    ("empty", lambda d: (shutil.rmtree(d), os.mkdir(d)), 404),
    ("a file instead", lambda d: (shutil.rmtree(d), overwrite_new(d)), (404, 500)),
    ("shards are missing", as_index, 404),
    ("a config that is no JSON", lambda d: overwrite(d + "/config.json", b"{"), 500),
    ("an empty config", lambda d: overwrite(d + "/config.json", b""), 500),
    ("a config of another family", lambda d: change(d + "/config.json", lambda c: c.update(model_type="nobody")), 500),
    ("a config without layers", lambda d: change(d + "/config.json", lambda c: c.pop("num_hidden_layers")), 500),
    ("a config that is a folder", lambda d: as_folder(d + "/config.json"), 500),
    ("a config that is a FIFO", lambda d: as_fifo(d + "/config.json"), 500),
    ("a large config", lambda d: overwrite(d + "/config.json", b" " * (64 << 20)), 500),
    ("weights cut off", lambda d: os.truncate(d + "/model.safetensors", 5000), 500),
    ("empty weights", lambda d: os.truncate(d + "/model.safetensors", 0), 500),
    ("weights that are none", lambda d: overwrite(d + "/model.safetensors", b"x" * 4096), 500),
    ("weights that are a folder", lambda d: as_folder(d + "/model.safetensors"), 500),
    ("weights of other shapes", lambda d: change(d + "/config.json", lambda c: c.update(hidden_size=128)), 500),
    ("a tokenizer that is no JSON", lambda d: overwrite(d + "/tokenizer.json", b"{"), 500),
    ("an empty tokenizer", lambda d: overwrite(d + "/tokenizer.json", b"{}"), 500),
    ("a tokenizer that is a folder", lambda d: as_folder(d + "/tokenizer.json"), 500),
    ("a template with a fault", lambda d: change(d + "/tokenizer_config.json", lambda c: c.update(
        chat_template="{% for %}")), 500),
    ("a generation config that is no JSON", lambda d: overwrite(d + "/generation_config.json", b"["), 500),
    ("a tokenizer config that is no JSON", lambda d: overwrite(d + "/tokenizer_config.json", b"["), 500),
    ("a link that leads nowhere", lambda d: (os.remove(d + "/model.safetensors"),
                                             os.symlink("/nowhere/secret-place-x", d + "/model.safetensors")), 404),
    ("a link of itself", lambda d: (os.remove(d + "/config.json"), os.symlink("config.json", d + "/config.json")), 500)]


def overwrite_new(path):
    with open(path, "wb") as f:
        f.write(b"x")


def lists(server):
    return [server.request("GET", path) for path in ("/v1/models", "/v1/models/bad", "/api/tags", "/api/ps", "/v1/status",
                                                     "/v1beta/models", "/v1beta/models/bad",
                                                     "/metrics", "/props", "/slots", "/health", "/ready", "/")]


@test
def models_that_break_while_they_are_not_loaded():
    asks = (("/v1/completions", {"prompt": [5, 6], "max_tokens": 1}), ("/api/generate", {"prompt": "hi"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}),
            ("/v1/embeddings", {"input": "hi"}), ("/tokenize", {"content": "hi"}),
            ("/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}))

    def run(what, number, status):
        for path, body in asks:
            answer = server.post(path, dict(body, model="b{}".format(number)))
            reach.check_answer((what, path), answer, status, "", "", (folder, "secret-place"))
        answer = server.post("/v1beta/models/b{}:generateContent".format(number), {"contents": [{"parts": [{"text": "hi"}]}]})
        reach.check_answer((what, "gemini"), answer, status, "", "", (folder, "secret-place"))
        show = server.post("/api/show", {"model": "b{}".format(number)})
        reach.check_answer(what, show, (200, 404), "", "", (folder, "secret-place"))

    with models() as (folder, env):
        for begin in range(0, len(BROKEN), PART):
            broken = list(enumerate(BROKEN))[begin:begin + PART]
            named = ["{}/models/b{}".format(folder, number) for number, _ in broken]
            for path in named:
                shutil.copytree(folder + "/models/bad", path)
            with served.Server(reach.PROGRAM, [folder + "/models/good", *named], env=env) as server:
                for path, (_, (_, harm, _)) in zip(named, broken):
                    harm(path)
                reach.run_cases([(what, number, status) for number, (what, _, status) in broken], run)
                for answer in lists(server):
                    reach.check_answer("list", answer, (200, 404), "", "", (folder, "secret-place"))
                assert server.complete(model="good", prompt=[5], max_tokens=1).status == 200


@test
def models_that_are_found_broken():
    """All of them at once: in the list, some with what is wrong; or not there."""
    with models() as (folder, env):
        for number, (_, harm, _) in enumerate(BROKEN):
            path = "{}/models/b{}".format(folder, number)
            shutil.copytree(folder + "/models/bad", path)
            harm(path)
        with served.Server(reach.PROGRAM, [], "--models-dir", folder + "/models", "--allow-pull", env=env) as server:
            for answer in lists(server):
                reach.check_answer("list", answer, (200, 400, 404), "", "", (folder, "secret-place"))
            for number, (what, *_) in enumerate(BROKEN):
                answer = server.complete(model="b{}".format(number), prompt=[5], max_tokens=1)
                reach.check_answer(what, answer, (404, 500), "", "", (folder, "secret-place"))
                show = server.post("/api/show", {"model": "b{}".format(number)})
                reach.check_answer(what, show, (200, 404), "", "", (folder, "secret-place"))
                gone = server.request("DELETE", "/api/delete", {"model": "b{}".format(number)})
                reach.check_answer(what, gone, (200, 404), "", "", (folder, "secret-place"))
            assert server.complete(model="good", prompt=[5], max_tokens=1).status == 200


@test
def pooling_that_cannot_be_read():
    """Of a model whose text can be answered, but not embedded."""
    with models() as (folder, env):
        for number, (modules, pooling) in enumerate((
                (b"[", b"{}"), (b'[{"type": "x.Pooling", "path": "1_Pooling"}]', b"{"),
                (b'[{"type": "x.Pooling", "path": "1_Pooling"}]', None), (b'[{"type": "x.Other", "path": "/x"}]', b"{}"))):
            path = "{}/models/p{}".format(folder, number)
            shutil.copytree(folder + "/models/good", path)
            os.mkdir(path + "/1_Pooling")
            with open(path + "/modules.json", "wb") as f:
                f.write(modules)
            if pooling is None:
                os.mkdir(path + "/1_Pooling/config.json")
            else:
                with open(path + "/1_Pooling/config.json", "wb") as f:
                    f.write(pooling)
            with served.Server(reach.PROGRAM, path, env=env) as server:
                answer = server.post("/v1/embeddings", {"input": "hi"})
                reach.check_answer(number, answer, (400, 500), "error", "", (folder, "secret-place"))
                assert server.complete(prompt=[5], max_tokens=1).status == 200


@test
def a_relative_folder():
    """What the command line calls a folder is not told either."""
    with models() as (folder, env):
        os.makedirs(folder + "/hidden-way")
        os.rename(folder + "/models", folder + "/hidden-way/models")
        named = [os.path.relpath(folder + "/hidden-way/models/" + name) for name in ("good", "bad")]
        with served.Server(reach.PROGRAM, named, env=env) as server:
            os.truncate(folder + "/hidden-way/models/bad/model.safetensors", 100)
            answer = server.complete(model="bad", prompt=[5])
            reach.check_answer("relative", answer, 500, "model.safetensors", "", ("hidden-way", "models/"))


@test
def downloads_and_deletions_that_fail():
    with models() as (folder, env), hubs.Hub() as hub:
        files = hubs.files_of(folder + "/models/good")
        for name in "Good", "Damaged", "Gated", "Away":
            hub.add("Owner/" + name, files)
        hub.add("Owner/Empty", {"README.md": b""})
        hub.add("Owner/Config", {"config.json": b"{}", "model.safetensors": b""})
        hub.add("Owner/Bin", {"config.json": files["config.json"], "pytorch_model.bin": b"x"})
        hub.add("Owner/Alien", dict(files, **{"config.json": b'{"model_type": "alien"}'}))
        hub.add("Owner/Torn", dict(files, **{"model.safetensors": files["model.safetensors"][:999]}))
        hub.add("Owner/Nothing", {})
        gated = "/api/models/Owner/Gated/revision/main"
        hub.faults[gated] = [lambda h: h.answer(403, x_error_code="GatedRepo")]
        hub.faults["/api/models/Owner/Away/revision/main"] = [lambda h: h.answer(418)]
        env.update(HF_ENDPOINT=hub.url, no_proxy="127.0.0.1")
        os.makedirs(env["TMPDIR"])
        with served.Server(reach.PROGRAM, [], "--models-dir", folder + "/models", "--allow-pull", env=env) as server:
            def run(what, stream=False):
                answer = server.post("/api/pull", {"model": what, "stream": stream})
                reach.check_answer(what, answer, 200 if stream else (400, 404, 413, 500, 503), "error", what,
                                   (folder, "secret-place"))
            cases = [(name,) for name in ("Owner/Missing", "Owner/Good@none", "Owner/Empty", "Owner/Config", "Owner/Bin",
                                          "Owner/Alien", "Owner/Torn", "Owner/Gated", "Owner/Away", "Owner/Nothing",
                                          "nothing", "../x", "/etc/passwd", "a/b/c", folder)]
            reach.run_cases(cases, run)
            reach.run_cases(cases[2:7], lambda what: run(what, True))
            for harm in (lambda: overwrite_new(folder + "/cache/models--Owner--Good"),  # where a folder is to be made
                         lambda: (os.rename(folder + "/cache", folder + "/cache-away"), overwrite_new(folder + "/cache"))):
                harm()
                run("Owner/Good")
                for name in "Owner/Good", "Owner/Alien", "none":
                    gone = server.request("DELETE", "/api/delete", {"model": name})
                    reach.check_answer(name, gone, (200, 404, 500), "", name, (folder, "secret-place"))
            os.remove(folder + "/cache")
            os.rename(folder + "/cache-away", folder + "/cache")
            shutil.rmtree(env["TMPDIR"])
            run("Owner/Damaged")
            reach.check_alive(server)
        with open(folder + "/token", "w", encoding="ascii") as f:
            f.write("no token at all")
        for more in ({"HF_TOKEN_PATH": folder + "/token"}, {"HF_TOKEN_PATH": folder + "/models"}, {"HF_HUB_OFFLINE": "1"},
                     {"HF_ENDPOINT": "nowhere"}, {"HF_HUB_CACHE": folder + "/x" * 3000}, {"TMPDIR": folder + "/x" * 2500}):
            with served.Server(reach.PROGRAM, folder + "/models/good", "--allow-pull", env=dict(env, **more)) as server:
                run_on = server.post("/api/pull", {"model": "Owner/Good", "stream": False})
                reach.check_answer(more, run_on, (400, 413, 500), "error", "", (folder, "secret-place"))


@test
def requests_that_name_files():
    """Whatever a client names as a model, a template, a picture, an adapter or a stored answer."""
    with models() as (folder, env):
        options = ("--allow-chat-template", "--store", folder + "/store", "--cache-dir", folder + "/kept",
                   "--media-root", folder + "/models")
        with served.Server(reach.PROGRAM, folder + "/models/good", *options, env=env) as server:
            text = [{"role": "user", "content": "hi"}]
            cases = [("a model's path", "/v1/completions", {"model": "../bad", "prompt": "x"}),
                     ("a template", "/v1/chat/completions", {"messages": text, "chat_template": "{% include 'x' %}"}),
                     ("a template with a fault", "/v1/chat/completions", {"messages": text, "chat_template": "{{ x"}),
                     ("a template that fails", "/v1/chat/completions", {
                         "messages": text, "chat_template": "{{ raise_exception('no') }}"}),
                     ("a template that names files", "/v1/chat/completions", {
                         "messages": text, "chat_template": "{{ ''.__class__ }}{{ open('x') }}"}),
                     ("a picture", "/v1/chat/completions", {"messages": [{"role": "user", "content": [
                         {"type": "image_url", "image_url": {"url": "file:///nowhere/x.png"}}]}]}),
                     ("an adapter", "/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "/nowhere"}),
                     ("a grammar", "/v1/completions", {"prompt": "x", "grammar": "root ::= ("}),
                     ("a schema", "/v1/chat/completions", {"messages": text, "max_tokens": 1, "response_format": {
                         "type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "file:///etc/passwd"}}}}),
                     ("a stored answer", "/v1/responses", {"input": "x", "previous_response_id": "../../store"}),
                     ("no JSON", "/v1/completions", "{"), ("another path", "/etc/passwd", {}),
                     ("a path that goes up", "/../../etc/passwd", {}), ("an unload", "/v1/models/unload", {"model": "/x"}),
                     ("vectors", "/v1/embeddings", {"input": "x", "model": "none"}), ("a rerank", "/v1/rerank", {}),
                     ("a show", "/api/show", {"model": "/etc/passwd"}), ("a pull", "/api/pull", {"model": "a/b"})]

            def run(what, path, body):
                answer = server.post(path, body)
                reach.check_answer(what, answer, (200, 400, 403, 404, 405), "", "", (folder, "secret-place"))
            reach.run_cases(cases, run)
            shutil.rmtree(folder + "/kept", ignore_errors=True)
            kept = server.post("/v1/responses", {"input": "hi", "max_output_tokens": 1})
            reach.check_answer("kept", kept, (200, 500, 503), "", "", (folder, "secret-place"))
            for name in os.listdir(folder):
                if name.startswith("store"):
                    os.remove(folder + "/" + name)
            for _ in range(2):
                kept = server.post("/v1/responses", {"input": "hi", "max_output_tokens": 1})
                reach.check_answer("kept", kept, (200, 500, 503), "", "", (folder, "secret-place"))
            got = server.request("GET", "/v1/responses/resp_none")
            reach.check_answer("got", got, 404, "", "", (folder, "secret-place"))
            for answer in lists(server):
                reach.check_answer("list", answer, (200, 400, 404), "", "", (folder, "secret-place"))
            assert eventually(lambda: server.complete(prompt=[5], max_tokens=1).status == 200)


if __name__ == "__main__":
    reach.main("attack_paths", TESTS)
