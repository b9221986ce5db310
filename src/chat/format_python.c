/* Formats that write calls as Python. format_words.h explains the tables. */
#include "chat/format_words.h"

#define PYTHON_CALLS(separated) \
    .behind = "(", .arguments = MT_LAYOUT_KEYWORDS, .notation = MT_NOTATION_PYTHON, .after = ")", .between = separated

enum { CODE = MORE + 1, BEHIND_FENCE };

/* A list of calls of declared tools; or calls of any tool between markers or in a code fence. */
static const mt_parse_state python_states[] = {
    [TEXT] = CONTENT({"[", MORE, KEEP}, {"<|python_start|>", CALL, 0}, {"<|python_end|>", TEXT, 0},
                     {"```tool_code", CODE, HOLD}, {"<|tool_call_start|>", CALL, 0}, {"<|tool_call_end|>", TEXT, 0}),
    [MORE] = PYTHON(AFTER, MT_PARSE_DECLARED),
    [CALL] = PYTHON(AFTER, 0, {"<|python_end|>", TEXT, 0}, {"<|tool_call_end|>", TEXT, 0}),
    [CODE] = PYTHON(BEHIND_FENCE, 0, {"```", TEXT, 0}),
    [BEHIND_FENCE] = DROP({"```", TEXT, 0}),
    [AFTER] = SKIP(TEXT, {"<|python_end|>", TEXT, 0}, {"<|tool_call_end|>", TEXT, 0}, {"<|python_start|>", CALL, 0},
                   {"<|tool_call_start|>", CALL, 0}),
};
static const mt_parse_table python = {.states = python_states, .start = TEXT};

static const mt_layout pythonic_calls[] = {{.trigger = "[", .close = "]", PYTHON_CALLS(", ")}};
const mt_format mt_format_pythonic = {
    .name = "pythonic", .signs = {{"func_name1("}}, .read = &python, .write = pythonic_calls};

const mt_format mt_format_llama4 = {
    .name = "llama4", .signs = {{"<|header_start|>", "tools"}}, .read = &python, .write = pythonic_calls};

static const mt_layout lfm2_calls[] = {
    {.trigger = "<|tool_call_start|>", .open = "[", .close = "]<|tool_call_end|>", PYTHON_CALLS(", ")}};
const mt_format mt_format_lfm2 = {
    .name = "lfm2", .signs = {{"<|tool_call_start|>"}, {"<|tool_list_start|>"}}, .read = &python, .write = lfm2_calls};

static const mt_layout gemma3_calls[] = {
    {.trigger = "```tool_code", .open = "\n", .close = "\n```", PYTHON_CALLS("\n")}};
const mt_format mt_format_gemma3 = {.name = "gemma3", .signs = {{"tool_code"}}, .read = &python, .write = gemma3_calls};
