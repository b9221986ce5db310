#!/usr/bin/env python3
"""Files that clients upload to /api/blobs and models that are made of them by /api/create, as Ollama's API has it.

usage: tests/api/test_uploads.py --motet PROGRAM [NAME ...]"""

import contextlib
import hashlib
import http.client
import os
import socket
import tempfile
import time

import served

SUITE = served.Suite("api_uploads")
HELLO = [{"role": "user", "content": "hello world"}]
KEPT, AT_ONCE = 1024, 4  # MT_LIMIT_UPLOADS, MT_LIMIT_UPLOADING


@contextlib.contextmanager
def started(*options, cache=None, **settings):
    """A server that serves what its cache has; yields it and its cache."""
    with tempfile.TemporaryDirectory() as made:
        env = {"HF_HUB_CACHE": cache or made, "HOME": "/nowhere"}
        with SUITE.start("--allow-pull", *options, env=env, folder=[], **settings) as server:
            yield server, env["HF_HUB_CACHE"]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def upload(server, data, name=None, headers=None):
    """Sends bytes, or pieces of them in chunks."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=served.PATIENCE)
    connection.request("POST", "/api/blobs/" + (name or digest(data)), data, headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def uploads(cache):
    folder = os.path.join(cache, "motet-uploads")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def files_of(folder):
    files = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            files[name] = f.read()
    return files


def said(server, name):
    answer = server.post("/api/chat", {"model": name, "messages": HELLO, "stream": False,
                                       "options": {"temperature": 0, "num_predict": 8}})
    assert answer.status == 200, answer.body
    return answer.json()["message"]["content"]


@SUITE.test
def a_model_of_files():
    files = files_of(SUITE.folder)
    with SUITE.start() as server:
        wanted = said(server, "tiny")
    with started() as (server, cache):
        for data in files.values():
            assert server.request("HEAD", "/api/blobs/" + digest(data)).status == 404
            assert upload(server, data) == (201, ""), data[:100]
            assert server.request("HEAD", "/api/blobs/" + digest(data)).status == 200
        named = {name: digest(data) for name, data in files.items()}
        answer = server.post("/api/create", {"model": "mine", "files": named, "stream": False})
        assert (answer.status, answer.json()) == (200, {"status": "success"}), answer.body
        assert [m["name"] for m in server.request("GET", "/api/tags").json()["models"]] == ["mine:latest"]
        assert said(server, "mine") == wanted
        assert server.post("/api/create", {"model": "mine", "files": named}).status == 409
        second = server.post("/api/create", {"model": "me/mine", "files": named, "stream": False})  # of the same files
        assert second.status == 200, second.body
        answer = server.post("/api/create", {"model": "fox", "from": "me/mine", "system": "You are a fox.", "stream": False})
        assert answer.status == 200, answer.body
        for name, left in (("mine", len(set(named.values()))), ("fox", len(set(named.values()))), ("me/mine", 0)):
            assert server.request("DELETE", "/api/delete", {"model": name}).status == 200, name
            assert len(uploads(cache)) == left, (name, uploads(cache))
        assert server.request("GET", "/api/tags").json() == {"models": []}


@SUITE.test
def what_comes_is_checked():
    data = b"a file" * 1000
    with started() as (server, cache):
        status, text = upload(server, data + b"?", digest(data))
        assert status == 400 and digest(data + b"?") in text, text
        for name in ("sha256:" + 63 * "0", "md5:" + 64 * "0", "sha256:" + 64 * "g", "sha256", "x"):
            assert upload(server, data, name)[0] == 400, name
            assert server.request("HEAD", "/api/blobs/" + name).status == 400, name
        assert upload(server, data, headers={"content-encoding": "gzip"})[0] == 415
        assert upload(server, b"", headers={"content-length": str(1 << 41)}, name=digest(b""))[0] == 413
        assert uploads(cache) == []
        pieces = (data[i:i + 1000] for i in range(0, len(data), 1000))  # in chunks, of unknown length
        assert upload(server, pieces, digest(data).replace(":", "-").replace("a", "A").replace("shA", "sha"))[0] == 201
        assert upload(server, data)[0] == 201 and len(uploads(cache)) == 1  # once more
    with SUITE.start() as server:  # without --allow-pull
        assert upload(server, data)[0] == 403 and server.request("HEAD", "/api/blobs/" + digest(data)).status == 403


@SUITE.test
def a_file_is_not_kept_in_memory():
    """What waits to be written is bounded (MT_LIMIT_UPLOAD_AHEAD), and so is what the server reads ahead."""
    block = bytes(1 << 20)
    whole = hashlib.sha256()
    for _ in range(192):
        whole.update(block)
    with started() as (server, cache):
        assert upload(server, b"first")[0] == 201
        before = server.memory_peak()
        assert upload(server, (block for _ in range(192)), "sha256:" + whole.hexdigest()) == (201, "")
        if "MOTET_TEST_QUICK" not in os.environ:  # sanitizers keep what is freed
            assert server.memory_peak() - before < 96 << 20, (before, server.memory_peak())
        assert len(uploads(cache)) == 2


def begin(server, data, length):
    s = server.socket()
    s.sendall("POST /api/blobs/{} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n".format(digest(data), length).encode() +
              data)
    return s


@SUITE.test
def clients_that_leave():
    with tempfile.TemporaryDirectory() as cache, started(cache=cache) as (server, _):
        s = begin(server, b"half of it", 20)
        assert served.eventually(lambda: len(uploads(cache)) == 1)
        s.close()
        assert served.eventually(lambda: uploads(cache) == [])
        begun = [begin(server, b"half of it", 20) for _ in range(AT_ONCE)]
        assert served.eventually(lambda: len(uploads(cache)) == AT_ONCE)
        status, text = upload(server, b"one more")
        assert status == 429 and "being uploaded" in text, text
        begun[0].close()
        assert served.eventually(lambda: upload(server, b"one more")[0] == 201)
        server.stop()
        assert uploads(cache) == [digest(b"one more").split(":")[1] + ".new"]


@SUITE.test
def a_client_that_sends_no_more():
    """It has shut its side before the file was whole, and goes on listening: it is answered or left, not waited for."""
    with tempfile.TemporaryDirectory() as cache, started(cache=cache) as (server, _):
        with begin(server, b"half of it", 20) as s:
            assert served.eventually(lambda: len(uploads(cache)) == 1)
            s.shutdown(socket.SHUT_WR)
            assert served.eventually(lambda: uploads(cache) == [])
            assert not s.recv(1 << 16).startswith(b"HTTP/1.1 2")
        assert upload(server, b"half of it")[0] == 201


@SUITE.test
def what_no_model_is_made_of():
    with tempfile.TemporaryDirectory() as cache:
        folder = os.path.join(cache, "motet-uploads")
        os.makedirs(folder)
        old, young = "0" * 64 + ".new", "1" * 64 + ".new"
        for name in (old, young, "2" * 64):  # of the last a model was made, and is no more
            with open(os.path.join(folder, name), "w", encoding="utf-8"):
                pass
        os.utime(os.path.join(folder, old), (time.time() - 90000,) * 2)
        with started(cache=cache) as (server, _):
            assert uploads(cache) == [young]
            for i in range(KEPT - 1):
                with open(os.path.join(folder, "{:064x}.new".format(i)), "w", encoding="utf-8"):
                    pass
            status, text = upload(server, b"one more")
            assert status == 413 and str(KEPT) in text, text


@SUITE.test
def refusals():
    data = b"{}"
    with started() as (server, cache):
        assert upload(server, data)[0] == 201
        here, away = digest(data), digest(b"?")
        for status, word, body in (
                (404, "upload it", {"files": {"config.json": here, "model.safetensors": away}}),
                (400, "no model", {"files": {"config.json": here}}),
                (400, "no model", {"files": {"a.gguf": here, "b.gguf": here}}),
                (400, "no name of a file", {"files": {"../config.json": here, "model.safetensors": here}}),
                (400, "no name of a file", {"files": {"a/config.json": here, "model.safetensors": here}}),
                (400, "no name of a file", {"files": {"config.json": "sha256:00", "model.safetensors": here}}),
                (400, "no name of a file", {"files": {"config.json": 5, "model.safetensors": here}}),
                (400, "more than 256", {"files": {"{}.gguf".format(i): here for i in range(257)}}),
                (400, "first", {"files": {"config.json": here, "m.safetensors": here}, "system": "You are a fox."}),
                (400, "first", {"files": {"config.json": here, "m.safetensors": here}, "from": "x"}),
                (400, "no name for a model", {"model": "x:1b", "files": {"config.json": here, "m.safetensors": here}}),
                (400, "no name for a model", {"model": "hf.co/a/b", "files": {"a.gguf": here}}),
                (400, "quantise", {"files": {"a.gguf": here}, "quantize": "q4_K_M"})):
            answer = server.post("/api/create", {"model": "x", **body})
            assert answer.status == status and word in answer.json()["error"], (body, answer.status, answer.body)
            assert cache not in answer.body.decode()
        assert not any(name.startswith("models--") for name in os.listdir(cache))
        answer = server.post("/api/push", {"model": "x"})
        assert answer.status == 501 and "hf upload" in answer.json()["error"], answer.body


if __name__ == "__main__":
    SUITE.main()
