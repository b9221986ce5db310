/* Reads the bodies of POST /completion and POST /infill, as llama.cpp's server has them. Most fields have
   the same meaning in every dialect, and fields_common.c reads them; this file reads the fields that mean something
   else in llama.cpp, and refuses those that motet does not support. */
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "api/llama.h"
#include "api/openai_prompt.h"
#include "base/json_tree.h"
#include "base/words.h"
#include "sample/limits.h"

/* -1, also as an integer without a sign, is any seed. */
static bool read_seed(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_integer(value))
        return mt_failure_type(why, name, value, "an integer");
    ask->seeded = json_integer_value(value) != -1 && json_integer_value(value) != UINT32_MAX;
    ask->sampling.seed = (uint64_t)json_integer_value(value);
    return true;
}

/* Below 0 the likeliest token is taken, as with 0. */
static bool read_temperature(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    enum { MOST = 100 };
    const double number = json_number_value(value);
    char given[MT_JSON_SHOWN];

    if (!json_is_number(value))
        return mt_failure_type(why, name, value, "a number");
    if (!(number <= MOST))
        return mt_failure_value(why, name, "is %s: send a number up to %d", mt_json_shown(value, given), MOST);
    ask->sampling.temperature = number < 0 ? 0 : (float)number;
    return true;
}

/* How many of the likeliest tokens are told with each token; 0: none, and no logprobs either. */
static bool read_probs(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_int_t count = json_integer_value(value);

    if (!json_is_integer(value) || count < 0 || count > MT_LIMIT_TOP_LOGPROBS)
        return mt_failure_value(why, name, "is no integer from 0 to %d: send one", MT_LIMIT_TOP_LOGPROBS);
    ask->sampling.logprobs = count > 0 ? (int32_t)count : -1;
    return true;
}

/* Puts [id, bias] into an object with ids as keys. A bias of false forbids the token. */
static bool add_bias(json_t *to, const char *name, const json_t *pair, mt_failure *why)
{
    enum { NEVER = -100 };
    const json_t *id = json_array_get(pair, 0), *bias = json_array_get(pair, 1);
    char key[32];

    if (json_array_size(pair) != 2)
        return mt_failure_value(why, name, "has an entry that is no pair of a token id and a number: send such");
    if (!json_is_integer(id))
        return mt_failure_field(why, "invalid_type", name, "has %s where a token id should be: send ids",
                                mt_json_kind(id));
    snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    json_object_set_new(to, key, json_is_false(bias) ? json_integer(NEVER) : mt_body_share(bias));
    return true;
}

/* An object as OpenAI has it, or a list of pairs. */
static bool read_bias(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    json_t *made;

    if (!json_is_array(value))
        return mt_read_bias(ask, name, value, why);
    if (json_array_size(value) > MT_LIMIT_LOGIT_BIAS)
        return mt_failure_value(why, name, "has %zu entries: send at most %d", json_array_size(value),
                                MT_LIMIT_LOGIT_BIAS);
    made = json_object();
    mt_ask_own(ask, made);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!add_bias(made, name, json_array_get(value, i), why))
            return false;
    return mt_read_bias(ask, name, made, why);
}

/* The samplers in the order in which they are applied here (docs/sampling.md). Bits of a set. */
enum { PENALTIES = 1, TEMPERATURE = 2, MIN_P = 4, TOP_K = 8, TOP_P = 16, TYPICAL = 32 };

static const struct {
    const char *name;
    unsigned bit; /* 0: it is never used, since the fields that turn it on are refused */
} samplers[] = {
    {"penalties", PENALTIES}, {"temperature", TEMPERATURE}, {"min_p", MIN_P}, {"top_k", TOP_K}, {"top_p", TOP_P},
    {"typ_p", TYPICAL},       {"typical_p", TYPICAL},       {"dry", 0},       {"xtc", 0},       {"top_n_sigma", 0}};

/* The samplers that change something with these settings. */
static unsigned active(const mt_sample_settings *s)
{
    return (mt_sample_settings_penalise(s) ? PENALTIES : 0u) | (s->temperature != 1 ? TEMPERATURE : 0u) |
           (s->min_p > 0 ? MIN_P : 0u) | (s->top_k > 0 ? TOP_K : 0u) | (s->top_p < 1 ? TOP_P : 0u) |
           (s->typical_p < 1 ? TYPICAL : 0u);
}

