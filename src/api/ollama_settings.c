/* Translates the settings of Ollama's requests into OpenAI's fields, so that the same tables with the same ranges read
   both. What jansson returns is mostly not looked at: the callers in ollama_read.c notice by mt_json_guard_end where it
   had no memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/ollama.h"
#include "base/duration.h"
#include "base/json_tree.h"
#include "base/words.h"

/* The members of "options". Those without a name of ours are about how to compute, which the operator decides; they do
   not change answers. */
static const struct {
    const char *theirs, *ours;
} options[] = {
    {"num_predict", "max_tokens"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"typical_p", "typical_p"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"repeat_penalty", "repeat_penalty"},
    {"repeat_last_n", "repeat_last_n"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"num_ctx", NULL},
    {"num_keep", NULL},
    {"num_batch", NULL},
    {"num_gpu", NULL},
    {"main_gpu", NULL},
    {"num_thread", NULL},
    {"use_mmap", NULL},
    {"draft_num_predict", NULL},
};

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
    const char *names[MT_COUNT(options) + 1] = {NULL};

    for (size_t i = 0; i < MT_COUNT(options); i++)
        names[i] = options[i].theirs;
    mt_fields_note(ask, prefix, given, NULL, 0, (const char *const *const[3]){names});
}

bool mt_ollama_options_check(mt_ask *ask, mt_failure *why)
{
    const json_t *given = mt_body_get(ask->body, "options");

    if (given && !json_is_object(given))
        return mt_failure_type(why, "options", given, "an object");
    note_options(ask, "options.", given);
    return true;
}

/* Puts options under the names of ours. */
static void translate(const json_t *given, json_t *to)
{
    for (size_t i = 0; i < MT_COUNT(options); i++)
        if (options[i].ours && mt_body_get(given, options[i].theirs))
            json_object_set_new(to, options[i].ours, mt_body_share(mt_body_get(given, options[i].theirs)));
    if (json_integer_value(json_object_get(to, "seed")) == -1) /* a random seed */
        json_object_del(to, "seed");
    if (json_number_value(json_object_get(to, "max_tokens")) < 0) /* any negative number: no limit; here only -1 is */
        json_object_set_new(to, "max_tokens", json_integer(-1));
}

static bool read_options(mt_ask *ask, json_t *to, mt_failure *why)
{
    if (!mt_ollama_options_check(ask, why))
        return false;
    translate(mt_body_get(ask->body, "options"), to);
    return true;
}

bool mt_ollama_parameters(const json_t *parameters, json_t *to, mt_failure *why)
{
    if (!json_is_object(parameters))
        return mt_failure_type(why, "parameters", parameters, "an object");
    translate(parameters, to);
    return true;
}

void mt_ollama_parameters_note(mt_ask *ask, const json_t *parameters)
{
    note_options(ask, "parameters.", parameters);
}

static bool read_format(const json_t *format, json_t *to, mt_failure *why)
{
    const char *word = mt_json_word(format);

    if (!format || (word && !*word))
        return true;
    if (json_is_object(format))
        return json_object_set_new(to, "response_format",
                                   json_pack("{s:s, s:{s:s, s:O}}", "type", "json_schema", "json_schema", "name",
                                             "answer", "schema", format)) == 0 ||
               mt_failure_memory(why, "format");
    if (word && strcmp(word, "json") == 0)
        return json_object_set_new(to, "response_format", json_pack("{s:s}", "type", "json_object")) == 0 ||
               mt_failure_memory(why, "format");
    return mt_failure_value(why, "format", "is neither \"json\" nor a JSON schema: send one of them, or leave it out");
}

static bool read_think(const json_t *think, json_t *to, mt_failure *why)
{
    static const char *const levels[] = {"low", "medium", "high", "max", NULL};

    if (!think)
        return true;
    if (mt_words_have(levels, mt_json_word(think)))
        json_object_set_new(to, "reasoning_effort", mt_body_share(think));
    else if (!json_is_boolean(think))
        return mt_failure_value(why, "think",
                                "is none of true, false, \"low\", \"medium\", \"high\" and \"max\": send one");
    json_object_set_new(to, "enable_thinking", json_boolean(!json_is_false(think)));
    return true;
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

/* OpenAI's chat has a boolean and top_logprobs; a completion has only the number. */
static void share_logprobs(const json_t *body, json_t *to, bool chat)
{
    const json_t *wanted = mt_body_get(body, "logprobs"), *top = mt_body_get(body, "top_logprobs");

    if (chat)
        mt_body_copy(to, body, "logprobs");
    if (json_is_true(wanted) && (top || !chat))
        json_object_set_new(to, chat ? "top_logprobs" : "logprobs", top ? mt_body_share(top) : json_integer(0));
}

bool mt_ollama_settings(mt_ask *ask, json_t *to, bool chat, mt_failure *why)
{
    const json_t *body = ask->body, *stream = mt_body_get(body, "stream");

    mt_body_copy(to, body, "model");
    json_object_set_new(to, "stream", stream ? mt_body_share(stream) : json_true());
    share_logprobs(body, to, chat);
    return mt_ollama_keep(ask, why) && read_options(ask, to, why) &&
           read_format(mt_body_get(body, "format"), to, why) &&
           (!chat || read_think(mt_body_get(body, "think"), to, why));
}

void mt_ollama_rename(mt_failure *why)
{
    char name[MT_FAILURE_PARAM];

    if (strcmp(why->param, "response_format") == 0)
        mt_failure_rename(why, "format");
    for (size_t i = 0; i < MT_COUNT(options); i++)
        if (options[i].ours && strcmp(why->param, options[i].ours) == 0) {
            snprintf(name, sizeof(name), "options.%s", options[i].theirs);
            mt_failure_rename(why, name);
            return;
        }
}
