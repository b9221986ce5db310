/* Formats of reasoning. format_words.h explains the tables. */
#include "chat/format_words.h"

/* Reasoning stands at the beginning, or the prompt has opened it; the rest is the answer, whatever it contains. */
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

/* Gemma's markers are special tokens, which plain text does not have, so reasoning may come anywhere. */
static const mt_parse_state gemma_think_states[] = {
    [ANSWER] = CONTENT({"<|channel>thought", THOUGHT, 0}, {"<channel|>", ANSWER, 0}),
    [OPENED] = SKIP(THOUGHT, {"<|channel>thought", THOUGHT, 0}, {"<channel|>", ANSWER, 0}),
    [THOUGHT] = REASONING({"<channel|>", ANSWER, 0}),
};
static const mt_parse_table gemma_think = {
    .states = gemma_think_states, .start = ANSWER, .opened = OPENED, .answer = ANSWER};

/* More special ones first: a template has the first format whose signs it has. */
const mt_format mt_format_reasoning[] = {
    {.name = "harmony", .signs = {{"<|channel|>", "<|message|>"}}, .read = &mt_parse_harmony},
    {.name = "gemma4", .signs = {{"<|channel>"}}, .read = &gemma_think},
    {.name = "mistral", .signs = {{"[THINK]"}}, .read = &mistral_think},
    {.name = "seed_oss", .signs = {{"<seed:think>"}}, .read = &seed_think},
    {.name = "cohere", .signs = {{"<|START_THINKING|>"}}, .read = &cohere_think},
    {.name = "hunyuan", .signs = {{"<think:opensource>"}}, .read = &hunyuan_think},
    {.name = "apertus", .signs = {{"<|inner_prefix|>"}}, .read = &apertus_think},
    {.name = "apriel", .signs = {{"[BEGIN FINAL RESPONSE]"}}, .read = &apriel_think},
    {.name = "none", .signs = {{"]<]minimax[>["}}},
    {.name = "glm4v", .signs = {{"<think>", "<|begin_of_box|>"}}, .read = &glm4v},
    {.name = "granite", .signs = {{"<think>", "<response>"}}, .read = &granite_think},
    {.name = "think", .signs = {{"</think>"}, {"<think>"}}, .read = &think},
    {.name = "thought", .signs = {{"</thought>"}}, .read = &thought},
    {.name = "thinking", .signs = {{"</thinking>"}}, .read = &thinking},
    {.name = "reasoning", .signs = {{"</reasoning>"}}, .read = &reasoning},
};

const size_t mt_format_reasoning_count = MT_COUNT(mt_format_reasoning);
