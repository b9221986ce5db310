#!/usr/bin/env python3
"""Runs programs that use a vendor's own SDK for Node against a server: OpenAI's (sdk.mjs) or Cohere's (sdk_cohere.mjs).

usage: tests/api/sdk.py --motet PROGRAM [--package openai|cohere-ai] [--install]

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

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "oracle", "vectors")
SKIP = 77
PACKAGES = {"openai": ("6.49.0", "sdk.mjs"), "cohere-ai": ("8.1.0", "sdk_cohere.mjs")}


def installed(folder, package):
    path = os.path.join(folder, "node_modules", package, "package.json")
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as f:
        return '"version": "{}"'.format(PACKAGES[package][0]) in f.read()


def skip(sentence):
    print("api_sdk skipped: " + sentence)
    sys.exit(SKIP)


def served_for(package, made):
    """The folder of a model, and options."""
    if package == "openai":
        return fixture.write(os.path.join(made, "tiny")), ()
    return os.path.join(VECTORS, "bert-mean-f32"), ("--embedding-model", os.path.join(VECTORS, "xlmr-rerank-bf16"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--package", choices=PACKAGES, default="openai")
    parser.add_argument("--install", action="store_true")
    arguments = parser.parse_args()
    package, (version, program) = arguments.package, PACKAGES[arguments.package]
    folder = os.environ.get("MOTET_NPM") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "motet", "npm")
    if not shutil.which("node"):
        skip("there is no node; install it to test with the SDK " + package)
    if arguments.install and not installed(folder, package):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, package + "@" + version],
                       check=True, stdout=subprocess.DEVNULL)
    if not installed(folder, package):
        skip("the package {} {} is not in {}; run make test-sdk".format(package, version, folder))
    with tempfile.TemporaryDirectory() as made:
        model, options = served_for(package, made)
        with served.Server(arguments.motet, model, "--api-key", "secret", *options) as server:
            url = "http://127.0.0.1:{}".format(server.port)
            done = subprocess.run(["node", os.path.join(HERE, program), folder, url], timeout=300, check=False)
    sys.exit(done.returncode)


main()
