#!/usr/bin/env python3
"""Gemini's API where one answer is not all there is to see: heads, keys, silence, time, cancelling. The files named
gemini.json in tests/api/cases have the answers themselves.

usage: tests/api/test_gemini.py --motet PROGRAM [NAME ...]"""

import json
import re

import served
from served import eventually

SUITE = served.Suite("api_gemini")
CONTENTS = [{"role": "user", "parts": [{"text": "hello world"}]}]
ASK = {"contents": CONTENTS, "generationConfig": {"temperature": 0, "maxOutputTokens": 8}}
# More than a server computes while a test lasts
LONG = {"contents": CONTENTS, "generationConfig": {"maxOutputTokens": 2000, "candidateCount": 60}}
SLOW = ("--max-sequences", "60", "--batch-tokens", "1", "--threads", "1")
GENERATE = "/v1beta/models/tiny:generateContent"
STREAM = "/v1beta/models/tiny:streamGenerateContent"


def text_of(answers):
    return "".join(part["text"] for a in answers for part in a["candidates"][0]["content"]["parts"])


@SUITE.test
def test_streams():
    """Events where the query asks for them, else one list; both come to what the whole answer says."""
    with SUITE.start() as server:
        whole = server.post(GENERATE, ASK)
        assert whole.headers["content-type"] == "application/json"
        events = server.post(STREAM + "?alt=sse", ASK)
        assert events.headers["content-type"] == "text/event-stream" and events.body.endswith(b"}\n\n")
        assert b"[DONE]" not in events.body
        listed = server.post(STREAM + "?prettyPrint=false", ASK)
        assert listed.headers["content-type"] == "application/json" and "content-length" not in listed.headers
        assert len(listed.json()) == len(events.events()) > 5, listed.body
        assert text_of(listed.json()) == text_of(events.events()) == text_of([whole.json()])
        assert text_of([whole.json()]) == server.chat(temperature=0, max_tokens=8).text()
        for answers in listed.json(), events.events():
            assert len({a["responseId"] for a in answers}) == 1
            assert all(a["usageMetadata"]["promptTokenCount"] > 0 for a in answers)
            ends = ["finishReason" in a["candidates"][0] for a in answers]
            assert ends == [False] * (len(ends) - 1) + [True], ends


@SUITE.test
def test_keys():
    """A key comes in Google's header, in the query of Gemini's paths alone, or as elsewhere; the log never has it."""
    secret = "se+cret/ü%"
    escaped = "se+cret%2F%C3%BC%25"
    paths = [("POST", "/{}/models/tiny:{}".format(version, verb)) for version in ("v1beta", "v1alpha", "v1")
             for verb in ("generateContent", "streamGenerateContent", "countTokens")]
    paths += [("GET", "/v1beta/models"), ("GET", "/v1beta/models/tiny")]
    with SUITE.start("--api-key", secret, "--log-level", "debug") as server:
        def ask(method, path, headers=None):
            return server.request(method, path, ASK if method == "POST" else None, headers)
        for method, path in paths:
            for wrong in path, path + "?key=wrong", path + "?akey=" + escaped, path + "?key=%zz":
                refused = ask(method, wrong)
                error = refused.json()["error"]
                assert (refused.status, error["code"], error["status"]) == (401, 401, "UNAUTHENTICATED"), refused.body
            assert ask(method, path + "?key=" + escaped).status == 200, path
            assert ask(method, path + "?alt=sse&key=" + escaped).status == 200, path
            assert ask(method, path, {"x-goog-api-key": secret.encode()}).status == 200, path
            assert ask(method, path + "?key=wrong", {"authorization": b"Bearer " + secret.encode()}).status == 200
        assert ask("GET", "/v1/models?key=" + escaped).status == 401
        assert server.post("/v1/chat/completions?key=" + escaped, {}).status == 401
        assert ask("GET", "/v1/models", {"x-goog-api-key": secret.encode()}).status == 200
        said = server.request("GET", "/v1/status", headers={"x-goog-api-key": secret.encode()}).body.decode()
        log = "\n".join(server.log) + said
        assert "gemini-" in log and "cret" not in log and "key=" not in log, log


@SUITE.test
def test_silence():
    """A stream that has long nothing to say says so in what clients read as an answer without text."""
    with SUITE.start("--keep-alive-seconds", "1", *SLOW) as server:
        with served.send(server, "/v1/completions", {"prompt": [0, 9], "n": 60, "max_tokens": 2000, "ignore_eos": True}):
            assert eventually(lambda: server.status()["running"] == 60)
            with served.send(server, STREAM + "?alt=sse", ASK) as s:
                lines = s.makefile("rb")
                while not (line := lines.readline()).startswith(b"data: "):
                    assert line
                assert json.loads(line[6:]) == {"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"},
                                                                "index": 0}]}
            with served.send(server, STREAM, ASK) as s:
                lines = s.makefile("rb")
                while lines.readline() != b"\r\n":  # the head
                    pass
                assert lines.readline() == b"1\r\n" and lines.readline() == b"\n", "a chunk of a byte, which is blank"
        server.wait_idle()


def late(server, path):
    """What a stream said before its time was over, and its last words. It gets more and more time: a slow machine may not
    have come so far before."""
    for seconds in 0.2, 1, 5, 25:
        answer = server.post(path, dict(LONG, timeout=seconds))
        said = answer.status == 200 and (answer.events() if "sse" in path else answer.json())
        if said and len(said) > 1:
            return said[:-1], said[-1]
    raise AssertionError("the time was never over within the answer")


@SUITE.test
def test_time():
    """Where an answer fails in the middle of a stream, the last event or element is the error."""
    with SUITE.start(*SLOW) as server:
        for path in STREAM + "?alt=sse", STREAM:
            said, last = late(server, path)
            assert all("candidates" in a for a in said), said[-1]
            assert last["error"]["code"] == 504 and last["error"]["status"] == "DEADLINE_EXCEEDED", last
            assert last["error"]["details"][0]["reason"] == "timeout", last
            server.wait_idle()


@SUITE.test
def test_cancelling():
    """A client that leaves ends its answer, and so does who cancels it by its id."""
    with SUITE.start(*SLOW) as server:
        for path in STREAM + "?alt=sse", STREAM, GENERATE:
            with served.send(server, path, LONG):
                assert eventually(lambda: server.status()["running"] > 0)
            server.wait_idle()
        with served.send(server, STREAM + "?alt=sse", LONG) as s:
            lines = s.makefile("rb")
            while not (line := lines.readline()).startswith(b"data: "):
                assert line
            name = re.search(rb'"responseId":"([^"]*)"', line).group(1).decode()
            assert server.request("DELETE", "/v1/requests/" + name).json()["cancelled"] is True
            reasons = []
            while len(reasons) < 60:
                line = lines.readline()
                assert line, "the stream ends with each candidate"
                reasons += re.findall(rb'"finishReason":"([^"]*)"', line)
            assert b"OTHER" in reasons, reasons
        server.wait_idle()


SUITE.main()
