#!/usr/bin/env python3
"""motet batch: a file of requests, by a model and by a server, that is stopped and goes on."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

import helpers
import served

TESTS = []
LINES = 200


def test(function):
    TESTS.append(function)
    return function


def line(name, **body):
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions",
            "body": {"messages": [{"role": "user", "content": "hello " + name}], "max_tokens": 16, "seed": 3,
                     "temperature": 1, "ignore_eos": True, **body}}


def write(folder, lines):
    path = os.path.join(folder, "lines.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(each) + "\n" for each in lines)
    return path


def said(path):
    """{custom_id: text} of a file of results, in which no line is twice."""
    with open(path, encoding="utf-8") as results:
        found = [json.loads(each) for each in results]
    assert len({each["custom_id"] for each in found}) == len(found)
    return {each["custom_id"]: each["response"]["body"]["choices"][0]["message"]["content"] for each in found}


def stopped(motet, folder, path, model, number, done):
    """Begins, and sends the signal when done() has seen results."""
    child = subprocess.Popen([motet, "batch", path, model], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert helpers.eventually(lambda: done() or child.poll() is not None)
    child.send_signal(number)
    err = child.communicate(timeout=helpers.PATIENCE)[1].decode()
    return child.returncode, err


@test
def it_goes_on_after_ctrl_c_and_after_a_kill(motet, tiny):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        lines = [line(str(i)) for i in range(LINES)]
        path, kept = write(folder, lines), os.path.join(folder, "lines.motet", "batches")

        def size():
            names = os.listdir(kept) if os.path.isdir(kept) else []
            return sum(os.path.getsize(os.path.join(kept, name)) for name in names if name.endswith(".results"))
        for number in signal.SIGINT, signal.SIGKILL:
            before = size()
            code, err = stopped(motet, folder, path, tiny, number, lambda least=before: size() > least)
            assert code == (130 if number == signal.SIGINT else -9), (code, err)
            assert number == signal.SIGKILL or "the same command" in err, err
            assert before < size() and not os.path.exists(os.path.join(folder, "lines.results.jsonl"))
        code, out, err = helpers.run(motet, "batch", path, tiny)
        assert (code, out) == (0, os.path.join(folder, "lines.results.jsonl") + "\n"), (code, out, err)
        assert "{0} of {0} lines answered, 0 errors".format(LINES) in err, err
        assert sorted(os.listdir(folder)) == ["lines.jsonl", "lines.results.jsonl"]
        assert helpers.run(motet, "batch", write(other, lines), tiny)[0] == 0
        assert said(out.strip()) == said(os.path.join(other, "lines.results.jsonl"))


@test
def a_server_goes_on_by_itself(motet, tiny):
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, [line(str(i)) for i in range(LINES)])
        server = served.Server(motet, tiny, "--files-dir", os.path.join(folder, "kept"))
        with server:
            url = "http://127.0.0.1:{}".format(server.port)

            def done():
                return server.metrics()['motet_batch_lines_total{result="answered"}'] > 0
            code, err = stopped(motet, folder, path, url, signal.SIGINT, done)
            assert code == 130 and "the server goes on" in err, (code, err)
            code, out, err = helpers.run(motet, "batch", path, url)
            assert code == 0 and len(said(out.strip())) == LINES, (code, out, err)
            assert server.metrics()['motet_batch_lines_total{result="answered"}'] == LINES


@test
def what_is_wrong_is_told(motet, tiny):
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, [line("a"), line("b", max_tokens=-5)])
        code, _, err = helpers.run(motet, "batch", path, tiny)
        assert code == 1 and "lines.errors.jsonl" in err and list(said(path[:-6] + ".results.jsonl")) == ["a"], err
        path = write(folder, [line("a"), line("a")])
        code, _, err = helpers.run(motet, "batch", path, tiny)
        assert code == 1 and "motet: line 2: a line before this one has the same custom_id" in err, err
        for text, what in (("", "is no request"), ("{\n", "is no request")):
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            code, _, err = helpers.run(motet, "batch", path, tiny)
            assert code == 1 and what in err, (text, err)
        shutil.rmtree(os.path.join(folder, "lines.motet"), ignore_errors=True)


helpers.main("cli_batch", TESTS, needs="fetch")
