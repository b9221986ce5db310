#!/usr/bin/env python3
"""KV events, read by other libraries than the server's: Debian's python3-zmq and python3-msgpack. What a reader knows is
what a request then finds in the cache. Without these packages the tests are skipped.

usage: tests/api/test_events.py --motet PROGRAM [NAME ...]; MOTET_TEST_REQUESTS=N for more than a few requests"""

import base64
import hashlib
import importlib.util
import os
import random
import re
import sys
import tempfile

SYSTEM = "/usr/bin/python3"  # which has Debian's packages, be another first on the path
if not importlib.util.find_spec("zmq") and os.path.exists(SYSTEM) and "MOTET_TEST_PYTHON" not in os.environ:
    os.environ["MOTET_TEST_PYTHON"] = sys.executable
    os.execv(SYSTEM, [SYSTEM, *sys.argv])
try:
    import msgpack
    import zmq
except ImportError:
    zmq = None

import fixture
import served
from served import eventually

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
import replay  # pylint: disable=wrong-import-position

PAGE = 32
SUITE = served.Suite("api_events")
test = SUITE.test
SIGHTED = os.path.join(HERE, "..", "oracle", "sighted", "qwen3vl-bf16")
REQUESTS = int(os.environ.get("MOTET_TEST_REQUESTS", "60"))
EVENTS = ("--kv-events", "tcp://127.0.0.1:*", "--kv-events-replay", "tcp://127.0.0.1:*")
WHERE = re.compile(r"events\.listening KV events at (tcp\S+), again at (tcp\S+)")


