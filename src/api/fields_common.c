/* Fields that all of OpenAI's dialects share: how to sample, when to stop, how to answer. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "api/limits.h"
#include "base/json_tree.h"
#include "sample/limits.h"
#include "text/limits.h"
#include "weights/limits.h"

bool mt_read_seed(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_integer(value))
        return mt_failure_type(why, name, value, "an integer");
    ask->seeded = true;
    ask->sampling.seed = (uint64_t)json_integer_value(value);
    return true;
}

bool mt_read_logprobs(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_boolean(value))
        return mt_failure_type(why, name, value, "true or false, and how many in \"top_logprobs\"");
    ask->sampling.logprobs = json_is_true(value) ? 0 : -1;
    return true;
}

/* In tables this row stands after that of "logprobs", whose value must be known here. */
bool mt_read_top_logprobs(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_int_t count = json_integer_value(value);

    if (!json_is_integer(value))
        return mt_failure_type(why, name, value, "an integer");
    if (count < 0 || count > MT_LIMIT_TOP_LOGPROBS)
        return mt_failure_value(why, name, "is %" JSON_INTEGER_FORMAT ": send a value from 0 to %d", count,
                                MT_LIMIT_TOP_LOGPROBS);
    if (ask->sampling.logprobs < 0 && count > 0)
        return mt_failure_value(why, name, "is given without \"logprobs\": send that as true");
    ask->sampling.logprobs = ask->sampling.logprobs < 0 ? -1 : (int32_t)count;
    return true;
}

static bool add_stop(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_string(value))
        return mt_failure_field(why, "invalid_type", name, "has %s in it: send a string or a list of strings",
                                mt_json_kind(value));
    if (json_string_length(value) > MT_LIMIT_STOP_BYTES)
        return mt_failure_value(why, name, "has a string of %zu bytes: send at most %d", json_string_length(value),
                                MT_LIMIT_STOP_BYTES);
    ask->stops[ask->stop_count++] = (mt_stop_string){.str = json_string_value(value), .len = json_string_length(value)};
    return true;
}

bool mt_read_stop(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;

    if (count > MT_LIMIT_STOP_STRINGS)
        return mt_failure_value(why, name, "has %zu strings: send at most %d", count, MT_LIMIT_STOP_STRINGS);
    ask->stops = mt_arena_alloc(ask->arena, count * sizeof(*ask->stops));
    if (!ask->stops)
        return mt_failure_memory(why, name);
    ask->stop_count = 0;
    if (!json_is_array(value))
        return add_stop(ask, name, value, why);
    for (size_t i = 0; i < count; i++)
        if (!add_stop(ask, name, json_array_get(value, i), why))
            return false;
    return true;
}

/* Reads a list of at most `most` token ids. */
static bool read_ids(mt_ask *ask, const char *name, const json_t *value, size_t most, uint32_t **out, size_t *out_count,
                     mt_failure *why)
{
    const size_t count = json_array_size(value);

    if (!json_is_array(value))
        return mt_failure_type(why, name, value, "a list of token ids");
    if (count > most)
        return mt_failure_value(why, name, "has %zu ids: send at most %zu", count, most);
    *out = mt_arena_alloc(ask->arena, count * sizeof(**out));
    if (!*out)
        return mt_failure_memory(why, name);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(value, i);

        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= MT_LIMIT_VOCAB)
            return mt_failure_value(why, name, "has an entry that is no token id: send a flat list of integers");
        (*out)[i] = (uint32_t)json_integer_value(id);
    }
    *out_count = count;
    return true;
}

static bool read_stop_ids(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    uint32_t *ids = NULL;
    const bool ok = read_ids(ask, name, value, MT_LIMIT_STOP_IDS, &ids, &ask->sampling.stop_count, why);

    ask->sampling.stop_ids = ids;
    return ok;
}

/* In tables its row stands after "logprobs", so that this has been read. */
bool mt_read_logprob_ids(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    uint32_t *ids = NULL;

    if (ask->sampling.logprobs < 0 && json_array_size(value) > 0)
        return mt_failure_value(why, name, "is given without \"logprobs\": send that, too");
    if (!read_ids(ask, name, value, MT_LIMIT_TOP_LOGPROBS, &ids, &ask->sampling.logprob_count, why))
        return false;
    ask->sampling.logprob_ids = ids;
    return true;
}

