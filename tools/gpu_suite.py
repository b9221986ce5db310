#!/usr/bin/env python3
"""Runs on a GPU what tests there are, and prints one table. Needs a build folder with programs for this machine
(tools/cross.sh makes one elsewhere), this tree's tests, and nothing but Python: no Meson.

    tools/gpu_suite.py BUILD                 everything
    tools/gpu_suite.py BUILD oracle memcheck only what has one of these words in its name
    tools/gpu_suite.py BUILD --list

Each check of checkdevice is a test by itself; where a start takes longer than most checks (under a sanitizer, or where
the driver compiles) one process runs several, and its log says what failed: an operation, or a kernel. The table has a
line for all of them together, and one for each test that failed. What a test wrote is in BUILD/gpu_suite/NAME.log.
--jobs tests run side by side on the same card; with NVIDIA's MPS running they share it without taking turns (not the
sanitizers, which do not work with it, nor the fault on purpose, which would be everybody's: they are started without)."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNT = re.compile(r"^\S+: (\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
# Exactness storms, reuse, drafts, recurrent states, pictures, vectors: whatever company a sequence is in, and wherever
# it comes from, its bits are the same.
UNITS = ("engine_batch", "engine_reuse", "engine_keep", "engine_ahead", "engine_rota", "engine_draft", "engine_guess",
         "engine_state", "engine_sighted", "engine_media", "engine_memory", "engine_pool", "engine_texts",
         "engine_turns", "models_layers", "models_guess", "models_bert", "models_vision")
APIS = ("server", "constraints", "pictures", "vectors")
OLDER = {"CUDA_FORCE_PTX_JIT": "1"}  # the driver compiles the code for sm_80, which the host then launches as such
WITHOUT_MPS = {"CUDA_MPS_PIPE_DIRECTORY": "/nowhere"}
AT_A_TIME = ("--jobs", "4")  # checkpoints an oracle compares: most of its time is starts of the program
# That a kernel is not in the first image that is asked is no fault.
QUIET = ["--report-api-errors", "no"]
BARRIERS = ["--num-cuda-barriers", "256"]  # of a block; what the tool reckons itself it has no memory for
TOGETHER = 6  # checks of checkdevice that a process runs where its start takes half a minute
# racecheck comes last: its kernels run for seconds, and what waits for small ones beside it, by turns, does not get on.
SANITIZERS = {"memcheck": ["--leak-check", "full", *QUIET], "initcheck": QUIET, "synccheck": BARRIERS, "racecheck": []}


class Test:
    def __init__(self, name, command, env=None, seconds=600, group=None):
        self.name, self.command, self.env, self.seconds, self.group = name, command, env or {}, seconds, group
        self.result, self.counts, self.took = "", (0, 0, 0), 0.0

    def failed(self):
        return self.result.startswith("FAILED") or self.counts[1] > 0

    def run(self, logs):
        begin = time.monotonic()
        try:
            done = subprocess.run(self.command, cwd=TOP, env=dict(os.environ, **self.env), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=self.seconds, check=False)
            status, text = done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            status, text = "none in {} s".format(self.seconds), (late.stdout or b"").decode(errors="replace")
        self.took = time.monotonic() - begin
        with open(os.path.join(logs, self.name + ".log"), "w", encoding="utf-8") as log:
            log.write(text)
        found = COUNT.findall(text)
        if found:
            self.counts = tuple(int(n or 0) for n in found[-1])
        self.result = "ok" if status == 0 else "FAILED ({})".format(status)
        return self


def sanitizer():
    return shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


def checks_of(program):
    """Number and name of each check of checkdevice."""
    if not os.path.exists(program):
        return []
    lines = subprocess.run([program, "--list"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    return [(int(number), re.sub(r"\W+", "_", name)) for number, name in (line.split(" ", 1) for line in lines)]


def bundles(count, together):
    """Name and range of numbers of each bundle of checks."""
    for first in range(1, count + 1, together):
        last = min(first + together - 1, count)
        yield "{:02}_{:02}".format(first, last), "{}-{}".format(first, last)


def tests_of(build, device):
    """What answers are made of first; sanitizers, which take longest, last: who has little time knows the most then."""
    program = os.path.join(build, "motet")
    check = [os.path.join(build, "checkdevice"), "--device", device]
    units = os.path.join(build, "tests", "unit")
    unit = {"MOTET_TEST_DEVICE": device, "MOTET_TEST_QUICK": "1", "LD_LIBRARY_PATH": units, "MOTET_PROGRAM": program}
    served = {"MOTET_DEVICE": device}
    yield Test("fault", check + ["--fault"], WITHOUT_MPS)
    folder = os.path.join(build, "tests", "cuda")
    yield Test("sm90", [os.path.join(folder, "cuda_sm90"), os.path.join(folder, "sm90.fatbin"), "4096"])
    checks = checks_of(check[0])
    yield from (Test("checkdevice_{:02}_{}".format(number, name), check + ["--threads", "1", "--only", str(number)],
                     group="checkdevice") for number, name in checks)
    for precision in ("fast", "reference"):
        for kind, options in (("", AT_A_TIME), ("_sight", AT_A_TIME), ("_vectors", ())):
            yield Test("oracle{}_{}".format(kind, precision),
                       [sys.executable, "tests/oracle/compare{}.py".format(kind), "--motet", program, "--precision",
                        precision, *options], served)
    yield Test("oracle_older", [sys.executable, "tests/oracle/compare.py", "--motet", program, "--precision", "fast",
                                "--filter", "4bit", *AT_A_TIME], dict(OLDER, **served))
    for name in UNITS:
        yield Test(name, [os.path.join(units, "unit_" + name)], unit)
    for name in APIS:
        yield Test("api_" + name, [sys.executable, "tests/api/test_{}.py".format(name), "--motet", program], served)
    yield from (Test("older_" + name, check + ["--threads", "1", "--only", numbers], OLDER, group="older")
                for name, numbers in bundles(len(checks), TOGETHER))
    for tool, options in SANITIZERS.items():
        # To look for races in one check may take minutes.
        for name, numbers in bundles(len(checks), 1 if tool == "racecheck" else TOGETHER):
            yield Test("{}_{}".format(tool, name),
                       [sanitizer(), "--tool", tool, "--error-exitcode", "9", *options, *check, "--quick",
                        "--only", numbers], WITHOUT_MPS, group=tool)


def show(tests):
    """The table; tests of a group are one line of it, and those of them that failed one each."""
    line = "{:<34} {:>7} {:>7} {:>8} {:>8}  {}"
    print(line.format("test", "passed", "failed", "skipped", "seconds", ""))
    groups = {}
    for t in tests:
        if t.group:
            groups.setdefault(t.group, []).append(t)
    for name, members in groups.items():
        bad = sum(t.failed() for t in members)
        there = [t for t in members if t.result != "not built"]
        print(line.format(name, len(there) - bad, bad, len(members) - len(there),
                          "{:.1f}".format(sum(t.took for t in members)), "FAILED" if bad else "ok"))
    for t in tests:
        if not t.group or t.failed():
            print(line.format(t.name, *t.counts, "{:.1f}".format(t.took), t.result))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    tests = [t for t in tests_of(os.path.abspath(args.build), args.device)
             if not args.words or any(word in t.name for word in args.words)]
    if args.list:
        print("\n".join(t.name for t in tests))
        return 0
    logs = os.path.join(args.build, "gpu_suite")
    os.makedirs(logs, exist_ok=True)
    there = [t for t in tests if all(os.path.exists(p) for p in t.command[:1])]
    for t in tests:
        if t not in there:
            t.result = "not built"
    begin = time.monotonic()
    with ThreadPoolExecutor(args.jobs) as pool:
        for done in as_completed([pool.submit(t.run, logs) for t in there]):
            t = done.result()
            print("{} {:.1f} s {} {}".format(t.name, t.took, t.result, t.counts), file=sys.stderr, flush=True)
    show(tests)
    failed = [t for t in tests if t.failed()]
    print("gpu: {} passed, {} failed, {} skipped in {:.0f} s".format(
        len(there) - len(failed), len(failed), len(tests) - len(there), time.monotonic() - begin))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
