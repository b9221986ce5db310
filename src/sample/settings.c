/* Sampling settings: defaults and checks (settings.h). */
#include "sample/settings.h"

#include "sample/limits.h"

void mt_sample_settings_init(mt_sample_settings *s)
{
    *s = (mt_sample_settings){.temperature = 1, .top_p = 1, .typical_p = 1, .repetition_penalty = 1, .logprobs = -1};
}

/* Written so that NaN fails. */
static bool check_number(const char *field, float value, float low, float high, mt_error *err)
{
    if (value >= low && value <= high)
        return true;
    mt_fail(err, MT_E_INVALID, "\"%s\" is %g: give a number from %g to %g", field, (double)value, (double)low,
            (double)high);
    return mt_fail_about(err, field);
}

static bool check_integer(const char *field, int64_t value, int64_t low, int64_t high, mt_error *err)
{
    if (value >= low && value <= high)
        return true;
    mt_fail(err, MT_E_INVALID, "\"%s\" is %lld: give an integer from %lld to %lld", field, (long long)value,
            (long long)low, (long long)high);
    return mt_fail_about(err, field);
}

static bool check_length(const char *field, size_t count, size_t limit, mt_error *err)
{
    if (count <= limit)
        return true;
    mt_fail(err, MT_E_INVALID, "\"%s\" has %zu entries: give at most %zu", field, count, limit);
    return mt_fail_about(err, field);
}

static bool check_id(const char *field, uint32_t id, size_t vocab, mt_error *err)
{
    if (id < vocab)
        return true;
    mt_fail(err, MT_E_INVALID, "\"%s\" names token %u of a vocabulary of %zu: give ids from 0 to %zu", field, id, vocab,
            vocab - 1);
    return mt_fail_about(err, field);
}

static bool check_bias(const mt_sample_settings *s, size_t vocab, mt_error *err)
{
    if (!check_length("logit_bias", s->bias_count, MT_LIMIT_LOGIT_BIAS, err))
        return false;
    for (size_t i = 0; i < s->bias_count; i++)
        if (!check_id("logit_bias", s->bias[i].id, vocab, err) ||
            !check_number("logit_bias", s->bias[i].bias, -100, 100, err))
            return false;
    return true;
}

static bool check_stops(const mt_sample_settings *s, size_t vocab, mt_error *err)
{
    if (!check_length("stop_token_ids", s->stop_count, MT_LIMIT_STOP_IDS, err))
        return false;
    for (size_t i = 0; i < s->stop_count; i++)
        if (!check_id("stop_token_ids", s->stop_ids[i], vocab, err))
            return false;
    return true;
}

static bool check_bad(const mt_sample_settings *s, size_t vocab, mt_error *err)
{
    if (!check_length("bad_words", s->bad_count, 2 * (size_t)MT_LIMIT_BAD_WORDS, err))
        return false;
    for (size_t i = 0; i < s->bad_count; i++) {
        if (s->bad[i].count == 0 || s->bad[i].count > MT_LIMIT_BAD_TOKENS)
            return mt_fail(err, MT_E_INVALID, "\"bad_words\" has a word of %zu tokens: give words of at most %d",
                           s->bad[i].count, MT_LIMIT_BAD_TOKENS) ||
                   mt_fail_about(err, "bad_words");
        for (size_t k = 0; k < s->bad[i].count; k++)
            if (!check_id("bad_words", s->bad[i].ids[k], vocab, err))
                return false;
    }
    return true;
}

static bool check_logprob_ids(const mt_sample_settings *s, size_t vocab, mt_error *err)
{
    for (size_t i = 0; i < s->logprob_count; i++)
        if (s->logprob_ids[i] >= vocab)
            return mt_fail(err, MT_E_INVALID,
                           "\"logprob_token_ids\": Token ID %u is out of vocabulary: send ids from 0 to %zu",
                           s->logprob_ids[i], vocab - 1) ||
                   mt_fail_about(err, "logprob_token_ids");
    return true;
}

bool mt_sample_settings_check(const mt_sample_settings *s, size_t vocab, mt_error *err)
{
    return check_number("temperature", s->temperature, 0, 100, err) && check_number("top_p", s->top_p, 0, 1, err) &&
           check_number("min_p", s->min_p, 0, 1, err) && check_number("typical_p", s->typical_p, 0, 1, err) &&
           check_number("presence_penalty", s->presence_penalty, -2, 2, err) &&
           check_number("frequency_penalty", s->frequency_penalty, -2, 2, err) &&
           check_number("repetition_penalty", s->repetition_penalty, 0.01f, 100, err) &&
           check_integer("top_k", s->top_k, -1, INT32_MAX, err) &&
           check_integer("logprobs", s->logprobs, -1, MT_LIMIT_TOP_LOGPROBS, err) && check_logprob_ids(s, vocab, err) &&
           check_integer("min_tokens", s->min_tokens, 0, MT_LIMIT_CONTEXT, err) && check_bias(s, vocab, err) &&
           check_stops(s, vocab, err) && check_bad(s, vocab, err);
}

bool mt_sample_settings_greedy(const mt_sample_settings *s)
{
    return s->temperature < MT_SAMPLE_GREEDY_BELOW;
}

bool mt_sample_settings_penalise_prompt(const mt_sample_settings *s)
{
    return s->repetition_penalty != 1.0f;
}

bool mt_sample_settings_penalise(const mt_sample_settings *s)
{
    return s->presence_penalty != 0.0f || s->frequency_penalty != 0.0f || mt_sample_settings_penalise_prompt(s);
}

static bool contains(const uint32_t *ids, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

bool mt_sample_settings_ends(const mt_sample_settings *s, uint32_t token)
{
    return contains(s->stop_ids, s->stop_count, token) || (!s->ignore_eos && contains(s->eos_ids, s->eos_count, token));
}
