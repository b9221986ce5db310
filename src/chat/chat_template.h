/* Opens the chat templates of a checkpoint folder: compiled, and probed for what they can do. Called when a model is
   loaded, and for templates that clients send. */
#ifndef MT_CHAT_CHAT_TEMPLATE_H
#define MT_CHAT_CHAT_TEMPLATE_H

#include "chat/parse.h"
#include "chat/profile.h"

/* One template, compiled and probed. */
typedef struct mt_chat_template {
    mt_template *tpl;
    const json_t *tokens; /* texts of special tokens such as bos_token; borrowed from the set */
    mt_chat_profile profile;
    mt_parse_formats formats; /* how its model writes reasoning and tool calls */
    char *text;               /* the template's source */
} mt_chat_template;

/* The templates of a model: one, or one more for requests with tools. Immutable, shared by threads. */
typedef struct mt_chat_templates mt_chat_templates;

/* Reads the template from the first of these that exists: file, where not NULL; chat_template.jinja (with
   additional_chat_templates/tool_use.jinja) in dir; chat_template.json; tokenizer_config.json. The last two have a
   string, or a list of named templates, of which "default" and "tool_use" are used. Special tokens always come from
   tokenizer_config.json, which may be missing. NULL: *err, there is no template or it is invalid. Free with
   mt_chat_templates_free. */
mt_chat_templates *mt_chat_templates_open(const char *dir, const char *file, mt_error *err) MT_NODISCARD;

/* A set of one template. tokens may be NULL, else a reference is kept. stop: ends the probing early once it is true;
   may be NULL. */
mt_chat_templates *mt_chat_templates_new(const char *text, size_t len, const json_t *tokens, const atomic_bool *stop,
                                         mt_error *err) MT_NODISCARD;
void mt_chat_templates_free(mt_chat_templates *set); /* NULL is fine */

/* The source of the template for requests without tools; borrowed. */
const char *mt_chat_templates_text(const mt_chat_templates *set);

/* Texts of special tokens, an object; borrowed. */
const json_t *mt_chat_templates_tokens(const mt_chat_templates *set);

/* The template for requests with or without tools. */
const mt_chat_template *mt_chat_templates_pick(const mt_chat_templates *set, bool tools);

#endif
