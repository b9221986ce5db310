#!/usr/bin/env python3
"""Budgets of thinking, in every dialect: the model in the box, which thinks a little, is cut short at any token, and a
model that would think for ever at what each effort allows.

usage: tests/api/test_thinking.py --motet PROGRAM [NAME ...]"""

import concurrent.futures
import json
import os
import sys
import tempfile

import served

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
import replay  # pylint: disable=wrong-import-position

BOX = os.path.join(HERE, "..", "..", "models", "box")
SUITE = served.Suite("api_thinking")
test, start = SUITE.test, SUITE.start

QUICK = "MOTET_TEST_FULL" not in os.environ
QUESTION = "What is 123 + 456?"
CHAT = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 100,
        "return_token_ids": True, "enable_thinking": True}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.",
                                         "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                                                        "required": ["city"]}}}
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"],
          "additionalProperties": False}


def chat(server, **fields):
    got = server.post("/v1/chat/completions", {**CHAT, **fields})
    assert got.status == 200, got.body
    return got.json()["choices"]


def end_of(server):
    """The token of the marker that ends thinking."""
    ids = server.post("/tokenize", {"prompt": "</think>", "add_special_tokens": False}).json()["tokens"]
    assert len(ids) == 1, ids
    return ids[0]


def streamed(server, **fields):
    """(reasoning, content) of a stream."""
    said = {"reasoning": "", "content": ""}
    for event in server.post("/v1/chat/completions", {**CHAT, **fields, "stream": True}).events():
        for choice in event["choices"] if isinstance(event, dict) else []:
            for kind in said:
                said[kind] += choice["delta"].get(kind) or ""
    return said["reasoning"], said["content"]


def box(*options):
    return start("--precision", "fast", *options, folder=BOX)


@test
def thinking_ends_at_its_budget_and_the_answer_goes_on():
    with box() as server:
        end, full = end_of(server), chat(server)[0]
        thought = full["token_ids"].index(end)
        assert thought > 20, full
        budgets = (0, 5, thought - 1) if QUICK else (0, 1, 5, 20, thought - 1)
        cut = 2 * len(budgets) + 1  # the last of those below ends where it would have ended
        for budget in budgets:
            got = chat(server, thinking_budget=budget)[0]
            assert got["token_ids"][:budget] == full["token_ids"][:budget], got
            assert got["token_ids"].index(end) == budget and got["token_ids"].count(end) == 1, got
            message = got["message"]
            assert full["message"]["reasoning"].startswith(message.get("reasoning", "")), message
            assert message["content"] and message["content"] == message["content"].lstrip(), message
            assert got["finish_reason"] == "stop", got
            assert streamed(server, thinking_budget=budget) == (message.get("reasoning", ""), message["content"])
        for budget in (10**6, 10**18, -1, thought):
            assert chat(server, thinking_budget=budget)[0] == full, budget
        assert served.eventually(lambda: server.metrics()["motet_thinking_cut_total"] == cut), server.metrics()


@test
def every_field_that_limits_it_does():
    with box() as server:
        wanted = chat(server, thinking_budget=5)[0]
        for fields in ({"thinking_token_budget": 5}, {"thinking_budget_tokens": 5}, {"reasoning_budget_tokens": 5},
                       {"thinking": {"type": "enabled", "budget_tokens": 5}, "enable_thinking": None},
                       {"reasoning": {"max_tokens": 5}, "enable_thinking": None},
                       {"thinking_budget": 5, "reasoning_effort": "high"}):
            got = server.post("/v1/chat/completions", {**CHAT, **fields})
            assert got.json()["choices"][0] == wanted and "warning" not in got.headers, (fields, got.body, got.headers)
        plain = chat(server, enable_thinking=False)[0]
        assert chat(server, enable_thinking=False, thinking_budget=5)[0] == plain, "nothing is cut without thinking"
        hidden = chat(server, reasoning={"max_tokens": 5, "exclude": True}, enable_thinking=None)[0]
        assert hidden["message"] == {k: v for k, v in wanted["message"].items() if "reasoning" not in k}, hidden


@test
def no_company_and_no_guess_moves_it():
    """With guesses by its head and without, several answers, many at once, from the cache."""
    budgets = [3, 0, 17, 8] if QUICK else [3, 0, 17, 8, 1, 30, 5, 12]
    bodies = [dict(thinking_budget=b, n=2 if b % 2 else 1, temperature=0.7 * (b % 3), seed=b) for b in budgets]
    with box("--speculate", "off") as server:
        wanted = [chat(server, **body) for body in bodies]
        end = end_of(server)
    for choices, budget in zip(wanted, budgets):
        assert all(end in c["token_ids"][:budget + 1] for c in choices), choices
    with box() as server, concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
        for _ in range(2):
            assert list(pool.map(lambda body: chat(server, **body), bodies)) == wanted
        assert server.metrics()["vllm:spec_decode_num_accepted_tokens_total"] > 0


