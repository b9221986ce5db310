/* Formats that write calls in tags, each argument by itself. format_words.h explains the tables. */
#include "chat/format_words.h"

/* A value ends at its closing tag only where the next argument or the end of the call follows, so the tag may also
   stand within a value. */
#define VALUE_STATES(value_close, lines, ...)                                                                       \
    [VALUE] = {.does = MT_DOES_VALUE, .flags = lines, .rules = {{value_close, CLOSED, 0}}}, [CLOSED] = {            \
                                                                                                .does =             \
                                                                                                    MT_DOES_CLOSED, \
                                                                                                .other = VALUE,     \
                                                                                                .flags = lines,     \
                                                                                                .rules = {          \
                                                                                                    __VA_ARGS__}}

/* Tags with arguments: Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5. JSON within the same tags: Hermes,
   Qwen2.5, Qwen3. Models trained on one of them sometimes write the other, so one table reads both. */
static const mt_parse_state xml_states[] = {
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
static const mt_parse_table xml = {.states = xml_states, .start = TEXT};

static const mt_layout hermes_calls[] = {{.trigger = "<tool_call>",
                                          .each = true,
                                          .before = "\n{\"name\": \"",
                                          .behind = "\", \"arguments\": ",
                                          .after = "}\n</tool_call>",
                                          .between = "\n"}};
const mt_format mt_format_hermes = {.name = "hermes", .signs = {{"<tool_call>"}}, .read = &xml, .write = hermes_calls};

const mt_format mt_format_qwen3 = {.name = "qwen3", .read = &xml, .write = hermes_calls};

static const mt_layout_tags qwen_tags = {"<parameter=", ">\n", "", "", "\n</parameter>\n"};
static const mt_layout qwen3_xml_calls[] = {{.trigger = "<tool_call>",
                                             .each = true,
                                             .before = "\n<function=",
                                             .behind = ">\n",
                                             .after = "</function>\n</tool_call>",
                                             .between = "\n",
                                             .arguments = MT_LAYOUT_TAGS,
                                             .tags = &qwen_tags}};
const mt_format mt_format_qwen3_xml = {
    .name = "qwen3_xml", .signs = {{"<function=", "<parameter="}}, .read = &xml, .write = qwen3_xml_calls};

const mt_format mt_format_step3p5 = {.name = "step3p5", .read = &xml, .write = qwen3_xml_calls};

static const mt_parse_state seed_states[] = {
    [TEXT] = CONTENT({"<seed:tool_call>", OPEN, 0}, {"<function=", NAME, 0}, STRAY("</seed:tool_call>"),
                     STRAY("</function>"), STRAY("<parameter="), STRAY("</parameter>")),
    [OPEN] = SKIP(TEXT, {"<function=", NAME, 0}, {"</seed:tool_call>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP({"<parameter=", KEY, 0}, {"</function>", OPEN, END}, {"</seed:tool_call>", TEXT, END}),
    [KEY] = KEYED({">", VALUE, 0}),
    VALUE_STATES("</parameter>", 0, {"<parameter=", KEY, 0}, {"</function>", OPEN, END},
                 {"</seed:tool_call>", TEXT, END}),
};
static const mt_parse_table seed = {.states = seed_states, .start = TEXT};

static const mt_layout_tags seed_tags = {"<parameter=", ">", "", "", "</parameter>\n"};
static const mt_layout seed_oss_calls[] = {{.trigger = "<seed:tool_call>",
                                            .each = true,
                                            .before = "\n<function=",
                                            .behind = ">\n",
                                            .after = "</function>\n</seed:tool_call>",
                                            .between = "\n",
                                            .arguments = MT_LAYOUT_TAGS,
                                            .tags = &seed_tags}};
const mt_format mt_format_seed_oss = {
    .name = "seed_oss", .signs = {{"<seed:tool_call>"}}, .read = &seed, .write = seed_oss_calls};

static const mt_parse_state glm_states[] = {
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
static const mt_parse_table glm = {.states = glm_states, .start = TEXT};

static const mt_layout_tags glm4_tags = {"<arg_key>", "</arg_key>\n<arg_value>", "", "", "</arg_value>\n"};
static const mt_layout glm4_calls[] = {{.trigger = "<tool_call>",
                                        .each = true,
                                        .behind = "\n",
                                        .after = "</tool_call>",
                                        .between = "\n",
                                        .arguments = MT_LAYOUT_TAGS,
                                        .tags = &glm4_tags}};
const mt_format mt_format_glm4 = {.name = "glm4", .signs = {{"<arg_key>"}}, .read = &glm, .write = glm4_calls};

static const mt_layout_tags glm47_tags = {"<arg_key>", "</arg_key><arg_value>", "", "", "</arg_value>"};
static const mt_layout glm47_calls[] = {{.trigger = "<tool_call>",
                                         .each = true,
                                         .after = "</tool_call>",
                                         .between = "",
                                         .arguments = MT_LAYOUT_TAGS,
                                         .tags = &glm47_tags}};
const mt_format mt_format_glm47 = {.name = "glm47", .read = &glm, .write = glm47_calls};

static const mt_parse_state minimax_states[] = {
    [TEXT] = CONTENT({"<minimax:tool_call>", OPEN, 0}, {"<invoke name=\"", NAME, 0}, STRAY("</minimax:tool_call>"),
                     STRAY("</invoke>"), STRAY("<parameter name=\""), STRAY("</parameter>")),
    [OPEN] = SKIP(TEXT, {"<invoke name=\"", NAME, 0}, {"</minimax:tool_call>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"\">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP({"<parameter name=\"", KEY, 0}, {"</invoke>", OPEN, END}, {"</minimax:tool_call>", TEXT, END}),
    [KEY] = KEYED({"\">", VALUE, 0}),
    VALUE_STATES("</parameter>", 0, {"<parameter name=\"", KEY, 0}, {"</invoke>", OPEN, END},
                 {"</minimax:tool_call>", TEXT, END}),
};
static const mt_parse_table minimax = {.states = minimax_states, .start = TEXT};

static const mt_layout_tags minimax_tags = {"<parameter name=\"", "\">", "", "", "</parameter>\n"};
static const mt_layout minimax_m2_calls[] = {{.trigger = "<minimax:tool_call>",
                                              .open = "\n",
                                              .before = "<invoke name=\"",
                                              .behind = "\">\n",
                                              .after = "</invoke>\n",
                                              .between = "",
                                              .close = "</minimax:tool_call>",
                                              .arguments = MT_LAYOUT_TAGS,
                                              .tags = &minimax_tags}};
const mt_format mt_format_minimax_m2 = {
    .name = "minimax_m2", .signs = {{"<minimax:tool_call>"}}, .read = &minimax, .write = minimax_m2_calls};

/* The attribute "string" says whether the value is a string. V3.2 and V4 have different names for the block. */
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
static const mt_parse_state dsml_states[] = {
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
static const mt_parse_table dsml = {.states = dsml_states, .start = TEXT, .breaks = "<｜DSML｜"};

static const mt_layout_tags dsml_tags = {"<｜DSML｜parameter name=\"", "\" string=\"", "true\">", "false\">",
                                         "</｜DSML｜parameter>\n"};
static const mt_layout deepseek_v32_calls[] = {{.trigger = "<｜DSML｜function_calls>",
                                                .open = "\n",
                                                .before = "<｜DSML｜invoke name=\"",
                                                .behind = "\">\n",
                                                .after = "</｜DSML｜invoke>\n",
                                                .between = "",
                                                .close = "</｜DSML｜function_calls>",
                                                .arguments = MT_LAYOUT_TAGS,
                                                .tags = &dsml_tags}};
const mt_format mt_format_deepseek_v32 = {
    .name = "deepseek_v32", .signs = {{"｜DSML｜"}}, .read = &dsml, .write = deepseek_v32_calls};

/* MiniCPM 5. */
static const mt_parse_state params_states[] = {
    [TEXT] = CONTENT({"<function name=\"", NAME, 0}, STRAY("</function>"), STRAY("<param name=\""), STRAY("</param>")),
    [NAME] = NAMED(TEXT, {"\">", BETWEEN, BEGIN}),
    [BETWEEN] = DROP({"<param name=\"", KEY, 0}, {"</function>", TEXT, END}),
    [KEY] = KEYED({"\">", VALUE, 0}),
    VALUE_STATES("</param>", 0, {"<param name=\"", KEY, 0}, {"</function>", TEXT, END}),
};
static const mt_parse_table params = {.states = params_states, .start = TEXT};

static const mt_layout_tags minicpm_tags = {"<param name=\"", "\">", "", "", "</param>"};
static const mt_layout minicpm5_calls[] = {{.trigger = "<function name=\"",
                                            .each = true,
                                            .behind = "\">",
                                            .after = "</function>",
                                            .between = "\n",
                                            .arguments = MT_LAYOUT_TAGS,
                                            .tags = &minicpm_tags}};
const mt_format mt_format_minicpm5 = {
    .name = "minicpm5", .signs = {{"<function name="}}, .read = &params, .write = minicpm5_calls};

static const mt_parse_state gemma_states[] = {
    [TEXT] = CONTENT({"<|tool_call>", OPEN, 0}, STRAY("<tool_call|>"), STRAY("<|\"|>")),
    [OPEN] = SKIP(NAME, {"call:", NAME, 0}, {"<tool_call|>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"{", ARGS, BEGIN | KEEP}, {"<tool_call|>", TEXT, BEGIN | END}),
    [ARGS] = {.does = MT_DOES_OBJECT, .done = AFTER, .rules = {{"<|\"|>", STRING, 0}, {"<tool_call|>", TEXT, END}}},
    [STRING] = {.does = MT_DOES_QUOTED, .rules = {{"<|\"|>", ARGS, 0}}},
    [AFTER] = SKIP(TEXT, {"<tool_call|>", TEXT, 0}, {"<|tool_call>", OPEN, 0}, {"}", AFTER, 0}),
};
static const mt_parse_table gemma = {.states = gemma_states, .start = TEXT, .breaks = "<|tool_call>"};

static const mt_layout gemma4_calls[] = {{.trigger = "<|tool_call>",
                                          .each = true,
                                          .before = "call:",
                                          .after = "<tool_call|>",
                                          .between = "",
                                          .notation = MT_NOTATION_GEMMA}};
const mt_format mt_format_gemma4 = {
    .name = "gemma4", .signs = {{"<|tool_call>", "call:"}}, .read = &gemma, .write = gemma4_calls};
