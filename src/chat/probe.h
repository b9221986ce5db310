/* Probes: conversations of words that no template contains, so that what comes out tells where they went. For the files
   that make a profile. */
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
    mt_chat_profile *profile; /* what is known so far shapes the probes that follow */
} mt_probe;

/* Renders a conversation; takes messages. The text, free with mt_free, or NULL when the template fails. *loops_end,
   where it is not NULL, is set to the end of what loops over messages wrote. */
char *mt_probe_render(const mt_probe *p, json_t *messages, bool generation_prompt, size_t *loops_end);

/* New references. The call has the arguments {GAMMA: DELTA}; result_message takes content. */
json_t *mt_probe_message(const char *role, const char *content);
json_t *mt_probe_call_message(const mt_probe *p);
json_t *mt_probe_result_message(const mt_probe *p, json_t *content);

/* EPSILON, a call, and BETA as its result. Takes call; NULL is the usual one. */
char *mt_probe_render_call(const mt_probe *p, json_t *call);

/* What is in a text. That may be NULL, except for count_of; then nothing is in it. */
size_t mt_probe_count_of(const char *text, const char *word);
bool mt_probe_has(const char *text, const char *word);
bool mt_probe_in_order(const char *text, const char *const *words, size_t count); /* each once, and in this order */

/* In profile_calls.c: tool calls, then reasoning. */
void mt_probe_calls(mt_probe *p);
void mt_probe_reasoning(mt_probe *p);

#endif