@test
def a_constraint_begins_behind_it():
    with box() as server:
        end = end_of(server)
        for budget in (0, 4):
            got = chat(server, thinking_budget=budget, response_format={
                "type": "json_schema", "json_schema": {"name": "sum", "strict": True, "schema": SCHEMA}})[0]
            assert got["token_ids"].index(end) == budget, got
            assert isinstance(json.loads(got["message"]["content"])["sum"], int), got
            got = chat(server, thinking_budget=budget, tools=[TOOL], tool_choice="required")[0]
            assert got["token_ids"].index(end) == budget, got
            call = got["message"]["tool_calls"][0]["function"]
            assert call["name"] == "get_weather" and list(json.loads(call["arguments"])) == ["city"], got
            got = chat(server, thinking_budget=budget, guided_choice=["red", "blue"])[0]
            assert got["token_ids"].index(end) == budget and got["message"]["content"] in ("red", "blue"), got


@test
def anthropics_budget_is_kept():
    with box() as server:
        body = {"model": "box", "max_tokens": 100, "temperature": 0, "messages": CHAT["messages"]}
        wanted = chat(server, thinking_budget=5)[0]["message"]
        got = server.post("/v1/messages", {**body, "thinking": {"type": "enabled", "budget_tokens": 5}}).json()
        assert [b["type"] for b in got["content"]] == ["thinking", "text"], got
        assert got["content"][0]["thinking"] == wanted["reasoning"], got
        assert got["content"][1]["text"] == wanted["content"], got
        events = server.post("/v1/messages", {**body, "thinking": {"type": "enabled", "budget_tokens": 5},
                                              "stream": True}).events()
        deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
        assert "".join(d.get("thinking", "") for d in deltas) == wanted["reasoning"], deltas
        assert "".join(d.get("text", "") for d in deltas) == wanted["content"], deltas


@test
def responses_and_ollama_have_it_too():
    with box() as server:
        wanted = chat(server, thinking_budget=5)[0]["message"]
        got = server.post("/v1/responses", {"input": QUESTION, "temperature": 0, "max_output_tokens": 100,
                                            "reasoning": {"effort": "low", "max_tokens": 5}}).json()
        kinds = {item["type"]: item["content"][0]["text"] for item in got["output"]}
        assert kinds == {"reasoning": wanted["reasoning"], "message": wanted["content"]}, got
        full = chat(server)[0]["message"]
        for think in ("low", "medium", "high", "max", True):
            got = server.post("/api/chat", {"model": "box", "think": think, "stream": False,
                                            "messages": CHAT["messages"], "options": {"temperature": 0}})
            assert got.json()["message"]["thinking"] == full["reasoning"], got.body
            assert "warning" not in got.headers, got.headers


# ---- efforts

ENDLESS = {"plain": ["Plain."], "endless": ["<think>\nRound and round it goes, once more "], "behind >": ["So be it."]}
GEMINI = "/v1beta/models/tiny:generateContent"
EFFORTS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192}


def ask_endless(server, dialect, effort):
    """(reasoning, answer) of a model that never ends to think."""
    messages, most = [{"role": "user", "content": "replay:endless"}], EFFORTS[effort] + 40
    if dialect == "chat":
        got = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": most,
                                                   "reasoning_effort": effort})
        message = got.json()["choices"][0]["message"]
        return message["reasoning"], message["content"]
    if dialect == "openrouter":
        got = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": most,
                                                   "reasoning": {"effort": effort}})
        message = got.json()["choices"][0]["message"]
        return message["reasoning"], message["content"]
    if dialect == "responses":
        got = server.post("/v1/responses", {"input": messages, "max_output_tokens": most,
                                            "reasoning": {"effort": effort}}).json()
        return tuple(item["content"][0]["text"] for item in got["output"])
    if dialect == "messages":
        got = server.post("/v1/messages", {"messages": messages, "max_tokens": most,
                                           "output_config": {"effort": effort}}).json()
        return tuple(block.get("thinking") or block["text"] for block in got["content"])
    if dialect == "gemini":
        config = {"maxOutputTokens": most, "thinkingConfig": {"includeThoughts": True, "thinkingLevel": effort.upper()}}
        got = server.post(GEMINI, {"contents": [{"parts": [{"text": "replay:endless"}]}], "generationConfig": config})
        return tuple(part["text"] for part in got.json()["candidates"][0]["content"]["parts"])
    got = server.post("/api/chat", {"model": "m", "messages": messages, "stream": False, "think": effort,
                                    "options": {"num_predict": most}}).json()
    return got["message"]["thinking"], got["message"]["content"]


