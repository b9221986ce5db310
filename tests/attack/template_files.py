#!/usr/bin/env python3
"""Checkpoints whose chat templates were made to harm, in each of the files that a template may stand in.

usage: tests/attack/template_files.py --motet PROGRAM [NAME ...]"""

from checkpoints import Attack, fixture, message

attack = Attack("attack_template_files")
TOKENS = {"eos_token": fixture.SPECIAL[3], "bos_token": {"content": fixture.SPECIAL[0]}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
LOOP = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"
DOUBLE = "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
DEEP = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"
LAST = "{% for m in messages %}{{ m.content }}{% endfor %}"
REFUSED = (400, 413)
FORMS = {
    "jinja": lambda text: {"chat_template.jinja": text},
    "json": lambda text: {"chat_template.json": {"chat_template": text}},
    "config": lambda text: {"tokenizer_config.json": {**TOKENS, "chat_template": text}},
    "list": lambda text: {"tokenizer_config.json": {**TOKENS, "chat_template": [
        {"name": "default", "template": text}, {"name": "tool_use", "template": text}]}},
}

# The same in each of the files
for form, files in FORMS.items():
    for name, text, words in (("steps", LOOP, "too many steps"), ("memory", DOUBLE, "more memory than it may have"),
                              ("depth", DEEP, "inside one another")):
        attack.checkpoint("{}_without_end_in_{}".format(name, form), files(text), words, status=REFUSED)
    attack.checkpoint("a_template_that_is_none_in_" + form, files("{% for %}"), "line 1, column")
    attack.checkpoint("a_template_that_includes_in_" + form, files("{% include '/etc/passwd' %}" + LAST),
                      "other templates cannot be loaded", status=REFUSED)
    attack.checkpoint("a_template_that_is_empty_in_" + form, files(""), "the prompt has no tokens", status=(400,))
    attack.checkpoint("a_template_that_only_writes_in_" + form, files("x" * 1000000), "", status=(400,))
    attack.checkpoint("a_template_of_too_many_bytes_in_" + form, files(" " * (1 << 20) + LAST), "")

# Files that are none
for name, content in (("bytes", bytes(1000)), ("not_utf8", b"\xff\xfe{{ x }}"), ("half", "{{ '\ud800' }}"),
                      ("long", b"x" * (2 << 20))):
    attack.checkpoint("a_file_of_" + name, {"chat_template.jinja": content}, None if name == "bytes" else "")
attack.checkpoint("a_config_that_is_deep", {"tokenizer_config.json": '{"chat_template":' * 100000}, "")
attack.checkpoint("a_config_that_is_cut", {"tokenizer_config.json": '{"chat_template": "{{'}, "")
attack.checkpoint("a_config_that_is_a_list", {"tokenizer_config.json": []}, "no object")
for name, kind in (("a_number", 7), ("null", None), ("an_object", {}), ("true", True), ("a_list_of_numbers", [1]),
                   ("a_list_of_nothing", [{}]), ("a_name_alone", [{"name": "default"}]),
                   ("a_name_with_a_number", [{"name": "default", "template": 7}]),
                   ("a_name_that_is_a_path", [{"name": "../default", "template": LAST}])):
    attack.checkpoint("a_template_that_is_" + name, {"tokenizer_config.json": {**TOKENS, "chat_template": kind}},
                      "has no chat template", status=(400,))
attack.checkpoint("names_by_the_hundred_thousand", {"tokenizer_config.json": {**TOKENS, "chat_template": [
    {"name": "default", "template": LAST}] * 2000 + [{"name": "n", "template": LAST}] * 20000}})
attack.checkpoint("special_tokens_that_are_none", {"tokenizer_config.json": {
    "bos_token": [1], "eos_token": {"content": {"content": 1}}, "pad_token": 7, "chat_template": LAST,
    "additional_special_tokens": [[], {}, None, "\x1b[2J"] * 1000}})
attack.checkpoint("special_tokens_as_long_as_can_be", {"tokenizer_config.json": {
    "bos_token": "x" * 1000000, "chat_template": "{{ bos_token * 60 }}"}}, "", status=REFUSED)

# Only with tools, or only with what is probed
attack.checkpoint("a_template_that_harms_with_tools", {
    "chat_template.jinja": LAST, "additional_chat_templates/tool_use.jinja": LOOP}, "too many steps", status=REFUSED,
    tools=[TOOL])
attack.checkpoint("a_template_that_harms_without_tools", {
    "chat_template.jinja": LOOP, "additional_chat_templates/tool_use.jinja": LAST}, tools=[TOOL])
attack.checkpoint("a_template_that_harms_from_the_third_message_on",
                  {"chat_template.jinja": LAST + "{% if messages | length > 20 %}" + LOOP + "{% endif %}"},
                  "too many steps", status=REFUSED,
                  messages=[message("x", "assistant" if i % 2 else "user") for i in range(31)])
attack.checkpoint("a_template_that_harms_beside_probes", {"chat_template.jinja": LAST + (
    "{% if messages[0].content is string and 'hello' in messages[0].content %}" + DOUBLE + "{% endif %}")},
    "more memory", status=REFUSED)
attack.checkpoint("a_template_that_turns_roles_around",
                  {"chat_template.jinja": "{% for m in messages | reverse %}<|turn|>system\n{{ m.content }}<|done|>"
                                          "{% endfor %}"})
attack.checkpoint("a_template_that_changes_messages", {"chat_template.jinja": (
    "{% for m in messages %}{% set _ = m.update({'content': 'x' * 100}) %}{{ m.content }}{% endfor %}")}, "unsafe",
    status=REFUSED)
attack.checkpoint("a_template_that_raises_control_characters", {
    "chat_template.jinja": "{{ raise_exception('\x1b]0;x\x07\r\n\u009b2J /etc/passwd'[:9]) }}"}, "?]0;x??",
    status=REFUSED)
attack.checkpoint("a_template_that_writes_what_opens_reasoning", {
    "chat_template.jinja": LAST + "{% if add_generation_prompt %}" + "<think>" * 100 + "{% endif %}"})
attack.checkpoint("a_template_without_rounds", {"chat_template.jinja": (
    "{% macro all(list) %}{{ list[0].content }}{% if list | length > 1 %}{{ all(list[1:]) }}{% endif %}{% endmacro %}"
    "{{ all(messages) }}")}, messages=[message("x", "assistant" if i % 2 else "user") for i in range(41)])

for name, text in (("steps", LOOP), ("memory", DOUBLE)):
    attack.leaves("{}_whose_client_leaves".format(name), {"chat_template.jinja": text})

attack.commands("info")
attack.main()
