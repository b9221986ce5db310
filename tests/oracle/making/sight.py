"""Checkpoints of models that see: configs, weights, tokenizers, templates, processors, and names in files."""

import json
from dataclasses import dataclass, field

import numpy as np

from . import families, layouts, numbers, safetensors
from .layouts import Layout

FACTORY = {
    "qwen2_vl": ("Qwen2VLConfig", "Qwen2VLForConditionalGeneration"),
    "qwen2_5_vl": ("Qwen2_5_VLConfig", "Qwen2_5_VLForConditionalGeneration"),
    "qwen3_vl": ("Qwen3VLConfig", "Qwen3VLForConditionalGeneration"),
    "qwen3_vl_moe": ("Qwen3VLMoeConfig", "Qwen3VLMoeForConditionalGeneration"),
    "qwen3_5": ("Qwen3_5Config", "Qwen3_5ForConditionalGeneration"),
    "gemma3": ("Gemma3Config", "Gemma3ForConditionalGeneration"),
    "mistral3": ("Mistral3Config", "Mistral3ForConditionalGeneration"),
    "llava": ("LlavaConfig", "LlavaForConditionalGeneration"),
    "lfm2_vl": ("Lfm2VlConfig", "Lfm2VlForConditionalGeneration"),
    "gemma4": ("Gemma4Config", "Gemma4ForConditionalGeneration"),
    "gemma4_unified": ("Gemma4UnifiedConfig", "Gemma4UnifiedForConditionalGeneration"),
    "glm4v": ("Glm4vConfig", "Glm4vForConditionalGeneration"),
    "glm46v": ("Glm46VConfig", "Glm46VForConditionalGeneration"),
    "glm4v_moe": ("Glm4vMoeConfig", "Glm4vMoeForConditionalGeneration"),
    "glm_ocr": ("GlmOcrConfig", "GlmOcrForConditionalGeneration"),
    "paddleocr_vl": ("PaddleOCRVLConfig", "PaddleOCRVLForConditionalGeneration"),
    "smolvlm": ("SmolVLMConfig", "SmolVLMForConditionalGeneration"),
    "idefics3": ("Idefics3Config", "Idefics3ForConditionalGeneration"),
    "internvl": ("InternVLConfig", "InternVLForConditionalGeneration"),
    "minicpmv4_6": ("MiniCPMV4_6Config", "MiniCPMV4_6ForConditionalGeneration"),
}
GEMMA4 = ("gemma4", "gemma4_unified")
GLM = ("glm4v", "glm46v", "glm4v_moe", "glm_ocr")


@dataclass(frozen=True)
class Sighted:
    name: str
    family: str
    text: dict
    vision: dict
    image: dict  # settings of the image processor
    video: dict | None = None
    layout: Layout = field(default_factory=Layout)
    published: bool = True  # files and names as published checkpoints have them, else as transformers saves today
    vision_quantised: bool = False
    kept: tuple = ()  # how names begin that are not quantised either


# --- tokens ---------------------------------------------------------------------------------------------------------

QWEN_ADDED = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
MISTRALS = ("mistral3", "llava")  # LLaVA with Pixtral's tower
MISTRAL_ADDED = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "<pad>"]
MISTRAL_ADDED += ["[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]
LFM_ADDED = ["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<|image_start|>"]
LFM_ADDED += ["<|image_end|>", "<|img_thumbnail|>", "<|tool_call_start|>", "<|tool_call_end|>"]
LFM_ADDED += [f"<|img_row_{row}_col_{column}|>" for row in range(1, 5) for column in range(1, 5)]
GLM_ADDED = ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"]
GLM_ADDED += ["<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|image|>", "<|video|>"]
GLM_ADDED += ["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"]
PADDLE_ADDED = ["<unk>", "<|begin_of_sentence|>", "</s>", "<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"]
SMOL_ADDED = ["<|endoftext|>", "<|im_start|>", "<end_of_utterance>", "<image>", "<fake_token_around_image>", "<global-img>"]
SMOL_ADDED += ["<video>", *(f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5))]
IDEFICS_ADDED = [*SMOL_ADDED[:6], *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))]
INTERN_ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>"]
INTERN_NAMES = {"start_image_token": "<img>", "end_image_token": "</img>"}
INTERN_NAMES |= {"context_image_token": "<IMG_CONTEXT>", "video_token": "<video>"}
MINICPM_ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>", "<image>", "</image>"]
MINICPM_ADDED += ["<slice>", "</slice>", "<image_id>", "</image_id>"]
MINICPM_NAMES = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
MINICPM_NAMES |= {f"{kind}_{end}_token": f"<{slash}{kind}>" for kind in ("image", "slice", "image_id")
                  for end, slash in (("start", ""), ("end", "/"))}
