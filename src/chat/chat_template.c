/* See chat_template.h. */
#include "chat/chat_template.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"

struct mt_chat_templates {
    mt_chat_template plain, tool_use; /* tool_use.tpl is NULL where there is only one */
    json_t *tokens;                   /* an object */
};

static bool path_in(char path[MT_LIMIT_PATH], const char *dir, const char *name, mt_error *err)
{
    int len = snprintf(path, MT_LIMIT_PATH, "%s/%s", dir, name);

    return (len > 0 && len < MT_LIMIT_PATH) ||
           mt_fail(err, MT_E_INVALID, "\"%.60s...\" is too long for a path; move the folder", dir);
}

/* source: how errors name the template. */
static bool compile(mt_chat_template *out, const char *text, size_t len, const char *source, mt_error *err)
{
    mt_template_free(out->tpl);
    mt_free(out->text);
    out->text = mt_alloc(len + 1);
    memcpy(out->text, text, len);
    out->tpl = mt_template_compile(text, len, err);
    out->formats = mt_parse_detect(text, len);
    return out->tpl || mt_fail_within(err, "the chat template in \"%s\"", source);
}

static bool compile_file(mt_chat_template *out, const char *path, mt_error *err)
{
    mt_buf text = {.limit = MT_LIMIT_TEMPLATE_BYTES};
    bool ok;

    ok = mt_file_read(&text, path, err) && compile(out, text.data ? text.data : "", text.len, path, err);
    mt_buf_free(&text);
    return ok;
}

/* Integers are read as reals, since tokenizer configs have some that overflow. NULL: *err, or MT_OK where there is no
   such file. */
static json_t *read_json(const char *path, mt_error *err)
{
    json_error_t why;
    json_t *json = NULL;
    mt_buf text = {.limit = MT_LIMIT_TOKENIZER_SETTINGS};

    if (mt_file_absent(path))
        return NULL;
    if (mt_file_read(&text, path, err)) {
        json = json_loadb(text.data ? text.data : "", text.len, JSON_DECODE_INT_AS_REAL, &why);
        if (!json)
            mt_fail(err, MT_E_INVALID, "\"%s\": line %d, column %d: %s", path, why.line, why.column, why.text);
    }
    mt_buf_free(&text);
    return json;
}

/* Compiles those of a list of {"name": ..., "template": ...}. */
static bool compile_named(mt_chat_templates *set, const json_t *list, const char *source, mt_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i), *text = json_object_get(item, "template");
        const char *name = json_string_value(json_object_get(item, "name"));
        mt_chat_template *to = name && strcmp(name, "default") == 0    ? &set->plain
                               : name && strcmp(name, "tool_use") == 0 ? &set->tool_use
                                                                       : NULL;

        if (to && json_is_string(text) && !compile(to, json_string_value(text), json_string_length(text), source, err))
            return false;
    }
    return set->plain.tpl || mt_fail(err, MT_E_NOT_FOUND,
                                     "\"%s\" has named chat templates, but none is called \"default\"; give one with "
                                     "--chat-template",
                                     source);
}

/* Compiles the member "chat_template", if there is one. */
static bool compile_field(mt_chat_templates *set, const json_t *json, const char *source, mt_error *err)
{
    const json_t *field = json_object_get(json, "chat_template");

    if (json_is_string(field))
        return compile(&set->plain, json_string_value(field), json_string_length(field), source, err);
    return !json_is_array(field) || compile_named(set, field, source, err);
}

/* The text of a special token, which is a string or an object with the string as "content"; NULL: there is none. */
static json_t *token_text(json_t *token)
{
    token = json_is_object(token) ? json_object_get(token, "content") : token;
    return json_is_string(token) ? token : NULL;
}

