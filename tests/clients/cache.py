#!/usr/bin/env python3
"""Shares a cache with Hugging Face's own library for Node: it finds what motet pull has downloaded, motet finds what it
has downloaded, and neither downloads what the other has.

usage: tests/clients/cache.py --motet PROGRAM [--install]

The package is looked for in $MOTET_CLIENTS_CACHE, else in ~/.cache/motet/clients-cache; --install puts it there. Without
node or the package the test is skipped with a sentence."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import npm

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "cli")]
import fixture  # pylint: disable=wrong-import-position
import hub as hubs  # pylint: disable=wrong-import-position

SKIP = 77
PACKAGES = {"@huggingface/hub": "2.17.5"}
NAME = "Owner/Tiny-1.5"


def skip(sentence):
    print("clients_cache skipped: " + sentence)
    sys.exit(SKIP)


class Both:
    def __init__(self, motet, packages, hub, cache):
        self.motet, self.packages, self.cache = motet, packages, cache
        self.hub = hub
        self.environment = dict(os.environ, HF_ENDPOINT=hub.url, HF_HUB_CACHE=cache, no_proxy="127.0.0.1", HF_TOKEN="")

    def run(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, "{} ended with {}:\n{}".format(command[0], done.returncode, done.stderr[-3000:])
        return done.stdout

    def node(self, *arguments):
        return self.run("node", os.path.join(HERE, "cache.mjs"), self.packages, *arguments)

    def bodies(self):
        return len(self.hub.bodies("cdn"))


def what_motet_pulled_is_found(both, files, commit):
    folder = both.run(both.motet, "pull", NAME).rstrip("\n").split(", in ")[1]
    seen = json.loads(both.node("scan", both.cache))
    assert seen["warnings"] == [], seen["warnings"]
    (repo,) = seen["repos"]
    assert (repo["name"], repo["type"]) == (NAME, "model"), repo
    (revision,) = repo["revisions"]
    assert (revision["commit"], revision["refs"]) == (commit, ["main"]), revision
    found = {os.path.relpath(f["path"], folder): f["size"] for f in revision["files"]}
    assert found == {name: len(data) for name, data in files.items()}, found
    before = both.bodies()
    assert both.node("download", both.cache, both.hub.url, NAME).rstrip("\n") == folder
    assert both.bodies() == before, "it was downloaded again"


def what_the_library_downloaded_is_found(both, files, commit):
    folder = both.node("download", both.cache, both.hub.url, NAME).rstrip("\n")
    (model,) = json.loads(both.run(both.motet, "list", "--json"))["models"]
    assert (model["name"], model["revision"], model["folder"]) == (NAME, commit, folder) and model["whole"], model
    assert model["bytes"] == sum(map(len, files.values())), model
    assert both.run(both.motet, "run", NAME, "--prompt", "hello", "--max-tokens", "2")
    before = both.bodies()
    assert both.run(both.motet, "pull", NAME).rstrip("\n").endswith(", in " + folder)
    assert both.bodies() == before, "it was downloaded again"
    both.run(both.motet, "rm", NAME, "--yes")
    assert json.loads(both.node("scan", both.cache))["repos"] == []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--install", action="store_true")
    arguments = parser.parse_args()
    folder = os.environ.get("MOTET_CLIENTS_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "motet", "clients-cache")
    if not shutil.which("node"):
        skip("there is no node; install it to test with Hugging Face's library")
    if arguments.install and not npm.installed(folder, PACKAGES) and not npm.install(folder, PACKAGES):
        skip("npm cannot fetch the package")
    if not npm.installed(folder, PACKAGES):
        skip("the package is not in {}; run make test-clients".format(folder))
    tests = (what_motet_pulled_is_found, what_the_library_downloaded_is_found)
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory() as made, hubs.Hub() as hub:
            files = hubs.files_of(fixture.write(os.path.join(made, "tiny")))
            both = Both(os.path.abspath(arguments.motet), folder, hub, os.path.join(made, "cache"))
            try:
                test(both, files, hub.add(NAME, files))
                print("ok {}".format(test.__name__), flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print("FAILED {}: {}".format(test.__name__, error), flush=True)
                failed += 1
    print("clients_cache: {} passed, {} failed".format(len(tests) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
