/* Routes that users of llama.cpp and vLLM know: /props, /slots, /tokenizer_info, /version, /load. */
#include "base/alloc.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/routes/listed.h"
#include "text/limits.h"
#include "weights/folder.h"

/* The settings of a request that names none. */
static void add_defaults(mt_buf *out, const mt_served *served)
{
    const mt_ask_defaults *d = &served->generation.defaults;

    mt_json_write(out,
                  "'default_generation_settings':{'n_ctx':%zu,'params':{'n_predict':%lld,'temperature':%g,"
                  "'top_k':%lld,'top_p':%g,'min_p':%g,'typical_p':%g,'repeat_penalty':%g,"
                  "'presence_penalty':%g,'frequency_penalty':%g}}",
                  served->context, d->max_tokens ? (long long)d->max_tokens : -1ll, (double)d->sampling.temperature,
                  (long long)d->sampling.top_k, (double)d->sampling.top_p, (double)d->sampling.min_p,
                  (double)d->sampling.typical_p, (double)d->sampling.repetition_penalty,
                  (double)d->sampling.presence_penalty, (double)d->sampling.frequency_penalty);
}

static void add_token(mt_buf *out, const mt_served *served, const char *key)
{
    const json_t *tokens = served->templates ? mt_chat_templates_tokens(served->templates) : NULL;
    const char *token = json_string_value(json_object_get(tokens, key));

    mt_json_write(out, "%s:%s", key, token ? token : "");
}

/* "model_path" is the name that clients use: the real folder is the operator's business. */
static bool answer_props(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const mt_served *served = call->served;

    (void)body;
    (void)why;
    mt_json_write(out, "{");
    add_defaults(out, served);
    mt_json_write(out, "'total_slots':%lld,'model_alias':%s,'model_path':%s,'chat_template':%s",
                  (long long)call->server->opt->max_sequences, served->name, served->name,
                  served->templates ? mt_chat_templates_text(served->templates) : "");
    add_token(out, served, "bos_token");
    add_token(out, served, "eos_token");
    mt_json_write(out,
                  "'modalities':{'vision':%hhd,'audio':false},'is_sleeping':false,'build_info':'motet " MT_VERSION "'}",
                  (bool)served->opened.processor);
    return true;
}

const mt_task mt_task_props = {.run = answer_props};

/* The model's tokenizer_config.json, a new object; empty where there is none that can be read. */
static json_t *read_config(const char *dir)
{
    mt_folder_file file;
    json_t *config = NULL;
    mt_error err;

    if (mt_folder_open(&file, dir, "tokenizer_config.json", &err)) {
        if (file.len <= MT_LIMIT_TOKENIZER_SETTINGS)
            config = mt_json_tree_try(file.data, file.len);
        mt_folder_close(&file);
    }
    if (json_is_object(config))
        return config;
    json_decref(config);
    return json_object();
}

/* vLLM's: what tokenizer_config.json says, with the chat template that is used. */
static bool answer_tokenizer_info(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const mt_served *served = call->served;
    mt_listed m;
    json_t *config = mt_listed_find(call->server, served->name, true, &m) ? read_config(m.card->dir) : json_object();
    bool ok;

    (void)body;
    if (served->templates)
        json_object_set_new(config, "chat_template", json_string(mt_chat_templates_text(served->templates)));
    if (!json_is_string(json_object_get(config, "tokenizer_class")))
        json_object_set_new(config, "tokenizer_class", json_string("PreTrainedTokenizerFast"));
    ok = mt_json_tree_write(out, config) || mt_failure_memory(why, NULL);
    json_decref(config);
    return ok;
}

const mt_task mt_task_tokenizer_info = {.run = answer_tokenizer_info};

/* row NULL: the slot is free. */
static void add_slot(mt_buf *out, const mt_served *served, size_t id, const mt_engine_row *row)
{
    mt_json_write(out, "{'id':%zu,'n_ctx':%zu,'is_processing':%hhd", id, served->context, (bool)row);
    if (row)
        mt_json_write(out,
                      "'n_prompt_tokens':%zu,'n_prompt_tokens_cache':%zu,'next_token':[{'has_next_token':true,"
                      "'n_decoded':%zu}]",
                      row->prompt_tokens, row->cached, row->tokens);
    mt_json_write(out, "}");
}

/* A slot for each running answer that the account may see; the other slots look free, even where other accounts use
   them. */
static bool answer_slots(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const mt_served *served = call->served;
    const mt_account *only = mt_account_scope(call->account);
    const size_t most = (size_t)call->server->opt->max_sequences;
    mt_engine_row *rows = mt_alloc_array(most, sizeof(*rows));
    const size_t count = mt_engine_list(served->engine, only ? &only->client : NULL, rows, most);
    size_t id = 0;

    (void)body;
    (void)why;
    mt_json_write(out, "[");
    for (size_t i = 0; i < count && i < most; i++)
        if (rows[i].phase != MT_PHASE_WAITING)
            add_slot(out, served, id++, &rows[i]);
    while (id < most)
        add_slot(out, served, id++, NULL);
    mt_json_write(out, "]");
    mt_free(rows);
    return true;
}

const mt_task mt_task_slots = {.run = answer_slots};

/* How many calls there are now, which load balancers compare. */
bool mt_others_load(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    (void)request, (void)why;
    mt_json_write(out, "{'server_load':%zu}", server->call_count);
    return true;
}

bool mt_others_push(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    (void)server;
    (void)request;
    (void)out;
    return mt_failure_set(
        why, 501, "unsupported", NULL,
        "models are not pushed from here: upload a model's folder to a hub with its own tool, such as "
        "hf upload");
}