/* Copies the special tokens. Functions of jansson leave out what is NULL. */
static void read_tokens(json_t *tokens, const json_t *config)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                        "sep_token", "cls_token", "mask_token"};
    const json_t *more = json_object_get(config, "additional_special_tokens");
    json_t *list;

    for (size_t i = 0; i < MT_COUNT(names); i++)
        json_object_set(tokens, names[i], token_text(json_object_get(config, names[i])));
    if (!json_is_array(more))
        return;
    list = json_array();
    for (size_t i = 0; i < json_array_size(more); i++)
        json_array_append(list, token_text(json_array_get(more, i)));
    json_object_set_new(tokens, "additional_special_tokens", list);
}

static bool open_files(mt_chat_templates *set, const char *dir, mt_error *err)
{
    char path[MT_LIMIT_PATH];

    if (!path_in(path, dir, "chat_template.jinja", err))
        return false;
    if (mt_file_absent(path))
        return true;
    if (!compile_file(&set->plain, path, err) || !path_in(path, dir, "additional_chat_templates/tool_use.jinja", err))
        return false;
    return mt_file_absent(path) || compile_file(&set->tool_use, path, err);
}

static bool open_json(mt_chat_templates *set, const char *dir, const char *name, bool tokens, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    json_t *json;
    bool ok;

    if (!path_in(path, dir, name, err))
        return false;
    mt_error_clear(err);
    json = read_json(path, err);
    if (!json)
        return mt_file_absent(path); /* false: *err says what is wrong with the file */
    ok = set->plain.tpl || compile_field(set, json, path, err);
    if (tokens)
        read_tokens(set->tokens, json);
    json_decref(json);
    return ok;
}

static void probe(mt_chat_templates *set, const atomic_bool *stop)
{
    set->plain.tokens = set->tool_use.tokens = set->tokens;
    mt_chat_profile_probe(&set->plain.profile, set->plain.tpl, set->tokens, stop);
    if (set->tool_use.tpl)
        mt_chat_profile_probe(&set->tool_use.profile, set->tool_use.tpl, set->tokens, stop);
}

mt_chat_templates *mt_chat_templates_open(const char *dir, const char *file, mt_error *err)
{
    mt_chat_templates *set = mt_alloc(sizeof(*set));
    bool ok;

    set->tokens = json_object();
    ok = (!file || compile_file(&set->plain, file, err)) && (file || open_files(set, dir, err)) &&
         open_json(set, dir, "chat_template.json", false, err) &&
         open_json(set, dir, "tokenizer_config.json", true, err);
    if (ok && !set->plain.tpl)
        ok = mt_fail(err, MT_E_NOT_FOUND, "\"%s\" has no chat template; give one with --chat-template FILE", dir);
    if (ok) {
        probe(set, NULL);
        return set;
    }
    mt_chat_templates_free(set);
    return NULL;
}

mt_chat_templates *mt_chat_templates_new(const char *text, size_t len, const json_t *tokens, const atomic_bool *stop,
                                         mt_error *err)
{
    mt_chat_templates *set = mt_alloc(sizeof(*set));

    set->tokens = tokens ? json_incref((json_t *)(uintptr_t)tokens) : json_object();
    if (compile(&set->plain, text, len, "the text given", err)) {
        probe(set, stop);
        return set;
    }
    mt_chat_templates_free(set);
    return NULL;
}

void mt_chat_templates_free(mt_chat_templates *set)
{
    if (!set)
        return;
    mt_template_free(set->plain.tpl);
    mt_template_free(set->tool_use.tpl);
    mt_free(set->plain.text);
    mt_free(set->tool_use.text);
    json_decref(set->tokens);
    mt_free(set);
}

const char *mt_chat_templates_text(const mt_chat_templates *set)
{
    return set->plain.text;
}

const json_t *mt_chat_templates_tokens(const mt_chat_templates *set)
{
    return set->tokens;
}

const mt_chat_template *mt_chat_templates_pick(const mt_chat_templates *set, bool tools)
{
    return tools && set->tool_use.tpl ? &set->tool_use : &set->plain;
}
