#!/usr/bin/env python3
"""How many schemas of a collection are followed, strictly and as far as possible, and whether what is made is valid.

usage: tests/constraint/bench.py --walk PROGRAM FOLDER... [--every N] [--texts] [--show REASON] [--tokenizer FOLDER]

FOLDER: JSON files, each a schema, or {"schema": S, "tests": [{"data": D, "valid": B}, ...]} as JSONSchemaBench's
maskbench has them. Refusals are counted by the keyword that they name. --texts makes texts at random and lets ajv
judge them, and looks whether instances that are not valid are allowed."""

import argparse
import collections
import glob
import json
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import schema as schemas  # pylint: disable=wrong-import-position
import fixture  # pylint: disable=wrong-import-position


def reason(sentence):
    keyword = re.match(r'"([^"]*)" at ', sentence)
    return keyword.group(1) if keyword else sentence[:60]


class Bench:
    def __init__(self, walk, validator, options):
        self.walk, self.validator, self.options = walk, validator, options
        self.reasons = {True: collections.Counter(), False: collections.Counter()}
        self.accepted = {True: 0, False: 0}
        self.count = self.made = self.invalid = self.unjudged = self.wrong = self.right = self.missed = self.asked = 0
        self.times = []

    def judge(self, path, schema, strict):
        made = self.walk.ask(kind="schema", value=schema, walk=4, seed=self.count, strict=strict)
        if "error" in made or made.get("warning"):
            return
        judged = self.validator.ask(schema=schema, texts=made["texts"])
        if "error" in judged:
            self.unjudged += 1
            return
        for text, valid in zip(made["texts"], judged["valid"]):
            self.made += 1
            if not valid:
                self.invalid += 1
                print(f"made, but not valid: {path}\n  {text[:1000]}")

    def instances(self, path, schema, cases):
        texts = [json.dumps(case["data"], ensure_ascii=False) for case in cases]
        answer = self.walk.ask(kind="schema", value=schema, texts=texts, strict=True)
        for case, fit in zip(cases, answer.get("fits", [])):
            self.asked += 1
            self.right += case["valid"] and fit
            self.missed += case["valid"] and not fit
            if fit and not case["valid"]:
                self.wrong += 1
                print(f"allowed, but not valid: {path}\n  {json.dumps(case['data'])[:1000]}")

    def file(self, path):
        with open(path, encoding="utf-8") as file:
            schema = json.load(file)
        cases = schema.get("tests") if isinstance(schema.get("schema"), dict) else None
        schema = schema["schema"] if cases is not None else schema
        self.count += 1
        for strict in (True, False):
            begin = time.monotonic()
            answer = self.walk.ask(kind="schema", value=schema, walk=0, strict=strict)
            self.times.append((time.monotonic() - begin, path))
            if "error" in answer:
                self.reasons[strict][reason(answer["error"])] += 1
                if strict and self.options.show and self.options.show in answer["error"]:
                    print(f"{path}: {answer['error'][:300]}")
                continue
            self.accepted[strict] += 1
            if strict and self.options.texts:
                self.judge(path, schema, True)
            if strict and self.options.texts and cases:
                self.instances(path, schema, cases)

    def report(self):
        for strict in (True, False):
            print(f"strict {strict}: {self.accepted[strict]} of {self.count} accepted "
                  f"({100 * self.accepted[strict] / max(self.count, 1):.2f} %)")
            for name, count in self.reasons[strict].most_common(40):
                print(f"  {count:5} {name}")
        self.times.sort()
        if self.times:
            middle, late = self.times[len(self.times) // 2][0], self.times[len(self.times) * 99 // 100][0]
            print(f"compiled in {1e3 * middle:.1f} ms (median), {1e3 * late:.1f} ms (99 %), worst "
                  f"{1e3 * self.times[-1][0]:.0f} ms {self.times[-1][1]}")
        if self.options.texts:
            print(f"{self.made} texts made, {self.invalid} not valid, {self.unjudged} schemas not taken by ajv; of "
                  f"{self.asked} instances {self.right} valid ones allowed, {self.missed} never written, "
                  f"{self.wrong} invalid ones allowed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--walk", required=True)
    parser.add_argument("--tokenizer")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--show")
    options = parser.parse_args()
    paths = [path for folder in options.folders
             for path in sorted(glob.glob(os.path.join(folder, "**", "*.json"), recursive=True))]
    with tempfile.TemporaryDirectory() as folder:
        if not options.tokenizer:
            fixture.write(folder)
        walk = schemas.Partner(options.walk, options.tokenizer or folder)
        validator = schemas.Partner("node", os.path.join(HERE, "validate.mjs"), schemas.CACHE)
        bench = Bench(walk, validator, options)
        for path in paths[::options.every]:
            bench.file(path)
        bench.report()
        walk.close()
        validator.close()
    return 1 if bench.invalid or bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
