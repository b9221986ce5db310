#!/usr/bin/env python3
"""Runs every command of the pages: the blocks marked "sh" in README.md, CONTRIBUTING.md and docs/*.md, each block in a
shell of its own, in a folder with the model in the box, beside one server.

usage: tests/docs/run.py --motet PROGRAM [--show] [PAGE ...]

What cannot be run here stands in not_run.txt with the reason. A command that is neither run nor listed fails, and so
does a line of that list that fits no command. Words in capitals are filled in: DIR, MODEL, A and B are the model in
the box, URL is a picture. Ports 8000 and 11434 are the server's. What is pulled comes from a hub of ours, where every
name is the model in the box. A command that serves is started on a port of its own and ended when it is ready; one that
measures does so with few tokens. Blocks of commands that are not marked "sh" fail. That links lead to files is looked at,
too. facts.py looks at what pages name."""

import argparse
import contextlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "cli")]
import hub as hubs  # noqa: E402 pylint: disable=wrong-import-position
import served  # noqa: E402 pylint: disable=wrong-import-position

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(sudo|docker|make|mpirun|curl|(?:build/)?motet|build/\w+|tests/\S+\.py|apt-get|tools/\S+\.sh) ")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AGAIN = re.compile(r"(make serve|curl|(build/)?motet) ?")  # what pages repeat is run once
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
MOTET = r"""#!/bin/bash
# motet as the pages call it: see tests/docs/run.py
command=$1
case " $* " in *" --help "* | *" --check "*) plain=1 ;; esac
case $command in
serve)
    [ -z "$plain" ] || exec "$MOTET" "$@" --port 0
    log=$(mktemp)
    "$MOTET" "$@" --port 0 2>"$log" &
    until curl "$(sed -n 's,.*server.listening \(http.*\),\1/ready,p' "$log")" >/dev/null 2>&1; do
        kill -0 $! 2>/dev/null || { cat "$log" >&2; exit 1; }
        sleep 0.02
    done
    kill -TERM $!
    wait $!
    ;;
chat)
    shift
    [ $# -gt 0 ] || set -- "localhost:$PORT"
    exec "$MOTET" chat "$@" </dev/null
    ;;
bench)
    case " $* " in
    *" --rate "*) set -- "$@" --rate 100 --requests 2 --tokens 2 --prompt 16 ;;
    *" --agents "*) set -- "$@" --agents 2 --clients 1 --requests 2 --tokens 2 --prompt 16 ;;
    *" --url "* | *" --compare "*) set -- "$@" --clients 1,2 --requests 2 --tokens 2 --prompt 16 --rounds 1 ;;
    *) set -- "$@" --only steps --tokens 2 --prompt 16 --batch 1 ;;
    esac
    exec "$MOTET" "$@"
    ;;
ps | stop) exec "$MOTET" "$@" "localhost:$PORT" ;;
rm) yes | "$MOTET" "$@" ;;
*) exec "$MOTET" "$@" ;;
esac
"""
MAKE = r"""#!/bin/bash
# make serve as the Makefile has it, with the program that is tested
[ "$1" = serve ] || { echo "make $1 is neither run nor listed" >&2; exit 1; }
shift
MODEL=models/box SERVE=
for each; do declare "$each"; done
exec tools/serve.sh build "$MODEL" $SERVE
"""
CURL = '#!/bin/sh\nexec "$REAL_CURL" -fsS --max-time 200 "$@"\n'


def commands(text):
    """The commands of a block: a line each, or as many as quotes and backslashes hold together."""
    found, held = [], ""
    for line in text.splitlines():
        held += line
        try:
            words = shlex.split(held, comments=True)
        except ValueError:  # a quote is open
            held += "\n"
            continue
        if held.endswith("\\"):
            held += "\n"
            continue
        if words:
            found.append(held)
        held = ""
    assert not held.strip(), "a block ends within a command: {}".format(held)
    return found


class NotRun:
    """Lines "page | how a command begins | why"; a page of * is any."""

    def __init__(self, path):
        self.rows = []
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    page, start, why = (part.strip() for part in line.split("|"))
                    assert why, line
                    self.rows.append([page, start, why, 0])

    def find(self, page, command):
        for row in self.rows:
            if row[0] in ("*", page) and (command + " ").startswith(row[1] + " "):
                row[3] += 1
                return row[2]
        return None

    def stale(self):
        return [" | ".join(row[:3]) for row in self.rows if not row[3]]


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


