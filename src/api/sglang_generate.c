/* The dialect of POST /generate, as SGLang has it: texts or token ids are continued. An answer is an object, a list of
   them where there are several; each event of a stream repeats the text so far. */
#include <inttypes.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "api/openai.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_write.h"
#include "base/words.h"
#include "sample/limits.h"
#include "weights/limits.h"

enum { DEFAULT_TOKENS = 128 }; /* of max_new_tokens */

/* Settings that have other names in the tables. */
static const struct {
    const char *theirs, *ours;
} names[] = {{"max_new_tokens", "max_tokens"}, {"min_new_tokens", "min_tokens"},
             {"json_schema", "guided_json"},   {"regex", "guided_regex"},
             {"ebnf", "guided_grammar"},       {"no_stop_trim", "include_stop_str_in_output"},
             {"sampling_seed", "seed"}};

/* Fields of the body that this file reads. */
static const char *const own[] = {"text",
                                  "input_ids",
                                  "sampling_params",
                                  "return_logprob",
                                  "logprob_start_len",
                                  "top_logprobs_num",
                                  "return_text_in_logprobs",
                                  "token_ids_logprob",
                                  "rid",
                                  NULL};

static const mt_field fields[] = {
    MT_FIELD_REFUSED_ROW("image_data", 0),     MT_FIELD_REFUSED_ROW("video_data", 0),
    MT_FIELD_REFUSED_ROW("audio_data", 0),     MT_FIELD_REFUSED_ROW("input_embeds", 0),
    MT_FIELD_REFUSED_ROW("session_params", 0),
};

/* Copies the settings and all other fields into one object, under the names that the tables know. */
static json_t *flatten(const json_t *body)
{
    json_t *flat = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)body, key, value)
        if (!mt_words_have(own, key))
            json_object_set(flat, key, value);
    json_object_foreach(json_object_get(body, "sampling_params"), key, value) {
        const char *name = key;

        for (size_t i = 0; i < MT_COUNT(names); i++)
            if (strcmp(key, names[i].theirs) == 0)
                name = names[i].ours;
        json_object_set(flat, name, value);
    }
    return flat;
}

static bool read_bool(const json_t *body, const char *name, bool *out, mt_failure *why)
{
    const json_t *value = mt_body_get(body, name);

    *out = json_is_true(value);
    return !value || json_is_boolean(value) || mt_failure_type(why, name, value, "true or false");
}

static bool read_int(const json_t *body, const char *name, json_int_t least, json_int_t most, json_int_t *out,
                     mt_failure *why)
{
    const json_t *value = mt_body_get(body, name);

    if (!value)
        return true;
    *out = json_integer_value(value);
    return (json_is_integer(value) && *out >= least && *out <= most) ||
           mt_failure_value(why, name,
                            "is no integer from %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT ": send one", least,
                            most);
}

/* Logprobs of the answer's tokens, and of the prompt's from a position on; -1: of none. */
static bool read_logprobs(mt_ask *ask, const json_t *body, mt_failure *why)
{
    const json_t *ids = mt_body_get(body, "token_ids_logprob");
    json_int_t start = -1, top = 0;
    bool wanted, texts;

    if (!read_bool(body, "return_logprob", &wanted, why) || !read_bool(body, "return_text_in_logprobs", &texts, why) ||
        !read_int(body, "logprob_start_len", -1, MT_LIMIT_CONTEXT, &start, why) ||
        !read_int(body, "top_logprobs_num", 0, MT_LIMIT_TOP_LOGPROBS, &top, why))
        return false;
    if (!wanted)
        return !ids ||
               mt_failure_value(why, "token_ids_logprob", "is given without \"return_logprob\": send that, too");
    if (ids && top > 0)
        return mt_failure_value(why, "token_ids_logprob",
                                "is given beside \"top_logprobs_num\": leave one of them out");
    if (start >= 0 && ask->form.stream)
        return mt_failure_value(why, "logprob_start_len",
                                "is given, but logprobs of the prompt are not streamed: send \"stream\" as false");
    ask->sampling.logprobs = (int32_t)top;
    if (start >= 0)
        ask->form.prompt_logprobs = top;
    json_object_set_new(ask->extra, "start", json_integer(start));
    if (texts)
        json_object_set_new(ask->extra, "texts", json_true());
    if (ids)
        json_object_set_new(ask->extra, "ids", json_true());
    return !ids || mt_read_logprob_ids(ask, "token_ids_logprob", ids, why);
}

