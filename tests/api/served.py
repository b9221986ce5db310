"""A motet server for tests: starts the program on a free port, talks HTTP to it, and looks after its end."""

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import fixture

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 240  # seconds for what must happen; only a test that fails waits so long
# What a sanitizer writes to standard error of a server, or of a process that it has started: tests fail by it
REPORT = re.compile(r"ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error: |Sanitizer: CHECK failed")
LISTENING = re.compile(r"server\.listening(?: |\",\"message\":\")http(s?)://[^ ]*:(\d+)")


class Server:
    """Use as a context manager. What the program wrote to standard error is in self.log. The words of wrapper stand
    before the command and run it; cwd is the folder that it runs in."""

    def __init__(self, program, folder, *options, env=None, ready=True, wrapper=(), cwd=None, port="0"):
        self.log = []
        self.port = None
        self.listening = threading.Event()
        self.options = options
        self.private = private_folders(env or {})
        folders = folder if isinstance(folder, (list, tuple)) else [folder]  # an empty list: all that are found
        command = [*wrapper, program, "serve", *folders, "--port", port, "--threads", "2", "--precision", "reference", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        errors="replace", env={**os.environ, "OLLAMA_MODELS": "/nowhere", **(env or {})}, cwd=cwd)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.listening.wait(PATIENCE) or not self.port:
            self.process.kill()
            self.look_for_reports()
            raise AssertionError("the server did not listen:\n" + "\n".join(self.log[-20:]))
        if ready:
            self.wait_ready()

    def read(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            found = LISTENING.search(line)
            if found:
                self.port = int(found.group(2))
                self.listening.set()
        self.listening.set()

    def wait_ready(self):
        try:
            ready = eventually(lambda: self.request("GET", "/ready").status == 200)
        except OSError:  # it listened, and has ended since
            ready = False
            self.process.wait(PATIENCE)
            self.reader.join()
        if not ready:
            raise AssertionError("the server was not ready:\n" + "\n".join(self.log[-20:]))

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def request(self, method, path, body=None, headers=None):
        """One exchange: an Answer."""
        connection = self.connect()
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            answer = Answer(response.status, response.getheaders(), response.read())
            self.check_private(path, body, answer)
            return answer
        finally:
            connection.close()

    def check_private(self, path, body, answer):
        """No answer tells where the server has its files, unless the client has said so itself."""
        asked = path.encode() + (body or b"")
        for folder in self.private:
            assert folder not in answer.body or folder in asked, (path, folder, answer.body)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def complete(self, **body):
        return self.post("/v1/completions", body)

    def chat(self, text="hello world", **body):
        return self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **body})

    def status(self):
        return self.request("GET", "/v1/status").json()

    def wait_idle(self):
        """Until nothing is prepared, waits or runs."""
        def idle():
            status = self.status()
            return not status["requests"] and not status["running"] and not status["waiting"]
        assert eventually(idle), "still busy: {}".format(self.status())

    def metrics(self):
        """{name or name{labels without model_name}: value}"""
        found = {}
        for line in self.request("GET", "/metrics").body.decode().splitlines():
            if line.startswith("#") or not line:
                continue
            name, value = line.rsplit(" ", 1)
            name = re.sub(r'model_name="[^"]*",?', "", name).replace("{}", "")
            found[name] = float(value)
        return found

    def metrics_by_model(self, name):
        """{model: value} of a metric without other labels."""
        text = self.request("GET", "/metrics").body.decode()
        return {m: float(v) for m, v in re.findall(re.escape(name) + r'\{model_name="([^"]*)"\} (\S+)', text)}

    def memory(self, what="VmRSS"):
        """Bytes that the process has in memory; of VmHWM, the most it ever had."""
        with open("/proc/{}/status".format(self.process.pid), encoding="utf-8") as f:
            return 1024 * int(re.search(what + r":\s+(\d+)", f.read()).group(1))

    def memory_peak(self):
        """The most that it ever had."""
        with open("/proc/{}/status".format(self.process.pid), encoding="utf-8") as f:
            return 1024 * int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))

    def cpu(self, part=""):
        """Seconds of processor time that the process has had, or a part of it: "/task/NUMBER"."""
        with open("/proc/{}{}/stat".format(self.process.pid, part), encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def socket(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def listens(self):
        try:
            self.socket().close()
            return True
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM, seconds=PATIENCE):
        """The exit status after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "none after {} s".format(seconds)
        self.reader.join(PATIENCE)
        self.look_for_reports()
        return status

    def reports(self):
        return [line for line in self.log if REPORT.search(line)]

    def look_for_reports(self):
        assert not self.reports(), "a sanitizer reports:\n" + "\n".join(self.log)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        status = self.stop()
        if kind is None and status != 0:
            raise AssertionError("the server ended with {}:\n{}".format(status, "\n".join(self.log[-40:])))
        if kind is not None:
            print("\n".join(self.log[-40:]))


def private_folders(env):
    """Where a server has its files: those of tests are below the folder for temporary files or the tree's."""
    folders = [tempfile.gettempdir(), os.getcwd(), os.path.dirname(HERE), os.path.expanduser("~"), "/root/", "/home/",
               env.get("HF_HUB_CACHE"), env.get("HF_HOME")]
    return [os.fsencode(folder) for folder in folders if folder and folder != "/"]


def eventually(check, seconds=PATIENCE):
    """What check() says once it says something. Counters are copied after a step, sockets close when both sides have."""
    end = time.monotonic() + seconds
    while not (found := check()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {k.lower(): v for k, v in headers}

    def json(self):
        return json.loads(self.body)

    def events(self):
        if self.headers.get("content-type", "").startswith("application/x-ndjson"):
            return [json.loads(line) for line in self.body.decode().splitlines()]
        return list(events_of(self.body.decode()))

    def text(self):
        """Of the first choice, streamed or not."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return stream_text(self.events())
        choice = self.json()["choices"][0]
        return choice["text"] if "text" in choice else choice["message"]["content"]


def events_of(text):
    """The data of server-sent events: objects, and "[DONE]"."""
    for block in text.split("\n\n"):
        lines = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
        if lines:
            data = "\n".join(lines)
            yield data if data == "[DONE]" else json.loads(data)


def stream_text(events, choice=0):
    text = ""
    for event in events:
        for c in event["choices"] if isinstance(event, dict) and "choices" in event else []:
            if c["index"] == choice:
                text += c["text"] if "text" in c else c["delta"].get("content") or ""
    return text


def free_port():
    """A port for a program that cannot be told to choose one itself. No connection has it for its own end: it is below
    those that systems give out. Another program may still be quicker: who binds it tries again."""
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", random.randrange(16384, 32768)))
            return s.getsockname()[1]


class Skip(Exception):
    """The machine lacks what a test needs."""


# Where weights and cache are on a GPU, --memory is its memory, and --host-memory that of the process.
ON_GPU = os.environ.get("MOTET_DEVICE", "").startswith("cuda")


def on_the_host():
    """For tests of what a process whose model is in its own memory does."""
    if ON_GPU:
        raise Skip("weights and cache are on a GPU")


def features(program):
    """What a build has of what it can do without: {"fetch", "video", "webp"}, or fewer."""
    said = subprocess.run([program, "--version"], capture_output=True, check=True, text=True).stdout
    return {word[1:] for word in said.split() if word.startswith("+")}


def need(program, feature):
    """For a test that cannot be passed without a feature."""
    if feature not in features(program):
        raise Skip("motet was built without {}".format(feature))


class Suite:
    """The tests of a file that all want servers with the fixture's model. Its program takes --motet PROGRAM, --hang
    LIBRARY (tests/api/hang.c, which makes a thread hang) and names of tests."""

    def __init__(self, name):
        self.name, self.tests = name, []
        self.program = self.folder = self.hang = None

    def test(self, function):
        self.tests.append(function)
        return function

    def start(self, *options, folder=None, **settings):
        return Server(self.program, self.folder if folder is None else folder, *options, **settings)

    def main(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--motet", required=True)
        parser.add_argument("--hang")
        parser.add_argument("names", nargs="*")
        arguments = parser.parse_args()
        self.program, self.hang = os.path.abspath(arguments.motet), arguments.hang
        with tempfile.TemporaryDirectory() as folder:
            self.folder = fixture.write(os.path.join(folder, "tiny"))
            run_tests(self.name, self.tests, arguments.names)


def send(server, path, body, extra=""):
    """The socket of a client that has asked and does not read."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    s = server.socket()
    head = "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}content-length: {}\r\n\r\n".format(path, extra, len(data))
    s.sendall(head.encode() + data)
    return s


def preparing(server):
    """Requests that are on their way to the engine."""
    return sum(r["phase"] == "preparing" for r in server.status()["requests"])


def run_tests(name, tests, wanted, *arguments):
    """Runs the tests, or those whose names are wanted, tells how each went and ends the program."""
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    for function in tests:
        if wanted and function.__name__ not in wanted:
            continue
        begin, result, why = time.time(), "ok", ""
        try:
            function(*arguments)
        except Skip as reason:
            result, why = "skipped", ": {}".format(reason)
        except Exception:  # pylint: disable=broad-except
            result, why = "FAILED", "\n" + traceback.format_exc()
        counts[result] += 1
        print("{} {} {:.1f} s{}".format(result, function.__name__, time.time() - begin, why), flush=True)
    print("{}: {ok} passed, {FAILED} failed, {skipped} skipped".format(name, **counts))
    sys.exit(1 if counts["FAILED"] else 0)
