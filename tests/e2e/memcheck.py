#!/usr/bin/env python3
"""A server under valgrind's memcheck works through the mixed load (load.py): whole answers, streams, some left in the
middle, hostile input; twice, the second time with what the first one left on disk. Both say the same, which need not be
what one without valgrind says, whose arithmetic rounds otherwise. Fails where memcheck finds an error or a block that is
lost for good.

usage: tests/e2e/memcheck.py --motet PROGRAM [--questions N] [--hostile N]

Decoders run in the server here: processes with a filter of system calls cannot be looked into."""

import argparse
import os
import random
import stat
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api")]
import load    # noqa: E402
import malice  # noqa: E402
import served  # noqa: E402

WRAPPER = """#!/bin/sh
exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \\
    --log-file='{log}' '{program}' "$@"
"""
OPTIONS = ("--precision", "fast", "--threads", "2", "--memory", "1G", "--sandbox", "off")


def work(server, asked, dice, hostile):
    for question in asked:
        answer = server.post(question.path, question.body)
        assert answer.status == 200, answer.body
        question.cold = question.cold or question.said(answer.json())
        assert question.said(answer.json()) == question.cold, question.body
        if question.streams():
            choice = answer.json()["choices"][0]
            question.alike = [choice["finish_reason"], load.whole(choice)]
            found = load.collect(server.post(question.path, {**question.body, "stream": True}).events())
            assert found == question.alike, (found, question.alike)
            s = served.send(server, question.path, {**question.body, "stream": True})
            s.recv(100)
            s.close()
    evil = malice.Malice()
    for _ in range(hostile):
        assert malice.refused(evil.send(server, dice))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--questions", type=int, default=36)
    parser.add_argument("--hostile", type=int, default=100)
    arguments = parser.parse_args()
    program, dice = os.path.abspath(arguments.motet), random.Random(3)
    asked = load.questions(arguments.questions)
    with tempfile.TemporaryDirectory() as folder:
        wrapper, log = os.path.join(folder, "motet"), os.path.join(folder, "log")
        with open(wrapper, "w", encoding="utf-8") as f:
            f.write(WRAPPER.format(log=log, program=program))
        os.chmod(wrapper, stat.S_IRWXU)
        for number in (1, 2):
            server = served.Server(wrapper, load.FOLDERS, "--cache-dir", os.path.join(folder, "cache"), *OPTIONS)
            try:
                work(server, asked, dice, arguments.hostile)
                server.wait_idle()
            finally:
                status = server.stop()
                with open(log, encoding="utf-8", errors="replace") as f:
                    said = f.read()
                print(said, end="")
            assert status == 0 and not said, "the {}. server ended with {}".format(number, status)
            print("server {}: {} questions, {} hostile inputs, nothing found".format(number, len(asked), arguments.hostile))
    print("memcheck: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
