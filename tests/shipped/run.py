#!/usr/bin/env python3
"""Runs what is shipped as it is, in fresh Debians where that matters, and prints a table. Not part of `make test`: it takes
root, debootstrap, Debian's mirror and half an hour. A stage whose means are missing is skipped and says so.

usage: tests/shipped/run.py [--folder FOLDER] [--ccache FOLDER] [--cuda FOLDER] [--restarts N] [STAGE ...]"""

import argparse
import glob
import os
import re
import signal
import subprocess
import sys
import time

import image as images
import roots

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = roots.TREE
STAGES = []
SHARED = {}  # root file systems of several stages
ARGUMENTS = None
SOURCES = "/src/a tree"  # a path with a space
PROCESSORS = {"aarch64": True, "x86_64": True, "riscv64": False}  # whether it can be run here
ANSWER = "I see a red circle and a blue square."


def stage(function):
    STAGES.append(function)
    return function


def root(name, suite="bookworm"):
    return roots.Root(ARGUMENTS.folder, suite, name, cache=ARGUMENTS.ccache)


def ccache():
    return ["ccache"] if ARGUMENTS.ccache else []


def last(text):
    return (text.strip().splitlines() or [""])[-1]


def output(*words):
    """What a command writes that runs in the tree."""
    done = subprocess.run(words, cwd=TREE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 77:
        raise roots.Missing(last(done.stdout))
    if done.returncode != 0:
        raise roots.Failed(done.stdout[-3000:])
    return done.stdout


def script(*words):
    """The last line of what a test of the tree writes."""
    return last(output(sys.executable, *words))


@stage
def package():
    """make deb on a Debian with nothing but make; its package in another: installed, run, purged."""
    with root("package") as built:
        built.install("make", *ccache())
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
def image():
    """Dockerfile's image, made without a registry: run, asked, stopped with a stream under way. It has kernels where nvcc is."""
    return images.build_and_try(ARGUMENTS.folder, ARGUMENTS.ccache, ARGUMENTS.cuda)


def readme(r, place, user="root"):
    """The first block of README.md as it stands: what serves in a terminal of its own, the rest in another."""
    with open(os.path.join(TREE, "README.md"), encoding="utf-8") as f:
        first, rest = re.search(r"^```sh\n(.*?)\n(.*?)^```$", f.read(), re.MULTILINE | re.DOTALL).groups()
    if images.request(8000, "GET", "/live"):
        raise roots.Missing("port 8000, which README.md names, is somebody else's")
    with open(r.log_path + ".serve", "w", encoding="utf-8") as log:
        serving = subprocess.Popen(r.shell(first, user, place), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            while (images.request(8000, "GET", "/ready") or [0])[0] != 200:
                if serving.poll() is not None:
                    raise roots.Failed("{} ended with {}: see {}".format(first, serving.returncode, log.name))
                time.sleep(0.5)
            said = r.run(rest, user, place)
        finally:
            os.killpg(serving.pid, signal.SIGKILL)  # the shell, make and the server
            serving.wait()
    if ANSWER not in said or "3 triangles" not in said:
        raise roots.Failed("README.md's commands say: " + said)


@stage
def pages():
    """The beginning of the README for a user with sudo on a bare Debian, then every command of all pages, in their order."""
    with root("pages") as r:
        r.install("make", "sudo", *ccache())
        r.run("useradd --create-home --shell /bin/bash someone; echo 'someone ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/someone")
        place = "/home/someone/motet"
        r.put_sources(place, "someone")
        readme(r, place, "someone")
        r.install("python3", "git")  # for what runs the commands
        return last(r.run("python3 tests/docs/run.py --motet build/motet", "someone", place))


@stage
def debian13():
    """The beginning of the README, unit tests and the package on a Debian 13, with gcc; the tests with clang, too."""
    with root("debian13", "trixie") as r:
        place = "/src/motet"
        r.install("make", *ccache())
        r.put_sources(place)
        readme(r, place)
        r.install("python3", "clang")
        said = [last(r.run("make test TESTS='--suite unit'", cwd=place)),
                last(r.run("make test BUILD=build-clang TESTS='--suite unit'", cwd=place,
                           env={"CC": " ".join([*ccache(), "clang"])}))]
        r.run("make deb DEB=/out", cwd=place)
        return "gcc: {}; clang: {}; make deb".format(*said)


def tried(use, options, tests, *packages):
    """The last lines of tests in a Debian that has the packages of tools/packages for them, with the program built there.
    Stages of this kind share it; each set of options has a build of its own, with all that is installed."""
    if "tried" not in SHARED:
        made = root("tried")
        made.install("make", "python3", *ccache())
        made.put_sources("/src/motet")
        SHARED["tried"] = made
    r = SHARED["tried"]
    if packages:
        r.install(*packages)
    build = "build" + options.replace("=", "-")
    r.run("tools/setup.sh {} && {{ test -e {} || meson setup {} -Dtests=false {}; }} && ninja -C {} --quiet".format(
        use, build, build, options, build), cwd="/src/motet")
    return "; ".join(last(r.run("python3 {} --motet {}/motet {}".format(test, build, names), cwd="/src/motet"))
                     for test, names in tests)


@stage
def ranks():
    """Open MPI on one machine: the tests of several ranks, none of which complains of a refused call."""
    return tried("ranks", "-Dmpi=enabled", [("tests/api/test_ranks.py", "")])


@stage
def macos():
    """All of it compiled for macOS on both processors, and linked against stubs of Homebrew's libraries."""
    return script("tests/shipped/macos.py", "--install", "--folder", os.path.join(ARGUMENTS.folder, "macos"))


@stage
def processors():
    """Built for other processors by tools/cross.sh; the machine in qemu-user sees what is on a picture."""
    with root("processors") as r:
        r.install("make", "qemu-user", *ccache(), *("gcc-{}-linux-gnu".format(p.replace("_", "-")) for p in PROCESSORS))
        r.put_sources("/src/motet")
        r.run("tools/setup.sh build", cwd="/src/motet")
        for name, answers in PROCESSORS.items():
            r.run("tools/cross.sh {} -Dtests=false".format(name), cwd="/src/motet")
            if answers:
                answer = r.run("qemu-{0} -L build-{0}-sysroot -cpu max build-{0}/motet run models/box 'What do you see?' "
                               "--image examples/shapes.png".format(name), cwd="/src/motet")
                if ANSWER not in answer:
                    raise roots.Failed("{} says: {}".format(name, answer))
        return ", ".join("{} {}".format(name, "answers" if answers else "compiles") for name, answers in PROCESSORS.items())


@stage
def balancers():
    """Rolling restarts behind HAProxy and nginx: nothing is lost."""
    return tried("routers", "", [("tests/e2e/test_routers.py", "--restarts {} {}".format(
        ARGUMENTS.restarts, " ".join("rolling_restarts_lose_nothing_behind_" + name for name in ("haproxy", "nginx"))))])


@stage
def kubernetes():
    """The manifests' fields, and their command run, probed and ended."""
    return tried("build", "", [("tests/e2e/test_kubernetes.py", "")], "python3-yaml")


@stage
def installed():
    """make install and make uninstall, the unit, completions of all shells, the alerts; serve --check of what cannot start."""
    return tried("watch", "", [("tests/package/test_package.py", ""), ("tests/api/test_service.py", "")],
                 "fish", "mandoc", "systemd", "zsh")


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="/var/tmp/motet-shipped", help="where root file systems are made")
    parser.add_argument("--ccache", help="a cache of compiled files, which all users may write, for all root file systems")
    parser.add_argument("--cuda", default=images.CUDA, help="the folder of CUDA's toolkit, for the image's kernels")
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("stages", nargs="*")
    ARGUMENTS = parser.parse_args()
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
    for r in SHARED.values():
        r.__exit__(None, None, None)
    print("\n".join(["", *rows]))
    sys.exit(1 if failed else 0)


main()