@test
def an_effort_is_a_budget_where_the_template_has_none():
    with tempfile.TemporaryDirectory() as folder:
        replay.write(folder, ENDLESS)
        with start("--any-model", folder=folder) as server:
            def told(budget):
                got = server.post("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": "replay:endless"}], "max_tokens": budget + 40,
                    "thinking_budget": budget, "return_token_ids": True}).json()["choices"][0]
                return got["message"]["reasoning"], got["message"]["content"]
            for effort in ("minimal", "low") if QUICK else ("minimal", "low", "medium"):
                wanted = told(EFFORTS[effort])
                assert wanted[1] == "So be it.", wanted[1]
                for dialect in ("chat", "openrouter", "responses", "messages", "ollama", "gemini"):
                    if (dialect, effort) == ("ollama", "minimal"):  # which Ollama does not know
                        continue
                    got = ask_endless(server, dialect, effort)
                    assert got == wanted, (dialect, effort, len(got[0]), len(wanted[0]), got[1])


@test
def a_model_whose_thoughts_have_headers_is_led_to_its_answer():
    thought = "Round and round it goes, once more "
    scripts = dict(ENDLESS, endless=["<|channel|>analysis<|message|>" + thought])
    with tempfile.TemporaryDirectory() as folder:
        replay.write(folder, scripts)
        with start("--reasoning-format", "harmony", "--tool-format", "harmony", folder=folder) as server:
            begun = None  # what the token has that ends the header
            for budget in (0, 1, 6):
                got = server.post("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": "replay:endless"}], "max_tokens": 60,
                    "thinking_token_budget": budget}).json()["choices"][0]["message"]
                begun = len(got["reasoning"]) if begun is None else begun
                assert got["content"] == "So be it.", got
                assert got["reasoning"] == thought[:begun + budget * replay.PIECE].strip(), got


@test
def an_effort_of_none_ends_what_a_template_cannot_turn_off():
    always = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
              "<|im_start|>assistant\n<think>\n")
    with box("--allow-chat-template") as server:
        end = end_of(server)
        ask = dict(enable_thinking=None, chat_template=always)
        assert chat(server, **ask)[0]["token_ids"][0] != end
        assert chat(server, **ask, reasoning_effort="none")[0]["token_ids"][0] == end
        assert chat(server, **dict(ask, enable_thinking=True), reasoning_effort="none")[0]["token_ids"][0] != end
        # A template that has a word for it decides what it means.
        ask["chat_template"] = "{% if reasoning_effort == 'x' %}{% endif %}" + always
        assert chat(server, **ask, reasoning_effort="none")[0]["token_ids"][0] != end


@test
def a_model_that_does_not_think_says_so():
    with start() as server:
        messages = [{"role": "user", "content": "hello"}]
        for path, fields, name in (
                ("/v1/chat/completions", {"thinking_budget": 5}, "thinking_budget"),
                ("/v1/chat/completions", {"thinking_token_budget": 5}, "thinking_token_budget"),
                ("/v1/chat/completions", {"reasoning_effort": "low"}, "reasoning_effort"),
                ("/v1/chat/completions", {"reasoning_effort": "max"}, "reasoning_effort"),
                ("/v1/chat/completions", {"reasoning": {"effort": "low"}}, "reasoning.effort"),
                ("/v1/chat/completions", {"reasoning_effort": "none"}, None),
                ("/v1/chat/completions", {"thinking_token_budget": -1}, None),
                ("/v1/messages", {"thinking": {"type": "enabled", "budget_tokens": 1}}, "thinking.budget_tokens"),
                ("/v1/messages", {"output_config": {"effort": "low"}}, "output_config.effort"),
                ("/v1/responses", {"reasoning": {"effort": "low"}}, "reasoning.effort"),
                ("/api/chat", {"think": "low"}, "think"), ("/api/chat", {"think": False}, None),
                (GEMINI, {"thinkingBudget": 5}, "generationConfig.thinkingConfig.thinkingBudget"),
                (GEMINI, {"thinkingLevel": "LOW"}, "generationConfig.thinkingConfig.thinkingLevel"),
                (GEMINI, {"thinkingBudget": 0}, None), (GEMINI, {"thinkingBudget": -1}, None)):
            most = {"max_output_tokens": 2} if "responses" in path else {"max_tokens": 2}
            body = {"input": "hello"} if "responses" in path else {"messages": messages}
            if path == "/api/chat":
                most = {"options": {"num_predict": 2}, "model": "tiny"}
            if path == GEMINI:
                body = {"contents": [{"parts": [{"text": "hello"}]}]}
                most, fields = {"generationConfig": {"maxOutputTokens": 2, "thinkingConfig": fields}}, {}
            got = server.post(path, {**body, **most, **fields})
            assert got.status == 200, (fields, got.body)
            warning = '299 motet "no thinking to limit: {}"'.format(name) if name else None
            assert got.headers.get("warning") == warning, (path, fields, got.headers)


SUITE.main()