static void turn_off(mt_sample_settings *s, unsigned off)
{
    if (off & PENALTIES) {
        s->repetition_penalty = 1;
        s->presence_penalty = s->frequency_penalty = 0;
    }
    if (off & TEMPERATURE)
        s->temperature = 1;
    if (off & MIN_P)
        s->min_p = 0;
    if (off & TOP_K)
        s->top_k = 0;
    if (off & TOP_P)
        s->top_p = 1;
    if (off & TYPICAL)
        s->typical_p = 1;
}

/* A sampler that is not in the list is not used. Their order is always the same here: where the list has another for
   those that change something, the client is told. In the table this row stands last, so that all settings were
   read. */
static bool read_samplers(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    unsigned listed = 0, last = 0;
    bool ordered = true;

    if (!json_is_array(value))
        return mt_failure_type(why, name, value, "a list of names");
    if (json_array_size(value) == 0)
        return true;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *word = mt_json_word(json_array_get(value, i));
        size_t k = 0;

        while (k < MT_COUNT(samplers) && !(word && strcmp(word, samplers[k].name) == 0))
            k++;
        if (k == MT_COUNT(samplers) || (listed & samplers[k].bit))
            return mt_failure_unsupported(
                why, name, "has \"%.40s\", which is unknown here or comes twice: leave it out", word ? word : "");
        listed |= samplers[k].bit;
        if (samplers[k].bit & active(&ask->sampling)) {
            ordered = ordered && samplers[k].bit > last;
            last = samplers[k].bit;
        }
    }
    turn_off(&ask->sampling, ~listed);
    if (!ordered && !mt_sample_settings_greedy(&ask->sampling))
        mt_ask_ignore(ask, "the order of samplers");
    return true;
}

static const mt_field fields[] = {
    MT_FIELD_OTHER_ROW("temperature", read_temperature),
    MT_FIELD_OTHER_ROW("seed", read_seed),
    MT_FIELD_OTHER_ROW("n_probs", read_probs),
    MT_FIELD_OTHER_ROW("logit_bias", read_bias),
    MT_FIELD_INT_ROW("n_cmpl", n, 1, MT_LIMIT_CHOICES),
    MT_FIELD_BOOL_ROW("return_tokens", form.return_token_ids),
    MT_FIELD_BOOL_ROW("timings_per_token", form.timings_each),
    MT_FIELD_REFUSED_ROW("n_indent", 0),
    MT_FIELD_REFUSED_ROW("min_keep", 0),
    MT_FIELD_REFUSED_ROW("post_sampling_probs", 0),
    MT_FIELD_REFUSED_ROW("response_fields", 0),
    MT_FIELD_OTHER_ROW("samplers", read_samplers),
};

/* Names of fields that are read by the table above and by no other. */
static const char *const own[] = {
    "temperature",       "seed",     "n_probs",  "logit_bias",          "n_cmpl",          "samplers", "return_tokens",
    "timings_per_token", "n_indent", "min_keep", "post_sampling_probs", "response_fields", NULL};

/* Fields that are read elsewhere, and fields that change nothing: details of samplers that are refused where they are
   turned on, and how llama.cpp computes. */
static const char *const elsewhere[] = {
    "prompt",        "input_prefix",       "input_suffix",       "input_extra",
    "dry_base",      "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers",
    "xtc_threshold", "mirostat_tau",       "mirostat_eta",       "dynatemp_exponent",
    "n_cache_reuse", "n_discard",          "sse_ping_interval",  NULL};

