#!/usr/bin/env python3
"""Renders recorded contexts with recorded templates and compares the texts.

usage: tests/template/corpus.py RENDER_LINES FOLDER [--verbose]

FOLDER/template_vectors.jsonl.gz has one record a line: the name of a template in FOLDER/templates, a scenario, the
context, and the text Jinja2 made of it ("expected") or how it failed ("error": kind "raised" or "runtime", message).
A failure must be of the same kind; a raised one must also say the same. Ends with a line of counts."""

import gzip
import json
import os
import subprocess
import sys

NOW = "2026-01-02T03:04:05"  # what the clock said when the records were made
SHOWN = 10  # mismatches printed in full


def describe(record, answer):
    """What differs, in a few lines."""
    name = "{} / {}".format(record["template"], record["scenario"])
    if "error" in record:
        return "{}\n  expected: {}\n  got:      {}".format(name, record["error"], json.dumps(answer)[:400])
    if "error" in answer:
        return "{}\n  got an error: {}".format(name, answer["error"])
    at = len(os.path.commonprefix([record["expected"], answer["text"]]))
    return "{}\n  differs at {}:\n  expected: {!r}\n  got:      {!r}".format(
        name, at, record["expected"][max(0, at - 40):at + 80], answer["text"][max(0, at - 40):at + 80])


def matches(record, answer):
    if "error" not in record:
        return answer.get("text") == record["expected"]
    if "error" not in answer or answer["raised"] != (record["error"]["kind"] == "raised"):
        return False
    return not answer["raised"] or answer["error"] == record["error"]["message"][:len(answer["error"])]


def same_message(record, answer):
    """Not required, but good to have."""
    return "error" not in record or answer["error"].split(": ", 1)[-1] == record["error"]["message"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, folder, verbose = sys.argv[1], sys.argv[2], "--verbose" in sys.argv
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    passed, failed, other, last = 0, 0, {}, None
    with gzip.open(os.path.join(folder, "template_vectors.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            question = {"context": record["context"], "now": NOW}
            if record["template"] != last:
                last = record["template"]
                with open(os.path.join(folder, "templates", last), encoding="utf-8", newline="") as text:
                    question["template"] = text.read()
            child.stdin.write(json.dumps(question) + "\n")
            child.stdin.flush()
            answer = json.loads(child.stdout.readline() or '{"error": "the program ended", "raised": false}')
            if matches(record, answer):
                passed += 1
                if verbose and not same_message(record, answer):
                    key = (record["error"]["message"], answer["error"].split(": ", 1)[-1])
                    other[key] = other.get(key, 0) + 1
            else:
                failed += 1
                if failed <= SHOWN:
                    print(describe(record, answer))
    child.stdin.close()
    child.wait()
    for (wanted, got), count in sorted(other.items()):
        print("{} times another message: {!r} for {!r}".format(count, got, wanted))
    print("template corpus: {} passed, {} failed".format(passed, failed))
    sys.exit(1 if failed or not passed else 0)


main()
