#!/usr/bin/env python3
"""Hubs that lie about where files are: none leads a download to a service of the server's own machine or network, unless
the hub itself is there.

usage: tests/attack/hub.py --motet PROGRAM --resolver LIBRARY [NAME ...]"""

import contextlib
import socket
import socketserver
import subprocess
import tempfile
import threading
import urllib.parse

import reach
import fixture
import hub as hubs
import served

CLOSED = "which is on this machine or in a private network"
UNSAFE = "which is not safe to follow"
NAMES = {"hub.test": reach.PUBLIC, "cdn.test": reach.PUBLIC_TOO, "lan-hub.test": reach.PRIVATE,
         "lan-cdn.test": reach.PRIVATE_TOO, "inside.test": "127.0.0.1", "six.test": "::1", "mapped.test": "::ffff:127.0.0.1",
         "metadata.test": "169.254.169.254", "again.test": [reach.PUBLIC, "127.0.0.1"]}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Handler(hubs.Handler):
    def do_GET(self):  # pylint: disable=invalid-name
        """Files, lists and heads may lead elsewhere, by the name of the model."""
        hub, path = self.server.hub, urllib.parse.urlsplit(self.path).path
        for name, (part, where) in hub.leads.items():
            if self.server.where == "hub" and "/{}/".format(name) in path and part in path:
                with hub.lock:
                    hub.asked.append(("lied", self.command, path, {}))
                self.answer(302, b"elsewhere", location=where)
                return
        if self.server.where == "hub" and path[1:] in hub.large:  # where the hub's own server is the one of large files, too
            self.send_large(path)
            return
        super().do_GET()


class Hub(hubs.Hub):
    """leads: {model: (part of a path, URL)}: a request for such a path is redirected there."""

    def __init__(self, files):
        self.leads, self.files = {}, files
        super().__init__()

    def start(self, where):
        server = super().start(where)
        server.RequestHandlerClass = Handler
        return server

    def lie(self, name, where, part="/resolve/"):
        self.add(name, self.files)
        self.leads[name] = (part, where)


@contextlib.contextmanager
def stage(name, cdn, names=None):
    """A hub that is reached by a name, with a host for large files that is reached by another; a server that downloads
    from it; and a web server that nobody may visit."""
    with tempfile.TemporaryDirectory() as folder:
        files = hubs.files_of(fixture.write(folder + "/tiny"))
        with Hub(files) as hub, reach.Web(lambda path: (200, {}, files["config.json"])) as inside:
            port, other = hub.servers[0].server_port, hub.servers[1].server_port
            hub.cdn = "http://{}:{}".format(cdn, other)
            env = reach.network(names or NAMES, HF_ENDPOINT="http://{}:{}".format(name, port), HOME="/nowhere",
                                HF_HUB_CACHE=folder + "/cache", HF_TOKEN="hf_secret")
            with served.Server(reach.PROGRAM, folder + "/tiny", "--allow-pull", env=env) as server:
                yield server, hub, inside


def pull(server, name):
    return server.post("/api/pull", {"model": name, "stream": False})


def refuse(server, hub, inside, where, words, part="/resolve/"):
    """A model whose files or list are said to be there is not fetched, and nobody was asked there."""
    name = "Owner/Lie-{}".format(len(hub.leads))
    hub.lie(name, where, part)
    answer = pull(server, name)
    reach.check_answer(where, answer, 400, words)
    assert "hf_secret" not in answer.body.decode(), answer.body
    assert not inside.visits, inside.visits
    reach.check_alive(server)


def closed(port):
    """URLs of a service of this machine."""
    return [("loopback", "http://127.0.0.1:{}/x".format(port), CLOSED),
            ("a name", "http://localhost:{}/x".format(port), CLOSED),
            ("a name for it", "http://inside.test:{}/x".format(port), CLOSED),
            ("decimal", "http://2130706433:{}/x".format(port), CLOSED),
            ("hexadecimal", "http://0x7f000001:{}/x".format(port), CLOSED),
            ("octal", "http://0177.0.0.1:{}/x".format(port), CLOSED),
            ("two parts", "http://127.1:{}/x".format(port), CLOSED),
            ("zeros", "http://0.0.0.0:{}/x".format(port), CLOSED),
            ("IPv6", "http://[::1]:{}/x".format(port), CLOSED),
            ("mapped", "http://[::ffff:127.0.0.1]:{}/x".format(port), CLOSED),
            ("a name for IPv6", "http://six.test:{}/x".format(port), CLOSED),
            ("a name for mapped", "http://mapped.test:{}/x".format(port), CLOSED),
            ("a user", "http://hub.test@127.0.0.1:{}/x".format(port), CLOSED),
            ("metadata", "http://169.254.169.254/latest/meta-data/", CLOSED),
            ("a name for metadata", "http://metadata.test/latest/meta-data/", CLOSED)]


class Proxy(socketserver.ThreadingTCPServer):
    """Leads whatever it is asked to lead to, to this machine. asked: where to."""
    daemon_threads = True

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            host = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            self.server.asked.append(host)
            with socket.create_connection(("127.0.0.1", int(host.rsplit(":", 1)[1]))) as other:
                self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                back = threading.Thread(target=self.copy, args=(other, self.connection), daemon=True)
                back.start()
                self.copy(self.connection, other)
                back.join()

        @staticmethod
        def copy(source, to):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    to.sendall(data)
            with contextlib.suppress(OSError):
                to.shutdown(socket.SHUT_WR)

    def __init__(self):
        self.asked = []
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __exit__(self, *rest):
        self.shutdown()
        super().__exit__(*rest)


