"""Draws one scene in plain Python and writes PNG files: for evaluation and examples, where no torch need be. The same
shapes as draw.py, which is tested against it."""

import math
import struct
import zlib

from data import font
from data.scene import RGB


def _star(x, y):
    fifth = 2 * math.pi / 5
    turn = math.atan2(x, y)
    turn = abs(turn - fifth * round(turn / fifth))
    far = math.hypot(x, y)
    px, py = far * math.sin(turn), far * math.cos(turn)
    qx, qy = 0.42 * math.sin(fifth / 2), 0.42 * math.cos(fifth / 2)
    return (px * (1 - qy) - (1 - py) * qx) / math.hypot(qx, qy - 1)


EDGES = {
    "circle": lambda x, y: math.hypot(x, y) - 0.95,
    "square": lambda x, y: max(abs(x), abs(y)) - 0.82,
    "triangle": lambda x, y: max(0.866 * abs(x) + 0.5 * y - 0.5, -y - 0.5),
    "star": _star,
    "diamond": lambda x, y: (abs(x) / 0.62 + abs(y) - 1) * 0.53,
    "cross": lambda x, y: min(max(abs(x) - 0.3, abs(y) - 0.95), max(abs(x) - 0.95, abs(y) - 0.3)),
    "ring": lambda x, y: abs(math.hypot(x, y) - 0.74) - 0.2,
    "moon": lambda x, y: max(math.hypot(x, y) - 0.95, 0.8 - math.hypot(x - 0.5, y - 0.2)),
}


def _letter_at(text, x, y):
    """Whether there is ink at x, y, in dots from the upper left of the word."""
    which, col, row = math.floor(x / 6), math.floor(x % 6), math.floor(y)
    inside = 0 <= which < len(text) and col < font.WIDE and 0 <= row < font.HIGH
    return inside and font.dots(text[which])[row][col]


def _lay(rows, colour, box, ink):
    """Lays a colour over a part of the picture, as thick as ink(x, y) tells."""
    height, width = len(rows), len(rows[0])
    left, top, right, bottom = (int(v) for v in box)
    for y in range(max(top, 0), min(bottom + 2, height)):
        for x in range(max(left, 0), min(right + 2, width)):
            share = ink(x + 0.5, y + 0.5)
            if share > 0:
                rows[y][x] = [a + (b - a) * share for a, b in zip(rows[y][x], RGB[colour])]


def _wavy(scene, x, y):
    """The ground's colour at a place, with all waves over it."""
    rgb = [v / 255 for v in RGB[scene.ground]]
    for across, down, phase, hard, *change in scene.waves:
        s = min(max(math.sin(x * across + y * down + phase) * hard, -1), 1)
        rgb = [a + s * b for a, b in zip(rgb, change)]
    return [255 * min(max(v, 0), 1) for v in rgb]


def drawn(scene, height, width):
    """Rows of pixels, three numbers each."""
    short = min(height, width)
    rows = [[list(RGB[scene.ground]) for _ in range(width)] for _ in range(height)]
    if scene.waves:
        rows = [[_wavy(scene, (x + 0.5) / width, (y + 0.5) / height) for x in range(width)] for y in range(height)]
    for t in scene.things:
        cx, cy, size = t.x * width, t.y * height, t.r * short
        c, s = math.cos(math.radians(t.tilt)), math.sin(math.radians(t.tilt))

        def ink(x, y):
            dx, dy = (x - cx) / size, (y - cy) / size
            edge = EDGES[t.shape](dx * c + dy * s, -(dy * c - dx * s))
            return min(max(0.5 - edge * size, 0), 1)

        _lay(rows, t.colour, (cx - 1.2 * size, cy - 1.2 * size, cx + 1.2 * size, cy + 1.2 * size), ink)
    for p in scene.prints:
        cx, cy, unit = p.x * width, p.y * height, p.unit * short
        c, s = math.cos(math.radians(p.tilt)), math.sin(math.radians(p.tilt))
        half = (len(p.text) * 6 - 1) / 2

        def ink(x, y):
            found = 0
            for ox, oy in ((-0.25, -0.25), (0.25, -0.25), (-0.25, 0.25), (0.25, 0.25)):
                dx, dy = (x + ox - cx) / unit, (y + oy - cy) / unit
                found += _letter_at(p.text, dx * c + dy * s + half, dy * c - dx * s + font.HIGH / 2)
            return found / 4

        reach, rise = (half + 1) * unit, (font.HIGH / 2 + 1) * unit + half * unit * abs(s)
        _lay(rows, p.colour, (cx - reach, cy - rise, cx + reach, cy + rise), ink)
    return rows


def png(rows):
    """An RGB picture as the bytes of a PNG file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + bytes(min(max(round(v), 0), 255) for pixel in row for v in pixel) for row in rows)
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
