/* The dialects of POST /api/embed and of its older form /api/embeddings, as Ollama defines them. */

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/ollama.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_write.h"
#include "sample/limits.h"
#include "weights/limits.h"

static const mt_field fields[] = {
    MT_FIELD_INT_ROW("dimensions", dimensions, 0, MT_LIMIT_WIDTH),
};

/* An empty input is no error: the model is loaded, and nothing is computed. */
static bool is_nothing(const json_t *input)
{
    return !input || (json_is_string(input) && json_string_length(input) == 0) ||
           (json_is_array(input) && json_array_size(input) == 0);
}

/* num_ctx: a text has no more tokens than that, though the model may take more. */
static bool read_context(mt_ask *ask, mt_failure *why)
{
    const json_t *given = mt_body_get(mt_body_get(ask->body, "options"), "num_ctx");
    const json_int_t count = json_integer_value(given);

    if (!given)
        return true;
    if (!json_is_integer(given))
        return mt_failure_type(why, "options.num_ctx", given, "an integer");
    if (count < 1 || count > MT_LIMIT_CONTEXT)
        return mt_failure_value(why, "options.num_ctx", "is %" JSON_INTEGER_FORMAT ": send a value from 1 to %d", count,
                                MT_LIMIT_CONTEXT);
    ask->context = count;
    return true;
}

/* field: of the body, with the texts. A text that is too long is cut at its end, unless the call says otherwise. */
static bool read_input(mt_ask *ask, const char *field, mt_failure *why)
{
    const char *const names[] = {"model", "truncate", "dimensions", "options", "keep_alive", "timeout", field, NULL};
    const mt_field_table tables[] = {mt_fields_vectors, {fields, MT_COUNT(fields)}};
    const json_t *input = mt_body_get(ask->body, field);

    ask->form.vectors = true;
    ask->text_field = field;
    ask->truncate = MT_TRUNCATE_FIT;
    ask->side = MT_TRUNCATE_RIGHT;
    mt_ollama_begin(ask, names);
    for (size_t i = 0; i < MT_COUNT(tables); i++)
        if (!mt_fields_read_table(ask, &tables[i], why))
            return false;
    if (!mt_ollama_keep(ask, why) || !mt_ollama_options_check(ask, why) || !read_context(ask, why))
        return false;
    if (is_nothing(input))
        ask->nothing = "load";
    return ask->nothing || mt_openai_prompts_read(ask, field, input, why);
}

static bool read_embed(mt_ask *ask, mt_failure *why)
{
    return read_input(ask, "input", why);
}

/* The older form: a vector is not scaled. */
static bool read_old(mt_ask *ask, mt_failure *why)
{
    const json_t *prompt = mt_body_get(ask->body, "prompt");

    ask->form.scaling = MT_SCALING_OFF;
    if (prompt && !json_is_string(prompt))
        return mt_failure_type(why, "prompt", prompt, "a string");
    return read_input(ask, "prompt", why);
}

static void add_model(mt_buf *out, const json_t *extra, const char *model)
{
    const char *named = mt_body_text(extra, "model");

    mt_json_write(out, "{'model':%s", *named ? named : model);
}

static void whole_embed(mt_answer *a, mt_buf *out)
{
    add_model(out, a->extra, a->model);
    mt_json_write(out, "'embeddings':[");
    for (size_t i = 0; i < a->choice_count; i++)
        mt_write_floats(out, a->choices[i].vector, mt_answer_embedding(a, &a->choices[i]));
    mt_json_write(out, "]");
    mt_ollama_durations(out, a);
    mt_json_write(out, "'prompt_eval_count':%zu}", mt_answer_usage(a).prompt);
}

static void whole_old(mt_answer *a, mt_buf *out)
{
    mt_json_write(out, "{'embedding':");
    mt_write_floats(out, a->choices[0].vector, mt_answer_embedding(a, &a->choices[0]));
    mt_json_write(out, "}");
}

static void nothing(const mt_dialect *dialect, mt_buf *out, const mt_ask *ask, const char *model)
{
    if (dialect == &mt_ollama_embed) {
        add_model(out, ask->extra, model);
        mt_json_write(out, "'embeddings':[]}");
    } else
        mt_json_write(out, "{'embedding':[]}");
}

#define DIALECT(reader, writer)                                                                               \
    .named = true, .vectors = true, .prefix = "ollama-", .read = reader, .whole = writer, .nothing = nothing, \
    .error = mt_ollama_error

const mt_dialect mt_ollama_embed = {.name = "ollama-embed", DIALECT(read_embed, whole_embed)};
const mt_dialect mt_ollama_embeddings = {.name = "ollama-embeddings", DIALECT(read_old, whole_old)};
