/* Formats that write calls as JSON. format_words.h explains the tables. */

#include "chat/format_words.h"

#define JSON_CALL(arguments) .before = "{\"name\": \"", .behind = "\", \"" arguments "\": ", .after = "}"
#define JSON_LIST .open = "[", .between = ", ", .close = "]", JSON_CALL("arguments")

/* A format with a call, or a list of calls, between two markers. */
#define BLOCK(name, open, close)                                                                                   \
    static const mt_parse_state name##_states[] = {                                                                \
        [TEXT] = CONTENT({open, OPEN, 0}, {close, TEXT, 0}),                                                       \
        [OPEN] = SKIP(TEXT, {"{", CALL, KEEP}, {"[", CALL, KEEP}, {close, TEXT, 0}),                               \
        [CALL] = CALLS(AFTER, 0, {close, TEXT, 0}),                                                                \
        [AFTER] = SKIP(TEXT, {open, OPEN, 0}, {close, TEXT, 0}, {"}", AFTER, 0}, {"]", AFTER, 0}, {";", OPEN, 0}), \
    };                                                                                                             \
    static const mt_parse_table name = {.states = name##_states, .start = TEXT}

BLOCK(tool_calls, "<tool_calls>", "</tool_calls>");
static const mt_layout tool_calls_calls[] = {
    {.trigger = "<tool_calls>", .open = "[", JSON_CALL("arguments"), .between = ", ", .close = "]</tool_calls>"}};
FORMAT(tool_calls, tool_calls, tool_calls_calls, {"<tool_calls>"});

BLOCK(internlm, "<|action_start|><|plugin|>", "<|action_end|>");
static const mt_layout internlm2_calls[] = {
    {.trigger = "<|action_start|>", .open = "<|plugin|>", JSON_CALL("parameters"), .close = "<|action_end|>"}};
FORMAT(internlm2, internlm, internlm2_calls, {"<|action_start|>"});

BLOCK(gigachat, "<|function_call|>", "<|message_sep|>");
static const mt_layout gigachat_calls[] = {{.trigger = "<|function_call|>", JSON_CALL("arguments")}};
FORMAT(gigachat, gigachat, gigachat_calls, {"<|function_call|>"});

BLOCK(granite_20b, "<function_call>", "</function_call>");
static const mt_layout granite_20b_calls[] = {
    {.trigger = "<function_call>", .each = true, .last = true, .between = "\n", JSON_CALL("arguments")}};
FORMAT(granite_20b, granite_20b, granite_20b_calls, {"<function_call>"});

BLOCK(cohere, "<|START_ACTION|>", "<|END_ACTION|>");
static const mt_layout cohere_calls[] = {{.trigger = "<|START_ACTION|>",
                                          .open = "[\n    ",
                                          .before = "{\"tool_call_id\": \"",
                                          .number_first = "\", \"tool_name\": \"",
                                          .behind = "\", \"parameters\": ",
                                          .after = "}",
                                          .between = ",\n    ",
                                          .close = "\n]<|END_ACTION|>"}};
FORMAT(cohere, cohere, cohere_calls, {"<|START_ACTION|>"});

/* Nemotron Nano v2 has its own tag; Nemotron 3 writes as Qwen3-Coder does and is detected as that. */

BLOCK(nemotron, "<TOOLCALL>", "</TOOLCALL>");
static const mt_layout nemotron_calls[] = {
    {.trigger = "<TOOLCALL>", .open = "[", JSON_CALL("arguments"), .between = ", ", .close = "]</TOOLCALL>"}};
FORMAT(nemotron, nemotron, nemotron_calls, {"<TOOLCALL>"});

static const mt_parse_state granite_states[] = {
    [TEXT] = CONTENT({"<|tool_call|>", OPEN, 0}, {"<tool_call>", OPEN, 0}, {"</tool_call>", TEXT, 0}),
    [OPEN] = SKIP(TEXT, {"{", CALL, KEEP}, {"[", CALL, KEEP}, {"</tool_call>", TEXT, 0}),
    [CALL] = CALLS(AFTER, 0, {"</tool_call>", TEXT, 0}),
    [AFTER] = SKIP(TEXT, {"</tool_call>", TEXT, 0}, {"<tool_call>", OPEN, 0}, {"<|tool_call|>", OPEN, 0}),
};
static const mt_parse_table granite = {.states = granite_states, .start = TEXT};
static const mt_layout granite_calls[] = {{.needs = "<|tool_call|>", .trigger = "<|tool_call|>", JSON_LIST},
                                          {.trigger = "<tool_call>", JSON_LIST}};
FORMAT(granite, granite, granite_calls, {"<|tool_call|>"});

/* Without a marker, only the beginning of the answer can be a call, and only one of a declared tool. */
static const mt_parse_state llama_states[] = {
    [START] = LEAD(TEXT, {"{", MORE, KEEP}, {"<|python_tag|>", OPEN, 0}, {"<function=", NAME, 0}),
    [TEXT] = CONTENT({"<|python_tag|>", OPEN, 0}, {"<function=", NAME, 0}, {"</function>", TEXT, 0}),
    [OPEN] = SKIP(TEXT, {"{", CALL, KEEP}, {"[", CALL, KEEP}),
    [CALL] = CALLS(AFTER, 0, {"<|python_tag|>", OPEN, 0}),
    [MORE] = CALLS(AFTER, MT_PARSE_DECLARED, {"<|python_tag|>", OPEN, 0}),
    [NAME] = NAMED(TEXT, {">", ARGS, BEGIN}),
    [ARGS] = ARGUMENTS(AFTER, {"</function>", AFTER, END}, {"<function=", NAME, END}),
    [AFTER] = SKIP(TEXT, {";", OPEN, 0}, {"{", MORE, KEEP}, {"<|python_tag|>", OPEN, 0}, {"<function=", NAME, 0},
                   {"</function>", AFTER, 0}, {"}", AFTER, 0}),
};
static const mt_parse_table llama = {.states = llama_states, .start = START};
static const mt_layout llama3_calls[] = {{.trigger = "", JSON_CALL("parameters"), .between = "; "}};
FORMAT(llama3, llama, llama3_calls, {"<|python_tag|>"}, {"<|start_header_id|>", "\"parameters\": "});

/* A list of calls is the whole answer, or stands in a code fence. */
enum { FENCED = MORE };
static const mt_parse_state xlam_states[] = {
    [START] = LEAD(TEXT, {"[", CALL, KEEP}, {"{", CALL, KEEP}, {"```json", FENCED, HOLD}),
    [TEXT] = CONTENT({"```json", FENCED, HOLD}),
    [CALL] = CALLS(TEXT, MT_PARSE_DECLARED),
    [FENCED] = CALLS(AFTER, MT_PARSE_DECLARED, {"```", TEXT, 0}),
    [AFTER] = SKIP(TEXT, {"```", TEXT, 0}),
};
static const mt_parse_table xlam = {.states = xlam_states, .start = START};
static const mt_layout xlam_calls[] = {{.trigger = "", JSON_LIST}};
FORMAT(xlam, xlam, xlam_calls, {"tool_calls", "\"arguments\": {\"arg"});

static const mt_parse_state phi_states[] = {
    [TEXT] = CONTENT({"functools", CALL, HOLD}),
    [CALL] = CALLS(TEXT, MT_PARSE_DECLARED),
};
static const mt_parse_table phi = {.states = phi_states, .start = TEXT};
static const mt_layout phi4_mini_calls[] = {
    {.trigger = "functools[", .between = ", ", .close = "]", JSON_CALL("arguments")}};
FORMAT(phi4_mini, phi, phi4_mini_calls, {"functools["});

static const mt_parse_state mistral_states[] = {
    [TEXT] = CONTENT({"[TOOL_CALLS]", OPEN, 0}, STRAY("[CALL_ID]"), STRAY("[ARGS]")),
    [OPEN] = SKIP(NAME, {"[", CALL, KEEP}, {"{", CALL, KEEP}),
    [CALL] = CALLS(AFTER, 0, {"[TOOL_CALLS]", OPEN, 0}),
    [NAME] = NAMED(TEXT, {"[CALL_ID]", ID, 0}, {"[ARGS]", ARGS, BEGIN}, {"{", ARGS, BEGIN | KEEP}),
    [ID] = {.does = MT_DOES_ID, .rules = {{"[ARGS]", ARGS, BEGIN}, {"{", ARGS, BEGIN | KEEP}}},
    [ARGS] = ARGUMENTS(AFTER, {"[TOOL_CALLS]", OPEN, END}),
    [AFTER] = SKIP(TEXT, {"[TOOL_CALLS]", OPEN, 0}, {"}", AFTER, 0}, {"]", AFTER, 0}),
};
static const mt_parse_table mistral = {.states = mistral_states, .start = TEXT};
static const mt_layout mistral_calls[] = {
    {.needs = "[ARGS]", .trigger = "[TOOL_CALLS]", .each = true, .behind = "[ARGS]", .between = ""},
    {.trigger = "[TOOL_CALLS]", .open = " [", JSON_CALL("arguments"), .between = ", ", .close = "]"}};
FORMAT(mistral, mistral, mistral_calls, {"[TOOL_CALLS]"});

/* V3 writes a type, the name and a code fence; V3.1 the name and the arguments. */
#define DEEPSEEK_CALL RULE("<｜tool▁call▁begin｜>", NAME, 0)
#define DEEPSEEK_ENDS(how) RULE("<｜tool▁call▁end｜>", OPEN, how), RULE("<｜tool▁calls▁end｜>", TEXT, how)
static const mt_parse_state deepseek_states[] = {
    [TEXT] = CONTENT({"<｜tool▁calls▁begin｜>", OPEN, 0}, DEEPSEEK_CALL, STRAY("<｜tool▁calls▁end｜>"),
                     STRAY("<｜tool▁call▁end｜>"), STRAY("<｜tool▁sep｜>")),
    [OPEN] = SKIP(TEXT, DEEPSEEK_CALL, {"<｜tool▁calls▁end｜>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"<｜tool▁sep｜>", CALL, 0}, DEEPSEEK_ENDS(BEGIN | END)),
    [CALL] = SKIP(MORE, {"{", ARGS, BEGIN | KEEP}, DEEPSEEK_ENDS(BEGIN | END)),
    [MORE] = NAMED(TEXT, {"\n", BETWEEN, BEGIN}, DEEPSEEK_ENDS(BEGIN | END)),
    [BETWEEN] = SKIP(ARGS, {"```json", ARGS, 0}, {"{", ARGS, KEEP}, DEEPSEEK_ENDS(END)),
    [ARGS] = ARGUMENTS(AFTER, DEEPSEEK_ENDS(END), {"\n```", AFTER, END}),
    [AFTER] = DROP(DEEPSEEK_ENDS(0), DEEPSEEK_CALL),
};
static const mt_parse_table deepseek = {.states = deepseek_states, .start = TEXT, .breaks = "<｜tool▁calls▁begin｜>"};
static const mt_layout deepseek_v3_calls[] = {{.trigger = "<｜tool▁calls▁begin｜>",
                                               .before = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                                               .behind = "\n```json\n",
                                               .after = "\n```<｜tool▁call▁end｜>",
                                               .between = "\n",
                                               .close = "<｜tool▁calls▁end｜>"}};
FORMAT(deepseek_v3, deepseek, deepseek_v3_calls, {"tool▁calls▁begin", "```json"});

static const mt_layout deepseek_v31_calls[] = {{.trigger = "<｜tool▁calls▁begin｜>",
                                                .before = "<｜tool▁call▁begin｜>",
                                                .behind = "<｜tool▁sep｜>",
                                                .after = "<｜tool▁call▁end｜>",
                                                .between = "",
                                                .close = "<｜tool▁calls▁end｜>"}};
FORMAT(deepseek_v31, deepseek, deepseek_v31_calls, {"tool▁calls▁begin"});
