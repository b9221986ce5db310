#!/usr/bin/env python3
"""Writes a replay checkpoint: a real model folder whose weights make the ordinary engine continue any prompt with a
written script. So agents with their long prompts get exact tool calls, and the server knows nothing of it.

How: each token's embedding is a row of random signs, attention and MLP add nothing, and the row of the head for a token
is the embedding of the token before it in its script. Every piece of a script is a token of its own that occurs nowhere
else, so that "the token before" is one. The chat template ends the prompt with a token that a script begins behind:
"replay:NAME" in what the user or a tool says chooses the script, or other words for it that write() is given, and the
number of the assistant's turns since then its step.
Steps that call tools are taken only where the request has tools; without a name it is "plain". "NAME@picture" is taken
instead of "NAME" where a message has a picture. "behind C" is what is said where a prompt ends with the character C,
as one does that ends within a message. What a script has whose name begins with "endless" is said over and over.

usage: tests/clients/replay.py FOLDER [SCRIPTS.json]

SCRIPTS.json: {"name": ["what it says first", "and after its first turn", ...], ...}"""

import json
import math
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import fixture  # pylint: disable=wrong-import-position

HIDDEN, HEAD_DIM, FFN, CONTEXT = 1024, 16, 32, 131072
PATCH, MERGE, EYE = 14, 2, 32  # pixels of a patch, patches merged each way, width of the tower
PIECE = 4  # characters of a token of a script, or as many more as make it the only one
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>",
           "<|video_pad|>"]

# What agents write much of: English, JSON, schemas, code. It shortens prompts by half.
WORDS = """the of and to in is you that it he was for on are as with his they at be this have from or one had by
word but not what all were we when your can said there use an each which she do how their if will up
other about out many then them these so some her would make like him into time has look two more write go
see number no way could people my than first water been call who oil its now find long down day did get
come made may part over new sound take only little work know place year live me back give most very after
thing our just name good sentence man think say great where help through much before line right too mean
old any same tell boy follow came want show also around form three small set put end does another well
large must big even such because turn here why ask went men read need land different home us move try
kind hand picture again change off play spell air away animal house point page letter mother answer found
study still learn should file files tool tools path command output input string object array number
integer boolean properties required description type parameters additionalProperties default enum items
format function return returns value values name names text content message messages user assistant
system code error errors test tests run running directory edit search pattern content result results
request response using used user's when whether example examples current working following instructions
never always important note please ensure check create update delete add remove list multiple single
available information specific provide provided complete task tasks agent agents model before after
without between shell bash git commit branch change changes line lines limit optional absolute relative
true false null None "type": "string", "description": "object" "properties": "required": "name":
"parameters": "additionalProperties": {" }, ], "array" "items": "enum": "number" "integer" "boolean"
"default": "$schema": "http://json-schema.org/draft-07/schema#" ``` - ** -- // */ /* () {} [] == != => ->
:: ... --- === ## ### #### <example> </example> <system-reminder> IMPORTANT: NEVER"""


# The text of a message, with pictures in their places.
TEXT = """{%- macro text(content) -%}
{%- if content is string -%}{{ content }}
{%- else -%}
{%- for part in content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}{{ part.text }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
"""


def mentions(scripts, words):
    """Which step of which script a prompt ends with, as the template finds it."""
    lines = ["{%- set ns = namespace(name='plain', step=0, seen=false) -%}", "{%- for m in messages -%}",
             "{%- if '<|image_pad|>' in text(m.content) -%}{%- set ns.seen = true -%}{%- endif -%}",
             "{%- if m.role in ['user', 'tool'] -%}"]
    for name in sorted((name for name in scripts if "@" not in name), key=len):
        lines.append("{%- if " + json.dumps(words.get(name, "replay:" + name), ensure_ascii=False) +
                     " in text(m.content) -%}{%- set ns.name = '" + name + "' -%}"
                     "{%- set ns.step = 0 -%}{%- endif -%}")
    lines += ["{%- elif m.role == 'assistant' -%}", "{%- set ns.step = ns.step + 1 -%}", "{%- endif -%}",
              "{%- endfor -%}"]
    return "\n".join(lines) + "\n"


def mark(name, step):
    return "<|{}.{}|>".format(name, step)


def endings(scripts):
    """The mark behind the generation prompt."""
    lines, word = [], "if"
    for name, steps in sorted(scripts.items(), reverse=True):  # what is said about pictures first
        for step, text in enumerate(steps):
            condition = "ns.name == '{}'".format(name.split("@")[0]) + (" and ns.seen" if "@" in name else "")
            condition += " and ns.step == {}".format(step) if step + 1 < len(steps) else ""
            condition += " and tools" if "<tool_call>" in text else ""
            lines.append("{%- " + word + " " + condition + " -%}" + mark(name, step))
            word = "elif"
    return "\n".join(lines) + "\n{%- else -%}" + mark("plain", 0) + "\n{%- endif -%}\n"


