#!/usr/bin/env python3
"""The cases in tests/api/cases/*.json: a request in, the exact answer or stream of events out.

usage: tests/api/cases.py --motet PROGRAM [--record] [NAME ...]

A case is {"name", "post" or "get" or "delete": path, "body" or "raw", "headers", "status", and "answer" or "events"}.
Ids, times and the model's name are masked, and numbers of logprobs are compared to three decimals. --record writes what
the server answers into the files: read the difference before you keep it."""

import argparse
import glob
import json
import os
import re
import sys
import tempfile

import fixture
import served

HERE = os.path.dirname(os.path.abspath(__file__))
ID = re.compile(r"\b(chatcmpl|cmpl)-[0-9a-v]{24}\b")


def mask(value, key=None):
    if isinstance(value, dict):
        return {k: mask(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [mask(v, key) for v in value]
    if isinstance(value, str):
        return ID.sub(r"\1-ID", value)
    if key in ("created", "cached_tokens"):  # the latter depends on what was asked before; test_server.py looks at it
        return 0
    return round(value, 3) + 0.0 if isinstance(value, float) else value


def ask(server, case):
    method = next(m for m in ("post", "get", "delete", "put") if m in case)
    body = case["raw"] if "raw" in case else json.dumps(case["body"]) if "body" in case else None
    return server.request(method.upper(), case[method], body, case.get("headers"))


def place(event):
    """Choices speak when they can: those of each are put together, and what belongs to none comes last."""
    return event["choices"][0]["index"] if isinstance(event, dict) and event.get("choices") else sys.maxsize


def outcome(answer):
    """What a case records of an answer."""
    found = {"status": answer.status}
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        found["events"] = sorted(mask(answer.events()), key=place)
        ids = {e["id"] for e in answer.events() if isinstance(e, dict) and "id" in e}
        assert len(ids) <= 1, "a stream with several ids"
    else:
        found["answer"] = mask(answer.json())
    return found


def run(server, path, record, names):
    with open(path, encoding="utf-8") as f:
        cases = json.load(f)
    passed = failed = 0
    for case in cases:
        if names and case["name"] not in names:
            continue
        found = outcome(ask(server, case))
        if record:
            for key in ("status", "answer", "events"):
                case.pop(key, None)
            case.update(found)
            continue
        expected = {k: case[k] for k in ("status", "answer", "events") if k in case}
        if found == json.loads(json.dumps(expected)):
            passed += 1
        else:
            failed += 1
            print("{}: \"{}\" is\n  {}\nbut should be\n  {}".format(os.path.basename(path), case["name"],
                                                                  json.dumps(found), json.dumps(expected)))
    if record:
        with open(path, "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(dump(c) for c in cases) + "\n]\n")
    return passed, failed


def dump(case):
    """A line for each key, and one for each event."""
    lines = []
    for key, value in case.items():
        if key == "events":
            inner = ",\n    ".join(json.dumps(e, ensure_ascii=False) for e in value)
            lines.append('"events": [\n    {}]'.format(inner))
        else:
            lines.append('"{}": {}'.format(key, json.dumps(value, ensure_ascii=False)))
    return "  {" + ",\n   ".join(lines) + "}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        fixture.write(os.path.join(folder, "tiny"))
        with served.Server(arguments.motet, os.path.join(folder, "tiny"), "--alias", "other",
                           "--max-body", "64K") as server:
            for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.json"))):
                p, f = run(server, path, arguments.record, arguments.names)
                passed, failed = passed + p, failed + f
    print("api_cases: {} passed, {} failed".format(passed, failed))
    sys.exit(1 if failed else 0)


main()
