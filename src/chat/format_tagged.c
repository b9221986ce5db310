/* Formats that write calls in tags, each argument by itself. format_words.h explains the tables. */
#include "chat/format_words.h"

/* A value ends at its closing tag only where the next argument or the end of the call follows, so the tag may also
   stand within a value. */
#define VALUE_STATES(value_close, lines, ...) \
    [VALUE] = ROW(VALUE, 0, 0, lines, {value_close, CLOSED, 0}), [CLOSED] = ROW(CLOSED, 0, VALUE, 0, __VA_ARGS__)

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
FORMAT(hermes, xml, hermes_calls, {"<tool_call>"});

FORMAT(qwen3, xml, hermes_calls, {0});

/* Layouts of calls that are each in a block of their own. */
#define FUNCTION_BLOCK .each = true, .before = "\n<function=", .behind = ">\n", .between = "\n"

static const mt_layout_tags qwen_tags = {"<parameter=", ">\n", "", "", "\n</parameter>\n"};
static const mt_layout qwen3_xml_calls[] = {
    {.trigger = "<tool_call>", FUNCTION_BLOCK, .after = "</function>\n</tool_call>", .tags = &qwen_tags}};
FORMAT(qwen3_xml, xml, qwen3_xml_calls, {"<function=", "<parameter="});

FORMAT(step3p5, xml, qwen3_xml_calls, {0});

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
static const mt_layout seed_oss_calls[] = {
    {.trigger = "<seed:tool_call>", FUNCTION_BLOCK, .after = "</function>\n</seed:tool_call>", .tags = &seed_tags}};
FORMAT(seed_oss, seed, seed_oss_calls, {"<seed:tool_call>"});

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
                                        .tags = &glm4_tags}};
FORMAT(glm4, glm, glm4_calls, {"<arg_key>"});

static const mt_layout_tags glm47_tags = {"<arg_key>", "</arg_key><arg_value>", "", "", "</arg_value>"};
static const mt_layout glm47_calls[] = {
    {.trigger = "<tool_call>", .each = true, .after = "</tool_call>", .between = "", .tags = &glm47_tags}};
FORMAT(glm47, glm, glm47_calls, {0});

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
                                              .tags = &minimax_tags}};
FORMAT(minimax_m2, minimax, minimax_m2_calls, {"<minimax:tool_call>"});

/* The attribute "string" says whether the value is a string. V3.2 and V4 have different names for the block. */
#define DSML_END                                                                        \
    RULE("</｜DSML｜invoke>", OPEN, END), RULE("</｜DSML｜function_calls>", TEXT, END), \
        RULE("</｜DSML｜tool_calls>", TEXT, END)
#define DSML_KEY RULE("<｜DSML｜parameter name=\"", KEY, 0)
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
                                                .tags = &dsml_tags}};
FORMAT(deepseek_v32, dsml, deepseek_v32_calls, {"｜DSML｜"});

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
                                            .tags = &minicpm_tags}};
FORMAT(minicpm5, params, minicpm5_calls, {"<function name="});

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
FORMAT(gemma4, gemma, gemma4_calls, {"<|tool_call>", "call:"});
