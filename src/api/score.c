/* The dialect of POST /score, as vLLM has it: scores of pairs of texts, in their order. */
#include <inttypes.h>

#include "api/fields.h"
#include "api/openai.h"
#include "api/pairs.h"
#include "api/write.h"
#include "base/json_write.h"

/* The names under which the two texts of pairs may be sent. */
static const char *const names[][2] = {
    {"text_1", "text_2"}, {"queries", "documents"}, {"queries", "items"}, {"data_1", "data_2"}};

/* An explicit null counts as missing. */
static bool is_sent(const mt_ask *ask, const char *name)
{
    const json_t *value = json_object_get(ask->body, name);

    return value && !json_is_null(value);
}

static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const elsewhere[] = {"text_1", "text_2", "queries", "documents",
                                            "items",  "data_1", "data_2",  NULL};
    const mt_field_table tables[] = {mt_fields_vectors, mt_fields_scores};
    size_t i = 0;

    ask->vectors = ask->scores = true;
    if (!mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, NULL, why))
        return false;
    while (i < MT_COUNT(names) && !(is_sent(ask, names[i][0]) && is_sent(ask, names[i][1])))
        i++;
    if (i == MT_COUNT(names))
        return mt_failure_set(why, 400, "missing_required_parameter", "queries",
                              "\"queries\" and \"documents\" are missing: send both, or \"text_1\" and \"text_2\"");
    return mt_pairs_read(ask, names[i], why);
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_prompt_tokens(a);

    mt_openai_head(out, a);
    mt_json_write(out, "'data':[");
    for (size_t i = 0; i < mt_pairs_count(a); i++)
        mt_json_write(out, "{'index':%zu,'object':'score','score':%.9g}", i, mt_pairs_score(a, i));
    mt_json_write(out,
                  "],'usage':{'prompt_tokens':%zu,'total_tokens':%zu,'completion_tokens':0,"
                  "'prompt_tokens_details':null,'completion_tokens_details':null}}",
                  tokens, tokens);
}

const mt_dialect mt_score = {.name = "score",
                             .prefix = "score-",
                             .object = "list",
                             .vectors = true,
                             .read = read,
                             .whole = whole,
                             .error = mt_failure_write};
