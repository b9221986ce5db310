#!/usr/bin/env python3
"""Runs the pages in Chromium: the programs *.mjs of this folder, against a server with the model in the box, one with a
model that says what is written (tests/clients/replay.py, scripts.json), and one that asks for a key.

usage: tests/web/run.py --motet PROGRAM [--install] [--shots FOLDER] [--patience SECONDS] [NAME ...]
       tests/web/run.py --fetch

playwright-core and axe-core are looked for in $MOTET_WEB_PACKAGES, else in ~/.cache/motet/web; --install puts them
there, and --fetch does nothing else. Without node, Chromium or the packages the test is skipped with a sentence. NAME:
of programs, or of their tests, which may be cut and have "_" for blanks. --shots: keeps pictures of the pages.
--patience: how long a test waits for what must happen (240)."""

import argparse
import contextlib
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "clients")]
import npm  # pylint: disable=wrong-import-position
import replay  # pylint: disable=wrong-import-position
import served  # pylint: disable=wrong-import-position

SKIP = 77
PACKAGES = {"playwright-core": "1.65.0", "axe-core": "4.14.0"}
# An answer without an end is for a page to follow, however slow that is: nothing is guessed ahead.
UNHURRIED = ("--speculate", "off", "--threads", "1")
MEASURES = ("frames",)  # run where they are named
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The same browser without its own windows, which takes a third of the time where it is there
SHELL = "chromium-headless-shell"


def skip(sentence):
    print("web skipped: " + sentence)
    sys.exit(SKIP)


def find(arguments):
    """Where the packages are, and the browser: {"chromium": whole, "browser": without windows where that is there}."""
    folder = os.environ.get("MOTET_WEB_PACKAGES") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "motet", "web")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not shutil.which("node"):
        skip("there is no node; install it to test the pages")
    if not browser:
        skip("there is no Chromium; install it to test the pages")
    if arguments.install and not npm.installed(folder, PACKAGES) and not npm.install(folder, PACKAGES):
        skip("npm cannot fetch the packages")
    if not npm.installed(folder, PACKAGES):
        skip("the packages are not in {}; run make test-web".format(folder))
    return folder, {"chromium": browser, "browser": shutil.which(SHELL) or browser}


def scripts():
    with open(os.path.join(HERE, "scripts.json"), encoding="utf-8") as f:
        return json.load(f)


@contextlib.contextmanager
def servers(program, model, path):
    """Addresses by name of the servers that the program at path uses. Each program has its own: the dashboard shows all
    that a server has done."""
    with socket.create_server(("127.0.0.1", 0)) as free:  # for a server of tools, which a test starts
        tools = free.getsockname()[1]
    kinds = {
        "box_url": (os.path.join(ROOT, "models", "box"), "--precision", "fast"),
        "replay_url": (model, "--served-name", "replay <b>model</b>", "--web-connect", "http://127.0.0.1:{}".format(tools),
                       *UNHURRIED),
        "keyed_url": (model, "--api-key", "secret"),
    }
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with contextlib.ExitStack() as stack:
        started = {name: stack.enter_context(served.Server(program, *words, ready=False))
                   for name, words in kinds.items() if name in text}
        for server in started.values():
            server.wait_ready()
        yield dict({name: "http://127.0.0.1:{}/".format(server.port) for name, server in started.items()}, tools_port=tools)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet")
    parser.add_argument("--install", "--fetch", action="store_true")
    parser.add_argument("--shots")
    parser.add_argument("--patience", type=float, default=240)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    packages, browsers = find(arguments)
    if not arguments.motet:
        return
    programs = {os.path.basename(path)[:-4]: path for path in sorted(glob.glob(os.path.join(HERE, "*.mjs")))}
    programs.pop("common")
    chosen = [name for name in programs if name in arguments.names] or [name for name in programs if name not in MEASURES]
    tests = [name for name in arguments.names if name not in programs]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        model = replay.write(os.path.join(folder, "replay"), scripts(), sees=True)
        for name in chosen:
            with servers(arguments.motet, model, programs[name]) as urls:
                settings = dict(urls, **browsers, program=os.path.abspath(arguments.motet), model=model,
                                packages=packages, root=os.path.abspath(ROOT),
                                tests=[name.replace("_", " ") for name in tests], patience=arguments.patience,
                                shots=arguments.shots and os.path.abspath(arguments.shots))
                done = subprocess.run(["node", programs[name], json.dumps(settings)], timeout=600, check=False)
            failed |= done.returncode != 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
