"""Pictures for tests: shapes of one colour on a light ground."""

import base64
import struct
import zlib

SIDE = 160
COLOURS = {"red": (214, 40, 40), "green": (40, 160, 60), "blue": (40, 80, 210), "purple": (130, 50, 170)}
SHAPES = {
    "circle": lambda x, y: x * x + y * y < 1,
    "square": lambda x, y: max(abs(x), abs(y)) < 0.9,
    "triangle": lambda x, y: -0.9 < y < 0.9 and abs(x) < (y + 0.9) / 1.8,
    "cross": lambda x, y: min(abs(x), abs(y)) < 0.3 and max(abs(x), abs(y)) < 0.95,
}


def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def paint(colour, inside):
    """What is inside in one colour on a light ground, as a part of a message."""
    rows = []
    for y in range(SIDE):
        row = bytearray()
        for x in range(SIDE):
            row += bytes(COLOURS[colour] if inside(x, y) else (244, 244, 240))
        rows.append(row)
    url = "data:image/png;base64," + base64.b64encode(png(rows)).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def picture(shape, colour, x, y, radius):
    """One shape on a light ground, as a part of a message."""
    return paint(colour, lambda i, j: SHAPES[shape]((i - x) / radius, (j - y) / radius))