def make_certificate(folder):
    certificate, key = folder + "/cert", folder + "/key"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                           "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=hub.test",
                           "-addext", "subjectAltName=DNS:hub.test,DNS:cdn.test"], capture_output=True, check=False)
    if made.returncode:
        raise served.Skip("openssl cannot make a certificate")
    return certificate, key


@test
def a_proxy_is_no_hub():
    """A proxy of this machine or of a private network is used, but the hub behind it may lead to neither."""
    with tempfile.TemporaryDirectory() as folder, Proxy() as proxy, reach.Web(lambda path: (200, {}, b"")) as inside:
        files = hubs.files_of(fixture.write(folder + "/tiny"))
        with Hub(files) as hub:
            port = hub.servers[0].server_port
            certificate, key = make_certificate(folder)
            hub.encrypt(certificate, key)
            hub.cdn = "https://cdn.test:{}".format(port)
            hub.add("Owner/Tiny", files)
            env = reach.network(NAMES, HF_ENDPOINT="https://hub.test:{}".format(port), HOME="/nowhere",
                                HF_HUB_CACHE=folder + "/cache", SSL_CERT_FILE=certificate,
                                https_proxy="http://127.0.0.1:{}".format(proxy.server_address[1]),
                                no_proxy="inside.test,lan-cdn.test,metadata.test,six.test", NO_PROXY="")
            with served.Server(reach.PROGRAM, folder + "/tiny", "--allow-pull", env=env) as server:
                answer = pull(server, "Owner/Tiny")
                assert answer.status == 200, answer.body
                assert {host.split(":")[0] for host in proxy.asked} == {"hub.test", "cdn.test"}, proxy.asked
                reach.run_cases([(name, "https://{}:{}/x".format(name, inside.server_port)) for name in (
                    "inside.test", "lan-cdn.test", "metadata.test", "six.test")],
                                lambda _, where: refuse(server, hub, inside, where, CLOSED))


@test
def the_stage_works():
    """Downloads from the internet, within a private network and on this machine go on."""
    for name, cdn in (("hub.test", "cdn.test"), ("lan-hub.test", "lan-cdn.test"), ("lan-hub.test", "cdn.test"),
                      ("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("127.0.0.1", "lan-cdn.test"),
                      ("hub.test", "hub.test")):
        with stage(name, cdn) as (server, hub, _):
            hub.add("Owner/Tiny", hub.files)
            answer = pull(server, "Owner/Tiny")
            assert answer.status == 200, (name, cdn, answer.body)
            assert hub.bodies("cdn"), (name, cdn)


@test
def a_hub_on_the_internet_leads_to_this_machine():
    with stage("hub.test", "cdn.test") as (server, hub, inside):
        cases = closed(inside.server_port) + [
            ("a private network", "http://{}:{}/x".format(reach.PRIVATE, inside.server_port), CLOSED),
            ("a name in it", "http://lan-cdn.test:{}/x".format(inside.server_port), CLOSED),
            ("a file", "file:///etc/passwd", UNSAFE), ("ftp", "ftp://127.0.0.1/x", UNSAFE),
            ("gopher", "gopher://127.0.0.1:{}/x".format(inside.server_port), UNSAFE)]
        reach.run_cases(cases, lambda _, where, words: refuse(server, hub, inside, where, words))


@test
def its_list_leads_there():
    with stage("hub.test", "cdn.test") as (server, hub, inside):
        reach.run_cases(closed(inside.server_port), lambda _, where, words: refuse(
            server, hub, inside, where, words, "/revision/"))


@test
def a_hub_in_a_private_network_leads_to_this_machine():
    with stage("lan-hub.test", "lan-cdn.test") as (server, hub, inside):
        reach.run_cases(closed(inside.server_port), lambda _, where, words: refuse(
            server, hub, inside, where, words))


@test
def the_host_of_large_files_leads_there():
    """By way of a host that may be asked, after one turn and after two."""
    def move(where):
        def fault(handler, _):
            handler.answer(302, b"", location=where)
        return fault
    with stage("hub.test", "cdn.test") as (server, hub, inside):
        hub.add("Owner/Tiny", hub.files)
        digest = hubs.sha256(hub.files["model.safetensors"])
        for _, where, words in closed(inside.server_port):
            for turns in (1, 2):
                hub.faults[digest] = [move(hub.cdn + "/" + digest)] * (turns - 1) + [move(where)]
                answer = pull(server, "Owner/Tiny")
                reach.check_answer(where, answer, 400, words)
                assert not inside.visits and not hub.faults[digest], (where, inside.visits)
        assert pull(server, "Owner/Tiny").status == 200


@test
def names_that_change():
    """What was on the internet at the first look is on this machine at the second: a host of files, and the hub itself."""
    with stage("hub.test", "again.test") as (server, hub, inside):
        hub.add("Owner/Tiny", hub.files)
        hub.lie("Owner/Other", "http://again.test:{}/x".format(inside.server_port))
        assert pull(server, "Owner/Tiny").status == 200
        for _ in range(3):
            reach.check_answer("again", pull(server, "Owner/Other"), 400, CLOSED)
        assert not inside.visits

    def hang_up(handler):
        handler.close_connection = True
    with stage("again.test", "cdn.test") as (server, hub, inside):
        commit = hub.add("Owner/Tiny", hub.files)
        for name in hub.files:  # another connection, for which the name is looked up again, would be to this machine
            hub.faults["/Owner/Tiny/resolve/{}/{}".format(commit, name)] = [hang_up]
        reach.check_answer("again", pull(server, "Owner/Tiny"), 400, CLOSED)
        reach.check_alive(server)


if __name__ == "__main__":
    reach.main("attack_hub", TESTS)
