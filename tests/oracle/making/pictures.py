"""The pictures and the video that the oracle looks at: small, without a straight answer, and the same on every run."""

import zlib

import numpy as np

# name: width, height
SIZES = {
    "plain": (56, 48),
    "other": (56, 48),  # as large as plain, and not the same
    "wide": (96, 32),
    "tall": (30, 90),
    "tiny": (5, 3),
    "large": (150, 120),
}
BANNER = (40, 17), 16  # blocks and their side: long and large enough that pan and scan cuts it
FRAMES, FRAME_SIZE, FPS = 10, (40, 32), 4


def _surface(width, height, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    y, x = np.mgrid[0:height, 0:width] / max(width, height)
    out = np.zeros((height, width, 3))
    for channel in range(3):
        a, b, c, d = rng.uniform(2, 9, 4)
        out[..., channel] = np.sin(a * x + b * y + c) + np.cos(d * (x - y))
    out += 0.25 * rng.standard_normal((height, width, 1))
    left, top = rng.integers(0, max(1, width // 2)), rng.integers(0, max(1, height // 2))
    out[top : top + height // 3 + 1, left : left + width // 3 + 1] *= -1
    return np.clip(127.5 + 60 * out, 0, 255).astype(np.uint8)


def image(name):
    if name == "banner":
        size, side = BANNER
        return _surface(*size, seed=41).repeat(side, 0).repeat(side, 1)
    return _surface(*SIZES[name], seed=list(SIZES).index(name) + 11)


def frame(index):
    """Drifts from one surface to another."""
    first, last = _surface(*FRAME_SIZE, 31).astype(float), _surface(*FRAME_SIZE, 32).astype(float)
    share = index / (FRAMES - 1)
    return np.round(first * (1 - share) + last * share).astype(np.uint8)


def _chunk(kind, data):
    body = kind + data
    return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def png(pixels):
    height, width, _ = pixels.shape
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    )


def _write_video(path):
    """H.264 without loss: what comes out is what went in, whoever decodes it."""
    from fractions import Fraction

    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264rgb", rate=Fraction(FPS))
        stream.width, stream.height = FRAME_SIZE
        stream.pix_fmt = "rgb24"
        stream.options = {"qp": "0", "preset": "veryslow"}
        for index in range(FRAMES):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame(index), format="rgb24")))
        container.mux(stream.encode())
    with av.open(str(path)) as container:
        for index, decoded in enumerate(container.decode(video=0)):
            assert (decoded.to_ndarray(format="rgb24") == frame(index)).all()


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in [*SIZES, "banner"]:
        (folder / f"{name}.png").write_bytes(png(image(name)))
    _write_video(folder / "video.mp4")
