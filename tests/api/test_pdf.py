#!/usr/bin/env python3
"""PDFs in messages: their text by page, pictures of pages for a model that sees, their limits, and hostile ones.

usage: tests/api/test_pdf.py --motet PROGRAM [NAME ...]

With --large as well, a PDF of 300 pages and 40 MB."""

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import served

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "media"))
import pdfs  # noqa: E402

BOX = os.path.join(HERE, "..", "..", "models", "box")
SUITE = served.Suite("api_pdf")
QUICK = "MOTET_TEST_QUICK" in os.environ
SLOW = {"bomb", "bomb-objects", "bomb-twice", "form-tower", "lines", "pages-million", "shading"}  # up to a minute each
LARGE = "--large" in sys.argv
if LARGE:
    sys.argv.remove("--large")


def part(data, name=None):
    inner = {"file_data": "data:application/pdf;base64," + base64.b64encode(data).decode()}
    if name:
        inner["filename"] = name
    return {"type": "file", "file": inner}


def body(data, words="what is it?", name=None, **more):
    return {"messages": [{"role": "user", "content": [part(data, name), {"type": "text", "text": words}]}], **more}


def rendered(server, data, **more):
    answer = server.post("/apply-template", body(data, **more))
    assert answer.status == 200, answer.body
    return answer.json()["prompt"]


def refused(server, data, words):
    answer = server.post("/v1/chat/completions", body(data))
    assert answer.status in (400, 413) and words in answer.json()["error"]["message"], (answer.status, answer.body[:400])


def by_pages(prompt):
    """The texts of pages in a prompt."""
    return re.split(r"\[page \d+ of \d+\]\n", prompt)[1:]


def read_alone(data):
    """The texts of pages as pdftotext has them."""
    with tempfile.NamedTemporaryFile(suffix=".pdf") as f:
        f.write(data)
        f.flush()
        out = subprocess.run(["pdftotext", "-enc", "UTF-8", f.name, "-"], check=True, capture_output=True).stdout
    return out.decode().split("\f")[:-1]


@SUITE.test
def text_is_that_of_pdftotext():
    with SUITE.start("--context", "2000") as server:
        for name, data in pdfs.good().items():
            prompt = rendered(server, data, name=name + ".pdf") if name != "blank" else rendered(server, data)
            pages, alone = by_pages(prompt), read_alone(data)
            if len(alone) == 1:
                assert alone[0] in prompt and not pages, (name, prompt)
                continue
            assert len(pages) == len(alone), (name, len(pages), len(alone))
            for page, text in zip(pages, alone):
                assert page.startswith(text), (name, page, text)
            assert (name + ".pdf" in prompt) == (name != "blank"), name


