#!/usr/bin/env python3
"""Attacks on a server that listens at a socket file (--host unix:PATH): what else stands at its path, who may connect,
and what comes over it.

usage: tests/attack/unix.py --motet PROGRAM [NAME ...]"""

import array
import os
import shutil
import signal
import socket
import stat
import tempfile

import alive
import served
from alive import Attack, LocalServer

SUITE = served.Suite("attack_unix")
test = SUITE.test
NOBODY = 65534


def begin(path, *options, **settings):
    return LocalServer(SUITE.program, SUITE.folder, path, *options, **settings)


def refused(path, **settings):
    return alive.refused(SUITE.program, SUITE.folder, "--host", "unix:" + path, **settings)


def folder():
    return tempfile.TemporaryDirectory(prefix="motet-")


def connects_as(user, path):
    """What comes of it when another user's process connects: the name of an exception, or "connected"."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            alive.connected(path)
            os.write(write, b"connected")
        except OSError as error:
            os.write(write, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        found = f.read()
    os.waitpid(child, 0)
    return found


@test
def only_the_owner_may_connect():
    """With the usual umask and with that of the systemd unit."""
    for mask in (0o022, 0o077):
        with folder() as place, begin(os.path.join(place, "s"), wrapper=["sh", "-c", 'umask $0; exec "$@"', oct(mask)[2:]]) as server:
            mode = os.stat(server.path)
            assert stat.S_ISSOCK(mode.st_mode) and mode.st_mode & 0o022 == 0 and mode.st_uid == os.geteuid(), oct(mode.st_mode)
            os.chmod(place, 0o755)
            if os.geteuid() != 0:
                continue
            with Attack(server):
                assert connects_as(NOBODY, server.path) == "PermissionError"


@test
def the_file_of_a_killed_server_is_taken_over():
    with folder() as place:
        path = os.path.join(place, "s")
        first = begin(path)
        assert first.stop(signal.SIGKILL) == -signal.SIGKILL and os.path.exists(path)
        with begin(path) as server, Attack(server):
            pass
        assert not os.path.exists(path)


@test
def what_is_no_socket_is_not_removed():
    with folder() as place:
        path = os.path.join(place, "s")
        with open(path, "w", encoding="utf-8") as f:
            f.write("mine")
        assert "in use" in refused(path)
        with open(path, encoding="utf-8") as f:
            assert f.read() == "mine"
        os.remove(path)
        os.mkdir(path)
        assert "in use" in refused(path)
        os.rmdir(path)
        os.mkfifo(path)
        assert "in use" in refused(path)
        assert stat.S_ISFIFO(os.stat(path).st_mode)


@test
def links_are_not_followed():
    with folder() as place:
        path, target = os.path.join(place, "s"), os.path.join(place, "target")
        os.symlink(target, path)
        assert "in use" in refused(path)  # a link that leads nowhere
        assert os.path.islink(path) and not os.path.exists(target)
        with open(target, "w", encoding="utf-8") as f:
            f.write("mine")
        assert "in use" in refused(path)
        os.remove(target)
        with begin(target) as server, Attack(server):
            assert "in use" in refused(path)  # a link to the socket of another
        assert os.path.islink(path)


@test
def two_servers_do_not_share_a_path():
    with folder() as place, begin(os.path.join(place, "s")) as server, Attack(server):
        assert "in use by another program" in refused(server.path)
        assert os.path.exists(server.path)


@test
def paths_that_cannot_be_are_told():
    with folder() as place:
        assert "must have 1 to" in refused(os.path.join(place, "x" * 200))
        assert "must have 1 to" in refused("")
        assert "No such file or directory" in refused(os.path.join(place, "no", "s"))
        longest = os.path.join(place, "x" * (107 - len(place) - 1))
        with begin(longest) as server, Attack(server):
            pass


@test
def an_abstract_name_is_a_file_like_others():
    """Sockets without a file have no owner: whoever knows the name may connect. There are none."""
    with folder() as place, begin("@motet-attack", cwd=place, ready=False) as server:
        assert stat.S_ISSOCK(os.stat(os.path.join(place, "@motet-attack")).st_mode)
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect("\0motet-attack")
            raise AssertionError("somebody listens at an abstract name")
        except ConnectionRefusedError:
            pass
        finally:
            s.close()
        server.path = os.path.join(place, "@motet-attack")
        server.wait_ready()
        alive.answer(server)


@test
def a_deleted_socket_leaves_those_who_are_connected():
    with folder() as place, begin(os.path.join(place, "s"), ready=True) as server:
        before = alive.answer(server)
        held = alive.Local(server.path)
        held.request("GET", "/v1/models")
        assert held.getresponse().read()
        os.remove(server.path)
        held.request("GET", "/v1/models")
        assert held.getresponse().status == 200
        held.close()
        server.process.send_signal(signal.SIGHUP)
        assert served.eventually(lambda: any("server.reload" in line for line in server.log))
        # another takes the place, and keeps it when the first one ends
        with begin(server.path) as second:
            assert alive.answer(second) == before
            assert server.stop() == 0
            with Attack(second):
                assert os.path.exists(second.path)
        assert not os.path.exists(second.path)


@test
def a_socket_that_is_moved_away_is_not_looked_for():
    with folder() as place, begin(os.path.join(place, "s")) as server:
        before = alive.answer(server)
        first, server.path = server.path, os.path.join(place, "moved")
        os.rename(first, server.path)
        assert alive.answer(server) == before
        with open(first, "w", encoding="utf-8") as f:
            f.write("mine")
        assert server.stop() == 0
        with open(first, encoding="utf-8") as f:
            assert f.read() == "mine"


@test
def descriptors_that_are_sent_along_are_not_kept():
    with folder() as place, begin(os.path.join(place, "s")) as server, Attack(server):
        with open(os.devnull, "rb") as file, server.socket() as s:
            head = b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx: "
            ends = array.array("i", [file.fileno()] * 50)
            s.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])
            for _ in range(100):
                s.sendmsg([b"y"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])
            s.sendall(b"\r\n\r\n")
            assert s.recv(65536).startswith(b"HTTP/1.1 200")


@test
def another_kind_of_socket_does_not_connect():
    with folder() as place, begin(os.path.join(place, "s")) as server, Attack(server):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            with socket.socket(socket.AF_UNIX, kind) as s:
                try:
                    s.connect(server.path)
                    raise AssertionError("it connects")
                except OSError:
                    pass


@test
def hostile_bytes_are_refused_as_over_tcp():
    with folder() as place, begin(os.path.join(place, "s")) as server, Attack(server):
        for bytes_, status in ((b"\0" * 4096, b"400"), (b"GET / HTTP/1.1\nhost: x\n\n", b"400"),
                               (b"GET / HTTP/1.1\r\nhost: [::1\r\n\r\n", b"400"), (b"\x16\x03\x01\x02\x00", b"400"),
                               (b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999\r\n\r\n", b"413"),
                               (b"GET /" + b"x" * 100000, b"414")):
            with server.socket() as s:
                s.sendall(bytes_)
                assert s.recv(65536).split(b" ")[1:2] == [status], bytes_[:50]


@test
def clients_that_say_nothing_or_leave_hold_up_nobody():
    with folder() as place, begin(os.path.join(place, "s")) as server, Attack(server):
        held = [server.socket() for _ in range(200)]
        for i, s in enumerate(held):
            s.sendall((b"", b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{", b"GET /v1")[i % 3])
        alive.answer(server)
        for s in held:
            s.close()
        assert served.eventually(lambda: server.metrics()["motet_http_connections"] == 1)


@test
def a_name_or_a_page_does_not_matter_and_a_key_does():
    with folder() as place, begin(os.path.join(place, "s")) as server, Attack(server):
        assert server.request("GET", "/v1/models", headers={"host": "whatever"}).status == 200
        got = server.request("GET", "/v1/models", headers={"host": "whatever", "origin": "https://evil.example"})
        assert got.status == 403, got.body
    with folder() as place, begin(os.path.join(place, "s"), "--api-key", "k") as server:
        assert server.request("GET", "/v1/models").status == 401
        assert server.request("GET", "/v1/models", headers={"authorization": "Bearer k"}).status == 200


@test
def a_folder_that_goes_away_ends_nobody():
    with folder() as place:
        inner = os.path.join(place, "inner")
        os.mkdir(inner)
        server = begin(os.path.join(inner, "s"))
        held = alive.Local(server.path)
        held.request("GET", "/live")
        assert held.getresponse().read()
        shutil.rmtree(inner)
        held.request("GET", "/v1/models")
        assert held.getresponse().status == 200
        held.close()
        assert server.stop() == 0


SUITE.main()
