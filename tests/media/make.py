#!/usr/bin/env python3
"""Writes the pictures and videos of tests/media, and what Pillow, torchvision and PyAV make of them.

usage: make.py FOLDER

FOLDER/images     what is decoded; images.txt: file, width, height, tolerance, SHA-256 of the pixels as RGB
FOLDER/expected   pixels where a tolerance makes a digest useless, as PNG
FOLDER/resize.txt file, filter, width, height, SHA-256 of torchvision's result (0.27 or later), or Pillow's by Lanczos
FOLDER/videos     videos.txt: file, width, height, frames, fps, and of one of its frames: index, time
Needs Pillow, numpy, torch, torchvision, PyAV with libx264 and libvpx. Random numbers have seeds: the pictures are the
same each time; compressed bytes may differ between versions of the encoders.
"""
import hashlib
import io
import os
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageOps

import bmp
import clips
import png

LOSSY = 1  # levels that JPEG and lossy WebP may be off


def picture(width, height, seed=1):
    """Waves, an edge and some noise: what every filter and codec finds something to do with."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    channels = [
        127 + 120 * np.sin(x / 5 + seed) * np.cos(y / 7),
        255 * (x + y) / (width + height),
        np.where((x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 3) ** 2, 230, 30),
    ]
    pixels = np.stack(channels, axis=-1) + random.integers(-12, 13, (height, width, 3))
    return pixels.clip(0, 255).astype(np.uint8)


def rgb(data):
    """What transformers' load_image gives."""
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.rows = []
        for name in ("images", "expected", "videos"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)

    def expect(self, name, image):
        image.save(os.path.join(self.folder, "expected", name + ".png"), optimize=True)

    def add(self, name, data, tolerance=0, expected=None):
        image = expected or rgb(data)
        with open(os.path.join(self.folder, "images", name), "wb") as file:
            file.write(data)
        digest = hashlib.sha256(image.tobytes()).hexdigest() if not tolerance else "-"
        if tolerance:
            self.expect(name, image)
        self.rows.append(f"{name} {image.width} {image.height} {tolerance} {digest}")

    def save(self, name, image, tolerance=0, **options):
        buffer = io.BytesIO()
        kind = {"jpg": "JPEG", "webp": "WebP", "gif": "GIF", "png": "PNG", "bmp": "BMP"}[name.rsplit(".", 1)[1]]
        image.save(buffer, kind, **options)
        self.add(name, buffer.getvalue(), tolerance)
        return buffer.getvalue()


def exif(orientation, big=False):
    data = Image.Exif()
    data[0x0112] = orientation
    data[0x010F] = "camera"
    data.endian = ">" if big else "<"
    return data.tobytes()


def xmp(orientation, element=False):
    """What some programs write instead of EXIF, in one of two spellings."""
    text = f'tiff:Orientation="{orientation}">'
    if element:
        text = f"><tiff:Orientation>{orientation}</tiff:Orientation>"
    return f"<x:xmpmeta><rdf:RDF><rdf:Description {text}</rdf:Description></rdf:RDF></x:xmpmeta>".encode()


def app1(*parts):
    """Segments for the beginning of a JPEG."""
    names = {True: b"http://ns.adobe.com/xap/1.0/\0", False: b""}
    datas = [names[part.startswith(b"<x:")] + part for part in parts]
    return b"".join(b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data for data in datas)


def turned_jpegs(w):
    """Orientations that stand elsewhere than in the first EXIF data."""
    buffer = io.BytesIO()
    Image.fromarray(picture(24, 17)).save(buffer, "JPEG")
    plain = buffer.getvalue()
    nothing = Image.Exif()
    nothing[0x010F] = "camera"
    cases = {
        "xmp": [xmp(6)],
        "xmp-element": [xmp(8, True)],
        "xmp-last": [xmp(6), xmp(3)],
        "xmp-after-exif": [exif(3), xmp(6)],
        "xmp-and-upright": [xmp(6), exif(1)],
        "xmp-and-camera": [nothing.tobytes(), xmp(6)],
        "exif-twice": [exif(1), exif(6)],
        "exif-doubled": [b"Exif\0\0" + exif(6)],
    }
    for name, parts in cases.items():
        w.add(name + ".jpg", plain[:2] + app1(*parts) + plain[2:], LOSSY)


def jpegs(w):
    image = Image.fromarray(picture(45, 31))
    w.save("baseline-444.jpg", image, LOSSY, quality=90, subsampling=0)
    w.save("baseline-422.jpg", image, LOSSY, quality=80, subsampling=1)
    w.save("baseline-420.jpg", image, LOSSY, quality=75, subsampling=2)
    w.save("progressive.jpg", image, LOSSY, quality=80, progressive=True)
    w.save("restarts.jpg", image, LOSSY, quality=80, restart_marker_blocks=2)
    w.save("grey.jpg", image.convert("L"), LOSSY, quality=80)
    w.save("grey-progressive.jpg", image.convert("L"), LOSSY, quality=80, progressive=True)
    inks = w.save("cmyk.jpg", image.convert("CMYK"), LOSSY, quality=85)
    at = inks.index(b"Adobe") + 11  # the transform: YCCK instead of CMYK
    w.add("ycck.jpg", inks[:at] + b"\x02" + inks[at + 1:], LOSSY)
    w.save("rgb.jpg", image, LOSSY, quality=85, keep_rgb=True)
    w.save("one.jpg", Image.fromarray(picture(1, 1)), LOSSY)
    small = Image.fromarray(picture(24, 17))
    for orientation in range(0, 10):
        w.save(f"exif-{orientation}.jpg", small, LOSSY, exif=exif(orientation, orientation % 2 == 1))
    turned_jpegs(w)


