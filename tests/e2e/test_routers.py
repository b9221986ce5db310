#!/usr/bin/env python3
"""Three replicas behind HAProxy and behind nginx, with the configurations of deploy/: conversations stay where they began;
one replica is killed in the middle, one is told to end; streams of the killed one end clearly, all else goes on, and no
answer is wrong. Without HAProxy or nginx (Debian: haproxy, nginx-light) that part is skipped.

usage: tests/e2e/test_routers.py --motet PROGRAM [--conversations N] [--restarts N] [NAME ...]"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import fixture  # noqa: E402
import served   # noqa: E402

DEPLOY = os.path.join(HERE, "..", "..", "deploy")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
REPLICAS, CLIENTS, TURNS = 3, 8, 3
ENDS = (http.client.HTTPException, ConnectionError, socket.timeout)
ARGUMENTS = FOLDER = None
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def filled(path, ports, port):
    """A configuration with the addresses of this test in place of those that people put in."""
    with open(os.path.join(DEPLOY, path), encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"(?m)^ *server (?:replica{0} )?10\.0\.0\.{0}:.*\n".format(3), "", text) if len(ports) == 2 else text
    for i, each in enumerate(ports):
        text, count = re.subn(r"10\.0\.0\.{}:8000".format(i + 1), "127.0.0.1:{}".format(each), text)
        assert count == 1
    return text.replace("bind :8000", "bind 127.0.0.1:{}".format(port)).replace(
        "listen 8000", "listen 127.0.0.1:{}".format(port))


def begun(command, port, log):
    """The process once it listens; None where it ended, since another had the port first."""
    process = subprocess.Popen(command, stdout=log, stderr=log)

    def listens():
        if process.poll() is not None:
            return True
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return process.poll() is None
    assert served.eventually(listens)
    return process if process.poll() is None else None


@contextlib.contextmanager
def running(router, ports, folder):
    """The port of a router. router(ports, port, folder): its command."""
    with tempfile.TemporaryFile() as log:
        for _ in range(10):
            port = served.free_port()
            command = router(ports, port, folder)
            process = begun(command, port, log)
            if process:
                break
        else:
            log.seek(0)
            raise AssertionError("{} ended: {}".format(command[0], log.read().decode()))
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


def haproxy(ports, port, folder):
    program = shutil.which("haproxy", path=PATH)
    if not program:
        raise served.Skip("there is no haproxy")
    path = os.path.join(folder, "haproxy.cfg")
    with open(path, "w", encoding="utf-8") as f:
        f.write(filled("haproxy/haproxy.cfg", ports, port))
    return [program, "-db", "-q", "-f", path]


def nginx(ports, port, folder):
    program = shutil.which("nginx", path=PATH)
    if not program:
        raise served.Skip("there is no nginx")
    path = os.path.join(folder, "nginx.conf")
    places = "".join("    {}_temp_path {};\n".format(kind, os.path.join(folder, kind))
                     for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(path, "w", encoding="utf-8") as f:
        f.write("daemon off;\npid {0}/pid;\nerror_log {0}/errors;\nevents {{}}\nhttp {{\n    access_log off;\n{1}{2}}}\n"
                .format(folder, places, filled("nginx/motet.conf", ports, port)))
    return [program, "-c", path, "-e", os.path.join(folder, "errors")]


class Answer:
    """What came of a stream, and from whom."""

    def __init__(self, response):
        self.by, self.whole, self.text = response.getheader("x-served-by"), False, ""
        self.prefix = response.getheader("x-motet-prefix")
        assert response.status == 200, (response.status, response.read())

    def read(self, response):
        try:
            events = list(served.events_of(response.read().decode()))
        except ENDS:
            return self
        self.whole = events[-1] == "[DONE]"
        self.text = served.stream_text(events)
        return self


def ask(port, body, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=served.PATIENCE)
    connection.request("POST", "/v1/chat/completions", json.dumps(body, ensure_ascii=False).encode(), headers)
    return connection, connection.getresponse()


def stream(port, body, headers):
    connection, response = ask(port, body, headers)
    with contextlib.closing(connection):
        return Answer(response).read(response)


class Crowd:
    """Conversations of several turns, each of which sends all that was said before."""

    def __init__(self, port, named):
        self.port, self.named, self.lock = port, named, threading.Lock()
        self.said, self.broken, self.homes, self.begun = [], [], {}, 0
        self.some = threading.Event()

    def talk(self, number):
        first = "You are fox number {}.\n\"Ü\" \\ and more".format(number)
        name = hashlib.sha256(first.encode()).hexdigest()
        messages = [{"role": "system", "content": first}]
        for turn in range(TURNS):
            messages.append({"role": "user", "content": "and then, {}?".format(turn)})
            body = {"messages": messages, "stream": True, "max_tokens": 8, "seed": number, "ignore_eos": True}
            headers = {"x-motet-prefix": name} if self.named or number % 2 else {}
            while True:
                answer = stream(self.port, body, headers)
                with self.lock:
                    self.begun += 1
                    if self.begun > ARGUMENTS.conversations:
                        self.some.set()
                    if answer.whole:
                        break
                    self.broken.append(answer)
                assert len(self.broken) <= 2 * CLIENTS, "more streams have ended than there were"
            assert answer.prefix == name
            with self.lock:
                self.homes.setdefault(number, []).append(answer.by)
                self.said.append((dict(body, messages=list(messages), stream=False), answer.text))
            messages.append({"role": "assistant", "content": answer.text})


def stay(homes):
    """Conversations that one replica has answered."""
    return sum(len(set(each)) == 1 for each in homes.values())


def check(crowd, server):
    """Each answer is what a replica says by itself."""
    for body, text in crowd.said:
        assert server.post("/v1/chat/completions", body).text() == text, body


def survive(router, named):
    count = ARGUMENTS.conversations
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [served.Server(ARGUMENTS.motet, FOLDER, "--drain-seconds", "600") for _ in range(REPLICAS)]
        for server in servers:
            stack.callback(server.stop, signal.SIGKILL)
        port = stack.enter_context(running(router, [s.port for s in servers], folder))
        by = {}
        for i in range(40):  # who is who
            answer = stream(port, {"messages": [{"role": "user", "content": "hello"}], "stream": True, "max_tokens": 1},
                            {"x-motet-prefix": hashlib.sha256(str(i).encode()).hexdigest()})
            by.setdefault(answer.by, i)
        assert len(by) == REPLICAS, by
        for i in range(0 if named else 6):  # the router computes what a client would
            text = "\"{}\" Ü\n\t\\ {}".format("x" * 40 * i, i)
            body = {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": 1}
            name = hashlib.sha256(text.encode()).hexdigest()
            plain, told = stream(port, body, {}), stream(port, body, {"x-motet-prefix": name})
            assert plain.by == told.by and plain.prefix == told.prefix == name, i
        # a stream that nobody reads, so that it is under way whenever its replica is killed
        long = {"messages": [{"role": "user", "content": "hello"}], "stream": True, "max_tokens": 1800, "n": 8,
                "seed": 1, "ignore_eos": True, "logprobs": True, "top_logprobs": 20}
        victim, leaver = sorted(by)[:2]
        unread, response = ask(port, long, {"x-motet-prefix": hashlib.sha256(str(by[victim]).encode()).hexdigest()})
        assert response.getheader("x-served-by") == victim
        leaving, last = ask(port, dict(long, top_logprobs=5, n=2),
                            {"x-motet-prefix": hashlib.sha256(str(by[leaver]).encode()).hexdigest()})
        index = {name: i for i, name in enumerate(("replica1", "replica2", "replica3"))}
        index.update({"127.0.0.1:{}".format(s.port): i for i, s in enumerate(servers)})
        crowd = Crowd(port, named)
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            talks = [pool.submit(crowd.talk, i) for i in range(count)]
            assert crowd.some.wait(served.PATIENCE)  # a third of all turns
            servers[index[victim]].process.kill()
            cut = Answer(response).read(response)
            unread.close()
            assert not cut.whole, "a stream of a replica that was killed looks whole"
            for talk in talks:
                talk.result()
        assert {a.by for a in crowd.broken} <= {victim}, [a.by for a in crowd.broken]
        assert sum(len(h) for h in crowd.homes.values()) == count * TURNS
        assert stay(crowd.homes) >= count / 2, (stay(crowd.homes), count)
        # one that is told to end takes nothing new, and ends what it has begun
        servers[index[leaver]].process.send_signal(signal.SIGTERM)
        assert served.eventually(lambda: any("server.draining" in line for line in servers[index[leaver]].log))
        late = Crowd(port, named)
        for i in range(6):
            late.talk(i)
        assert not late.broken
        end = Answer(last).read(last)
        leaving.close()
        assert end.whole and end.by == leaver
        third = next(s for i, s in enumerate(servers) if i not in (index[victim], index[leaver]))
        check(crowd, third)
        check(late, third)
        moved = [h for h in crowd.homes.values() if len(set(h)) > 1]
        print("{} conversations: {} streams ended with their replica, {} conversations moved, {} answers right".format(
            count, len(crowd.broken), len(moved), len(crowd.said) + len(late.said)))


@test
def behind_haproxy():
    survive(haproxy, named=False)


@test
def behind_nginx():
    survive(nginx, named=True)


class Fleet:
    """Replicas that are restarted one after the other, each at the port that it had."""

    def __init__(self, count):
        self.servers = [self.start() for _ in range(count)]

    @staticmethod
    def start(port="0"):
        while True:  # another program may have the port for a moment
            try:
                return served.Server(ARGUMENTS.motet, FOLDER, "--drain-seconds", "600", "--drain-listen-seconds", "2",
                                     port=str(port))
            except AssertionError as wrong:
                if "in use" not in str(wrong):
                    raise

    def restart(self, i):
        assert self.servers[i].stop() == 0
        self.servers[i] = self.start(self.servers[i].port)


class Restless:
    """Clients that ask short questions and long ones until they are told to stop, and count what was lost."""

    def __init__(self, port):
        self.port, self.over, self.lost, self.answers = port, threading.Event(), [], 0
        self.lock = threading.Lock()
        self.pool = concurrent.futures.ThreadPoolExecutor(CLIENTS)
        self.runs = [self.pool.submit(self.run, i) for i in range(CLIENTS)]

    def run(self, client):
        number = client
        while not self.over.is_set():
            number += CLIENTS
            tokens = 1500 if client % 4 == 0 else 8
            try:
                answer = stream(self.port, {"messages": [{"role": "user", "content": str(number)}], "stream": True,
                                            "max_tokens": tokens, "ignore_eos": True},
                                {"x-motet-prefix": hashlib.sha256(str(number).encode()).hexdigest()})
                wrong = None if answer.whole else "a stream of {} tokens was cut".format(tokens)
            except (AssertionError, *ENDS) as error:
                wrong = repr(error)
            with self.lock:
                self.answers += 1
                self.lost += [wrong] if wrong else []

    def end(self):
        self.over.set()
        self.pool.shutdown()
        for run in self.runs:
            run.result()


def goes_on(port, name):
    """Whether the balancer sends requests to a replica (again)."""
    def asked():
        for i in range(40):
            body = {"messages": [{"role": "user", "content": "hello"}], "stream": True, "max_tokens": 1}
            if stream(port, body, {"x-motet-prefix": hashlib.sha256(str(i).encode()).hexdigest()}).by == name:
                return True
        return False
    return served.eventually(asked)


def roll(router, count):
    """Restarts replicas by turns beside clients that go on: nothing is lost."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        fleet = Fleet(count)
        stack.callback(lambda: [server.stop(signal.SIGKILL) for server in fleet.servers])
        ports = [s.port for s in fleet.servers]
        port = stack.enter_context(running(router, ports, folder))
        names = ["replica{}".format(i + 1) if router is haproxy else "127.0.0.1:{}".format(p) for i, p in enumerate(ports)]
        for name in names:
            assert goes_on(port, name), name
        clients = Restless(port)
        try:
            for i in range(ARGUMENTS.restarts):
                fleet.restart(i % count)
                # HAProxy asks each second; nginx asks nobody, and takes a replica that is ready at once
                assert router is nginx or goes_on(port, names[i % count]), names[i % count]
        finally:
            clients.end()
        assert not clients.lost, "{} of {} were lost: {}".format(len(clients.lost), clients.answers, clients.lost[:3])
        print("{} with {} replicas: {} restarts, {} answers, none lost".format(
            router.__name__, count, ARGUMENTS.restarts, clients.answers))


