/* Names of a projector's tensors as a checkpoint has them, and what the converter did to some of them
   (gguf_projector.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/gguf_clip.h"
#include "weights/gguf_projector.h"
#include "weights/limits.h"

typedef struct namer {
    const mt_gguf *p;
    const mt_clip_kind *kind;
    mt_clip_sizes sizes;
    bool swapped;
    mt_arena *arena;
    mt_error *err;
} namer;

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* The new name of a tensor; *suffix: what follows it. NULL: the table has none. */
static const char *find_name(const mt_gguf_rename *table, const char *name, const char **suffix)
{
    for (; table->from; table++) {
        *suffix = name + strlen(table->from);
        if (begins(name, table->from) && (**suffix == '\0' || **suffix == '.'))
            return table->to;
    }
    return NULL;
}

static bool fail_shape(const namer *n, const mt_tensor_info *t)
{
    return mt_fail(n->err, MT_E_INVALID,
                   "tensor \"%s\" of the projector has not the shape that its header asks for; download it again",
                   t->name);
}

/* ---- what has to be put right ---- */

/* Where each row of queries or keys is: two halves of a head's elements stand in turns. */
static bool untangle(const namer *n, const mt_tensor_info *t, mt_tensor_fix *fix)
{
    const uint64_t rows = t->dims ? t->shape[0] : 0, heads = (uint64_t)n->sizes.heads;
    if (heads == 0 || rows % heads || rows / heads % 2 || rows > MT_LIMIT_WIDTH)
        return fail_shape(n, t);
    const size_t dim = (size_t)(rows / heads), half = dim / 2;
    uint32_t *order = mt_arena_alloc(n->arena, (size_t)rows * sizeof(*order));
    for (size_t r = 0; r < rows; r++)
        order[r] = (uint32_t)(r - r % dim + r % half * 2 + r % dim / half);
    fix->rows = order;
    return true;
}

/* Pixels of a square in the order of the checkpoint, with colours last, where the file has them first. Of a convolution
   they become columns. */
static bool reorder_pixels(const namer *n, mt_tensor_info *t, mt_tensor_fix *fix)
{
    const uint64_t first = t->dims ? t->shape[0] : 0;
    uint64_t pixels = t->dims == 1 ? first : 1;
    for (unsigned i = 1; i < t->dims; i++)
        pixels = t->shape[i] <= MT_LIMIT_WIDTH ? pixels * t->shape[i] : 0;
    if (pixels == 0 || pixels % 3 || pixels > MT_LIMIT_WIDTH)
        return fail_shape(n, t);
    const uint64_t area = pixels / 3;
    uint32_t *order = mt_arena_alloc(n->arena, (size_t)pixels * sizeof(*order));
    for (uint64_t i = 0; i < pixels; i++)
        order[i] = (uint32_t)(i % 3 * area + i / 3);
    if (t->dims == 1) {
        fix->rows = order;
        return true;
    }
    fix->columns = order;
    fix->piece = 1;
    t->dims = 2;
    t->shape[1] = pixels;
    return true;
}

static bool mend(const namer *n, const char *name, mt_tensor_info *t)
{
    const unsigned flags = n->kind->flags;
    mt_tensor_fix fix = {0};
    if ((flags & MT_CLIP_TURNED) && (strstr(name, ".attn_q.") || strstr(name, ".attn_k.")) && !untangle(n, t, &fix))
        return false;
    if ((flags & MT_CLIP_PLANES) && (strcmp(name, "v.patch_embd.weight") == 0 || begins(name, "v.patch_norm.1.")) &&
        !reorder_pixels(n, t, &fix))
        return false;
    if ((flags & MT_CLIP_ONES) && begins(name, "mm.soft_emb_norm."))
        fix.less = 1;
    if (fix.rows || fix.columns || fix.less != 0)
        t->fix = mt_arena_copy(n->arena, &fix, sizeof(fix));
    return true;
}

