#!/usr/bin/env python3
"""motet chat, as a person at a terminal and a script at a pipe have it."""
import argparse
import base64
import http.server
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import fixture  # noqa: E402

TESTS = []
PROGRAM = None
TINY = None


def test(function):
    TESTS.append(function)
    return function


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
            self.chunk({"reasoning_content": "hm"})
            for word in ["you", "said", text]:
                self.chunk({"content": word + " "})
            for _ in range(1000 if text == "for ever" else 0):
                self.chunk({"content": "on "})
                time.sleep(0.01)
            self.chunk({}, "length" if text == "cut" else "stop")
            self.wfile.write(b": a comment\n\ndata: [DONE]\n\n")
        except OSError:
            self.server.gone += 1
        return None

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


def pipe(arguments, text):
    done = subprocess.run([PROGRAM, "chat", *arguments], input=text.encode(), capture_output=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


class Terminal:
    """A person's: what is typed goes in, what is shown can be waited for."""

    def __init__(self, *arguments):
        self.home = tempfile.mkdtemp()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME=HOME or self.home)
            os.execv(PROGRAM, [PROGRAM, "chat", *arguments])
        self.shown = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, text, seconds=20):
        end = time.time() + seconds
        while text not in self.shown:
            ready = select.select([self.fd], [], [], max(0, end - time.time()))[0]
            try:
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:
                data = b""
            assert data, "{!r} did not come; shown: {!r}".format(text, self.shown)
            self.shown += data.decode(errors="replace")
        at = self.shown.index(text) + len(text)
        before, self.shown = self.shown[:at], self.shown[at:]
        return before

    def echoes(self):
        flags = termios.tcgetattr(self.fd)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON) and bool(flags & termios.ISIG)

    def end(self):
        end = time.time() + 20
        while time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            try:
                if select.select([self.fd], [], [], 0.05)[0]:
                    os.read(self.fd, 65536)
            except OSError:
                pass
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it does not end")


HOME = None


@test
def a_script_talks_through_a_pipe():
    server = fake()
    code, out, err = pipe([server.url, "--api-key", "secret"], "/system be brief\nhello\ncut\n/reset\nagain\n")
    assert (code, err) == (0, ""), (code, err)
    assert "you said hello" in out and "you said again" in out and "(cut off" in out, out
    assert "\033" not in out and out.startswith("hm\n\nyou said"), out
    first, second, third = [body for body, _ in server.asked]
    assert first["stream"] and first["model"] == "parrot"
    assert [m["content"] for m in first["messages"]] == ["be brief", "hello"]
    assert [m["content"] for m in second["messages"]] == ["be brief", "hello", "you said hello ", "cut"]
    assert [m["content"] for m in third["messages"]] == ["be brief", "again"]
    assert all(key == "Bearer secret" for _, key in server.asked)


@test
def a_refused_question_is_taken_back():
    server = fake()
    code, out, err = pipe([server.url], "refuse\nhello\n")
    assert code == 0 and "the server says: no such thing" in err and "you said hello" in out, (code, out, err)
    assert len(server.asked[1][0]["messages"]) == 1
    assert pipe([server.url], "refuse\n")[0] == 1


@test
def a_picture_goes_with_the_next_words():
    server = fake()
    with tempfile.NamedTemporaryFile(suffix=".png") as picture:
        picture.write(b"\x89PNG picture")
        picture.flush()
        code, out, _ = pipe([server.url], "/image {}\n/image /none\nwhat is it?\nand now?\n".format(picture.name))
    assert code == 0 and "1 picture goes" in out and '"/none" does not exist' in out, out
    parts = server.asked[0][0]["messages"][0]["content"]
    assert [p["type"] for p in parts] == ["image_url", "text"], parts
    assert base64.b64decode(parts[0]["image_url"]["url"].split(",")[1]) == b"\x89PNG picture"
    assert server.asked[1][0]["messages"][2]["content"] == "and now?"


@test
def a_folder_is_served_for_the_while():
    code, out, err = pipe([TINY, "--default-max-tokens", "8"], "hello\n")
    assert code == 0 and out.strip() and err == "", (code, out, err)
    assert not [name for name in os.listdir("/tmp") if name.startswith("motet-chat-")]
    code, _, err = pipe(["/nowhere"], "hello\n")
    assert code == 1 and '"/nowhere" does not exist' in err, err
    code, _, err = pipe(["http://127.0.0.1:9"], "")
    assert code == 1 and "no server answers" in err, err


@test
def a_terminal_edits_remembers_and_stays_clean():
    global HOME
    server = fake()
    with tempfile.TemporaryDirectory() as HOME:
        t = Terminal(server.url)
        t.wait("Ctrl-D leaves")
        t.wait("> ")
        t.type("helo\033[D\033[Dl\r")  # back twice, and the missing letter
        t.wait("you said hello")
        t.wait("> ")
        t.type("lost words\x03")
        t.wait("^C")
        t.wait("> ")
        t.type("\033[A\r")  # the line before
        t.wait("you said hello")
        t.wait("> ")
        t.type("for ever\r")
        t.wait("on on on")
        assert t.echoes()
        t.type("\x03")
        t.wait("(interrupted)")
        t.wait("> ")
        t.type("\x04")
        assert t.end() == 0
        assert server.asked[0][0]["messages"][-1]["content"] == "hello"
        assert len(server.asked) == 3
        t = Terminal(server.url)
        t.wait("> ")
        t.type("\033[A\033[A\r")  # of the time before
        t.wait("you said hello")
        t.wait("> ")
        t.type("/quit\r")
        assert t.end() == 0
    HOME = None


@test
def killed_at_any_time_it_leaves_no_server():
    for when in 0.02, 0.3:
        child = subprocess.Popen([PROGRAM, "chat", TINY], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        time.sleep(when)
        child.kill()
        child.wait()
        end = time.time() + 10
        while time.time() < end and subprocess.run(["pgrep", "-f", "chat " + TINY], capture_output=True,
                                                   check=False).stdout:
            time.sleep(0.05)
        assert not subprocess.run(["pgrep", "-f", "chat " + TINY], capture_output=True, check=False).stdout
        for name in os.listdir("/tmp"):
            if name.startswith("motet-chat-{}.".format(child.pid)):
                os.unlink(os.path.join("/tmp", name))


def main():
    global PROGRAM, TINY
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    PROGRAM = os.path.abspath(arguments.motet)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        TINY = fixture.write(os.path.join(folder, "tiny"))
        for function in TESTS:
            if arguments.names and function.__name__ not in arguments.names:
                continue
            try:
                function()
                passed += 1
                print("ok {}".format(function.__name__), flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print("FAILED {}\n{}".format(function.__name__, traceback.format_exc()), flush=True)
    print("cli_chat: {} passed, {} failed, 0 skipped".format(passed, failed))
    sys.exit(1 if failed else 0)


main()
