"""BMP files of every kind, with what they show where Pillow does not read them right."""
import struct

import numpy as np
from PIL import Image


def pad(line):
    return line + bytes(-len(line) % 4)


def pack(numbers, bits):
    text = "".join(format(int(v), f"0{bits}b") for v in numbers)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))


def wrap(width, height, bits, body, palette=b"", compression=0, masks=b"", head=40, colours=0):
    if head == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", head, width, height, 1, bits, compression, len(body), 2835, 2835, colours, 0)
        if head > 40:
            info += (masks + bytes(84))[: head - 40]
            masks = b""
    start = 14 + len(info) + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + info + masks + palette + body


def quads(colours):
    return b"".join(bytes([b, g, r, 0]) for r, g, b in colours)


def numbered(bits, seed=4):
    random = np.random.default_rng(seed)
    colours = [tuple(int(v) for v in c) for c in random.integers(0, 256, (1 << bits, 3))]
    return random.integers(0, 1 << bits, (13, 21)), colours


def shown(numbers, colours):
    return Image.fromarray(np.array(colours, dtype=np.uint8)[numbers])


def run8(line):
    """A row as runs, with every third stretch written out."""
    out, x = b"", 0
    while x < len(line):
        if x % 3 == 0 and len(line) - x >= 5:
            out += bytes([0, 5]) + bytes(int(v) for v in line[x:x + 5]) + b"\0"
            x += 5
            continue
        count = 1
        while x + count < len(line) and line[x + count] == line[x] and count < 255:
            count += 1
        out += bytes([count, int(line[x])])
        x += count
    return out + b"\0\0"


def run4(line):
    out = b""
    for x in range(0, len(line), 2):
        pair = [int(v) for v in line[x:x + 2]]
        out += bytes([len(pair), pair[0] << 4 | (pair[1] if len(pair) > 1 else 0)])
    return out + b"\0\0"


def files(pixels):
    height, width = pixels.shape[:2]
    bgr = pixels[..., ::-1]
    up = [pad(bgr[y].tobytes()) for y in range(height)]
    yield "rgb-24.bmp", wrap(width, height, 24, b"".join(up[::-1])), None
    yield "rgb-24-top-down.bmp", wrap(width, -height, 24, b"".join(up)), None
    yield "rgb-24-os2.bmp", wrap(width, height, 24, b"".join(up[::-1]), head=12), None
    yield "rgb-24-unpadded.bmp", wrap(width, height, 24, b"".join(up[::-1]))[:-1], None
    masks = struct.pack("<III", 0xFF0000, 0xFF00, 0xFF)
    yield "fields-24.bmp", wrap(width, height, 24, b"".join(up[::-1]), compression=3, masks=masks), None
    for bits in (1, 4, 8):
        numbers, colours = numbered(bits)
        body = b"".join(pad(pack(line, bits)) for line in numbers[::-1])
        yield f"palette-{bits}.bmp", wrap(width, height, bits, body, quads(colours)), None
        yield f"palette-{bits}-v5.bmp", wrap(width, height, bits, body, quads(colours), head=124), None
        file = wrap(width, height, bits, body, quads(colours))  # its pixels are said to begin where the colours do
        yield f"palette-{bits}-early.bmp", file[:10] + struct.pack("<I", 54) + file[14:], None
    numbers, colours = numbered(4)
    body = b"".join(pad(pack(line, 4)) for line in numbers[::-1])
    yield "palette-4-os2.bmp", wrap(width, height, 4, body, b"".join(bytes(c[::-1]) for c in colours), head=12), None
    runs = b"".join(run4(line) for line in numbers[::-1]) + b"\0\1"
    yield "rle4.bmp", wrap(width, height, 4, runs, quads(colours), 2), None
    numbers, colours = numbered(8)
    runs = b"".join(run8(line) for line in numbers[::-1] // 100) + b"\0\1"
    yield "rle8.bmp", wrap(width, height, 8, runs, quads(colours), 1), None
    # Pillow takes two bytes too many for a step, and refuses a picture that ends where its writer says so.
    steps = b"\x03\x05\0\2\4\2\2\7\0\1"
    wanted = np.zeros((13, 21), dtype=np.int64)
    wanted[12, 0:3] = 5
    wanted[10, 7:9] = 7
    yield "rle8-steps.bmp", wrap(width, height, 8, steps, quads(colours), 1), shown(wanted, colours)
    random = np.random.default_rng(9)
    words = random.integers(0, 1 << 16, (13, 21)).astype("<u2")
    body = b"".join(pad(line.tobytes()) for line in words[::-1])
    yield "fields-555.bmp", wrap(width, height, 16, body), None
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    yield "fields-565.bmp", wrap(width, height, 16, body, compression=3, masks=masks), None
    quad = random.integers(0, 1 << 32, (13, 21)).astype("<u4")
    body = quad[::-1].tobytes()
    yield "rgb-32.bmp", wrap(width, height, 32, body), None
    masks = struct.pack("<IIII", 0xFF000000, 0xFF0000, 0xFF00, 0)
    yield "fields-32.bmp", wrap(width, height, 32, body, compression=3, masks=masks[:12]), None
    masks = struct.pack("<IIII", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    yield "fields-32-v4.bmp", wrap(width, height, 32, body, compression=3, masks=masks, head=108), None
    yield "fields-32-empty.bmp", wrap(width, height, 32, body, compression=3, masks=bytes(12)), None
