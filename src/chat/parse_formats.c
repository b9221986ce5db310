/* Formats that write calls in JSON or Python, and the names of all formats of calls. */

#include "chat/parse_table.h"

/* A call or a list of calls between two markers. */
#define BLOCK(name, open, close)                                                                                   \
    static const mt_parse_state name##_states[] = {                                                                \
        [TEXT] = CONTENT({open, OPEN, 0}, {close, TEXT, 0}),                                                       \
        [OPEN] = SKIP(TEXT, {"{", CALL, KEEP}, {"[", CALL, KEEP}, {close, TEXT, 0}),                               \
        [CALL] = CALLS(AFTER, 0, {close, TEXT, 0}),                                                                \
        [AFTER] = SKIP(TEXT, {open, OPEN, 0}, {close, TEXT, 0}, {"}", AFTER, 0}, {"]", AFTER, 0}, {";", OPEN, 0}), \
    };                                                                                                             \
    static const mt_parse_table name = {.states = name##_states, .start = TEXT}

BLOCK(tool_calls, "<tool_calls>", "</tool_calls>");
BLOCK(internlm, "<|action_start|><|plugin|>", "<|action_end|>");
BLOCK(gigachat, "<|function_call|>", "<|message_sep|>");
BLOCK(granite_20b, "<function_call>", "</function_call>");
BLOCK(cohere, "<|START_ACTION|>", "<|END_ACTION|>");

/* Nano v2 has its own tag; Nemotron 3 writes as Qwen3-Coder does and goes by that name. */
BLOCK(nemotron, "<TOOLCALL>", "</TOOLCALL>");

static const mt_parse_state granite_states[] = {
    [TEXT] = CONTENT({"<|tool_call|>", OPEN, 0}, {"<tool_call>", OPEN, 0}, {"</tool_call>", TEXT, 0}),
    [OPEN] = SKIP(TEXT, {"{", CALL, KEEP}, {"[", CALL, KEEP}, {"</tool_call>", TEXT, 0}),
    [CALL] = CALLS(AFTER, 0, {"</tool_call>", TEXT, 0}),
    [AFTER] = SKIP(TEXT, {"</tool_call>", TEXT, 0}, {"<tool_call>", OPEN, 0}, {"<|tool_call|>", OPEN, 0}),
};
static const mt_parse_table granite = {.states = granite_states, .start = TEXT};

/* Without a marker only the beginning of the answer can be a call, and only that of a declared tool. */
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

/* A list as the whole answer, or in a fence. */
enum { FENCED = MORE, CODE = MORE + 1, BEHIND_FENCE };
static const mt_parse_state xlam_states[] = {
    [START] = LEAD(TEXT, {"[", CALL, KEEP}, {"{", CALL, KEEP}, {"```json", FENCED, HOLD}),
    [TEXT] = CONTENT({"```json", FENCED, HOLD}),
    [CALL] = CALLS(TEXT, MT_PARSE_DECLARED),
    [FENCED] = CALLS(AFTER, MT_PARSE_DECLARED, {"```", TEXT, 0}),
    [AFTER] = SKIP(TEXT, {"```", TEXT, 0}),
};
static const mt_parse_table xlam = {.states = xlam_states, .start = START};

static const mt_parse_state phi_states[] = {
    [TEXT] = CONTENT({"functools", CALL, HOLD}),
    [CALL] = CALLS(TEXT, MT_PARSE_DECLARED),
};
static const mt_parse_table phi = {.states = phi_states, .start = TEXT};

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

/* V3 writes a type, the name and a fence, V3.1 the name and the arguments. */
#define DEEPSEEK_CALL                    \
    {                                    \
        "<｜tool▁call▁begin｜>", NAME, 0 \
    }
#define DEEPSEEK_ENDS(how)                \
    {"<｜tool▁call▁end｜>", OPEN, how},   \
    {                                     \
        "<｜tool▁calls▁end｜>", TEXT, how \
    }
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
static const mt_parse_table deepseek = {
    .states = deepseek_states,
    .start = TEXT,
    .breaks = "<｜tool▁calls▁begin｜>",
};

/* A list of calls of declared tools, or of any between markers, or calls in a fence. */
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

static const mt_parse_named tool_formats[] = {
    {"none", NULL},
    {"hermes", &mt_parse_xml},
    {"qwen3", &mt_parse_xml},
    {"qwen3_xml", &mt_parse_xml},
    {"step3p5", &mt_parse_xml},
    {"nemotron", &nemotron},
    {"seed_oss", &mt_parse_seed},
    {"glm4", &mt_parse_glm},
    {"glm47", &mt_parse_glm},
    {"minimax_m2", &mt_parse_minimax},
    {"minicpm5", &mt_parse_params},
    {"deepseek_v3", &deepseek},
    {"deepseek_v31", &deepseek},
    {"deepseek_v32", &mt_parse_dsml},
    {"kimi_k2", &mt_parse_kimi},
    {"llama3", &llama},
    {"llama4", &python},
    {"pythonic", &python},
    {"lfm2", &python},
    {"gemma3", &python},
    {"gemma4", &mt_parse_gemma},
    {"mistral", &mistral},
    {"harmony", &mt_parse_harmony},
    {"functionary", &mt_parse_functionary},
    {"functionary_v2", &mt_parse_functionary},
    {"functionary_v31", &mt_parse_functionary},
    {"granite", &granite},
    {"granite_20b", &granite_20b},
    {"xlam", &xlam},
    {"phi4_mini", &phi},
    {"internlm2", &internlm},
    {"gigachat", &gigachat},
    {"cohere", &cohere},
    {"tool_calls", &tool_calls},
};

bool mt_parse_find_tools(const char *name, const mt_parse_table **table)
{
    return mt_parse_find(tool_formats, MT_COUNT(tool_formats), name, table);
}

const char *mt_parse_tool_name(size_t i)
{
    return i < MT_COUNT(tool_formats) ? tool_formats[i].name : NULL;
}
