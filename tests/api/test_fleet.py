#!/usr/bin/env python3
"""Several models behind one server: each answers as it does alone, whoever is loaded, waits or makes way.

usage: tests/api/test_fleet.py --motet PROGRAM [--hang LIBRARY] [NAME ...]"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

import fixture
import served
from served import eventually, send

SUITE = served.Suite("test_fleet")
test = SUITE.test
NAMES = ("alto", "bass", "tenor")
QUICK = "MOTET_TEST_QUICK" in os.environ  # under sanitizers, which take memory of their own and come first
LARGE = ("--batch-tokens", "4096")  # with working memory beside which what the process takes by chance is little
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "vectors")


def folder_of(name):
    path = os.path.join(os.path.dirname(SUITE.folder), name)
    return path if os.path.isdir(path) else fixture.write(path, seed=NAMES.index(name) + 100)


def start(*options, names=NAMES, **settings):
    return SUITE.start(*options, folder=[folder_of(n) for n in names], **settings)


def models(server):
    return {m["id"]: m for m in server.request("GET", "/v1/models").json()["data"]}


def state(server, name):
    return models(server)[name]["state"]


def ask(server, model, number, **more):
    prompt = "the fox {} and then {} other stories".format("jumps " * (number % 5), number)
    return server.complete(model=model, prompt=prompt, max_tokens=12, temperature=0.7, seed=number, logprobs=3,
                           ignore_eos=True, **more)


def said(answer):
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json()["choices"], answer.json()["model"]


def background(function):
    """Runs it on a thread; a function that waits for what it returns."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()

    def wait():
        thread.join(served.PATIENCE)
        return result[0]
    return wait


# ---- in turn


def budget_for(models_at_once):
    """A --memory of which what is for models holds so many of them."""
    memory, need = 512 << 20, None
    for _ in range(4):
        with start("--memory", str(memory), *LARGE) as server:
            if not need:
                said(ask(server, NAMES[0], 0))
                need = models(server)[NAMES[0]]["memory_needed"]
            metrics = server.metrics()
        others = metrics['motet_memory_bytes{kind="server"}'] + metrics['motet_memory_bytes{kind="requests"}']
        wanted = int(others + models_at_once * need)
        if abs(wanted - memory) < need / 16:
            break
        memory = wanted
    return memory


@test
def three_models_in_turn_where_one_and_a_half_fit():
    clients, rounds = 16, 2 if QUICK else 6
    alone = {}
    for name in NAMES:
        with SUITE.start("--served-name", name, folder=folder_of(name)) as server:
            for number in range(8):
                alone[name, number] = said(ask(server, name, number))
    assert len({json.dumps(a) for a in alone.values()}) == len(alone)  # each model says something of its own
    memory = budget_for(1.5)
    wrong, peaks, answers = [], [], []
    with start("--memory", str(memory), *LARGE) as server:
        def client(who):
            for i in range(rounds):
                name, number = NAMES[(who + i) % 3], (5 * who + i) % 8
                answer = ask(server, name, number)
                if answer.status != 200 or said(answer) != alone[name, number]:
                    wrong.append((name, number, answer.status, answer.body[:300]))
                peaks.append(server.memory())
                answers.append(name)
        threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong[0]
        assert len(answers) == clients * rounds
        loaded = [m for m in models(server).values() if m["state"] == "ready"]
        assert len(loaded) <= 1, (memory, [(m["id"], m["memory"], m["memory_needed"]) for m in loaded])
        loads = sum(v for k, v in server.metrics_by_model("motet_model_loads_total").items())
        assert loads >= 3, loads
        if not QUICK:
            assert max(peaks) < memory and server.memory_peak() < memory, (max(peaks), server.memory_peak(), memory)


@test
def where_all_fit_none_makes_way():
    with start() as server:
        for number in range(2):
            for name in NAMES:
                said(ask(server, name, number))
        assert server.metrics_by_model("motet_model_loads_total") == dict.fromkeys(NAMES, 1)
        assert eventually(lambda: server.metrics_by_model("vllm:generation_tokens_total") == dict.fromkeys(NAMES, 24))
        known = models(server)
        assert all(known[n]["state"] == "ready" and known[n]["memory"] >= known[n]["memory_needed"] for n in NAMES)
        total = server.metrics()["motet_memory_limit_bytes"]
        assert sum(m["memory"] for m in known.values()) < total


