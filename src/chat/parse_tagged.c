/* Formats that write calls in tags, arguments one by one. */
#include "chat/parse_table.h"

/* A value ends at its closing tag when the next argument or the end of the call follows; so the tag may also stand
   within a value. */
#define VALUE_STATES(value_close, lines, ...)                                                                       \
    [VALUE] = {.does = MT_DOES_VALUE, .flags = lines, .rules = {{value_close, CLOSED, 0}}}, [CLOSED] = {            \
                                                                                                .does =             \
                                                                                                    MT_DOES_CLOSED, \
                                                                                                .other = VALUE,     \
                                                                                                .flags = lines,     \
                                                                                                .rules = {          \
                                                                                                    __VA_ARGS__}}

/* Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5; JSON between the same tags: Hermes, Qwen2.5, Qwen3. Models
   trained on one of them write the other now and then, so they are one. */
static const mt_parse_state xml[] = {
    [TEXT] = CONTENT({"<tool_call>", OPEN, 0}, {"<function=", NAME, 0}, STRAY("</tool_call>"), STRAY("</function>"),
                     STRAY("<parameter="), STRAY("</parameter>")),
    [OPEN] = SKIP(TEXT, {"{", CALL, KEEP}, {"[", CALL, KEEP}, {"<function=", NAME, 0}, {"</tool_call>", TEXT, 0}),
    [CALL] = CALLS(AFTER, 0, {"</tool_call>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {">", BETWEEN, BEGIN}),
    [BETWEEN] =
        DROP({"<parameter=", KEY, 0}, {"{", ARGS, KEEP}, {"</function>", AFTER, END}, {"</tool_call>", TEXT, END}),
    [KEY] = KEYED({">", VALUE, 0}),
    VALUE_STATES("</parameter>", MT_PARSE_LINES, {"<parameter=", KEY, 0}, {"</function>", AFTER, END},
                 {"</tool_call>", TEXT, END}),
    [ARGS] = ARGUMENTS(AFTER, {"</function>", AFTER, END}, {"</tool_call>", TEXT, END}),
    [AFTER] = SKIP(TEXT, {"</tool_call>", TEXT, 0}, {"<tool_call>", OPEN, 0}, {"<function=", NAME, 0},
                   {"</function>", AFTER, 0}, {"}", AFTER, 0}, {"]", AFTER, 0}),
};
const mt_parse_table mt_parse_xml = {.states = xml, .start = TEXT};

static const mt_parse_state seed[] = {
    [TEXT] = CONTENT({"<seed:tool_call>", OPEN, 0}, {"<function=", NAME, 0}, STRAY("</seed:tool_call>"),
                     STRAY("</function>"), STRAY("<parameter="), STRAY("</parameter>")),
    [OPEN] = SKIP(TEXT, {"<function=", NAME, 0}, {"</seed:tool_call>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP({"<parameter=", KEY, 0}, {"</function>", OPEN, END}, {"</seed:tool_call>", TEXT, END}),
    [KEY] = KEYED({">", VALUE, 0}),
    VALUE_STATES("</parameter>", 0, {"<parameter=", KEY, 0}, {"</function>", OPEN, END},
                 {"</seed:tool_call>", TEXT, END}),
};
const mt_parse_table mt_parse_seed = {.states = seed, .start = TEXT};

static const mt_parse_state glm[] = {
    [TEXT] = CONTENT({"<tool_call>", OPEN, 0}, STRAY("</tool_call>"), STRAY("<arg_key>"), STRAY("</arg_key>"),
                     STRAY("<arg_value>"), STRAY("</arg_value>")),
    [OPEN] = SKIP(NAME, {"{", CALL, KEEP}, {"</tool_call>", TEXT, 0}),
    [CALL] = CALLS(AFTER, 0, {"</tool_call>", TEXT, 0}),
    [NAME] =
        NAMED(TEXT, {"\n", BETWEEN, BEGIN}, {"<arg_key>", BETWEEN, BEGIN | KEEP}, {"</tool_call>", TEXT, BEGIN | END}),
    [BETWEEN] = DROP({"<arg_key>", KEY, 0}, {"</tool_call>", TEXT, END}, {"<arg_value>", VALUE, 0}),
    [KEY] = KEYED({"</arg_key>", BETWEEN, 0}),
    VALUE_STATES("</arg_value>", 0, {"<arg_key>", KEY, 0}, {"</tool_call>", TEXT, END}),
    [AFTER] = SKIP(TEXT, {"</tool_call>", TEXT, 0}, {"<tool_call>", OPEN, 0}),
};
const mt_parse_table mt_parse_glm = {.states = glm, .start = TEXT};

static const mt_parse_state minimax[] = {
    [TEXT] = CONTENT({"<minimax:tool_call>", OPEN, 0}, {"<invoke name=\"", NAME, 0}, STRAY("</minimax:tool_call>"),
                     STRAY("</invoke>"), STRAY("<parameter name=\""), STRAY("</parameter>")),
    [OPEN] = SKIP(TEXT, {"<invoke name=\"", NAME, 0}, {"</minimax:tool_call>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"\">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP({"<parameter name=\"", KEY, 0}, {"</invoke>", OPEN, END}, {"</minimax:tool_call>", TEXT, END}),
    [KEY] = KEYED({"\">", VALUE, 0}),
    VALUE_STATES("</parameter>", 0, {"<parameter name=\"", KEY, 0}, {"</invoke>", OPEN, END},
                 {"</minimax:tool_call>", TEXT, END}),
};
const mt_parse_table mt_parse_minimax = {.states = minimax, .start = TEXT};

/* The attribute says what the value is; V3.2 and V4 name the block differently. */
#define DSML_END                                                                \
    {"</｜DSML｜invoke>", OPEN, END}, {"</｜DSML｜function_calls>", TEXT, END}, \
    {                                                                           \
        "</｜DSML｜tool_calls>", TEXT, END                                      \
    }
#define DSML_KEY                             \
    {                                        \
        "<｜DSML｜parameter name=\"", KEY, 0 \
    }
#define DSML_STRAY                                                                                  \
    STRAY("</｜DSML｜function_calls>"), STRAY("</｜DSML｜tool_calls>"), STRAY("</｜DSML｜invoke>"), \
        STRAY("<｜DSML｜parameter name=\""), STRAY("</｜DSML｜parameter>")
static const mt_parse_state dsml[] = {
    [TEXT] = CONTENT({"<｜DSML｜function_calls>", OPEN, 0}, {"<｜DSML｜tool_calls>", OPEN, 0},
                     {"<｜DSML｜invoke name=\"", NAME, 0}, DSML_STRAY),
    [OPEN] = SKIP(TEXT, {"<｜DSML｜invoke name=\"", NAME, 0}, {"</｜DSML｜function_calls>", TEXT, 0},
                  {"</｜DSML｜tool_calls>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"\">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP(DSML_KEY, DSML_END),
    [KEY] = KEYED({"\" string=\"true\">", STRING, 0}, {"\" string=\"false\">", VALUE, 0}, {"\">", VALUE, 0}),
    [STRING] = {.does = MT_DOES_STRING, .rules = {{"</｜DSML｜parameter>", MORE, 0}}},
    [MORE] = {.does = MT_DOES_CLOSED, .other = STRING, .rules = {DSML_KEY, DSML_END}},
    VALUE_STATES("</｜DSML｜parameter>", 0, DSML_KEY, DSML_END),
};
const mt_parse_table mt_parse_dsml = {.states = dsml, .start = TEXT, .breaks = "<｜DSML｜"};

/* MiniCPM 5. */
static const mt_parse_state params[] = {
    [TEXT] = CONTENT({"<function name=\"", NAME, 0}, STRAY("</function>"), STRAY("<param name=\""), STRAY("</param>")),
    [NAME] = NAMED(TEXT, {"\">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP({"<param name=\"", KEY, 0}, {"</function>", TEXT, END}),
    [KEY] = KEYED({"\">", VALUE, 0}),
    VALUE_STATES("</param>", 0, {"<param name=\"", KEY, 0}, {"</function>", TEXT, END}),
};
const mt_parse_table mt_parse_params = {.states = params, .start = TEXT};

static const mt_parse_state gemma[] = {
    [TEXT] = CONTENT({"<|tool_call>", OPEN, 0}, STRAY("<tool_call|>"), STRAY("<|\"|>")),
    [OPEN] = SKIP(NAME, {"call:", NAME, 0}, {"<tool_call|>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"{", ARGS, BEGIN | KEEP}, {"<tool_call|>", TEXT, BEGIN | END}),
    [ARGS] = {.does = MT_DOES_OBJECT, .done = AFTER, .rules = {{"<|\"|>", STRING, 0}, {"<tool_call|>", TEXT, END}}},
    [STRING] = {.does = MT_DOES_QUOTED, .rules = {{"<|\"|>", ARGS, 0}}},
    [AFTER] = SKIP(TEXT, {"<tool_call|>", TEXT, 0}, {"<|tool_call>", OPEN, 0}, {"}", AFTER, 0}),
};
const mt_parse_table mt_parse_gemma = {.states = gemma, .start = TEXT, .breaks = "<|tool_call>"};
