/* The dialects of POST /pooling and POST /classify, as vLLM has them: what a model makes of texts, one vector, one for
   each token, or the probabilities of a classifier's labels. */
#include <string.h>

#include "api/answer.h"
#include "api/fields.h"
#include "api/openai.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"

static bool read_task(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const struct {
        const char *name;
        mt_ask_vectors vectors;
    } tasks[] = {{"embed", MT_ASK_ONE}, {"token_embed", MT_ASK_EACH}, {"classify", MT_ASK_CLASSES}};
    const char *task = mt_json_word(value);

    for (size_t i = 0; task && i < MT_COUNT(tasks); i++)
        if (strcmp(task, tasks[i].name) == 0) {
            ask->vectors = tasks[i].vectors;
            return true;
        }
    return mt_failure_unsupported(why, name, "is not supported: send \"embed\", \"token_embed\" or \"classify\"");
}

static const mt_field task_fields[] = {
    MT_FIELD_OTHER_ROW("task", read_task),
    MT_FIELD_REFUSED_ROW("data", 0),
};

static const mt_field class_fields[] = {MT_FIELD_BOOL_ROW("add_special_tokens", add_special_tokens)};

static bool read_texts(mt_ask *ask, const mt_field_table *tables, size_t count, mt_failure *why)
{
    static const char *const elsewhere[] = {"input", NULL};

    ask->form.vectors = true;
    ask->text_field = "input";
    ask->extra = json_object();
    return mt_fields_read(ask, tables, count, elsewhere, NULL, why) &&
           mt_openai_prompts_read(ask, "input", json_object_get(ask->body, "input"), why);
}

static bool read_pooling(mt_ask *ask, mt_failure *why)
{
    const mt_field_table tables[] = {mt_fields_vectors, mt_fields_encoding, {task_fields, MT_COUNT(task_fields)}};

    ask->vectors = MT_ASK_ANY;
    return read_texts(ask, tables, MT_COUNT(tables), why);
}

static bool read_classify(mt_ask *ask, mt_failure *why)
{
    const mt_field_table tables[] = {mt_fields_vectors, {class_fields, MT_COUNT(class_fields)}};

    ask->vectors = MT_ASK_CLASSES;
    return read_texts(ask, tables, MT_COUNT(tables), why);
}

static void add_usage(const mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;

    mt_json_write(out,
                  "],'usage':{'prompt_tokens':%zu,'total_tokens':%zu,'completion_tokens':0,"
                  "'prompt_tokens_details':null,'completion_tokens_details':null}}",
                  tokens, tokens);
}

static void add_pooled(const mt_answer *a, mt_choice *c, mt_buf *out)
{
    const bool classes = a->labels != NULL, each = a->width > 0;
    const size_t width = a->dimensions ? a->dimensions : a->width;
    size_t count = c->vector_len;

    if (classes)
        mt_answer_classes(a, c);
    else
        count = mt_answer_embedding(a, c);
    mt_json_write(out, "{'index':%zu,'object':'pooling','data':", c->index);
    if (json_object_get(a->extra, "base64")) {
        mt_write_base64(out, c->vector, count);
    } else if (each) {
        mt_json_write(out, "[");
        for (size_t i = 0; i + width <= count; i += width)
            mt_write_floats(out, c->vector + i, width);
        mt_json_write(out, "]");
    } else {
        mt_write_floats(out, c->vector, count);
    }
    mt_json_write(out, "}");
}

static void whole_pooling(mt_answer *a, mt_buf *out)
{
    mt_openai_head(out, a);
    mt_json_write(out, "'data':[");
    for (size_t i = 0; i < a->choice_count; i++)
        add_pooled(a, &a->choices[i], out);
    add_usage(a, out);
}

static void whole_classify(mt_answer *a, mt_buf *out)
{
    mt_openai_head(out, a);
    mt_json_write(out, "'data':[");
    for (size_t i = 0; i < a->choice_count; i++) {
        mt_choice *c = &a->choices[i];
        const size_t best = mt_answer_classes(a, c);

        mt_json_write(out, "{'index':%zu,'label':%s,'probs':", i, json_string_value(json_array_get(a->labels, best)));
        mt_write_floats(out, c->vector, c->vector_len);
        mt_json_write(out, "'num_classes':%zu}", c->vector_len);
    }
    add_usage(a, out);
}

const mt_dialect mt_pooling = {.name = "pooling",
                               .prefix = "pool-",
                               .object = "list",
                               .vectors = true,
                               .read = read_pooling,
                               .whole = whole_pooling,
                               .error = mt_failure_write};

const mt_dialect mt_classify = {.name = "classify",
                                .prefix = "classify-",
                                .object = "list",
                                .vectors = true,
                                .read = read_classify,
                                .whole = whole_classify,
                                .error = mt_failure_write};
