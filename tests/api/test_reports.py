#!/usr/bin/env python3
"""In a build with a sanitizer: its reports from processes that the kernel confines are seen, and fail the test that met
them. Reports are planted (base/crash.h).

usage: tests/api/test_reports.py --motet PROGRAM [NAME ...]"""

import base64
import os
import struct
import zlib

import served

SUITE = served.Suite("api_reports")
test, start = SUITE.test, SUITE.start
SIGHTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "sighted", "gemma3vl-bf16")
KINDS = {"address": (b"__asan_init", "ERROR: AddressSanitizer: heap-buffer-overflow"),
         "undefined": (b"__ubsan_handle", "runtime error: signed integer overflow")}


def kinds():
    """Those that the build has."""
    with open(SUITE.program, "rb") as f:
        program = f.read()
    if b"MOTET_TEST_PLANT" not in program:
        raise served.Skip("motet was built without sanitizers")
    found = {kind: sentence for kind, (symbol, sentence) in KINDS.items() if symbol in program}
    if not found:
        raise served.Skip("the thread sanitizer does not live in a sandbox")
    return found.items()


@test
def a_report_of_a_locked_server_is_seen():
    for kind, sentence in kinds():
        try:
            start(env={"MOTET_TEST_PLANT": "server:" + kind})
        except AssertionError as error:
            assert "a sanitizer reports:" in str(error) and sentence in str(error), error
        else:
            raise AssertionError("the server runs")


def picture():
    """A PNG of one pixel, as a part of a message."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"\0abc")) + chunk(b"IEND", b""))
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(data).decode()}}


@test
def a_report_of_a_decoder_is_seen():
    for kind, sentence in kinds():
        server = start(folder=SIGHTED, env={"MOTET_TEST_PLANT": "decoder:" + kind})
        message = {"role": "user", "content": [picture(), {"type": "text", "text": "What is it?"}]}
        got = server.post("/v1/chat/completions", {"messages": [message], "max_tokens": 1})
        assert got.status != 200, got.body
        metrics = server.request("GET", "/metrics").body.decode()
        assert 'motet_sandbox{' in metrics and 'part="pictures"} 1' in metrics, "the decoder is not confined"
        try:
            server.stop()
        except AssertionError as error:
            assert "a sanitizer reports:" in str(error) and sentence in str(error), error
        else:
            raise AssertionError("the report was swallowed:\n" + "\n".join(server.log))


SUITE.main()
