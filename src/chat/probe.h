/* Probes: conversations made of words that no template contains, rendered to see where the words come out. Used by the
   files that make a profile (profile.c, profile_calls.c). */
#ifndef MT_CHAT_PROBE_H
#define MT_CHAT_PROBE_H

#include "chat/profile.h"

#define MT_PROBE_ALPHA "probe7alpha"
#define MT_PROBE_BETA "probe7beta"
#define MT_PROBE_GAMMA "probe7gamma"
#define MT_PROBE_DELTA "probe7delta"
#define MT_PROBE_EPSILON "probe7epsilon"
#define MT_PROBE_FUNCTION "probe_function"

typedef struct mt_probe {
    const mt_template *tpl;
    const json_t *tokens;
    const atomic_bool *stop;
    json_t *tools;            /* of the conversations that are rendered; borrowed; NULL: none */
    mt_chat_profile *profile; /* what is known so far; it shapes the probes that follow */
    /* A rendering went beyond its bounds, as those to follow would: a template made to harm, of which one is enough */
    bool *beyond;
} mt_probe;

/* Renders a conversation; owns messages. Returns the text, free with mt_free; NULL: the template failed, or *beyond.
   *loops_end (may be NULL) gets the end of what loops over messages wrote. */
char *mt_probe_render(const mt_probe *p, json_t *messages, bool generation_prompt, size_t *loops_end);

/* New references. The call has the arguments {GAMMA: DELTA}; mt_probe_result_message owns content. */
json_t *mt_probe_message(const char *role, const char *content);
json_t *mt_probe_call_message(const mt_probe *p);
json_t *mt_probe_result_message(const mt_probe *p, json_t *content);

/* Renders a conversation, whose messages it owns, with a generation prompt: whether each of the words comes out once,
   in this order. */
bool mt_probe_shows(const mt_probe *p, json_t *messages, const char *const *words, size_t count);

/* The user's EPSILON, a call, and BETA as its result; a new reference. Owns call; NULL: the usual call. */
json_t *mt_probe_call(const mt_probe *p, json_t *call);

/* What a text contains. It may be NULL, which contains nothing, except for mt_probe_count_of. */
size_t mt_probe_count_of(const char *text, const char *word);
bool mt_probe_has(const char *text, const char *word);
bool mt_probe_in_order(const char *text, const char *const *words, size_t count); /* each once, in this order */

/* In profile_calls.c: probe what tools must have, how the template shows tool calls, and reasoning. */
void mt_probe_tools(mt_probe *p);
void mt_probe_calls(mt_probe *p);
void mt_probe_reasoning(mt_probe *p);

#endif
