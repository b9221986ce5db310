"""PNG files of every kind, also of those that Pillow does not write."""
import struct
import zlib

PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def row(samples, depth):
    if depth == 16:
        return b"".join(struct.pack(">H", int(v)) for v in samples)
    bits = "".join(format(int(v), f"0{depth}b") for v in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def predict(line, before, step, kind):
    """One of the five filters of a row."""
    out = bytearray([kind])
    for i, byte in enumerate(line):
        left = line[i - step] if i >= step else 0
        up = before[i] if before else 0
        corner = before[i - step] if before and i >= step else 0
        p = left + up - corner
        nearest = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
        out.append((byte - (0, left, up, (left + up) // 2, nearest)[kind]) & 255)
    return bytes(out)


def rows_of(pixels, depth):
    step = max(1, pixels.shape[2] * depth // 8)
    out, before = b"", None
    for y in range(pixels.shape[0]):
        line = row(pixels[y].reshape(-1), depth)
        out += predict(line, before, step, y % 5)
        before = line
    return out


def write(pixels, colour, depth, interlaced, chunks=(), behind=()):
    height, width = pixels.shape[:2]
    data = b""
    for left, top, right, down in PASSES if interlaced else [(0, 0, 1, 1)]:
        part = pixels[top::down, left::right]
        if part.size:
            data += rows_of(part, depth)
    compressed = zlib.compress(data, 9)
    half = len(compressed) // 2
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    parts = [chunk(b"IHDR", head)] + [chunk(*c) for c in chunks]
    parts += [chunk(b"IDAT", compressed[:half]), chunk(b"IDAT", compressed[half:])] + [chunk(*c) for c in behind]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")
