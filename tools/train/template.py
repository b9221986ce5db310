"""Conversations as text: what the chat template writes, and nothing else."""

import json
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment

TOKENS = Path(__file__).resolve().parent / "tokens"
SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
PLAIN = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]


def load():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda x, **_: json.dumps(x, ensure_ascii=False)
    return env.from_string((TOKENS / "chat_template.jinja").read_text())


def render(template, conversation, prompt=False):
    """The whole conversation, or what an answer to its end begins with."""
    return template.render(
        messages=conversation["messages"],
        tools=conversation["tools"],
        add_generation_prompt=prompt,
        enable_thinking=conversation["thinks"],
    )