GEMMA_FIRST = ["<pad>", "<eos>", "<bos>", "<unk>"]
GEMMA_ADDED = ["<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "\n\n", "\n\n\n", "\n\n\n\n"]
GEMMA_LAST = "<image_soft_token>"
VOCAB = 320

QWEN_TEMPLATE = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' or 'image' in part or 'image_url' in part %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif part.type == 'video' or 'video' in part %}
                {{- '<|vision_start|><|video_pad|><|vision_end|>' }}
            {%- elif 'text' in part %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

MISTRAL_TEMPLATE = """{{- bos_token }}
{%- if tools %}
    {{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '[INST]' }}
        {%- if message.content is string %}
            {{- message.content }}
        {%- else %}
            {%- for part in message.content %}
                {%- if part.type == 'text' %}
                    {{- part.text }}
                {%- elif part.type in ['image', 'image_url'] %}
                    {{- '[IMG]' }}
                {%- endif %}
            {%- endfor %}
        {%- endif %}
        {{- '[/INST]' }}
    {%- elif message.role == 'tool' %}
        {{- '[TOOL_RESULTS]' + message.content + '[/TOOL_RESULTS]' }}
    {%- else %}
        {%- if message.content %}
            {{- message.content if message.content is string else message.content[0].text }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' + (call.function.arguments | tojson) }}
        {%- endfor %}
        {{- eos_token }}
    {%- endif %}
{%- endfor %}
"""

GEMMA_TEMPLATE = """{{- bos_token }}
{%- for message in messages %}
    {{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}
    {%- if message.content is string %}
        {{- message.content | trim }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<start_of_image>' }}
            {%- elif part.type == 'text' %}
                {{- part.text | trim }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\\n' }}
{%- endif %}
"""


LFM_TEMPLATE = """{{- bos_token }}
{%- if tools %}
    {{- '<|im_start|>system\\nList of tools: ' + (tools | tojson) + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- elif message.content %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<image>' }}
            {%- elif part.type == 'text' %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {%- for call in message.tool_calls or [] %}
        {%- set given = namespace(text='') %}
        {%- for name, value in call.function.arguments.items() %}
            {%- set given.text = given.text + (', ' if given.text else '') + name + '=' + (value | tojson) %}
        {%- endfor %}
        {{- '<|tool_call_start|>[' + call.function.name + '(' + given.text + ')]<|tool_call_end|>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

GEMMA4_ADDED = ["<pad>", "<eos>", "<bos>", "<|turn>", "<turn|>", "<|image>", "<image|>", "<|image|>", "<|video|>"]
GEMMA4_ADDED += ["<|audio>", "<audio|>", "<|audio|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", '<|"|>']
GEMMA4_ADDED += ["<|tool_response>", "<tool_response|>", "<|channel>", "<channel|>"]
GEMMA4_NAMES = {"boi_token": "<|image>", "eoi_token": "<image|>", "image_token": "<|image|>"}
GEMMA4_NAMES |= {"boa_token": "<|audio>", "eoa_token": "<audio|>", "audio_token": "<|audio|>"}
GEMMA4_TEMPLATE = """{{- bos_token }}
{%- if tools %}
    {{- '<|turn>system\\n' }}
    {%- for tool in tools %}
        {{- '<|tool>declaration:' + tool.function.name + (tool.function.parameters | tojson) + '<tool|>' }}
    {%- endfor %}
    {{- '<turn|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}
    {%- for call in message.tool_calls or [] %}
        {{- '<|tool_call>call:' + call.function.name + '{' }}
        {%- for name, value in call.function.arguments | dictsort %}
            {{- (',' if not loop.first else '') + name + ':' }}
            {{- '<|"|>' + value + '<|"|>' if value is string else value | tojson }}
        {%- endfor %}
        {{- '}<tool_call|>' }}
    {%- endfor %}
    {%- if message.reasoning_content %}
        {{- '<|channel>thought\\n' + message.reasoning_content + '<channel|>' }}
    {%- endif %}
    {%- if message.role == 'tool' %}
        {{- '<|tool_response>response:unknown{value:<|"|>' + message.content + '<|"|>}<tool_response|>' }}
    {%- elif message.content is string %}
        {{- message.content | trim }}
    {%- elif message.content %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<|image|>' }}
            {%- elif part.type == 'video' %}
                {{- '<|video|>' }}
            {%- elif part.type == 'text' %}
                {{- part.text | trim }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<turn|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|turn>model\\n' }}
{%- endif %}
"""


GLM_TEMPLATE = """{{- '[gMASK]<sop>' }}
{%- if tools %}
    {{- '<|system|>\\nTools: ' + (tools | tojson) + '\\nCall them as <tool_call>{name}\\n<arg_key>{key}</arg_key>' }}
    {{- '\\n<arg_value>{value}</arg_value>\\n</tool_call>' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|observation|>' if message.role == 'tool' else '<|' + message.role + '|>' }}
    {{- '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- elif message.content %}
        {%- for part in message.content %}
            {%- if part.type == 'image' or 'image' in part or 'image_url' in part %}
                {{- '<|begin_of_image|><|image|><|end_of_image|>' }}
            {%- elif part.type == 'video' or 'video' in part %}
                {{- '<|begin_of_video|><|video|><|end_of_video|>' }}
            {%- elif 'text' in part %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '<tool_call>' + call.function.name + '\\n' }}
        {%- for name, value in call.function.arguments.items() %}
            {{- '<arg_key>' + name + '</arg_key>\\n<arg_value>' }}
            {{- value if value is string else value | tojson }}
            {{- '</arg_value>\\n' }}
        {%- endfor %}
        {{- '</tool_call>' }}
    {%- endfor %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\\n' }}
{%- endif %}
"""


PADDLE_TEMPLATE = """{{- '<|begin_of_sentence|>' }}
{%- for message in messages %}
    {{- 'User: ' if message.role == 'user' else 'Assistant: ' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>' }}
            {%- elif part.type == 'text' %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '\\n' if message.role == 'user' else '</s>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'Assistant: ' }}
{%- endif %}
"""


CHATML_TEMPLATE = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- 'IMAGE' }}
            {%- elif part.type == 'video' %}
                {{- 'VIDEO' }}
            {%- elif part.type == 'text' %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def _chatml(image, video):
    return CHATML_TEMPLATE.replace("IMAGE", image).replace("VIDEO", video)


SMOL_TEMPLATE = """{{- '<|im_start|>' }}
{%- for message in messages %}
    {{- message.role | capitalize + ': ' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<image>' }}
            {%- elif part.type == 'text' %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<end_of_utterance>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'Assistant:' }}
{%- endif %}
"""


def byte_letters():
    """GPT-2's letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def _added(start, texts, special=True):
    keys = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return [{"id": start + i, "content": text, **keys} for i, text in enumerate(texts)]


def _tokenizer(vocab, merges, added, normalizer, pre_tokenizer, decoder, **model):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": {"type": "BPE", "dropout": None, "vocab": vocab, "merges": merges, **model},
    }


def qwen_tokenizer(added=QWEN_ADDED):
    letters = byte_letters()
    vocab = {letters[b]: i for i, b in enumerate(sorted(letters, key=lambda b: ord(letters[b])))}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return _tokenizer(
        vocab,
        [],
        _added(len(vocab), added),
        {"type": "NFC"},
        {**byte_level, "use_regex": True},
        byte_level,
        unk_token=None,
        continuing_subword_prefix="",
        end_of_word_suffix="",
        fuse_unk=False,
        byte_fallback=False,
    )


def gemma_tokenizer():
    """Bytes as fallback, few letters, and runs of newlines that are tokens of their own."""
    words = [*GEMMA_FIRST, *(f"<0x{b:02X}>" for b in range(256)), "\u2581", *"aeinorst", "\n"]
    words += GEMMA_ADDED[4:]
    vocab = {word: i for i, word in enumerate(words)}
    for word in [*GEMMA_ADDED[:4], GEMMA_LAST]:
        vocab[word] = len(vocab)
    runs = [{**_added(vocab[text], [text], special=False)[0]} for text in GEMMA_ADDED[4:]]
    special = [_added(vocab[text], [text])[0] for text in [*GEMMA_FIRST, *GEMMA_ADDED[:4], GEMMA_LAST]]
    return _tokenizer(
        vocab,
        [],
        sorted(runs + special, key=lambda entry: entry["id"]),
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        unk_token="<unk>",
        continuing_subword_prefix=None,
        end_of_word_suffix=None,
        fuse_unk=True,
        byte_fallback=True,
    )


def tokenizer_of(family):
    if family == "gemma3":
        return gemma_tokenizer()
    if family in GEMMA4:
        return qwen_tokenizer(GEMMA4_ADDED)
    if family in GLM:
        return qwen_tokenizer(GLM_ADDED)
    known = {**dict.fromkeys(MISTRALS, MISTRAL_ADDED), "lfm2_vl": LFM_ADDED, "paddleocr_vl": PADDLE_ADDED, "smolvlm": SMOL_ADDED}
    known |= {"idefics3": IDEFICS_ADDED, "internvl": INTERN_ADDED, "minicpmv4_6": MINICPM_ADDED}
    return qwen_tokenizer(known.get(family, QWEN_ADDED))


def token_ids(family):
    ids = {entry["content"]: entry["id"] for entry in tokenizer_of(family)["added_tokens"]}
    if family in MISTRALS:
        return {"image_token_index": ids["[IMG]"]}
    if family in ("lfm2_vl", "smolvlm", "idefics3"):
        return {"image_token_id": ids["<image>"]}
    if family == "internvl":
        return {"image_token_id": ids["<IMG_CONTEXT>"]}
    if family == "minicpmv4_6":
        return {"image_token_id": ids["<|image_pad|>"], "video_token_id": ids["<|video_pad|>"]}
    if family == "paddleocr_vl":
        named = {"vision_start_token_id": ids["<|IMAGE_START|>"], "vision_end_token_id": ids["<|IMAGE_END|>"]}
        return {"image_token_id": ids["<|IMAGE_PLACEHOLDER|>"], **named}
    if family in GEMMA4:
        named = {"image_token_id": "<|image|>", "video_token_id": "<|video|>", "audio_token_id": "<|audio|>"}
        named |= {"boi_token_id": "<|image>", "eoi_token_id": "<image|>", "boa_token_id": "<|audio>"}
        return {key: ids[text] for key, text in named.items()}
    if family in GLM:
        named = {f"{kind}_{end}_token_id": ids[f"<|{word}_of_{kind}|>"] for kind in ("image", "video")
                 for end, word in (("start", "begin"), ("end", "end"))}
        return {"image_token_id": ids["<|image|>"], "video_token_id": ids["<|video|>"], **named}
    if family == "gemma3":
        return {
            "image_token_index": ids[GEMMA_LAST],
            "boi_token_index": ids["<start_of_image>"],
            "eoi_token_index": ids["<end_of_image>"],
        }
    return {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }


def _tokenizer_config(family):
    if family == "gemma3":
        return {
            "tokenizer_class": "GemmaTokenizer",
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "add_bos_token": False,
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": GEMMA_LAST,
            "extra_special_tokens": {
                "image_token": GEMMA_LAST,
                "boi_token": "<start_of_image>",
                "eoi_token": "<end_of_image>",
            },
            "clean_up_tokenization_spaces": False,
        }
    if family in GEMMA4:
        ends = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": None}
        more = {**GEMMA4_NAMES, "extra_special_tokens": GEMMA4_NAMES, "clean_up_tokenization_spaces": False}
        return {"tokenizer_class": "GemmaTokenizer", "add_bos_token": False, **ends, **more}
    if family in MISTRALS:
        return {
            "tokenizer_class": "LlamaTokenizerFast",
            "add_bos_token": False,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "clean_up_tokenization_spaces": False,
        }
    if family in ("smolvlm", "idefics3"):
        return {
            "tokenizer_class": "GPT2Tokenizer",
            "add_bos_token": False,
            "bos_token": "<|im_start|>",
            "eos_token": "<end_of_utterance>",
            "unk_token": "<|endoftext|>",
            "pad_token": "<|im_start|>",
            "clean_up_tokenization_spaces": False,
        }
    if family == "paddleocr_vl":
        return {
            "tokenizer_class": "LlamaTokenizerFast",
            "add_bos_token": False,
            "bos_token": "<|begin_of_sentence|>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "pad_token": "<unk>",
            "extra_special_tokens": {"image_token": "<|IMAGE_PLACEHOLDER|>"},
            "clean_up_tokenization_spaces": False,
        }
    if family in GLM:
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": False,
            "bos_token": None,
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "unk_token": None,
            "clean_up_tokenization_spaces": False,
        }
    if family == "lfm2_vl":
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": False,
            "bos_token": "<|startoftext|>",
            "eos_token": "<|im_end|>",
            "pad_token": "<|pad|>",
            "unk_token": None,
            "image_token": "<image>",
            "clean_up_tokenization_spaces": False,
        }
    named = {"internvl": INTERN_NAMES, "minicpmv4_6": MINICPM_NAMES}.get(family)
    return {
        "tokenizer_class": "Qwen2Tokenizer",
        "add_bos_token": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        **({"extra_special_tokens": named} if named else {}),
        "clean_up_tokenization_spaces": False,
    }


PROCESSORS = {
    "qwen2_vl": ("Qwen2VLProcessor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor"),
    "qwen2_5_vl": ("Qwen2_5_VLProcessor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor"),
    "qwen3_vl": ("Qwen3VLProcessor", "Qwen2VLImageProcessor", "Qwen3VLVideoProcessor"),
    "qwen3_vl_moe": ("Qwen3VLProcessor", "Qwen2VLImageProcessor", "Qwen3VLVideoProcessor"),
    "qwen3_5": ("Qwen3VLProcessor", "Qwen2VLImageProcessor", "Qwen3VLVideoProcessor"),
    "gemma3": ("Gemma3Processor", "Gemma3ImageProcessor", None),
    **dict.fromkeys(MISTRALS, ("PixtralProcessor", "PixtralImageProcessor", None)),
    "lfm2_vl": ("Lfm2VlProcessor", "Lfm2VlImageProcessor", None),
    "gemma4": ("Gemma4Processor", "Gemma4ImageProcessor", "Gemma4VideoProcessor"),
    "gemma4_unified": ("Gemma4UnifiedProcessor", "Gemma4UnifiedImageProcessor", "Gemma4UnifiedVideoProcessor"),
    "glm4v": ("Glm4vProcessor", "Glm4vImageProcessor", "Glm4vVideoProcessor"),
    "glm46v": ("Glm46VProcessor", "Glm46VImageProcessor", "Glm46VVideoProcessor"),
    "glm4v_moe": ("Glm4vProcessor", "Glm4vImageProcessor", "Glm4vVideoProcessor"),
    "glm_ocr": ("Glm46VProcessor", "Glm46VImageProcessor", "Glm46VVideoProcessor"),
    "paddleocr_vl": ("PaddleOCRVLProcessor", "PaddleOCRVLImageProcessor", None),
    "smolvlm": ("SmolVLMProcessor", "SmolVLMImageProcessor", "SmolVLMVideoProcessor"),
    "idefics3": ("Idefics3Processor", "Idefics3ImageProcessor", None),
    "internvl": ("InternVLProcessor", "GotOcr2ImageProcessor", "InternVLVideoProcessor"),
    "minicpmv4_6": ("MiniCPMV4_6Processor", "MiniCPMV4_6ImageProcessor", "MiniCPMV4_6VideoProcessor"),
}
TEMPLATES = {"gemma3": GEMMA_TEMPLATE, "lfm2_vl": LFM_TEMPLATE}  # others have Qwen's
TEMPLATES |= dict.fromkeys(MISTRALS, MISTRAL_TEMPLATE)
TEMPLATES |= dict.fromkeys(GEMMA4, GEMMA4_TEMPLATE)
TEMPLATES |= {**dict.fromkeys(GLM, GLM_TEMPLATE), "paddleocr_vl": PADDLE_TEMPLATE, "smolvlm": SMOL_TEMPLATE}
TEMPLATES |= {"idefics3": SMOL_TEMPLATE}
TEMPLATES |= {"internvl": _chatml("<IMG_CONTEXT>\\n", "<video>\\n")}
TEMPLATES |= {"minicpmv4_6": _chatml("<|image_pad|>\\n", "<|video_pad|>\\n")}


def _write(folder, name, value):
    (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def internvl_tokens(spec):
    return int(spec.image["size"]["width"] // spec.vision["patch_size"][0] * spec.vision["downsample_ratio"]) ** 2


def write_processor(folder, spec):
    """Everything that turns messages and pictures into what the model is given."""
    processor, image_type, video_type = PROCESSORS[spec.family]
    gemma = spec.family == "gemma3"
    image = {"image_processor_type": image_type, **spec.image}
    video = {"video_processor_type": video_type, **spec.video} if spec.video else None
    _write(folder, "tokenizer.json", tokenizer_of(spec.family))
    _write(folder, "tokenizer_config.json", _tokenizer_config(spec.family))
    (folder / "chat_template.jinja").write_text(TEMPLATES.get(spec.family, QWEN_TEMPLATE))
    whole = {"processor_class": processor}
    if gemma:
        whole["image_seq_length"] = spec.vision["tokens"]
    if spec.family == "internvl":
        whole["image_seq_length"] = internvl_tokens(spec)
    if spec.family in MISTRALS:
        whole |= {"patch_size": spec.vision["patch_size"], "spatial_merge_size": spec.vision.get("merge", 1)}
        whole |= {"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]"}
    if spec.published:
        _write(folder, "preprocessor_config.json", {**image, "processor_class": processor})
        if video:
            _write(folder, "video_preprocessor_config.json", {**video, "processor_class": processor})
    else:
        whole["image_processor"] = image
        if video:
            whole["video_processor"] = video
    if gemma or spec.family in (*MISTRALS, "internvl") or not spec.published:
        _write(folder, "processor_config.json", whole)


# --- config ---------------------------------------------------------------------------------------------------------


def config_dict(spec):
    import transformers

    beside = {key: key for key in ("downsample_factor", "projector_hidden_size", "projector_bias")}
    beside |= {key: key for key in ("projector_use_layernorm", "projector_hidden_act")}
    beside |= {key: key for key in ("downsample_ratio", "insert_layer_id", "downsample_mode")}
    beside |= {"layer": "vision_feature_layer", "chosen": "vision_feature_select_strategy"}
    beside |= {"scale_factor": "scale_factor", "tokens": "mm_tokens_per_image", "merge": "spatial_merge_size", "bias": "multimodal_projector_bias"}
    vision = {key: value for key, value in spec.vision.items() if key not in beside}
    pad = tokenizer_of(spec.family)["added_tokens"][0]["id"] if spec.family in GEMMA4 else None
    more = {beside[key]: value for key, value in spec.vision.items() if key in beside}
    config = getattr(transformers, FACTORY[spec.family][0])(
        text_config={**spec.text, "bos_token_id": None, "eos_token_id": None, "pad_token_id": pad},
        vision_config=vision,
        tie_word_embeddings=spec.text.get("tie_word_embeddings", False),
        **token_ids(spec.family),
        **more,
    )
    config.architectures = [FACTORY[spec.family][1]]
    return json.loads(config.to_json_string())


def published_config(config, family):
    """Qwen2.5-VL and older have the text model's settings at the top; rope settings have their old names."""
    config = json.loads(json.dumps(config))
    config.pop("transformers_version", None)
    config["torch_dtype"] = config.pop("dtype", None) or "bfloat16"
    text = config["text_config"]
    if family in MISTRALS:
        for part in [config["vision_config"], *([text] if text["model_type"] == "mistral" else [])]:
            part["rope_theta"] = part.pop("rope_parameters")["rope_theta"]
        return config
    if family == "lfm2_vl":
        return {**config, "text_config": families.published_lfm2(text)}
    if family in GEMMA4:
        config["text_config"] = families.published({**text, "model_type": f"{family}_text"})
        return config
    if family in ("smolvlm", "idefics3", "internvl") and text["model_type"] != "gpt_oss":
        text["rope_theta"] = text.pop("rope_parameters")["rope_theta"]
        return config
    if family in ("internvl", "minicpmv4_6"):
        return config
    if family == "paddleocr_vl":
        rope = text.pop("rope_parameters")
        text |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": {**rope, "type": "default"}}
        config.pop("text_config")
        kept = {key: text[key] for key in text if key not in ("model_type", "dtype", "torch_dtype", "architectures")}
        return {**kept, **config}
    if family in GLM:
        rope = text.pop("rope_parameters")
        text |= {key: rope.pop(key) for key in ("rope_theta", "partial_rotary_factor") if key in rope}
        text["rope_scaling"] = rope
        return config
    rope = text.pop("rope_parameters", None)
    layers = text.pop("layer_types", None)
    if family == "gemma3":
        text["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        full = rope["full_attention"]
        text["rope_theta"] = full["rope_theta"]
        text["rope_scaling"] = {"rope_type": "linear", "factor": full["factor"]} if "factor" in full else None
        text.pop("_sliding_window_pattern", None)
        text["sliding_window_pattern"] = layers.index("full_attention") + 1
        return config
    text["rope_theta"] = rope.pop("rope_theta")
    if family in ("qwen2_vl", "qwen2_5_vl"):
        text["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
        config.pop("text_config")
        kept = {key: text[key] for key in text if key not in ("model_type", "dtype", "torch_dtype", "architectures")}
        return {**kept, **config}
    text["rope_scaling"] = {**rope, "mrope_interleaved": True}
    return config


# --- weights --------------------------------------------------------------------------------------------------------


def _draw_gemma4(name, shape, rng):
    """What no other tower has; None for the rest. Of what is cut off, some is."""
    noise = rng.standard_normal(shape)
    if name.endswith(("_min", "_max")):
        return (np.abs(noise) * 0.3 + (1.2 if "input" in name else 1.6)) * (-1 if name.endswith("_min") else 1)
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        return 1.3 * shape[0] ** -0.25 * (1 + 0.2 * noise)
    if name.endswith("std_bias"):
        return 0.5 * noise
    if name.endswith(("position_embedding_table", "pos_embedding")):
        return 0.6 * noise
    if name.endswith("embedding_projection.weight"):
        return noise * families.LOGIT_SPREAD * shape[1] ** -0.5
    return None


def _draw_vision(name, shape, config, rng):
    drawn = _draw_gemma4(name, shape, rng) if config["model_type"] in GEMMA4 else None
    if drawn is not None:
        return drawn
    text = config["text_config"]
    leaf = name.removesuffix(".weight").removesuffix(".bias")
    part = leaf.rsplit(".", 1)[-1]
    noise = rng.standard_normal(shape)
    if name.endswith("mm_soft_emb_norm.weight"):
        return 0.2 * noise
    if name.endswith(".bias"):
        return 0.2 * noise
    if len(shape) == 1 and not part.startswith("lambda"):
        return 1 + 0.2 * noise
    if part in ("lambda_1", "lambda_2"):
        return 0.8 + 0.3 * noise
    if part in ("pos_embed", "position_embedding", "position_embeddings", "cls_token"):
        return 0.6 * noise
    width = int(np.prod(shape[1:]))
    if part == "mm_input_projection_weight":
        return noise * families.LOGIT_SPREAD * shape[0] ** -0.5
    if len(shape) >= 4:
        return noise * 1.5 * width**-0.5
    if "vit_merger" in name and part == "linear_2":
        return noise * 0.7 * width**-0.5
    if "modality_projection" in name or "merger" in name and part in ("linear_fc2", "2", "down_proj") or part == "linear_2":
        spread = families._embedding_spread(text)
        return noise * 1.6 * spread * width**-0.5 * (0.4 if "deepstack" in name else 1)
    if part in ("proj", "out_proj", "o_proj", "projection_layer", "linear_fc2", "fc2", "down_proj"):
        return noise * 0.7 * width**-0.5
    return noise * 1.3 * width**-0.5


TEXTS = {"gemma3": "gemma3_text", "qwen3_5": "qwen3_5_text", "lfm2_vl": "lfm2", "smolvlm": "llama", "idefics3": "llama"}
TEXTS |= {kind: f"{kind}_text" for kind in GEMMA4}
OWN = (*GLM, "internvl", "minicpmv4_6")  # whose text models have types of their own


def draw(config, shapes, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    text = {**config["text_config"], "tie_word_embeddings": config["tie_word_embeddings"]}
    text["model_type"] = text["model_type"] if config["model_type"] in OWN else TEXTS.get(config["model_type"], "qwen3")
    text.setdefault("head_dim", text["hidden_size"] // text["num_attention_heads"])
    config = {**config, "text_config": text}
    out = {}
    for name, shape in shapes.items():
        if "language_model" in name or "text_model" in name or name.startswith("lm_head"):
            plain = name.replace("model.language_model.", "model.").replace("model.text_model.", "model.")
            out[name] = families._draw(plain, shape, text, rng)
        else:
            out[name] = _draw_vision(name, shape, config, rng)
    return {name: value.astype(np.float32) for name, value in out.items()}


# --- names ----------------------------------------------------------------------------------------------------------


def _published_name(name, family):
    if family == "gemma4_unified":
        name = name.replace("embed_vision.multimodal_embedder.", "projector.").replace("embed_vision", "vision_embedder")
        return name.replace("projector.", "embed_vision.")
    if family in ("qwen2_vl", "qwen2_5_vl"):
        return name.replace("model.visual.", "visual.").replace("model.language_model.", "model.")
    if family in (*MISTRALS, "internvl"):
        name = name.replace("model.language_model.", "language_model.model.")
        return "language_model." + name if name.startswith("lm_head") else name.removeprefix("model.")
    if family == "paddleocr_vl":
        name = name.replace("model.visual.", "visual.").replace("model.projector.", "mlp_AR.")
        return name.replace("model.language_model.", "model.")
    if family == "lfm2_vl":
        tail = name.split("model.vision_tower.")[-1].removeprefix("vision_model.")
        return f"model.vision_tower.vision_model.{tail}" if "model.vision_tower." in name else name
    if family == "gemma3":
        name = name.replace("model.language_model.", "language_model.model.")
        name = name.replace("model.multi_modal_projector.", "multi_modal_projector.")
        tail = name.split("model.vision_tower.")[-1].removeprefix("vision_model.")
        return f"vision_tower.vision_model.{tail}" if "model.vision_tower." in name else name
    return name


def _mlx_name(name, family):
    name = name.replace("model.language_model.", "language_model.model.")
    if name.startswith("lm_head"):
        return "language_model." + name
    if family == "gemma3":
        return _published_name(name, family)
    if family in ("smolvlm", "idefics3"):
        return name.removeprefix("model.").replace("text_model.", "language_model.")
    if family in ("internvl", "minicpmv4_6"):
        return name.removeprefix("model.").replace("vision_tower.vit_merger.", "vit_merger.")
    if family == "paddleocr_vl":
        return name.removeprefix("model.").replace("projector.", "visual.projector.")
    if family == "lfm2_vl":
        return name.removeprefix("model.").replace("vision_tower.vision_model.", "vision_tower.")
    if family in GEMMA4:
        return _published_name(name, family).removeprefix("model.")
    if family in MISTRALS:
        return name.removeprefix("model.").replace("vision_tower.", "vision_tower.vision_model.")
    return name.replace("model.visual.", "vision_tower.")


def _stored(name, tensor, spec):
    """{file name: tensor} for one tensor in memory."""
    family, layout = spec.family, spec.layout
    if layout.mlx:
        new = _mlx_name(name, family)
        if tensor.ndim >= 4:
            return {new: np.moveaxis(tensor, 1, -1)}
        if name.endswith("conv.conv.weight"):
            return {new: tensor.swapaxes(1, 2)}
        if name.endswith("experts.gate_up_proj"):
            half = tensor.shape[1] // 2
            prefix = new.replace("mlp.experts.gate_up_proj", "mlp.switch_mlp.")
            return {prefix + "gate_proj.weight": tensor[:, :half], prefix + "up_proj.weight": tensor[:, half:]}
        if name.endswith("experts.down_proj"):
            return {new.replace("mlp.experts.down_proj", "mlp.switch_mlp.down_proj.weight"): tensor}
        return {new: tensor}
    if ".mlp.experts." in name and family == "glm46v":
        return {name: tensor}
    if ".mlp.experts." in name and family in GLM:
        prefix, parts = layouts._unstack(name, tensor)
        return {f"{prefix}.{i}.{p}.weight": one for p, value in parts.items() for i, one in enumerate(value)}
    if ".mlp.experts." in name and spec.published:
        return {name: tensor.swapaxes(1, 2)}
    return {_published_name(name, family) if spec.published else name: tensor}


def _choice(name, tensor, spec):
    mlx = spec.layout.mlx
    towers = ("vision_tower", "multi_modal_projector", "vision_embedder", "embed_vision", "vit_merger", "merger")
    seen = name.startswith("vision_tower" if spec.family in MISTRALS else towers)
    if not mlx or tensor.ndim not in (2, 3) or not name.endswith(".weight") or tensor.shape[-1] % mlx.group:
        return None
    if spec.family in GLM and name.endswith("mlp.gate.weight"):
        return None  # routers stay as they are
    if name.startswith(spec.kept):
        return None
    return None if seen and not spec.vision_quantised else mlx


def store(folder, config, tensors, spec):
    """Writes config.json and model.safetensors. Returns the tensors as they will be read, by their names in memory."""
    files, kept = {}, {}
    round_trip = safetensors.rounder(spec.layout.dtype)
    for name, tensor in tensors.items():
        parts = []
        for new, value in _stored(name, tensor, spec).items():
            choice = _choice(new, value, spec)
            if new.endswith("e_score_correction_bias"):
                files[new] = safetensors.floats(value, "F32")
                parts.append(value)
                continue
            if choice is None:
                files[new] = safetensors.floats(value, spec.layout.dtype)
                parts.append(round_trip(value))
                continue
            module = new.removesuffix(".weight")
            packed = numbers.affine_quantise(value, choice.bits, choice.group, round_trip)
            files[new] = safetensors.Stored("U32", packed["weight"])
            files[f"{module}.scales"] = safetensors.floats(packed["scales"], spec.layout.dtype)
            files[f"{module}.biases"] = safetensors.floats(packed["biases"], spec.layout.dtype)
            scales, biases = round_trip(packed["scales"]), round_trip(packed["biases"])
            parts.append(numbers.affine_dequantise(packed["weight"], scales, biases, choice.bits, choice.group))
        if ".mlp.experts." in name and len(parts) > 2:  # one by one, and nothing but rounded
            parts = [round_trip(tensor)]
        value = parts[0] if len(parts) == 1 else np.concatenate(parts, 1)
        if value.ndim >= 4 and spec.layout.mlx:
            value = np.moveaxis(value, -1, 1)
        if value.shape != tensor.shape:
            value = value.swapaxes(1, 2)
        kept[name] = np.ascontiguousarray(value)
    safetensors.write(folder / "model.safetensors", files, {"format": "mlx" if spec.layout.mlx else "pt"})
    if spec.layout.mlx:
        config = {**config, "quantization": spec.layout.mlx.entry(True)}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return kept