def template(scripts, words):
    return TEXT + mentions(scripts, words) + """{%- if tools -%}
<|im_start|>system
{% if messages[0].role == 'system' %}{{ text(messages[0].content) }}

{% endif %}# Tools

Call tools with <tool_call></tool_call> around {"name": <function-name>, "arguments": <args-json-object>}. They are:
<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools><|im_end|>
{% elif messages[0].role == 'system' -%}
<|im_start|>system
{{ text(messages[0].content) }}<|im_end|>
{% endif -%}
{%- for m in messages -%}
{%- if m.role == 'system' and loop.first -%}
{%- elif m.role == 'assistant' -%}
<|im_start|>assistant
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ text(m.content) }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor -%}<|im_end|>
{% elif m.role == 'tool' -%}
<|im_start|>user
<tool_response>
{{ text(m.content) }}
</tool_response><|im_end|>
{% else -%}
<|im_start|>{{ m.role }}
{{ text(m.content) }}<|im_end|>
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}
""" + endings(scripts) + "{%- endif -%}\n"


def cut(text, taken):
    """Pieces that nobody has, from left to right; what is left over at the end goes with the last."""
    chars, pieces, at = fixture.byte_chars(), [], 0

    def spell(piece):
        return "".join(chars[b] for b in piece.encode())

    while at < len(text):
        size = PIECE
        while at + size < len(text) and spell(text[at:at + size]) in taken:
            size += 1
        piece = spell(text[at:at + size])
        while piece in taken:  # the end of the text has been seen elsewhere
            last = pieces.pop()
            taken.discard(last)
            piece = last + piece
        taken.add(piece)
        pieces.append(piece)
        at += size
    return pieces


def vocabulary(scripts):
    """(merges, spellings by id, {id: the id that follows it})"""
    chars, seen = fixture.byte_chars(), []
    words = [(" " if i % 4 else "") + w for i, w in enumerate(WORDS.split())]
    merges = fixture.learn(words, 900)
    marks = [mark(name, step) for name in sorted(scripts) for step in range(len(scripts[name]))]
    spellings = SPECIAL + marks + [chars[b] for b in range(256)]
    for merge in merges:
        if "".join(merge) not in seen:
            seen.append("".join(merge))
    spellings += seen
    taken, after, end = set(spellings), {}, SPECIAL.index("<|im_end|>")
    for name in sorted(scripts):
        for step, text in enumerate(scripts[name]):
            last = spellings.index(name[-1] if name.startswith("behind ") else mark(name, step))
            first = len(spellings)
            for piece in cut(text, taken):
                spellings.append(piece)
                after[last] = len(spellings) - 1
                last = after[last]
            after[last] = first if name.startswith("endless") else end
    return merges, spellings, after, len(SPECIAL) + len(marks)


def tokenizer(merges, spellings, special):
    made = fixture.tokenizer()
    made["added_tokens"] = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                             "normalized": False, "special": True} for i, t in enumerate(spellings[:special])]
    made["post_processor"] = None
    made["model"]["vocab"] = {t: i for i, t in enumerate(spellings)}
    made["model"]["merges"] = [" ".join(m) for m in merges]
    return made