@test
def two_models_answer_at_a_time():
    with start("--batch-tokens", "1", "--threads", "1", names=NAMES[:2]) as server:
        alone = {name: said(ask(server, name, 1)) for name in NAMES[:2]}
        with contextlib.ExitStack() as stack:
            for name in NAMES[:2]:  # more than is computed while the test lasts
                stack.enter_context(send(server, "/v1/completions", {"model": name, "prompt": "a", "max_tokens": 1900,
                                                                     "ignore_eos": True, "n": 16}))
            assert eventually(lambda: {r["model"] for r in server.status()["requests"] if r["phase"] == "decode"} ==
                              set(NAMES[:2]))
            for name in NAMES[:2]:
                assert said(ask(server, name, 1)) == alone[name]


# ---- which there are


@test
def models_are_listed_with_what_they_can_do():
    with start("--alias", "gpt-4o", "--model", "baritone=" + folder_of("bass"), "--embedding-model",
               os.path.join(VECTORS, "bert-cls-bf16"), names=NAMES[:2]) as server:
        known = models(server)
        assert list(known) == ["alto", "gpt-4o", "bass", "baritone", "bert-cls-bf16"], list(known)
        assert all(m["state"] == "unloaded" and m["memory"] == 0 and "too_large" not in m for m in known.values())
        assert known["alto"]["max_model_len"] == fixture.CONTEXT and known["gpt-4o"]["root"] == "alto"
        assert known["alto"]["capabilities"] == ["completion", "chat"]
        assert known["bert-cls-bf16"]["capabilities"] == ["embedding"]
        assert server.request("GET", "/ready").status == 200
        refused = ask(server, "gpt-5", 0)
        assert refused.status == 404 and refused.json()["error"]["code"] == "model_not_found"
        assert '"alto", "bass", "baritone"' in refused.json()["error"]["message"], refused.body
        assert server.request("GET", "/v1/models/gpt-5").status == 404
        assert said(ask(server, "baritone", 0))[1] == "baritone"
        assert said(ask(server, "gpt-4o", 0))[1] == "alto"  # the first has it
        assert server.chat("hi", max_tokens=2).json()["model"] == "alto"  # as who does not say
        assert server.request("GET", "/v1/models/baritone").json()["state"] == "ready"
        vectors = server.post("/v1/embeddings", {"input": "hello"})
        assert vectors.status == 200 and vectors.json()["model"] == "bert-cls-bf16", vectors.body
        refused = server.chat("hi", model="bert-cls-bf16")
        assert refused.status == 400 and "writes no text" in refused.json()["error"]["message"], refused.body
        text = server.post("/tokenize", {"model": "bass", "prompt": "hello"})
        assert text.status == 200 and state(server, "bass") == "ready"
        assert server.post("/tokenize", {"model": "gpt-5", "prompt": "hello"}).status == 404


@test
def two_of_one_name_are_refused():
    ended = subprocess.run([SUITE.program, "serve", folder_of("alto"), folder_of("alto"), "--port", "0"],
                           capture_output=True, text=True, check=False, timeout=served.PATIENCE)
    assert ended.returncode == 1 and 'two models are called "alto"' in ended.stderr, ended.stderr


