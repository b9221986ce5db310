/* config.json and the settings of pictures of a GGUF model with a projector (gguf_projector.h). A member that a family
   does not read does no harm, so most are written for every kind. */
#include "weights/gguf_projector.h"

#include <math.h>
#include <string.h>

#include "base/json_tree.h"
#include "weights/gguf_clip.h"
#include "weights/limits.h"

static void put_int(json_t *to, const char *key, int64_t value)
{
    json_object_set_new(to, key, json_integer(value));
}

static void put_text(json_t *to, const char *key, const char *value)
{
    json_object_set_new(to, key, json_string(value));
}

/* ---- the tower ---- */

static void put_sizes(json_t *to, const mt_clip_sizes *s)
{
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"hidden_size", s->hidden},
                 {"embed_dim", s->hidden},
                 {"intermediate_size", s->ffn},
                 {"num_hidden_layers", s->layers},
                 {"depth", s->layers},
                 {"num_attention_heads", s->heads},
                 {"num_heads", s->heads},
                 {"num_key_value_heads", s->kv_heads},
                 {"head_dim", s->head_dim},
                 {"patch_size", s->patch},
                 {"spatial_merge_size", s->merge},
                 {"temporal_patch_size", s->frames},
                 {"pooling_kernel_size", s->merge},
                 {"num_position_embeddings", s->places},
                 {"num_patches", s->places},
                 {"position_embedding_size", s->places}};
    for (size_t i = 0; i < MT_COUNT(sizes); i++)
        if (sizes[i].value > 0)
            put_int(to, sizes[i].key, sizes[i].value);
    const int64_t side = s->places ? (int64_t)sqrt((double)s->places) * s->patch : s->image;
    if (side > 0)
        put_int(to, "image_size", side);
}

static json_t *make_tower(const mt_gguf *p, const mt_clip_kind *kind, const mt_clip_sizes *s)
{
    json_t *to = json_object();
    double eps;
    put_sizes(to, s);
    if (mt_gguf_float(p, "clip.vision.attention.layer_norm_epsilon", &eps)) {
        json_object_set_new(to, "layer_norm_eps", json_real(eps));
        json_object_set_new(to, "rms_norm_eps", json_real(eps));
    }
    const char *activation = mt_gguf_bool(p, "clip.use_silu", false) ? "silu" : kind->activation;
    put_text(to, "hidden_act", activation);
    put_text(to, "hidden_activation", activation);
    json_object_set_new(
        to, "attention_bias",
        json_boolean(mt_gguf_find(p, "v.blk.0.attn_qkv.bias") || mt_gguf_find(p, "v.blk.0.attn_q.bias")));
    return to;
}

/* ---- the whole model ---- */

/* The id of a token by its spelling; -1: there is none. */
static int64_t find_token(const mt_gguf *text, const char *spelling)
{
    const mt_gguf_array *all = mt_gguf_array_of(text, "tokenizer.ggml.tokens");
    mt_gguf_text one;
    for (size_t i = 0; all && i < mt_gguf_count(all); i++)
        if (mt_gguf_array_string(all, i, &one) && mt_gguf_text_is(one, spelling))
            return (int64_t)i;
    return -1;
}

/* The spelling of the token that stands for an image. Some converters leave Gemma 3's out, whose id is behind the
   vocabulary; any other token does as well, since its embedding is replaced. */
static const char *image_token(const mt_gguf *text, const mt_clip_kind *kind)
{
    return kind->spare && find_token(text, kind->image_token) < 0 ? kind->spare : kind->image_token;
}

static bool put_token(json_t *root, const mt_gguf *text, const char *key, const char *spelling, mt_error *err)
{
    const int64_t id = find_token(text, spelling);
    if (id < 0)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the vocabulary has no token \"%s\", which stands for a picture; --text-only uses the model "
                       "without its projector",
                       spelling);
    put_int(root, key, id);
    return true;
}

/* The text model's config, as it stands within the other. */
static json_t *read_text(const mt_gguf *text, mt_error *err)
{
    mt_buf buf;
    json_t *config = NULL;
    int64_t pad;
    mt_buf_init(&buf, MT_LIMIT_CONFIG_BYTES);
    if (mt_gguf_config(text, &buf, err))
        config = mt_json_tree_read(buf.data, buf.len, err);
    mt_buf_free(&buf);
    if (config && mt_gguf_int(text, "tokenizer.ggml.padding_token_id", &pad) && pad >= 0 &&
        pad < json_integer_value(json_object_get(config, "vocab_size")))
        put_int(config, "pad_token_id", pad);
    return config;
}