/* Gives InternVL's summary and its table the dimensions of 1 that some converters leave out. */
static void widen(mt_tensor_info *t)
{
    while (t->dims < 3) {
        memmove(t->shape + 1, t->shape, t->dims * sizeof(*t->shape));
        t->shape[0] = 1;
        t->dims++;
    }
}

/* ---- names ---- */

/* A tensor of a layer; the name within it follows the number. */
static const char *name_in_layer(const namer *n, long layer, const char *name)
{
    const bool up = begins(name, "ffn_up."), down = begins(name, "ffn_down.");
    const char *suffix, *inner = (n->kind->flags & MT_CLIP_INNER) && strstr(name, ".weight") ? ".linear" : "";
    const char *to = find_name(n->kind->layers, name, &suffix);
    const char *tail = suffix;
    if (to && n->swapped && (up || down))
        to = find_name(n->kind->layers, up ? "ffn_down" : "ffn_up", &suffix);
    if (!to)
        return NULL;
    if (strstr(to, "norm")) /* a norm is no product */
        inner = "";
    return mt_arena_printf(n->arena, "%s%ld.%s%s%s", n->kind->layer, layer, to, inner, tail);
}

/* DeepStack's tensors have the number of the layer that they follow; the checkpoint counts them. */
static const char *name_in_deepstack(const namer *n, long layer, const char *name)
{
    static const mt_gguf_rename names[] = {
        {"norm", "norm"}, {"fc1", "linear_fc1"}, {"fc2", "linear_fc2"}, {NULL, NULL}};
    const char *suffix, *to = find_name(names, name, &suffix);
    char earlier[64];
    size_t index = 0;
    for (long i = 0; i < layer; i++) {
        snprintf(earlier, sizeof(earlier), "v.deepstack.%ld.fc1.weight", i);
        index += mt_gguf_find(n->p, earlier) != NULL;
    }
    return to ? mt_arena_printf(n->arena, "vision_tower.deepstack_merger_list.%zu.%s%s", index, to, suffix) : NULL;
}

/* The name in the checkpoint; NULL: motet has no use for the tensor. */
static const char *name_any(const namer *n, const char *name)
{
    static const struct {
        const char *prefix;
        const char *(*rename)(const namer *n, long layer, const char *name);
    } numbered[] = {{"v.blk.", name_in_layer}, {"v.deepstack.", name_in_deepstack}};
    const char *suffix, *to;
    char *end;
    for (size_t i = 0; i < MT_COUNT(numbered); i++) {
        const char *number = name + strlen(numbered[i].prefix);
        if (!begins(name, numbered[i].prefix))
            continue;
        const long layer = strtol(number, &end, 10);
        return end > number && *end == '.' && layer >= 0 && layer < MT_LIMIT_LAYERS
                   ? numbered[i].rename(n, layer, end + 1)
                   : NULL;
    }
    to = find_name(n->kind->others, name, &suffix);
    return to ? mt_arena_printf(n->arena, "%s%s", to, suffix) : NULL;
}

bool mt_gguf_projector_names(const mt_gguf *projector, mt_arena *arena, mt_tensor_info **out, size_t *count,
                             mt_error *err)
{
    namer n = {.p = projector, .kind = mt_clip_kind_of(projector, err), .arena = arena, .err = err};
    if (!n.kind || !mt_clip_sizes_read(&n.sizes, n.kind, projector, err))
        return false;
    n.swapped = mt_clip_swapped(projector);
    *count = mt_gguf_tensors(projector);
    *out = mt_arena_alloc(arena, (*count + 1) * sizeof(**out));
    for (size_t i = 0; i < *count; i++) {
        mt_tensor_info *t = &(*out)[i];
        *t = *mt_gguf_tensor(projector, i);
        const char *name = name_any(&n, t->name);
        if (name && !mend(&n, t->name, t))
            return false;
        if (n.kind->summary && (begins(t->name, "v.class_embd") || begins(t->name, "v.position_embd.")))
            widen(t);
        t->name = name ? name : mt_arena_printf(arena, "gguf.%s", t->name); /* nothing asks for it */
    }
    return true;
}
