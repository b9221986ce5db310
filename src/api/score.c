/* The dialect of POST /score, as vLLM has it: scores of pairs of texts, in their order. */
#include "api/chat_body.h"
#include "api/fields.h"
#include "api/openai.h"
#include "api/pairs.h"
#include "base/json_write.h"

static bool read(mt_ask *ask, mt_failure *why)
{
    /* Two by two, the names of the fields with the first and the second texts of all pairs. The first two that are both
       sent count. */
    static const char *const names[] = {"text_1", "text_2", "queries", "documents", "queries",
                                        "items",  "data_1", "data_2",  NULL};
    const mt_field_table tables[] = {mt_fields_vectors, mt_fields_scores};

    ask->form.vectors = ask->scores = true;
    if (!mt_fields_read(ask, tables, MT_COUNT(tables), names, NULL, why))
        return false;
    for (size_t i = 0; names[i]; i += 2)
        if (mt_body_get(ask->body, names[i]) && mt_body_get(ask->body, names[i + 1]))
            return mt_pairs_read(ask, names + i, why);
    return mt_failure_field(why, "missing_required_parameter", "queries",
                            "and \"documents\" are missing: send both, or \"text_1\" and \"text_2\"");
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;

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
