"""What the attacks on media share: pictures made byte by byte, and a server that must answer each of them rightly.

A case is a request with one picture or video. Right is either the answer to the picture that it stands for, or a 4xx
whose sentence has the words expected and names no path of the server. After each case the server answers a picture and
a text as it did before, and no decoder has crashed."""

import argparse
import base64
import os
import random
import re
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))

import served  # noqa: E402

FOLDER = os.path.join(HERE, "..", "oracle", "sighted", "qwen3vl-bf16")
PATH = re.compile(r"""(^|[\s"'(])/[A-Za-z]""")


def sample(name):
    """A file of tests/media: images/... or videos/..."""
    with open(os.path.join(HERE, "..", "media", name), "rb") as f:
        return f.read()


def noise(seed, count):
    return random.Random(seed).randbytes(count)


# ---- PNG ----

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data, crc=None):
    crc = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


def head(width, height, depth=8, colour=2, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace))


def pixels(rows):
    return chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))


END = chunk(b"IEND", b"")


def rows_of(seed, width, height):
    return [noise(seed * 1000 + y, 3 * width) for y in range(height)]


def turn(rows):
    """What EXIF orientation 6 asks for: a quarter turn clockwise."""
    width = len(rows[0]) // 3
    return [b"".join(row[3 * x:3 * x + 3] for row in reversed(rows)) for x in range(width)]


def png(rows, before=b"", behind=b"", last=b""):
    """With chunks before the pixels, behind them, and bytes behind the end."""
    return SIGNATURE + head(len(rows[0]) // 3, len(rows)) + before + pixels(rows) + behind + END + last


# ---- JPEG ----

def segment(marker, data, length=None):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2 if length is None else length) + data


def jpeg(*segments, base="images/baseline-444.jpg"):
    """A whole JPEG with more segments behind its first marker."""
    data = sample(base)
    return data[:2] + b"".join(segments) + data[2:]


def scans(side, count, padding=0):
    """A progressive JPEG of side x side greys in `count` scans that are empty: the decoder fills them up, at the price
    of a scan. padding: bytes of comments, since a picture of many pixels has to have some."""
    table = segment(0xDB, b"\0" + bytes([1] * 64))
    codes = segment(0xC4, b"\0\1" + bytes(15) + b"\0") + segment(0xC4, b"\x10\1" + bytes(15) + b"\0")
    frame = segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\1\x11\0")
    first = segment(0xDA, b"\1\1\0\0\0\0")
    more = segment(0xDA, b"\1\1\0\1\x3f\0")
    comment = b"".join(segment(0xFE, bytes(60000)) for _ in range(padding // 60000 + 1)) if padding else b""
    return b"\xff\xd8" + comment + table + codes + frame + first + more * (count - 1) + b"\xff\xd9"


# ---- EXIF ----

def exif(value=6, count=1, kind=3, big=False, at=8, entries=None, following=0, tag=0x0112, body=b""):
    """A TIFF structure with one number, the orientation unless told otherwise. entries: how many it claims to have."""
    order = ">" if big else "<"
    number = struct.pack(order + "HHI", tag, kind, count) + struct.pack(order + "I", value)
    if big and kind == 3:
        number = number[:8] + struct.pack(">HH", value & 0xFFFF, 0)
    return ((b"MM\0*" if big else b"II*\0") + struct.pack(order + "I", at) +
            struct.pack(order + "H", 1 if entries is None else entries) + number + struct.pack(order + "I", following) +
            body)


def app1(tiff):
    return segment(0xE1, b"Exif\0\0" + tiff)


def xmp(text):
    return segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + text)


# ---- WebP ----

def riff(name, data, size=None):
    return name + struct.pack("<I", len(data) if size is None else size) + data + b"\0" * (len(data) % 2)


def webp(*more, flags=0, before=(), canvas=None):
    """lossless.webp as an extended file with chunks before and behind its pixels."""
    still = sample("images/lossless.webp")
    bits = struct.unpack("<I", still[21:25])[0]
    width, height = canvas or ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    first = bytes([flags, 0, 0, 0]) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + riff(b"VP8X", first) + b"".join(before) + still[12:] + b"".join(more)
    return b"RIFF" + struct.pack("<I", len(body)) + body


ICC, ALPHA, EXIF, XMP = 0x20, 0x10, 0x08, 0x04  # flags


# ---- boxes of MP4 and its kin ----

def box(name, data):
    return struct.pack(">I", len(data) + 8) + name + data


def brand(name, *others):
    return box(b"ftyp", name + bytes(4) + b"".join(others))


# ---- GIF and BMP ----

def codes(numbers):
    """LZW without a table: each number behind a code that clears it, in three bits."""
    bits, count = 0, 0
    for number in [*(n for number in numbers for n in (4, number)), 5]:
        bits |= number << count
        count += 3
    data = bits.to_bytes((count + 7) // 8, "little")
    blocks = [data[i:i + 255] for i in range(0, len(data), 255)]
    return b"\2" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def gif(width=30, height=20, extension=b"", last=b""):
    """In four colours."""
    numbers = [byte & 3 for byte in noise(7, 30 * 20)]
    return (b"GIF89a" + struct.pack("<HHBBB", width, height, 0x81, 0, 0) + noise(8, 12) + extension +
            b"," + struct.pack("<HHHHB", 0, 0, 30, 20, 0) + codes(numbers) + b";" + last)


def bmp(width, height, more=b""):
    data = b"".join(noise(y, 3 * width) + bytes(-3 * width % 4) for y in range(height))
    return (b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54) +
            struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(data), 0, 0, 0, 0) + data + more)