def pngs(w):
    pixels = picture(29, 23)
    random = np.random.default_rng(3)
    for interlaced in (False, True):
        tail = "-interlaced" if interlaced else ""
        for depth in (1, 2, 4, 8, 16):
            grey = random.integers(0, 1 << depth, (23, 29, 1))
            if depth == 16:
                grey = grey // 150  # on both sides of 255
            w.add(f"grey-{depth}{tail}.png", png.write(grey, 0, depth, interlaced))
        for depth in (1, 2, 4, 8):
            count = (1 << depth) - (1 if depth > 1 else 0)
            colours = random.integers(0, 256, (count, 3))
            numbers = random.integers(0, 1 << depth, (23, 29, 1))
            chunks = [(b"PLTE", colours.astype(np.uint8).tobytes())]
            if depth > 2:
                chunks.append((b"tRNS", bytes(i * 10 & 255 for i in range(count))))
            w.add(f"palette-{depth}{tail}.png", png.write(numbers, 3, depth, interlaced, chunks))
        for depth in (8, 16):
            wide = pixels.astype(np.int64) * (257 if depth == 16 else 1)
            alpha = random.integers(0, 1 << depth, (23, 29, 1))
            w.add(f"rgb-{depth}{tail}.png", png.write(wide, 2, depth, interlaced))
            with_alpha = np.concatenate([wide, alpha], 2)
            w.add(f"rgba-{depth}{tail}.png", png.write(with_alpha, 6, depth, interlaced))
            w.add(f"grey-alpha-{depth}{tail}.png", png.write(with_alpha[..., 2:], 4, depth, interlaced))
    key = struct.pack(">HHH", *(int(v) for v in pixels[0, 0]))
    w.add("rgb-key.png", png.write(pixels, 2, 8, False, [(b"tRNS", key)]))
    for depth in (1, 8):
        grey = pixels[..., :1] & ((1 << depth) - 1)
        w.add(f"grey-key-{depth}.png", png.write(grey, 0, depth, False, [(b"tRNS", b"\0\1")]))
    tiff = exif(6)[6:]
    w.add("exif-before.png", png.write(pixels, 2, 8, False, [(b"eXIf", tiff)]))
    w.add("exif-behind.png", png.write(pixels, 2, 8, False, behind=[(b"eXIf", tiff)]))
    w.add("exif-last.png", png.write(pixels, 2, 8, False, [(b"eXIf", exif(3)[6:])], [(b"eXIf", tiff)]))
    w.add("exif-outside.png", png.write(pixels, 2, 8, False) + png.chunk(b"eXIf", tiff))
    for name, chunks, behind in (("before", 1, 0), ("behind", 0, 1)):
        text = (b"iTXt", b"XML:com.adobe.xmp\0\0\0en\0key\0" + xmp(6, behind))
        w.add(f"xmp-{name}.png", png.write(pixels, 2, 8, False, [text] * chunks, [text] * behind))
    digits = exif(8).hex()
    lines = "\n".join(digits[i:i + 72] for i in range(0, len(digits), 72)).encode()
    profile = b"\nexif\n%8d\n%s\n" % (len(digits) // 2, lines)
    texts = {
        "xmp-plain": (b"tEXt", b"XML:com.adobe.xmp\0" + xmp(6)),
        "xmp-packed": (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp(6))),
        "profile": (b"tEXt", b"Raw profile type exif\0" + profile),
        "profile-packed": (b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile)),
    }
    for name, text in texts.items():
        w.add(name + ".png", png.write(pixels, 2, 8, False, [text]))
    chunks = [texts["profile"], (b"eXIf", exif(3)[6:])]
    w.add("profile-and-exif.png", png.write(pixels, 2, 8, False, chunks))
    w.add("one.png", png.write(pixels[:1, :1], 2, 8, True))
    w.add("tall.png", png.write(picture(1, 5000), 2, 8, False))
    for name, shape in (("longest", (1, 65535, 1)), ("tallest", (65535, 1, 1))):  # as long as a side may be
        w.add(name + ".png", png.write(np.zeros(shape, np.uint8), 0, 1, False))
    text = b"Comment\0\0" + zlib.compress(bytes(1 << 20))  # a bomb in a chunk that no pixel needs
    w.add("text-bomb.png", png.write(pixels, 2, 8, False, [(b"zTXt", text)]), expected=Image.fromarray(pixels))