@test
def rolling_restarts_lose_nothing_behind_haproxy():
    for count in (2, 3):
        roll(haproxy, count)


@test
def rolling_restarts_lose_nothing_behind_nginx():
    for count in (2, 3):
        roll(nginx, count)


class Refusing(http.server.BaseHTTPRequestHandler):
    """A replica that has just been told to end, or has just started: /ready was well a moment ago."""
    asked = 0

    def do_GET(self):
        self.say(200, b"{}")

    def do_POST(self):
        Refusing.asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.say(503, b'{"error":{"message":"the model is being loaded"}}')

    def say(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@test
def a_refusal_goes_to_another_replica():
    """One replica says 503 to whatever it is asked: everybody is answered by the other two."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(served.Server(ARGUMENTS.motet, FOLDER)) for _ in range(2)]
        stub = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing))
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        stack.callback(stub.shutdown)
        for router in (haproxy, nginx):
            Refusing.asked = 0
            with tempfile.TemporaryDirectory() as folder, running(
                    router, [servers[0].port, stub.server_port, servers[1].port], folder) as port:
                for i in range(12):
                    body = {"messages": [{"role": "user", "content": str(i)}], "stream": True, "max_tokens": 1}
                    assert stream(port, body, {"x-motet-prefix": hashlib.sha256(str(i).encode()).hexdigest()}).whole
            assert Refusing.asked > 0


class Echoing(http.server.BaseHTTPRequestHandler):
    """A replica that says what it was told of its client."""

    def do_GET(self):
        body = json.dumps([self.headers.get_all(name) for name in ("x-forwarded-for", "forwarded")]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@test
def replicas_are_told_who_asks():
    """Whatever a client says of itself, the last address is its own, and nothing says otherwise."""
    with contextlib.ExitStack() as stack:
        replica = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echoing))
        threading.Thread(target=replica.serve_forever, daemon=True).start()
        stack.callback(replica.shutdown)
        for router in (haproxy, nginx):
            with tempfile.TemporaryDirectory() as folder, running(router, [replica.server_port] * 3, folder) as port:
                client = http.client.HTTPConnection("127.0.0.1", port, served.PATIENCE, ("127.0.0.2", 0))
                with contextlib.closing(client):
                    client.request("GET", "/", headers={"x-forwarded-for": "192.0.2.1", "forwarded": "for=192.0.2.2"})
                    told, other = json.loads(client.getresponse().read())
                assert ",".join(told or []).split(",")[-1].strip() == "127.0.0.2" and other is None, (told, other)


@test
def the_simulator_finds_what_replicas_find():
    """tools/simulate with three servers: whatever they take, they find what it says they would."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [stack.enter_context(served.Server(ARGUMENTS.motet, FOLDER)) for _ in range(REPLICAS)]
        costs = os.path.join(folder, "costs.json")
        with open(costs, "w", encoding="utf-8") as f:
            json.dump({"steps": [{"prompt": 512, "batch": 1, "prompt_rate": 2000, "step_ms": 6}]}, f)
        said = subprocess.run(
            [sys.executable, os.path.join(HERE, "..", "..", "tools", "simulate"), "--costs", costs, "--real",
             ",".join("http://127.0.0.1:{}".format(s.port) for s in servers), "--clients", "1", "--conversations", "4",
             "--turns", "3", "--agents", "2", "--system", "100", "--said", "40", "--answer", "4", "--pause", "0"],
            capture_output=True, text=True, check=False, timeout=served.PATIENCE)
        hits = [float(h) for h in re.findall(r"([\d.]+) %  ?\|", said.stdout)]
        assert len(hits) == 6, (said.stdout, said.stderr)
        for real, guess in zip(hits[::2], hits[1::2]):
            assert abs(real - guess) < 0.5, hits  # a turn is 2 %; by chance two words begin with the same token
        assert hits[0] < hits[2], hits  # conversations that stay find more


def main():
    global ARGUMENTS, FOLDER  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--conversations", type=int, default=16)
    parser.add_argument("--restarts", type=int, default=4, help="of each balancer with two and with three replicas")
    parser.add_argument("names", nargs="*")
    ARGUMENTS = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = fixture.write(os.path.join(folder, "tiny"))
        served.run_tests("e2e_routers", TESTS, ARGUMENTS.names)


if __name__ == "__main__":
    main()
