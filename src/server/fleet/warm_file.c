/* Reads the file of --warm-prompts: JSON values, a prompt each, one after the other (JSON lines) or in one list. A
   prompt is
     [{"role": "system", "content": "..."}, ...]                          messages, as vllm-mlx has them
     {"messages": [...], "tools": [...], "system": "...", "model": "..."}  a request for a chat
     {"prompt": "..."}, "..."                                             a text that no chat template sees
   Other members of an object are those of a request. It becomes the body of a request for one token. */
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "server/fleet/warm.h"
#include "server/limits.h"

static const char blanks[] = " \t\r\n";

typedef struct scan {
    const char *text, *at, *end;
} scan;

static size_t line_of(const scan *s)
{
    size_t line = 1;

    for (const char *p = s->text; p < s->at; p++)
        line += *p == '\n';
    return line;
}

/* The JSON value at s->at, which moves behind it. NULL: *err. */
static json_t *next_value(scan *s, mt_error *err)
{
    const size_t line = line_of(s);
    json_error_t why;
    json_t *value = json_loadb(s->at, (size_t)(s->end - s->at), JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &why);

    if (value)
        s->at += why.position;
    else
        mt_fail(err, MT_E_INVALID, "line %zu: %s: write JSON", line + (why.line > 0 ? (size_t)why.line - 1 : 0),
                why.text);
    return value;
}

static bool is_message(const json_t *value)
{
    return json_is_string(json_object_get(value, "role"));
}

static bool are_messages(const json_t *list)
{
    size_t i;
    const json_t *value;

    json_array_foreach(list, i, value)
        if (!is_message(value))
            return false;
    return json_array_size(list) > 0;
}

/* What is shared of a conversation ends where the client's own words begin: without a message of a user behind the
   others, which some templates insist on, the prompt would go on as an answer. */
static void add_user(json_t *messages)
{
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));

    if (strcmp(role, "user") != 0 && strcmp(role, "tool") != 0)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", "."));
}

/* The messages of a chat, with the system text as the first. */
static void complete_chat(json_t *body)
{
    json_t *messages = json_object_get(body, "messages"), *system = json_object_get(body, "system");

    if (json_is_string(system))
        json_array_insert_new(messages, 0, json_pack("{s:s, s:O}", "role", "system", "content", system));
    json_object_del(body, "system");
    add_user(messages);
}

/* Makes a request of a prompt: a new object. NULL: it is none. */
static json_t *request_of(json_t *value)
{
    json_t *body;

    if (json_is_string(value) && json_string_length(value) > 0)
        return json_pack("{s:O}", "prompt", value);
    if (json_is_array(value))
        body = json_pack("{s:O}", "messages", value);
    else
        body = json_is_object(value) ? json_incref(value) : NULL;
    if (are_messages(json_object_get(body, "messages")))
        complete_chat(body);
    else if (!json_string_length(json_object_get(body, "prompt"))) {
        json_decref(body);
        return NULL;
    }
    return body;
}

/* One token, behind all requests of clients. */
static void set_form(json_t *body)
{
    static const char *const without[] = {"model", "n", "stream", "stream_options", "max_completion_tokens", "timeout"};

    for (size_t i = 0; i < MT_COUNT(without); i++)
        json_object_del(body, without[i]);
    json_object_set_new(body, "max_tokens", json_integer(1));
    json_object_set_new(body, "priority", json_integer(INT32_MAX));
}

static bool add_prompt(mt_warm_list *list, json_t *value, size_t line, mt_error *err)
{
    json_t *body = request_of(value);
    const char *model = json_string_value(json_object_get(body, "model"));
    mt_buf text = {.limit = 8 * (size_t)MT_LIMIT_WARM_BYTES}; /* escaped, a byte takes six */
    mt_warm_prompt prompt = {.line = line};
    bool ok = true;

    if (!body)
        return mt_fail(err, MT_E_INVALID,
                       "line %zu: the prompt is neither a list of messages nor an object with \"messages\" or "
                       "\"prompt\" nor a text: write one of these",
                       line);
    if (list->count == MT_LIMIT_WARM_PROMPTS)
        ok = mt_fail(err, MT_E_TOO_LARGE, "line %zu: there are more than %d prompts: leave some out", line,
                     MT_LIMIT_WARM_PROMPTS);
    else {
        prompt.dialect = json_object_get(body, "messages") ? &mt_openai_chat : &mt_openai_completions;
        prompt.model = model ? mt_strdup(model) : NULL;
        set_form(body);
        mt_json_tree_write(&text, body);
        prompt.body = mt_strdup(text.data);
        list->at = mt_grow(list->at, &list->cap, list->count + 1, sizeof(*list->at));
        list->at[list->count++] = prompt;
    }
    mt_buf_free(&text);
    json_decref(body);
    return ok;
}

/* Whether the text is one list of prompts: then s->at moves behind its "[". */
static bool enter_list(scan *s)
{
    scan ahead = *s;
    mt_error err;
    json_t *first = next_value(&ahead, &err);
    const bool is = json_is_array(first) && !is_message(json_array_get(first, 0));

    json_decref(first);
    s->at += is;
    return is;
}

/* Moves to the next prompt. False: there is none. */
static bool skip(scan *s, bool listed, bool first)
{
    s->at += strspn(s->at, blanks);
    if (listed && !first && *s->at == ',') {
        s->at++;
        s->at += strspn(s->at, blanks);
    }
    return s->at < s->end && !(listed && *s->at == ']');
}

static bool read_text(mt_warm_list *list, scan *s, mt_error *err)
{
    bool ok = true, listed;

    s->at += strspn(s->at, blanks);
    listed = enter_list(s);
    for (bool first = true; ok && skip(s, listed, first); first = false) {
        const size_t line = line_of(s);
        json_t *value = next_value(s, err);

        ok = value && add_prompt(list, value, line, err);
        json_decref(value);
    }
    s->at += ok && listed;
    if (ok && s->at + strspn(s->at, blanks) != s->end)
        return mt_fail(err, MT_E_INVALID, "line %zu: something stands behind the list: take it away", line_of(s));
    if (ok && list->count == 0)
        return mt_fail(err, MT_E_INVALID, "line 1: there is no prompt: write one, or leave the file out");
    return ok;
}

bool mt_warm_read(mt_warm_list *list, const char *path, mt_error *err)
{
    mt_buf text = {.limit = MT_LIMIT_WARM_BYTES};
    bool ok = mt_file_read(&text, path, err);

    if (ok) {
        const char *data = text.data ? text.data : "";
        scan s = {.text = data, .at = data, .end = data + text.len};

        ok = read_text(list, &s, err) || mt_fail_within(err, "--warm-prompts \"%s\"", path);
    }
    mt_buf_free(&text);
    return ok;
}

void mt_warm_free(mt_warm_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        mt_free(list->at[i].body);
        mt_free(list->at[i].model);
    }
    mt_free(list->at);
    *list = (mt_warm_list){0};
}

bool mt_warm_may(const mt_options *opt, const mt_keys *keys, mt_error *err)
{
    return !opt->warm_prompts || !mt_keys_isolated(keys, opt) ||
           mt_fail(err, MT_E_INVALID,
                   "\"--warm-prompts\" is of no use where keys share no cache: give --isolate off, or leave it out");
}
