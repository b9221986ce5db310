#!/usr/bin/env python3
"""EXIF and XMP data that lie: pictures are turned where the data say so in order, and are never lost to what they say
otherwise.

usage: tests/attack/media_metadata.py --motet PROGRAM [NAME ...]"""

import struct
import zlib

from media import EXIF, XMP, Attack, app1, chunk, exif, jpeg, part, png, riff, rows_of, segment, turn, webp, xmp

attack = Attack("attack_media_metadata")

ROWS = rows_of(3, 45, 31)
PLAIN, TURNED = jpeg(), jpeg(app1(exif(6)))
PNG, PNG_TURNED = png(ROWS), png(turn(ROWS))
WEBP = webp()
POINTER = 0x8769  # the tag that names another IFD


def as_png(name, data, like=PNG, **more):
    attack.case(name, part(data), like=like, **more)


def profile(data, kind=b"tEXt"):
    """EXIF data as ImageMagick writes them: digits in a text."""
    text = b"\nexif\n" + b"%8d" % len(data) + b"\n" + data.hex().encode() + b"\n"
    name = b"Raw profile type exif\0"
    return chunk(kind, name + (b"\0" + zlib.compress(text) if kind == b"zTXt" else text))


def texts(data, packed=False):
    data = b"\1\0\0\0" + zlib.compress(data) if packed else b"\0\0\0\0" + data
    return chunk(b"iTXt", b"XML:com.adobe.xmp\0" + data)


# What is in order is obeyed and seen: otherwise "as it was" would prove nothing
attack.differ("a_turned_jpeg_is_another_picture", PLAIN, TURNED)
attack.differ("a_turned_png_is_another_picture", PNG, PNG_TURNED)
attack.case("exif_turns", part(jpeg(app1(exif(6)))), like=TURNED)
attack.case("exif_turns_in_the_other_order_of_bytes", part(jpeg(app1(exif(6, big=True)))), like=TURNED)
attack.case("xmp_turns", part(jpeg(xmp(b"<x tiff:Orientation=\"6\"/>"))), like=TURNED)
as_png("exif_turns_a_png", png(ROWS, before=chunk(b"eXIf", exif(6))), PNG_TURNED)
as_png("exif_behind_the_pixels_turns_a_png", png(ROWS, behind=chunk(b"eXIf", exif(6))), PNG_TURNED)
as_png("a_text_of_digits_turns_a_png", png(ROWS, before=profile(exif(6))), PNG_TURNED)
as_png("a_packed_text_of_digits_turns_a_png", png(ROWS, before=profile(exif(6), b"zTXt")), PNG_TURNED)
as_png("packed_xmp_turns_a_png", png(ROWS, before=texts(b"tiff:Orientation>6<", True)), PNG_TURNED)
attack.case("exif_turns_a_webp", part(webp(riff(b"EXIF", exif(6)), flags=EXIF)),
            like=webp(riff(b"XMP ", b"tiff:Orientation>6<"), flags=XMP), needs="webp")

# Of JPEG
for name, data in (
        ("orientation_0", exif(0)),
        ("orientation_9", exif(9)),
        ("orientation_65535", exif(65535)),
        ("orientation_as_a_huge_number", exif(2**32 - 1, kind=4)),
        ("orientation_as_text", exif(6, kind=2)),
        ("orientation_of_no_known_type", exif(6, kind=999)),
        ("a_count_of_four_billion", exif(6, count=2**32 - 1)),
        ("a_count_that_wraps", exif(6, count=2**31)),
        ("an_ifd_beyond_the_end", exif(6, at=5000)),
        ("an_ifd_at_the_last_address", exif(6, at=2**32 - 1)),
        ("an_ifd_at_the_last_byte", exif(6, at=25)),
        ("an_ifd_that_is_the_header", exif(6, at=0)),
        ("an_ifd_that_follows_itself", exif(1, tag=1, following=8)),
        ("ifds_that_follow_each_other", exif(1, tag=1, following=26, body=struct.pack("<HI", 0, 8))),
        ("an_ifd_that_contains_itself", exif(8, kind=4, tag=POINTER)),
        ("a_thousand_ifds", exif(1, tag=1, following=26, body=b"".join(
            struct.pack("<HI", 0, 32 + 6 * i) for i in range(1000)))),
        ("entries_without_end", exif(1, tag=1, entries=65535)),
        ("no_entries", exif(6, entries=0)),
        ("a_maker_note_of_four_gigabytes", exif(8, kind=7, tag=0x927C, count=2**32 - 1)),
        ("a_header_alone", b"II*\0"),
        ("nothing", b""),
        ("no_tiff", b"junk" * 10),
        ("an_order_of_bytes_that_is_none", b"IM" + exif(6)[2:]),
        ("numbers_in_the_wrong_order", b"MM\0*" + exif(6)[4:]),
        ("a_segment_full_of_entries", exif(1, tag=1, entries=5400, body=struct.pack("<HHII", 2, 3, 1, 6) * 5300))):
    attack.case("jpeg_" + name, part(jpeg(app1(data))), like=PLAIN)
