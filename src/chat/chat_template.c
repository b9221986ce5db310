/* See chat_template.h. */
#include "chat/chat_template.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "text/limits.h"
#include "weights/folder.h"
#include "weights/limits.h"

struct mt_chat_templates {
    mt_chat_template plain, tool_use; /* tool_use.tpl is NULL where there is only one */
    json_t *tokens;                   /* an object */
};

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

/* The same for a file of the model. */
static bool compile_own(mt_chat_template *out, const char *dir, const char *name, mt_error *err)
{
    char source[MT_LIMIT_PATH];
    mt_folder_file file;
    bool ok;

    if (!mt_folder_open(&file, dir, name, err))
        return false;
    mt_folder_source(source, dir, name);
    ok = file.len > MT_LIMIT_TEMPLATE_BYTES
             ? mt_fail(err, MT_E_TOO_LARGE, "\"%s\" has more than %u bytes; give a shorter one", source,
                       MT_LIMIT_TEMPLATE_BYTES)
             : compile(out, file.data, file.len, source, err);
    mt_folder_close(&file);
    return ok;
}

/* Integers are read as reals, since tokenizer configs have some that overflow. NULL: *err. */
static json_t *read_json(const char *dir, const char *name, const char *source, mt_error *err)
{
    json_error_t why;
    json_t *json = NULL;
    mt_folder_file file;

    if (!mt_folder_open(&file, dir, name, err))
        return NULL;
    if (file.len > MT_LIMIT_TOKENIZER_SETTINGS)
        mt_fail(err, MT_E_TOO_LARGE, "\"%s\" has more than %u bytes", source, MT_LIMIT_TOKENIZER_SETTINGS);
    else
        json = json_loadb(file.data, file.len, JSON_DECODE_INT_AS_REAL, &why);
    if (!json && file.len <= MT_LIMIT_TOKENIZER_SETTINGS)
        mt_fail(err, MT_E_INVALID, "\"%s\": line %d, column %d: %s", source, why.line, why.column, why.text);
    mt_folder_close(&file);
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
    static const char plain[] = "chat_template.jinja", tool_use[] = "additional_chat_templates/tool_use.jinja";

    if (!mt_folder_has(dir, plain))
        return true;
    return compile_own(&set->plain, dir, plain, err) &&
           (!mt_folder_has(dir, tool_use) || compile_own(&set->tool_use, dir, tool_use, err));
}

static bool open_json(mt_chat_templates *set, const char *dir, const char *name, bool tokens, mt_error *err)
{
    char source[MT_LIMIT_PATH];
    json_t *json;
    bool ok;

    if (!mt_folder_has(dir, name))
        return true;
    mt_folder_source(source, dir, name);
    json = read_json(dir, name, source, err);
    if (!json)
        return false;
    ok = set->plain.tpl || compile_field(set, json, source, err);
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
