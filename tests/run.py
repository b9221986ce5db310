#!/usr/bin/env python3
"""Runs the tests of a build folder and counts their cases.

usage: tests/run.py BUILD [--build] [argument of `meson test` ...]

--build builds what these tests need first, and nothing else.

Every test program ends with a line "NAME: P passed, F failed[, S skipped]". The last line printed here has the sums.
What a program wrote is shown only when it failed. A program that ends without its line counts as one failure."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

# What a sanitizer writes, also one of a process whose end its test expects.
REPORT = re.compile(r"ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error: |Sanitizer: CHECK failed")
COUNT = re.compile(r"^\S+: (\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
SHOWN = 5000  # characters of a failed program's output: its end


def read_result(record):
    """The passed, failed and skipped cases of one program, and a remark."""
    ok = record["result"] == "OK"
    if record["result"] == "SKIP":
        return 0, 0, 1, "".join(record.get("stdout", "").strip().splitlines()[-1:])
    found = COUNT.findall(record.get("stdout", ""))
    if not found:
        return 0, 1, 0, "ended with {} and no line of counts".format(record["result"])
    passed, failed, skipped = (int(n or 0) for n in found[-1])
    if not failed and REPORT.search(record.get("stdout", "") + record.get("stderr", "")):
        return passed, 1, skipped, "passed, but a sanitizer reports"
    if not ok and not failed:
        return passed, 1, skipped, "ended with {} and exit status {}".format(record["result"], record["returncode"])
    return passed, failed, skipped, ""


def show(record, remark):
    for name in ("stdout", "stderr"):
        text = record.get(name, "").strip()
        if text:
            print("--- {} of {}\n{}".format(name, record["name"], text[-SHOWN:]))
    if remark:
        print("--- {} {}".format(record["name"], remark))
    print("--- run it alone: {}".format(" ".join(record["command"])))


def follow(process, path):
    """The lines of a file that a process is writing, as they come, until the process ends."""
    while process.poll() is None and not os.path.exists(path):
        time.sleep(0.05)
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as log:
        text = ""
        while True:
            ended = process.poll() is not None
            text += log.read()
            *lines, text = text.split("\n")
            yield from lines
            if ended:
                return
            time.sleep(0.05)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, arguments = sys.argv[1], sys.argv[2:]
    as_built = [] if "--build" in arguments else ["--no-rebuild"]
    arguments = [argument for argument in arguments if argument != "--build"]
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    total = [0, 0, 0]
    os.environ.setdefault("MOTET_CONFIG", "/dev/null")  # what this machine's own files say is no business of tests
    # Meson would have malloc fill every block, which takes a fifth of the time of what allocates large ones, in servers
    # and in Python too. Unit tests, in which wrong results would show what was read before it was written, ask for it.
    os.environ.setdefault("MALLOC_PERTURB_", "0")
    # A machine may be slow, or busy with other things: only what hangs is ended. A third of their time tests wait for
    # something: with three of them for each core, a core is rarely without one.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    command = ["meson", "test", "-C", build, "--quiet", "--timeout-multiplier", "5",
               "--num-processes", str(3 * cores)] + as_built + arguments
    with tempfile.TemporaryFile("w+") as said:
        meson = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        for line in follow(meson, log):
            record = json.loads(line)
            record["name"] = record["name"].split(" / ")[-1]
            passed, failed, skipped, remark = read_result(record)
            total = [a + b for a, b in zip(total, (passed, failed, skipped))]
            if record["result"] == "SKIP":
                print("{:6} {:32} {}".format("-", record["name"], remark), flush=True)
                continue
            print("{:6} {:32} {:5} passed {:7.1f} s".format(
                "FAILED" if failed else "ok", record["name"], passed, record["duration"]), flush=True)
            if failed:
                show(record, remark)
        if not any(total) or (meson.returncode and not total[1]):
            said.seek(0)
            print(said.read(), end="")
    print("{} passed, {} failed{}".format(total[0], total[1], ", {} skipped".format(total[2]) if total[2] else ""))
    sys.exit(1 if meson.returncode or total[1] or not total[0] else 0)


main()
