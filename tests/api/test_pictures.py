#!/usr/bin/env python3
"""Pictures as clients send them: in every shape and dialect, known again, never confused, never in the way of text.

usage: tests/api/test_pictures.py --motet PROGRAM [NAME ...]"""

import argparse
import base64
import concurrent.futures
import gzip
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import zlib

import served
from served import eventually

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "oracle", "sighted", "qwen3vl-bf16")
VIDEO = os.path.join(HERE, "..", "oracle", "pictures", "video.mp4")
PROGRAM = HANG = None
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def meets(function):
    """A test in which requests meet, or a request and a process that ends: what the thread sanitizer runs."""
    function.meets = True
    return test(function)


def start(*options, **settings):
    return served.Server(PROGRAM, FOLDER, *options, **settings)


def fetching(*options):
    """A server that fetches one picture at a time, and waits for it for as long as it takes."""
    return start("--media-threads", "1", "--media-seconds", "600", "--media-allow-private", *options)


def png(seed, width=64, height=48):
    noise = random.Random(seed)
    rows = b"".join(b"\0" + noise.randbytes(3 * width) for _ in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def black(side):
    """Many pixels in few bytes: one bit each, and all alike."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes(side // 8)) * side, 9)
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)) +
            chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(data).decode()


def url(seed, **size):
    return "data:image/png;base64," + base64.b64encode(png(seed, **size)).decode()


def image(seed, **more):
    return {"type": "image_url", "image_url": {"url": url(seed), **more}}


def ask(server, *parts, **more):
    content = [*parts, {"type": "text", "text": "What is it?"}]
    return server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}], "max_tokens": 4,
                                                "temperature": 0, "ignore_eos": True, "logprobs": True, **more})


def said(answer):
    assert answer.status == 200, answer.body
    return answer.json()["choices"][0]["logprobs"]["content"]


def usage(answer):
    assert answer.status == 200, answer.body
    numbers = answer.json()["usage"]
    return numbers["prompt_tokens"], numbers["prompt_tokens_details"]["cached_tokens"]


class Silent:
    """A web server that takes connections and never says a word."""

    def __init__(self):
        served.need(PROGRAM, "fetch")
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        try:
            while True:
                self.taken.append(self.socket.accept())
        except OSError:
            pass

    def part(self):
        return {"type": "image_url", "image_url": "http://127.0.0.1:{}/a.png".format(self.socket.getsockname()[1])}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # or the next client would still be taken, and never answered
        except OSError:
            pass  # the second time
        self.socket.close()
        for connection, _ in self.taken:
            connection.close()


@test
def a_picture_is_sent_once_and_referred_to():
    """An upload stands for its bytes, for its account alone, until room is needed; then the client is told."""
    picture = png(1)

    def upload(server, data, key=None):
        return server.post("/v1/uploads/pictures", data, key and {"authorization": "Bearer " + key})

    def refer(server, address, key=None):
        return server.request("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": address}}]}],
            "max_tokens": 2}, key and {"authorization": "Bearer " + key})

    with start("--upload-bytes", "40K") as server:
        told = upload(server, picture).json()
        assert told["bytes"] == len(picture) and told["url"] == "upload:" + told["id"], told
        path = "/v1/uploads/pictures/" + told["id"]
        sent = {"type": "image_url", "image_url": {"url": told["url"]}}
        assert said(ask(server, sent)) == said(ask(server, image(1)))
        assert server.request("GET", path).status == 200
        others = [upload(server, png(seed)).json() for seed in range(2, 7)]
        assert server.request("GET", path).status == 404
        refused = refer(server, told["url"])
        assert refused.status == 400 and "upload it again" in refused.json()["error"]["message"], refused.body
        assert refer(server, others[-1]["url"]).status == 200
        assert refer(server, "upload:").status == 400
        assert server.request("DELETE", "/v1/uploads/pictures/" + others[-1]["id"]).json()["deleted"] is True
        assert refer(server, others[-1]["url"]).status == 400
        assert upload(server, png(9, width=200, height=200)).status == 413
        assert upload(server, b"").status == 400
        packed = server.post("/v1/uploads/pictures", gzip.compress(picture), {"content-encoding": "gzip"})
        assert packed.status == 415 and "without a content-encoding" in packed.body.decode(), packed.body
        seen = server.metrics()
        assert seen["motet_uploads_total"] == 6 and seen["motet_uploads_evicted_total"] > 0, seen
        assert seen["motet_upload_bytes"] <= 40 << 10 and seen["motet_uploads_missed_total"] >= 3, seen
    with start("--api-key", "one", "--api-key", "two") as server:
        told = upload(server, picture, "one").json()
        assert refer(server, told["url"], "one").status == 200
        assert refer(server, told["url"], "two").status == 400
        assert upload(server, picture).status == 401


@test
def tokens_and_texts_of_prompts_with_pictures_are_told():
    messages = [{"role": "user", "content": [image(1), {"type": "text", "text": "What is it?"}, image(2)]}]
    with start() as server:
        answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1, "return_token_ids": True})
        told = server.post("/tokenize", {"messages": messages}).json()
        assert told["tokens"] == answer.json()["prompt_token_ids"], (told, answer.body)
        assert told["count"] == usage(answer)[0]
        text = server.post("/apply-template", {"messages": messages}).json()["prompt"]
        assert text.count("<|image_pad|>") == 2, text
        broken = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
        for path in ("/tokenize", "/apply-template"):
            refused = server.post(path, {"messages": broken})
            assert refused.status == 400 and b"messages[0].content[0]" in refused.body, refused.body


@test
def what_is_not_looked_at_is_noted_once():
    """Calls with pictures are read twice, in the lane of text and in their own."""
    search = {"type": "web_search"}
    body = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url(1)}]}],
            "max_output_tokens": 1, "tools": [search, {"type": "code_interpreter"}, search]}
    with start() as server:
        answer = server.post("/v1/responses", body)
        assert answer.status == 200, answer.body
    notes = [line for line in server.log if "request.ignored" in line]
    told = " brings what is not looked at: web_search, code_interpreter"
    assert len(notes) == 1 and notes[0].endswith(answer.json()["id"] + told), notes


@test
def the_same_picture_is_known_again_and_another_is_missed_at_the_picture():
    with start() as server:
        first, again, other = (ask(server, image(seed)) for seed in (1, 1, 2))
        tokens, cached = usage(first)
        assert cached == 0 and tokens > 12
        assert usage(again) == (tokens, tokens - 1)
        assert said(first) == said(again) != said(other)
        assert 0 < usage(other)[1] < 10  # <|im_start|>user\n<|vision_start|>
        moved = ask(server, {"type": "text", "text": "Words before it."}, image(1))
        assert moved.status == 200
        numbers = server.metrics()
        assert numbers["motet_media_total"] == 4
        assert numbers["motet_media_cache_misses_total"] == 2
        assert numbers["motet_media_cache_hits_total"] == 1
        assert numbers['motet_prefix_lookups_total{miss="media"}'] >= 1
        assert 0 < numbers["motet_media_cache_bytes"] <= numbers["motet_media_cache_total_bytes"]
        assert numbers["motet_media_prepare_seconds_count"] == 4
        assert eventually(lambda: server.metrics()["motet_media_waiting_bytes"] == 0)


@meets
def every_client_gets_the_answer_to_its_own_picture():
    with start() as server:
        alone = [said(ask(server, image(seed))) for seed in range(8)]
    with start("--media-cache", "20K", "--max-sequences", "4") as server:
        order = [seed for seed in range(8) for _ in range(6)]
        random.Random(5).shuffle(order)
        with concurrent.futures.ThreadPoolExecutor(12) as clients:
            answers = list(clients.map(lambda seed: said(ask(server, image(seed))), order))
        assert all(answer == alone[seed] for seed, answer in zip(order, answers))
        assert server.metrics()["motet_media_cache_evictions_total"] > 0


@test
def all_shapes_and_dialects_show_the_same_picture():
    data = base64.b64encode(png(3)).decode()
    with start() as server:
        want = ask(server, image(3))
        for part in ({"type": "image_url", "image_url": url(3)},
                     {"type": "input_image", "image_url": url(3), "detail": "auto"},
                     {"type": "image", "image": url(3)},
                     {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}):
            assert usage(ask(server, part))[1] == usage(want)[0] - 1, part
        source = {"type": "base64", "media_type": "image/png", "data": data}
        content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
        reply = server.post("/v1/messages", {"messages": [{"role": "user", "content": content}], "max_tokens": 2})
        assert reply.status == 200, reply.body
        content = [{"type": "input_image", "image_url": url(3)}, {"type": "input_text", "text": "What is it?"}]
        reply = server.post("/v1/responses", {"input": [{"role": "user", "content": content}], "max_output_tokens": 2})
        assert reply.status == 200, reply.body
        for part in {"inlineData": {"mimeType": "image/png", "data": data}}, {"fileData": {"fileUri": url(3)}}:
            reply = gemini(server, part, {"text": "What is it?"})
            assert reply.status == 200, reply.body
        assert server.metrics()["motet_media_cache_misses_total"] == 1


def gemini(server, *parts):
    return server.post("/v1beta/models/default:generateContent", {
        "contents": [{"role": "user", "parts": list(parts)}], "generationConfig": {"maxOutputTokens": 2}})


@test
def videos_come_as_files_or_as_frames():
    with open(VIDEO, "rb") as f:
        data = "data:video/mp4;base64," + base64.b64encode(f.read()).decode()
    with start() as server:
        frames = [url(seed) for seed in range(6)]
        assert usage(ask(server, {"type": "video", "video": frames, "fps": 2}))[0] > 30
        served.need(PROGRAM, "video")
        assert usage(ask(server, {"type": "video_url", "video_url": {"url": data}}))[0] > 30
        film = {"type": "video_url", "video_url": {"url": data}}
        all_frames, few = usage(ask(server, film))[0], usage(ask(server, {**film, "fps": 0.5}))[0]
        assert few < all_frames
        for part, field in (({**film, "video_fps": 0.5}, {}),
                            ({"type": "video_url", "video_url": {"url": data, "video_fps": 0.5}}, {}),
                            (film, {"video_fps": 0.5}), (film, {"mm_processor_kwargs": {"video_fps": 0.5}})):
            assert usage(ask(server, part, **field))[0] == few, (part, field)
        got = server.post("/v1/responses", {"max_output_tokens": 1, "input": [
            {"role": "user", "content": [{"type": "input_video", "video_url": data}]}]})
        assert got.status == 200 and got.json()["usage"]["input_tokens"] > 30, got.body
        counts = []
        for part in ({"inlineData": {"mimeType": "video/mp4", "data": data.split(",")[1]}},
                     {"fileData": {"mimeType": "video/mp4", "fileUri": data}, "videoMetadata": {"fps": 0.5}}):
            got = gemini(server, part)
            assert got.status == 200, got.body
            counts.append(got.json()["usageMetadata"]["promptTokenCount"])
        assert counts[0] > 30 and counts[1] <= counts[0], counts


@test
def fewer_pixels_are_fewer_tokens():
    with start() as server:
        plain = usage(ask(server, image(1)))[0]
        assert usage(ask(server, {**image(1), "max_pixels": 1024}))[0] < plain
        assert usage(ask(server, image(1), max_pixels=1024))[0] < plain
        assert usage(ask(server, image(1), mm_processor_kwargs={"max_pixels": 1024}))[0] < plain


@test
def steps_of_a_few_tokens_see_as_much():
    folder = os.path.join(HERE, "..", "oracle", "sighted", "gemma3vl-bf16")  # sixteen patches make a token
    with served.Server(PROGRAM, folder) as server:
        expected = said(ask(server, image(1)))
    with served.Server(PROGRAM, folder, "--batch-tokens", "1", "--max-sequences", "1") as server:
        assert said(ask(server, image(1))) == expected


@test
def what_is_wrong_is_named_by_message_and_part():
    with start() as server:
        for part, sentence in ((image(1) | {"image_url": {}}, "messages[0].content[1] has no URL"),
                               (image(1, detail="soft"), "\"detail\" of messages[0].content[1]"),
                               (image(1, url="data:image/png;base64,QUJD"), "messages[0].content[1]: the 3 bytes"),
                               (image(1, url="ftp://x/y.png"), "messages[0].content[1]: "),
                               (image(1, url="http://127.0.0.1:8000/y.png"), "messages[0].content[1]: "),
                               (image(1, url="file:///etc/passwd"), "messages[0].content[1]: "),
                               ({"type": "video", "video": []}, "messages[0].content[1] is a list of 0 frames"),
                               ({"type": "video", "video": [url(1), "data:,x"]}, "messages[0].content[1]: frame 1: ")):
            reply = ask(server, {"type": "text", "text": "Look:"}, part)
            assert reply.status == 400, (part, reply.body)
            error = reply.json()["error"]
            assert error["message"].startswith(sentence), (sentence, error["message"])
            assert error["param"] == "messages[0].content[1]"
        for field, value in (("fps", 0), ("min_pixels", -1), ("num_frames", 1.5), ("detail", "soft"),
                             ("do_pan_and_scan", 3), ("mm_processor_kwargs", 3), ("mm_processor_kwargs", {"fps": -1})):
            reply = ask(server, **{field: value})
            assert reply.status == 400 and reply.json()["error"]["param"] == field, reply.body
        whole = png(1)
        for broken in (whole[:-40], whole[:20], whole[:16] + struct.pack(">II", 60000, 60000) + whole[24:]):
            data = "data:image/png;base64," + base64.b64encode(broken).decode()
            reply = ask(server, image(1, url=data), ignore_eos=False)
            assert reply.status == 400, reply.body
        assert ask(server, image(1)).status == 200


@test
def files_are_read_below_the_root_alone():
    root = os.path.realpath(os.path.join(HERE, "..", "oracle", "pictures"))
    with start("--media-root", root) as server:
        assert ask(server, image(1, url="file://" + os.path.join(root, "plain.png"))).status == 200
        assert ask(server, image(1, url="file://" + os.path.join(root, "..", "README.md"))).status == 400


@test
def models_that_see_nothing_say_so():
    with start("--text-only") as server:
        reply = ask(server, image(1))
        assert reply.status == 400 and "this model takes no pictures" in reply.json()["error"]["message"], reply.body
        assert ask(server).status == 200
        assert "motet_media_total" not in server.metrics()


@meets
def several_answers_and_logprobs_of_prompts_with_pictures():
    with start() as server:
        want = said(ask(server, image(1)))
        both = ask(server, image(1), n=2).json()["choices"]
        assert [choice["logprobs"]["content"] for choice in both] == [want, want]
        reply = ask(server, image(1), prompt_logprobs=1)
        assert said(reply) == want
        assert len(reply.json()["prompt_logprobs"]) == usage(reply)[0]
        assert usage(reply)[1] == 0


@test
def the_command_line_shows_what_the_server_shows():
    served.need(PROGRAM, "fetch")
    path = os.path.join(HERE, "..", "oracle", "pictures", "plain.png")
    with open(path, "rb") as f:
        data = "data:image/png;base64," + base64.b64encode(f.read()).decode()
    with start() as server:
        reply = ask(server, image(1, url=data), ignore_eos=False)
        done = subprocess.run([PROGRAM, "run", FOLDER, "What is it?", "--image", path, "--precision", "reference",
                               "--max-tokens", "4", "--default-temperature", "0"], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode() == reply.json()["choices"][0]["message"]["content"] + "\n"


@meets
def text_never_waits_for_pictures():
    with Silent() as web, fetching("--prep-threads", "1") as server:
        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            waiting = [clients.submit(ask, server, web.part()) for _ in range(4)]
            assert eventually(lambda: web.taken)
            for _ in range(5):
                assert ask(server).status == 200
            assert not any(reply.done() for reply in waiting)
            web.__exit__()
            assert all(reply.result().status == 400 for reply in waiting)


@meets
def pictures_of_one_key_do_not_wait_for_those_of_another():
    keys = [{"authorization": "Bearer " + key} for key in ("one", "two", "three")]

    def parts(content, key):
        return server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}],
                                                    "max_tokens": 2}, headers=key)
    with Silent() as web, fetching("--media-threads", "2", "--api-key", "one", "--api-key", "two", "--api-key",
                                   "three") as server:
        with concurrent.futures.ThreadPoolExecutor(20) as clients:
            waiting = [clients.submit(parts, [web.part()], keys[0]) for _ in range(20)]
            assert eventually(lambda: len(web.taken) >= 2)
            for key in keys[1:]:
                assert parts([image(1)], key).status == 200
            assert not any(reply.done() for reply in waiting)
            web.__exit__()
            assert all(reply.result().status == 400 for reply in waiting)


@test
def the_time_of_decoding_counts_to_the_key():
    key = {"authorization": "Bearer one"}
    part = {"type": "image_url", "image_url": black(3000)}

    def milliseconds():
        text = server.request("GET", "/metrics", headers=key).body.decode()
        return float(re.search(r"^motet_key_preparing_milliseconds_total{[^}]*} (.*)$", text, re.M)[1])
    with start("--api-key", "one") as server:
        before = milliseconds()
        got = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [part]}], "max_tokens": 1},
                          headers=key)
        assert got.status == 200, got.body
        assert milliseconds() >= before + 5  # nine million pixels take longer on any machine


@meets
def bodies_that_wait_for_pictures_are_bounded():
    if os.environ.get("MOTET_TEST_QUICK"):
        return  # a sanitizer takes memory of its own
    limit = ("--host-memory", "256M") if served.ON_GPU else ("--memory", "64M")
    with Silent() as web, fetching(*limit) as server:
        room = server.metrics()['motet_memory_bytes{kind="requests"}'] * 2 / 5  # the rest is for preparing them
        words = {"type": "text", "text": "x" * int(room * 0.15)}  # and while it is read, it takes twice that
        with concurrent.futures.ThreadPoolExecutor(5) as clients:
            waiting = []
            for i in range(5):
                waiting.append(clients.submit(ask, server, web.part(), words))
                assert eventually(lambda: room * 0.16 * (i + 1) > server.metrics()["motet_requests_bytes"] >
                                  room * 0.149 * (i + 1))
            assert eventually(lambda: web.taken)
            reply = ask(server, image(1), words)
            assert reply.status == 503 and "retry-after" in reply.headers, reply.body
            assert ask(server).status == 200
            web.__exit__()
            assert all(reply.result().status == 400 for reply in waiting)
        assert eventually(lambda: server.metrics()["motet_requests_bytes"] == 0)
        assert ask(server, image(1)).status == 200


@meets
def a_client_that_leaves_ends_the_fetch():
    with Silent() as web, fetching() as server:
        for _ in range(3):
            connection = server.connect()
            body = json.dumps({"messages": [{"role": "user", "content": [web.part()]}]})
            before = len(web.taken)
            connection.request("POST", "/v1/chat/completions", body)
            assert eventually(lambda: len(web.taken) > before)
            connection.close()
            assert eventually(lambda: server.metrics()["motet_calls"] == 0)
        assert ask(server, image(1)).status == 200


@meets
def small_files_of_many_pixels_take_the_memory_that_is_set_aside():
    """Frames are decoded one at a time, and those of clients that left not at all."""
    room, frame = 24 << 20, black(2048)  # 12 MiB as pixels
    with start("--media-memory", str(room), "--media-threads", "2") as server:
        assert server.metrics()['motet_memory_bytes{kind="pictures"}'] == room
        before, begin = server.memory("VmHWM"), server.cpu()
        answer = ask(server, {"type": "video", "video": [frame] * 16})
        assert usage(answer)[0] > 16
        if not os.environ.get("MOTET_TEST_QUICK"):  # a sanitizer takes memory of its own
            assert server.memory("VmHWM") < before + room + (4 << 20), (before, server.memory("VmHWM"))
        whole, begin = server.cpu() - begin, server.cpu()
        connection = server.connect()
        body = {"messages": [{"role": "user", "content": [{"type": "video", "video": [frame] * 320}]}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        assert eventually(lambda: server.metrics()["motet_media_waiting_bytes"] > 0)
        connection.close()
        assert eventually(lambda: server.metrics()["motet_media_waiting_bytes"] == 0)
        assert server.cpu() - begin < 10 * whole, (server.cpu() - begin, whole)
        reply = ask(server, {"type": "video", "video": [url(1), black(4096)]})
        assert reply.status == 413, reply.body
        assert "messages[0].content[0]: frame 1: the pictures of the request take" in reply.json()["error"]["message"]
        assert ask(server, image(1)).status == 200


@meets
def of_requests_that_wait_for_each_others_memory_one_gives_way():
    """Both have four pictures of 1.7 MiB when they come to a fifth, for which there is room beside one of them."""
    small = {"type": "image_url", "image_url": {"url": url(1), "min_pixels": 768 * 768}}
    with Silent() as web, start("--media-memory", "32M", "--media-threads", "2", "--media-allow-private") as server:
        body = {"messages": [{"role": "user", "content": [small] * 4 + [web.part()]}], "max_pixels": 768 * 768}
        with concurrent.futures.ThreadPoolExecutor(2) as clients:
            replies = [clients.submit(server.post, "/tokenize", body) for _ in range(2)]
            assert eventually(lambda: len(web.taken) == 2)
            data = base64.b64decode(black(2048).split(",")[1])
            head = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n".format(len(data))
            for connection, _ in web.taken:
                connection.sendall(head.encode() + data)
            assert sorted(reply.result().status for reply in replies) == [200, 429], [r.result().body for r in replies]
        assert server.metrics()["motet_media_waiting_bytes"] == 0


@meets
def pictures_that_would_take_too_much_memory_wait_or_are_refused():
    with start("--media-memory", "1M") as server:
        big = {"type": "image_url", "image_url": {"url": url(1, width=900, height=900)}, "max_pixels": 900 * 900}
        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            replies = list(clients.map(lambda seed: ask(server, image(seed)), range(12)))
        assert all(reply.status == 200 for reply in replies)
        reply = ask(server, big)
        assert reply.status in (400, 413) and "--media-" in reply.json()["error"]["message"], reply.body


@meets
def a_picture_that_makes_its_decoder_crash_is_one_requests_400():
    if not HANG or os.environ.get("ASAN_OPTIONS"):
        raise served.Skip("no library that crashes")
    with start(env={"LD_PRELOAD": HANG, "MOTET_TEST_CRASH": "1"}) as server:
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            replies = list(clients.map(lambda seed: ask(server, image(seed)), range(8)))
        for reply in replies:
            assert reply.status == 400 and "cannot be decoded" in reply.json()["error"]["message"], reply.body
        with open(VIDEO, "rb") as f:
            data = base64.b64encode(f.read()).decode()
        video = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64," + data}}
        if "video" in served.features(PROGRAM):
            assert ask(server, video).status == 200
        assert server.chat().status == 200
        metrics = server.metrics()
        assert metrics["motet_media_crashes_total"] == 8 and metrics["motet_media_waiting_bytes"] == 0, metrics
        assert metrics["motet_media_processes_total"] >= 8
        assert eventually(lambda: [line for line in server.log if "media.crashed" in line])


@meets
def pictures_are_the_same_without_a_process_of_their_own():
    def said(*options):
        with start(*options) as server:
            reply = ask(server, image(5), temperature=0, seed=1)
            return reply.json()["choices"], server.metrics()["motet_media_processes_total"]
    with_one, without = said(), said("--sandbox", "off")
    assert with_one[0] == without[0] and without[1] == 0 and with_one[1] == (1 if os.uname().sysname == "Linux" else 0)


def children(pid):
    """Processes that it has forked."""
    found = []
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/{}/stat".format(other), encoding="utf-8", errors="replace") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(other))
        except OSError:
            pass
    return found


@meets
def the_process_that_others_are_forked_from_comes_back_when_it_is_killed():
    if os.uname().sysname != "Linux":
        raise served.Skip("there is none")
    with start() as server:
        [watchman] = children(server.process.pid)
        for seed in range(3):
            [keeper] = eventually(lambda: children(watchman))
            os.kill(keeper, signal.SIGKILL)
            assert eventually(lambda: [keeper] != children(watchman))
            for more in range(2):  # one stood ready; the next needs somebody to fork it
                reply = ask(server, image(10 * seed + more))
                assert reply.status == 200, reply.body
        assert server.metrics()["motet_media_crashes_total"] == 0
    assert eventually(lambda: not os.path.exists("/proc/{}".format(watchman)))


def main():
    global PROGRAM, HANG
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--hang")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    PROGRAM, HANG = arguments.motet, arguments.hang
    races = "MOTET_TEST_RACES" in os.environ
    served.run_tests("api_pictures", [each for each in TESTS if not races or hasattr(each, "meets")], arguments.names)


main()