attack.case("jpeg_the_last_of_many_entries_counts", part(jpeg(app1(exif(
    1, tag=1, entries=5000, body=bytes(8) + struct.pack("<HHII", 2, 3, 1, 6) * 4000 +
    struct.pack("<HHII", 0x0112, 3, 1, 6))))), like=TURNED)
attack.case("jpeg_two_hundred_exifs", part(jpeg(*[app1(exif(1, tag=1))] * 200)), like=PLAIN)
attack.case("jpeg_exif_longer_than_the_file", part(jpeg(segment(0xE1, b"Exif\0\0", 65535))), words="\"JPEG\" picture")
attack.case("jpeg_a_segment_of_length_0", part(jpeg(segment(0xE1, b"", 0))), like=PLAIN)
attack.case("jpeg_a_segment_of_length_1", part(jpeg(segment(0xE1, b"", 1))), like=PLAIN)
LAUGHS = b"<!DOCTYPE x [<!ENTITY a \"ha\">" + b"".join(
    b"<!ENTITY %c \"%s\">" % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9)) + b"]><x tiff:Orientation=\"&j;\"/>"
for name, text in (
        ("billion_laughs", LAUGHS),
        ("outside_entity", b"<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><x/>"),
        ("orientation_9", b"tiff:Orientation=\"9\""),
        ("orientation_0", b"tiff:Orientation>0<"),
        ("names_without_values", b"tiff:Orientation" * 4000),
        ("a_name_at_the_end", b"x" * 60000 + b"tiff:Orientation=\""),
        ("a_name_and_a_bracket_at_the_end", b"tiff:Orientation>"),
        ("deep_elements", b"<a>" * 20000),
        ("no_text", b"\xff\xfe\0\0" * 1000)):
    attack.case("xmp_" + name, part(jpeg(xmp(text))), like=PLAIN)
attack.case("xmp_full_segment_turns", part(jpeg(xmp(b" " * 65000 + b"tiff:Orientation>6"))), like=TURNED)

# Of PNG
as_png("png_exif_of_a_wrong_checksum", png(ROWS, before=chunk(b"eXIf", exif(6), 0)))
as_png("png_exif_that_points_outside", png(ROWS, before=chunk(b"eXIf", exif(6, at=2**32 - 1))))
as_png("png_exif_that_is_empty", png(ROWS, before=chunk(b"eXIf", b"")))
as_png("png_exif_of_a_megabyte", png(ROWS, before=chunk(b"eXIf", exif(1, tag=1, entries=65535, body=bytes(1 << 20)))))
as_png("png_a_thousand_exifs", png(ROWS, before=chunk(b"eXIf", exif(1)) * 1000))
as_png("png_exif_behind_the_end", png(ROWS, last=chunk(b"eXIf", exif(6))))
attack.case("png_exif_longer_than_the_file", part(png(ROWS)[:33] + struct.pack(">I", 2**31 - 1) + b"eXIf" + exif(6)),
            words="\"PNG\" picture")
as_png("png_digits_that_are_none", png(ROWS, before=chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 4\nzzzz\n")))
as_png("png_digits_without_lines", png(ROWS, before=chunk(b"tEXt", b"Raw profile type exif\0" + b"49492a00" * 9000)))
as_png("png_a_packed_text_of_100_megabytes",
       png(ROWS, before=chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(bytes(100 << 20), 9))))
as_png("png_packed_xmp_of_100_megabytes",
       png(ROWS, before=chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(b"<a>" * (33 << 20), 9))))
as_png("png_a_packed_text_in_a_packed_text", png(ROWS, before=profile(zlib.compress(zlib.compress(exif(6))), b"zTXt")))
as_png("png_a_packed_text_that_is_not_packed", png(ROWS, before=chunk(b"zTXt", b"Raw profile type exif\0\0junk" * 3)))
as_png("png_a_text_that_is_its_name", png(ROWS, before=chunk(b"iTXt", b"XML:com.adobe.xmp\0")))
as_png("png_a_text_without_a_name",
       png(ROWS, before=chunk(b"tEXt", b"") + chunk(b"zTXt", b"\0") + chunk(b"iTXt", b"\0\1")))

# Of WebP
for name, chunks, flags in (("exif_that_points_outside", [riff(b"EXIF", exif(6, at=2**32 - 1))], EXIF),
                            ("exif_orientation_9", [riff(b"EXIF", exif(9))], EXIF),
                            ("exif_that_follows_itself", [riff(b"EXIF", exif(1, tag=1, following=8))], EXIF),
                            ("exif_that_is_empty", [riff(b"EXIF", b"")], EXIF),
                            ("exif_that_is_told_and_missing", [], EXIF), ("xmp_that_is_told_and_missing", [], XMP),
                            ("xmp_without_a_value", [riff(b"XMP ", b"tiff:Orientation=\"")], XMP)):
    attack.case("webp_" + name, part(webp(*chunks, flags=flags)), like=WEBP, needs="webp")
attack.case("webp_exif_longer_than_the_file", part(webp(riff(b"EXIF", exif(6), 2**31), flags=EXIF)),
            words="\"WebP\" picture", needs="webp")

attack.main()
