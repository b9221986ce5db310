#!/usr/bin/env python3
"""Mistakes that people are likely to make, on the command line and in requests: each is answered by one sentence with the
cause and what to do about it. They stand in mistakes.txt, with the sentences.

usage: tests/cli/test_mistakes.py --motet PROGRAM [--record]

--record writes the sentences anew; read the difference. In mistakes.txt, a line "$ WORDS" is a command (behind "<" what
it reads, before it "NAME=VALUE" of the environment), a line "POST PATH BODY" or "GET PATH" a request, and what follows is
the answer: of a command what it writes to standard error, of a request its status and the error's message, or "warning"
and the header of that name. BOX is the model in the box, HERE a folder that each command starts in: it has an empty
folder `empty`, a file `notes.txt`, and folders `TYPE` with the model in the box under that model_type for each
`model:TYPE` that a command names. Nothing is asked of a network."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import served  # noqa: E402 pylint: disable=wrong-import-position

BOX = os.path.realpath(os.path.join(HERE, "..", "..", "models", "box"))
LIST = os.path.join(HERE, "mistakes.txt")
# Each sentence says what to do behind its cause: a mark parts them, or the last part asks
PARTED = re.compile(r"[:;?]|, (which|or|since) ")
LOGGED = re.compile(r"^\d\d:\d\d:\d\d\.\d.*\n", re.MULTILINE)
MEMBERS = ("error", "message", "detail")


def of_type(folder, name):
    """A folder with the model in the box under another model_type."""
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        shutil.copytree(BOX, path)
        config = os.path.join(path, "config.json")
        with open(config, encoding="utf-8") as f:
            values = json.load(f)
        values["model_type"] = name
        with open(config, "w", encoding="utf-8") as f:
            json.dump(values, f)
    return path


def run(motet, folder, line):
    """What a command writes to standard error; it must not end well."""
    line, _, text = line.partition(" <")
    words = shlex.split(line.replace("BOX", BOX).replace("HERE", folder))
    words = [of_type(folder, w[6:]) if w.startswith("model:") else w for w in words]
    given = dict(w.split("=", 1) for w in words[:words.index("motet")])
    if "serve" in words and not {"--port", "--prot", "--host"} & set(words):
        words += ["--port", "0"]  # where it comes so far
    kept = {k: v for k, v in os.environ.items() if not re.match("HF_|HUGGING|OLLAMA|MOTET|XDG", k)}
    kept.update(HOME=os.path.join(folder, "home"), OLLAMA_MODELS="/nowhere", HF_ENDPOINT="http://127.0.0.1:9")
    kept.update(given)
    done = subprocess.run([motet] + words[words.index("motet") + 1:], cwd=folder, env=kept, input=text.strip() + "\n",
                          capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode not in (0, 77) and done.returncode > 0, (line, done)
    return LOGGED.sub("", done.stderr)


def message(value):
    """The sentence of an error in any dialect."""
    while isinstance(value, dict):
        value = next((value[m] for m in MEMBERS if m in value), json.dumps(value))
    return str(value)


def ask(server, line):
    method, path, *body = line.split(" ", 2)
    answer = server.request(method, path, body[0] if body else None, {"content-type": "application/json"} if body else {})
    if answer.status == 200:
        return "warning: " + str(answer.headers.get("warning")) + "\n"
    return "{} {}\n".format(answer.status, message(json.loads(answer.body)))


def read():
    """The lines before the first mistake, and [mistake, answer] or a comment."""
    with open(LIST, encoding="utf-8") as f:
        for line in f:
            if re.match(r"\$ |POST |GET |PUT |DELETE ", line):
                yield line.rstrip("\n"), True
            else:
                yield line, False


def mistakes():
    found, comments = [], []
    for line, is_mistake in read():
        if is_mistake:
            found.append([comments, line, ""])
            comments = []
        elif line.startswith("#") or not line.strip():
            comments.append(line)
        else:
            found[-1][2] += line
    return found


def is_sentence(text):
    """Whether it is one line with a cause and what to do about it."""
    return text.count("\n") == 1 and PARTED.search(text) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if not {"fetch", "tls"} <= set(served.features(arguments.motet)):
        print("skipped: motet was built without what some of the sentences are about")
        sys.exit(77)
    motet, all_of_them, failed = os.path.abspath(arguments.motet), mistakes(), 0
    with tempfile.TemporaryDirectory() as folder, served.Server(motet, BOX) as server:
        folder = os.path.realpath(folder)
        os.mkdir(os.path.join(folder, "empty"))
        with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as f:
            f.write("notes\n")
        for mistake in all_of_them:
            _, line, expected = mistake
            said = run(motet, folder, line[2:]) if line.startswith("$ ") else ask(server, line)
            said = said.replace(BOX, "BOX").replace(folder, "HERE").replace(str(server.port), "PORT")
            mistake[2] = said
            good = said == expected or arguments.record
            if not good or not is_sentence(said):
                failed += 1
                print("FAILED {}\n  said     {}\n  expected {}".format(line, said, expected))
    if arguments.record:
        with open(LIST, "w", encoding="utf-8") as f:
            for comments, line, said in all_of_them:
                f.write("".join(comments) + line + "\n" + said)
    print("cli_mistakes: {} passed, {} failed".format(len(all_of_them) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
