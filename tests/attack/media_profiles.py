#!/usr/bin/env python3
"""Colour profiles that are huge, cut off, packed into each other or wrongly numbered: no model is shown colours through
them, so a picture with any of them is the picture without.

usage: tests/attack/media_profiles.py --motet PROGRAM [NAME ...]"""

import struct
import zlib

from media import ICC, Attack, chunk, jpeg, noise, part, png, riff, rows_of, segment, webp

attack = Attack("attack_media_profiles")

ROWS = rows_of(4, 45, 31)
PLAIN, PNG, WEBP = jpeg(), png(ROWS), webp()


def profile(size=400, claims=None, tags=1, offset=144, length=20):
    """The head of a profile for RGB and its table of tags."""
    head = struct.pack(">I", size if claims is None else claims) + b"lcms\4\x30\0\0mntrRGB XYZ " + bytes(12) + b"acsp"
    table = struct.pack(">I", tags) + b"rXYZ" + struct.pack(">II", offset, length)
    return (head + bytes(128 - len(head)) + table).ljust(size, b"\1")


def app2(data, number, count):
    return segment(0xE2, b"ICC_PROFILE\0" + bytes([number, count]) + data)


def iccp(data, name=b"icc", method=0, packed=True, crc=None):
    return chunk(b"iCCP", name + b"\0" + bytes([method]) + (zlib.compress(data, 9) if packed else data), crc)


def bomb(size, times=1):
    data = zlib.compress(bytes(size), 9)
    for _ in range(times - 1):
        data = zlib.compress(data, 9)
    return data


# JPEG: a profile comes in up to 255 segments that have numbers
for name, segments in (
        ("a_profile_in_order", [app2(profile(), 1, 1)]),
        ("two_megabytes_in_32_segments", [app2(noise(i, 65000), i + 1, 32) for i in range(32)]),
        ("one_byte_in_each_of_255_segments", [app2(b"x", i + 1, 255) for i in range(255)]),
        ("number_0_of_0", [app2(profile(), 0, 0)]),
        ("number_0_of_1", [app2(profile(), 0, 1)]),
        ("number_5_of_2", [app2(profile(), 5, 2)]),
        ("number_255_of_1", [app2(profile(), 255, 1)]),
        ("the_same_number_a_hundred_times", [app2(profile(), 1, 2)] * 100),
        ("the_second_half_alone", [app2(profile(), 2, 2)]),
        ("halves_in_the_wrong_order", [app2(profile()[200:], 2, 2), app2(profile()[:200], 1, 2)]),
        ("counts_that_differ", [app2(profile()[:200], 1, 2), app2(profile()[200:], 2, 3)]),
        ("no_number", [segment(0xE2, b"ICC_PROFILE\0")]),
        ("half_a_name", [segment(0xE2, b"ICC_PRO")]),
        ("an_empty_profile", [app2(b"", 1, 1)]),
        ("a_profile_cut_off", [app2(profile()[:90], 1, 1)]),
        ("a_size_of_four_gigabytes", [app2(profile(claims=2**32 - 1), 1, 1)]),
        ("a_size_of_0", [app2(profile(claims=0), 1, 1)]),
        ("tags_without_end", [app2(profile(tags=2**32 - 1), 1, 1)]),
        ("a_tag_beyond_the_end", [app2(profile(offset=2**32 - 1, length=2**32 - 1), 1, 1)]),
        ("a_tag_that_is_the_table", [app2(profile(offset=128), 1, 1)]),
        ("adobe_with_a_transform_that_is_none", [segment(0xEE, b"Adobe\0\x64\0\0\0\0\1")]),
        ("pictures_behind_that_are_told_and_missing", [segment(0xE2, b"MPF\0II*\0\x08\0\0\0" + struct.pack(
            "<HHHII", 1, 0xB002, 7, 2**32 - 1, 2**32 - 1))])):
    attack.case("jpeg_" + name, part(jpeg(*segments)), like=PLAIN)
attack.case("jpeg_a_profile_longer_than_the_file", part(jpeg(segment(0xE2, b"ICC_PROFILE\0\1\1", 65535))),
            words="\"JPEG\" picture")

# PNG: a profile is packed by zlib
for name, chunks in (
        ("a_profile_in_order", iccp(profile())),
        ("a_profile_of_100_megabytes", iccp(bytes(100 << 20))),
        ("a_profile_packed_three_times", iccp(bomb(100 << 20, 3), packed=False)),
        ("a_profile_packed_in_itself", iccp(bomb(100 << 20, 2))),
        ("a_profile_that_is_not_packed", iccp(profile(), packed=False)),
        ("a_profile_cut_off", iccp(zlib.compress(profile())[:20], packed=False)),
        ("a_profile_with_another_checksum", iccp(profile(), crc=1)),
        ("a_method_that_is_none", iccp(profile(), method=9)),
        ("no_name", iccp(profile(), name=b"")),
        ("a_name_of_a_thousand_bytes", iccp(profile(), name=b"n" * 1000)),
        ("no_end_of_the_name", chunk(b"iCCP", b"n" * 70)),
        ("an_empty_chunk", chunk(b"iCCP", b"")),
        ("two_profiles", iccp(profile()) * 2),
        ("a_profile_beside_srgb", iccp(profile()) + chunk(b"sRGB", b"\0")),
        ("a_hundred_profiles", iccp(bytes(1 << 20)) * 100),
        ("a_size_of_four_gigabytes", iccp(profile(claims=2**32 - 1))),
        ("a_gamma_of_0", chunk(b"gAMA", bytes(4))),
        ("a_gamma_of_everything", chunk(b"gAMA", b"\xff" * 4)),
        ("colours_that_are_none", chunk(b"cHRM", b"\xff" * 32)),
        ("colours_of_nothing", chunk(b"cHRM", bytes(32))),
        ("an_intent_that_is_none", chunk(b"sRGB", b"\xff"))):
    attack.case("png_" + name, part(png(ROWS, before=chunks)), like=PNG)
attack.case("png_a_profile_behind_the_pixels", part(png(ROWS, behind=iccp(profile()))), like=PNG)
attack.case("png_a_profile_longer_than_the_file",
            part(png(ROWS)[:33] + struct.pack(">I", 2**31 - 1) + b"iCCP" + profile()), words="\"PNG\" picture")

# WebP: a profile is a chunk of its own
for name, chunks, flags in (
        ("a_profile_in_order", [riff(b"ICCP", profile())], ICC),
        ("a_profile_of_a_megabyte", [riff(b"ICCP", noise(1, 1 << 20))], ICC),
        ("an_empty_profile", [riff(b"ICCP", b"")], ICC),
        ("a_profile_that_is_told_and_missing", [], ICC),
        ("a_profile_that_is_not_told", [riff(b"ICCP", profile())], 0),
        ("two_profiles", [riff(b"ICCP", profile())] * 2, ICC)):
    attack.case("webp_" + name, part(webp(before=chunks, flags=flags)), like=WEBP, needs="webp")
attack.case("webp_a_profile_longer_than_the_file", part(webp(before=[riff(b"ICCP", profile(), 2**31)], flags=ICC)),
            words="\"WebP\" picture", needs="webp")

attack.main()