/* The settings as the answer tells them, by llama.cpp's names. */
static json_t *settings_of(const mt_ask *ask)
{
    enum { ANY_SEED = -1 };
    const mt_sample_settings *s = &ask->sampling;
    const json_int_t most = ask->max_tokens >= 0 ? ask->max_tokens : ask->default_max_tokens;
    const bool all = ask->max_tokens == MT_LIMIT_CONTEXT || (ask->max_tokens < 0 && most == 0);
    json_t *stops = json_array();

    for (size_t i = 0; i < ask->stop_count; i++)
        json_array_append_new(stops, json_stringn(ask->stops[i].str, ask->stops[i].len));
    return json_pack(
        "{s:I, s:I, s:f, s:i, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:o, s:b, s:b, s:i, s:I, s:I, s:b}", "n_predict",
        all ? (json_int_t)-1 : most, "seed", ask->seeded ? (json_int_t)s->seed : (json_int_t)ANY_SEED, "temperature",
        (double)s->temperature, "top_k", (int)s->top_k, "top_p", (double)s->top_p, "min_p", (double)s->min_p,
        "typical_p", (double)s->typical_p, "repeat_last_n",
        s->penalty_window ? (json_int_t)s->penalty_window : (json_int_t)-1, "repeat_penalty",
        (double)s->repetition_penalty, "presence_penalty", (double)s->presence_penalty, "frequency_penalty",
        (double)s->frequency_penalty, "stop", stops, "ignore_eos", s->ignore_eos, "stream", ask->form.stream, "n_probs",
        s->logprobs < 0 ? 0 : (int)s->logprobs, "min_tokens", (json_int_t)s->min_tokens, "n_cmpl", (json_int_t)ask->n,
        "timings_per_token", ask->form.timings_each);
}

static bool read_fields(mt_ask *ask, mt_failure *why)
{
    const mt_field_table tables[] = {mt_fields_common, mt_fields_refused};
    const mt_field_table mine = {fields, MT_COUNT(fields)};

    if (!mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, own, why) || !mt_fields_read_table(ask, &mine, why))
        return false;
    ask->form.timings = ask->form.prompt_text = true;
    ask->form.return_token_ids = ask->form.return_token_ids || ask->form.stream;
    ask->extra = settings_of(ask);
    return true;
}

/* Ends what mt_json_guard_begin began. Returns ok, or false with *why. */
static bool end_guard(bool ok, mt_failure *why)
{
    return mt_json_guard_end() ? ok : mt_failure_memory(why, NULL);
}

bool mt_llama_read_completion(mt_ask *ask, mt_failure *why)
{
    mt_json_guard_begin();
    return end_guard(
        read_fields(ask, why) && mt_openai_prompts_read(ask, "prompt", json_object_get(ask->body, "prompt"), why), why);
}

/* Reads a text that may be missing, but for which there is one at least. */
static bool read_text(const mt_ask *ask, const char *name, bool must, mt_chat_text *out, mt_failure *why)
{
    const json_t *value = mt_body_get(ask->body, name);

    *out = (mt_chat_text){.data = NULL};
    if (!value && !must)
        return true;
    *out = mt_chat_text_of(value);
    return json_is_string(value) || mt_failure_type(why, name, value, "a string");
}

static bool check_extra(mt_ask *ask, const json_t *extra, mt_failure *why)
{
    static const char name[] = "input_extra";
    static const char *const members[] = {"filename", "text", NULL};

    if (extra && !json_is_array(extra))
        return mt_failure_type(why, name, extra, "a list of objects with \"filename\" and \"text\"");
    for (size_t i = 0; i < json_array_size(extra); i++) {
        const json_t *file = json_array_get(extra, i), *filename = mt_body_get(file, "filename");

        if (!json_is_string(json_object_get(file, "text")) || (filename && !json_is_string(filename)))
            return mt_failure_value(
                why, name, "has an entry without a \"text\", or whose \"filename\" is no string: send both as strings");
        mt_fields_note(ask, "input_extra[].", file, NULL, 0, (const char *const *const[3]){members});
    }
    return true;
}

static bool read_gap(mt_ask *ask, mt_failure *why)
{
    mt_ask_infill *gap = mt_arena_alloc(ask->arena, sizeof(*gap));

    ask->prompts = mt_arena_alloc(ask->arena, sizeof(*ask->prompts));
    if (!gap || !ask->prompts)
        return mt_failure_memory(why, NULL);
    *gap = (mt_ask_infill){.field = "input_suffix", .extra = mt_body_get(ask->body, "input_extra")};
    ask->prompts[0].infill = gap;
    ask->prompt_count = 1;
    return read_text(ask, "input_prefix", true, &gap->prefix, why) &&
           read_text(ask, "input_suffix", true, &gap->suffix, why) &&
           read_text(ask, "prompt", false, &gap->prompt, why) && check_extra(ask, gap->extra, why);
}

bool mt_llama_read_infill(mt_ask *ask, mt_failure *why)
{
    mt_json_guard_begin();
    return end_guard(read_fields(ask, why) && read_gap(ask, why), why);
}
