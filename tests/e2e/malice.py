"""Input that was made to harm: bodies and pictures of the fuzzers' corpora, changed at random, bytes that are no HTTP,
clients that leave in the middle. A server answers with what it understood or with an error that is the client's, or closes
the connection; it never answers with a 500, and nobody else notices."""

import base64
import http.client
import json
import os
import socket

import load
import served

CORPUS = os.path.join(load.HERE, "..", "fuzz", "corpus")
PATHS = {"api": ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"), "chat": ("/v1/chat/completions",),
         "messages": ("/v1/messages",), "responses": ("/v1/responses",), "ollama": ("/api/chat", "/api/generate"),
         "gemini": ("/v1beta/models/{}:generateContent".format(load.DENSE),
                    "/v1beta/models/{}:streamGenerateContent".format(load.DENSE))}
LARGEST = 40000  # bytes of a file of the corpora that is sent
WAIT = 3         # seconds for an answer, which may be a long one; then the client leaves


def files(name):
    folder = os.path.join(CORPUS, name)
    for each in sorted(os.listdir(folder)):
        path = os.path.join(folder, each)
        if os.path.isfile(path) and os.path.getsize(path) <= LARGEST:
            with open(path, "rb") as f:
                yield f.read()


class Malice:
    def __init__(self):
        self.bodies = [(paths, data) for name, paths in PATHS.items() for data in files(name)]
        self.pictures = list(files("image"))
        self.heads = list(files("http"))

    @staticmethod
    def spoil(dice, data):
        """Flips, cuts or doubles some of it."""
        data = bytearray(data)
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(data) + 1)
            what = dice.randrange(4)
            if what == 0 and data:
                data[min(at, len(data) - 1)] ^= 1 << dice.randrange(8)
            elif what == 1:
                del data[at:]
            elif what == 2:
                data[at:at] = data[at:at + dice.randrange(64)]
            else:
                data[at:at] = dice.choice((b"\0", b"\xff\xfe", b'"', b"[" * 700, b"1e999", b"\\ud800", b"-1", b"{}"))
        return bytes(data)

    def body(self, dice):
        """A path and a body that one of our models may be meant by."""
        paths, data = dice.choice(self.bodies)
        try:
            known = json.loads(data)
            if isinstance(known, dict):
                known["model"] = dice.choice((load.HYBRID, load.DENSE, load.ENCODER, "nobody"))
                data = json.dumps(known).encode()
        except (ValueError, RecursionError):
            pass
        return dice.choice(paths), self.spoil(dice, data)

    def picture(self, dice):
        data = base64.b64encode(self.spoil(dice, dice.choice(self.pictures))).decode()
        content = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}}]
        return "/v1/chat/completions", {"model": dice.choice((load.HYBRID, load.DENSE)), "max_tokens": 2,
                                        "messages": [{"role": "user", "content": content}]}

    def send(self, server, dice):
        """One of them. The status that came, or None where there was none."""
        kind = dice.randrange(8)
        if kind == 0:
            return self.raw(server, self.spoil(dice, dice.choice(self.heads)), dice.random() < 0.5)
        path, body = self.picture(dice) if kind < 3 else self.body(dice)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n".format(path, len(data)).encode()
        if kind == 3:  # leaves before all of it is sent
            return self.raw(server, (head + data)[:dice.randrange(len(head) + len(data))], True)
        if kind == 4:  # leaves before the answer
            return self.raw(server, head + data, True)
        return self.raw(server, head + data, False)

    @staticmethod
    def raw(server, data, leave):
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as s:
            try:
                s.sendall(data)
                if leave:
                    return None
                s.shutdown(socket.SHUT_WR)
                response = http.client.HTTPResponse(s)
                response.begin()
                response.read()
                return response.status
            except (TimeoutError, OSError, http.client.HTTPException):
                return None


def refused(status):
    """Whether a status is one that such input may get."""
    return status is None or status < 500 or status in (501, 503, 504, 505)


def survives(server):
    return server.process.poll() is None and served.Server.listens(server)
