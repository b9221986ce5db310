#!/usr/bin/env python3
"""/v1/batches of OpenAI's API and /v1/messages/batches of Anthropic's: lines that are answered when nobody else asks.

usage: tests/api/test_batches.py --motet PROGRAM [NAME ...]

With --kills N --lines N as well, a batch of so many lines goes through so many kills."""

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time

import served
import test_files

SUITE = served.Suite("api_batches")
VERSION = {"anthropic-version": "2023-06-01"}
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages/batches"


def number(name, default):
    """The value of an option that is not the suite's."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


KILLS, LINES = number("--kills", 3), number("--lines", 200)


@contextlib.contextmanager
def started(*options, folder=None):
    with tempfile.TemporaryDirectory() as made:
        folder = folder or os.path.join(made, "kept")
        with SUITE.start("--files-dir", folder, *options) as server:
            yield server, folder


def line(name, url=CHAT, **body):
    if url == CHAT:
        body = {"messages": [{"role": "user", "content": "hello " + name}], "max_tokens": 4, "seed": 7, **body}
    return {"custom_id": name, "method": "POST", "url": url, "body": body}


def upload(server, lines, purpose="batch", headers=None):
    text = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines)
    answer = server.request("POST", "/v1/files", test_files.form(text.encode(), name="lines.jsonl", purpose=purpose),
                            {**test_files.TYPE, **(headers or {})})
    assert answer.status == 200, answer.body
    return answer.json()["id"]


def create(server, lines, url=CHAT, headers=None, **more):
    answer = server.request("POST", "/v1/batches", {"input_file_id": upload(server, lines, headers=headers),
                                                    "endpoint": url, "completion_window": "24h", **more}, headers)
    assert answer.status == 200, answer.body
    return answer.json()


def get(server, batch, headers=None):
    answer = server.request("GET", "/v1/batches/" + batch["id"], headers=headers)
    assert answer.status == 200, answer.body
    return answer.json()


def wait(server, batch, headers=None):
    """The batch when it is over."""
    over = ("completed", "failed", "expired", "cancelled")
    assert served.eventually(lambda: get(server, batch, headers)["status"] in over), get(server, batch, headers)
    return get(server, batch, headers)


def content(server, file, headers=None):
    """{custom_id: line} of a file of results; "" has none."""
    if not file:
        return {}
    text = server.request("GET", "/v1/files/{}/content".format(file), headers=headers).body.decode()
    found = [json.loads(each) for each in text.splitlines()]
    assert len(found) == len({each["custom_id"] for each in found}), "a line was answered twice"
    return {each["custom_id"]: each for each in found}


def said(body):
    return [(each["message"]["content"], each["finish_reason"]) for each in body["choices"]]


@SUITE.test
def openai():
    with started() as (server, folder):
        lines = [line("a"), line("b", temperature=1), "", line("c", max_tokens=-5), line("d", stream=True)]
        made = create(server, lines, metadata={"for": "us"}, output_expires_after={"anchor": "created_at",
                                                                                   "seconds": 7200})
        assert made == {"id": made["id"], "object": "batch", "endpoint": CHAT, "errors": None,
                        "input_file_id": made["input_file_id"], "completion_window": "24h", "status": "validating",
                        "output_file_id": None, "error_file_id": None, "created_at": made["created_at"],
                        "expires_at": made["created_at"] + 86400, "in_progress_at": None, "finalizing_at": None,
                        "completed_at": None, "failed_at": None, "expired_at": None, "cancelled_at": None,
                        "cancelling_at": None, "request_counts": {"total": 0, "completed": 0, "failed": 0},
                        "metadata": {"for": "us"}}, made
        over = wait(server, made)
        assert over["status"] == "completed" and over["metadata"] == {"for": "us"}, over
        assert over["request_counts"] == {"total": 4, "completed": 2, "failed": 2}, over
        assert over["created_at"] <= over["in_progress_at"] <= over["finalizing_at"] <= over["completed_at"], over
        good, bad = content(server, over["output_file_id"]), content(server, over["error_file_id"])
        assert set(good) == {"a", "b"} and set(bad) == {"c", "d"}, (good, bad)
        for name in good:
            each = good[name]
            alone = server.post(CHAT, [one for one in lines if one and one["custom_id"] == name][0]["body"]).json()
            assert each["id"].startswith("batch_req_") and each["error"] is None, each
            assert each["response"]["status_code"] == 200 and each["response"]["request_id"], each
            assert said(each["response"]["body"]) == said(alone), (each, alone)
        assert bad["c"]["response"]["status_code"] == 400, bad
        assert bad["c"]["response"]["body"]["error"]["param"] == "max_tokens", bad
        assert "answered whole" in bad["d"]["response"]["body"]["error"]["message"], bad
        about = server.request("GET", "/v1/files/" + over["output_file_id"]).json()
        assert about["purpose"] == "batch_output" and about["expires_at"] == about["created_at"] + 7200, about
        assert served.eventually(lambda: os.listdir(os.path.join(folder, "batches")) == [made["id"] + ".batch"])
        metrics = server.metrics()
        assert metrics['motet_batch_lines_total{result="answered"}'] == 2, metrics
        assert metrics['motet_batches{state="completed"}'] == 1, metrics
        second = create(server, [line("x")])
        page = server.request("GET", "/v1/batches?limit=1").json()
        assert page["has_more"] and page["data"][0]["id"] == page["last_id"] == second["id"], page
        page = server.request("GET", "/v1/batches?after=" + second["id"]).json()
        assert [each["id"] for each in page["data"]] == [made["id"]] and not page["has_more"], page
        wait(server, second)


@SUITE.test
def endpoints():
    """Each of the paths, and what of a request is wrong."""
    with started() as (server, _):
        for url, body, shown in (("/v1/completions", {"prompt": "hello", "max_tokens": 3, "seed": 1}, "choices"),
                                 ("/v1/responses", {"input": "hello", "max_output_tokens": 16, "seed": 1}, "output"),
                                 ("/v1/embeddings", {"input": ["hello", "you"]}, "data")):
            over = wait(server, create(server, [line("a", url, **body)], url))
            assert over["request_counts"]["total"] == 1 and over["status"] == "completed", over
            file = over["output_file_id"] or over["error_file_id"]
            each = content(server, file)["a"]["response"]
            alone = server.post(url, body)
            assert each["status_code"] == alone.status, (each, alone.body)
            if alone.status == 200:
                assert shown in each["body"], each
            if url == "/v1/completions":
                assert each["body"]["choices"] == alone.json()["choices"], (each, alone.body)
        good = upload(server, [line("a")])
        wrong = upload(server, [line("a")], "user_data")
        for body, status, param in (({"endpoint": CHAT}, 400, "input_file_id"),
                                    ({"input_file_id": "file-no", "endpoint": CHAT}, 404, "input_file_id"),
                                    ({"input_file_id": wrong, "endpoint": CHAT}, 400, "input_file_id"),
                                    ({"input_file_id": good}, 400, "endpoint"),
                                    ({"input_file_id": good, "endpoint": "/v1/messages"}, 400, "endpoint"),
                                    ({"input_file_id": good, "endpoint": CHAT, "completion_window": "soon"}, 400,
                                     "completion_window"),
                                    ({"input_file_id": good, "endpoint": CHAT, "completion_window": "8d"}, 400,
                                     "completion_window"),
                                    ({"input_file_id": good, "endpoint": CHAT, "metadata": {"a": "x" * 16384}}, 400,
                                     "metadata"),  # it has more than 16384 bytes
                                    ({"input_file_id": good, "endpoint": CHAT, "metadata": 3}, 400, "metadata")):
            answer = server.request("POST", "/v1/batches", body)
            assert (answer.status, answer.json()["error"]["param"]) == (status, param), (body, answer.body)
        for method, path in (("GET", "/v1/batches/batch_x"), ("POST", "/v1/batches/batch_x/cancel"),
                             ("GET", "/v1/batches?limit=0"), ("GET", "/v1/batches?after=x")):
            answer = server.request(method, path)
            assert answer.status == (400 if "?" in path else 404), (path, answer.body)


@SUITE.test
def faults():
    """What is wrong with lines is told by line, and nothing is answered."""
    with started() as (server, _):
        lines = ["{", "[]", {**line("a"), "method": "GET"}, {**line("b"), "url": "/v1/completions"},
                 {"method": "POST", "url": CHAT, "body": {}}, {**line("c"), "body": 3}, line("d"), ""]
        over = wait(server, create(server, lines))
        assert over["status"] == "failed" and over["failed_at"] and not over["output_file_id"], over
        assert [(each["code"], each["line"]) for each in over["errors"]["data"]] == [
            ("invalid_json_line", 1), ("invalid_json_line", 2), ("invalid_method", 3), ("mismatched_url", 4),
            ("missing_required_parameter", 5), ("invalid_value", 6)], over
        twice = wait(server, create(server, [line("a"), line("b"), line("a")]))["errors"]["data"]
        assert [(each["code"], each["line"]) for each in twice] == [("duplicate_custom_id", 3)], twice
        empty = wait(server, create(server, ["", " "]))["errors"]["data"]
        assert [(each["code"], each["line"]) for each in empty] == [("empty_file", None)], empty
        many = wait(server, create(server, ["{"] * 100))["errors"]["data"]
        assert len(many) == 20, len(many)  # MT_LIMIT_BATCH_ERRORS
    with SUITE.start() as server:
        answer = server.request("GET", "/v1/batches")
        assert answer.status == 400 and "--files-dir" in answer.json()["error"]["message"], answer.body


def params(text, **more):
    return {"model": "any", "max_tokens": 4, "messages": [{"role": "user", "content": text}], **more}


def results(server, batch):
    answer = server.request("GET", MESSAGES + "/{}/results".format(batch["id"]), headers=VERSION)
    assert answer.status == 200, answer.body
    found = [json.loads(each) for each in answer.body.decode().splitlines()]
    assert len(found) == len({each["custom_id"] for each in found}), "a line was answered twice"
    return {each["custom_id"]: each["result"] for each in found}


def ended(server, batch):
    def look():
        return server.request("GET", MESSAGES + "/" + batch["id"], headers=VERSION).json()
    assert served.eventually(lambda: look()["processing_status"] == "ended"), look()
    return look()


@SUITE.test
def anthropic():
    with started("--any-model") as (server, _):
        requests = [{"custom_id": "a", "params": params("hello", temperature=0)},
                    {"custom_id": "b", "params": params("hello", temperature="warm")}]
        made = server.request("POST", MESSAGES, {"requests": requests}, VERSION).json()
        assert made["type"] == "message_batch" and made["processing_status"] == "in_progress", made
        assert made["request_counts"]["processing"] == 2 and made["results_url"] is None, made
        over = ended(server, made)
        assert over["request_counts"] == {"processing": 0, "succeeded": 1, "errored": 1, "canceled": 0,
                                          "expired": 0}, over
        assert over["results_url"] == MESSAGES + "/{}/results".format(made["id"]) and over["ended_at"], over
        found = results(server, made)
        alone = server.request("POST", "/v1/messages", requests[0]["params"], VERSION).json()
        assert found["a"]["type"] == "succeeded" and found["a"]["message"]["content"] == alone["content"], found
        assert found["b"]["type"] == "errored" and found["b"]["error"]["error"]["type"] == "invalid_request_error", found
        listed = server.request("GET", MESSAGES + "?limit=1", headers=VERSION).json()
        assert listed["data"] == [over] and listed["has_more"] is False, listed
        assert server.request("GET", "/v1/batches/" + made["id"]).status == 404  # of the other API
        gone = server.request("DELETE", MESSAGES + "/" + made["id"], headers=VERSION)
        assert gone.json() == {"id": made["id"], "type": "message_batch_deleted"}, gone.body
        assert server.request("GET", MESSAGES + "/" + made["id"], headers=VERSION).status == 404
        for body, field in (({}, "requests"), ({"requests": []}, "requests"), ({"requests": [{}]}, "requests.0"),
                            ({"requests": [{"custom_id": "a b", "params": {}}]}, "requests.0.custom_id"),
                            ({"requests": [requests[0], requests[0]]}, "requests")):
            answer = server.request("POST", MESSAGES, body, VERSION)
            error = answer.json()
            assert answer.status == 400 and error["type"] == "error" and field in error["error"]["message"], error


@SUITE.test
def cancelled_and_expired():
    """Lines that were not begun say so; what was answered before is kept."""
    with started("--batch-lines", "1", "--any-model") as (server, _):
        lines = [line(str(i), max_tokens=64, ignore_eos=True) for i in range(300)]
        made = create(server, lines)
        assert served.eventually(lambda: get(server, made)["request_counts"]["completed"] > 0)
        assert server.request("POST", "/v1/batches/{}/cancel".format(made["id"])).json()["status"] == "cancelling"
        over = wait(server, made)
        assert over["status"] == "cancelled" and over["cancelling_at"] <= over["cancelled_at"], over
        good, bad = content(server, over["output_file_id"]), content(server, over["error_file_id"])
        assert len(good) + len(bad) == 300 and len(good) == over["request_counts"]["completed"] and good and bad
        assert {each["error"]["code"] for each in bad.values()} == {"batch_cancelled"}, bad
        assert server.request("POST", "/v1/batches/{}/cancel".format(made["id"])).status == 409
        made = create(server, lines, completion_window="2s")
        over = wait(server, made)
        assert over["status"] == "expired" and over["expired_at"] >= over["expires_at"], over
        good, bad = content(server, over["output_file_id"]), content(server, over["error_file_id"])
        assert len(good) + len(bad) == 300 and bad, (len(good), len(bad))
        assert {each["error"]["code"] for each in bad.values()} == {"batch_expired"}, bad
        requests = [{"custom_id": str(i), "params": params("hello", max_tokens=512)} for i in range(100)]
        made = server.request("POST", MESSAGES, {"requests": requests}, VERSION).json()
        assert server.request("DELETE", MESSAGES + "/" + made["id"], headers=VERSION).status == 400
        stopped = server.request("POST", MESSAGES + "/{}/cancel".format(made["id"]), headers=VERSION).json()
        assert stopped["processing_status"] == "canceling" and stopped["cancel_initiated_at"], stopped
        counts = ended(server, made)["request_counts"]
        assert counts["canceled"] > 0 and counts["canceled"] + counts["succeeded"] == 100, counts
        assert {each["type"] for each in results(server, made).values()} <= {"canceled", "succeeded"}


@SUITE.test
def accounts():
    """A batch is its account's alone, and its lines are charged to it."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write("one name=ada\ntwo name=ben\n")
        keys.flush()
        ada, ben = {"authorization": "Bearer one"}, {"authorization": "Bearer two"}
        with started("--keys", keys.name) as (server, _):
            made = create(server, [line("a")], headers=ada)
            assert server.request("GET", "/v1/batches/" + made["id"], headers=ben).status == 404
            assert server.request("GET", "/v1/batches", headers=ben).json()["data"] == []
            assert server.request("POST", "/v1/batches/{}/cancel".format(made["id"]), headers=ben).status == 404
            over = wait(server, made, ada)
            assert content(server, over["output_file_id"], ada)["a"]["response"]["status_code"] == 200
            answer = server.request("POST", "/v1/batches", {"input_file_id": made["input_file_id"], "endpoint": CHAT},
                                    ben)
            assert answer.status == 404, answer.body


