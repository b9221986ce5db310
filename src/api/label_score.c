/* The dialects of scores by a model that writes text: how likely each of some tokens is to follow a query and an item.
   SGLang has it as POST /v1/score with "label_token_ids", vLLM as POST /generative_scoring. */
#include <math.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/limits.h"
#include "api/openai.h"
#include "api/openai_prompt.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "sample/limits.h"

/* A field that is true or false; where it is missing, as `unset` says. */
static bool read_flag(const mt_ask *ask, const char *name, bool unset, bool *out, mt_failure *why)
{
    const json_t *value = mt_body_get(ask->body, name);

    *out = value ? json_is_true(value) : unset;
    return !value || json_is_boolean(value) || mt_failure_type(why, name, value, "true or false");
}

static bool is_ids(const json_t *value)
{
    return json_is_array(value) && json_is_integer(json_array_get(value, 0));
}

/* One prompt: two texts, or two lists of token ids, one behind the other. */
static bool join(mt_ask *ask, const json_t *first, const json_t *second, mt_ask_prompt *out, mt_failure *why)
{
    const bool texts = json_is_string(first) && json_is_string(second);
    mt_ask_prompt ids[2];
    uint32_t *all;
    char *text;

    if (!texts && !(json_is_array(first) && json_is_array(second)))
        return mt_failure_value(why, "items", "and \"query\" are not alike: send texts, or token ids, in both");
    if (texts) {
        const size_t a = json_string_length(first), b = json_string_length(second);

        text = mt_arena_alloc(ask->arena, a + b + 1);
        if (!text)
            return mt_failure_memory(why, "items");
        memcpy(text, json_string_value(first), a);
        memcpy(text + a, json_string_value(second), b);
        out->text = (mt_chat_text){.data = text, .len = a + b};
        return true;
    }
    if (!mt_openai_ids_read(ask->arena, "query", first, &ids[0], why) ||
        !mt_openai_ids_read(ask->arena, "items", second, &ids[1], why))
        return false;
    all = mt_arena_alloc(ask->arena, (ids[0].count + ids[1].count + 1) * sizeof(*all));
    if (!all)
        return mt_failure_memory(why, "items");
    memcpy(all, ids[0].ids, ids[0].count * sizeof(*all));
    memcpy(all + ids[0].count, ids[1].ids, ids[1].count * sizeof(*all));
    out->ids = all;
    out->count = ids[0].count + ids[1].count;
    return true;
}

static bool read_prompts(mt_ask *ask, bool item_first, mt_failure *why)
{
    const json_t *query = mt_body_get(ask->body, "query"), *items = mt_body_get(ask->body, "items");
    const bool one = json_is_string(items) || is_ids(items);
    const size_t count = one ? 1 : json_array_size(items);

    if (!json_is_string(query) && !json_is_array(query))
        return mt_failure_type(why, "query", query, "a string or token ids");
    if (count == 0)
        return mt_failure_value(why, "items", "has nothing to score: send a list of texts or of token ids");
    if (count > MT_LIMIT_CHOICES)
        return mt_failure_value(why, "items", "has %zu entries, and %d may be sent at once: send several requests",
                                count, MT_LIMIT_CHOICES);
    ask->prompts = mt_arena_alloc(ask->arena, count * sizeof(*ask->prompts));
    if (!ask->prompts)
        return mt_failure_memory(why, "items");
    for (; ask->prompt_count < count; ask->prompt_count++) {
        const json_t *item = one ? items : json_array_get(items, ask->prompt_count);

        if (!join(ask, item_first ? item : query, item_first ? query : item, &ask->prompts[ask->prompt_count], why))
            return false;
    }
    return true;
}

/* softmax: whether probabilities are those among the labels alone, where the request does not say; kept in the answer's
   `extra`. */
static bool read(mt_ask *ask, bool softmax, mt_failure *why)
{
    static const char *const own[] = {"query", "items", "label_token_ids", "apply_softmax", "item_first", NULL};
    const json_t *labels = mt_body_get(ask->body, "label_token_ids");
    const mt_field_table tables[] = {mt_fields_common, mt_fields_refused};
    bool item_first;

    if (!mt_fields_read(ask, tables, MT_COUNT(tables), own, NULL, why))
        return false;
    if (json_array_size(labels) == 0)
        return mt_failure_type(why, "label_token_ids", labels, "a list of token ids, at least one");
    if (ask->form.stream)
        return mt_failure_unsupported(why, "stream", "is not taken for scores: leave it out");
    ask->n = 1;
    ask->max_tokens = 1;
    ask->sampling.temperature = 0;
    ask->sampling.logprobs = 0;
    ask->form.return_token_ids = false;
    if (!mt_read_logprob_ids(ask, "label_token_ids", labels, why) ||
        !read_flag(ask, "apply_softmax", softmax, &softmax, why) ||
        !read_flag(ask, "item_first", false, &item_first, why))
        return false;
    ask->extra = json_pack("{s:b}", "softmax", softmax);
    return read_prompts(ask, item_first, why);
}

