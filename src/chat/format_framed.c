/* Formats in which headers say what follows: a channel, or a recipient. Also Kimi's, whose header of a call has name
   and id in one. format_words.h explains the tables. */
#include <string.h>

#include "chat/format_words.h"

/* Sets the call's name from a recipient, without the prefix "functions.". */
static void set_name(mt_parser *p, const char *text, size_t len)
{
    static const char prefix[] = "functions.";
    const size_t skip = sizeof(prefix) - 1;
    const bool prefixed = len > skip && memcmp(text, prefix, skip) == 0;

    mt_parse_word_set(&p->name, prefixed ? text + skip : text, prefixed ? len - skip : len);
}

static mt_parse_route harmony_route(mt_parser *p, const char *header, const mt_parse_state *state)
{
    static const char analysis[] = "<|channel|>analysis";
    const char *to = strstr(header, "to=");

    (void)state;
    if (to && json_array_size(p->tools) > 0) {
        set_name(p, to + 3, strcspn(to + 3, " \n<"));
        mt_parse_word_clear(&p->id);
        return MT_ROUTE_CALL;
    }
    return strstr(header, analysis) && p->reasons ? MT_ROUTE_REASONING : MT_ROUTE_CONTENT;
}

/* A message is a header, <|message|>, text, and one of several end markers, which may be missing. */
enum { IN_HEADER = MORE, IN_REASONING, IN_CONTENT };
#define HARMONY_ENDS(how)                                                                      \
    RULE("<|call|>", START, how), RULE("<|end|>", START, how), RULE("<|return|>", START, how), \
        RULE("<|start|>", IN_HEADER, how)

static const mt_parse_state harmony[] = {
    [START] =
        LEAD(IN_CONTENT, {"<|channel|>", IN_HEADER, KEEP}, {"<|start|>", IN_HEADER, 0}, {"to=", IN_HEADER, KEEP},
             {"<|message|>", IN_CONTENT, 0}, {"<|call|>", START, 0}, {"<|end|>", START, 0}, {"<|return|>", START, 0}),
    [IN_HEADER] = HEADER(IN_CONTENT, 0, {"<|message|>", START, ROUTE}, {"<|start|>", IN_HEADER, 0}),
    [IN_REASONING] = REASONING(HARMONY_ENDS(0), {"<|channel|>", IN_HEADER, KEEP}),
    [IN_CONTENT] = CONTENT(HARMONY_ENDS(0), {"<|channel|>", IN_HEADER, KEEP}, {"<|message|>", IN_CONTENT, 0},
                           {"<|constrain|>", IN_CONTENT, 0}),
    [ARGS] = ARGUMENTS(AFTER, HARMONY_ENDS(END)),
    [AFTER] = DROP(HARMONY_ENDS(0)),
};
const mt_parse_table mt_parse_harmony = {
    .states = harmony,
    .start = START,
    .opened = IN_REASONING,
    .answer = START,
    .framed = true,
    .route = harmony_route,
    .routes = {[MT_ROUTE_CONTENT] = IN_CONTENT,
               [MT_ROUTE_REASONING] = IN_REASONING,
               [MT_ROUTE_CALL] = ARGS,
               [MT_ROUTE_REJECT] = IN_CONTENT},
};

static const mt_layout harmony_calls[] = {{.content = "<|channel|>final<|message|>",
                                           .trigger = "<|channel|>",
                                           .before = "commentary to=functions.",
                                           .behind = " <|constrain|>json<|message|>"}};
FORMAT(harmony, mt_parse_harmony, harmony_calls, {"<|channel|>", "<|message|>"});

static mt_parse_route functionary_route(mt_parser *p, const char *header, const mt_parse_state *state)
{
    if (strcmp(header, "all") == 0)
        return MT_ROUTE_CONTENT;
    set_name(p, header, strlen(header));
    mt_parse_word_clear(&p->id);
    if (p->name.len == 0 || json_array_size(p->tools) == 0 ||
        ((state->flags & MT_PARSE_DECLARED) && !mt_parse_tool(p, p->name.text)))
        return MT_ROUTE_REJECT;
    return MT_ROUTE_CALL;
}

/* v2: <|from|>assistant\n<|recipient|>NAME\n<|content|>TEXT; v3.2: >>>NAME\nTEXT; v3.1: <function=NAME>TEXT</function>.
   In the first two the prompt ends before NAME. */
