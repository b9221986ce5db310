#!/usr/bin/env python3
"""Disks that are full or read-only, and folders without permission: for the cache, the store, the socket, temporary
files, the home folder and the log, at the start or later. What a server can do without it does without, and says so;
else it does not start, and says why.

Disks are mounted in a namespace of the script's own, where the system allows that.

usage: tests/attack/disk.py --motet PROGRAM [NAME ...]"""

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile

import alive
import served
from alive import Attack

SUITE = served.Suite("attack_disk")
test, start = SUITE.test, SUITE.start
INSIDE = "MOTET_TEST_MOUNTS"  # set where disks can be mounted
LONG = {"prompt": [0, *range(10, 200)], "max_tokens": 2, "temperature": 0}
STORED = {"input": "hello", "max_output_tokens": 2}


class Disk:
    """A folder with a small file system of its own."""

    def __init__(self, options="size=2m"):
        if INSIDE not in os.environ:
            raise served.Skip("no disk can be mounted here")
        self.path = tempfile.mkdtemp(prefix="motet-")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.path], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            os.rmdir(self.path)
            raise served.Skip("no disk can be mounted here: " + done.stderr.strip())

    def file(self, name):
        return os.path.join(self.path, name)

    def fill(self):
        with contextlib.suppress(OSError), open(self.file("fill"), "wb", buffering=0) as f:
            while True:
                f.write(bytes(4096))

    def lock(self):
        subprocess.run(["mount", "-o", "remount,bind,ro", self.path], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *about):
        subprocess.run(["umount", "-l", self.path], check=True)
        os.rmdir(self.path)


