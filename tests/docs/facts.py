#!/usr/bin/env python3
"""Holds the pages to the program: routes, options and devices that README.md, CONTRIBUTING.md and docs/*.md name as
motet's are there, and every route of the program is named.

usage: tests/docs/facts.py --motet PROGRAM [NAME ...]

What stands between backticks is looked at. Names that are somebody else's stand in not_ours.txt with the reason; a line
of that list that fits nothing fails, too."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import served  # noqa: E402 pylint: disable=wrong-import-position

SUITE = served.Suite("docs_facts")
test = SUITE.test
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
ROUTE = re.compile(r"(?:(GET|HEAD|POST|PUT|PATCH|DELETE) )?(/[a-z][\w/{}*-]*)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?![a-z0-9-])")
# Sentences that were true before motet had another device
CPU_ONLY = re.compile(r"\bCPU only\b|\bonly (?:on )?the CPU\b|\bcomputes on the CPU[.;]|\bno GPU is used\b", re.IGNORECASE)


def pages():
    names = ["README.md", "CONTRIBUTING.md"]
    names += sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))
    return {name: read(name) for name in names}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def said(*arguments):
    return subprocess.run([SUITE.program, *arguments], capture_output=True, text=True, check=True).stdout


def codes(page, text):
    """What stands between backticks outside of blocks. In the tables of coming-from.md the first cell has options of
    other programs."""
    for line in BLOCK.sub("", text).splitlines():
        if page == "docs/coming-from.md" and line.startswith("| "):
            line = " | ".join(line.split(" | ")[1:])
        yield from CODE.findall(line)


class NotOurs:
    """Lines "page | name | why"; a page of * is any. kind: how the names begin that are looked for."""

    def __init__(self, kind):
        lines = [line.split("|") for line in read("tests/docs/not_ours.txt").splitlines() if line and line[0] != "#"]
        self.rows = [[part.strip() for part in line] for line in lines]
        assert all(len(row) == 3 and row[2] for row in self.rows), self.rows
        self.rows = [row + [0] for row in self.rows if row[1].startswith(kind)]

    def has(self, page, name):
        for row in self.rows:
            if row[0] in ("*", page) and row[1] == name:
                row[3] += 1
                return True
        return False

    def stale(self):
        return ["not_ours.txt fits nothing any more: " + " | ".join(row[:3]) for row in self.rows if not row[3]]


@test
def routes_that_pages_name_are_there():
    not_ours, wrong = NotOurs("/"), []
    with SUITE.start("--allow-pull") as server:
        def methods(path):
            """Those that a path knows; none: there is no such path."""
            answer = server.request("PATCH", path.replace("{", "").replace("}", "").replace("*", ""))
            assert answer.status in (404, 405), (path, answer.status, answer.body)
            return answer.headers.get("allow", "").split(", ") if answer.status == 405 else []
        for page, text in pages().items():
            for code in codes(page, text):
                found = ROUTE.fullmatch(code)
                if not found or not_ours.has(page, found.group(2)):
                    continue
                known = methods(found.group(2))
                if not known:
                    wrong.append("{}: there is no route {}".format(page, code))
                elif found.group(1) and found.group(1) not in known:
                    wrong.append("{}: {} is not among the methods {}".format(page, code, known))
    wrong += not_ours.stale()
    assert not wrong, "\n".join(wrong)


@test
def every_route_is_named():
    table = read("src/server/routes/routes.c")
    routes = re.findall(r'\{MT_HTTP_[A-Z]+, "(/[^"]+)"', table)
    named = {re.sub(r"\{.*?\}", "{}", path) for page, text in pages().items() for code in CODE.findall(text)
             for path in re.findall(r"(/[a-z][\w/{}*-]*)", code)}
    missing = [path for path in routes if re.sub(r"\{.*?\}", "{}", path) not in named and not path.startswith("/assets/")]
    assert len(routes) > 40 and not missing, "no page names {}".format(missing)


@test
def options_that_pages_name_are_there():
    ours = set(re.findall(r"^\| `--([a-z-]+)`", said("help", "--as", "markdown"), re.MULTILINE))
    not_ours, wrong = NotOurs("--"), []
    assert len(ours) > 100
    for page, text in pages().items():
        for code in codes(page, text):
            # "--x" alone, or a command of motet
            if not re.match(r"--|(\w+=\S+ )*(build/)?motet\b", code):
                continue
            wrong += ["{}: there is no --{}".format(page, name) for name in OPTION.findall(code)
                      if not name.endswith("-")  # "--media-...": some of them
                      and name not in ours and not not_ours.has(page, "--" + name)]
    wrong += not_ours.stale()
    assert not wrong, "\n".join(wrong)


@test
def devices_that_pages_name_are_there():
    devices = re.search(r"^devices: (.*)$", said("--version"), re.MULTILINE).group(1).split(", ")
    if "cuda" not in devices:
        raise served.Skip("motet was built without a device that pages describe")
    wrong = []
    for page, text in pages().items():
        wrong += ["{}: there is no device {}".format(page, name)
                  for name in re.findall(r"--device[ =]([a-z]+(?::\w+)?)", text)
                  if re.sub(r":\d+$", ":N", name) not in devices]
        wrong += ["{}: \"{}\", but --version has {}".format(page, found, devices) for found in CPU_ONLY.findall(text)]
    for page in ("README.md", "docs/coming-from.md"):
        wrong += ["{}: does not say that {} can compute".format(page, word)
                  for device, word in (("cpu", "CPU"), ("cuda", "NVIDIA GPU")) if device in devices and word not in read(page)]
    assert not wrong, "\n".join(wrong)


@test
def the_table_of_families_has_all_and_no_others():
    """docs/models.md names the types of `config.json` that src/models/family.h lists."""
    listed = read("src/models/family.h").split("#define MT_FAMILIES(X)")[1].split("#define MT_FAMILY(")[0]
    families = set(re.findall(r"\bX\((\w+)\)", listed))
    supported = read("docs/models.md").split("## What is supported")[1].split("### Weights")[0]
    rows = [line.split("|")[2] for line in supported.splitlines() if line.startswith("| ")][1:]
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    inner = {name for name in families if name.endswith("_text") and name.removesuffix("_text") in named}
    assert len(families) > 40 and families - inner <= named <= families, (families - inner) ^ named


if __name__ == "__main__":
    SUITE.main()
