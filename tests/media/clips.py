"""Short videos, and what PyAV makes of their frames."""
import io
import os
from fractions import Fraction

import av
import numpy as np
from PIL import Image

CLIPS = [
    # file, encoder, width, height, frames, rate, pixel format, options
    ("h264.mp4", "libx264", 64, 48, 30, Fraction(12), "yuv420p", {"bf": "2", "g": "12", "crf": "30"}),
    ("h264-ntsc.mp4", "libx264", 50, 38, 20, Fraction(30000, 1001), "yuv420p", {"crf": "32"}),
    ("h264-full.mp4", "libx264", 48, 48, 8, Fraction(25), "yuvj420p", {"crf": "28"}),
    ("h264-10.mp4", "libx264", 48, 32, 6, Fraction(25), "yuv420p10le", {"crf": "30"}),
    ("h264-444.mkv", "libx264", 48, 32, 6, Fraction(10), "yuv444p", {"crf": "30"}),
    ("h264-sound.mp4", "libx264", 48, 32, 10, Fraction(10), "yuv420p", {"crf": "32"}),
    ("hevc.mp4", "libx265", 64, 48, 8, Fraction(24), "yuv420p", {"crf": "32", "x265-params": "log-level=none"}),
    ("vp9.webm", "libvpx-vp9", 60, 44, 24, Fraction(15), "yuv420p", {"crf": "45", "b:v": "0"}),
    ("vp9-odd.webm", "libvpx-vp9", 37, 51, 6, Fraction(24), "yuv420p", {"crf": "45", "b:v": "0"}),
    ("vp8.webm", "libvpx", 48, 40, 10, Fraction(10), "yuv420p", {"crf": "40", "auto-alt-ref": "0"}),
    ("av1.webm", "libaom-av1", 48, 40, 5, Fraction(10), "yuv420p", {"crf": "45", "cpu-used": "8"}),
]


def scene(width, height, number):
    """A disc that moves over a gradient that turns."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    left, top = width * (0.2 + 0.02 * number), height * (0.3 + 0.015 * number)
    disc = (x - left) ** 2 + (y - top) ** 2 < (height / 5) ** 2
    red = 127 + 100 * np.sin(x / 9 + number / 5)
    green = 255 * y / height
    blue = np.where(disc, 240, 40 + 4 * number)
    return np.stack([red, green, blue], -1).clip(0, 255).astype(np.uint8)


def add_sound(container):
    stream = container.add_stream("aac", rate=16000)
    tone = (8000 * np.sin(np.arange(16000) / 20)).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(tone.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = 16000
    return stream, frame


def encode(file, encoder, width, height, frames, rate, pixels, options):
    buffer = io.BytesIO()
    kind = {"mp4": "mp4", "webm": "webm", "mkv": "matroska"}[file.rsplit(".", 1)[1]]
    with av.open(buffer, "w", format=kind) as container:
        sound = add_sound(container) if "sound" in file else None
        stream = container.add_stream(encoder, rate=rate)
        stream.width, stream.height, stream.pix_fmt, stream.options = width, height, pixels, options
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(scene(width, height, number), format="rgb24")
            container.mux(stream.encode(frame.reformat(format=pixels)))
        container.mux(stream.encode(None))
        if sound:
            container.mux(sound[0].encode(sound[1]))
            container.mux(sound[0].encode(None))
    return buffer.getvalue()


def write(folder):
    rows = []
    for clip in CLIPS:
        file, data = clip[0], encode(*clip)
        with open(os.path.join(folder, "videos", file), "wb") as out:
            out.write(data)
        with av.open(io.BytesIO(data)) as container:
            stream = container.streams.video[0]
            rate = float(stream.average_rate)
            frames = list(container.decode(stream))
            for index in sorted({0, 1, len(frames) // 2, len(frames) - 1}):
                pixels = frames[index].to_ndarray(format="rgb24")
                Image.fromarray(pixels).save(os.path.join(folder, "expected", f"{file}-{index}.png"), optimize=True)
                time = float((frames[index].pts - frames[0].pts) * stream.time_base)
                rows.append(f"{file} {pixels.shape[1]} {pixels.shape[0]} {len(frames)} {rate:.9g} {index} {time:.9g}")
    with open(os.path.join(folder, "videos.txt"), "w") as out:
        out.write("\n".join(rows) + "\n")
