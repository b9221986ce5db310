#!/usr/bin/env python3
"""Calls of tools in the formats of gpt-oss, Mistral, LFM2, Gemma 4 and GLM, through every API: their special tokens are
written by the model and read back. The weights are random, so the calls are demanded. And pictures that InternVL,
MiniCPM and SmolVLM are shown through every API, in the prompts that transformers makes of them.

usage: tests/api/test_families.py --motet PROGRAM [NAME ...]"""

import base64
import json
import os
import shutil
import tempfile

import fixture
import served

SUITE = served.Suite("api_families")
test, start = SUITE.test, SUITE.start
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle")

HARMONY = ["<|endoftext|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>",
           "<|call|>"]
HARMONY_TEMPLATE = """{{- '<|start|>system<|message|>Channels: analysis, commentary, final.<|end|>' }}
{%- if tools %}
    {{- '<|start|>developer<|message|>namespace functions {' }}
    {%- for tool in tools %}{{- tool.function.name + ': ' + (tool.function.parameters | tojson) + ';' }}{%- endfor %}
    {{- '}<|end|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start|>assistant<|channel|>commentary to=functions.' + call.name + ' <|constrain|>json<|message|>' }}
        {{- call.arguments | tojson }}
        {{- '<|call|>' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
    {%- elif message.role == 'tool' %}
        {{- '<|start|>functions.get_time to=assistant<|channel|>commentary<|message|>' + message.content + '<|end|>' }}
    {%- else %}
        {{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}
"""
SCHEMA = {"type": "object", "properties": {"zone": {"enum": ["CET", "UTC"]}, "short": {"type": "boolean"}},
          "required": ["zone", "short"], "additionalProperties": False}
ABOUT = {"name": "get_time", "description": "The time."}
QUESTION = "What time is it?"


def tokenizer(added):
    """A letter a byte, and special tokens behind them."""
    made = fixture.tokenizer()
    chars = fixture.byte_chars()
    special = dict(made["added_tokens"][0])
    made["added_tokens"] = [dict(special, id=256 + i, content=text) for i, text in enumerate(added)]
    made["post_processor"] = None
    made["model"]["vocab"] = {chars[b]: b for b in range(256)}
    made["model"]["merges"] = []
    return made


def gpt_oss(folder):
    """A checkpoint of the oracle's with what it lacks: a tokenizer, a template, and tokens that end the text."""
    shutil.copytree(os.path.join(ORACLE, "checkpoints", "gptoss-mxfp4"), folder)
    files = {"tokenizer.json": tokenizer(HARMONY),
             "tokenizer_config.json": {"eos_token": "<|return|>", "chat_template": HARMONY_TEMPLATE},
             "generation_config.json": {"eos_token_id": [256 + HARMONY.index(t) for t in ("<|return|>", "<|call|>")]}}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f)
    return folder


def mistral3(folder):
    return shutil.copytree(os.path.join(ORACLE, "sighted", "mistral3-bf16"), folder)


def lfm2(folder):
    return shutil.copytree(os.path.join(ORACLE, "sighted", "lfm2vl-bf16"), folder)


def gemma4(folder):
    return shutil.copytree(os.path.join(ORACLE, "sighted", "gemma4vl-bf16"), folder)


def glm(folder):
    return shutil.copytree(os.path.join(ORACLE, "sighted", "glm4v-bf16"), folder)


def check_call(name, arguments):
    assert name == "get_time", name
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert set(arguments) == {"zone", "short"} and arguments["zone"] in ("CET", "UTC"), arguments
    return arguments