/* An empty list is refused: no token could be chosen. */
static bool read_allowed_ids(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (json_is_array(value) && json_array_size(value) == 0)
        return mt_failure_value(why, name, "is empty: send ids, or leave it out");
    return read_ids(ask, name, value, MT_LIMIT_VOCAB, &ask->allowed_ids, &ask->allowed_id_count, why);
}

static bool read_bad_words(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_array(value))
        return mt_failure_type(why, name, value, "a list of strings");
    if (json_array_size(value) > MT_LIMIT_BAD_WORDS)
        return mt_failure_value(why, name, "has %zu words: send at most %d", json_array_size(value),
                                MT_LIMIT_BAD_WORDS);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *word = json_array_get(value, i);

        if (!json_is_string(word) || json_string_length(word) == 0 || json_string_length(word) > MT_LIMIT_STOP_BYTES)
            return mt_failure_value(why, name, "has an entry that is no string of 1 to %d bytes: send such",
                                    MT_LIMIT_STOP_BYTES);
    }
    ask->bad_words = json_array_size(value) ? value : NULL;
    return true;
}

bool mt_read_max_tokens(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const double number = json_number_value(value);
    char given[MT_JSON_SHOWN];

    if (!json_is_number(value) || number != floor(number))
        return mt_failure_type(why, name, value, "an integer");
    if (!(number >= -1 && number <= MT_LIMIT_CONTEXT))
        return mt_failure_value(why, name, "is %s: send a value from 0 to %d, or -1 for all that fits",
                                mt_json_shown(value, given), MT_LIMIT_CONTEXT);
    ask->max_tokens = number < 0 ? MT_LIMIT_CONTEXT : (int64_t)number;
    return true;
}

bool mt_read_truncate(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_int_t count = json_integer_value(value);

    if (!json_is_integer(value))
        return mt_failure_type(why, name, value, "an integer");
    if (count < MT_TRUNCATE_FIT || count == 0 || count > MT_LIMIT_CONTEXT)
        return mt_failure_value(why, name,
                                "is %" JSON_INTEGER_FORMAT ": send a value from 1 to %d, or -1 for what fits", count,
                                MT_LIMIT_CONTEXT);
    ask->truncate = count;
    return true;
}

bool mt_read_truncation_side(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *side = mt_json_word(value);

    if (!side || (strcmp(side, "left") != 0 && strcmp(side, "right") != 0))
        return mt_failure_value(why, name, "is neither \"left\" nor \"right\": send one");
    ask->side = *side == 'l' ? MT_TRUNCATE_LEFT : MT_TRUNCATE_RIGHT;
    return true;
}

/* Whether a key of "logit_bias" is a token id. */
static bool read_key(const char *key, unsigned long *id)
{
    char *end;

    errno = 0;
    *id = strtoul(key, &end, 10);
    return *key >= '0' && *key <= '9' && !*end && !errno && *id < MT_LIMIT_VOCAB;
}

/* Refuses keys that are no token ids: names the first of them. */
static bool check_keys(const char *name, json_t *object, mt_failure *why)
{
    enum { NAMED = 4 };
    char keys[NAMED * 48] = "";
    size_t count = 0, len = 0;
    const char *key;
    unsigned long id;
    json_t *value;

    json_object_foreach(object, key, value)
        if (!read_key(key, &id) && count++ < NAMED)
            len += (size_t)snprintf(keys + len, sizeof(keys) - len, "%s\"%.40s\"", len ? ", " : "", key);
    return count == 0 || mt_failure_value(why, name, "has the %s %s%s: send token ids", count > 1 ? "keys" : "key",
                                          keys, count > NAMED ? " and others" : "");
}

