#!/usr/bin/env python3
"""Every kernel has a check: checkdevice --quick launches all that the device has, on the code of newer cards or of
older ones, so that whoever runs it under a sanitizer has seen them all. What it launches is what our own driver saw
(fake.h); what it computes means nothing there, and is held to the same.

usage: LD_LIBRARY_PATH=BUILD/tests/cuda tests/cuda/kernels.py CHECKDEVICE"""

import os
import subprocess
import sys
import tempfile

# Newer cards, also with each product in a kernel of its own, and in the arithmetic `native`; older cards.
LOOKS = ((90, "", ()), (90, "row=0", ("row",)), (90, "", ("--native", "rows", "MLP", "experts")), (80, "", ()))


def look(program, code, ways, checks):
    """Names of the kernels there are, and of those that were launched."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as names:
        env = dict(os.environ, MOTET_FAKE_CUDA="code={},launches={}".format(code, names.name), MOTET_CUDA=ways)
        command = [program, "--device", "cuda", "--against", "cuda", "--all", "--quick", "--threads", "1", *checks]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode(errors="replace")
        if done.returncode not in (0, 1) or "checkdevice: " not in text:
            raise SystemExit("{}\ncheckdevice ended with {}".format(text[-3000:], done.returncode))
        lines = [line.split() for line in names.read().splitlines()]
    return {name for what, name in lines if what == "has"}, {name for what, name in lines if what == "ran"}


def main():
    if os.environ.get("MOTET_TEST_QUICK"):
        print("skipped: takes long")
        return 77
    names, seen = set(), set()
    for code, ways, checks in LOOKS:
        there, ran = look(sys.argv[1], code, ways, checks)
        names, seen = names | there, seen | ran
    missing = sorted(names - seen)
    for name in missing:
        print("checkdevice --quick does not launch {}: it needs a check in tests/device, or more trials".format(name))
    print("cuda_kernels: {} passed, {} failed".format(len(names & seen), len(missing)))
    return 1 if missing or not names else 0


if __name__ == "__main__":
    sys.exit(main())
