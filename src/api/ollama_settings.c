/* Reads the settings of Ollama's requests. Those that are like OpenAI's fields use the same rows, so both have the same
   ranges. What jansson returns is mostly not looked at: the callers in ollama_read.c notice by mt_json_guard_end where
   it had no memory. */
#include <math.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/ollama.h"
#include "base/duration.h"
#include "base/json_tree.h"
#include "base/words.h"
#include "weights/limits.h"

/* Any negative number means no limit. */
static bool read_predict(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (json_number_value(value) >= 0)
        return mt_read_max_tokens(ask, name, value, why);
    ask->max_tokens = MT_LIMIT_CONTEXT;
    return true;
}

/* -1 means a random seed. */
static bool read_seed(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    return json_integer_value(value) == -1 || mt_read_seed(ask, name, value, why);
}

/* The members of "options". */
static const mt_field options[] = {
    MT_FIELD_OTHER_ROW("num_predict", read_predict),
    MT_FIELD_LIKE_ROW("temperature", "temperature"),
    MT_FIELD_LIKE_ROW("top_k", "top_k"),
    MT_FIELD_LIKE_ROW("top_p", "top_p"),
    MT_FIELD_LIKE_ROW("min_p", "min_p"),
    MT_FIELD_LIKE_ROW("typical_p", "typical_p"),
    MT_FIELD_OTHER_ROW("seed", read_seed),
    MT_FIELD_LIKE_ROW("stop", "stop"),
    MT_FIELD_LIKE_ROW("presence_penalty", "presence_penalty"),
    MT_FIELD_LIKE_ROW("frequency_penalty", "frequency_penalty"),
    MT_FIELD_LIKE_ROW("repeat_penalty", "repeat_penalty"),
    MT_FIELD_LIKE_ROW("repeat_last_n", "repeat_last_n"), /* after the penalties, as in mt_fields_common */
};
static const mt_field_table option_table = {options, MT_COUNT(options)};

/* Members that are about how to compute, which the operator decides; they do not change answers. */
static const char *const of_operator[] = {"num_ctx",    "num_keep", "num_batch",         "num_gpu", "main_gpu",
                                          "num_thread", "use_mmap", "draft_num_predict", NULL};

void mt_ollama_begin(mt_ask *ask, const char *const *names)
{
    const json_t *model = json_object_get(ask->body, "model");

    mt_fields_note(ask, "", ask->body, NULL, 0, (const char *const *const[3]){names});
    ask->extra = json_object();
    if (json_is_string(model))
        json_object_set_new(ask->extra, "model", mt_body_share(model));
}

/* prefix: before the names of unknown ones. */
static void note_options(mt_ask *ask, const char *prefix, const json_t *given)
{
    mt_fields_note(ask, prefix, given, &option_table, 1, (const char *const *const[3]){of_operator});
}

bool mt_ollama_options_check(mt_ask *ask, mt_failure *why)
{
    const json_t *given = mt_body_get(ask->body, "options");

    if (given && !json_is_object(given))
        return mt_failure_type(why, "options", given, "an object");
    note_options(ask, "options.", given);
    return true;
}

bool mt_ollama_parameters(mt_ask *ask, const json_t *parameters, mt_failure *why)
{
    if (!json_is_object(parameters))
        return mt_failure_type(why, "parameters", parameters, "an object");
    return mt_fields_read_object(ask, &option_table, "parameters.", parameters, why);
}

void mt_ollama_parameters_note(mt_ask *ask, const json_t *parameters)
{
    note_options(ask, "parameters.", parameters);
}

static bool read_format(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *word = mt_json_word(value);

    if (word && !*word)
        return true;
    if (json_is_object(value))
        return mt_read_format(ask, name, "json_schema", value, false, why);
    if (word && strcmp(word, "json") == 0)
        return mt_read_format(ask, name, "json_object", NULL, false, why);
    return mt_failure_value(why, name, "is neither \"json\" nor a JSON schema: send one of them, or leave it out");
}

static bool read_think(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const char *const levels[] = {"low", "medium", "high", "max", NULL};

    if (mt_words_have(levels, mt_json_word(value)))
        ask->chat.effort = value;
    else if (!json_is_boolean(value))
        return mt_failure_value(why, name,
                                "is none of true, false, \"low\", \"medium\", \"high\" and \"max\": send one");
    ask->chat.thinking = json_boolean(!json_is_false(value));
    return !ask->chat.effort || mt_read_effort(ask, name, value, why);
}

/* keep_alive in seconds: a number, or a text such as "5m"; below 0: for ever. NaN: it is neither, or missing. */
static double seconds_of(const json_t *value)
{
    double seconds;

    if (json_is_string(value))
        return mt_duration_parse(json_string_value(value), &seconds) ? seconds : NAN;
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool mt_ollama_keep(mt_ask *ask, mt_failure *why)
{
    const json_t *value = mt_body_get(ask->body, "keep_alive");

    ask->keep_alive = seconds_of(value);
    return !value || !isnan(ask->keep_alive) ||
           mt_failure_value(why, "keep_alive", "is neither a number of seconds nor a time such as \"5m\": send one");
}

bool mt_ollama_unloads(const json_t *body, const char *field)
{
    const json_t *said = mt_body_get(body, field);

    return seconds_of(mt_body_get(body, "keep_alive")) == 0 &&
           (json_is_string(said) ? json_string_length(said) == 0 : json_array_size(said) == 0);
}

/* The number of alternatives, ignored unless "logprobs" is true. The row of that field stands before this one's. */
static bool read_top_logprobs(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    return ask->sampling.logprobs < 0 || mt_read_top_logprobs(ask, name, value, why);
}

bool mt_ollama_settings(mt_ask *ask, mt_failure *why)
{
    static const mt_field rows[] = {
        MT_FIELD_LIKE_ROW("model", "model"),
        MT_FIELD_LIKE_ROW("stream", "stream"),
        MT_FIELD_OTHER_ROW("logprobs", mt_read_logprobs),
        MT_FIELD_OTHER_ROW("top_logprobs", read_top_logprobs),
        MT_FIELD_OTHER_ROW("format", read_format),
    };
    static const mt_field think[] = {MT_FIELD_OTHER_ROW("think", read_think)};

    ask->form.stream = true;
    return mt_ollama_keep(ask, why) && mt_ollama_options_check(ask, why) &&
           mt_fields_read_object(ask, &option_table, "options.", mt_body_get(ask->body, "options"), why) &&
           mt_fields_read_table(ask, &(mt_field_table){rows, MT_COUNT(rows)}, why) &&
           (!ask->is_chat || mt_fields_read_table(ask, &(mt_field_table){think, MT_COUNT(think)}, why));
}
