"""What the attacks by templates and tokenizers share: small checkpoints that were spoilt, and a server that must stand
them.

A case is a checkpoint beside an honest one behind the same server, or a request with a template of its own. Right is an
answer, or an error of one sentence with the words expected that names no path of the server. While the server works on
a case it answers a neighbour; after each case it answers the neighbour as before."""

import argparse
import copy
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))

import fixture  # noqa: E402
import served  # noqa: E402

PATH = re.compile(r"""(^|[\s"'(])/(?!v1/)[A-Za-z]""")
MEMORY = 1 << 30  # bytes that a server with models this small may have at its peak
QUICK = "MOTET_TEST_QUICK" in os.environ  # under sanitizers, which take memory of their own


def message(content, role="user", **more):
    return {"role": role, "content": content, **more}


def added(content, **flags):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **flags}


def with_tokens(*contents):
    """The fixture's tokenizer.json with more special tokens, in place of its last merges."""
    tokenizer = copy.deepcopy(fixture.tokenizer())
    model = tokenizer["model"]
    for content in contents:
        model["vocab"][content] = model["vocab"].pop("".join(model["merges"].pop().split(" ")))
    tokenizer["added_tokens"] += [added(c) for c in contents]
    return tokenizer


def sentence(answer):
    """What an error says: one sentence that names no path and has nothing in it that a terminal would obey."""
    told = answer.json()["error"]["message"]
    assert not PATH.search(told), "a path: " + told
    assert len(told) < 2048 and not re.search(r"[\x00-\x1f\x7f]", told), repr(told)
    return told


class Attack:
    """The cases of a class, each of them a test of its own. One server has to stand them all."""

    def __init__(self, name):
        self.name, self.cases, self.folders, self.known = name, [], {}, {}
        self.alike = set()  # names of cases that differ only in what is sent
        self.program = self.top = None

    def test(self, function):
        """A case of its own kind: a function of the server."""
        def test(server):
            function(server)
            self.well(server)
        test.__name__ = function.__name__
        self.cases.append(test)
        return function

    def checkpoint(self, name, files, words=None, messages=None, status=(500,), answers=None, **more):
        """A checkpoint whose files are these instead of the honest one's: by name, a text, bytes or what becomes JSON;
        None: no such file. words: what the error has in it; None: the messages are answered. answers: a function of the
        answer that says whether it is right."""
        self.folders[name] = files
        body = {"model": name, "messages": messages or [message("hello world")], "max_tokens": 4, "temperature": 0,
                **more}

        def test(server):
            answer = self.beside(server, lambda: server.post("/v1/chat/completions", body))
            self.judge(answer, words, status, answers)
            self.well(server)
        test.__name__ = name
        self.cases.append(test)
        self.alike.add(name)

    def request(self, name, words=None, status=(400, 413), answers=None, path="/v1/chat/completions", **body):
        """A request to the honest model."""
        body = {"messages": [message("hello world")], "max_tokens": 4, "temperature": 0, "model": "honest", **body}

        def test(server):
            self.judge(self.beside(server, lambda: server.post(path, body)), words, status, answers)
            self.well(server)
        test.__name__ = name
        self.cases.append(test)
        self.alike.add(name)

    def leaves(self, name, files=None, path="/v1/chat/completions", **body):
        """A request that takes long, whose client leaves: the work ends."""
        if files:
            self.folders[name] = files
        body = {"messages": [message("hello world")], "max_tokens": 4, "model": name if files else "honest", **body}

        def test(server):
            if files:  # until it is loaded, which is not what takes long
                assert server.post("/tokenize", {"model": name, "prompt": "the"}).status == 200
            client = served.send(server, path, body)
            served.eventually(lambda: served.preparing(server) or select.select([client], [], [], 0)[0])
            self.well(server)
            client.close()
            server.wait_idle()
            self.well(server)
        test.__name__ = name
        self.cases.append(test)

    def commands(self, *names):
        """These commands, too, read a checkpoint, or refuse it in one sentence: of all, one in four."""
        def test(_):
            for folder in list(self.folders)[::4]:
                for name in names:
                    ended = subprocess.run([self.program, name, os.path.join(self.top, folder)], input=b"the fox",
                                           capture_output=True, timeout=served.PATIENCE, check=False)
                    told = ended.stderr.decode(errors="surrogateescape")
                    assert ended.returncode in (0, 1), (folder, ended.returncode, told[-2000:])
                    assert told.count("\n") == ended.returncode and told[:-1].isprintable(), (folder, told)
        test.__name__ = "the_command_line"
        self.cases.append(test)

    def beside(self, server, function):
        """What it returns, while a neighbour is answered."""
        result = []
        thread = threading.Thread(target=lambda: result.append(function()))
        thread.start()
        self.well(server)
        thread.join(served.PATIENCE)
        assert result, "no answer"
        return result[0]

    def judge(self, answer, words, status, answers):
        if words is None:
            assert answer.status == 200, (answer.status, answer.body[:2000])
            assert answers is None or answers(answer.json()), answer.body[:2000]
            return
        assert answer.status in status, (answer.status, answer.body[:2000])
        told = sentence(answer)
        assert words in told, told

    def well(self, server):
        """It answers the neighbour as it did before."""
        answer = server.post("/v1/chat/completions", {
            "model": "honest", "messages": [message("hello world")], "max_tokens": 4, "temperature": 0,
            "ignore_eos": True, "logprobs": True})
        assert answer.status == 200, answer.body
        said = answer.json()["choices"][0]["logprobs"]["content"]
        assert said == self.known.setdefault("text", said), "the neighbour gets another answer than before"

    def write(self, top):
        """The folders of all checkpoints."""
        honest = fixture.write(os.path.join(top, "honest"))
        for name, files in self.folders.items():
            folder = os.path.join(top, name)
            os.mkdir(folder)
            for file in os.listdir(honest):
                if file not in files:
                    os.link(os.path.join(honest, file), os.path.join(folder, file))
            for file, content in files.items():
                if content is not None:
                    write_file(os.path.join(folder, file), content)

    def chosen(self):
        """Under sanitizers a third of the cases of a kind; the parsers behind them are fuzzed there, too."""
        kinds = [case for case in self.cases if case.__name__ in self.alike]
        left_out = set(kinds) - set(kinds[::3]) if QUICK else set()
        return [case for case in self.cases if case not in left_out]

    def main(self, *options):
        parser = argparse.ArgumentParser()
        parser.add_argument("--motet", required=True)
        parser.add_argument("names", nargs="*")
        arguments = parser.parse_args()
        with tempfile.TemporaryDirectory() as top:
            self.program, self.top = os.path.abspath(arguments.motet), top
            self.write(top)
            server = served.Server(self.program, [], "--models-dir", top, "--memory", "768M",
                                   *options, env={"HF_HUB_CACHE": os.path.join(top, "none")})
            try:
                self.well(server)
                served.run_tests(self.name, [*self.chosen(), ends_in_order], arguments.names, server)
            finally:
                server.stop()


def write_file(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not isinstance(content, (str, bytes)):
        content = json.dumps(content)
    with open(path, "wb") as f:
        f.write(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)


def ends_in_order(server):
    peak = server.memory_peak()
    status = server.stop()
    assert status == 0, (status, server.log[-20:])
    assert QUICK or peak < MEMORY, "it took {} MiB".format(peak >> 20)
