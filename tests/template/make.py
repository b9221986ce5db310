#!/usr/bin/env python3
"""Writes cases/*.json: templates, and what Jinja2 makes of them.

usage: tests/template/make.py            (needs Debian's python3-jinja2; recorded with 3.1.2)

sources/NAME.txt has an expression a line, rendered as {{ expression }}; sources/templates.py has whole templates. Each
case has the text expected or the error: its kind ("compile", "raised", "runtime") and message. A case whose text is
not the same every time, because an address is in it, is left out, as is what motet does not do: integers beyond 64
bits. What changed between releases of Jinja2 is not among the sources; there motet follows 3.1.6, and
tests/unit/template_values.c says how. tests/unit/template_cases.c runs the cases."""

import copy
import json
import os
import re
import sys
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.join(FOLDER, "sources")]
sys.dont_write_bytecode = True

import reference  # noqa: E402
from context import CONTEXT  # noqa: E402
from templates import TEMPLATES  # noqa: E402

UNSTEADY = re.compile(r" at 0x[0-9a-f]+")
NUMBER = re.compile(r"-?\b\d{19,}\b")


def read_expressions(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                yield "{{ " + line.rstrip("\n") + " }}"


def is_kept(template, result):
    text = template + result.get("expected", "")
    return not UNSTEADY.search(text) and all(-2**63 <= int(number) < 2**63 for number in NUMBER.findall(text))


def write(name, templates):
    cases = []
    for template in templates:
        result = reference.render(template, copy.deepcopy(CONTEXT))
        if is_kept(template, result):
            cases.append(dict(template=template, **result))
        else:
            print("left out of {}: {!r}".format(name, template))
    with open(os.path.join(FOLDER, "cases", name + ".json"), "w", encoding="utf-8") as out:
        out.write('{{"context": {},\n"cases": [\n'.format(json.dumps(CONTEXT, ensure_ascii=False)))
        out.write(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases))
        out.write("\n]}\n")
    print("{}: {} cases".format(name, len(cases)))


def main():
    warnings.simplefilter("ignore")
    os.makedirs(os.path.join(FOLDER, "cases"), exist_ok=True)
    for file in sorted(os.listdir(os.path.join(FOLDER, "sources"))):
        if file.endswith(".txt"):
            write(file[:-4], read_expressions(os.path.join(FOLDER, "sources", file)))
    for name, templates in TEMPLATES.items():
        write(name, templates)


if __name__ == "__main__":
    main()