static bool read_prompts(mt_ask *ask, const json_t *body, mt_failure *why)
{
    const json_t *text = mt_body_get(body, "text"), *ids = mt_body_get(body, "input_ids"), *prompt = text ? text : ids;

    if (!prompt)
        return mt_failure_field(why, "missing_required_parameter", "text", "is missing: send it, or \"input_ids\"");
    if (text && ids)
        return mt_failure_value(why, "input_ids", "is given beside \"text\": leave one of them out");
    if (text ? json_is_array(text) : json_is_array(json_array_get(ids, 0)))
        json_object_set_new(ask->extra, "many", json_true());
    return mt_openai_prompts_read(ask, text ? "text" : "input_ids", prompt, why);
}

static bool read_body(mt_ask *ask, mt_failure *why)
{
    const mt_field_table tables[] = {mt_fields_common, {fields, MT_COUNT(fields)}, mt_fields_refused};
    const json_t *body = ask->body, *settings = mt_body_get(body, "sampling_params");

    if (settings && !json_is_object(settings))
        return mt_failure_type(why, "sampling_params", settings, "one object for all texts");
    ask->extra = json_object();
    ask->body = mt_ask_own(ask, flatten(body));
    ask->form.return_token_ids = true;
    if (ask->default_max_tokens == 0)
        ask->default_max_tokens = DEFAULT_TOKENS;
    return mt_fields_read(ask, tables, MT_COUNT(tables), NULL, NULL, why) && read_logprobs(ask, body, why) &&
           read_prompts(ask, body, why);
}

static bool read(mt_ask *ask, mt_failure *why)
{
    bool ok;

    mt_json_guard_begin();
    ok = read_body(ask, why);
    return mt_json_guard_end() ? ok : mt_failure_memory(why, NULL);
}

/* [logprob, id, text]; what is not known or not wanted is null. */
static void add_token(mt_buf *out, const mt_answer *a, const float *logprob, uint32_t id)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    mt_json_write(out, "[");
    if (logprob)
        mt_write_number(out, *logprob);
    else
        mt_json_write(out, "null");
    mt_json_write(out, "%" PRIu32, id);
    if (json_object_get(a->extra, "texts"))
        mt_write_token(out, a, id, &bytes);
    else
        mt_json_write(out, "null");
    mt_json_write(out, "]");
    mt_buf_free(&bytes);
}

static void add_top(mt_buf *out, const mt_answer *a, const mt_said_list *said, const mt_said *s)
{
    if (!s->has_logprob) {
        mt_json_write(out, "null");
        return;
    }
    mt_json_write(out, "[");
    for (size_t i = 0; i < s->top_count; i++)
        add_token(out, a, &said->top[s->top_begin + i].logprob, said->top[s->top_begin + i].id);
    mt_json_write(out, "]");
}

/* Appends two lists under the keys `tokens` and `top`: the logprobs of the answer's tokens from index `from` on, and
   for each of these positions the logprobs of the likeliest tokens, or of the tokens that the request names. top NULL:
   the first list alone. */
static void add_logprobs(mt_buf *out, const mt_answer *a, const mt_said_list *said, size_t from, const char *tokens,
                         const char *top)
{
    mt_json_write(out, "%s:[", tokens);
    for (size_t i = from; i < said->count; i++)
        add_token(out, a, said->at[i].has_logprob ? &said->at[i].logprob : NULL, said->at[i].id);
    mt_json_write(out, "]");
    if (!top)
        return;
    mt_json_write(out, "%s:[", top);
    for (size_t i = from; i < said->count; i++)
        add_top(out, a, said, &said->at[i]);
    mt_json_write(out, "]");
}