# ---- requests ----

def part(data, kind="image", type=None):
    url = "data:{};base64,{}".format(type or ("image/png" if kind == "image" else "video/mp4"),
                                     base64.b64encode(data).decode())
    return {"type": kind + "_url", kind + "_url": {"url": url}}


def ask(server, *parts):
    content = [*parts, {"type": "text", "text": "What is it?"}]
    return server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}], "max_tokens": 4,
                                                "temperature": 0, "ignore_eos": True, "logprobs": True})


def said(answer):
    assert answer.status == 200, answer.body
    return answer.json()["choices"][0]["logprobs"]["content"]


class Attack:
    """The cases of a class, each of them a test of its own. One server has to stand them all."""

    def __init__(self, name):
        self.name, self.cases, self.program, self.known = name, [], None, {}

    def case(self, name, *parts, words=None, like=None, needs=None, status=400):
        """words: what the sentence of the refusal has in it. like: the picture whose answer is right."""
        def test(server):
            if needs:
                served.need(self.program, needs)
            answer = ask(server, *parts)
            if like is not None:
                assert said(answer) == self.answer(server, like), "it is seen as another picture"
            else:
                self.refused(answer, words, status)
            self.well(server)
        test.__name__ = name
        self.cases.append(test)

    def differ(self, name, one, other):
        """Two pictures that the model must not confuse, or no case that tells them apart would prove anything."""
        def test(server):
            assert self.answer(server, one) != self.answer(server, other)
        test.__name__ = name
        self.cases.append(test)

    def answer(self, server, picture):
        if picture not in self.known:
            self.known[picture] = said(ask(server, part(picture)))
        return self.known[picture]

    def refused(self, answer, words, status):
        assert answer.status == status, (answer.status, answer.body)
        told = answer.json()["error"]["message"]
        assert told.startswith("messages[0].content[") and words in told, told
        assert not PATH.search(told), "a path: " + told

    def well(self, server):
        """It answers as it did before, and nothing has crashed."""
        picture = png(rows_of(99, 40, 30))
        assert said(ask(server, part(picture))) == self.answer(server, picture)
        assert said(ask(server)) == self.known.setdefault("text", said(ask(server)))
        assert server.metrics()["motet_media_crashes_total"] == 0

    def main(self, *options):
        parser = argparse.ArgumentParser()
        parser.add_argument("--motet", required=True)
        parser.add_argument("names", nargs="*")
        arguments = parser.parse_args()
        self.program = os.path.abspath(arguments.motet)
        server = served.Server(self.program, FOLDER, *options)
        try:
            self.well(server)
            served.run_tests(self.name, [*self.cases, ends_in_order], arguments.names, server)
        finally:
            server.stop()


def ends_in_order(server):
    status = server.stop()
    assert status == 0, (status, server.log[-20:])
