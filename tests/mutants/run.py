#!/usr/bin/env python3
"""Breaks a copy of the tree on purpose, one bug at a time, and says which bugs the tests do not notice.

usage: tests/mutants/run.py [NAME ...]

Each NAME.patch beside this file is a bug. Its first line says in words what is broken, the line "tests: NAME NAME" which
tests notice: names of `meson test`, "NAME:WORD" with WORD as the program's argument. All bugs are tried without names.

Tests are run as sanitizers run them, with few cases of a kind; a bug that none of these notices is tried again with all
that `make test` has.

The copy lies in build-mutants and is kept: the next run compiles only what has changed. A test that fails without a bug
proves nothing, so each is run on the sound tree first. A bug that does not apply or compile counts as a survivor; one whose
tests cannot run on this machine (those of the pages want a browser) is left out."""

import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TREE = os.path.join(ROOT, "build-mutants", "tree")
BUILD = os.path.join(TREE, "build")
LONGEST = 300  # seconds of a test on the sound tree
PATIENCE = 10  # times as long it may take with a bug, and LEAST seconds more: some bugs hang
LEAST = 15
SKIP = 77  # exit status of a test that lacks what it needs
# git does not take the copy for a part of the repository around it
ENV = dict(os.environ, GIT_CEILING_DIRECTORIES=ROOT)


def run(command, limit=None, **more):
    """Exit status and output; 124 when it was ended for its time."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                          stdin=subprocess.DEVNULL, **more) as process:
        try:
            said = process.communicate(timeout=limit)[0]
            return process.returncode, said.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return 124, process.communicate()[0].decode(errors="replace")


def same(a, b):
    if not os.path.lexists(b) or os.path.getsize(a) != os.path.getsize(b):
        return False
    with open(a, "rb") as x, open(b, "rb") as y:
        return x.read() == y.read()


def copy_tree():
    """Makes the copy what the tree is. Files that are the same keep their times, so that nothing is compiled twice."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split("\0")
    files = {name for name in listed if name and os.path.isfile(os.path.join(ROOT, name))}
    for name in files:
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        if not same(source, target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
    for folder, folders, names in os.walk(TREE):
        if folder == TREE and "build" in folders:
            folders.remove("build")
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, TREE) not in files:
                os.remove(path)


def configure():
    """Also after lists of files have changed."""
    there = os.path.exists(os.path.join(BUILD, "build.ninja"))
    status, said = run(["ninja", "-C", BUILD, "build.ninja"] if there else ["meson", "setup", BUILD], cwd=TREE)
    if status != 0:
        sys.exit(said)


def introspect(what):
    return json.loads(subprocess.run(["meson", "introspect", BUILD, "--" + what], check=True,
                                     stdout=subprocess.PIPE).stdout)


class Tests:
    def __init__(self):
        files = {t["id"]: t["filename"] for t in introspect("targets")}
        self.by_name = {}
        self.took = {}  # seconds by word, on the sound tree
        self.skipped = set()  # words
        self.quick = True
        for test in introspect("tests"):
            test["files"] = [f for d in test["depends"] for f in files.get(d, [])]
            self.by_name[test["name"]] = test

    def find(self, word):
        name = word.split(":")[0]
        if name not in self.by_name:
            sys.exit("there is no test \"{}\"; `meson test --list` has their names".format(name))
        return self.by_name[name]

    def build(self, words):
        targets = {os.path.relpath(f, BUILD) for w in words for f in self.find(w)["files"]}
        return run(["ninja", "-C", BUILD, "--quiet"] + sorted(targets), env=ENV)

    def fails(self, word):
        """Why a test fails: a few words; empty when it passes."""
        test = self.find(word)
        limit = LEAST + PATIENCE * self.took[word] if word in self.took else LONGEST
        env = dict(ENV, **test["env"])
        if self.quick and not word.startswith("api_"):  # which leave out what sanitizers cannot do, instead of doing less
            env["MOTET_TEST_QUICK"] = "1"
        begin = time.monotonic()
        status, said = run(test["cmd"] + word.split(":")[1:], limit, cwd=test["workdir"] or BUILD, env=env)
        self.took.setdefault(word, time.monotonic() - begin)
        if status == SKIP:
            self.skipped.add(word)
        if status in (0, SKIP):
            return ""
        return "{} {}".format(word, "hangs" if status == 124 else "fails" if status > 0 else "crashes")


class Mutant:
    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[: -len(".patch")]
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        self.words = lines[0]
        self.tests = [w for line in lines if line.startswith("tests: ") for w in line.split()[1:]]
        self.files = [line[len("+++ b/"):] for line in lines if line.startswith("+++ b/")]
        if not self.tests or not self.files:
            sys.exit("{}.patch has no line \"tests: NAME\", or changes no file".format(self.name))

    def try_it(self, tests):
        """(noticed, remark)"""
        status, said = run(["git", "apply", "--whitespace=nowarn", self.path], cwd=TREE, env=ENV)
        if status != 0:
            return False, "does not apply: " + said.strip()
        try:
            status, said = tests.build(self.tests)
            if status != 0:
                return False, "does not compile:\n" + said[-2000:]
            for word in self.tests:
                why = tests.fails(word)
                if why:
                    return True, why
            return False, "survives " + " ".join(self.tests)
        finally:
            for name in self.files:
                shutil.copyfile(os.path.join(ROOT, name), os.path.join(TREE, name))


def try_all(mutants, tests, quick):
    """Those that no test notices."""
    tests.quick, tests.took = quick, {}
    words = sorted({w for m in mutants for w in m.tests})
    status, said = tests.build(words) if words else (0, "")
    if status != 0:
        sys.exit(said)
    broken = [why for why in map(tests.fails, words) if why]
    if broken:
        sys.exit("without a bug: {}; mend that first".format(", ".join(broken)))
    survivors = []
    for m in mutants:
        if tests.skipped.issuperset(m.tests):
            print("skipped  {:28} {}".format(m.name, m.words), flush=True)
            continue
        begin = time.monotonic()
        noticed, remark = m.try_it(tests)
        if not noticed:
            survivors.append(m)
        told = "ok" if noticed else "again" if quick else "SURVIVES"
        print("{:8} {:28} {} ({}, {:.0f} s)".format(told, m.name, m.words, remark, time.monotonic() - begin), flush=True)
    return survivors


def main():
    names = sys.argv[1:]
    found = sorted(f for f in os.listdir(HERE) if f.endswith(".patch"))
    mutants = [Mutant(os.path.join(HERE, f)) for f in found if not names or f[: -len(".patch")] in names]
    missing = set(names) - {m.name for m in mutants}
    if missing:
        sys.exit("there is no bug of the name {}".format(", ".join(sorted(missing))))
    os.makedirs(TREE, exist_ok=True)
    copy_tree()
    configure()
    tests = Tests()
    survivors = [m.name for m in try_all(try_all(mutants, tests, True), tests, False)]
    tried = sum(not tests.skipped.issuperset(m.tests) for m in mutants)
    print("{} of {} bugs were noticed{}".format(tried - len(survivors), tried,
                                                ": not " + ", ".join(survivors) if survivors else ""))
    sys.exit(1 if survivors else 0)


main()
