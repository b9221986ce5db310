#!/usr/bin/env python3
"""Files of the server by file: URLs of pictures: none of these opens a file outside the folder of --media-root, or what
is no file in it. What must not be opened is watched by the kernel (inotify).

usage: tests/attack/files.py --motet PROGRAM [NAME ...]"""

import contextlib
import ctypes
import os
import socket
import tempfile
import urllib.parse

import fetch
import reach
import served

LIBC = ctypes.CDLL(None, use_errno=True)
IN_ACCESS, IN_OPEN, IN_NONBLOCK = 0x1, 0x20, 0o4000
NO_FILE = "is no file in the folder of --media-root"
NOT_READ = "cannot be read: check that it is a file"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Watch:
    """Tells of every file that is opened or read in a folder, or of one file."""

    def __init__(self, *paths):
        self.fd = LIBC.inotify_init1(IN_NONBLOCK)
        for path in paths:
            assert LIBC.inotify_add_watch(self.fd, os.fsencode(path), IN_ACCESS | IN_OPEN) >= 0, path

    def opened(self):
        try:
            return os.read(self.fd, 65536)
        except BlockingIOError:
            return b""

    def close(self):
        os.close(self.fd)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


@contextlib.contextmanager
def stage():
    """(folder, server, what watches the files that must not be opened)"""
    with tempfile.TemporaryDirectory() as folder:
        root, out = os.path.join(folder, "media"), os.path.join(folder, "secret")
        for path in (root + "/ok.png", root + "/sub/ok.png", root + "/with blank.png", out + "/secret.png",
                     folder + "/media-other/secret.png", folder + "/media.png", folder + "/secret.png"):
            write(path, fetch.png())
        write(root + "/ok.png%00.png", fetch.png())
        links = {"/link.png": out + "/secret.png", "/relative.png": "../secret/secret.png", "/folder": out,
                 "/up": "..", "/chain.png": "link.png", "/dangling.png": "nowhere.png", "/loop.png": "loop.png",
                 "/zero.png": "/dev/zero", "/proc.png": "/proc/self/environ", "/inside.png": "sub/ok.png"}
        for name, target in links.items():
            os.symlink(target, root + name)
        os.mkfifo(root + "/fifo.png")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(root + "/socket.png")
            watch = Watch(out, folder + "/media-other", out + "/secret.png", folder + "/media.png",
                          folder + "/secret.png")
            with served.Server(reach.PROGRAM, fetch.FOLDER, "--media-root", root) as server:
                yield folder, server, watch
            watch.close()


def refuse(server, watch, url, words):
    answer = fetch.ask(server, url)
    reach.check_answer(url, answer, 400, words, urllib.parse.unquote(url) + url)
    assert not watch.opened(), (url, "was opened")
    reach.check_alive(server)


@test
def the_stage_works():
    """Files in the folder are read, also through links within it; and who opens what is watched is noticed."""
    with stage() as (folder, server, watch):
        for url in ("file://{}/media/ok.png", "FILE://{}/media/ok.png", "file://localhost{}/media/sub/ok.png",
                    "file://{}/media/with%20blank.png", "file://{}/media/sub/../ok.png", "file://{}/media/inside.png",
                    "file://{}/media/ok.png%2500.png"):
            answer = fetch.ask(server, url.format(folder))
            assert answer.status == 200, (url, answer.body)
        assert not watch.opened()
        with open(folder + "/secret/secret.png", "rb"):
            assert watch.opened()


