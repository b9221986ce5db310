#!/usr/bin/env python3
"""Files that are two things at once, and types that lie: the first bytes decide what a file is, it is read as that and
as nothing else, and what stands in it is never looked up.

usage: tests/attack/media_polyglots.py --motet PROGRAM [NAME ...]"""

import io
import struct
import zipfile

from media import (Attack, END, SIGNATURE, bmp, box, brand, chunk, gif, head, jpeg, part, pixels, png, riff, rows_of,
                   sample, segment, webp)

attack = Attack("attack_media_polyglots")

ROWS = rows_of(5, 45, 31)
PLAIN, PNG, GIF, BMP, WEBP, VIDEO = jpeg(), png(ROWS), gif(), bmp(33, 21), webp(), sample("videos/h264.mp4")
HTML = b"<html><script>alert(document.cookie)</script><img src=http://127.0.0.1/></html>"
SCRIPT = b"*/=1;fetch('http://127.0.0.1');//"
KNOWN = "are no picture that is known here"
NO_VIDEO = "are no video that is known here"


def archive(first=b""):
    """A ZIP, which is read from its end, behind other bytes."""
    out = io.BytesIO(first)
    with zipfile.ZipFile(out, "a") as z:
        z.writestr("../../etc/passwd", "root")
    return out.getvalue()


def document(inside):
    """A PDF that shows a picture."""
    return (b"%PDF-1.4\n1 0 obj<</Type/XObject/Subtype/Image/Filter/DCTDecode/Length " + str(len(inside)).encode() +
            b">>stream\n" + inside + b"\nendstream endobj\n%%EOF\n")


# What stands behind a picture, or in a comment of it, is not looked at
for name, data, like in (
        ("jpeg_and_zip", archive(PLAIN), PLAIN),
        ("png_and_zip", archive(PNG), PNG),
        ("gif_and_zip", archive(GIF), GIF),
        ("bmp_and_zip", archive(BMP), BMP),
        ("jpeg_and_html", PLAIN + HTML, PLAIN),
        ("png_and_html", PNG + HTML, PNG),
        ("png_and_php", PNG + b"<?php system($_GET[0]); ?>", PNG),
        ("gif_and_html", GIF + HTML, GIF),
        ("jpeg_and_png", PLAIN + PNG, PLAIN),
        ("png_and_jpeg", PNG + PLAIN, PNG),
        ("png_and_png", PNG + png(rows_of(6, 9, 9)), PNG),
        ("jpeg_and_jpeg", PLAIN + jpeg(base="images/grey.jpg"), PLAIN),
        ("jpeg_and_video", PLAIN + VIDEO, PLAIN),
        ("png_and_pdf", PNG + document(PLAIN), PNG),
        ("png_and_program", PNG + b"\x7fELF\2\1\1" + bytes(60), PNG),
        ("gif_with_a_script_in_a_comment", gif(extension=b"!\xfe" + bytes([len(SCRIPT)]) + SCRIPT + b"\0"), GIF),
        ("jpeg_with_php_in_a_comment", jpeg(segment(0xFE, b"<?php phpinfo(); ?>")), PLAIN),
        ("jpeg_with_a_png_in_a_segment", jpeg(segment(0xE5, PNG[:60000])), PLAIN),
        ("jpeg_with_a_zip_in_a_segment", jpeg(segment(0xE5, archive())), PLAIN),
        ("jpeg_with_html_in_exif", jpeg(segment(0xE1, b"Exif\0\0" + HTML)), PLAIN),
        ("png_with_html_in_a_text", png(ROWS, before=chunk(b"tEXt", b"Comment\0" + HTML)), PNG),
        ("png_with_a_picture_in_a_chunk", png(ROWS, before=chunk(b"prVt", PLAIN)), PNG),
        ("png_with_a_url_in_a_text", png(ROWS, before=chunk(b"tEXt", b"URL\0file:///etc/passwd")), PNG)):
    attack.case(name, part(data), like=like)
attack.case("webp_and_html", part(WEBP + HTML), like=WEBP, needs="webp")
attack.case("webp_with_a_zip_in_a_chunk", part(webp(riff(b"EVIL", archive()))), like=WEBP, needs="webp")

