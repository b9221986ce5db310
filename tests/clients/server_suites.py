#!/usr/bin/env python3
"""Runs the tests that other servers have of their HTTP APIs, which are not part of this repository, unedited.

usage: tests/clients/server_suites.py --motet PROGRAM [--vllm FOLDER] [--sglang FOLDER]

--vllm, --sglang: checkouts of github.com/vllm-project/vllm and github.com/sgl-project/sglang. Their tests are run with what
tests/clients/shim puts in the place of vLLM's and SGLang's own server; what is known to fail stands in
tests/clients/shim/known_NAME.txt with the reason. They need Python's packages pytest, pytest-asyncio, openai, anthropic,
httpx, requests, regex, jsonschema, numpy, pillow, pybase64 and transformers (without torch)."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import suites

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(HERE, "shim")
VLLM = ("anthropic/test_messages.py", "openai", "multimodal/openai", "pooling", "serve/instrumentator/test_basic.py",
        "serve/instrumentator/test_orca_metrics.py", "serve/instrumentator/test_uds.py", "serve/middleware",
        "serve/tokenize", "generate/generative_scoring/test_generative_scoring_e2e.py",
        "scale_out/render/test_render_multimodal.py")
# Files that need what the shim does not have: audio, adapters, tensors, other packages, metrics of vLLM's insides
BEYOND = re.compile("audio|transcription|_embeds|lora|tensorizer|correctness|routed_experts|schema|harmony|reward|"
                    "late_interaction|embed/test_online_vision|token_in_token_out")
SGLANG = ("test/registered/openai_server", "test/manual/openai_server",
          "test/registered/prefill_only/test_openai_embedding.py",
          "test/registered/constrained_decoding/test_constrained_decoding.py")


def servers(folder, paths):
    """Files below these paths whose tests start a server."""
    found = []
    for path in paths:
        whole = os.path.join(folder, path)
        for where, _, names in os.walk(whole) if os.path.isdir(whole) else [(os.path.dirname(whole), (), [path])]:
            found += [os.path.join(where, os.path.basename(n)) for n in names if os.path.basename(n).startswith("test_")]
    for name in sorted(n for n in found if not BEYOND.search(os.path.relpath(n, folder))):
        with open(name, encoding="utf-8") as f:
            if re.search("RemoteOpenAIServer|popen_launch_server", f.read()):
                yield os.path.relpath(name, folder)


def known(name):
    """{test: why it fails}: the beginnings of tests' names without parameters, each behind its reason."""
    reasons, reason = {}, ""
    with open(os.path.join(SHIM, "known_{}.txt".format(name)), encoding="utf-8") as f:
        for line in f:
            if line.startswith("# "):
                reason = line[2:].strip()
            elif line.strip():
                reasons[line.strip()] = reason
    return reasons


def pytest(name, motet, suite, work, paths, *options):
    """Runs the tests below these paths by pytest with the plugin of this name."""
    report = os.path.join(work, "report.xml")
    environment = dict(os.environ, MOTET=os.environ.get("MOTET", os.path.abspath(motet)), SGLANG=suite,
                       HF_HUB_OFFLINE="1", PYTHONPATH=os.pathsep.join((SHIM, suite)), PYTHONDONTWRITEBYTECODE="1")
    subprocess.run([sys.executable, "-m", "pytest", "-p", name + "_tests", "-p", "no:cacheprovider", "-q", "--tb=no",
                    "-o", "asyncio_mode=auto", "--rootdir", suite, "--continue-on-collection-errors",
                    "--junitxml", report, *options, *servers(suite, paths)],
                   cwd=suite, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=3600)
    reasons = known(name)
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        test = case.get("classname").replace(".", "/") + "::" + case.get("name")
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if case.find("skipped") is not None:
            continue
        reason = next((r for begin, r in reasons.items() if test.startswith(begin)), None)
        if bad is None or not reason:
            yield test, bad is None, bad is not None and bad.get("message", "")[:500]
        else:
            yield "{}: {}".format(test, reason), None, None


def vllm(motet, suite, work):
    return pytest("vllm", motet, suite, work, [os.path.join("tests/entrypoints", p) for p in VLLM],
                  "--confcutdir=tests/entrypoints")


def sglang(motet, suite, work):
    return pytest("sglang", motet, suite, work, SGLANG)


if __name__ == "__main__":
    suites.main("server_suites", {"vllm": vllm, "sglang": sglang})