class Place:
    """A folder that looks like the tree to who types commands there."""

    def __init__(self, folder, motet, hub):
        self.folder = folder
        for name in ("models", "tools", "tests", "docs", "contrib"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        shutil.copy(os.path.join(ROOT, "examples", "shapes.png"), os.path.join(folder, "photo.jpg"))
        for name in "AB":
            os.symlink(os.path.join(ROOT, "models", "box"), os.path.join(folder, name))
        os.mkdir(os.path.join(folder, "build"))
        os.mkdir(os.path.join(folder, "bin"))
        write_program(os.path.join(folder, "build", "motet"), MOTET)
        os.symlink("../build/motet", os.path.join(folder, "bin", "motet"))
        write_program(os.path.join(folder, "bin", "make"), MAKE)
        write_program(os.path.join(folder, "bin", "curl"), CURL)
        for name, text in (("TEMPLATE.jinja", "{{ messages[0].content }}"),
                           ("CONTEXT.json", '{"messages": [{"role": "user", "content": "hello"}]}')):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        self.change_something()
        self.env = dict(os.environ, MOTET=motet, PATH=os.path.join(folder, "bin") + ":" + os.environ["PATH"],
                        REAL_CURL=shutil.which("curl") or "curl", HOME=folder, MOTET_CONFIG="/dev/null",
                        HF_ENDPOINT=hub.url, HF_HUB_CACHE=os.path.join(folder, "cache"), no_proxy="127.0.0.1,localhost")

    def change_something(self):
        """For git diff."""
        for command in (["init", "-q"], ["add", "CONTEXT.json"]):
            subprocess.run(["git", *command], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(self.folder, "CONTEXT.json"), "a", encoding="utf-8") as f:
            f.write("\n")

    def fill_in(self, command, port):
        command = re.sub(r"\b(localhost|127\.0\.0\.1):(?:80[08]0|11434)\b", r"\1:{}".format(port), command)
        command = re.sub(r"\bDIR\b", "models/box", command)
        command = re.sub(r"\bMODEL\b(?!=)", "models/box", command)
        return re.sub(r"\bURL\b", "file://{}/examples/shapes.png".format(self.folder), command)

    def run(self, script, port):
        """None, or what went wrong."""
        text = "set -eu\ntrap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n" + self.fill_in("\n".join(script), port)
        done = subprocess.run(["bash", "-c", text], cwd=self.folder, env=dict(self.env, PORT=str(port)),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=served.PATIENCE, check=False)
        return None if done.returncode == 0 else "{}\nexit status {}".format(done.stdout[-2000:], done.returncode)


def pages():
    names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    return names + sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))


def broken_links(page, text):
    return [target for target in LINK.findall(text)
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), target))]


def unmarked(page, text):
    """Blocks that have commands and are not marked "sh", so that nobody would run them."""
    return ["{}:{}: a block of commands is not marked sh".format(page, text.count("\n", 0, found.start()) + 1)
            for found in FENCED.finditer(text)
            if found.group(1) != "sh" and any(COMMAND.match(line) for line in found.group(2).splitlines())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", required=True)
    parser.add_argument("--show", action="store_true", help="print each block that is run and how long it took")
    parser.add_argument("pages", nargs="*")
    arguments = parser.parse_args()
    if "fetch" not in served.features(arguments.motet) or not shutil.which("curl"):
        print("skipped: needs a motet with libcurl, and curl")
        sys.exit(77)
    not_run = NotRun(os.path.join(HERE, "not_run.txt"))
    passed, failures, known = 0, [], set()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        hub = running.enter_context(hubs.Hub())
        place = Place(folder, os.path.abspath(arguments.motet), hub)
        with served.Server(arguments.motet, os.path.join(ROOT, "models", "box"), "--any-model", "--precision", "fast",
                           "--model", "small=" + os.path.join(ROOT, "models", "box"),
                           "--media-root", os.path.join(folder, "examples")) as server:
            for page in arguments.pages or pages():
                with open(os.path.join(ROOT, page), encoding="utf-8") as f:
                    text = f.read()
                failures += ["{}: a link leads nowhere: {}".format(page, target) for target in broken_links(page, text)]
                failures += unmarked(page, text)
                for name in re.findall(r"motet pull ([\w.-]+/[\w.-]+)", text):
                    hub.add(name, hubs.files_of(os.path.join(ROOT, "models", "box")))
                for found in BLOCK.finditer(text):
                    where = "{}:{}".format(page, text.count("\n", 0, found.start()) + 1)
                    script = [c for c in commands(found.group(1)) if not not_run.find(page, c.lstrip())]
                    script = [c for c in script if c not in known or not AGAIN.match(c)]
                    known.update(script)
                    begin = time.time()
                    wrong = place.run(script, server.port) if script else None
                    if arguments.show and script:
                        print("{} {:.1f} s\n  {}".format(where, time.time() - begin, "\n  ".join(script)))
                    if wrong:
                        failures.append("{}: {}".format(where, wrong))
                    passed += 1
    if not arguments.pages:
        failures += ["not_run.txt: fits no command any more: " + row for row in not_run.stale()]
    for failure in failures:
        print("FAILED " + failure)
    print("docs_commands: {} passed, {} failed".format(max(0, passed - len(failures)), len(failures)))
    sys.exit(1 if failures else 0)


main()