@SUITE.test
def no_account_takes_all_places():
    """An account with a key may keep 500 batches, of which others lose none."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write("many name=many\nfew name=few\n")
        keys.flush()
        many, few = {"authorization": "Bearer many"}, {"authorization": "Bearer few"}
        with started("--keys", keys.name) as (server, _):
            file = upload(server, [line("a")], headers=many)
            body = {"input_file_id": file, "endpoint": CHAT, "completion_window": "24h"}
            for _ in range(500):  # MT_LIMIT_BATCHES_EACH
                answer = server.request("POST", "/v1/batches", body, many)
                assert answer.status == 200, answer.body
            answer = server.request("POST", "/v1/batches", body, many)
            assert answer.status == 429 and "500 of one account" in answer.json()["error"]["message"], answer.body
            assert create(server, [line("a")], headers=few)["status"] == "validating"


@SUITE.test
def others_lack_tokens():
    """Batches of accounts without tokens wait, and leave their places to those of others."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        poor = [{"authorization": "Bearer poor{}".format(i)} for i in range(5)]
        keys.write("".join("poor{0} name=poor{0} tokens/min=1\n".format(i) for i in range(5)) + "rich name=rich\n")
        keys.flush()
        rich = {"authorization": "Bearer rich"}
        with started("--keys", keys.name) as (server, _):
            waiting = [create(server, [line(str(i)) for i in range(50)], headers=each) for each in poor]
            def begun():
                return [get(server, *each)["request_counts"]["completed"] > 0 for each in zip(waiting, poor)]
            assert served.eventually(lambda: sum(begun()) >= 4)  # as many as are worked on at a time
            for _ in range(3):
                over = wait(server, create(server, [line("a"), line("b")], headers=rich), rich)
                assert over["request_counts"] == {"total": 2, "completed": 2, "failed": 0}, over
            assert {get(server, batch, each)["status"] for batch, each in zip(waiting, poor)} == {"in_progress"}


