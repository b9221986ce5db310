#!/usr/bin/env python3
"""Runs what is shipped as it is, in fresh Debians where that matters, and prints a table. Not part of `make test`: it takes
root, debootstrap, Debian's mirror and half an hour. A stage whose means are missing is skipped and says so.

usage: tests/shipped/run.py --motet PROGRAM [--folder FOLDER] [--ccache FOLDER] [--restarts N] [STAGE ...]"""

import argparse
import glob
import os
import subprocess
import sys
import time

import roots

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = roots.TREE
STAGES = []
ARGUMENTS = None
SOURCES = "/src/a tree"  # a path with a space


def stage(function):
    STAGES.append(function)
    return function


def root(name):
    return roots.Root(ARGUMENTS.folder, "bookworm", name, cache=ARGUMENTS.ccache)


def last(text):
    return (text.strip().splitlines() or [""])[-1]


def script(*words):
    """The last line of what a test of the tree writes."""
    done = subprocess.run([sys.executable, *words], cwd=TREE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != 0:
        raise roots.Failed(done.stdout[-3000:])
    return last(done.stdout)


@stage
def package():
    """make deb on a Debian with nothing but make; its package in another: installed, run, purged."""
    with root("package") as built:
        built.install("make", *(["ccache"] if ARGUMENTS.ccache else []))
        built.put_sources(SOURCES)
        built.run("make deb DEB=/out", cwd=SOURCES)
        debs = [d for d in glob.glob(built.path + "/out/motet_*.deb")]
        with root("installed") as other:
            subprocess.run(["cp", *debs, other.path + "/tmp"], check=True)
            other.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends /tmp/motet_*.deb")
            version = other.run("motet --version").splitlines()[0]
            other.run("apt-get purge -y -qq motet; ! ls -d /var/lib/motet /var/cache/motet /etc/motet.conf /usr/bin/motet "
                      "2>/dev/null")
            return "{} {}, purged without a trace".format(os.path.basename(debs[0]), version)


@stage
def ranks():
    """Open MPI on one machine: the tests of several ranks, none of which complains of a refused call."""
    with root("ranks") as r:
        r.install("make", "python3", *(["ccache"] if ARGUMENTS.ccache else []))
        r.put_sources("/src/motet")
        r.run("tools/setup.sh build && tools/setup.sh ranks && meson setup b -Dtests=false -Dmpi=enabled && "
              "ninja -C b --quiet motet", cwd="/src/motet")
        return last(r.run("python3 tests/api/test_ranks.py --motet b/motet", cwd="/src/motet"))


@stage
def balancers():
    """Rolling restarts behind HAProxy and nginx: nothing is lost."""
    return script("tests/e2e/test_routers.py", "--motet", ARGUMENTS.motet, "--restarts", str(ARGUMENTS.restarts),
                  "rolling_restarts_lose_nothing_behind_haproxy", "rolling_restarts_lose_nothing_behind_nginx")


@stage
def kubernetes():
    """The manifests' fields, and their command run, probed and ended."""
    return script("tests/e2e/test_kubernetes.py", "--motet", ARGUMENTS.motet)


@stage
def installed():
    """make install and make uninstall, the unit, completions."""
    return script("tests/package/test_package.py", "--motet", ARGUMENTS.motet)


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", required=True)
    parser.add_argument("--folder", default="/var/tmp/motet-shipped", help="where root file systems are made")
    parser.add_argument("--ccache", help="a cache of compiled files that the root file systems share")
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("stages", nargs="*")
    ARGUMENTS = parser.parse_args()
    ARGUMENTS.motet = os.path.abspath(ARGUMENTS.motet)
    os.makedirs(ARGUMENTS.folder, exist_ok=True)
    rows, failed = [], False
    for function in STAGES:
        if ARGUMENTS.stages and function.__name__ not in ARGUMENTS.stages:
            continue
        begin, result = time.time(), "ok"
        try:
            said = function()
        except roots.Missing as why:
            result, said = "skipped", str(why)
        except roots.Failed as why:
            result, said, failed = "FAILED", str(why), True
            print(said)
            said = last(said)
        rows.append("{:12} {:8} {:6.0f} s  {}".format(function.__name__, result, time.time() - begin, said))
        print(rows[-1], flush=True)
    print("\n".join(["", *rows]))
    sys.exit(1 if failed else 0)


main()
