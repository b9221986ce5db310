#!/usr/bin/env python3
"""Constraints that are large: they work, or a 400 says what is too large, and nobody else waits for them.

usage: tests/api/test_constraints.py --motet PROGRAM [NAME ...]"""

import contextlib
import json
import os

import served
from served import eventually, preparing, send

SUITE = served.Suite("api_constraints")
test, start = SUITE.test, SUITE.start
MANY = 100_000 if os.environ.get("MOTET_TEST_FULL") else 20_000


def dialects(schema):
    """(path, body, where the answer's text is) of each way to send a schema."""
    chat = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 200, "temperature": 1.5}
    wrapped = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    return (("/v1/chat/completions", {**chat, "response_format": wrapped},
             lambda a: a["choices"][0]["message"]["content"]),
            ("/v1/responses", {"input": "hello", "max_output_tokens": 200, "temperature": 1.5,
                               "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}},
             lambda a: a["output"][-1]["content"][0]["text"]),
            ("/v1/messages", {**chat, "temperature": 1, "output_format": {"type": "json_schema", "schema": schema}},
             lambda a: a["content"][0]["text"]))


# ---- what is large and works


@test
def a_value_of_a_long_list():
    numbers = [7 * i for i in range(8200)]
    names = ["product {} no. {}".format("abcdefgh"[i % 8] * (i % 5), i * 7919 % 100_003) for i in range(MANY)]
    with start() as server:
        for values, ways in ((numbers, 3), (names, 1)):
            for path, body, text in dialects({"enum": values})[:ways]:
                got = server.post(path, body)
                assert got.status == 200, (path, got.body[:300])
                assert json.loads(text(got.json())) in set(values), (path, got.body[:300])
        got = server.chat(guided_choice=names, max_tokens=200)
        assert got.status == 200 and got.json()["choices"][0]["message"]["content"] in set(names), got.body[:300]


@test
def grammars_with_many_alternatives():
    words = ["w{}x".format(i * i) for i in range(8300)]
    with start() as server:
        got = server.chat(guided_grammar="root ::= " + " | ".join('"{}"'.format(w) for w in words), max_tokens=50)
        assert got.status == 200, got.body[:300]
        assert got.json()["choices"][0]["message"]["content"] in set(words), got.body[:300]
        got = server.chat(guided_grammar="root ::= " + '"a"? ' * 8200 + '"."', max_tokens=50)
        assert got.status == 200, got.body[:300]
        assert set(got.json()["choices"][0]["message"]["content"]) <= set("a."), got.body[:300]


@test
def long_lists_are_held_against_each_other_at_once():
    count = MANY
    schema = {"allOf": [{"enum": list(range(count))}, {"enum": list(range(count - 10, 2 * count))}]}
    with start() as server:
        path, body, text = dialects(schema)[0]
        got = server.post(path, body)
        assert got.status == 200, got.body[:300]
        assert count - 10 <= int(text(got.json())) < count, got.body[:300]


@test
def a_union_of_many_objects():
    def member(i):
        texts = {"p{}".format(k): {"type": "null"} for k in range(40)}
        return {"type": "object", "properties": {**texts, "kind": {"const": i}}, "required": ["kind"]}
    schema = {"oneOf": [{"$ref": "#/$defs/m{}".format(i)} for i in range(100)],
              "$defs": {"m{}".format(i): member(i) for i in range(100)}}
    with start() as server:
        inner = {"name": "x", "schema": schema, "strict": True}
        got = server.chat(response_format={"type": "json_schema", "json_schema": inner}, max_tokens=900,
                          temperature=0)
        assert got.status == 200 and "warning" not in got.headers, got.body[:300]
        value = json.loads(got.json()["choices"][0]["message"]["content"])
        assert value.pop("kind") in range(100) and set(value.values()) <= {None}, value


@test
def a_list_of_many_tools():
    """Calls of any of them can be enforced, as the tokens that the template writes of them do not count here."""
    def tool(i, strict):
        schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 3}, "days": {
            "type": "integer", "minimum": 1, "maximum": 9}, "unit": {"enum": ["C", "F"]}},
                  "required": ["city", "days", "unit"], "additionalProperties": False}
        return {"type": "function", "function": {"name": "tool_{}".format(i), "strict": strict, "parameters": schema}}
    template = "{% for message in messages %}{{ message.content }}{% endfor %}{% if tools %} {% endif %}"
    with start("--allow-chat-template", "--tool-format", "hermes") as server:
        for strict in (False, True):
            tools = [tool(i, strict) for i in range(1500)]
            for choice in ("auto", "required"):
                got = server.chat(tools=tools, tool_choice=choice, chat_template=template, max_tokens=200)
                assert got.status == 200, (strict, choice, got.body[:300])
                calls = got.json()["choices"][0]["message"].get("tool_calls", [])
                assert calls or choice == "auto", got.body[:300]
                for call in calls if strict else []:
                    assert set(json.loads(call["function"]["arguments"])) == {"city", "days", "unit"}, call


# ---- what cannot be enforced


