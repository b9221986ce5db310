/* The commands motet info and motet show: what a checkpoint folder contains and how much memory it needs, from the
   headers of its files alone. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "hub/names.h"
#include "models/vision.h"

static void print_count(const char *label, uint64_t count)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " K"}, {1, ""}};
    size_t i = 0;
    while (units[i].unit > 1 && (double)count < units[i].unit)
        i++;
    printf("%-14s%.*f%s\n", label, units[i].unit > 1 ? 2 : 0, (double)count / units[i].unit, units[i].name);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Elements of a head of queries. */
static uint32_t query_dim(const mt_attn_spec *a)
{
    return a->latent.width ? a->latent.plain + a->latent.turned : a->head_dim;
}

/* How layers choose the positions they attend to. */
static void print_index(const mt_model_spec *s)
{
    size_t choosing = 0, attending = 0;
    const mt_index_spec *index = NULL;
    for (size_t i = 0; i < s->layers; i++) {
        attending += s->layer[i].attn.index.top > 0;
        choosing += s->layer[i].attn.index.heads > 0;
        if (s->layer[i].attn.index.heads)
            index = &s->layer[i].attn.index;
    }
    if (index)
        printf("%-14sto %u positions, chosen by %u head%s of %u in %zu of %zu layers\n", "attends", index->top,
               index->heads, plural(index->heads), index->head_dim, choosing, attending);
}

static void print_model(const mt_model_spec *s)
{
    printf("%-14s%s (%s)\n", "family", s->family, s->architecture);
    printf("%-14s%u of width %u, vocabulary %u%s\n", "layers", s->layers, s->hidden, s->vocab,
           s->tied ? ", tied head" : "");
    const mt_attn_spec *a = &mt_model_spec_attention(s)->attn;
    if (a->latent.width)
        printf("%-14s%u head%s of %u, values of %u, over latents of %u and a turned part of %u%s\n", "attention",
               a->heads, plural(a->heads), query_dim(a), a->latent.value, a->latent.width, a->latent.turned,
               a->qkv_bias ? ", biases" : "");
    else
        printf("%-14s%u head%s, %u key/value head%s of %u%s%s\n", "attention", a->heads, plural(a->heads), a->kv_heads,
               plural(a->kv_heads), a->head_dim, a->qk_norm ? ", normalised queries and keys" : "",
               a->qkv_bias ? ", biases" : "");
    print_index(s);
    size_t sparse = 0;
    for (size_t i = 0; i < s->layers; i++)
        sparse += s->layer[i].sparse;
    if (sparse > 0) {
        const mt_moe_spec *moe = &mt_model_spec_sparse(s)->moe;
        printf("%-14s%u of width %u, %u per token, in %zu of %u layers\n", "experts", moe->experts, moe->ffn,
               moe->top_k, sparse, s->layers);
    }
    if (sparse < s->layers)
        printf("%-14s%u wide%s\n", "mlp", s->layer[0].mlp.ffn, s->layer[0].mlp.bias ? ", biases" : "");
}

static void print_recurrent(const mt_info *info)
{
    const mt_state_shape *st = &info->spec.state;
    if (st->layers > 0 && st->key_dim == 0)
        printf("%-14s%zu of %u layers: a convolution over %zu tokens\n", "recurrent", st->layers, info->spec.layers,
               st->taps);
    else if (st->plain)
        printf("%-14s%zu of %u layers of Mamba2: %zu heads of %zu, %zu group%s with states of %zu, "
               "convolution over %zu\n",
               "recurrent", st->layers, info->spec.layers, st->value_heads, st->value_dim, st->key_heads,
               plural(st->key_heads), st->key_dim, st->taps);
    else if (st->layers > 0)
        printf("%-14s%zu of %u layers: %zu key head%s of %zu, %zu value head%s of %zu, convolution over %zu\n",
               "recurrent", st->layers, info->spec.layers, st->key_heads, plural(st->key_heads), st->key_dim,
               st->value_heads, plural(st->value_heads), st->value_dim, st->taps);
}

static void print_vision(const mt_vision_spec *v)
{
    if (!v)
        return;
    printf("%-14s%u layers of width %u, %u heads of %u, patches of %u x %u pixels, %u x %u of them a token", "vision",
           v->layers, v->hidden, v->heads, v->head_dim, v->patch, v->patch, v->merge, v->merge);
    if (v->tap_count)
        printf(", DeepStack of %u", v->tap_count);
    printf("\n");
}

static void print_ropes(const mt_model_spec *s)
{
    for (size_t r = 0; r < s->rope_count; r++) {
        const mt_rope *rope = &s->ropes[r];
        uint32_t head_dim = query_dim(&mt_model_spec_attention(s)->attn);
        size_t layers = 0;
        for (size_t i = 0; i < s->layers; i++) {
            layers += s->layer[i].attn.rope == r;
            head_dim =
                s->layer[i].attn.rope == r && s->layer[i].attn.head_dim ? query_dim(&s->layer[i].attn) : head_dim;
        }
        printf("%-14s%s, theta %.7g", r ? "" : "rope", rope->type, rope->theta);
        printf(", %u of %u dimensions", 2 * rope->half, head_dim);
        if (s->rope_count > 1)
            printf(", in %zu layer%s", layers, plural(layers));
        printf("\n");
    }
}

/* Prints one letter for each layer, cut if there are many. */
static void print_window(const mt_info *info)
{
    const mt_model_spec *s = &info->spec;
    if (info->windowed_layers == 0) {
        printf("%-14severy layer %ssees all tokens\n", "window", s->state.layers ? "with attention " : "");
        return;
    }
    const unsigned shown = s->layers < 48 ? s->layers : 48;
    printf("%-14s%zu of %u layers see %u tokens: ", "window", info->windowed_layers, s->layers, info->window);
    for (unsigned i = 0; i < shown; i++)
        putchar(s->layer[i].attn.window ? 'w' : 'F');
    printf("%s (F: all, w: window)\n", shown < s->layers ? "..." : "");
}

