#!/usr/bin/env python3
"""A GPU that fails while requests are under way, on a driver of our own (tests/cuda/fake.h): everybody hears of it in
the shape of their API, the device is opened anew, or everybody hears why it is not.

usage: LD_LIBRARY_PATH=BUILD/tests/cuda tests/api/test_gpu.py --motet PROGRAM"""

import os
import sys
import tempfile

from served import Suite, eventually

suite = Suite("gpu")
FAULT = "the GPU could not "


class Gpu:
    """A server on the driver, and a fault that strikes the so-many-th call of a name after it was told to."""

    def __init__(self, settings=""):
        self.folder = tempfile.TemporaryDirectory()
        self.trigger = os.path.join(self.folder.name, "now")
        env = {"MOTET_DEVICE": "cuda",
               "MOTET_FAKE_CUDA": "fail=cuStreamSynchronize:2:719,when={}{}".format(self.trigger, settings)}
        # nothing is guessed ahead: every token is a step, in which the host waits once
        self.server = suite.start("--speculate", "off", env=env)

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
    calls = [("/v1/chat/completions", {"messages": message, "max_tokens": 8}),
             ("/v1/completions", {"prompt": "hello world", "max_tokens": 8}),
             ("/v1/responses", {"input": "hello world", "max_output_tokens": 16, "store": False}),
             ("/v1/messages", {"messages": message, "max_tokens": 8})]
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
        assert server.chat(max_tokens=4).status == 200
        gpu.strike()
        assert FAULT in said(server.chat(max_tokens=4))
        assert eventually(lambda: server.request("GET", "/health").status == 503)
        for _ in range(2):
            answer = server.chat(max_tokens=4)
            assert answer.status == 503, answer.body
            assert said(answer).startswith("the device could not be opened anew: "), answer.body
        assert server.request("GET", "/live").status == 200


if __name__ == "__main__":
    sys.exit(suite.main())