@test
def what_is_not_enforced_stands_in_a_header():
    schema = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string", "maxLength": 2},
                                                        "maxItems": 1, "uniqueItems": True},
                                               "kinds": {"type": "array", "items": {"type": "null"}, "maxItems": 3,
                                                         "contains": {"type": "null"}},
                                               "names": {"type": "array", "items": {"type": "integer", "maximum": 9,
                                                                                    "minimum": 0},
                                                         "maxItems": 2, "uniqueItems": True}},
              "required": ["tags", "kinds", "names"]}
    with start() as server:
        for strict in (False, None):
            inner = {"name": "x", "schema": schema, "strict": strict}
            for stream in (False, True):
                got = server.chat(response_format={"type": "json_schema", "json_schema": inner}, max_tokens=200,
                                  stream=stream)
                assert got.status == 200, got.body[:300]
                said = got.headers.get("warning")
                assert said == '299 motet "not enforced of the schema: uniqueItems"', said
        got = server.chat(guided_json=schema, max_tokens=200)
        assert got.headers.get("warning"), got.headers
        value = json.loads(got.json()["choices"][0]["message"]["content"])
        assert value["kinds"] and set(value["names"]) <= set(range(10)), value
        inner = {"name": "x", "schema": schema, "strict": True}
        got = server.chat(response_format={"type": "json_schema", "json_schema": inner}, max_tokens=200)
        assert got.status == 400 and '"uniqueItems" at "#/properties/names"' in got.json()["error"]["message"], got.body
        del schema["properties"]["names"]["uniqueItems"]
        got = server.chat(response_format={"type": "json_schema", "json_schema": inner}, max_tokens=200)
        assert got.status == 200 and "warning" not in got.headers, got.headers


# ---- what is too large


@test
def what_is_too_large_is_named():
    with start() as server:
        for grammar, said in (("root ::= [0-9]" + ' | [a-z] "a" | [b-y] "b"' * 40_000, "65536 places at once"),
                              ("root ::= " + '"a"? "b"? ' * 10_000, "16384 places at once"),
                              ("root ::= " + '. ' * 600_000, "1048576 parts"),
                              ('root ::= "a"' + "?" * 100_000, "repeats what is repeated"),
                              ("root ::= " + '"a"' * 3_000_000, "write at most")):
            got = server.chat(guided_grammar=grammar)
            assert got.status == 400, (said, got.status, got.body[:300])
            error = got.json()["error"]
            assert said in error["message"] and error["param"] == "guided_grammar", error
        assert server.chat("hello", max_tokens=1).status == 200


@test
def what_takes_too_long_to_compile_is_refused():
    """Each of many values is held against many patterns, which would take minutes."""
    values = ["{:016x}".format(i * 0x9E3779B97F4A7C15 % 2**64) for i in range(100_000)]
    schema = {"enum": values, "anyOf": [{"pattern": "x{}".format(i)} for i in range(200)]}
    with start() as server:
        path, body, _ = dialects(schema)[0]
        got = server.post(path, body)
        assert got.status == 400, got.body[:300]
        error = got.json()["error"]
        assert "more than 2 seconds of processor time to compile; make it smaller" in error["message"], error
        assert error["param"] == "response_format", error
        assert server.metrics()["motet_constraints_refused_total"] == 1
        assert server.chat(guided_choice=["yes", "no"], max_tokens=9).status == 200


# ---- who waits


def slow(i):
    """A small schema that takes long to compile: texts are held against several patterns, and against a length."""
    long = {"type": "string", "pattern": "^([a-z]{1,9}|[0-9a-f]{2,5})(-([a-z]{1,12}|[0-9]{1,3})){0,5}$"}
    wide = {"type": "string", "allOf": [{"pattern": "^[ab]*a[ab]{7}$"}, {"pattern": "^.*[xy]?.*$"}]}
    texts = {"p{}".format(k): {**(long if k < 120 else wide), "maxLength": 40 + i + k} for k in range(170)}
    return {"type": "object", "properties": texts}


@test
def tags_within_tags_of_equal_triggers_end():
    """Every trigger reads the tags that begin with it: of two equal ones within one another, twice as many each time."""
    nested = {"type": "any_text"}
    for _ in range(60):
        nested = {"type": "triggered_tags", "triggers": ["<", "<"],
                  "tags": [{"begin": "<a>", "content": nested, "end": "</a>"}]}
    flat = {"type": "triggered_tags", "triggers": ["<"] * 3000,
            "tags": [{"begin": "<{}>".format(i), "content": {"type": "any_text"}, "end": "</a>"} for i in range(3000)]}
    with start() as server:
        for tags in (nested, flat):
            got = server.chat(response_format={"type": "structural_tag", "format": tags}, max_tokens=5)
            assert got.status == 400, got.body[:300]
        assert server.chat("hi", max_tokens=2).status == 200


@test
def nobody_waits_for_what_takes_long_to_compile():
    names = ["{:x}".format(i * 0x9E3779B97F4A7C15 % 2**64) * 2 for i in range(MANY)]
    with start("--prep-threads", "1") as server, contextlib.ExitStack() as clients:
        assert server.chat(guided_choice=["yes", "no"], max_tokens=9).status == 200
        for i in range(4):  # these are large, and those that follow are small
            clients.enter_context(send(server, *dialects({"enum": names[i:]})[0][:2]))
        for i in range(24):
            clients.enter_context(send(server, *dialects(slow(i))[0][:2]))
        assert eventually(lambda: preparing(server) >= 6)
        for _ in range(3):
            assert server.chat("hello", max_tokens=1).status == 200
            assert server.chat(guided_choice=["yes", "no"], max_tokens=9).status == 200  # which is compiled already
        assert preparing(server) >= 2, "they were waited for"
        assert server.chat(guided_choice=["up", "down"], max_tokens=9).status == 200
        assert preparing(server) >= 1, "they were waited for by what is quick to compile"
        clients.close()
        server.wait_idle()


SUITE.main()