@test
def ways_out_of_the_folder():
    with stage() as (folder, server, watch):
        root = "file://" + folder + "/media"
        cases = [("two dots", root + "/../secret/secret.png"), ("two dots from below", root + "/sub/../../secret/secret.png"),
                 ("many of them", root + "/../../../../../../../../../../etc/passwd"),
                 ("encoded dots", root + "/%2e%2e/secret/secret.png"), ("one encoded dot", root + "/.%2E/secret/secret.png"),
                 ("an encoded slash", root + "/..%2fsecret%2Fsecret.png"),
                 ("encoded twice", root + "/%252e%252e/secret/secret.png"),
                 ("a long encoding of a dot", root + "/%c0%ae%c0%ae/secret/secret.png"),
                 ("backslashes", root + "/..\\secret\\secret.png"), ("slashes", root + "//..//secret//secret.png"),
                 ("a link", root + "/link.png"), ("a relative link", root + "/relative.png"),
                 ("a link of a link", root + "/chain.png"), ("a folder's link", root + "/folder/secret.png"),
                 ("a link upwards", root + "/up/secret/secret.png"), ("a link of nothing", root + "/dangling.png"),
                 ("a link of itself", root + "/loop.png"), ("a device's link", root + "/zero.png"),
                 ("a process's link", root + "/proc.png"),
                 ("a folder whose name begins alike", "file://" + folder + "/media-other/secret.png"),
                 ("a file whose name begins alike", "file://" + folder + "/media.png"),
                 ("the root as a file", root + "/../media"), ("another folder", "file://" + folder + "/secret/secret.png"),
                 ("passwords", "file:///etc/passwd"), ("the environment", "file:///proc/self/environ"),
                 ("memory", "file:///proc/self/mem"), ("a descriptor", "file:///proc/self/fd/0"),
                 ("by the process's root", "file:///proc/self/root" + folder + "/secret/secret.png"),
                 ("by its folder", "file:///proc/self/cwd/README.md"), ("zeros", "file:///dev/zero"),
                 ("standard input", "file:///dev/stdin"), ("nothing", "file:///nowhere.png")]
        reach.run_cases(cases, lambda _, url: refuse(server, watch, url, NO_FILE))


@test
def what_is_no_file():
    with stage() as (folder, server, watch):
        root = "file://" + folder + "/media"
        cases = [("a folder", root + "/sub", NOT_READ), ("with a slash", root + "/sub/", NOT_READ),
                 ("a file as a folder", root + "/ok.png/", NO_FILE), ("within a file", root + "/ok.png/..", NO_FILE),
                 ("the folder itself", root, NO_FILE), ("with a slash", root + "/", NO_FILE),
                 ("and a dot", root + "/.", NO_FILE), ("a FIFO", root + "/fifo.png", NOT_READ),
                 ("a socket", root + "/socket.png", NOT_READ)]
        reach.run_cases(cases, lambda _, url, words: refuse(server, watch, url, words))


@test
def urls_that_are_not_right():
    with stage() as (folder, server, watch):
        ok = folder + "/media/ok.png"
        cases = [("a host", "file://pictures.test" + ok), ("an address", "file://127.0.0.1" + ok),
                 ("a port", "file://localhost:80" + ok), ("a user", "file://user@localhost" + ok),
                 ("a name that begins alike", "file://localhostile" + ok), ("one slash", "file:" + ok),
                 ("no slash", "file:media/ok.png"), ("nothing", "file://"), ("a host alone", "file://localhost"),
                 ("a slash", "file:///"), ("an encoded zero byte", "file://" + ok + "%00"),
                 ("one before another name", "file://" + folder + "/secret/secret.png%00/../../media/ok.png"),
                 ("a zero byte", "file://" + ok + "\0.png"), ("a query", "file://" + ok + "?x"),
                 ("a fragment", "file://" + ok + "#x"), ("half an escape", "file://" + ok + "%2"),
                 ("too long", "file://" + folder + "/media/" + "x/" * 5000 + "ok.png"),
                 ("a long name", "file://" + folder + "/media/" + "x" * 300 + ".png"), ("a share", "file:////evil/share")]
        reach.run_cases(cases, lambda _, url: refuse(server, watch, url, NO_FILE))


@test
def a_server_without_a_folder():
    with stage() as (folder, _, watch), served.Server(reach.PROGRAM, fetch.FOLDER) as server:
        cases = [(url, url) for url in ("file://" + folder + "/media/ok.png", "file:///etc/passwd", "file:///dev/zero",
                                        "file:///", "file://", "file:x", "FILE:///etc/passwd", "file://localhost/etc/passwd",
                                        "file:///proc/self/environ", "file://" + folder + "/secret/secret.png")]
        reach.run_cases(cases, lambda _, url: refuse(server, watch, url, "start with --media-root"))


if __name__ == "__main__":
    reach.main("attack_files", TESTS)
