/* Reads the tower from a projector's file (gguf_clip.h). Shapes of tensors are preferred to keys, some of which
   converters fill with numbers of something else. */
#include "weights/gguf_clip.h"

#include "base/error.h"
#include "weights/limits.h"

static bool fail_unknown(mt_gguf_text name, mt_error *err)
{
    mt_buf known;
    mt_buf_init(&known, MT_LIMIT_ERROR_TEXT);
    for (const mt_clip_kind *kind = mt_clip_kinds; kind->name; kind++)
        mt_buf_printf(&known, "%s%s", kind == mt_clip_kinds ? "" : ", ", kind->name);
    mt_fail(
        err, MT_E_UNSUPPORTED,
        "a projector of kind \"%.*s\" is none that motet knows; known are %s; --text-only uses the model without it",
        (int)(name.len < 64 ? name.len : 64), name.at, known.data);
    mt_buf_free(&known);
    return false;
}

const mt_clip_kind *mt_clip_kind_of(const mt_gguf *p, mt_error *err)
{
    mt_gguf_text name;
    if (!mt_gguf_string(p, "general.architecture", &name) || !mt_gguf_text_is(name, "clip")) {
        mt_fail(err, MT_E_INVALID, "the file is no projector, whose \"general.architecture\" is \"clip\"");
        return NULL;
    }
    if (!mt_gguf_string(p, "clip.projector_type", &name) && !mt_gguf_string(p, "clip.vision.projector_type", &name)) {
        mt_fail(err, MT_E_INVALID, "the projector has no \"clip.projector_type\"; download it again");
        return NULL;
    }
    for (const mt_clip_kind *kind = mt_clip_kinds; kind->name; kind++)
        if (mt_gguf_text_is(name, kind->name))
            return kind;
    fail_unknown(name, err);
    return NULL;
}

static bool read_key(int64_t *out, const mt_gguf *p, const char *key, int64_t least, int64_t most, mt_error *err)
{
    *out = mt_clip_int(p, key, -1);
    if (*out < 0)
        return mt_fail(err, MT_E_INVALID, "the projector has no number \"clip.vision.%s\"; download it again", key);
    return (*out >= least && *out <= most) ||
           mt_fail(err, MT_E_INVALID, "the projector's \"clip.vision.%s\" is %lld, which is not within %lld and %lld",
                   key, (long long)*out, (long long)least, (long long)most);
}

/* Rows of positions: of a table, of two tables, one for each axis, or of one within a dimension of 1. */
static int64_t count_places(const mt_gguf *p)
{
    const mt_tensor_info *t = mt_gguf_find(p, "v.position_embd.weight");
    const uint64_t rows = !t || t->dims < 2 ? 0 : t->dims == 3 ? t->shape[1] : t->shape[0];
    return rows <= INT32_MAX ? (int64_t)rows : 0;
}

static void read_heads(mt_clip_sizes *s, const mt_gguf *p)
{
    const int64_t query = mt_clip_rows(p, "v.blk.0.attn_q.weight"), key = mt_clip_rows(p, "v.blk.0.attn_k.weight");
    s->head_dim = s->heads ? (query ? query : s->hidden) / s->heads : 0;
    s->kv_heads = key && s->head_dim ? key / s->head_dim : s->heads;
}

bool mt_clip_sizes_read(mt_clip_sizes *s, const mt_clip_kind *kind, const mt_gguf *p, mt_error *err)
{
    if (!read_key(&s->hidden, p, "embedding_length", 1, MT_LIMIT_WIDTH, err) ||
        !read_key(&s->layers, p, "block_count", 0, MT_LIMIT_LAYERS, err) ||
        !read_key(&s->heads, p, "attention.head_count", 0, MT_LIMIT_WIDTH, err) ||
        !read_key(&s->patch, p, "patch_size", 1, 256, err))
        return false;
    const int64_t side = mt_clip_int(p, "projector.scale_factor", kind->merge);
    const int64_t image = mt_clip_int(p, "image_size", 0), rows = count_places(p);
    s->merge = mt_clip_int(p, "spatial_merge_size", side);
    if (s->merge < 1 || s->merge > 8)
        return mt_fail(err, MT_E_INVALID, "the projector makes a token of %lld x %lld patches; 1 to 8 are supported",
                       (long long)s->merge, (long long)s->merge);
    s->ffn = mt_clip_rows(p, mt_clip_swapped(p) ? "v.blk.0.ffn_down.weight" : "v.blk.0.ffn_up.weight");
    s->image = image > 0 && image <= 1 << 14 ? image : 0;
    s->places = rows > kind->summary ? rows - kind->summary : 0;
    s->frames = kind->flags & MT_CLIP_PAIRS ? 2 : 1;
    read_heads(s, p);
    return true;
}