static bool read_sglang(mt_ask *ask, mt_failure *why)
{
    return read(ask, false, why);
}

static bool read_vllm(mt_ask *ask, mt_failure *why)
{
    return read(ask, true, why);
}

/* The probability of each label behind a prompt. Returns how many there are; 0: the answer was cut before its token. */
static size_t probabilities(const mt_answer *a, const mt_choice *c, double out[MT_LIMIT_TOP_LOGPROBS])
{
    const mt_said *s = c->said.count ? &c->said.at[0] : NULL;
    const size_t count = s ? s->top_count : 0;
    const bool softmax = json_is_true(json_object_get(a->extra, "softmax"));
    double most = -INFINITY, sum = 0;

    for (size_t i = 0; i < count; i++) {
        out[i] = (double)c->said.top[s->top_begin + i].logprob;
        most = fmax(most, out[i]);
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = exp(softmax ? out[i] - most : out[i]);
        sum += out[i];
    }
    for (size_t i = 0; softmax && i < count; i++)
        out[i] /= sum;
    return count;
}

static void write_usage(mt_buf *out, const mt_answer *a, size_t completion)
{
    const size_t tokens = mt_answer_usage(a).prompt;

    mt_json_write(out, "'usage':{'prompt_tokens':%zu,'total_tokens':%zu,'completion_tokens':%zu}", tokens,
                  tokens + completion, completion);
}

static void write_sglang(mt_answer *a, mt_buf *out)
{
    double p[MT_LIMIT_TOP_LOGPROBS];

    mt_openai_head(out, a);
    mt_json_write(out, "'scores':[");
    for (size_t i = 0; i < a->choice_count; i++) {
        const size_t count = probabilities(a, &a->choices[i], p);

        mt_json_write(out, "[");
        for (size_t k = 0; k < count; k++)
            mt_json_write(out, "%.9g", p[k]);
        mt_json_write(out, "]");
    }
    mt_json_write(out, "]");
    write_usage(out, a, 0);
    mt_json_write(out, "}");
}

/* The score is the probability of the first label. */
static void write_vllm(mt_answer *a, mt_buf *out)
{
    double p[MT_LIMIT_TOP_LOGPROBS];

    mt_openai_head(out, a);
    mt_json_write(out, "'data':[");
    for (size_t i = 0; i < a->choice_count; i++)
        mt_json_write(out, "{'index':%zu,'object':'score','score':%.9g}", i,
                      probabilities(a, &a->choices[i], p) ? p[0] : 0);
    mt_json_write(out, "]");
    write_usage(out, a, mt_answer_usage(a).tokens);
    mt_json_write(out, "}");
}

/* The field that the client knows. */
static mt_failure renamed(const mt_failure *why)
{
    mt_failure own = *why;

    if (strcmp(own.param, "logprob_token_ids") == 0)
        mt_failure_rename(&own, "label_token_ids");
    return own;
}

/* SGLang's errors are flat. */
static void fail_sglang(mt_buf *out, const mt_failure *why)
{
    const mt_failure own = renamed(why);

    mt_json_write(out, "{'object':'error','message':%s,'type':%s,'param':%s,'code':%d}", own.text,
                  own.status == 400  ? "BadRequestError"
                  : own.status < 500 ? "InvalidRequestError"
                                     : "InternalServerError",
                  *own.param ? own.param : NULL, own.status);
}

static void fail_vllm(mt_buf *out, const mt_failure *why)
{
    const mt_failure own = renamed(why);

    mt_failure_write(out, &own);
}

const mt_dialect mt_sglang_score = {.name = "sglang-score",
                                    .prefix = "score-",
                                    .object = "scoring",
                                    .read = read_sglang,
                                    .whole = write_sglang,
                                    .error = fail_sglang};
const mt_dialect mt_vllm_score = {.name = "vllm-score",
                                  .prefix = "generative-scoring-",
                                  .object = "list",
                                  .read = read_vllm,
                                  .whole = write_vllm,
                                  .error = fail_vllm};
