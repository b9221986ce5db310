#!/usr/bin/env python3
"""Renders tool calls with recorded templates and parses them back: calls, reasoning and content must come out as they went in.

usage: tests/chat/corpus.py RENDER_LINES PARSE_LINES FOLDER [--verbose]

FOLDER is that of tests/template/corpus.py. A conversation is rendered up to a message with calls and up to the one
before it; the rest of the longer text is what the model would have written, apart from the header of its turn.
Templates that write no calls, or in no format that is known, are counted, not checked. Ends with a line of counts."""

import gzip
import json
import os
import subprocess
import sys

NOW = "2026-01-02T03:04:05"
SHOWN = 12  # mismatches printed in full
SCENARIOS = ("tool_call_result", "tool_call_null_content", "tool_call_string_args", "tool_call_with_content",
             "parallel_tool_calls", "nested_json_args", "no_arg_call", "reasoning_tool_call")

# What a template does not write as its model would, so that it cannot be read back.
DEFECTS = {
    ("hfjs__NousResearch_Hermes-2-Pro-Llama-3-8B_JSON_Schema_.jinja", "parallel_tool_calls"),  # one tag for two calls
    ("sglang__tool_chat_template_llama4_pythonic.jinja", "nested_json_args"),  # quotes within quotes
    ("vllm__tool_chat_template_llama4_pythonic.jinja", "nested_json_args"),  # the same
    ("vllm__tool_chat_template_gemma3_pythonic.jinja", "nested_json_args"),  # nothing between arguments
    ("llamacpp__Apriel-1.6-15b-Thinker-fixed.jinja", "reasoning_tool_call"),  # reasoning that nothing opens
    ("llamacpp__NVIDIA-Nemotron-Nano-v2.jinja", "tool_call_with_content"),  # a last message as two turns
}


class Lines:
    """A program that answers each line with a line."""

    def __init__(self, program):
        self.child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      encoding="utf-8")

    def ask(self, question):
        self.child.stdin.write(json.dumps(question) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


def written(render, source, context):
    """What a model would have written for the message with calls, and that message; None where that is not known."""
    messages = context.get("messages", [])
    at = next((i for i, m in enumerate(messages) if m.get("tool_calls")), None)
    if at is None:
        return None
    texts = []
    for end, prompt in ((at, False), (at, True), (at + 1, False)):
        part = dict(context, messages=messages[:end], add_generation_prompt=prompt)
        answer = render.ask({"template": source, "context": part, "now": NOW})
        if "error" in answer:
            return None
        texts.append(answer["text"])
    before, prompt, after = texts
    if not after.startswith(before):
        return None
    text = after[len(before):]
    header = os.path.commonprefix([prompt[len(before):], text])
    if header != prompt[len(before):]:
        header = header[:max(header.rfind(c) for c in ">\n]:") + 1]  # a marker that both begin with is no header
    return text[len(header):], messages[at], header


def is_written(text, message):
    """Some templates write nothing, or the first call only."""
    names = [name for name, _ in wanted(message)]
    return all(text.count(name) >= names.count(name) for name in names)


def wanted(message):
    calls = []
    for call in message["tool_calls"]:
        call = call.get("function", call)
        arguments = call.get("arguments", {})
        calls.append((call["name"], json.loads(arguments) if isinstance(arguments, str) else arguments))
    return calls


def found(answer):
    calls = []
    for call in answer["calls"]:
        try:
            calls.append((call["name"], json.loads(call["arguments"])))
        except ValueError:
            calls.append((call["name"], call["arguments"]))
    return calls


def said(text, message, answer):
    """Whether reasoning and content came out, where the template has written them."""
    reasoning, content = message.get("reasoning_content"), message.get("content")
    if reasoning and reasoning in text and answer["reasoning"].strip() != reasoning.strip():
        return False
    # gpt-oss's template writes the content of a message with calls as analysis.
    return not content or content not in text or content.strip() in answer["content"] + answer["reasoning"]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    render, parse, folder = Lines(sys.argv[1]), Lines(sys.argv[2]), sys.argv[3]
    passed, failed, unwritten, unknown, objects = 0, 0, 0, {}, set()
    with gzip.open(os.path.join(folder, "template_vectors.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["scenario"] not in SCENARIOS:
                continue
            with open(os.path.join(folder, "templates", record["template"]), encoding="utf-8", newline="") as text:
                source = text.read()
            pair = written(render, source, record["context"])
            if not pair or not is_written(*pair[:2]) or (record["template"], record["scenario"]) in DEFECTS:
                unwritten += 1
                continue
            if record["scenario"] == "tool_call_string_args" and record["template"] in objects:
                continue  # arguments are never given as text to a template that takes objects
            answer = parse.ask({"template": source, "prompt": pair[2], "text": pair[0],
                                "tools": record["context"].get("tools")})
            if answer["tool_format"] == "none":
                unknown[record["template"]] = unknown.get(record["template"], 0) + 1
            elif found(answer) == wanted(pair[1]) and said(pair[0], pair[1], answer):
                passed += 1
                objects.add(record["template"])
            else:
                failed += 1
                if failed <= SHOWN or "--verbose" in sys.argv:
                    print("{} / {}, as {}\n  text:   {!r}\n  wanted: {}\n  found:  {}\n  content: {!r}\n  reasoning: {!r}".format(
                        record["template"], record["scenario"], answer["tool_format"], pair[0][:400],
                        wanted(pair[1]), found(answer), answer["content"][:200],
                        answer["reasoning"][:200]))
    for name, count in sorted(unknown.items()):
        print("{}: {} in no format that is known".format(name, count))
    print("parse corpus: {} passed, {} failed, {} not written by their templates".format(passed, failed, unwritten))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