@SUITE.test
def parts_of_all_apis():
    """The same document in the forms of each API, and kept as a file; it is read once."""
    data = pdfs.good()["word"]
    text = base64.b64encode(data).decode()
    with tempfile.TemporaryDirectory() as folder, SUITE.start("--files-dir", folder) as server:
        asked = [("/v1/chat/completions", body(data, max_tokens=2)),
                 ("/v1/responses", {"input": [{"role": "user", "content": [
                     {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64," + text}]}],
                     "max_output_tokens": 16}),
                 ("/v1/messages", {"model": server_model(server), "max_tokens": 2, "messages": [{"role": "user", "content": [
                     {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": text}}]}]}),
                 ("/v1beta/models/{}:generateContent".format(server_model(server)), {"contents": [{"parts": [
                     {"inlineData": {"mimeType": "application/pdf", "data": text}}, {"text": "hello"}]}],
                     "generationConfig": {"maxOutputTokens": 2}})]
        for path, sent in asked:
            answer = server.post(path, sent)
            assert answer.status == 200, (path, answer.body)
        metrics = server.metrics()
        assert metrics["motet_pdfs_read_total"] == 1 and metrics["motet_pdfs_reused_total"] == len(asked) - 1, metrics
        assert metrics["motet_pdf_pages_total"] == 1, metrics
        first, second = (server.post("/v1/chat/completions", body(data, max_tokens=2)).json()["usage"] for _ in range(2))
        cached = second["prompt_tokens_details"]["cached_tokens"]
        assert cached >= first["prompt_tokens"] - 17, (first, second)  # the prefix is reused


def server_model(server):
    return server.request("GET", "/v1/models").json()["data"][0]["id"]


@SUITE.test
def html_is_stripped():
    page = b"<!DOCTYPE html><title>T</title><script>var x = '<p>';</script><p>One &amp; two<p>three<table><tr><td>a<td>b</td></table>"
    with SUITE.start() as server:
        sent = {"messages": [{"role": "user", "content": [{"type": "file", "file": {
            "file_data": "data:text/html;base64," + base64.b64encode(page).decode()}}]}]}
        prompt = server.post("/apply-template", sent).json()["prompt"]
        assert "T\nOne & two\nthree\na" in prompt and "<" not in prompt.split("T\nOne")[1].split("b")[0], prompt
        assert "var x" not in prompt, prompt


@SUITE.test
def limits_are_told():
    good = pdfs.good()
    with SUITE.start("--pdf-pages", "12") as server:
        refused(server, good["many"], "more than 12 pages")
        assert len(by_pages(rendered(server, good["pages"]))) == 12
        twice = {"messages": [{"role": "user", "content": [part(good["pages"]), part(good["word"])]}]}
        answer = server.post("/v1/chat/completions", twice)
        assert answer.status == 413 and "more than 12 pages" in answer.json()["error"]["message"], answer.body
        refused(server, pdfs.pages([b""]), "no text")
        refused(server, pdfs.encrypted(), "encrypted")
    with SUITE.start("--sandbox", "off") as server:
        refused(server, good["word"], "--sandbox")
    with tempfile.TemporaryDirectory() as empty, SUITE.start(env=dict(os.environ, PATH=empty)) as server:
        refused(server, good["word"], "poppler-utils, which are not installed here")
        assert server.complete(prompt="hello", max_tokens=1).status == 200


@SUITE.test
def a_model_that_sees():
    """The box reads a word and counts shapes on a page."""
    with SUITE.start("--pdf-pictures", "2", folder=BOX) as server:
        def said(data, words):
            answer = server.post("/v1/chat/completions", body(data, words, max_tokens=60, temperature=0))
            return answer.json()["choices"][0]["message"]["content"]
        shown = pdfs.pages([pdfs.triangles(3)], box=(0, 0, 400, 400))
        assert said(shown, "How many triangles are there?") == "There are 3 triangles."
        assert said(pdfs.pages([pdfs.printed("APPLE")], box=(0, 0, 400, 400)), "What does it say?") == "It says APPLE."
        many = server.post("/v1/chat/completions", body(pdfs.pages([pdfs.text_at(["x"])] * 3), max_tokens=1))
        assert many.status == 200 and "2 pages are shown as pictures" in many.headers.get("warning", ""), many.headers


@SUITE.test
def hostile_ones():
    """Each is answered or refused with a sentence, in bounded time and memory, and others are answered meanwhile."""
    made = pdfs.hostile()
    names = sorted(made) if "MOTET_TEST_FULL" in os.environ else sorted(set(made) - SLOW)[::4 if QUICK else 1]
    slowest, stop = [0], threading.Event()
    with SUITE.start() as server:
        def ask():
            while not stop.is_set():
                begin = time.monotonic()
                assert server.complete(prompt="hello", max_tokens=1).status == 200
                slowest[0] = max(slowest[0], time.monotonic() - begin)
                time.sleep(0.05)
        neighbour = threading.Thread(target=ask)
        neighbour.start()
        before = server.memory()
        try:
            for name in names:
                begin = time.monotonic()
                answer = server.post("/v1/chat/completions", body(made[name], max_tokens=1))
                took = time.monotonic() - begin
                words = "" if answer.status == 200 else answer.json()["error"]["message"]
                print("{:16s} {:3d} {:5.1f} s  {}".format(name, answer.status, took, words))
                assert answer.status in (200, 400, 413), (name, answer.body[:300])
                assert answer.status == 200 or ": " in words, (name, words)
                assert server.process.poll() is None, name
        finally:
            stop.set()
            neighbour.join()
        assert "server.crash" not in "\n".join(server.log)
        print("memory before {} MB, after {} MB; a neighbour's slowest answer {:.2f} s".format(
            before >> 20, server.memory() >> 20, slowest[0]))


@SUITE.test
def a_large_one():
    if not LARGE:
        return
    data = pdfs.large()
    with SUITE.start("--context", "16384", folder=BOX) as server:
        begin = time.monotonic()
        answer = server.post("/v1/chat/completions", body(data, max_tokens=1))
        print("{} bytes: {} in {:.1f} s, {} MB at most: {}".format(
            len(data), answer.status, time.monotonic() - begin, server.memory_peak() >> 20, answer.body[:300]))
        assert answer.status in (200, 400), answer.body[:300]


if __name__ == "__main__":
    if not shutil.which("pdftotext"):
        print("api_pdf: 0 passed, 0 failed, 1 skipped")
    else:
        SUITE.main()
