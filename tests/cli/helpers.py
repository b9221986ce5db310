"""A server that parrots, a terminal with a person at it, and the running of tests, for the tests of commands."""
import argparse
import codecs
import fcntl
import http.server
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import fixture  # noqa: E402
import served  # noqa: E402
from served import PATIENCE, eventually  # noqa: E402,F401


class Fake(http.server.BaseHTTPRequestHandler):
    """A server that says what it was asked, word by word, and keeps the requests."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):  # pylint: disable=invalid-name
        self.reply(200, json.dumps({"data": [{"id": "parrot"}]}))

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):  # pylint: disable=invalid-name
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((body, self.headers.get("authorization")))
        last = body["messages"][-1]["content"]
        text = last if isinstance(last, str) else last[-1]["text"]
        if text == "refuse":
            return self.reply(400, json.dumps({"error": {"message": "no such thing"}}))
        self.send_response(200)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            if text == "call":
                self.call("sum", '{"a": 1,', ' "b": 2}')
                return None
            self.chunk({"reasoning_content": "hm"})
            for word in ["you", "said", text]:
                self.chunk({"content": word + " "})
            while text == "for ever":
                self.chunk({"content": "on "})
                time.sleep(0.01)
            self.chunk({}, "length" if text == "cut" else "stop")
            self.wfile.write(b": a comment\n\ndata: [DONE]\n\n")
        except OSError:
            self.server.gone += 1
        return None

    def call(self, name, *pieces):
        self.chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": name}}]})
        for piece in pieces:
            self.chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        self.chunk({}, "tool_calls")
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, delta, finish=None):
        event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\r\n\r\n")
        self.wfile.flush()


def fake():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.daemon_threads = True
    server.asked, server.gone = [], 0
    server.url = "http://127.0.0.1:{}/v1".format(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def running(folder):
    """Processes that were started with this folder."""
    if not os.path.isdir("/proc/self"):
        return subprocess.run(["pgrep", "-f", folder], capture_output=True, check=False).stdout.split()
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/{}/cmdline".format(number), "rb") as f:
                if folder.encode() in f.read().split(b"\0"):
                    found.append(number)
        except OSError:  # gone meanwhile
            pass
    return found


class Terminal:
    """A person's: what is typed goes in, what is shown can be waited for."""

    def __init__(self, *command, home=None, columns=0):
        try:
            self.pid, self.fd = pty.fork()
        except OSError as why:  # a root folder may have no /dev/pts
            raise served.Skip("there are no pseudo-terminals") from why
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME=home or "/nowhere")
            if columns:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            for name in "LANG", "LC_ALL", "LC_CTYPE":  # as in a container
                os.environ.pop(name, None)
            os.execv(command[0], command)
        self.shown = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert self.read(end - time.monotonic()), "{!r} did not come; shown: {!r}".format(text, self.shown)
        at = self.shown.index(text) + len(text)
        before, self.shown = self.shown[:at], self.shown[at:]
        return before

    def prompt(self):
        """Editing begins a moment after the prompt is shown: until then keys are the terminal's own."""
        self.wait("> ")
        assert eventually(lambda: not self.echoes()), "nothing is edited"

    def echoes(self):
        flags = termios.tcgetattr(self.fd)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON) and bool(flags & termios.ISIG)

    def end(self):
        """The exit status, once all that it wrote is in shown: what a process wrote last outlives it in the terminal."""
        end = time.monotonic() + PATIENCE
        while self.read(end - time.monotonic()):
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def read(self, seconds):
        """Whether something more was shown within so many seconds."""
        try:
            data = os.read(self.fd, 65536) if select.select([self.fd], [], [], max(0, seconds))[0] else b""
        except OSError:  # the other side is closed
            data = b""
        self.shown += self.decoder.decode(data)
        return bool(data)


def run(*command, text=b"", **variables):
    """(exit status, standard output, standard error), after a look whether a socket was left behind. With these
    variables in the environment."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(os.environ, **variables))
    out, err = child.communicate(text, PATIENCE)
    assert not os.path.exists("/tmp/motet-chat-{}.sock".format(child.pid))
    return child.returncode, out.decode(errors="replace"), err.decode()


def main(name, tests, needs=None):
    """Runs tests(program, folder of a tiny checkpoint), or those named, unless the build lacks what all of them need."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if needs and needs not in served.features(arguments.motet):
        print("skipped: motet was built without {}".format(needs))
        sys.exit(77)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background ignores it
    with tempfile.TemporaryDirectory() as folder:
        tiny = fixture.write(os.path.join(folder, "tiny"))
        served.run_tests(name, tests, arguments.names, os.path.abspath(arguments.motet), tiny)