enum { SENDER = MORE, RECIPIENT, BEFORE_CONTENT, BEFORE_ARGS };
static const mt_parse_state functionary[] = {
    [START] = HEADER(TEXT, MT_PARSE_DECLARED | MT_PARSE_WORD, {"\n", START, ROUTE}, {"<|from|>", SENDER, 0},
                     {"<|recipient|>", RECIPIENT, 0}, {">>>", RECIPIENT, HOLD}, {"<function=", NAME, 0}),
    [TEXT] = CONTENT({"<|from|>", SENDER, 0}, {"<|recipient|>", RECIPIENT, 0}, {">>>", RECIPIENT, HOLD},
                     {"<function=", NAME, 0}, {"</function>", TEXT, 0}, {"<|stop|>", TEXT, 0}),
    [SENDER] = DROP({"<|recipient|>", RECIPIENT, 0}),
    [RECIPIENT] = HEADER(TEXT, MT_PARSE_WORD, {"\n", START, ROUTE}),
    [BEFORE_CONTENT] = SKIP(TEXT, {"<|content|>", TEXT, 0}),
    [BEFORE_ARGS] = SKIP(ARGS, {"<|content|>", ARGS, 0}),
    [NAME] = NAMED(TEXT, {">", ARGS, BEGIN}),
    [ARGS] = ARGUMENTS(AFTER, {"</function>", AFTER, END}, {"<|from|>", SENDER, END}, {">>>", RECIPIENT, END},
                       {"<|stop|>", TEXT, END}),
    [AFTER] = SKIP(TEXT, {"</function>", AFTER, 0}, {"<|from|>", SENDER, 0}, {">>>", RECIPIENT, HOLD},
                   {"<|recipient|>", RECIPIENT, 0}, {"<function=", NAME, 0}, {"<|stop|>", TEXT, 0}),
};
static const mt_parse_table functionary_table = {
    .states = functionary,
    .start = START,
    .framed = true,
    .route = functionary_route,
    .routes = {[MT_ROUTE_CONTENT] = BEFORE_CONTENT,
               [MT_ROUTE_REASONING] = TEXT,
               [MT_ROUTE_CALL] = BEFORE_ARGS,
               [MT_ROUTE_REJECT] = TEXT},
};

static const mt_layout functionary_calls[] = {{.content = "all\n", .trigger = "", .behind = "\n", .between = ">>>"}};
FORMAT(functionary, functionary_table, functionary_calls, {">>>", "<|start_header_id|>"});

static const mt_layout functionary_v2_calls[] = {{.content = "all\n<|content|>",
                                                  .trigger = "",
                                                  .behind = "\n<|content|>",
                                                  .between = "\n<|from|>assistant\n<|recipient|>"}};
FORMAT(functionary_v2, functionary_table, functionary_v2_calls, {"<|recipient|>"});

static const mt_layout functionary_v31_calls[] = {
    {.trigger = "<function=", .each = true, .behind = ">", .after = "</function>", .between = ""}};
FORMAT(functionary_v31, functionary_table, functionary_v31_calls, {"<function=", "<|start_header_id|>"});

/* Kimi writes functions.NAME:INDEX, which is also the call's id and has to be sent back unchanged. */
static void kimi_named(mt_parser *p)
{
    const mt_parse_word whole = p->name;
    const char *colon = strrchr(whole.text, ':');

    if (!colon || colon[1] == '\0' || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
        return;
    set_name(p, whole.text, (size_t)(colon - whole.text));
    p->id = whole;
}

#define KIMI_ENDS(how) RULE("<|tool_call_end|>", OPEN, how), RULE("<|tool_calls_section_end|>", TEXT, how)
static const mt_parse_state kimi[] = {
    [TEXT] =
        CONTENT({"<|tool_calls_section_begin|>", OPEN, 0}, {"<|tool_call_begin|>", NAME, 0},
                STRAY("<|tool_calls_section_end|>"), STRAY("<|tool_call_end|>"), STRAY("<|tool_call_argument_begin|>")),
    [OPEN] = SKIP(TEXT, {"<|tool_call_begin|>", NAME, 0}, {"<|tool_calls_section_end|>", TEXT, 0}),
    [NAME] = NAMED(TEXT, {"<|tool_call_argument_begin|>", ARGS, BEGIN}, KIMI_ENDS(BEGIN | END)),
    [ARGS] = ARGUMENTS(AFTER, KIMI_ENDS(END)),
    [AFTER] = DROP(KIMI_ENDS(0), {"<|tool_call_begin|>", NAME, 0}),
};
static const mt_parse_table kimi_table = {
    .states = kimi, .start = TEXT, .named = kimi_named, .breaks = "<|tool_calls_section_begin|>"};

static const mt_layout kimi_k2_calls[] = {{.trigger = "<|tool_calls_section_begin|>",
                                           .before = "<|tool_call_begin|>functions.",
                                           .behind = ":",
                                           .number_last = "<|tool_call_argument_begin|>",
                                           .after = "<|tool_call_end|>",
                                           .between = "",
                                           .close = "<|tool_calls_section_end|>"}};
FORMAT(kimi_k2, kimi_table, kimi_k2_calls, {"<|tool_calls_section_begin|>"});
