#!/usr/bin/env python3
"""The dashboard for Grafana, contrib/grafana/motet.json: what it asks for is what the server tells, and a Prometheus that
watches a server has an answer to each of its queries. Without Prometheus (Debian: prometheus) that is skipped.

usage: tests/api/test_grafana.py --motet PROGRAM [NAME ...]"""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse

import served

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
import replay  # pylint: disable=wrong-import-position

BOARD = os.path.join(HERE, "..", "..", "contrib", "grafana", "motet.json")
NAME = re.compile(r"\b(?:vllm:|motet_)[a-z0-9_]+")
SUITE = served.Suite("api_grafana")
CONFIG = """global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}
scrape_configs: [{{job_name: motet, static_configs: [{{targets: ["127.0.0.1:{}"]}}]}}]
"""


def board():
    with open(BOARD, encoding="utf-8") as f:
        return json.load(f)


def queries():
    """(panel, query) of the dashboard."""
    return [(p["title"], t["expr"]) for p in board()["panels"] for t in p.get("targets", [])]


def start(folder):
    """A server of a model that sees, as the dashboard has figures of pictures, too."""
    model = replay.write(os.path.join(folder, "sight"), {"plain": ["This is a plain answer."]}, sees=True)
    return SUITE.start(folder=model)


def work(server, number):
    """A request with a picture, and one without."""
    parts = [{"type": "text", "text": "What is this, number {}?".format(number)},
             {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                          "data": base64.b64encode(replay.picture()).decode()}}]
    for content in (parts, "hello world, number {}".format(number)):
        answer = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
        assert answer.status == 200, answer.body


@SUITE.test
def test_names():
    """Each name in a query is one of a metric, with the parts that its kind has."""
    with tempfile.TemporaryDirectory() as folder, start(folder) as server:
        work(server, 0)
        told = {line.split("{")[0] for line in server.request("GET", "/metrics").body.decode().splitlines()
                if not line.startswith("#")}
    asked = {name for _, query in queries() for name in NAME.findall(query)}
    assert len(asked) > 30 and not asked - told, asked - told


@SUITE.test
def test_layout():
    """Panels have titles, a number of their own, and a place that no other has."""
    panels = board()["panels"]
    assert len({p["id"] for p in panels}) == len(panels) and all(p["title"] for p in panels)
    taken = set()
    for p in panels:
        g = p["gridPos"]
        cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        assert g["x"] + g["w"] <= 24 and not cells & taken, p["title"]
        taken |= cells


class Prometheus:
    """Watches a server, in a folder of its own."""

    def __init__(self, program, port):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "prometheus.yml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(port))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [program, "--config.file=" + path, "--storage.tsdb.path=" + self.folder.name + "/data",
             "--web.listen-address=127.0.0.1:{}".format(self.port), "--log.level=error"])

    def ask(self, query):
        """The samples of a query: numbers, without those that are none."""
        connection = served.http.client.HTTPConnection("127.0.0.1", self.port, timeout=served.PATIENCE)
        try:
            connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": query}))
            found = json.loads(connection.getresponse().read())
        except (OSError, ValueError):
            return []  # it is not up yet
        finally:
            connection.close()
        assert found["status"] == "success", (query, found)
        return [s["value"][1] for s in found["data"]["result"] if s["value"][1] != "NaN"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(served.PATIENCE)
        self.folder.cleanup()


def filled(query):
    """As Grafana sends it."""
    return query.replace("$__rate_interval", "1m").replace("$model_name", ".*")


@SUITE.test
def test_prometheus():
    """Each query has an answer, and so has the variable that lists models."""
    program = shutil.which("prometheus")
    if not program:
        raise served.Skip("there is no prometheus")
    open_queries = queries() + [("model_name", "count by(model_name) (vllm:num_requests_running)")]
    with tempfile.TemporaryDirectory() as folder, start(folder) as server, Prometheus(program, server.port) as watch:
        count = 0

        def answered():
            nonlocal open_queries, count
            work(server, count)
            count += 1
            open_queries = [(panel, query) for panel, query in open_queries if not watch.ask(filled(query))]
            return not open_queries
        assert served.eventually(answered), open_queries


SUITE.main()
