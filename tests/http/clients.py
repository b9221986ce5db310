"""A test server and clients for it that say exactly what they are told to, on plain sockets."""

import json
import os
import socket
import subprocess
import time
import unittest

ECHO = None  # the server's program, set by whoever runs the tests
PATIENCE = 240  # seconds for what must happen; only a test that fails waits so long


class Server:
    def __init__(self, *settings, leaks=False):
        environment = dict(os.environ)
        if leaks:
            environment["ASAN_OPTIONS"] = "detect_leaks=1"
        self.process = subprocess.Popen([ECHO, *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment)
        line = self.process.stdout.readline()
        if not line.startswith("port "):
            raise RuntimeError(self.process.communicate()[1].strip())
        self.port = int(line.split()[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.stop()

    def connect(self, address="127.0.0.1"):
        """From an address of the loopback network: some systems have but one."""
        try:
            return Client(socket.create_connection(("127.0.0.1", self.port), PATIENCE, (address, 0)))
        except OSError as why:
            if address != "127.0.0.1":
                raise unittest.SkipTest(f"{address}: {why}") from why
            raise

    def ask(self, text):
        with self.connect() as client:
            return client.ask(text)

    def get(self, path):
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")

    def stats(self):
        return json.loads(self.get("/stats").body)

    def wait_for(self, **wanted):
        """Until the statistics have these values, or those of which a function says yes. The connection that asks
        counts as open and as an exchange."""
        deadline = time.monotonic() + PATIENCE
        while True:
            stats = self.stats()
            if all(value(stats[name]) if callable(value) else stats[name] == value for name, value in wanted.items()):
                return stats
            if time.monotonic() > deadline:
                raise AssertionError(f"waited for {wanted}, but there is {stats}")
            time.sleep(0.02)

    def stop(self):
        """Ends the server as a drain at once does, and expects it to end well. Returns what it logged."""
        if self.process.poll() is None:
            try:
                self.ask("POST /drain?ms=0 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n")
            except (OSError, EOFError):
                pass  # it closes at once
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, f"the server ended with {self.process.returncode}: {err[-3000:]}"
        assert out.endswith("live 0\n"), f"answers are still under way: {out}"
        return err


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def text(self):
        return self.body.decode()


class Client:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.sock.close()

    def send(self, text):
        self.sock.sendall(text.encode("latin-1") if isinstance(text, str) else text)

    def more(self):
        data = self.sock.recv(65536)
        self.buffer += data
        return bool(data)

    def until(self, mark):
        while mark not in self.buffer:
            if not self.more():
                raise EOFError(f"the connection ended after {self.buffer[:200]!r}")
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def exactly(self, count):
        while len(self.buffer) < count:
            if not self.more():
                raise EOFError(f"{count} bytes were to come, {len(self.buffer)} came")
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def head(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status = lines[0].split(" ")[:2]
        assert version == "HTTP/1.1", lines[0]
        return int(status), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}

    def chunk(self):
        """The next chunk of a body; b"" is the last."""
        data = self.exactly(int(self.until(b"\r\n"), 16))
        assert self.exactly(2) == b"\r\n"
        return data

    def response(self, bodiless=False):
        status, headers = self.head()
        if bodiless or status in (204, 304):
            return Response(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Response(status, headers, b"".join(iter(self.chunk, b"")))
        if "content-length" in headers:
            return Response(status, headers, self.exactly(int(headers["content-length"])))
        return Response(status, headers, self.rest())

    def rest(self):
        while self.more():
            pass
        part, self.buffer = self.buffer, b""
        return part

    def ask(self, text, bodiless=False):
        self.send(text)
        return self.response(bodiless)

    def ended(self):
        """Whether the server closes without another byte."""
        try:
            return not self.more() and not self.buffer
        except ConnectionResetError:
            return True
