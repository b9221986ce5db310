/* Formats of reasoning, and their names. */
#include <string.h>

#include "chat/parse_table.h"

/* Reasoning stands at the beginning, or the prompt has opened it; the rest is the answer, whatever that says. */
enum { THOUGHT = OPEN, ANSWER = AFTER, OPENED = BETWEEN };
#define THINK(name, open, close, ...)                                     \
    static const mt_parse_state name##_states[] = {                       \
        [START] = LEAD(ANSWER, {open, THOUGHT, 0}),                       \
        [OPENED] = SKIP(THOUGHT, {open, THOUGHT, 0}, {close, ANSWER, 0}), \
        [THOUGHT] = REASONING({close, ANSWER, 0}),                        \
        [ANSWER] = CONTENT(__VA_ARGS__),                                  \
    };                                                                    \
    static const mt_parse_table name = {.states = name##_states, .start = START, .opened = OPENED, .answer = ANSWER}

THINK(think, "<think>", "</think>", {NULL, 0, 0});
THINK(glm4v, "<think>", "</think>", {"<|begin_of_box|>", ANSWER, 0}, {"<|end_of_box|>", ANSWER, 0});
THINK(mistral_think, "[THINK]", "[/THINK]", {NULL, 0, 0});
THINK(seed_think, "<seed:think>", "</seed:think>", {NULL, 0, 0});
THINK(hunyuan_think, "<think:opensource>", "</think:opensource>", {NULL, 0, 0});
THINK(thought, "<thought>", "</thought>", {NULL, 0, 0});
THINK(thinking, "<thinking>", "</thinking>", {NULL, 0, 0});
THINK(reasoning, "<reasoning>", "</reasoning>", {NULL, 0, 0});
THINK(cohere_think, "<|START_THINKING|>", "<|END_THINKING|>", {"<|START_RESPONSE|>", ANSWER, 0},
      {"<|END_RESPONSE|>", ANSWER, 0});
THINK(apertus_think, "<|inner_prefix|>", "<|inner_suffix|>", {NULL, 0, 0});
THINK(apriel_think, "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", {NULL, 0, 0});

static const mt_parse_state granite_think_states[] = {
    [START] = LEAD(ANSWER, {"<think>", THOUGHT, 0}),
    [OPENED] = SKIP(THOUGHT, {"<think>", THOUGHT, 0}, {"</think>", CLOSED, 0}),
    [THOUGHT] = REASONING({"</think>", CLOSED, 0}),
    [CLOSED] = SKIP(ANSWER, {"<response>", MORE, 0}),
    [MORE] = CONTENT({"</response>", ANSWER, 0}),
    [ANSWER] = CONTENT({NULL, 0, 0}),
};
static const mt_parse_table granite_think = {
    .states = granite_think_states, .start = START, .opened = OPENED, .answer = ANSWER};

/* Its markers are tokens that text does not have, and may come anywhere. */
static const mt_parse_state gemma_think_states[] = {
    [ANSWER] = CONTENT({"<|channel>thought", THOUGHT, 0}, {"<channel|>", ANSWER, 0}),
    [OPENED] = SKIP(THOUGHT, {"<|channel>thought", THOUGHT, 0}, {"<channel|>", ANSWER, 0}),
    [THOUGHT] = REASONING({"<channel|>", ANSWER, 0}),
};
static const mt_parse_table gemma_think = {
    .states = gemma_think_states, .start = ANSWER, .opened = OPENED, .answer = ANSWER};

static const mt_parse_named reasoning_formats[] = {
    {"none", NULL},
    {"think", &think},
    {"mistral", &mistral_think},
    {"seed_oss", &seed_think},
    {"harmony", &mt_parse_harmony},
    {"gemma4", &gemma_think},
    {"granite", &granite_think},
    {"glm4v", &glm4v},
    {"cohere", &cohere_think},
    {"hunyuan", &hunyuan_think},
    {"apertus", &apertus_think},
    {"apriel", &apriel_think},
    {"thought", &thought},
    {"thinking", &thinking},
    {"reasoning", &reasoning},
};

bool mt_parse_find(const mt_parse_named *list, size_t count, const char *name, const mt_parse_table **table)
{
    name = name ? name : "none";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            *table = list[i].table;
            return true;
        }
    }
    return false;
}

bool mt_parse_find_reasoning(const char *name, const mt_parse_table **table)
{
    return mt_parse_find(reasoning_formats, MT_COUNT(reasoning_formats), name, table);
}

const char *mt_parse_reasoning_name(size_t i)
{
    return i < MT_COUNT(reasoning_formats) ? reasoning_formats[i].name : NULL;
}
