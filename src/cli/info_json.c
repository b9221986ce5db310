/* Prints the facts about a checkpoint as JSON, see info.h. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/info.h"
#include "hub/names.h"

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

/* A JSON string, with bytes that are no UTF-8 replaced: names of tensors and strings of a config may have any bytes. */
static json_t *string(const char *s)
{
    json_t *value = json_string(s);
    return value ? value : json_string("?");
}

static json_t *formats(const mt_census *census)
{
    json_t *list = json_array();
    for (size_t i = 0; i < census->count; i++) {
        json_t *row = json_object();
        set(row, "format", string(census->kind[i].label));
        set(row, "tensors", number(census->kind[i].tensors));
        set(row, "parameters", number(census->kind[i].parameters));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *ropes(const mt_model_spec *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->rope_count; i++) {
        json_t *row = json_object();
        set(row, "type", string(s->ropes[i].type));
        set(row, "theta", json_real(s->ropes[i].theta));
        set(row, "dimensions", number(2 * s->ropes[i].half));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *windows(const mt_model_spec *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->layers; i++)
        json_array_append_new(list, number(s->layer[i].attn.window));
    return list;
}

static void set_model(json_t *root, const mt_model_spec *s)
{
    const mt_attn_spec *a = &mt_model_spec_attention(s)->attn;
    const mt_layer_spec *sparse = mt_model_spec_sparse(s);
    const mt_moe_spec moe = sparse ? sparse->moe : (mt_moe_spec){0};
    set(root, "family", string(s->family));
    set(root, "architecture", string(s->architecture));
    set(root, "layers", number(s->layers));
    set(root, "hidden", number(s->hidden));
    set(root, "vocabulary", number(s->vocab));
    set(root, "tied", json_boolean(s->tied));
    set(root, "heads", number(a->heads));
    set(root, "kv_heads", number(a->kv_heads));
    set(root, "head_dim", number(a->head_dim));
    set(root, "latent", number(a->latent.width));
    set(root, "chosen_positions", number(a->index.top));
    set(root, "ffn", number(s->layer[0].mlp.ffn));
    set(root, "experts", number(moe.experts));
    set(root, "experts_per_token", number(moe.top_k));
    set(root, "expert_ffn", number(moe.ffn));
    set(root, "context", number(s->context));
    set(root, "vision", json_boolean(s->vision != NULL));
    set(root, "rope", ropes(s));
    set(root, "windows", windows(s));
}

static void set_encoder(json_t *root, const mt_info *info)
{
    const mt_bert_spec *s = &info->encoder;
    set(root, "family", string(mt_config_string(mt_checkpoint_config(info->checkpoint), "model_type", "")));
    set(root, "encoder", string(s->labels == 0 ? "embeddings" : s->labels == 1 ? "scores" : "labels"));
    set(root, "layers", number(s->layers));
    set(root, "hidden", number(s->hidden));
    set(root, "vocabulary", number(s->vocab));
    set(root, "heads", number(s->heads));
    set(root, "head_dim", number(s->head_dim));
    set(root, "ffn", number(s->ffn));
    set(root, "context", number(s->context));
}

static void set_memory(json_t *root, const mt_info *info)
{
    json_t *weights = json_object(), *cache = json_object();
    set(weights, "files", number(mt_checkpoint_shards(info->checkpoint)));
    set(weights, "tensors", number(mt_checkpoint_count(info->checkpoint)));
    set(weights, "bytes", number(mt_checkpoint_bytes(info->checkpoint)));
    set(weights, "mapped_bytes", number(info->cost.mapped_bytes));
    set(weights, "converted_bytes", number(info->cost.copied_bytes));
    set(weights, "unused_tensors", number(info->cost.unused_tensors));
    set(weights, "unused_bytes", number(info->cost.unused_bytes));
    set(root, "weights", weights);
    set(cache, "bytes_per_1k_tokens", number(info->cache_bytes));
    set(cache, "bytes_per_1k_tokens_past_window", number(info->cache_full_bytes));
    set(cache, "window_bytes", number(info->cache_window_bytes));
    set(cache, "state_bytes", number(info->state_bytes));
    set(root, "cache", cache);
}

static json_t *describe(const mt_info_device *d)
{
    json_t *row = json_object();
    const bool there = d->problem.code == MT_OK;
    set(row, "name", there ? string(d->name) : json_null());
    set(row, "memory_bytes", there && d->apart ? number(d->memory) : json_null());
    set(row, "host_memory_bytes", number(d->host));
    set(row, "problem", there ? json_null() : string(d->problem.text));
    return row;
}

void mt_info_print_json(const mt_info *info, const mt_info_device *device, const char *name)
{
    json_t *root = json_object(), *remarks = json_array();
    const char *folder = mt_checkpoint_dir(info->checkpoint), *last = strrchr(folder, '/');
    if (name)
        set(root, "name", string(name));
    if (last && mt_hub_is_commit(last + 1)) /* the folder of a commit in the hub cache */
        set(root, "revision", string(last + 1));
    set(root, "folder", string(folder));
    if (info->encodes)
        set_encoder(root, info);
    else
        set_model(root, &info->spec);
    if (info->drafts)
        set(root, "drafts_for_hidden", number(info->drafter.backbone));
    set(root, "parameters", number(info->census.parameters));
    set(root, "quantisation", string(info->quantisation));
    set(root, "formats", formats(&info->census));
    set_memory(root, info);
    set(root, "device", describe(device));
    for (size_t i = 0; i < info->remarks; i++)
        json_array_append_new(remarks, string(info->remark[i]));
    set(root, "unusual", remarks);
    set(root, "problem", info->problem.code == MT_OK ? json_null() : string(info->problem.text));
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}