static bool read_bias_entry(mt_logit_bias *out, const char *name, const char *key, const json_t *value, mt_failure *why)
{
    unsigned long id;
    char given[MT_JSON_SHOWN];

    read_key(key, &id);
    if (!json_is_number(value))
        return mt_failure_set(why, 400, "invalid_type", name, "the value of token %lu in \"%s\" is %s: send a number",
                              id, name, mt_json_kind(value));
    if (!(json_number_value(value) >= -100 && json_number_value(value) <= 100))
        return mt_failure_set(why, 400, "invalid_value", name,
                              "the value of token %lu in \"%s\" is %s: send a number from -100 to 100", id, name,
                              mt_json_shown(value, given));
    *out = (mt_logit_bias){.id = (uint32_t)id, .bias = (float)json_number_value(value)};
    return true;
}

bool mt_read_bias(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const size_t count = json_object_size(value);
    mt_logit_bias *bias;

    if (!json_is_object(value))
        return mt_failure_type(why, name, value, "an object from token ids to numbers");
    if (count > MT_LIMIT_LOGIT_BIAS)
        return mt_failure_value(why, name, "has %zu entries: send at most %d", count, MT_LIMIT_LOGIT_BIAS);
    bias = mt_arena_alloc(ask->arena, count * sizeof(*bias));
    if (!bias)
        return mt_failure_memory(why, name);
    /* not const for jansson's iterators; nothing is changed */
    json_t *object = (json_t *)(uintptr_t)value;
    if (!check_keys(name, object, why))
        return false;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
        if (!read_bias_entry(bias++, name, json_object_iter_key(at), json_object_iter_value(at), why))
            return false;
    ask->sampling.bias = bias - count;
    ask->sampling.bias_count = count;
    return true;
}

/* The name that llama.cpp and Ollama have for repetition_penalty. There penalties look back 64 tokens unless
   repeat_last_n says otherwise. */
static bool read_repeat_penalty(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    enum { USUAL = 64 }; /* tokens */
    const mt_field row = MT_FIELD_LIKE_ROW(name, "repetition_penalty");

    ask->sampling.penalty_window = USUAL;
    return mt_field_read_value(ask, &row, value, why);
}

/* How many tokens penalties look back: -1: all (penalty_window 0); 0: none, so penalties are switched off. In the table
   this row stands after the penalties, so that they have been read. */
static bool read_repeat_last(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_int_t last = json_integer_value(value);

    if (!json_is_integer(value) || last < -1 || last > MT_LIMIT_CONTEXT)
        return mt_failure_value(why, name, "is no integer from -1 to %d: send one", MT_LIMIT_CONTEXT);
    ask->sampling.penalty_window = last < 0 ? 0 : (uint32_t)last;
    if (last == 0) {
        ask->sampling.repetition_penalty = 1;
        ask->sampling.presence_penalty = ask->sampling.frequency_penalty = 0;
    }
    return true;
}

static bool read_stream_option(const json_t *options, const char *name, bool *out, mt_failure *why)
{
    const json_t *value = json_object_get(options, name);
    char param[MT_FAILURE_PARAM];

    *out = json_is_true(value);
    if (!value || json_is_null(value) || json_is_boolean(value))
        return true;
    snprintf(param, sizeof(param), "stream_options.%s", name);
    return mt_failure_set(why, 400, "invalid_type", param, "\"%s\" is %s: send true or false", name,
                          mt_json_kind(value));
}

/* As in vLLM, usage in every chunk needs include_usage, too. In the table this row stands after "stream", so that it
   has been read. */
static bool read_stream_options(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    bool continuous;

    if (!json_is_object(value))
        return mt_failure_type(why, name, value, "an object");
    if (!ask->form.stream)
        return mt_failure_value(why, name, "is given without \"stream\": send that as true, or leave it out");
    if (!read_stream_option(value, "include_usage", &ask->form.include_usage, why) ||
        !read_stream_option(value, "continuous_usage_stats", &continuous, why))
        return false;
    ask->form.continuous_usage = continuous && ask->form.include_usage;
    return true;
}