def signs(random):
    """Random bits as an integer, and the same as bf16 numbers of 1 and -1."""
    bits = 0
    for k in range(HIDDEN // 64):
        bits |= random.next() << (64 * k)
    row = b"".join(b"\x80\x3f" if bits >> i & 1 else b"\x80\xbf" for i in range(HIDDEN))
    return bits, row


def add(rows, signed):
    """Adds signs (as bits) to a row of sums."""
    for i in range(HIDDEN):
        rows[i] += 1 if signed >> i & 1 else -1


def bf16(value):
    return struct.pack("<f", float(value))[2:]


def tower():
    """Qwen2-VL's, which sees the same in every picture: nothing."""
    wide, merged = 4 * EYE, MERGE * MERGE * EYE
    at = "visual.blocks.0."
    shapes = {"visual.patch_embed.proj.weight": (EYE, 3, 2, PATCH, PATCH), at + "attn.qkv.weight": (3 * EYE, EYE),
              at + "attn.qkv.bias": (3 * EYE,), at + "attn.proj.weight": (EYE, EYE), at + "attn.proj.bias": (EYE,),
              at + "mlp.fc1.weight": (wide, EYE), at + "mlp.fc1.bias": (wide,), at + "mlp.fc2.weight": (EYE, wide),
              at + "mlp.fc2.bias": (EYE,), "visual.merger.mlp.0.weight": (merged, merged),
              "visual.merger.mlp.0.bias": (merged,), "visual.merger.mlp.2.weight": (HIDDEN, merged),
              "visual.merger.mlp.2.bias": (HIDDEN,)}
    for norm in (at + "norm1", at + "norm2", "visual.merger.ln_q"):
        shapes.update({norm + ".weight": (EYE,), norm + ".bias": (EYE,)})
    return shapes


def weights(path, count, after, sees):
    random = fixture.Random(7)
    codes = [signs(random) for _ in range(count)]
    sums = {}
    for before, follower in after.items():
        sums.setdefault(follower, [0] * HIDDEN)
        add(sums[follower], codes[before][0])
    zero = bytes(2 * HIDDEN)
    head = b"".join(b"".join(bf16(v) for v in sums[i]) if i in sums else zero for i in range(count))
    ones = bf16(1) * HIDDEN
    at = "model.layers.0."
    parts = {"model.embed_tokens.weight": ((count, HIDDEN), b"".join(row for _, row in codes)),
             "lm_head.weight": ((count, HIDDEN), head), "model.norm.weight": ((HIDDEN,), ones),
             at + "input_layernorm.weight": ((HIDDEN,), ones),
             at + "post_attention_layernorm.weight": ((HIDDEN,), ones)}
    for name, shape in {"self_attn.q_proj": (HEAD_DIM, HIDDEN), "self_attn.k_proj": (HEAD_DIM, HIDDEN),
                        "self_attn.v_proj": (HEAD_DIM, HIDDEN), "self_attn.o_proj": (HIDDEN, HEAD_DIM),
                        "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN),
                        "mlp.down_proj": (HIDDEN, FFN)}.items():
        parts[at + name + ".weight"] = (shape, bytes(2 * shape[0] * shape[1]))
    if sees:
        parts.update({at + "self_attn.{}_proj.bias".format(p): ((HEAD_DIM,), bytes(2 * HEAD_DIM)) for p in "qkv"})
        parts.update({name: (shape, bytes(2 * math.prod(shape))) for name, shape in tower().items()})
    header, data = {}, b""
    for name, (shape, content) in sorted(parts.items()):
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def eyes(spellings):
    """What makes a Llama's config one of Qwen2-VL."""
    return {"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl",
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
            "image_token_id": spellings.index("<|image_pad|>"), "video_token_id": spellings.index("<|video_pad|>"),
            "vision_start_token_id": spellings.index("<|vision_start|>"),
            "vision_end_token_id": spellings.index("<|vision_end|>"),
            "vision_config": {"depth": 1, "embed_dim": EYE, "num_heads": 2, "hidden_size": HIDDEN, "mlp_ratio": 4,
                              "patch_size": PATCH, "spatial_merge_size": MERGE, "temporal_patch_size": 2,
                              "in_channels": 3}}


PREPROCESSOR = {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 200704,
                "patch_size": PATCH, "temporal_patch_size": 2, "merge_size": MERGE, "do_resize": True,
                "do_rescale": True, "do_normalize": True, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}


def picture(side=56):
    """A PNG of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x20\x40\xc0" * side) * side
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def write(folder, scripts, sees=False, words=()):
    """sees: the model takes pictures, and says the same whatever is in them. words: {name of a script: what chooses it,
    instead of "replay:NAME"}."""
    os.makedirs(folder, exist_ok=True)
    merges, spellings, after, special = vocabulary(scripts)
    count = len(spellings) + -len(spellings) % 32
    end = SPECIAL.index("<|im_end|>")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": count, "hidden_size": HIDDEN,
              "intermediate_size": FFN, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
              "head_dim": HEAD_DIM, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
              "tie_word_embeddings": False, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
              "torch_dtype": "bfloat16", "eos_token_id": end}
    if sees:
        config.update(eyes(spellings))
    files = {"config.json": config, "tokenizer.json": tokenizer(merges, spellings, special),
             "tokenizer_config.json": {"eos_token": SPECIAL[end], "chat_template": template(scripts, dict(words))},
             "generation_config.json": {"eos_token_id": end}}
    if sees:
        files["preprocessor_config.json"] = PREPROCESSOR
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False)
    weights(os.path.join(folder, "model.safetensors"), count, after, sees)
    return folder


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    scripts = {"plain": ["This is a plain answer."]}
    if len(sys.argv) == 3:
        with open(sys.argv[2], encoding="utf-8") as f:
            scripts.update(json.load(f))
    write(sys.argv[1], scripts)


if __name__ == "__main__":
    main()
