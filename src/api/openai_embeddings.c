/* The dialect of POST /v1/embeddings, as OpenAI defines it. */
#include "api/answer.h"
#include "api/fields.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"

static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const elsewhere[] = {"input", NULL};
    const mt_field_table tables[] = {mt_fields_vectors, mt_fields_encoding};

    ask->form.vectors = true;
    ask->text_field = "input";
    ask->extra = json_object();
    return mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, NULL, why) &&
           mt_openai_prompts_read(ask, "input", json_object_get(ask->body, "input"), why);
}

static void add_embedding(const mt_answer *a, mt_choice *c, mt_buf *out)
{
    const size_t count = mt_answer_embedding(a, c);

    mt_json_write(out, "{'object':'embedding','index':%zu,'embedding':", c->index);
    (json_object_get(a->extra, "base64") ? mt_write_base64 : mt_write_floats)(out, c->vector, count);
    mt_json_write(out, "}");
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;

    mt_json_write(out, "{'id':%s,'object':'list','data':[", a->id);
    for (size_t i = 0; i < a->choice_count; i++)
        add_embedding(a, &a->choices[i], out);
    mt_json_write(out, "],'model':%s,'usage':{'prompt_tokens':%zu,'total_tokens':%zu}}", a->model, tokens, tokens);
}

const mt_dialect mt_openai_embeddings = {
    .name = "embeddings", .prefix = "embd-", .vectors = true, .read = read, .whole = whole, .error = mt_failure_write};
