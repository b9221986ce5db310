#!/usr/bin/env python3
"""A server that mpirun has started as several processes: the answers of one, and an end that says who is missing.
Without MPI the tests are skipped.

usage: tests/api/test_ranks.py --motet PROGRAM [NAME ...]"""

import os
import re
import shutil
import signal
import subprocess
import tempfile

import served
from served import Skip

SUITE = served.Suite("api_ranks")
test = SUITE.test
RANK = re.compile(r"ranks\.joined rank (\d+) is process (\d+)")
FEW = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]


class Ranks(served.Server):
    """mpirun is the process that is started; the server is rank 0 of it."""

    def __init__(self, count, *options, **settings):
        served.need(SUITE.program, "mpi")
        mpirun = shutil.which("mpirun")
        if not mpirun:
            raise Skip("there is no mpirun")
        self.folder = tempfile.TemporaryDirectory()
        program = os.path.join(self.folder.name, "motet")
        with open(program, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nexec {} {} -n {} {} "$@"\n'.format(mpirun, " ".join(FEW), count, SUITE.program))
        os.chmod(program, 0o755)
        super().__init__(program, SUITE.folder, "--threads", "1", *options, **settings)

    def pid(self, rank):
        found = [m for m in map(RANK.search, self.log) if m and int(m.group(1)) == rank]
        return int(found[0].group(2))

    def stop(self, number=signal.SIGTERM, seconds=served.PATIENCE):
        """To rank 0, which lets answers end and sends the others home."""
        if self.process.poll() is None:
            try:
                os.kill(self.pid(0), number)
            except ProcessLookupError:
                pass
        status = super().stop(0, seconds)
        self.folder.cleanup()
        return status

    def complaints(self):
        """What MPI writes by itself, such as of system calls that the sandbox refuses."""
        return [line for line in self.log if re.search(r"Read -?\d+, expected|errno|\[\[\d+,\d+\]", line)]

    def named(self, rank, what):
        return any("rank {} (process {} ".format(rank, self.pid(rank)) in line and what in line for line in self.log)


SCHEMA = {"type": "json_schema", "json_schema": {"name": "pair", "schema": {
    "type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}}}


def answers(server):
    """Text, logprobs and usage of calls of several kinds; the last finds what the first has left in the cache."""
    text = "the quick brown fox jumps over lazy dog and then there were seven other stories hello world of many voices"
    calls = [{"logprobs": True, "top_logprobs": 5, "max_tokens": 12, "temperature": 0},
             {"max_tokens": 24, "temperature": 0.8, "seed": 4, "n": 3},
             {"max_tokens": 40, "response_format": SCHEMA, "seed": 5},
             {"logprobs": True, "top_logprobs": 5, "max_tokens": 12, "temperature": 0}]
    found = []
    for call in calls:
        answer = server.chat(text, **call).json()
        found.append((answer["choices"], answer["usage"]))
    return found


@test
def what_one_process_does_says_so():
    """With MPI and without: mpirun that starts such a command twice is told, by each of the processes."""
    for command in (["run", SUITE.folder, "hello"], ["tokenize", SUITE.folder], ["serve", "--check", SUITE.folder]):
        for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
            done = subprocess.run([SUITE.program, *command], env=dict(os.environ, **{name: "2"}), capture_output=True,
                                  text=True, check=False, timeout=served.PATIENCE, stdin=subprocess.DEVNULL)
            assert done.returncode == 1 and "start it without mpirun" in done.stderr and not done.stdout, (command, done)
    assert subprocess.run([SUITE.program, "--version"], env=dict(os.environ, PMI_SIZE="2"), check=False).returncode == 0


@test
def the_answers_of_one():
    """Two and three ranks: the same bytes, and what they exchanged is counted."""
    with SUITE.start() as server:
        alone = answers(server)
        assert "motet_ranks" not in server.metrics()
    for count in (2, 3):
        with Ranks(count) as server:
            assert answers(server) == alone
            assert not server.complaints(), server.complaints()[:5]
            metrics = server.metrics()
            assert metrics["motet_ranks"] == count
            for name in ("sent_bytes", "received_bytes", "exchanges", "wait_seconds"):
                assert metrics["motet_rank_{}_total".format(name)] > 0, name


@test
def a_rank_that_dies():
    """An answer is under way; it has an end, the rank is named, and the job ends with a status."""
    server = Ranks(2)
    sock = served.send(server, "/v1/completions",
                       {"prompt": "hello world", "max_tokens": 1900, "ignore_eos": True, "stream": True})
    assert sock.recv(64)
    os.kill(server.pid(1), signal.SIGKILL)
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    status = server.process.wait(served.PATIENCE)
    server.reader.join(served.PATIENCE)
    assert status != 0, status
    assert server.named(1, "has ended") or any("process rank 1 " in line for line in server.log), server.log[-30:]


@test
def a_rank_that_hangs():
    """Who asks is told which, and the job ends with a status."""
    server = Ranks(2, "--rank-seconds", "1")
    os.kill(server.pid(1), signal.SIGSTOP)
    answer = server.complete(prompt="hello world", max_tokens=4)
    status = server.process.wait(served.PATIENCE)
    server.reader.join(served.PATIENCE)
    assert answer.status == 500 and "has not answered for 1 s" in answer.body.decode(), (answer.status, answer.body)
    assert status != 0 and server.named(1, "has not answered for 1 s"), (status, server.log[-30:])


@test
def what_ranks_do_not_do():
    """Said before anything is opened, by one sentence."""
    served.need(SUITE.program, "mpi")
    memory = "several ranks keep nothing but in memory: leave "
    with tempfile.TemporaryDirectory() as cache:
        for options, sentence in ((["--cache-dir", cache], memory + '"--cache-dir"'),
                                  (["--cache-remote", "redis://127.0.0.1:1"], memory + '"--cache-remote"'),
                                  (["--model", "other=" + SUITE.folder], "several ranks serve one model")):
            done = subprocess.run(["mpirun", *FEW, "-n", "2", SUITE.program, "serve", SUITE.folder, "--port", "0",
                                   *options], capture_output=True, text=True, check=False, timeout=served.PATIENCE)
            assert done.returncode != 0 and done.stderr.count("motet: " + sentence) == 1, done.stderr


if __name__ == "__main__":
    SUITE.main()
