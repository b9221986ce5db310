#!/usr/bin/env python3
"""A GPU that fails while requests are under way, on a driver of our own (tests/cuda/fake.h): everybody hears of it in
the shape of their API, the device is reopened, or everybody hears why it is not.

usage: LD_LIBRARY_PATH=BUILD/tests/cuda tests/api/test_gpu.py --motet PROGRAM"""

import os
import re
import subprocess
import sys
import tempfile

import fixture
from served import Suite, eventually

suite = Suite("gpu")
FAULT = "the GPU could not "
# What is drawn is drawn from nothing: an answer that could end with its first token would not meet a fault.
LONG = {"ignore_eos": True, "temperature": 0}


class Gpu:
    """A server on the driver, and a fault that strikes the so-many-th call of a name after it was told to."""

    def __init__(self, settings="", *options, **more):
        self.folder = tempfile.TemporaryDirectory()
        self.trigger = os.path.join(self.folder.name, "now")
        env = {"MOTET_DEVICE": "cuda",
               "MOTET_FAKE_CUDA": "fail=cuEventSynchronize:2:719,when={}{}".format(self.trigger, settings)}
        # nothing is guessed ahead: every token is a step, in which the host waits once
        self.server = suite.start("--speculate", "off", *options, env=env, **more)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *about):
        self.server.__exit__(*about)
        self.folder.cleanup()

    def strike(self):
        with open(self.trigger, "w", encoding="utf-8"):
            pass

    def struck(self):
        return not os.path.exists(self.trigger)


def said(answer):
    return answer.json()["error"]["message"]


@suite.test
def faults_in_every_dialect():
    """Every dialect, whole and streamed: an error, then all is well."""
    message = [{"role": "user", "content": "hello world"}]
    calls = [("/v1/chat/completions", {"messages": message, "max_tokens": 8, **LONG}),
             ("/v1/completions", {"prompt": "hello world", "max_tokens": 8, **LONG}),
             ("/v1/responses", {"input": "hello world", "max_output_tokens": 16, "store": False, **LONG}),
             ("/v1/messages", {"messages": message, "max_tokens": 8, **LONG})]
    with Gpu() as gpu:
        server = gpu.server
        assert any("cuda:0 (Fake 0, sm_90" in line for line in server.log), server.log
        faults = 0
        for path, body in calls:
            for stream in (False, True):
                assert server.post(path, body).status == 200
                gpu.strike()
                answer = server.post(path, dict(body, stream=stream))
                assert gpu.struck(), "the fault was met"
                faults += 1
                if not stream:
                    assert answer.status == 500, answer.body
                text = answer.body.decode()
                assert FAULT in text and "fault 719 on purpose" in text, text
                assert eventually(lambda: server.post(path, body).status == 200), server.log[-5:]
                assert server.request("GET", "/health").status == 200
        metrics = server.metrics()
        assert metrics["motet_device_faults_total"] == faults, metrics["motet_device_faults_total"]
        assert 0 < metrics["motet_device_bytes"] < metrics["motet_device_memory_bytes"]


@suite.test
def a_card_that_is_gone():
    """A card that is gone."""
    with Gpu(",lost") as gpu:
        server = gpu.server
        assert server.chat(max_tokens=4, **LONG).status == 200
        gpu.strike()
        assert FAULT in said(server.chat(max_tokens=4, **LONG))
        assert eventually(lambda: server.request("GET", "/health").status == 503)
        for _ in range(2):
            answer = server.chat(max_tokens=4, **LONG)
            assert answer.status == 503, answer.body
            assert said(answer).startswith("the device could not be reopened: "), answer.body
        assert server.request("GET", "/live").status == 200


@suite.test
def a_measurement_of_nothing():
    """A fault while motet bench measures: it says so, and gives no figures."""
    env = dict(os.environ, MOTET_FAKE_CUDA="fail=cuStreamSynchronize:60:719")
    done = subprocess.run([suite.program, "bench", suite.folder, "--device", "cuda", "--only", "steps", "--prompt", "8",
                           "--tokens", "4", "--json"], env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode != 0 and not done.stdout, done.stdout
    assert FAULT in done.stderr.decode(), done.stderr


def by_model(server, name):
    text = server.request("GET", "/metrics").body.decode()
    return {m: float(n) for m, n in re.findall(name + r'{model_name="(\w+)"} (\S+)', text)}


@suite.test
def several_models_on_one_card():
    """Each has its part of the GPU's memory, and a fault is the one's that meets it."""
    folders = [fixture.write(os.path.join(os.path.dirname(suite.folder), name), seed=300 + i)
               for i, name in enumerate(("alto", "bass"))]
    with Gpu(",memory=1500", folder=folders) as gpu:
        server = gpu.server
        for name in ("alto", "bass"):
            assert server.chat(model=name, max_tokens=8, **LONG).status == 200
        limit, grants = server.metrics()["motet_memory_limit_bytes"], by_model(server, "motet_model_memory_bytes")
        assert 1000 << 20 < limit < 1500 << 20, limit
        assert set(grants) == {"alto", "bass"} and min(grants.values()) > 100 << 20, grants
        assert sum(grants.values()) <= limit, (grants, limit)
        gpu.strike()
        assert FAULT in said(server.chat(model="alto", max_tokens=8, **LONG)) and gpu.struck()
        assert server.chat(model="bass", max_tokens=8, **LONG).status == 200
        assert eventually(lambda: server.chat(model="alto", max_tokens=8, **LONG).status == 200), server.log[-5:]
        assert by_model(server, "motet_device_faults_total") == {"alto": 1, "bass": 0}
        assert server.request("GET", "/health").status == 200


@suite.test
def too_little_of_the_hosts_memory():
    """What is no model's is in the host's memory, and must fit there."""
    folders = [fixture.write(os.path.join(os.path.dirname(suite.folder), name), seed=302) for name in ("alto", "bass")]
    try:
        with Gpu("", "--host-memory", "1M", folder=folders):
            raise ValueError("it started")
    except AssertionError as why:
        assert '"--host-memory" is 1 MiB, and the server itself takes' in str(why), why


if __name__ == "__main__":
    sys.exit(suite.main())
