"""What attack scripts share: a server that listens at a socket file, and the proof that a server is as well after an
attack as before it."""

import http.client
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import served  # noqa: E402

QUESTION = {"prompt": [0, 9, 40, 41], "max_tokens": 8, "temperature": 0, "ignore_eos": True}


def answer(server):
    """What a server says to the same question, at any time the same."""
    got = server.post("/v1/completions", QUESTION)
    assert got.status == 200, got.body
    return got.json()["choices"][0]["text"]


class Attack:
    """with Attack(server): whatever happens inside, the server has to live through it and to answer as before. It leaves
    no descriptor open, unless it opens some of its own meanwhile (opens=True)."""

    def __init__(self, server, opens=False):
        self.server, self.opens = server, opens

    def __enter__(self):
        self.before, self.files = answer(self.server), open_files(self.server)
        return self.server

    def __exit__(self, kind, value, trace):
        if kind is None:
            assert self.server.process.poll() is None, "the server has ended:\n" + "\n".join(self.server.log[-20:])
            assert answer(self.server) == self.before, "another answer than before"
            assert self.opens or served.eventually(lambda: open_files(self.server) <= self.files), "descriptors are left open"


def open_files(server):
    return len(os.listdir("/proc/{}/fd".format(server.process.pid)))


def refused(program, folder, *options, **settings):
    """The last line of a server that does not start."""
    done = subprocess.run([program, "serve", folder, "--port", "0", "--threads", "2", *options], stderr=subprocess.PIPE,
                          text=True, errors="replace", timeout=served.PATIENCE, check=False, **settings)
    assert done.returncode == 1, (done.returncode, done.stderr)
    return done.stderr.strip().splitlines()[-1]


class Local(http.client.HTTPConnection):
    """HTTP over a socket file."""

    def __init__(self, path):
        super().__init__("localhost", timeout=served.PATIENCE)
        self.path = path

    def connect(self):
        self.sock = connected(self.path)


def connected(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(served.PATIENCE)
    try:
        s.connect(path)
    except OSError:
        s.close()
        raise
    return s


class LocalServer(served.Server):
    """A server that listens at a socket file."""

    def __init__(self, program, folder, path, *options, **settings):
        self.path = path
        super().__init__(program, folder, "--host", "unix:" + path, *options, **settings)

    def read(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            if "server.listening" in line:
                self.port = self.path
                self.listening.set()
        self.listening.set()

    def connect(self):
        return Local(self.path)

    def socket(self):
        return connected(self.path)
