"""A client of WebSockets (RFC 6455) that sends exactly the frames it is told to, on a plain socket."""

import base64
import hashlib
import json
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = base64.b64encode(bytes(range(16))).decode()
ACCEPT = base64.b64encode(hashlib.sha1((KEY + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
HEADERS = {"Host": "127.0.0.1", "Upgrade": "websocket", "Connection": "keep-alive, Upgrade",
           "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY}


def greeting(path, **headers):
    """The text of a handshake. Underscores in names of headers are hyphens; None leaves a header out."""
    all_headers = dict(HEADERS)
    for name, value in headers.items():
        all_headers[name.replace("_", "-")] = value
    lines = ["{}: {}".format(name, value) for name, value in all_headers.items() if value is not None]
    return "GET {} HTTP/1.1\r\n{}\r\n\r\n".format(path, "\r\n".join(lines)).encode()


def frame(data, opcode=TEXT, last=True, mask=b"\x01\x02\x03\x04", length=None, flags=0):
    """A frame; length: the form of its length, 7, 16 or 64 bits; mask None: unmasked."""
    data = data.encode() if isinstance(data, str) else data
    size = len(data)
    length = length or (7 if size < 126 else 16 if size < 65536 else 64)
    head = bytes([(0x80 if last else 0) | flags | opcode, (0x80 if mask else 0) | {7: size, 16: 126, 64: 127}[length]])
    head += {7: b"", 16: struct.pack(">H", size & 0xFFFF), 64: struct.pack(">Q", size)}[length]
    if not mask:
        return head + data
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")


class WebSocket:
    """sock: connected. Use as a context manager."""

    def __init__(self, sock, path, **headers):
        self.sock, self.buffer, self.pongs = sock, b"", []
        self.send_raw(greeting(path, **headers))
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        if not self.head.startswith("HTTP/1.1 101 "):
            raise ConnectionError(self.head)
        assert "sec-websocket-accept: " + ACCEPT in self.head, self.head

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.sock.close()

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError("the connection ended after {!r}".format(self.buffer[:200]))
        self.buffer += data

    def exactly(self, count):
        while len(self.buffer) < count:
            self.more()
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def send_raw(self, data):
        self.sock.sendall(data)

    def send(self, data, *args, **settings):
        self.send_raw(frame(json.dumps(data) if isinstance(data, dict) else data, *args, **settings))

    def receive(self):
        """The next frame: its opcode and its bytes. The server's frames are whole and not masked."""
        first, second = self.exactly(2)
        assert first & 0xF0 == 0x80 and second < 128, (first, second)
        size = second
        if size > 125:
            size = int.from_bytes(self.exactly(2 if size == 126 else 8), "big")
        return first & 0x0F, self.exactly(size)

    def text(self):
        """The next message. Pings on the way are ignored, and pongs are in self.pongs."""
        opcode, data = self.receive()
        while opcode in (PING, PONG):
            self.pongs += [data] if opcode == PONG else []
            opcode, data = self.receive()
        assert opcode == TEXT, (opcode, data)
        return data.decode()

    def events(self):
        """Events up to the one that ends the answer."""
        events = [json.loads(self.text())]
        while events[-1]["type"] not in ("response.completed", "response.incomplete", "response.failed", "error"):
            events.append(json.loads(self.text()))
        return events

    def closed(self):
        """The code with which the server closes, and that it does."""
        opcode, data = self.receive()
        assert opcode == CLOSE, (opcode, data)
        while self.sock.recv(65536):
            pass
        return struct.unpack(">H", data[:2])[0]


def close_frame(code, reason=b""):
    return frame(struct.pack(">H", code) + reason, CLOSE)


def random_mask():
    return os.urandom(4)
