#!/usr/bin/env python3
"""Small files that would take long or much to decode: they are refused by what their headers say.

usage: tests/attack/media_costs.py --motet PROGRAM [NAME ...]"""

import struct
import zlib

from media import (Attack, END, SIGNATURE, bmp, box, brand, chunk, gif, head, jpeg, part, png, riff, rows_of, sample,
                   scans, webp)

attack = Attack("attack_media_costs")

TOO_MANY = "and 67108864 are allowed: send a smaller one"
SCANS = "or one with fewer scans"


def flat(width, height):
    """A lossless WebP of one colour, whose pixels have no bits at all."""
    bits, count = 0, 0
    for value, length in [(width - 1, 14), (height - 1, 14), (0, 4), (0, 3), *[(1, 4)] * 5]:
        bits |= value << count
        count += length
    body = b"WEBP" + riff(b"VP8L", b"\x2f" + bits.to_bytes((count + 7) // 8 + 1, "little"))
    return b"RIFF" + struct.pack("<I", len(body)) + body


def moving(width, height, frames):
    """An animation of frames of one pixel."""
    frame = bytes(12) + b"\x64\0\0\0" + flat(1, 1)[12:]
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = (b"WEBP" + riff(b"VP8X", b"\2\0\0\0" + size) + riff(b"ANIM", bytes(6)) + riff(b"ANMF", frame) * frames)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def small(data):
    """A picture of which the model sees little."""
    return {**part(data), "max_pixels": 1024}


def track(width, height, count):
    """An MP4 that lists so many frames and has none."""
    entry = box(b"avc1", bytes(7) + b"\1" + bytes(16) + struct.pack(">HH", width, height) + bytes(50))
    table = (box(b"stsd", bytes(7) + b"\1" + entry) + box(b"stsz", bytes(4) + struct.pack(">II", 1, count)))
    return brand(b"isom") + box(b"moov", box(b"trak", box(b"mdia", box(b"minf", box(b"stbl", table)))))


# Scans: each costs as much as the picture
attack.case("a_jpeg_of_80_scans", part(scans(8000, 80, 32000)),
            words="is 8000x8000 pixels in 80 scans, and 16 are allowed")
attack.case("a_jpeg_of_17_scans", part(scans(8192, 17)), words=SCANS)
attack.case("a_jpeg_of_65_scans_and_fewer_pixels", part(scans(4096, 65)), words=SCANS)
attack.case("a_jpeg_of_500_scans", part(scans(8000, 500)),
            words="has more than 100 scans: save it with fewer, or as baseline")
attack.case("a_small_jpeg_of_101_scans", part(scans(8, 101)), words="has more than 100 scans")
attack.case("a_jpeg_of_scans_behind_segments_without_length",
            part(scans(8000, 2).replace(b"\xff\xd9", b"\xff\xe5\0\0" + scans(8000, 80)[-1000:])), words=SCANS)
attack.case("a_jpeg_of_scans_and_restarts", part(scans(8000, 80).replace(b"\xff\xda", b"\xff\xd0\xff\xff\xff\xda")),
            words=SCANS)
attack.case("a_second_jpeg_with_scans_does_not_count", part(jpeg() + scans(8000, 80)), like=jpeg())
attack.case("all_scans_that_a_small_jpeg_may_have", part(scans(64, 100)), like=scans(64, 2))
attack.case("many_jpegs_of_many_scans", *[small(scans(2048, 100, 4096))] * 11,
            words="4614 million pixels to decode up to here")

# Pixels
attack.case("a_png_of_4_billion_pixels", part(SIGNATURE + head(65535, 65535) + END), words=TOO_MANY)
attack.case("a_png_as_wide_as_can_be", part(SIGNATURE + head(2**31 - 1, 1) + END), words="and a side may have 65535")
attack.case("a_png_of_2_to_the_62_pixels", part(SIGNATURE + head(2**31 - 1, 2**31 - 1) + END),
            words="a side may have 65535")
attack.case("a_png_without_width", part(SIGNATURE + head(0, 100) + END), words="send one that has some")
attack.case("a_png_of_too_few_bytes_for_its_pixels", part(SIGNATURE + head(8192, 8192, 16, 6) + END),
            words="ends early")
attack.case("a_png_whose_pixels_go_on_for_ever",
            part(SIGNATURE + head(45, 1) + chunk(b"IDAT", zlib.compress(bytes(100 << 20), 9)) + END),
            like=SIGNATURE + head(45, 1) + chunk(b"IDAT", zlib.compress(bytes(136))) + END)
attack.case("a_png_in_a_hundred_thousand_parts",
            part(png(rows_of(1, 9, 9), behind=chunk(b"IDAT", b"") * 100000)), like=png(rows_of(1, 9, 9)))
attack.case("a_gif_of_4_billion_pixels", part(gif(65535, 65535)), words=TOO_MANY)
attack.case("a_gif_whose_frame_enlarges_it", part(gif().replace(b"," + bytes(4), b"," + b"\xff\xff\xff\xff", 1)),
            words="65535")
attack.case("a_bmp_of_4_billion_pixels", part(bmp(4, 4)[:18] + struct.pack("<ii", 65535, 65535) + bmp(4, 4)[26:]),
            words=TOO_MANY)
attack.case("a_bmp_of_less_than_no_rows", part(bmp(4, 4)[:18] + struct.pack("<ii", 4, -2**31) + bmp(4, 4)[26:]),
            words="\"BMP\" picture")
attack.case("a_jpeg_of_4_billion_pixels", part(scans(65500, 1)), words=TOO_MANY)
for name, data, words in (("a_webp_of_a_large_canvas", moving(16384, 16384, 2), TOO_MANY),
                          ("a_webp_of_a_canvas_beyond_all", moving(1 << 24, 1 << 24, 1), "\"WebP\" picture"),
                          ("a_webp_of_two_sizes", webp(canvas=(16384, 16384)), "its chunks make no sense"),
                          ("a_webp_without_bits_of_too_many_pixels", flat(16384, 16384), TOO_MANY)):
    attack.case(name, part(data), words=words, needs="webp")
attack.case("a_webp_without_bits", small(flat(2048, 2048)), like=flat(32, 32), needs="webp")
attack.case("a_hundred_thousand_pictures_in_a_webp_are_its_first", part(moving(32, 32, 100000)), like=moving(32, 32, 1),
            needs="webp")

# Frames
for name, data, words in (
        ("a_video_that_lists_a_billion_frames", track(64, 48, 1 << 30), "the video lists 1073741824 samples"),
        ("a_video_that_lists_too_many_pixels", track(4096, 4096, 36000), "the video lists frames of 603980 million"),
        ("a_video_of_4_billion_pixels_a_frame", track(65535, 65535, 1), "the video "),
        ("a_video_of_no_pixels", track(0, 0, 100), "the video "),
        ("a_video_cut_in_its_list", sample("videos/h264.mp4")[:700], "the video "),
        ("a_video_of_boxes_in_boxes", brand(b"isom") + b"\0\0\0\0moov" * 50000, "the video "),
        ("a_video_of_many_tracks", brand(b"isom") + box(b"moov", box(b"trak", b"") * 100000), "the video "),
        ("a_webm_of_unknown_lengths", b"\x1a\x45\xdf\xa3\x80" + b"\x18\x53\x80\x67\x01" + b"\xff" * 7 +
         (b"\x1f\x43\xb6\x75\x01" + b"\xff" * 7) * 20000, "the video ")):
    attack.case(name, part(data, "video"), words=words, needs="video")

attack.main()
