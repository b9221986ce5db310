#!/usr/bin/env python3
"""Which lines of the parsers the tests and the fuzzers' corpora have run, by gcov.

usage: tools/coverage.py BUILD [--least PERCENT] [--lines] [FILE ...]

BUILD was set up with -Db_coverage=true and its tests have run (`make coverage`). Prints a table of the files that read
what others wrote, which tools/parsers.txt lists, and fails where a group has less than PERCENT of its lines. --lines
prints those that did not run."""

import argparse
import collections
import fnmatch
import gzip
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def groups():
    """{group: [files]} of tools/parsers.txt."""
    known = [os.path.relpath(os.path.join(folder, name), ROOT) for folder, _, names in os.walk(os.path.join(ROOT, "src"))
             for name in names if name.endswith(".c")]
    found = collections.OrderedDict()
    with open(os.path.join(ROOT, "tools", "parsers.txt"), encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split()
            for pattern in words[1:]:
                files = sorted(fnmatch.filter(known, "src/" + pattern))
                if not files:
                    sys.exit("tools/parsers.txt: nothing is called src/{}".format(pattern))
                found.setdefault(words[0], []).extend(files)
    return found


def read(build, wanted):
    """{file: {line: times}} of what all objects say."""
    data = []
    for folder, _, names in os.walk(build):
        data += [os.path.join(os.path.abspath(folder), n) for n in names if n.endswith(".gcda")]
    lines = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(0, len(data), 50):
            subprocess.run(["gcov", "--json-format", "--relative-only", "--source-prefix", ROOT] + data[i:i + 50], cwd=scratch,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for name in os.listdir(scratch):
                path = os.path.join(scratch, name)
                with gzip.open(path, "rt", encoding="utf-8") as f:
                    said = json.load(f)
                os.remove(path)
                for each in said["files"]:
                    where = os.path.join(said["current_working_directory"], each["file"])
                    file = os.path.relpath(where, ROOT)
                    if file in wanted:
                        seen = lines[file]
                        for line in each["lines"]:
                            number = line["line_number"]
                            seen[number] = seen.get(number, 0) + line["count"]
    return lines


def show(file, seen):
    missed = sorted(n for n, count in seen.items() if not count)
    with open(os.path.join(ROOT, file), encoding="utf-8") as f:
        text = f.readlines()
    for number in missed:
        print("{}:{}: {}".format(file, number, text[number - 1].rstrip()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--least", type=float, default=90)
    parser.add_argument("--lines", action="store_true")
    arguments = parser.parse_intermixed_args()
    all_groups = groups()
    lines = read(arguments.build, {f for files in all_groups.values() for f in files})
    poor, whole = [], [0, 0]
    print("{:>6} {:>6} {:>7}  {}".format("lines", "run", "%", "what"))
    for group, files in all_groups.items():
        counts = {f: (len(lines[f]), sum(c > 0 for c in lines[f].values())) for f in files}
        total, run = (sum(c[i] for c in counts.values()) for i in range(2))
        whole = [whole[0] + total, whole[1] + run]
        percent = 100 * run / max(total, 1)
        print("{:6} {:6} {:6.1f}  {}".format(total, run, percent, group))
        if percent < arguments.least:
            poor.append(group)
        for file, (t, r) in counts.items():
            if t and 100 * r / t < arguments.least:
                print("{:6} {:6} {:6.1f}    {}".format(t, r, 100 * r / max(t, 1), file))
            if arguments.lines and (not arguments.files or file in arguments.files):
                show(file, lines[file])
    print("{:6} {:6} {:6.1f}  all".format(whole[0], whole[1], 100 * whole[1] / max(whole[0], 1)))
    if poor:
        sys.exit("less than {:g} % of the lines ran of: {}".format(arguments.least, ", ".join(poor)))


if __name__ == "__main__":
    main()
