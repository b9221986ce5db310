"""Makes a program of tests/faults/inject.c fail, and knows the places where it could by file and line."""

import mmap
import os
import re
import struct
import subprocess

KINDS = ["alloc", "open", "read", "write", "sync", "map", "socket", "thread", "fork", "device", "nan", "hang"]
OFF, WATCH, NTH, RANDOM = range(4)
DOORS, SITES = 512, 16384
FIELDS = ["mode", "key", "nth", "kinds", "seed", "rate", "fired", "last", "passes", "hang", "lost", "door_count"]
# Functions of these files ask for what others want. Which of them are of use to whom is of no interest.
DOOR_FILES = ("src/base/alloc.c", "src/base/arena.c", "src/base/buf.c", "src/base/json_escape.c", "tests/faults/inject.c")
DOOR_NAMES = {"take", "memory", "mt_arena_grow"}  # of allocators that are given to libraries


class Program:
    """What is known of a program: which of its functions are doors, and what stands where."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.names = {}
        symbols = subprocess.run(["nm", "--defined-only", "-n", "-S", self.path], capture_output=True, check=True,
                                 text=True).stdout
        self.base = int(re.search(r"^(\w+) \w __executable_start$", symbols, re.M).group(1), 16)
        functions = [(int(a, 16), int(s, 16), n) for a, s, n in re.findall(r"^(\w+) (\w+) [tTwW] (\S+)$", symbols, re.M)]
        found = self.look([start for start, _, _ in functions])
        self.doors = sorted({(start - self.base, start - self.base + size) for start, size, name in functions
                             if found[start][1].startswith(DOOR_FILES) or name in DOOR_NAMES})

    def look(self, addresses):
        """{address: (function, file:line)}"""
        text = "".join("{:x}\n".format(a) for a in addresses)
        lines = subprocess.run(["addr2line", "-f", "-e", self.path], input=text, capture_output=True, check=True,
                               text=True).stdout.splitlines()
        places = (re.sub(r" \(discriminator.*", "", re.sub(r"^.*?((src|tests|web)/)", r"\1", place))
                  for place in lines[1::2])
        return dict(zip(addresses, zip(lines[0::2], places)))

    def name(self, keys):
        """Looks all these keys up at once: "alloc src/api/ask.c:12 function"."""
        unknown = [key for key in keys if key not in self.names]
        found = self.look([(key & (1 << 56) - 1) + self.base for key in unknown])
        for key in unknown:
            function, place = found[(key & (1 << 56) - 1) + self.base]
            self.names[key] = "{} {} {}".format(KINDS[(key >> 56) - 1], place, function)
        return {key: self.names[key] for key in keys}


class Control:
    """The file that a program shares. One for each process and what it forks."""

    def __init__(self, program, path):
        self.program, self.path = program, path
        size = 8 * len(FIELDS) + 16 * DOORS + 16 * SITES
        with open(path, "wb") as f:
            f.truncate(size)
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), size)
        assert len(program.doors) <= DOORS, "{} doors".format(len(program.doors))
        for i, (first, last) in enumerate(program.doors):
            struct.pack_into("=QQ", self.map, 8 * len(FIELDS) + 16 * i, first, last)
        self.set(door_count=len(program.doors), mode=WATCH)

    def env(self):
        return {"MOTET_FAULTS": self.path}

    def set(self, **values):
        for name, value in values.items():
            struct.pack_into("=Q", self.map, 8 * FIELDS.index(name), value)

    def get(self, name):
        return struct.unpack_from("=Q", self.map, 8 * FIELDS.index(name))[0]

    def sites(self):
        """{key: passes so far}"""
        at = 8 * len(FIELDS) + 16 * DOORS
        pairs = struct.unpack_from("={}Q".format(2 * SITES), self.map, at)
        assert self.get("lost") == 0, "there are more sites than there is room for"
        return {key: passes for key, passes in zip(pairs[0::2], pairs[1::2]) if key}

    def clear(self):
        """Forgets what was passed so far."""
        at = 8 * len(FIELDS) + 16 * DOORS
        self.map[at:at + 16 * SITES] = bytes(16 * SITES)

    def fail(self, key, nth=1):
        """The n-th pass of a site from now on."""
        self.set(mode=WATCH, fired=0)
        self.set(key=key, nth=nth)
        self.set(mode=NTH)

    def fail_any(self, kinds, nth):
        self.set(mode=WATCH, fired=0)
        self.set(key=0, kinds=sum(1 << KINDS.index(k) for k in kinds), nth=nth)
        self.set(mode=NTH)

    def random(self, seed, rate, kinds):
        """rate: of one, of all passes of these kinds."""
        self.set(mode=WATCH, fired=0)
        self.set(seed=seed, rate=int(rate * 2**32), kinds=sum(1 << KINDS.index(k) for k in kinds))
        self.set(mode=RANDOM)

    def rest(self):
        """How many have failed since; none does any more."""
        self.set(mode=WATCH)
        return self.get("fired")
