#!/usr/bin/env python3
"""Shows recorded templates tools that lack what a template may count on: a tool without a description, without parameters,
without either, and one whose parameters are an empty object. Wherever a template shows a whole tool, it has to show
these, too.

usage: tests/chat/bare_tools.py PROMPT_LINES FOLDER

FOLDER is that of tests/template/corpus.py. Ends with a line of counts."""

import glob
import json
import os
import sys

import corpus

NAME = "look_up_tides"
WHOLE = {"name": NAME, "description": "The tides of a harbour.",
         "parameters": {"type": "object", "properties": {"harbour": {"type": "string", "description": "Which one."}},
                        "required": ["harbour"]}}


def lacking(*members, **other):
    return dict({k: v for k, v in WHOLE.items() if k not in members}, **other)


BARE = {"no description": lacking("description"), "no parameters": lacking("parameters"),
        "a name only": lacking("description", "parameters"), "null": lacking(description=None, parameters=None),
        "empty parameters": lacking(parameters={}), "an object of nothing": lacking(parameters={"type": "object"}),
        "a property of any kind": lacking(parameters={"type": "object", "properties": {"harbour": {}}})}


def prompt(lines, source, function):
    """The text that shows this tool, or None; and why there is none."""
    answer = lines.ask({"template": source, "request": {
        "messages": [{"role": "user", "content": "When is high water?"}],
        "tools": [{"type": "function", "function": function}]}})
    return answer.get("text"), answer.get("error")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = corpus.Lines(sys.argv[1])
    shown = passed = failed = 0
    paths = sorted(glob.glob(os.path.join(sys.argv[2], "templates", "*.jinja")))
    for path in paths:
        with open(path, encoding="utf-8", newline="") as f:
            source = f.read()
        whole, _ = prompt(lines, source, WHOLE)
        if NAME not in (whole or ""):
            continue  # it has no place for tools
        shown += 1
        for what, function in BARE.items():
            text, why = prompt(lines, source, function)
            if NAME in (text or ""):
                passed += 1
            else:
                failed += 1
                print("{}, {}: {}".format(os.path.basename(path), what, why or json.dumps(text)))
    print("bare tools: {} passed, {} failed, in {} of {} templates".format(passed, failed, shown, len(paths)))
    sys.exit(1 if failed or not passed else 0)


main()
