/* Formats that write calls as Python. format_words.h explains the tables. */
#include "chat/format_words.h"

#define PYTHON_CALLS(separated) \
    .behind = "(", .keywords = true, .notation = MT_NOTATION_PYTHON, .after = ")", .between = separated

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
FORMAT(pythonic, python, pythonic_calls, {"func_name1("});

FORMAT(llama4, python, pythonic_calls, {"<|header_start|>", "tools"});

static const mt_layout lfm2_calls[] = {
    {.trigger = "<|tool_call_start|>", .open = "[", .close = "]<|tool_call_end|>", PYTHON_CALLS(", ")}};
FORMAT(lfm2, python, lfm2_calls, {"<|tool_call_start|>"}, {"<|tool_list_start|>"});

static const mt_layout gemma3_calls[] = {
    {.trigger = "```tool_code", .open = "\n", .close = "\n```", PYTHON_CALLS("\n")}};
FORMAT(gemma3, python, gemma3_calls, {"tool_code"});
