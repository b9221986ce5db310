/* Loads a model and all that calls need beside it: see served.h. */
#include "server/fleet/served.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/limits.h"
#include "hub/find.h"
#include "options/limits.h"
#include "server/prepare/own_templates.h"
#include "tier/identity.h"
#include "weights/folder.h"

double mt_served_slow_seconds(const mt_options *opt)
{
    enum { USUAL = 10 }; /* seconds */

    return isnan(opt->slow_step) ? USUAL : opt->slow_step > 0 ? opt->slow_step : 0;
}

/* "." and the like have none that says anything. */
char *mt_served_folder_name(const char *dir)
{
    size_t end = strlen(dir), begin;
    char *name;

    while (end > 1 && dir[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && dir[begin - 1] != '/'; begin--)
        ;
    if (end - begin > 5 && strncmp(dir + end - 5, ".gguf", 5) == 0)
        end -= 5;
    if (begin == end || strspn(dir + begin, ".") >= end - begin)
        return mt_strdup("default");
    name = mt_alloc(end - begin + 1);
    memcpy(name, dir + begin, end - begin);
    return name;
}

bool mt_served_called(const char *model, const char *name)
{
    const size_t len = strlen(name);

    return strncmp(model, name, len) == 0 && (!model[len] || strcmp(model + len, ":latest") == 0);
}

/* Some families have a chat template of their own for conversations with videos. It is not used where the operator
   gives a template. */
static bool open_video_template(mt_served *s, mt_error *err)
{
    const char *text = s->opened.processor ? mt_processor_video_template(s->opened.processor) : NULL;

    if (!text)
        return true;
    s->video_templates = mt_chat_templates_new(text, strlen(text), mt_chat_templates_tokens(s->templates), NULL, err);
    return s->video_templates != NULL;
}

/* Opens tokenizer and templates. A folder without a tokenizer can be used with token ids; a broken tokenizer is an
   error. */
static bool open_text(mt_served *s, const mt_served_params *p, mt_error *err)
{
    const char *own = p->first ? p->opt->chat_template : NULL;

    if (!mt_folder_has(p->dir, "tokenizer.json")) {
        mt_log_warn("model.tokenizer", "\"%s\" has no tokenizer.json: requests must be token ids", p->dir);
        return true;
    }
    s->tokenizer = mt_tokenizer_load(p->dir, err);
    if (!s->tokenizer)
        return false;
    s->templates = mt_chat_templates_open(p->dir, own, err);
    if (!s->templates && (err->code != MT_E_NOT_FOUND || own))
        return false;
    if (!s->templates)
        mt_log_warn("model.template", "%s; until then chat completions are refused", err->text);
    if (s->templates && !own && !open_video_template(s, err))
        return false;
    if (p->opt->allow_chat_template)
        s->own_templates = mt_own_templates_new(s->templates ? mt_chat_templates_tokens(s->templates) : NULL);
    return true;
}

/* Sets the operator's formats; an unknown name is an error now, not when a call needs it. */
static bool set_formats(mt_served *s, const mt_served_params *p, mt_error *err)
{
    const mt_options *opt = p->opt;
    mt_parser *parser;

    s->allow_special = opt->allow_special;
    if (p->first)
        s->formats = (mt_parse_formats){.tools = opt->tool_format, .reasoning = opt->reasoning_format};
    parser = mt_parser_new(&(mt_parse_settings){.formats = s->formats}, err);
    mt_parser_free(parser);
    return parser != NULL;
}

/* given: NaN: the option is not given. */
static void override(float *value, double given)
{
    if (!isnan(given))
        *value = (float)given;
}

static void override_defaults(mt_ask_defaults *d, const mt_options *opt)
{
    override(&d->sampling.temperature, opt->default_temperature);
    override(&d->sampling.top_p, opt->default_top_p);
    override(&d->sampling.min_p, opt->default_min_p);
    override(&d->sampling.repetition_penalty, opt->default_repetition_penalty);
    if (!isnan(opt->default_top_k))
        d->sampling.top_k = (int32_t)opt->default_top_k;
    if (opt->default_max_tokens)
        d->max_tokens = opt->default_max_tokens;
    d->repeat_limit = opt->repeat_limit;
}

/* Before the engine is started, so that the vocabulary's index is built while the model is loaded. */
static bool open_constraints(mt_served *s, mt_engine_params *params, mt_error *err)
{
    const uint64_t share = mt_engine_host_memory(params, s->opened.dev) / MT_LIMIT_CONSTRAINT_SHARE;

    if (!s->tokenizer)
        return true;
    params->constraints = share < MT_LIMIT_CONSTRAINT_BYTES ? share : MT_LIMIT_CONSTRAINT_BYTES;
    params->masks =
        params->constraints / 4 < MT_LIMIT_CONSTRAINT_MASKS ? params->constraints / 4 : MT_LIMIT_CONSTRAINT_MASKS;
    s->constraints = mt_constraints_new(s->tokenizer, s->vocab, s->generation.eos, s->generation.eos_count,
                                        (size_t)(params->constraints - params->masks), err);
    return s->constraints != NULL;
}

/* Finds the identity of the weights, which keys of records on disk and in the shared store include. Where that fails,
   neither is used. */
static void set_identity(mt_engine_params *params, const mt_served_params *p)
{
    mt_error err = {0};

    if ((!params->disk && !params->remote) || mt_identity(p->dir, p->opt->cache_dir, params->identity, &err))
        return;
    mt_log_warn("cache.disk", "%s; nothing of \"%s\" is kept on disk or shared", err.text, p->name);
    params->disk = NULL;
    params->remote = NULL;
}

static bool start_engine(mt_served *s, const mt_served_params *p, mt_error *err)
{
    const mt_options *opt = p->opt;
    const mt_encoder *encoders[MT_LIMIT_OPTION_LIST + 1];
    mt_engine_params params = *p->engine;

    params.sequences = (size_t)opt->max_sequences;
    params.queue = (size_t)opt->max_queue;
    params.rows = opt->batch_tokens ? (size_t)opt->batch_tokens : mt_device_rows(s->opened.dev);
    params.context = (size_t)opt->context;
    params.state_cache = (uint64_t)opt->state_cache;
    params.canary = opt->debug_canary;
    params.step_ms = (double)opt->step_ms;
    params.slow_seconds = mt_served_slow_seconds(opt);
    params.chunk = (size_t)opt->chunk;
    params.media_cache = (uint64_t)opt->media_cache;
    params.host_cache = MT_ENGINE_CHOOSE;
    params.pictures = opt->media_memory ? (uint64_t)opt->media_memory : MT_ENGINE_CHOOSE;
    params.speculate = opt->speculate;
    for (size_t i = 0; i < s->target_count; i++)
        encoders[i] = &s->targets[i].encoder;
    params.encoders = encoders;
    params.encoder_count = s->target_count; /* the model itself is added as a target later */
    if (!open_constraints(s, &params, err))
        return false;
    set_identity(&params, p);
    s->engine = mt_engine_start(&s->opened, s->tokenizer, &params, err);
    return s->engine != NULL;
}

/* How much memory pictures and requests may have is known once the engine has divided its memory. */
static void size_rooms(mt_served *s)
{
    mt_stats stats;

    mt_engine_stats(s->engine, &stats);
    s->room.limit = (size_t)stats.bytes_pictures;
    s->requests = (size_t)stats.bytes_requests;
}

/* Adds the model itself as a target: it embeds a text as its last token's vector, unless its folder says otherwise. */
static void add_model(mt_served *s, const char *dir)
{
    mt_target *t = &s->targets[s->target_count++];

    *t = (mt_target){.name = mt_strdup(s->name),
                     .tokenizer = s->tokenizer,
                     .context = s->context - 1,
                     .vocab = s->vocab,
                     .width = s->opened.spec.hidden,
                     .pool = MT_POOL_LAST,
                     .normalise = true};
    mt_target_read(t, dir);
}

/* Dense layers that are stored with the encoder count instead of those in folders of their own. */
static bool add_dense_layers(mt_target *t, const char *dir, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    const bool within = t->encoder.weights.after_count > 0;

    for (size_t i = 0; !within && i < MT_BERT_AFTER && t->dense[i][0]; i++)
        if (snprintf(path, sizeof(path), "%s/%s", dir, t->dense[i]) >= (int)sizeof(path))
            return mt_fail(err, MT_E_TOO_LARGE, "the path of \"%.100s\" is too long", t->dense[i]);
        else if (!mt_encoder_add(&t->encoder, path, err))
            return false;
    return true;
}

/* Adds an encoder as a target: it embeds a text as the mean of all tokens' vectors, unless its folder says otherwise.
   Owns name. */
static bool add_encoder(mt_served *s, const char *dir, char *name, mt_error *err)
{
    mt_target *t = &s->targets[s->target_count++];

    *t = (mt_target){.name = name, .number = s->target_count, .embeds = true, .pool = MT_POOL_MEAN, .normalise = true};
    if (!mt_encoder_open(&t->encoder, dir, err))
        return false;
    t->context = t->encoder.spec.context;
    t->vocab = t->encoder.spec.vocab;
    t->twice = t->encoder.spec.roberta;
    mt_target_read(t, dir);
    if (t->encoder.spec.labels == 0 && !add_dense_layers(t, dir, err))
        return false;
    t->width = mt_bert_vector(&t->encoder.spec, &t->encoder.weights);
    if (t->encoder.spec.labels > 0) {
        mt_target_read_labels(t, dir);
        t->pool = MT_POOL_CLASSES;
        mt_error_clear(&t->unfit);
    }
    if (mt_folder_has(dir, "tokenizer.json"))
        t->tokenizer = mt_tokenizer_load(dir, err);
    return t->tokenizer || !mt_folder_has(dir, "tokenizer.json");
}

/* given: a folder or a name of the hub. */
static bool find_encoder(mt_served *s, const mt_options *opt, const char *given, mt_error *err)
{
    char *dir = mt_hub_find(given, opt->models_dir, getenv, err);
    const bool ok = dir && add_encoder(s, dir, strcmp(dir, given) ? mt_strdup(given) : mt_served_folder_name(dir), err);

    mt_free(dir);
    return ok;
}

static bool open_encoders(mt_served *s, const mt_options *opt, mt_error *err)
{
    const mt_option_list *dirs = &opt->embedding_models;

    for (size_t i = 0; i < dirs->count; i++)
        if (!find_encoder(s, opt, dirs->at[i], err))
            return false;
    return true;
}

/* Opens a folder that is an encoder itself. */
static bool open_alone(mt_served *s, const mt_served_params *p, mt_error *err)
{
    const mt_target *t = &s->targets[s->target_count];

    if (!add_encoder(s, p->dir, mt_strdup(s->name), err))
        return false;
    s->opened.dev = mt_device_open(&p->device, err);
    if (!s->opened.dev || !start_engine(s, p, err))
        return false;
    s->context = t->context;
    s->vocab = t->vocab;
    s->tokenizer = t->tokenizer;
    s->requests = MT_LIMIT_REQUESTS_BYTES;
    return true;
}

static bool open_model(mt_served *s, const mt_served_params *p, mt_error *err)
{
    mt_open_wish wish = {.family = p->first ? p->opt->family : NULL, .text_only = p->opt->text_only};
    char *draft = NULL;
    bool opened;

    if (p->first && p->opt->draft) {
        wish.draft = draft = mt_hub_find(p->opt->draft, p->opt->models_dir, getenv, err);
        if (!draft)
            return false;
    }
    opened = mt_opened_open(&s->opened, p->dir, &p->device, &wish, err);
    mt_free(draft);
    if (!opened || !open_text(s, p, err) ||
        !mt_generation_read(&s->generation, p->dir, mt_checkpoint_config(s->opened.checkpoint), s->tokenizer, err))
        return false;
    override_defaults(&s->generation.defaults, p->opt);
    s->vocab = s->opened.spec.vocab;
    if (!start_engine(s, p, err))
        return false;
    size_rooms(s);
    s->context = mt_engine_context(s->engine);
    add_model(s, p->dir);
    return true;
}

static char *describe(const char *dir, const mt_options *opt, bool first, mt_ask_defaults *defaults, bool *encodes)
{
    mt_error err;
    mt_checkpoint *c = mt_checkpoint_inspect(dir, &err);
    mt_chat_templates *templates;
    mt_generation_config g;
    char *text;

    mt_ask_defaults_init(defaults);
    if (c && mt_generation_read(&g, dir, mt_checkpoint_config(c), NULL, &err))
        *defaults = g.defaults;
    mt_checkpoint_close(c);
    override_defaults(defaults, opt);
    *encodes = false;
    if (!mt_encoder_known(dir, encodes, &err) || *encodes)
        return mt_strdup("");
    templates = mt_chat_templates_open(dir, first ? opt->chat_template : NULL, &err);
    text = mt_strdup(templates ? mt_chat_templates_text(templates) : "");
    mt_chat_templates_free(templates);
    return text;
}

char *mt_served_describe(const char *dir, const mt_options *opt, bool first, mt_ask_defaults *defaults, bool *encodes)
{
    mt_folder_held held;
    char *text;

    mt_folder_hold(&held, dir);
    text = describe(dir, opt, first, defaults, encodes);
    mt_folder_release(&held);
    return text;
}

bool mt_served_open(mt_served *s, const mt_served_params *p, mt_error *err)
{
    const uint64_t start = mt_clock_ns();
    mt_folder_held held;
    bool ok, encodes;

    *s = (mt_served){.name = p->name, .work = p->work};
    s->media = mt_options_media(p->opt);
    mt_picture_room_init(&s->room, 0);
    mt_folder_hold(&held, p->dir);
    ok = set_formats(s, p, err) && (!p->beside || open_encoders(s, p->opt, err)) &&
         mt_encoder_known(p->dir, &encodes, err) && (encodes ? open_alone : open_model)(s, p, err);
    mt_folder_release(&held);
    if (!ok)
        return false;
    mt_log_info("model.ready", "\"%s\" with a context of %zu tokens after %.2f s", s->name, s->context,
                (double)(mt_clock_ns() - start) / 1e9);
    return true;
}

void mt_served_stop(mt_served *s)
{
    mt_engine_stop(s->engine);
    s->engine = NULL;
}

void mt_served_close(mt_served *s)
{
    mt_served_stop(s);
    mt_constraints_free(s->constraints);
    mt_own_templates_free(s->own_templates);
    mt_chat_templates_free(s->video_templates);
    mt_chat_templates_free(s->templates);
    for (size_t i = 0; i < s->target_count; i++) {
        if (s->targets[i].tokenizer != s->tokenizer)
            mt_tokenizer_free(s->targets[i].tokenizer);
        mt_encoder_close(&s->targets[i].encoder);
        json_decref(s->targets[i].labels);
        mt_target_clear(&s->targets[i]);
        mt_free(s->targets[i].name);
    }
    mt_tokenizer_free(s->tokenizer);
    mt_opened_close(&s->opened);
    if (s->name)
        mt_picture_room_free(&s->room);
    *s = (mt_served){0};
}