static void add_finish(mt_buf *out, const mt_choice *c)
{
    if (!c->done)
        mt_json_write(out, "'finish_reason':null");
    else if (c->finish == MT_FINISH_LENGTH)
        mt_json_write(out, "'finish_reason':{'type':'length','length':%zu}", c->tokens);
    else if (c->finish != MT_FINISH_STOP)
        mt_json_write(out, "'finish_reason':{'type':'abort','message':'the request was cancelled'}");
    else {
        mt_json_write(out, "'finish_reason':{'type':'stop'");
        if (c->stop)
            mt_json_text(out, "matched", c->stop, c->stop_len);
        else if (c->stop_token != MT_TOKEN_NONE)
            mt_json_write(out, "'matched':%" PRIu32, c->stop_token);
        mt_json_write(out, "}");
    }
}

enum { CHUNK_BYTES = 16384 }; /* of a chunk, for each token before the next */

static bool is_many(const mt_answer *a)
{
    return a->choice_count > 1 || json_object_get(a->extra, "many");
}

/* All of a choice, or all so far. */
static void add_choice(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    const mt_answer_prompt *prompt = &a->prompts[c->prompt];
    const json_t *start = json_object_get(a->extra, "start");

    mt_json_write(out, "{");
    if (a->form.stream && is_many(a))
        mt_json_write(out, "'index':%zu", c->index);
    mt_speech_write(out, "text", &c->speech, MT_SPEECH_TEXT, false);
    mt_json_write(out, "'output_ids':[");
    for (size_t i = 0; i < c->said.count; i++)
        mt_json_write(out, "%" PRIu32, c->said.at[i].id);
    mt_json_write(out, "],'meta_info':{'id':%s", a->id);
    add_finish(out, c);
    mt_json_write(out, "'prompt_tokens':%zu,'completion_tokens':%zu,'cached_tokens':%zu", prompt->count, c->tokens,
                  c->cached);
    if (json_integer_value(start) >= 0 && start)
        add_logprobs(out, a, &prompt->said, (size_t)json_integer_value(start), "input_token_logprobs",
                     a->logprobs > 0 ? "input_top_logprobs" : NULL);
    if (start)
        add_logprobs(out, a, &c->said, 0, "output_token_logprobs",
                     json_object_get(a->extra, "ids") ? "output_token_ids_logprobs"
                     : a->logprobs > 0                ? "output_top_logprobs"
                                                      : NULL);
    mt_json_write(out, "}}");
}

/* A chunk repeats all so far. The longer it is, the more tokens come before the next, so that what is written for a
   token is bounded. */
static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    const size_t before = out->len;

    if (c->tokens < c->due && !c->done)
        return;
    mt_buf_puts(out, "data: ");
    add_choice(out, a, c);
    mt_buf_puts(out, "\n\n");
    c->due = c->tokens + 1 + (out->len - before) / CHUNK_BYTES;
}

static void end(mt_answer *a, mt_buf *out)
{
    (void)a;
    mt_buf_puts(out, "data: [DONE]\n\n");
}

static void whole(mt_answer *a, mt_buf *out)
{
    if (is_many(a))
        mt_json_write(out, "[");
    for (size_t i = 0; i < a->choice_count; i++)
        add_choice(out, a, &a->choices[i]);
    if (is_many(a))
        mt_json_write(out, "]");
}

const mt_dialect mt_sglang_generate = {.name = "generate",
                                       .prefix = "cmpl-",
                                       .read = read,
                                       .chunk = chunk,
                                       .end = end,
                                       .whole = whole,
                                       .fail = mt_openai_fail,
                                       .error = mt_failure_write,
                                       .repeats = true,
                                       .idle = MT_OPENAI_IDLE};