@test
def none_named_serves_what_is_on_the_machine():
    with tempfile.TemporaryDirectory() as top:
        empty = {"HF_HUB_CACHE": os.path.join(top, "nothing")}
        folder = os.path.join(top, "models")
        os.mkdir(folder)
        with SUITE.start("--models-dir", folder, folder=[], env=empty) as server:
            assert models(server) == {} and server.request("GET", "/ready").status == 200
            assert ask(server, "alto", 0).status == 404 and server.chat("hi").status == 400
            for name in NAMES[:2]:
                shutil.copytree(folder_of(name), os.path.join(folder, name))
            assert eventually(lambda: sorted(models(server)) == ["alto", "bass"])
            assert eventually(lambda: models(server)["bass"]["capabilities"] == ["completion", "chat"])
            assert said(ask(server, "bass", 0))[1] == "bass"
            assert server.chat("hi", max_tokens=2).json()["model"] == "bass"  # the one that was used last
            assert ask(server, "../models/alto", 0).status == 404 and ask(server, folder + "/alto", 0).status == 404
            shutil.copytree(os.path.join(VECTORS, "bert-mean-f32"), os.path.join(folder, "bert"))
            assert eventually(lambda: "bert" in models(server))
            assert server.post("/v1/embeddings", {"model": "bert", "input": "a"}).status == 200
            assert server.chat("hi", max_tokens=2).json()["model"] == "bass"  # which writes text
            assert server.post("/v1/models/unload", {"model": "default"}).json()["id"] == "bass"
            assert eventually(lambda: state(server, "bass") == "unloaded")
            assert server.chat("hi", max_tokens=2).status == 400
            shutil.rmtree(os.path.join(folder, "alto"))
            assert eventually(lambda: list(models(server)) == ["bass", "bert"])
            assert ask(server, "alto", 0).status == 404
            assert server.chat("hi", max_tokens=2).json()["model"] == "bass"  # the only one that is left


@test
def another_model_in_the_folder_of_a_deleted_one_is_read_anew():
    with tempfile.TemporaryDirectory() as top:
        folder, inside = os.path.join(top, "models"), os.path.join(top, "models", "alto")
        shutil.copytree(folder_of("alto"), inside)
        with SUITE.start("--models-dir", folder, folder=[], env={"HF_HUB_CACHE": os.path.join(top, "no")}) as server:
            assert eventually(lambda: models(server)["alto"]["capabilities"] == ["completion", "chat"])
            assert said(ask(server, "alto", 0))[1] == "alto"
            shutil.rmtree(inside)
            assert eventually(lambda: not models(server))
            shutil.copytree(os.path.join(VECTORS, "bert-mean-f32"), inside)
            assert eventually(lambda: models(server).get("alto", {}).get("capabilities") == ["embedding"])
            assert eventually(lambda: state(server, "alto") == "unloaded")  # the deleted one is not used any more
            assert server.post("/v1/embeddings", {"model": "alto", "input": "a"}).status == 200


# ---- waiting


@contextlib.contextmanager
def gated(*options, names=("alto",)):
    """A server that knows a model more, which is loaded when the gate is opened: (server, open the gate)."""
    if QUICK:
        raise served.Skip("the sanitizers want to be loaded first")
    with tempfile.TemporaryDirectory() as top:
        folder, gate = fixture.write(os.path.join(top, "slow"), seed=7), os.path.join(top, "gate")
        path = os.path.join(folder, "tokenizer.json")
        with open(path, encoding="utf-8") as f:
            tokenizer = json.load(f)
        tokenizer["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "hang"}, "behavior": "Isolated",
                                      "invert": False}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)

        def open_gate():
            with open(gate, "w", encoding="utf-8"):
                pass
        with start("--model", folder, *options, names=names,
                   env={"LD_PRELOAD": SUITE.hang, "MOTET_TEST_GATE": gate}) as server:
            try:
                yield server, open_gate
            finally:
                open_gate()


def parked(server):
    return sum(r["phase"] == "loading" for r in server.status()["requests"])


@test
def requests_wait_for_a_model_and_others_do_not():
    with gated() as (server, open_gate):
        said(ask(server, "alto", 0))
        waits = [background(lambda: ask(server, "slow", 1)) for _ in range(3)]
        assert eventually(lambda: parked(server) == 3)
        assert state(server, "slow") == "loading" and models(server)["slow"]["waiting"] == 3
        assert server.metrics()["motet_calls_loading"] == 3
        said(ask(server, "alto", 1))
        assert server.request("GET", "/ready").status == 200
        open_gate()
        answers = [said(wait()) for wait in waits]
        assert answers[0] == answers[1] == answers[2] and answers[0][1] == "slow"
        assert parked(server) == 0 and state(server, "slow") == "ready"


