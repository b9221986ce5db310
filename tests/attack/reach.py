"""What the scripts of attacks on the server's reach share: a web server that must not be visited, a network of the
attacker's making (resolve.c), and what every answer is held to."""
import argparse
import http.server
import os
import socket
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "cli")]
import served  # noqa: E402  pylint: disable=wrong-import-position

PUBLIC, PUBLIC_TOO = "8.8.4.4", "8.8.8.8"        # whose connections come to this machine
PRIVATE, PRIVATE_TOO = "10.11.12.13", "192.168.77.7"
PROGRAM = RESOLVER = None


def network(names=None, **more):
    """The environment of a program that has these names, and the addresses above at the loopback address."""
    text = " ".join("{}={}".format(name, ",".join([addresses] if isinstance(addresses, str) else addresses))
                    for name, addresses in (names or {}).items())
    env = {"MOTET_TEST_NAMES": text, "MOTET_TEST_HERE": " ".join((PUBLIC, PUBLIC_TOO, PRIVATE, PRIVATE_TOO)),
           "LD_PRELOAD": RESOLVER, "no_proxy": "*", "NO_PROXY": "*"}
    env.update(more)
    return env


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):  # pylint: disable=invalid-name
        self.do_GET()

    def do_GET(self):  # pylint: disable=invalid-name
        with self.server.lock:
            self.server.visits.append(self.path)
        status, headers, body = self.server.answer(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Web(http.server.ThreadingHTTPServer):
    """A web server at the loopback address that notes who comes. answer(path): (status, headers, body)."""
    daemon_threads = True

    def __init__(self, answer, family=socket.AF_INET):
        self.address_family, self.answer = family, answer
        self.visits, self.lock = [], threading.Lock()
        super().__init__(("127.0.0.1" if family == socket.AF_INET else "::1", 0), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def handle_error(self, *_):
        """A client that has gone is no matter."""

    def __exit__(self, *rest):
        self.shutdown()
        super().__exit__(*rest)


def private_folders(*more):
    """What no answer may have in it: where things are on the server."""
    return [os.fsdecode(p) for p in (*served.private_folders({}), *more)]


def check_answer(what, answer, status, words, asked="", folders=()):
    """The expected status and words, and no folder that the client did not name itself."""
    text = answer.body.decode(errors="replace")
    assert answer.status in (status if isinstance(status, tuple) else (status,)), (what, answer.status, text)
    for word in [words] if isinstance(words, str) else words:
        assert word in text, (what, word, text)
    for folder in private_folders(*folders):
        assert folder in asked or folder not in text, (what, folder, text)


def check_alive(server):
    """It answers as before."""
    answer = server.request("GET", "/v1/models")
    assert answer.status == 200 and server.process.poll() is None, "the server is gone"


def run_cases(cases, run):
    """Runs all cases, (what, ...), and tells of all that failed."""
    failed = []
    for what, *case in cases:
        try:
            run(what, *case)
        except AssertionError as why:
            failed.append("{}: {}".format(what, why))
    assert not failed, "{} of {} cases failed:\n{}".format(len(failed), len(cases), "\n".join(failed))
    print("  {} cases".format(len(cases)), flush=True)


def main(name, tests):
    global PROGRAM, RESOLVER  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--resolver")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    PROGRAM, RESOLVER = os.path.abspath(arguments.motet), arguments.resolver
    if "fetch" not in served.features(PROGRAM):
        print("skipped: motet was built without fetch")
        sys.exit(77)
    served.run_tests(name, tests, arguments.names)