def bound():
    """Words before a command that has no rights to others' files: root has them, unless they are taken away."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise served.Skip("this is root, and there is no setpriv")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


@contextlib.contextmanager
def closed_folder():
    """A folder that may not be written to."""
    with tempfile.TemporaryDirectory(prefix="motet-") as path:
        os.chmod(path, 0o500)
        yield path
        os.chmod(path, 0o700)


def refused(*options, wrapper=(), **settings):
    done = subprocess.run([*wrapper, SUITE.program, "serve", SUITE.folder, "--port", "0", *options], stderr=subprocess.PIPE,
                          text=True, timeout=served.PATIENCE, check=False, **settings)
    assert done.returncode == 1 and "server.listening" not in done.stderr, done
    return done.stderr.strip().splitlines()[-1]


def warned(server, name, text):
    assert served.eventually(lambda: any(name in line and text in line for line in server.log)), server.log


@test
def a_cache_on_a_disk_that_is_read_only():
    with Disk() as disk:
        disk.lock()
        with start("--cache-dir", disk.file("cache")) as server, Attack(server, opens=True):
            warned(server, "cache.disk", "Read-only file system; what is computed is kept in memory only")
            assert server.post("/v1/completions", LONG).status == 200


@test
def a_cache_on_a_disk_that_is_full():
    with Disk() as disk:
        disk.fill()
        with start("--cache-dir", disk.file("cache")) as server, Attack(server, opens=True):
            assert server.post("/v1/completions", LONG).status == 200
            warned(server, "cache.disk", "nothing more is kept on disk")
            assert server.metrics()["motet_disk_failed"] == 1


@test
def a_cache_whose_disk_becomes_full():
    with Disk() as disk, start("--cache-dir", disk.file("cache")) as server, Attack(server, opens=True):
        before = server.post("/v1/completions", LONG).json()["choices"]
        disk.fill()
        assert server.post("/v1/completions", dict(LONG, prompt=[0, *range(60, 300)])).status == 200
        warned(server, "cache.disk", "No space left on device")
        assert server.post("/v1/completions", LONG).json()["choices"] == before


@test
def a_cache_on_a_disk_that_has_no_files_left():
    with Disk("size=8m,nr_inodes=3") as disk, start("--cache-dir", disk.file("cache")) as server, Attack(server, opens=True):
        assert server.post("/v1/completions", LONG).status == 200
        warned(server, "cache.disk", "No space left on device")


@test
def a_cache_in_a_folder_without_permission():
    with closed_folder() as folder:
        for path in (folder, os.path.join(folder, "cache")):
            with start("--cache-dir", path, wrapper=bound()) as server, Attack(server, opens=True):
                warned(server, "cache.disk", "Permission denied")
                assert server.post("/v1/completions", LONG).status == 200


@test
def a_cache_that_is_no_folder_or_goes_away():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cache")
        with open(path, "w", encoding="utf-8") as f:
            f.write("mine")
        with start("--cache-dir", path) as server, Attack(server, opens=True):
            warned(server, "cache.disk", "Not a directory")
        with open(path, encoding="utf-8") as f:
            assert f.read() == "mine"
        os.remove(path)
        with start("--cache-dir", path) as server, Attack(server, opens=True):
            before = server.post("/v1/completions", LONG).json()["choices"]
            shutil.rmtree(path)
            assert server.post("/v1/completions", LONG).json()["choices"] == before
        with start("--cache-dir", path) as server, Attack(server, opens=True):
            assert server.post("/v1/completions", LONG).json()["choices"] == before


@test
def files_of_the_cache_are_the_owners_alone():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cache")
        with start("--cache-dir", path, wrapper=["sh", "-c", 'umask 0; exec "$@"', "-"]) as server:
            assert server.post("/v1/completions", LONG).status == 200
            assert served.eventually(lambda: server.metrics()["motet_disk_written_total"] > 0)
        names = os.listdir(path)
        assert "weights" in names and any(name.endswith(".motet") for name in names), names
        for name in names:
            mode = os.stat(os.path.join(path, name)).st_mode
            assert stat.S_IMODE(mode) == 0o600, (name, oct(mode))
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


@test
def uploads_leave_room_on_the_disk():
    """64 MiB stay free (SPARE), whether the length of a file is known before it comes or not."""
    def send(server, data, chunked=False):
        name = hashlib.sha256(data).hexdigest()
        body = iter([data[i:i + (1 << 20)] for i in range(0, len(data), 1 << 20)]) if chunked else data
        connection = server.connect()
        try:
            connection.request("POST", "/api/blobs/sha256:" + name, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (BrokenPipeError, ConnectionResetError):  # it was refused before all of it had come
            return 0, ""
        finally:
            connection.close()

    with Disk("size=150m") as disk:
        cache = disk.file("cache")
        os.mkdir(cache)
        with start("--allow-pull", env={"HF_HUB_CACHE": cache}) as server:
            assert send(server, b"small") == (201, "")
            status, text = send(server, bytes(100 << 20))
            assert status in (0, 500) and (not status or "are to come" in text), (status, text)
            status, text = send(server, bytes(100 << 20), chunked=True)
            assert status in (0, 500) and (not status or "are to come" in text), (status, text)
            parts = [name for name in os.listdir(os.path.join(cache, "motet-uploads")) if name.endswith(".part")]
            assert parts == [], parts
            assert send(server, bytes(1 << 20), chunked=True) == (201, "")
            server.complete(prompt="hello", max_tokens=1)


@test
def a_store_that_cannot_be_written_is_told_at_the_start():
    with Disk() as disk:
        disk.fill()
        assert "disk is full" in refused("--store", disk.file("store.db"))
    with Disk() as disk:
        disk.lock()
        assert "Read-only file system" in refused("--store", disk.file("store.db"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store.db")
        with start("--store", path):
            pass
        os.chmod(path, 0o400)
        assert "Permission denied" in refused("--store", path, wrapper=bound())
    with closed_folder() as folder:
        line = refused("--store", os.path.join(folder, "store.db"), wrapper=bound())
        assert "cannot be used" in line and "Permission denied" in line, line


@test
def a_store_whose_disk_becomes_full():
    """Answers are given, and those that were kept before still are; once there is room they are kept again."""
    with Disk() as disk, start("--store", disk.file("store.db")) as server, Attack(server, opens=True):
        first = server.post("/v1/responses", STORED).json()

        def written():  # by a thread of its own
            for name in os.listdir(disk.path):
                with open(disk.file(name), "rb") as f:
                    if first["id"].encode() in f.read():
                        return True
            return False
        assert served.eventually(written)
        disk.fill()

        def lost():
            got = server.post("/v1/responses", STORED)
            assert got.status == 200, got.body
            return any("store.failed" in line and "is not kept: database or disk is full" in line for line in server.log)
        assert served.eventually(lost)
        got = server.request("GET", "/v1/responses/" + first["id"])
        assert got.status == 200 and got.json()["output"] == first["output"], (got.body, first)
        os.remove(disk.file("fill"))
        made = server.post("/v1/responses", STORED).json()["id"]
        assert served.eventually(lambda: server.request("GET", "/v1/responses/" + made).status == 200)


@test
def a_socket_in_a_folder_that_cannot_be_written():
    with Disk() as disk:
        disk.lock()
        assert "Read-only file system" in refused("--host", "unix:" + disk.file("s"))
    with closed_folder() as folder:
        assert "Permission denied" in refused("--host", "unix:" + os.path.join(folder, "s"), wrapper=bound())
    with Disk("size=1m,nr_inodes=1") as disk:
        assert "No space left on device" in refused("--host", "unix:" + disk.file("s"))


@test
def temporary_files_that_cannot_be():
    """Nothing that is served needs them."""
    with Disk() as disk:
        disk.fill()
        disk.lock()
        for path in (disk.path, "/nowhere"):
            with start(env={"TMPDIR": path}) as server, Attack(server, opens=True):
                assert server.post("/v1/responses", STORED).status == 200
            with tempfile.TemporaryDirectory() as folder, \
                    start("--store", os.path.join(folder, "store.db"), env={"TMPDIR": path}) as server, Attack(server, opens=True):
                made = server.post("/v1/responses", STORED).json()["id"]
                assert served.eventually(lambda: server.request("GET", "/v1/responses/" + made).status == 200)


@test
def a_home_that_is_missing_or_locked():
    with closed_folder() as folder:
        for home in (folder, "/nowhere", "", "/dev/null"):
            with start(wrapper=bound(), env={"HOME": home, "XDG_CACHE_HOME": ""}) as server, Attack(server, opens=True):
                pass


@test
def a_log_on_a_disk_that_is_full():
    """Lines are lost, answers are not."""
    with Disk() as disk:
        log = disk.file("log")
        with open("/dev/full", "w", encoding="utf-8") as full:
            port = served.free_port()
            process = subprocess.Popen([SUITE.program, "serve", SUITE.folder, "--port", str(port)], stderr=full)
            check_blind(process, port)
        disk.fill()
        with open(log, "w", encoding="utf-8") as full:
            port = served.free_port()
            process = subprocess.Popen([SUITE.program, "serve", SUITE.folder, "--port", str(port)], stderr=full)
            check_blind(process, port)


class Blind(served.Server):
    """A server whose log nobody sees."""

    def __init__(self, process, port):  # pylint: disable=super-init-not-called
        self.process, self.port, self.log, self.private = process, port, [], []


def check_blind(process, port):
    server = Blind(process, port)
    try:
        assert served.eventually(lambda: process.poll() is not None or server.listens())
        assert process.poll() is None, "it has ended"
        server.wait_ready()
        with Attack(server, opens=True):
            for _ in range(20):
                alive.answer(server)
    finally:
        process.terminate()
        assert process.wait(served.PATIENCE) == 0


@test
def a_model_that_is_locked_after_it_was_loaded():
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(SUITE.folder, os.path.join(place, "tiny"))
        with start(folder=folder, wrapper=bound()) as server, Attack(server, opens=True):
            for name in os.listdir(folder):
                os.chmod(os.path.join(folder, name), 0)
            os.chmod(folder, 0)
            alive.answer(server)
            os.chmod(folder, 0o700)
        for name in os.listdir(folder):
            os.chmod(os.path.join(folder, name), 0)
        done = subprocess.run([*bound(), SUITE.program, "serve", folder, "--port", "0"], stderr=subprocess.PIPE, text=True,
                              timeout=served.PATIENCE, check=False)
        assert done.returncode == 1 and "may not be read: check its permissions" in done.stderr, done.stderr


def enter():
    """Runs the script again where it may mount disks, if there is such a place."""
    if INSIDE in os.environ or not shutil.which("unshare") or not shutil.which("mount"):
        return
    for words in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        probe = ["sh", "-c", "mount -t tmpfs tmpfs /tmp"]
        if subprocess.run([*words, *probe], capture_output=True, check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(words[0], [*words, sys.executable, *sys.argv])


enter()
SUITE.main()