def webps(w):
    image = Image.fromarray(picture(41, 27))
    alpha = Image.fromarray(np.random.default_rng(5).integers(0, 256, (27, 41), dtype=np.uint8))
    clear = image.copy()
    clear.putalpha(alpha)
    w.save("lossy.webp", image, LOSSY, quality=80)
    w.save("lossless.webp", image, lossless=True)
    w.save("lossy-alpha.webp", clear, LOSSY, quality=80, exact=True)
    w.save("lossless-alpha.webp", clear, lossless=True, exact=True)
    frames = [Image.fromarray(picture(41, 27, seed)) for seed in (7, 8)]
    w.save("animated.webp", frames[0], save_all=True, append_images=frames[1:], lossless=True)
    w.save("animated-lossy.webp", frames[0], LOSSY, save_all=True, append_images=frames[1:], quality=70)
    hollow = Image.new("RGBA", (60, 50))  # the encoder cuts the first frame down to what is not transparent
    hollow.paste(clear, (12, 14))
    w.save("animated-offset.webp", hollow, save_all=True, append_images=[clear.resize((60, 50))], lossless=True)
    w.save("exif.webp", image, lossless=True, exif=exif(8))
    w.save("xmp.webp", image, lossless=True, xmp=xmp(8))


def gifs(w):
    image = Image.fromarray(picture(37, 26))
    few = image.quantize(20)
    plain = w.save("plain.gif", few, interlace=0)
    w.save("interlaced.gif", few, interlace=1)
    noise = np.random.default_rng(2).integers(0, 256, (120, 90), dtype=np.uint8)  # fills the table of codes
    w.save("many.gif", Image.fromarray(noise).convert("P"))
    w.save("grey.gif", image.convert("L"))
    w.save("two.gif", image.convert("1"))
    w.save("transparent.gif", few, transparency=3)
    others = [Image.fromarray(picture(37, 26, seed)).quantize(30) for seed in (11, 12)]
    w.save("animated.gif", others[0], save_all=True, append_images=others[1:], loop=0)
    for name, data in (("offset", plain), ("offset-transparent", w_bytes(few, transparency=3))):
        at = data.index(b"," + struct.pack("<HHHH", 0, 0, 37, 26))
        moved = data[:at + 1] + struct.pack("<HH", 5, 9) + data[at + 5:]
        w.add(name + ".gif", moved[:6] + struct.pack("<HH", 50, 40) + moved[10:])
        w.add(name + "-grows.gif", moved)
        w.add(name + "-local.gif", local_palette(moved))


def w_bytes(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "GIF", **options)
    return buffer.getvalue()


def local_palette(data):
    """Moves the global table of colours into the frame, and leaves another one in its place."""
    flags = data[10]
    size = 3 << ((flags & 7) + 1)
    table, other = data[13:13 + size], bytes((b * 7 + 13) & 255 for b in range(size))
    at = data.index(b"," + struct.pack("<HH", 5, 9), 13 + size)
    frame = data[at:at + 9] + bytes([data[at + 9] | 0x80 | (flags & 7)])
    return data[:13] + other + data[13 + size:at] + frame + table + data[at + 10:]


RESIZES = [
    # from, to
    ((97, 61), (48, 30)),
    ((97, 61), (31, 61)),
    ((97, 61), (97, 17)),
    ((61, 37), (130, 90)),
    ((40, 30), (111, 7)),
    ((3, 5), (56, 56)),
    ((150, 100), (28, 28)),
    ((640, 11), (29, 64)),
    ((1, 1), (9, 4)),
    ((256, 3), (2, 3)),
    ((96, 64), (84, 56)),
]


def resizes(folder):
    import torch
    import torchvision.transforms.v2.functional as F
    from torchvision.transforms import InterpolationMode as Mode

    rows = []
    for number, (old, new) in enumerate(RESIZES):
        pixels = picture(*old, seed=100 + number)
        if number % 3 == 2:  # every over- and undershoot
            pixels = (np.random.default_rng(number).integers(0, 2, pixels.shape) * 255).astype(np.uint8)
        source = Image.fromarray(pixels)
        source.save(os.path.join(folder, "images", f"resize-{number}.png"), optimize=True)
        tensor = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
        modes = {"nearest": Mode.NEAREST_EXACT, "bilinear": Mode.BILINEAR, "bicubic": Mode.BICUBIC, "lanczos": None}
        for filter, mode in modes.items():
            if mode:
                made = F.resize(tensor, [new[1], new[0]], mode, antialias=True).permute(1, 2, 0).contiguous().numpy()
            else:
                made = np.asarray(source.resize(new, Image.Resampling.LANCZOS))
            rows.append(f"resize-{number}.png {filter} {new[0]} {new[1]} {hashlib.sha256(made).hexdigest()}")
    with open(os.path.join(folder, "resize.txt"), "w") as file:
        file.write("\n".join(rows) + "\n")


def main():
    folder = sys.argv[1]
    w = Writer(folder)
    jpegs(w)
    pngs(w)
    webps(w)
    gifs(w)
    for name, data, expected in bmp.files(picture(21, 13)):
        w.add(name, data, expected=expected)
    with open(os.path.join(folder, "images.txt"), "w") as file:
        file.write("\n".join(w.rows) + "\n")
    resizes(folder)
    clips.write(folder)


if __name__ == "__main__":
    main()