@test
def clients_take_turns_in_having_models_loaded():
    def wants(model, key):
        return background(lambda: server.post("/v1/completions", {"model": model, "prompt": "a", "max_tokens": 1},
                                              {"authorization": "Bearer " + key}))

    def waiting():
        requests = server.request("GET", "/v1/status", headers={"authorization": "Bearer two"}).json()["requests"]
        requests += server.request("GET", "/v1/status", headers={"authorization": "Bearer one"}).json()["requests"]
        return sum(r["phase"] == "loading" for r in requests)
    keys = ("--api-key", "one", "--api-key", "two")
    with gated(*keys, names=NAMES) as (server, open_gate):
        waits = []
        for i, (model, key) in enumerate([("slow", "one"), (NAMES[0], "one"), (NAMES[1], "one"), (NAMES[2], "two")]):
            waits.append(wants(model, key))
            assert eventually(lambda: waiting() == i + 1)
        open_gate()
        assert all(wait().status == 200 for wait in waits)

        def loaded():
            return [line.split('"')[1] for line in server.log if "model.loading" in line]
        assert eventually(lambda: len(loaded()) == 4) and loaded() == ["slow", NAMES[2], NAMES[0], NAMES[1]], loaded()


@test
def who_leaves_waits_no_longer():
    with gated() as (server, open_gate):
        left = send(server, "/v1/completions", {"model": "slow", "prompt": "a"})
        stays = background(lambda: ask(server, "slow", 1))
        cancelled = background(lambda: ask(server, "slow", 2))
        assert eventually(lambda: parked(server) == 3)
        left.close()
        assert eventually(lambda: parked(server) == 2)
        newest = max(server.status()["requests"], key=lambda r: -r["seconds"])["id"]
        assert server.request("DELETE", "/v1/requests/" + newest).status == 200
        open_gate()
        statuses = sorted([stays().status, cancelled().status])
        assert statuses == [200, 409], statuses
        server.wait_idle()


@test
def who_waits_too_long_is_told_to_come_again():
    with gated("--load-seconds", "1") as (server, _):
        said(ask(server, "alto", 1))
        refused = ask(server, "slow", 1)
        assert refused.status == 503 and refused.json()["error"]["code"] == "loading", refused.body
        assert int(refused.headers["retry-after"]) > 0
        said(ask(server, "alto", 1))


@test
def a_model_that_is_stopped_answers_first_who_waits_for_it():
    with gated() as (server, open_gate):
        waits = [background(lambda: ask(server, "slow", 1))]
        assert eventually(lambda: parked(server) == 1)
        waits.append(background(lambda: ask(server, "alto", 1)))
        assert eventually(lambda: parked(server) == 2)
        for name in ("slow", "alto"):  # one is being loaded, the other's turn has not come
            assert server.post("/v1/models/unload", {"model": name}).status == 200
        open_gate()
        for wait in waits:
            said(wait())
        assert eventually(lambda: state(server, "slow") == state(server, "alto") == "unloaded")


@test
def sigterm_while_a_model_is_loaded():
    with gated("--drain-seconds", "200") as (server, open_gate):
        wait = background(lambda: ask(server, "slow", 1))
        assert eventually(lambda: parked(server) == 1)
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "server.draining" in "".join(server.log))
        open_gate()
        said(wait())
        assert server.process.wait(served.PATIENCE) == 0


@test
def a_model_that_cannot_be_loaded_fails_alone():
    with tempfile.TemporaryDirectory() as top:
        folder = fixture.write(os.path.join(top, "broken"))
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
            f.write("{}")
        with start("--model", folder) as server:
            for _ in range(2):
                refused = ask(server, "broken", 0)
                assert refused.status == 500 and refused.json()["error"]["code"] == "load_failed", refused.body
                assert '"broken" cannot be loaded' in refused.json()["error"]["message"]
            assert models(server)["broken"]["state"] == "unloaded" and models(server)["broken"]["error"]
            said(ask(server, "alto", 0))


@test
def a_model_that_can_never_fit_is_refused():
    memory = budget_for(0.5)
    with start("--memory", str(memory), *LARGE) as server:
        refused = ask(server, "alto", 0)
        assert refused.status == 500, (refused.status, refused.body)
        assert '"--memory" leaves' in refused.json()["error"]["message"], refused.body
        assert models(server)["alto"]["too_large"] is True, models(server)


# ---- making way