class Reader:
    """An index as a router has one: {model: {hash: (parent, tokens, extra keys, media)}}."""

    def __init__(self, server, array=False):
        found = next(m for m in map(WHERE.search, server.log) if m)
        self.server, self.array, self.next, self.known, self.events, self.replays = server, array, 0, {}, [], 0
        self.context = zmq.Context()
        self.sub = self.context.socket(zmq.SUB)
        self.dealer = self.context.socket(zmq.DEALER)
        self.sub.setsockopt(zmq.SUBSCRIBE, b"kv@")
        for socket, address in ((self.sub, found.group(1)), (self.dealer, found.group(2))):
            socket.setsockopt(zmq.RCVTIMEO, 1000 * served.PATIENCE)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sub.close()
        self.dealer.close()
        self.context.term()

    def take(self, topic, number, payload):
        if number < self.next:
            return
        assert number == self.next, (number, self.next)
        self.next += 1
        _, pod, model = topic.decode().split("@")
        assert pod
        known = self.known.setdefault(model, {})
        when, events, rank = msgpack.unpackb(payload)
        assert isinstance(when, float) and rank is None
        for event in events:
            if self.array:
                names = {"BlockStored": ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
                                         "medium", "lora_name", "extra_keys"),
                         "BlockRemoved": ("block_hashes", "medium"), "AllBlocksCleared": ()}[event[0]]
                assert len(event) == 1 + len(names)
                event = dict(zip(("type", *names), event))
            self.events.append((model, event))
            if event["type"] == "AllBlocksCleared":
                known.clear()
                continue
            (name,) = event["block_hashes"]
            assert isinstance(name, int) and 0 <= name < 2**64
            if event["type"] == "BlockStored":
                assert event["block_size"] == PAGE == len(event["token_ids"])
                assert event["lora_id"] is None and event["lora_name"] is None
                parent = event["parent_block_hash"]
                assert parent is None or parent in known
                extra = event["extra_keys"]
                assert extra is None or len(extra) == 1
                tokens = tuple(event["token_ids"])
                held = known.setdefault(name, (parent, tokens, tuple(extra[0] if extra else ()), set()))
                assert held[:2] == (parent, tokens)
                assert event["medium"] not in held[3]
                held[3].add(event["medium"])
            else:
                known[name][3].remove(event["medium"])
                if not known[name][3]:
                    del known[name]

    def ask_again(self, first):
        """What is kept from a number on."""
        self.dealer.send_multipart([b"", first.to_bytes(8, "big")])
        self.replays += 1
        while True:
            empty, topic, number, payload = self.dealer.recv_multipart()
            assert empty == b""
            if number == b"\xff" * 8:
                assert payload == b""
                return
            self.take(topic, int.from_bytes(number, "big"), payload)

    def catch_up(self, lose=False):
        """All that was published of what the server has done. Batches are numbered before answers are counted, which
        may be after the client has them."""
        assert eventually(lambda: ended(self.server) == getattr(self.server, "asked", 0))
        end = int(self.server.metrics()["motet_kv_event_batches_total"])
        while self.next < end:
            if lose or not self.sub.poll(200):
                self.ask_again(self.next)
                continue
            topic, number, payload = self.sub.recv_multipart()
            number = int.from_bytes(number, "big")
            if number > self.next:
                self.ask_again(self.next)
            self.take(topic, number, payload)
        while lose and self.sub.poll(0):
            self.sub.recv_multipart()

    def prefix(self, model, tokens, extra=None):
        """Pages of a prompt that are known, found by tokens and extra keys alone, as routers do."""
        by_content = {(p, t, x): h for h, (p, t, x, media) in self.known.get(model, {}).items() if "GPU" in media}
        parent, pages = None, 0
        for at in range(0, len(tokens) - PAGE + 1, PAGE):
            keys = tuple((extra or {}).get(at // PAGE, ()))
            parent = by_content.get((parent, tuple(tokens[at:at + PAGE]), keys))
            if parent is None:
                break
            pages += 1
        return pages


def need():
    served.need(SUITE.program, "events")
    if not zmq:
        raise served.Skip("there is no python3-zmq or python3-msgpack; apt-get install both")


def ended(server):
    """Answers that are counted, of all models."""
    text = server.request("GET", "/metrics").body.decode()
    return sum(int(n) for n in re.findall(r"^vllm:request_success_total\{.*\} (\d+)$", text, re.M))


def cached(server, tokens, **more):
    server.asked = getattr(server, "asked", 0) + 1
    answer = server.complete(prompt=tokens, max_tokens=1, **more)
    assert answer.status == 200, answer.body
    return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


@test
def what_is_known_is_what_is_found():
    """Requests with common beginnings in a cache that is too small for them. Before each the reader says how many pages
    will be found, and so many are."""
    need()
    draw = random.Random(3)
    common = [[draw.randrange(256) for _ in range(600)] for _ in range(4)]
    small = ("--memory", "120M", "--max-sequences", "4", "--batch-tokens", "64")
    quick = "MOTET_TEST_QUICK" in os.environ  # sanitizers take memory of their own
    with SUITE.start(*EVENTS, *(() if quick else small), "--context", "1024", "--speculate", "off") as server, \
            Reader(server) as reader:
        pages = int(re.search(r'num_gpu_blocks="(\d+)"', server.request("GET", "/metrics").body.decode()).group(1))
        found = 0
        for i in range(REQUESTS):
            tokens = common[draw.randrange(4)][:draw.randrange(1, 600)]
            tokens += [draw.randrange(256) for _ in range(draw.randrange(1, 200))]
            reader.catch_up(lose=i % 7 == 3)
            expected = reader.prefix("tiny", tokens[:-1])
            hit = cached(server, tokens)
            assert hit // PAGE == expected, (i, hit, expected)
            found += expected
        reader.catch_up()
        metrics = server.metrics()
        assert found > REQUESTS / 2 and (quick or metrics["motet_cache_evictions_total"] > REQUESTS), (found, metrics)
        assert len(reader.known["tiny"]) <= pages
        assert reader.replays and metrics["motet_kv_event_replays_total"] == reader.replays
        assert metrics["motet_kv_event_batches_dropped_total"] == 0
        print("{} requests: {} pages expected and found, {} pages in the cache, {} batches, {} evictions".format(
            REQUESTS, found, len(reader.known["tiny"]), reader.next, int(metrics["motet_cache_evictions_total"])))


@test
def answers_say_what_their_conversation_begins_with():
    """As a client computes it; in every dialect, streamed or not. What the client calls its session comes back."""
    first = "You are a fox, Ü.\n"
    parts = [{"type": "text", "text": first[:5]}, {"type": "text", "text": first[5:]}]
    user = {"role": "user", "content": "hello world"}
    bodies = [("/v1/chat/completions", {"messages": [{"role": "system", "content": first}, user]}),
              ("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}, user], "stream": True}),
              ("/v1/completions", {"prompt": first}), ("/v1/completions", {"prompt": [first, "another"]}),
              ("/v1/messages", {"system": first, "messages": [user], "max_tokens": 2}),
              ("/v1/messages", {"messages": [{"role": "user", "content": parts}], "max_tokens": 2, "stream": True}),
              ("/v1/responses", {"instructions": first, "input": "hello", "max_output_tokens": 2}),
              ("/v1/responses", {"input": first, "max_output_tokens": 2}),
              ("/api/chat", {"model": "tiny", "messages": [{"role": "system", "content": first}, user],
                             "options": {"num_predict": 2}}),
              ("/v1beta/models/tiny:generateContent", {"systemInstruction": {"parts": parts},
                                                       "contents": [{"parts": [{"text": "hello"}]}]}),
              ("/v1beta/models/tiny:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": parts}]})]
    with SUITE.start("--default-max-tokens", "2") as server:
        for path, body in bodies:
            answer = server.post(path, body, {"x-session-id": "conversation/7", "x-request-id": "mine",
                                              "x-data-parallel-rank": "0", "x-gateway-destination-endpoint": "a:1"})
            assert answer.status == 200, (path, answer.body)
            assert answer.headers["x-motet-prefix"] == hashlib.sha256(first.encode()).hexdigest(), path
            assert answer.headers["x-session-id"] == "conversation/7" and answer.headers["x-request-id"] == "mine"
        answer = server.complete(prompt=[1, 2, 3])
        assert "x-motet-prefix" not in answer.headers and "x-session-id" not in answer.headers
        assert eventually(lambda: sum("session conversation/7" in line for line in server.log) == len(bodies))


