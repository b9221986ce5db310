/* The chat templates of a checkpoint folder. */
#ifndef MT_CHAT_CHAT_TEMPLATE_H
#define MT_CHAT_CHAT_TEMPLATE_H

#include "chat/parse.h"
#include "chat/profile.h"

/* One template, compiled and probed. */
typedef struct mt_chat_template {
    mt_template *tpl;
    const json_t *tokens; /* bos_token and the like; of the set it belongs to */
    mt_chat_profile profile;
    mt_parse_formats formats; /* what its model writes */
    char *text;               /* as it was written */
} mt_chat_template;

/* Immutable once made, and shared between threads. */
typedef struct mt_chat_templates mt_chat_templates;

/* Takes the template from, in this order: file, where it is not NULL; chat_template.jinja and
   additional_chat_templates/tool_use.jinja in dir; chat_template.json; tokenizer_config.json. The latter two have a
   string, or a list of named templates of which "default" and "tool_use" count. Special tokens always come from
   tokenizer_config.json, which may be missing. NULL with a sentence when there is no template or it is wrong. Free with
   mt_chat_templates_free. */
mt_chat_templates *mt_chat_templates_open(const char *dir, const char *file, mt_error *err) MT_NODISCARD;

/* A set of one template. tokens may be NULL; otherwise a reference is kept. stop may be NULL; once it is true, the
   template is probed no further. */
mt_chat_templates *mt_chat_templates_new(const char *text, size_t len, const json_t *tokens, const atomic_bool *stop,
                                         mt_error *err) MT_NODISCARD;
void mt_chat_templates_free(mt_chat_templates *set); /* NULL is fine */

/* The template for requests without tools, as it was written; borrowed. */
const char *mt_chat_templates_text(const mt_chat_templates *set);

/* bos_token and the like; borrowed. */
const json_t *mt_chat_templates_tokens(const mt_chat_templates *set);

/* The one for requests with tools or without. */
const mt_chat_template *mt_chat_templates_pick(const mt_chat_templates *set, bool tools);

#endif