@SUITE.test
def kills():
    """However often the server is killed, each line has one answer, which is that of a single request."""
    rng = random.Random(5)
    lines = [line(str(i), temperature=1, seed=i, max_tokens=1 + i % 6) for i in range(LINES)]
    requests = [{"custom_id": str(i), "params": params("hello {}".format(i), temperature=0)} for i in range(LINES // 4)]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--files-dir", folder, "--any-model"]
        server = SUITE.start(*options)
        made = create(server, lines)
        other = server.request("POST", MESSAGES, {"requests": requests}, VERSION).json()
        for i in range(KILLS):
            done = LINES * (i + 1) // (KILLS + 2)

            def far(so_far=done):
                return get(server, made)["request_counts"]["completed"] >= so_far
            if rng.random() < 0.8:
                assert served.eventually(far)
            time.sleep(rng.random() / 10)
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            server.reader.join()
            server = SUITE.start(*options)
        with server:
            over = wait(server, made)
            assert over["request_counts"] == {"total": LINES, "completed": LINES, "failed": 0}, over
            assert ended(server, other)["request_counts"]["succeeded"] == LINES // 4
            good = content(server, over["output_file_id"])
            assert len(good) == LINES and len(results(server, other)) == LINES // 4
            for i in rng.sample(range(LINES), min(LINES, 50)):
                alone = server.post(CHAT, lines[i]["body"]).json()
                assert said(good[str(i)]["response"]["body"]) == said(alone), (i, good[str(i)], alone)


@SUITE.test
def restarts():
    """A batch goes on after an orderly end, and one that is over is still there."""
    with tempfile.TemporaryDirectory() as folder:
        with started(folder=folder) as (server, _):
            first = wait(server, create(server, [line("a")]))
            lines = [line(str(i), max_tokens=32, ignore_eos=True) for i in range(100)]
            second = create(server, lines)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(served.PATIENCE) == 0
        with started(folder=folder) as (server, _):
            assert get(server, first) == first
            assert wait(server, second)["request_counts"]["completed"] == 100
            assert len(content(server, wait(server, second)["output_file_id"])) == 100


if __name__ == "__main__":
    SUITE.main()
