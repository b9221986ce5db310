#!/usr/bin/env python3
"""What operators do with the cache: prompts that are computed before the first client asks (--warm-prompts), what the
cache tells of itself, and how it is emptied.

usage: tests/api/test_cache.py --motet PROGRAM [NAME ...]"""

import contextlib
import http.server
import json
import os
import subprocess
import threading

import fixture
import served
from served import eventually

SUITE = served.Suite("api_cache")
test, start = SUITE.test, SUITE.start
BOX = os.path.join(served.HERE, "..", "..", "models", "box")
SYSTEM = "the quick brown fox jumps over the lazy dog, and then there were seven other stories of many voices. " * 4


def message(role, text):
    return {"role": role, "content": text}


def write(text, name="prompts.json"):
    path = os.path.join(os.path.dirname(SUITE.folder), name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    return path


def ask(server, system=SYSTEM, text="hello world", **more):
    """How many tokens of the prompt were cached, and how many it has."""
    answer = server.post("/v1/chat/completions", {"messages": [message("system", system), message("user", text)],
                                                  "max_tokens": 1, **more})
    assert answer.status == 200, answer.body
    usage = answer.json()["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]


def logged(server, words):
    return eventually(lambda: [line for line in server.log if words in line])


# ---- warm prompts


@test
def the_first_request_finds_a_warm_prompt():
    with start() as server:
        assert ask(server)[0] == 0
    other = "each its own text while all move together through one measure without changing another line here. " * 4
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    forms = ([[message("system", SYSTEM)], [message("system", other)]],  # vllm-mlx's
             "\n".join(json.dumps([message("system", text)]) for text in (SYSTEM, other)),
             [{"system": SYSTEM, "messages": [message("user", "?")], "tools": tools}, {"messages": [message("system", other)]}])
    for form in forms:
        with start("--warm-prompts", write(form)) as server:
            for system in (SYSTEM, other):
                cached, count = ask(server, system)
                assert cached > count / 2, (form, cached, count)
            assert logged(server, "warm.done 2 prompts"), server.log
    text = "once upon a time there were seven other stories of many voices singing each its own text"
    with start("--warm-prompts", write(json.dumps(text))) as server:
        usage = server.complete(prompt=text + " here", max_tokens=1).json()["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] > 0, usage


@test
def a_mistake_in_the_file_is_told_at_the_start():
    path = write('[{"role": "system", "content": "a"}]\n{"messages": 7}\n', "wrong.jsonl")
    done = subprocess.run([SUITE.program, "serve", SUITE.folder, "--port", "0", "--warm-prompts", path],
                          capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode == 1 and "line 2: the prompt is neither" in done.stderr, done
    done = subprocess.run([SUITE.program, "serve", SUITE.folder, "--port", "0", "--check", "--warm-prompts", path],
                          capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode == 1 and "FAILED  prompts to warm: " in done.stdout, done
    good = write([[message("system", SYSTEM)]])
    done = subprocess.run([SUITE.program, "serve", SUITE.folder, "--port", "0", "--warm-prompts", good,
                           "--api-key", "a", "--isolate", "on"],
                          capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode == 1 and "--isolate off" in done.stderr, done


@test
def a_prompt_that_fails_does_not_keep_the_others():
    prompts = [[message("system", "fox " * fixture.CONTEXT)], [message("system", SYSTEM)]]
    with start("--warm-prompts", write("\n".join(json.dumps(p) for p in prompts))) as server:
        assert ask(server)[0] > 0
        assert logged(server, "warm.failed the prompt of line 1"), server.log
        assert logged(server, "warm.done 1 prompts"), server.log


@contextlib.contextmanager
def slow_picture():
    """A URL that is answered when the event is set."""
    go = threading.Event()
    with open(os.path.join(served.HERE, "..", "..", "examples", "shapes.png"), "rb") as f:
        picture = f.read()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            go.wait(served.PATIENCE)
            self.send_response(200)
            self.send_header("content-type", "image/png")
            self.end_headers()
            self.wfile.write(picture)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    try:
        yield "http://127.0.0.1:{}/shapes.png".format(web.server_port), go
    finally:
        go.set()
        web.shutdown()
        thread.join()
        web.server_close()


@test
def ready_waits_for_the_prompts_and_requests_do_not():
    served.need(SUITE.program, "fetch")
    with slow_picture() as (url, go):
        shown = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}},
                                             {"type": "text", "text": "What do you see?"}]}
        with start("--warm-prompts", write([[shown]]), "--media-allow-private", folder=BOX, ready=False) as server:
            assert eventually(lambda: server.request("GET", "/health").status == 200)
            got = server.request("GET", "/ready")
            assert (got.status, got.json()["error"]["code"]) == (503, "warming"), got.body
            assert ask(server)[1] > 0  # is answered meanwhile
            assert server.request("GET", "/ready").status == 503
            go.set()
            server.wait_ready()
            answer = server.post("/v1/chat/completions", {"messages": [shown], "max_tokens": 1}).json()
            assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, answer


@test
def each_model_is_warmed_when_it_has_been_loaded():
    folders = [fixture.write(os.path.join(os.path.dirname(SUITE.folder), name), seed=i + 1)
               for i, name in enumerate(("alto", "bass"))]
    prompts = [{"model": "bass", "messages": [message("system", SYSTEM)]}, [message("system", "other " * 200)]]
    with start("--warm-prompts", write(prompts), folder=folders) as server:  # ready at once: none is loaded
        assert not [line for line in server.log if "warm." in line]
        ask(server, model="alto")
        assert logged(server, 'warm.done 1 prompts for "alto"'), server.log
        ask(server, "else", model="bass")
        assert logged(server, 'warm.done 2 prompts for "bass"'), server.log
        assert ask(server, model="bass")[0] > 0
        assert ask(server, "other " * 200, model="alto")[0] > 0
        # warming never loads a model: it stays unloaded, and is warmed when it comes back
        server.post("/models/unload", {"model": "bass"})
        models = lambda: {m["id"]: m["state"] for m in server.request("GET", "/v1/models").json()["data"]}
        assert eventually(lambda: models()["bass"] == "unloaded"), models()
        ask(server, "else", model="bass")
        assert eventually(lambda: len([line for line in server.log if 'warm.done 2 prompts for "bass"' in line]) == 2)


# ---- what it holds, and emptying it

RESETS = (("POST", "/v1/cache/reset"), ("POST", "/cache/reset"), ("DELETE", "/v1/cache"), ("DELETE", "/v1/cache/prefix"),
          ("POST", "/reset_prefix_cache"), ("POST", "/flush_cache"))


def stats(server):
    return server.request("GET", "/v1/cache/stats").json()


def reset(server, method="POST", path="/v1/cache/reset", **more):
    got = server.request(method, path, **more)
    assert got.status == 200 and got.json()["status"] == "cleared", got.body
    return got.json()


@test
def the_cache_tells_what_it_holds():
    with start() as server:
        assert stats(server)["enabled"] and stats(server)["models"][0]["pages"]["known"] == 0
        _, count = ask(server)
        cached, _ = ask(server)
        assert cached > 0

        def told():
            model = stats(server)["models"][0]
            return model if model["prompt_tokens"] == 2 * count else None
        model = eventually(told)
        metrics = server.metrics()
        assert model["cached_tokens"] == metrics["vllm:prefix_cache_hits_total"] == cached, (model, cached)
        assert model["lookups"] == 2 and abs(model["hit_rate"] - cached / (2 * count)) < 1e-3, model
        assert model["pages"]["known"] == metrics["motet_cache_pages_known"] > 0 and model["bytes"] > 0, model
        assert stats(server)["disk"] is None and stats(server)["remote"] is None
        assert server.request("GET", "/cache/stats").json() == stats(server)


@test
def an_emptied_cache_has_nothing_and_fills_again():
    with start() as server:
        for method, path in RESETS:
            ask(server)
            assert ask(server)[0] > 0
            reset(server, method, path)
            assert ask(server)[0] == 0, path
        server.wait_idle()
        reset(server, body={})  # a body does no harm
        assert eventually(lambda: stats(server)["models"][0]["pages"]["known"] == 0), stats(server)


@test
def what_runs_is_not_touched():
    long = {"prompt": "the fox and then there were", "max_tokens": 400, "ignore_eos": True, "temperature": 0.7, "seed": 7}
    with start() as server:
        alone = server.complete(**long).json()["choices"][0]["text"]
    with start() as server:
        texts = []
        threads = [threading.Thread(target=lambda: texts.append(server.complete(**long).json()["choices"][0]["text"]))
                   for _ in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            reset(server)
        for thread in threads:
            thread.join()
        assert texts == [alone] * 3, texts


@test
def pictures_are_forgotten_too():
    shown = {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "file://" + os.path.realpath(os.path.join(BOX, "../../examples/shapes.png"))}},
        {"type": "text", "text": "What do you see?"}]}], "max_tokens": 1}
    with start("--media-root", os.path.realpath(os.path.join(BOX, "../../examples")), folder=BOX) as server:
        assert server.post("/v1/chat/completions", shown).status == 200
        assert eventually(lambda: stats(server)["models"][0]["media"]["bytes"] > 0), stats(server)
        reset(server)
        assert eventually(lambda: stats(server)["models"][0]["media"]["bytes"] == 0), stats(server)
        assert stats(server)["models"][0]["states"]["known"] == 0


