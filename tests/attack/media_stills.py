#!/usr/bin/env python3
"""Pictures of kinds that are not read: each is refused in a sentence that says what to send.

usage: tests/attack/media_stills.py --motet PROGRAM [NAME ...]"""

import struct

from media import Attack, box, brand, chunk, head, jpeg, part, pixels, png, rows_of, sample, segment, END, SIGNATURE

PICTURE = "are no picture that is known here: send \"JPEG\", \"PNG\", \"WebP\", \"GIF\" or \"BMP\""
VIDEO = "are no video that is known here: send MP4 or WebM"

attack = Attack("attack_media_stills")


def heif(name, codec, *others):
    """As much of a HEIF file as says what is in it: one item of 64x64, coded by `codec`, and four bytes of it."""
    handler = box(b"hdlr", bytes(8) + b"pict" + bytes(13))
    primary = box(b"pitm", bytes(4) + b"\0\1")
    place = box(b"iloc", bytes(4) + b"\x44\0\0\1" + b"\0\1\0\0\0\1" + struct.pack(">II", 300, 4))
    items = box(b"iinf", bytes(4) + b"\0\1" + box(b"infe", b"\2\0\0\0" + b"\0\1\0\0" + codec + b"\0"))
    size = box(b"ispe", bytes(4) + struct.pack(">II", 64, 64))
    properties = box(b"iprp", box(b"ipco", size) + box(b"ipma", bytes(4) + b"\0\0\0\1\0\1\1\1"))
    meta = box(b"meta", bytes(4) + handler + primary + place + items + properties)
    return brand(name, *others) + meta + box(b"mdat", b"\x12\0\x0a\x0a")


def grid():
    """One picture that is a grid of 256 x 256 tiles of 65535 x 65535 pixels."""
    return heif(b"avif", b"grid", b"mif1") + b"\0\0\xff\xff\xff\xff\xff\xff"


AVIF = heif(b"avif", b"av01", b"mif1", b"miaf")
AVIS = brand(b"avis", b"avif", b"msf1", b"iso8") + sample("videos/h264.mp4")[32:]
HEIC = heif(b"heic", b"hvc1", b"mif1")
JXL = b"\xff\x0a" + bytes(64)
JXL_BOX = box(b"JXL ", b"\r\n\x87\n") + brand(b"jxl ") + box(b"jxlc", JXL)
JP2 = (box(b"jP  ", b"\r\n\x87\n") + brand(b"jp2 ") +
       box(b"jp2h", box(b"ihdr", struct.pack(">IIHI", 8, 8, 3, 0x07070000))))
J2K = b"\xff\x4f\xff\x51\0\x29" + bytes(64)
TIFF = b"II*\0\x08\0\0\0" + struct.pack("<H", 3) + b"".join(
    struct.pack("<HHII", tag, 4, 1, value) for tag, value in ((256, 1), (257, 1), (273, 0))) + bytes(5)
BIG_TIFF = b"II+\0\x08\0\0\0" + bytes(32)
INSIDE = png(rows_of(1, 8, 8))
ICO = struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 8, 8, 0, 0, 1, 24, len(INSIDE), 22) + INSIDE
SVG = b"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="http://127.0.0.1/"/><text>&x;</text></svg>"""

