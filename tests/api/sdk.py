#!/usr/bin/env python3
"""Runs sdk.mjs, which uses OpenAI's own SDK for Node, against a server.

usage: tests/api/sdk.py --motet PROGRAM [--install]

The package is looked for in $MOTET_NPM, else in ~/.cache/motet/npm; --install puts it there. Without node or the package
the test is skipped with a sentence."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import fixture
import served

VERSION = "6.49.0"
HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77


def installed(folder):
    path = os.path.join(folder, "node_modules", "openai", "package.json")
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as f:
        return '"version": "{}"'.format(VERSION) in f.read()


def skip(sentence):
    print("api_sdk skipped: " + sentence)
    sys.exit(SKIP)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--install", action="store_true")
    arguments = parser.parse_args()
    folder = os.environ.get("MOTET_NPM") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "motet", "npm")
    if not shutil.which("node"):
        skip("there is no node; install it to test with OpenAI's SDK")
    if arguments.install and not installed(folder):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "openai@" + VERSION], check=True,
                       stdout=subprocess.DEVNULL)
    if not installed(folder):
        skip("the package openai {} is not in {}; run make test-sdk".format(VERSION, folder))
    with tempfile.TemporaryDirectory() as made:
        model = fixture.write(os.path.join(made, "tiny"))
        with served.Server(arguments.motet, model, "--api-key", "secret") as server:
            url = "http://127.0.0.1:{}".format(server.port)
            done = subprocess.run(["node", os.path.join(HERE, "sdk.mjs"), folder, url], timeout=300, check=False)
    sys.exit(done.returncode)


main()
