#!/usr/bin/env python3
"""Runs public test suites of the APIs, which are not part of this repository, unedited against a server.

usage: tests/clients/suites.py --motet PROGRAM [--open-responses FOLDER] [--gpt-oss FOLDER]

--open-responses: a checkout of github.com/openresponses/openresponses. All must pass. It asks the model in the box, and
runs in bun, as the suite itself says: what opens WebSockets with headers is bun's.
--gpt-oss: the folder compatibility-test of github.com/openai/gpt-oss, with the provider that it asks to add. It asks a
replay checkpoint, which thinks and calls the tool that each case expects. Not with --streaming, in which the suite
looks for the answer where the version of the library that it names does not put it.
What the suites need comes from npm."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

import replay

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import served  # pylint: disable=wrong-import-position

BOX = os.path.join(HERE, "..", "..", "models", "box")
BUN = {"aarch64": "@oven/bun-linux-aarch64", "x86_64": "@oven/bun-linux-x64-baseline"}


def npm(folder, *packages):
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *packages],
                   cwd=folder, check=True)


def run(folder, *command):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=600,
                          check=False).stdout


def open_responses(motet, suite, work):
    for part in ("bin", "src"):
        shutil.copytree(os.path.join(suite, part), os.path.join(work, part))
    with open(os.path.join(work, "package.json"), "w", encoding="utf-8") as f:
        json.dump({"private": True, "type": "module"}, f)
    npm(work, "zod@3", BUN[platform.machine()])
    bun = os.path.join("node_modules", BUN[platform.machine()], "bin", "bun")
    with served.Server(motet, BOX) as server:
        text = run(work, bun, "bin/compliance-test.ts", "--base-url", "http://127.0.0.1:{}/v1".format(server.port),
                   "--api-key", "none", "--model", "box", "--json")
    for result in json.loads(text[text.index("{"):])["results"]:
        yield result["id"], result["status"] == "passed", result.get("errors")


def gpt_oss(motet, suite, work):
    shutil.copytree(suite, work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    with open(os.path.join(work, "cases.jsonl"), encoding="utf-8") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    calls = [json.dumps({"name": c["tool_name"], "arguments": json.loads(c["expected_arguments"])}) for c in cases]
    scripts = {"case{}".format(i): ["<think>\nCase {} needs a tool.\n</think>\n\n<tool_call>\n{}\n</tool_call>".format(
        i, call), "Case {} is done.".format(i)] for i, call in enumerate(calls)}
    words = {"case{}".format(i): c["input"] for i, c in enumerate(cases)}
    model = replay.write(os.path.join(work, "replay"), dict(scripts, plain=["What?"]), words=words)
    npm(work, "tsx@4")
    with served.Server(motet, model, "--any-model") as server:
        with open(os.path.join(work, "providers.ts"), "w", encoding="utf-8") as f:
            f.write("export const PROVIDERS = " + json.dumps({"motet": {
                "apiBaseUrl": "http://127.0.0.1:{}/v1".format(server.port), "apiKey": "none",
                "apiType": ["responses", "chat"], "modelName": "any", "providerDetails": {}}}) + ";\n")
        run(work, "npx", "tsx", "index.ts", "--provider", "motet")
    name = next(n for n in os.listdir(work) if n.startswith("rollout_motet_"))
    with open(os.path.join(work, name), encoding="utf-8") as f:
        results = [json.loads(line) for line in f]
    for api in ("responses", "chat"):
        good = [r for r in results if r.get("result", {}).get("apiType") == api and r["success"]]
        bad = [r for r in results if not r.get("success")]
        yield "gpt-oss " + api, len(good) == len(cases), "{} of {}: {}".format(
            len(good), len(cases), json.dumps(bad[0] if bad else "")[:2000])


def main(name, suites):
    """Runs those of the suites, {option: function}, whose folders the command line names. A suite gets the program, its
    folder and one to work in, and yields for each test its name, whether it passed (None: it is known to fail), and why
    it did not."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    for option in suites:
        parser.add_argument("--" + option)
    arguments = vars(parser.parse_args())
    count = {True: 0, False: 0, None: 0}
    for option, suite in suites.items():
        folder = arguments[option.replace("-", "_")]
        if not folder:
            continue
        with tempfile.TemporaryDirectory() as work:
            for test, ok, why in suite(arguments["motet"], os.path.abspath(folder), work):
                print("FAILED {}: {}".format(test, why) if ok is False else
                      "{} {}".format("known" if ok is None else "ok", test), flush=True)
                count[ok] += 1
    print("{}: {} passed, {} failed, {} known to fail".format(name, count[True], count[False], count[None]))
    sys.exit(1 if count[False] or not count[True] else 0)


if __name__ == "__main__":
    main("suites", {"open-responses": open_responses, "gpt-oss": gpt_oss})