# What stands before a picture makes it another file
for name, data in (
        ("html_then_png", HTML + PNG),
        ("zip_then_jpeg", archive() + PLAIN),
        ("pdf_with_a_jpeg_in_it", document(PLAIN)),
        ("pdf_with_a_png_in_it", document(PNG)),
        ("line_end_then_jpeg", b"\n" + PLAIN),
        ("mark_then_png", b"\xef\xbb\xbf" + PNG),
        ("png_of_text_mode", PNG.replace(b"\r\n", b"\n", 1)),
        ("gif_in_small_letters", b"gif89a" + GIF[6:]),
        ("gif_of_another_year", b"GIF90a" + GIF[6:]),
        ("riff_of_another_kind", b"RIFF" + WEBP[4:8] + b"AVI " + WEBP[12:]),
        ("script", b"#!/bin/sh\ncat /etc/passwd\n"),
        ("program", b"\x7fELF\2\1\1" + bytes(100)),
        ("data_url_in_a_data_url", b"data:image/png;base64,iVBORw0KGgo="),
        ("video", VIDEO),
        ("webm", sample("videos/vp9.webm")),
        ("boxes_then_jpeg", brand(b"isom") + PLAIN),
        ("boxes_with_a_png_in_them", brand(b"isom") + box(b"mdat", PNG)),
        ("gzip_of_nothing", b"\x1f\x8b\x08\0" + bytes(20))):
    attack.case(name, part(data), words=KNOWN)

# What begins like a picture and goes on as something else is a damaged picture
for name, data, words in (
        ("jpeg_that_is_a_video", b"\xff\xd8\xff\xe0" + VIDEO[4:], "\"JPEG\" picture"),
        ("png_that_is_a_video", SIGNATURE + VIDEO[8:], "\"PNG\" picture is damaged (it does not begin with its size)"),
        ("gif_that_is_a_script", b"GIF89a" + SCRIPT + bytes(50), "\"GIF\" picture"),
        ("gif_that_is_html", b"GIF89a" + HTML, "\"GIF\" picture"),
        ("bmp_that_is_a_text", b"BM=1;" + SCRIPT * 3, "\"BMP\" picture"),
        ("bmp_alone", b"BM", "\"BMP\" picture"),
        ("png_of_two_sizes", SIGNATURE + head(45, 31) + head(9, 9) + pixels(ROWS) + END, "\"PNG\" picture"),
        ("png_without_pixels", SIGNATURE + head(45, 31) + END, "\"PNG\" picture"),
        ("jpeg_of_two_sizes", jpeg(segment(0xC0, b"\x08\0\x09\0\x09\1\1\x11\0")), "\"JPEG\" picture")):
    attack.case(name, part(data), words=words)
attack.case("webp_that_is_html", part(b"RIFF\xff\0\0\0WEBP" + HTML), words="\"WebP\" picture", needs="webp")

# Types that lie, and pictures as videos
for name, data, kind, like in (
        ("png_as_jpeg", PNG, "image/jpeg", PNG),
        ("jpeg_as_avif", PLAIN, "image/avif", PLAIN),
        ("png_as_html", PNG, "text/html", PNG),
        ("png_as_script", PNG, "application/javascript", PNG),
        ("png_as_svg", PNG, "image/svg+xml", PNG),
        ("gif_as_video", GIF, "video/mp4", GIF),
        ("bmp_as_a_long_type", BMP, "x" * 5000, BMP),
        ("png_as_no_type", PNG, "", PNG),
        ("png_with_parameters", PNG, "image/png;charset=../../etc/passwd;name=\"a\"", PNG)):
    attack.case("typed_" + name, part(data, type=kind) if kind else {"type": "image_url", "image_url": {
        "url": part(data)["image_url"]["url"].replace("image/png", "")}}, like=like)
attack.case("typed_html_as_png", part(HTML), words=KNOWN)
for name, data in (("jpeg", PLAIN), ("png", PNG), ("gif", GIF), ("webp", WEBP), ("zip", archive()), ("html", HTML),
                   ("jpeg_then_video", PLAIN + VIDEO), ("pdf", document(PLAIN))):
    attack.case("as_video_" + name, part(data, "video"), words=NO_VIDEO, needs="video")
for name, data in (("mp4_of_a_png", brand(b"isom") + box(b"mdat", PNG)), ("mp4_that_names_a_file",
                    brand(b"qt  ") + box(b"moov", box(b"trak", box(b"mdia", box(b"minf", box(b"dinf", box(
                        b"dref", bytes(7) + b"\1" + box(b"url ", bytes(4) + b"file:///etc/passwd\0")))))))),
                   ("mp4_that_is_html", brand(b"isom", HTML)), ("webm_that_is_html", b"\x1a\x45\xdf\xa3" + HTML),
                   ("webm_of_another_kind", b"\x1a\x45\xdf\xa3\x87\x42\x82\x84html" + bytes(20)),
                   ("mp4_cut_off", VIDEO[:200]), ("mp4_that_is_half_a_webm", VIDEO[:40] + sample("videos/vp9.webm"))):
    attack.case("as_video_" + name, part(data, "video"), words="the video ", needs="video")

attack.main()