for name, data in (
        ("avif", AVIF),
        ("avif_sequence", AVIS),
        ("avif_grid_of_tiles", grid()),
        ("heic", HEIC),
        ("heif_sequence", heif(b"msf1", b"hvc1", b"hevc")),
        ("heif_of_any_codec", heif(b"mif1", b"jpeg")),
        ("jpeg_xl", JXL),
        ("jpeg_xl_in_boxes", JXL_BOX),
        ("jpeg_2000", JP2),
        ("jpeg_2000_stream", J2K),
        ("jpeg_xr", b"II\xbc\1" + bytes(60)),
        ("tiff", TIFF),
        ("tiff_other_order", b"MM\0*" + bytes(60)),
        ("big_tiff", BIG_TIFF),
        ("camera_raw", b"II*\0\x10\0\0\0CR\2\0" + bytes(60)),
        ("ico", ICO),
        ("cursor", b"\0\0\2\0" + ICO[4:]),
        ("svg", SVG),
        ("svg_packed", b"\x1f\x8b\x08\0" + bytes(60)),
        ("photoshop", b"8BPS\0\1" + bytes(60)),
        ("exr", b"\x76\x2f\x31\x01" + bytes(60)),
        ("dds", b"DDS \x7c\0\0\0" + bytes(120)),
        ("qoi", b"qoif" + struct.pack(">IIBB", 9, 9, 3, 0) + bytes(8)),
        ("portable_pixmap", b"P6 1 1 255 abc"),
        ("targa", bytes([0, 0, 2]) + bytes(9) + b"\1\0\1\0\x18\0abc"),
        ("flif", b"FLIF1" + bytes(60)),
        ("icns", b"icns" + struct.pack(">I", 8)),
        ("pdf", b"%PDF-1.7\n" + bytes(60)),
        ("mng", b"\x8aMNG\r\n\x1a\n" + bytes(60)),
        ("wave", b"RIFF\x24\0\0\0WAVEfmt " + bytes(60)),
        ("avi", b"RIFF\x24\0\0\0AVI LIST" + bytes(60)),
        ("nothing_but_zeros", bytes(1000)),
        ("one_byte", b"\xff")):
    attack.case(name, part(data, type="image/" + name.split("_", maxsplit=1)[0]), words=PICTURE)

for name, data in (
        ("avif", AVIF),
        ("avif_sequence", AVIS),
        ("avif_grid", grid()),
        ("heic", HEIC),
        ("svg", SVG),
        ("gif", b"GIF89a"),
        ("avi", b"RIFF\x24\0\0\0AVI LIST"),
        ("flash", b"FLV\1\5\0\0\0\x09"),
        ("ogg", b"OggS" + bytes(60)),
        ("transport_stream", (b"\x47" + bytes(187)) * 5),
        ("playlist", b"#EXTM3U\nfile:///etc/passwd\n"),
        ("concatenation", b"ffconcat version 1.0\nfile /etc/passwd\n"),
        ("session", b"v=0\no=- 0 0 IN IP4 127.0.0.1\n")):
    attack.case(name + "_as_video", part(data, "video"), words=VIDEO, needs="video")

# Kinds of JPEG and PNG that share a signature with those that are read
attack.case("jpeg_lossless", part(jpeg(segment(0xC3, b"\x08\0\x08\0\x08\1\1\x11\0"))), words="\"JPEG\" picture")
attack.case("jpeg_ls", part(b"\xff\xd8\xff\xf7\0\x0b\x08\0\x08\0\x08\1\1\x11\0" + bytes(60)), words="\"JPEG\" picture")
attack.case("jpeg_of_12_bits",
            part(b"\xff\xd8" + segment(0xC1, b"\x0c\0\x08\0\x08\1\1\x11\0") + segment(0xDA, b"\1\1\0\0\x3f\0")),
            words="12 bits for each of 1 colours")
attack.case("png_of_a_colour_type_that_is_none",
            part(SIGNATURE + head(8, 8, colour=5) + pixels(rows_of(1, 8, 8)) + END), words="\"PNG\" picture is damaged")
attack.case("png_of_an_iphone",
            part(SIGNATURE + chunk(b"CgBI", bytes(4)) + head(8, 8) + pixels(rows_of(1, 8, 8)) + END),
            words="it does not begin with its size")
ROWS = rows_of(2, 20, 20)
attack.case("png_that_moves_is_its_first_picture",
            part(png(ROWS, before=chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0)) +
                     chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 2**31 - 1, 2**31 - 1, 0, 0, 1, 1, 0, 0)),
                     behind=chunk(b"fdAT", struct.pack(">I", 1) + bytes(40)))), like=png(ROWS))

attack.main()