@test
def what_is_on_disk_goes_too():
    folder = os.path.join(os.path.dirname(SUITE.folder), "disk")
    with start("--cache-dir", folder) as server:
        _, count = ask(server)
        # all whole pages are stored, and nothing is on its way that would be written behind the reset
        assert eventually(lambda: stats(server)["disk"]["written"] == count // 32) and count % 32 < 31, (count, stats(server))
        assert reset(server)["tiers"] == ["memory", "host", "disk"]
        assert stats(server)["disk"]["records"] == 0 and not [n for n in os.listdir(folder) if n.endswith(".motet")]
        assert ask(server)[0] == 0
        assert eventually(lambda: stats(server)["disk"]["records"] > 0), stats(server)  # it goes on
    with start("--cache-dir", folder) as server:
        assert eventually(lambda: stats(server)["disk"]["records"] > 0), stats(server)


@test
def only_an_admin_empties_it_where_there_are_several_keys():
    keys = write("sk-a name=alice\nsk-b name=bob admin\n", "keys.txt")
    with start("--keys", keys) as server:
        def status(key, method="POST", path="/v1/cache/reset"):
            return server.request(method, path, headers={"authorization": "Bearer " + key}).status
        assert status("none") == 401 and status("none", "GET", "/v1/cache/stats") == 401
        assert [status("sk-a", *each) for each in RESETS] == [403] * len(RESETS)
        assert status("sk-b") == 200 and status("sk-a", "GET", "/v1/cache/stats") == 200
    with start("--api-key", "only") as server:
        assert server.request("DELETE", "/v1/cache", headers={"authorization": "Bearer only"}).status == 200


@test
def prompts_are_warmed_again_after_it_was_emptied():
    with start("--warm-prompts", write([[message("system", SYSTEM)]])) as server:
        assert reset(server)["rewarm_scheduled"]
        assert eventually(lambda: len([line for line in server.log if "warm.done 1 prompts" in line]) == 2), server.log
        assert ask(server)[0] > 0


if __name__ == "__main__":
    SUITE.main()