static const mt_field fields[] = {
    MT_FIELD_STRING_ROW("model", model),
    MT_FIELD_STRING_ROW("user", user),
    MT_FIELD_STRING_ROW("cache_salt", cache_salt),
    MT_FIELD_BOOL_ROW("stream", form.stream),
    MT_FIELD_OTHER_ROW("stream_options", read_stream_options),
    MT_FIELD_OTHER_ROW("response_format", mt_read_response_format),
    MT_FIELD_OTHER_ROW("guided_json", mt_read_guided),
    MT_FIELD_OTHER_ROW("guided_regex", mt_read_guided),
    MT_FIELD_OTHER_ROW("guided_choice", mt_read_guided),
    MT_FIELD_OTHER_ROW("guided_grammar", mt_read_guided),
    MT_FIELD_OTHER_ROW("structured_outputs", mt_read_structured),
    MT_FIELD_OTHER_ROW("grammar", mt_read_plain_format),
    MT_FIELD_OTHER_ROW("regex", mt_read_plain_format),
    MT_FIELD_OTHER_ROW("ebnf", mt_read_plain_format),
    MT_FIELD_OTHER_ROW("json_schema", mt_read_plain_format),
    MT_FIELD_INT_ROW("n", n, 1, MT_LIMIT_CHOICES),
    MT_FIELD_INT_ROW("priority", priority, INT32_MIN, INT32_MAX),
    MT_FIELD_OTHER_ROW("max_tokens", mt_read_max_tokens),
    MT_FIELD_OTHER_ROW("n_predict", mt_read_max_tokens),
    MT_FIELD_INT_ROW("min_tokens", sampling.min_tokens, 0, MT_LIMIT_CONTEXT),
    MT_FIELD_INT_ROW("repeat_limit", repeat_limit, 0, MT_LIMIT_CONTEXT),
    MT_FIELD_FLOAT_ROW("temperature", sampling.temperature, 0, 2),
    MT_FIELD_FLOAT_ROW("top_p", sampling.top_p, 0, 1),
    MT_FIELD_INT_ROW("top_k", sampling.top_k, -1, INT32_MAX),
    MT_FIELD_FLOAT_ROW("min_p", sampling.min_p, 0, 1),
    MT_FIELD_FLOAT_ROW("typical_p", sampling.typical_p, 0, 1),
    MT_FIELD_FLOAT_ROW("presence_penalty", sampling.presence_penalty, -2, 2),
    MT_FIELD_FLOAT_ROW("frequency_penalty", sampling.frequency_penalty, -2, 2),
    MT_FIELD_FLOAT_ROW("repetition_penalty", sampling.repetition_penalty, 0.01, 100),
    MT_FIELD_OTHER_ROW("repeat_penalty", read_repeat_penalty),
    MT_FIELD_OTHER_ROW("repeat_last_n", read_repeat_last),
    MT_FIELD_OTHER_ROW("logit_bias", mt_read_bias),
    MT_FIELD_OTHER_ROW("seed", mt_read_seed),
    MT_FIELD_OTHER_ROW("stop", mt_read_stop),
    MT_FIELD_OTHER_ROW("stop_token_ids", read_stop_ids),
    MT_FIELD_OTHER_ROW("allowed_token_ids", read_allowed_ids),
    MT_FIELD_OTHER_ROW("bad_words", read_bad_words),
    MT_FIELD_OTHER_ROW("truncate_prompt_tokens", mt_read_truncate),
    MT_FIELD_OTHER_ROW("truncation_side", mt_read_truncation_side),
    MT_FIELD_BOOL_ROW("ignore_eos", sampling.ignore_eos),
    MT_FIELD_BOOL_ROW("timings_per_token", form.timings),
    MT_FIELD_BOOL_ROW("skip_special_tokens", skip_special_tokens),
    MT_FIELD_BOOL_ROW("include_stop_str_in_output", include_stop),
    MT_FIELD_INT_ROW("prompt_logprobs", form.prompt_logprobs, 0, MT_LIMIT_TOP_LOGPROBS),
    MT_FIELD_BOOL_ROW("return_token_ids", form.return_token_ids),
    MT_FIELD_BOOL_ROW("return_tokens_as_token_ids", form.tokens_as_ids),
};
const mt_field_table mt_fields_common = {fields, MT_COUNT(fields)};