static void print_weights(const mt_info *info)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT];
    const size_t files = mt_checkpoint_shards(info->checkpoint);
    printf("%-14s%s in %zu file%s", "weights", mt_bytes_text(mt_checkpoint_bytes(info->checkpoint), a), files,
           plural(files));
    if (info->problem.code == MT_OK)
        printf("; %s used as they lie, %s converted at load", mt_bytes_text(info->cost.mapped_bytes, b),
               mt_bytes_text(info->cost.copied_bytes, c));
    printf("\n");
}

static void print_cache(const mt_info *info)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT];
    printf("%-14s%s per 1k tokens in bf16", "cache", mt_bytes_text(info->cache_bytes, a));
    if (info->windowed_layers > 0)
        printf(" at first; %s once past the window, where %zu layers hold %s for good",
               mt_bytes_text(info->cache_full_bytes, b), info->window_caches,
               mt_bytes_text(info->cache_window_bytes, c));
    printf("\n");
    if (info->state_bytes > 0)
        printf("%-14s%s per sequence, and per checkpoint that others continue from\n", "state",
               mt_bytes_text(info->state_bytes, a));
}

static void print_encoder(const mt_info *info)
{
    const mt_bert_spec *s = &info->encoder;
    printf("%-14s%s, an encoder for %s\n", "family",
           mt_config_string(mt_checkpoint_config(info->checkpoint), "model_type", ""),
           s->labels == 0   ? "vectors (/v1/embeddings)"
           : s->labels == 1 ? "scores (/v1/rerank)"
                            : "labels (/classify)");
    printf("%-14s%u of width %u, vocabulary %u\n", "layers", s->layers, s->hidden, s->vocab);
    printf("%-14s%u head%s of %u\n", "attention", s->heads, plural(s->heads), s->head_dim);
    printf("%-14s%u wide\n", "mlp", s->ffn);
}

/* Prints the device, and which part of the model would be in whose memory. */
static void print_device(const mt_info_device *d)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT];
    if (d->problem.code != MT_OK)
        printf("%-14snone: %s\n", "device", d->problem.text);
    else if (d->apart)
        printf("%-14s%s: weights, cache and features in %s that are free there, all else in the machine's %s\n",
               "device", d->name, mt_bytes_text(d->memory, a), mt_bytes_text(d->host, b));
    else
        printf("%-14s%s, with everything in the machine's %s\n", "device", d->name, mt_bytes_text(d->host, a));
}

static void print_text(const mt_info *info)
{
    if (info->encodes) {
        print_encoder(info);
        printf("%-14s%u tokens\n", "context", info->encoder.context);
        print_count("parameters", info->census.parameters);
        printf("%-14s%s\n", "quantisation", info->quantisation);
        print_weights(info);
        return;
    }
    print_model(&info->spec);
    print_recurrent(info);
    print_vision(info->spec.vision);
    if (info->spec.mtp)
        printf("%-14sa head that guesses the next tokens (mtp)\n", "drafts");
    if (info->drafts)
        printf("%-14sfor a model of width %u (--draft), whose keys and values it reads\n", "drafts",
               info->drafter.backbone);
    print_ropes(&info->spec);
    if (!info->drafts)
        print_window(info);
    printf("%-14s%u tokens\n", "context", info->spec.context);
    print_count("parameters", info->census.parameters);
    printf("%-14s%s\n", "quantisation", info->quantisation);
    print_weights(info);
    if (!info->drafts)
        print_cache(info);
    for (size_t i = 0; i < info->remarks; i++)
        printf("%-14s%s\n", i ? "" : "unusual", info->remark[i]);
}

static void print_info(const mt_info *info, const mt_info_device *device)
{
    print_text(info);
    print_device(device);
}

/* For the command show: prints where the model comes from. The folders of the hub cache are named by commit. */
static void print_origin(const mt_options *opt)
{
    const char *commit = strrchr(opt->dir, '/');

    if (opt->served_name)
        printf("%-14s%s\n", "name", opt->served_name);
    if (commit && mt_hub_is_commit(commit + 1))
        printf("%-14s%s\n", "revision", commit + 1);
    printf("%-14s%s\n", "folder", opt->dir);
}

static void find_device(mt_info_device *d, const char *name)
{
    const mt_device_params params = {.name = name, .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_device *dev = mt_device_open(&params, &d->problem);
    d->host = mt_host_memory();
    if (!dev)
        return;
    d->apart = mt_device_apart(dev);
    d->memory = mt_device_memory(dev);
    snprintf(d->name, sizeof(d->name), "%s", d->apart ? mt_device_name(dev) : "cpu");
    mt_device_close(dev);
}

int mt_cmd_info(const mt_options *opt)
{
    mt_error err = {0};
    mt_info info;
    mt_info_device device = {0};
    bool ok = mt_info_gather(&info, opt->dir, &err);
    if (opt->command == MT_COMMAND_SHOW && !opt->json)
        print_origin(opt);
    if (ok) {
        find_device(&device, opt->device);
        if (opt->json)
            mt_info_print_json(&info, &device, opt->served_name);
        else
            print_info(&info, &device);
        err = info.problem;
        ok = err.code == MT_OK;
    }
    mt_info_free(&info);
    if (!ok) {
        fflush(stdout);
        fprintf(stderr, "motet: %s\n", err.text);
    }
    return ok ? 0 : 1;
}