/* Which of the kind's text models this is. */
static const mt_clip_text *match_text(const mt_clip_kind *kind, const json_t *config, mt_error *err)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    for (size_t i = 0; type && i < MT_COUNT(kind->texts) && kind->texts[i].type; i++)
        if (strcmp(kind->texts[i].type, type) == 0)
            return &kind->texts[i];
    mt_fail(err, MT_E_INVALID,
            "a projector of kind \"%s\" does not belong to a text model of type \"%.64s\"; take the one that was made "
            "from the same model",
            kind->name, type ? type : "");
    return NULL;
}

static bool check_width(const mt_gguf *p, const json_t *config, mt_error *err)
{
    const json_int_t width = json_integer_value(json_object_get(config, "hidden_size"));
    const int64_t own = mt_clip_int(p, "projection_dim", width);
    return own == width ||
           mt_fail(err, MT_E_INVALID,
                   "the projector gives %lld elements for a token, the text model takes %lld; take the projector that "
                   "was made from the same model",
                   (long long)own, (long long)width);
}

static bool fill(json_t *root, const mt_gguf *text, const mt_gguf *p, const mt_clip_kind *kind, mt_error *err)
{
    mt_clip_sizes s;
    json_t *inner = read_text(text, err);
    json_object_set_new(root, "text_config", inner);
    const mt_clip_text *match = inner ? match_text(kind, inner, err) : NULL;
    if (!match || !check_width(p, inner, err) || !mt_clip_sizes_read(&s, kind, p, err) ||
        !put_token(root, text, "image_token_id", image_token(text, kind), err) ||
        (kind->video_token && !put_token(root, text, "video_token_id", kind->video_token, err)))
        return false;
    const int64_t audio = find_token(text, "<|audio|>");
    json_t *tower = make_tower(p, kind, &s);
    if (audio >= 0)
        put_int(root, "audio_token_id", audio);
    put_text(root, "model_type", match->outer);
    if (match->inner)
        put_text(inner, "model_type", match->inner);
    put_int(root, "spatial_merge_size", s.merge);
    put_int(root, "scale_factor", s.merge);
    put_int(root, "downsample_factor", s.merge);
    json_object_set_new(root, "vision_config", tower);
    if (kind->config)
        kind->config(p, &s, root, tower);
    return true;
}

static bool write(json_t *value, bool ok, mt_buf *out, mt_error *err)
{
    if (ok && !mt_json_tree_write(out, value))
        ok = mt_fail(err, MT_E_TOO_LARGE, "the text that is made of the projector would have more than %zu bytes",
                     out->limit);
    json_decref(value);
    return ok;
}

bool mt_gguf_projector_config(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err)
{
    const mt_clip_kind *kind = mt_clip_kind_of(projector, err);
    json_t *root = json_object();
    return write(root, kind && fill(root, text, projector, kind, err), out, err);
}

/* ---- settings of pictures ---- */

/* Three numbers for the colours. */
static void put_colours(json_t *to, const mt_gguf *p, const char *key, const char *from)
{
    const mt_gguf_array *a = mt_gguf_array_of(p, from);
    double value;
    if (!a || mt_gguf_count(a) < 3)
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < 3; i++)
        json_array_append_new(list, json_real(mt_gguf_array_float(a, i, &value) ? value : 0));
    json_object_set_new(to, key, list);
}

static bool put_settings(const mt_gguf *text, const mt_gguf *p, bool videos, mt_buf *out, mt_error *err)
{
    const mt_clip_kind *kind = mt_clip_kind_of(p, err);
    json_t *to = json_object();
    mt_clip_sizes s;
    if (!kind || !mt_clip_sizes_read(&s, kind, p, err))
        return write(to, false, out, err);
    put_colours(to, p, "image_mean", "clip.vision.image_mean");
    put_colours(to, p, "image_std", "clip.vision.image_std");
    put_text(to, "image_token", image_token(text, kind));
    put_int(to, "patch_size", s.patch);
    put_int(to, "encoder_patch_size", s.patch);
    put_int(to, "merge_size", s.merge);
    put_int(to, "downsample_factor", s.merge);
    put_int(to, "pooling_kernel_size", s.merge);
    put_int(to, "temporal_patch_size", s.frames);
    if (kind->images && (!videos || !kind->videos))
        kind->images(p, &s, to);
    if (kind->videos && videos)
        kind->videos(p, &s, to);
    return write(to, true, out, err);
}

bool mt_gguf_projector_images(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err)
{
    return put_settings(text, projector, false, out, err);
}

bool mt_gguf_projector_videos(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err)
{
    return put_settings(text, projector, true, out, err);
}