@test
def one_that_answers_is_never_unloaded():
    with start("--memory", str(budget_for(1.5)), *LARGE) as server:
        with send(server, "/v1/completions", {"model": "alto", "prompt": "a", "max_tokens": 1500, "stream": True,
                                              "ignore_eos": True, "logprobs": 20}) as reader:
            assert eventually(lambda: models(server)["alto"]["requests"] == 1 and state(server, "alto") == "ready")
            wait = background(lambda: ask(server, "bass", 1))  # the answer is not read, and so does not end
            assert eventually(lambda: parked(server) == 1)
            server.post("/v1/models/unload", {"model": "alto"})
            later = background(lambda: ask(server, "alto", 1))
            assert state(server, "alto") == "ready" and state(server, "bass") == "loading"
            text = b""
            while b"[DONE]" not in text[-100:]:
                text += reader.recv(1 << 20)
        assert len(text) > 100000
        said(wait())
        said(later())


@test
def idle_ones_are_unloaded():
    with start("--keep-alive", "0") as server:
        for round_ in range(2):
            said(ask(server, "alto", 3))
            assert eventually(lambda: state(server, "alto") == "unloaded")
            counted = server.metrics_by_model("vllm:generation_tokens_total")
            assert counted == {"alto": 12 * (round_ + 1)}, counted
            assert server.metrics_by_model("motet_model_loaded") == {"alto": 0}
        assert server.metrics_by_model("motet_model_loads_total") == {"alto": 2}
    with start("--keep-alive", "never") as server:
        said(ask(server, "alto", 3))
        assert "expires_in" not in models(server)["alto"]
    with start() as server:
        said(ask(server, "alto", 3))
        assert 0 < models(server)["alto"]["expires_in"] <= 300


@test
def responses_that_are_kept_need_no_model():
    with start("--keep-alive", "0") as server:
        body = {"model": "alto", "input": "a", "max_output_tokens": 4, "background": True, "stream": True}
        text = server.request("POST", "/v1/responses", body).body.decode()
        place = "/v1/responses/" + json.loads(text.split("data: ", 1)[1].split("\n", 1)[0])["response"]["id"]
        assert eventually(lambda: state(server, "alto") == "unloaded")
        for method, path in (("GET", place), ("GET", place + "?stream=true"), ("GET", place + "/input_items"),
                             ("POST", place + "/cancel"), ("DELETE", place)):
            answer = server.request(method, path)
            assert answer.status == 200, (method, path, answer.status, answer.body)
        assert server.metrics_by_model("motet_model_loads_total") == {"alto": 1}


@test
def ps_and_stop():
    served.need(SUITE.program, "fetch")

    def motet(*arguments):
        return subprocess.run([SUITE.program, *arguments], capture_output=True, text=True, check=False,
                              timeout=served.PATIENCE)
    with start() as server:
        url = "127.0.0.1:{}".format(server.port)
        assert motet("ps", url).stdout == "no model is loaded\n"
        said(ask(server, "alto", 3))
        lines = motet("ps", url).stdout.splitlines()
        assert len(lines) == 2 and lines[1].split()[:2] == ["alto", "ready"], lines
        used, _, may = lines[1].split()[2:5]
        assert 0 < int(used) < int(may), lines
        assert 0 < models(server)["alto"]["memory_used"] < models(server)["alto"]["memory"]
        assert models(server)["bass"]["memory_used"] == 0
        assert json.loads(motet("ps", url, "--json").stdout)["object"] == "list"
        assert motet("stop", "alto", url).returncode == 0
        assert eventually(lambda: motet("ps", url).stdout == "no model is loaded\n")
        refused = motet("stop", "soprano", url)
        assert refused.returncode == 1 and '"soprano" was not found here' in refused.stderr, refused.stderr
        said(ask(server, "alto", 3))
    with SUITE.start() as server:  # one alone is loaded anew when it is asked for
        before = server.chat(seed=1, max_tokens=4).text()
        assert motet("stop", "tiny", "127.0.0.1:{}".format(server.port)).returncode == 0
        assert eventually(lambda: state(server, "tiny") == "unloaded")
        assert server.chat(seed=1, max_tokens=4).text() == before


if __name__ == "__main__":
    SUITE.main()