def check_chat(server):
    """Whole, streamed, and with the call as part of the next turn's prompt."""
    question = {"role": "user", "content": QUESTION}
    body = {"messages": [question], "tools": [{"type": "function", "function": {**ABOUT, "parameters": SCHEMA}}],
            "tool_choice": "required", "max_tokens": 200, "temperature": 0}
    choice = server.post("/v1/chat/completions", body).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls", choice
    message = choice["message"]
    call = message["tool_calls"][0]
    arguments = check_call(call["function"]["name"], call["function"]["arguments"])
    events = server.post("/v1/chat/completions", {**body, "stream": True}).events()
    deltas = [part for event in events if isinstance(event, dict) for part in
              event["choices"][0]["delta"].get("tool_calls", [])]
    first = "".join(d["function"].get("arguments", "") for d in deltas if d["index"] == 0)
    assert json.loads(first) == arguments, deltas
    result = {"role": "tool", "tool_call_id": call["id"], "content": "noon"}
    turns = [question, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    answer = server.post("/v1/chat/completions", {"messages": turns, "tools": body["tools"], "max_tokens": 3})
    assert answer.status == 200, answer.text
    return arguments


def check_messages(server):
    body = {"messages": [{"role": "user", "content": QUESTION}], "tools": [{**ABOUT, "input_schema": SCHEMA}],
            "tool_choice": {"type": "any"}, "max_tokens": 200, "temperature": 0}
    answer = server.post("/v1/messages", body).json()
    assert answer["stop_reason"] == "tool_use", answer
    block = next(b for b in answer["content"] if b["type"] == "tool_use")
    return check_call(block["name"], block["input"])


def check_responses(server):
    body = {"input": QUESTION, "tools": [{"type": "function", **ABOUT, "parameters": SCHEMA}],
            "tool_choice": "required", "max_output_tokens": 200, "temperature": 0}
    answer = server.post("/v1/responses", body).json()
    item = next(i for i in answer["output"] if i["type"] == "function_call")
    return check_call(item["name"], item["arguments"])


def check_all(make):
    """The same call, whatever it is asked by."""
    with tempfile.TemporaryDirectory() as scratch:
        with start("--any-model", folder=make(os.path.join(scratch, "model"))) as server:
            found = [check(server) for check in (check_chat, check_messages, check_responses)]
    assert found[0] == found[1] == found[2], found


@test
def gpt_oss_calls_tools():
    check_all(gpt_oss)


@test
def mistral_calls_tools():
    check_all(mistral3)


@test
def lfm2_calls_tools():
    check_all(lfm2)


@test
def gemma4_calls_tools():
    check_all(gemma4)


@test
def glm_calls_tools():
    check_all(glm)


def recorded(name, case):
    """What transformers made of a conversation, and the picture in it."""
    with open(os.path.join(ORACLE, "sighted", name, "oracle.json"), encoding="utf-8") as f:
        return next(c for c in json.load(f)["cases"] if c["name"] == case)


def picture(name):
    with open(os.path.join(ORACLE, "pictures", f"{name}.png"), "rb") as f:
        return base64.b64encode(f.read()).decode()


def check_seen(name):
    """One picture that is cut into pieces, and a list of frames; every API has the same tokens and the same answer."""
    image, frames = recorded(name, "one"), recorded(name, "frames")
    data = picture("plain")
    url, words = f"data:image/png;base64,{data}", image["messages"][0]["content"][1]["text"]
    usual = {"max_tokens": 6, "temperature": 0, "ignore_eos": True}
    with start("--any-model", "--precision", "reference", folder=os.path.join(ORACLE, "sighted", name)) as server:
        def said(path, body):
            answer = server.post(path, body)
            assert answer.status == 200, answer.text
            return answer.json()

        def asked(*parts):
            return {**usual, "return_token_ids": True, "messages": [{"role": "user", "content": list(parts)}]}

        text = {"type": "text", "text": words}
        chat = said("/v1/chat/completions", asked({"type": "image_url", "image_url": {"url": url}}, text))
        assert chat["prompt_token_ids"] == image["prompt_token_ids"]
        assert chat["choices"][0]["token_ids"] == image["token_ids"]
        source = {"type": "base64", "media_type": "image/png", "data": data}
        told = said("/v1/messages", {**usual, "messages": [
            {"role": "user", "content": [{"type": "image", "source": source}, text]}]})
        shown = [{"type": "input_image", "image_url": url}, {"type": "input_text", "text": words}]
        response = said("/v1/responses", {"max_output_tokens": 6, "temperature": 0, "ignore_eos": True,
                                          "input": [{"role": "user", "content": shown}]})
        usage, more = told["usage"], response["usage"]
        cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        assert usage["input_tokens"] + cached == more["input_tokens"] == len(image["prompt_token_ids"]), (usage, more)
        part = frames["messages"][0]["content"][0]
        urls = [f"data:image/png;base64,{picture(frame)}" for frame in part["frames"]]
        clip = {"type": "video", "video": urls, **part["wishes"]}
        video = said("/v1/chat/completions", asked(clip, frames["messages"][0]["content"][1]))
        assert video["prompt_token_ids"] == frames["prompt_token_ids"]
        assert video["choices"][0]["token_ids"] == frames["token_ids"]


@test
def internvl_sees_through_every_api():
    check_seen("internvl-bf16")


@test
def minicpm_sees_through_every_api():
    check_seen("minicpmv46-bf16")


@test
def smolvlm_sees_through_every_api():
    check_seen("smolvlm-bf16")


SUITE.main()