@test
def salts_and_pictures_are_extra_keys():
    need()
    tokens = [7] * 100
    with SUITE.start(*EVENTS) as server, Reader(server) as reader:
        cached(server, tokens)
        cached(server, tokens, cache_salt="a tenant")
        reader.catch_up()
        assert reader.prefix("tiny", tokens) == 3
        assert reader.prefix("tiny", tokens, {0: ("a tenant",)}) == 3
        assert reader.prefix("tiny", tokens, {0: ("another",)}) == 0
        assert len(reader.known["tiny"]) == 6  # names differ, too
    with SUITE.start(*EVENTS, folder=SIGHTED) as server, Reader(server) as reader:
        picture = base64.b64encode(replay.picture()).decode()
        parts = [{"type": "text", "text": "plain " * 40},
                 {"type": "image_url", "image_url": {"url": "data:image/png;base64," + picture}},
                 {"type": "text", "text": "and more of it " * 40}]
        server.asked = 1
        messages = [{"role": "user", "content": parts}]
        answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
        assert answer.status == 200, answer.body
        reader.catch_up()
        keys = [x for _, _, x, _ in reader.known[os.path.basename(SIGHTED)].values()]
        seen = {k for x in keys for k in x}
        assert len(seen) == 1 and re.fullmatch("[0-9a-f]{64}", *seen), seen
        rendered = server.post("/v1/chat/completions/render", {"messages": messages}).json()
        features, tokens = rendered["features"], rendered["token_ids"]
        spans = [(s["offset"], s["offset"] + s["length"]) for s in features["mm_placeholders"]["image"]]
        assert set(features["mm_hashes"]["image"]) == seen and len(features["mm_hashes"]["image"]) == len(spans)
        placed = list(zip(features["mm_hashes"]["image"], spans))
        extra = {i: [h for h, (a, b) in placed if a < i * PAGE + PAGE and b > i * PAGE]
                 for i in range(len(tokens) // PAGE)}
        assert reader.prefix(os.path.basename(SIGHTED), tokens, extra) == len(tokens) // PAGE > 0
        assert any(not x for x in keys)


@test
def models_have_topics_and_leave_nothing():
    """Two models; one is unloaded."""
    need()
    beside = os.path.dirname(SUITE.folder)
    folders = [fixture.write(os.path.join(beside, n), seed=s) for n, s in (("alto", 1), ("bass", 2))]
    with SUITE.start(*EVENTS, "--kv-events-topic", "kv@pod@{model}", "--kv-events-format", "array",
                     folder=folders) as server, Reader(server, array=True) as reader:
        for name in ("alto", "bass"):
            cached(server, [9] * 100, model=name)
        reader.catch_up()
        assert {m: len(k) for m, k in reader.known.items()} == {"alto": 3, "bass": 3}
        assert server.post("/v1/models/unload", {"model": "alto"}).status == 200
        assert eventually(lambda: reader.catch_up() or not reader.known["alto"])
        assert len(reader.known["bass"]) == 3
        cached(server, [9] * 100, model="alto")
        reader.catch_up()
        assert len(reader.known["alto"]) == 3


@test
def what_is_kept_in_files_is_storage():
    need()
    with tempfile.TemporaryDirectory() as folder:
        with SUITE.start(*EVENTS, "--cache-dir", folder) as server, Reader(server) as reader:
            cached(server, list(range(200)))

            def stored():
                reader.catch_up()
                return sum("STORAGE" in m for _, _, _, m in reader.known["tiny"].values()) == 6
            assert eventually(stored), reader.known
            names = set(reader.known["tiny"])
        with SUITE.start(*EVENTS, "--cache-dir", folder) as server, Reader(server) as reader:
            assert eventually(lambda: server.metrics()["motet_disk_records"] == 6)
            cached(server, list(range(200)))
            reader.catch_up()
            assert set(reader.known["tiny"]) == names  # the same in every process
            assert {e["type"] for _, e in reader.events} == {"AllBlocksCleared", "BlockStored"}


@test
def what_host_memory_keeps_is_cpu():
    """A GPU, on a driver of our own: its pages are in the host's memory, too, until there is no room there; what a reader
    knows of both is what the server has."""
    need()
    if "MOTET_TEST_QUICK" in os.environ:
        raise served.Skip("a sanitizer takes the memory that would be short")
    driver = os.path.join(os.path.dirname(os.path.abspath(SUITE.program)), "tests", "cuda")
    if not os.path.exists(os.path.join(driver, "libcuda.so.1")):
        raise served.Skip("there is no driver")
    with SUITE.start(*EVENTS, "--host-memory", "128M", "--context", "1024", "--max-sequences", "2",
                     env={"MOTET_DEVICE": "cuda", "LD_LIBRARY_PATH": driver}) as server, Reader(server) as reader:
        def told():
            """Pages that went from there, and how many a reader has heard of."""
            reader.catch_up()
            gone = sum(e["type"] == "BlockRemoved" and e["medium"] == "CPU" for _, e in reader.events)
            return server.metrics()["motet_host_cache_evicted_total"], gone
        dice, sent = random.Random(3), 0
        while sent < 400 and told()[0] == 0:
            cached(server, [dice.randrange(10, 250) for _ in range(1000)])
            sent += 1
        assert eventually(lambda: told()[0] == told()[1] > 0), told()
        media = [m for _, _, _, m in reader.known["tiny"].values()]
        assert sum("CPU" in m for m in media) > 100 and any("GPU" in m for m in media), len(media)


if __name__ == "__main__":
    SUITE.main()
