/* How products of up to 8 rows become stages of a chain (chain.cu). */
#include "device/cuda/cuda.h"

#define OWN_ELEMENTS 4096  /* of rows: up to so many each block packs for itself rather than meet others */
#define STATIC (14u << 10) /* of shared memory, that the kernels have besides */

static bool is_wide(const mt_cuda_weight *w)
{
    return w->kind == MT_CUDA_CODES8;
}

static bool is_plain(const mt_cuda_weight *w)
{
    return w->group == 64 && w->k % MT_CUDA_STEP == 0 && w->pairs == MT_SCALE_BF16;
}

/* What the last kernel makes of rows it has, this stage makes itself. */
static void take_making(mt_device *dev, mt_cuda_chain_stage *s)
{
    const mt_cuda_rows *norm = mt_cuda_last(dev, MT_K_norm, MT_K_norm), *glu = mt_cuda_last(dev, MT_K_glu, MT_K_glu);
    const mt_cuda_rows *last = norm ? norm : glu;
    if (!last || last->y.data != s->pack.x.data || last->y.cols != s->pack.k || last->m != s->pack.to.rows)
        return;
    s->made = norm ? MT_CUDA_NORMED : MT_CUDA_GATED;
    s->pack.x = last->x;
    s->out = last->y;
    s->up = last->x2;
    s->norm = norm ? last->w.data : 0;
    s->eps = last->eps;
    s->offset = last->offset;
    s->limit = last->limit;
    s->act = last->kind;
    mt_cuda_drop(dev);
}

/* Blocks do not wait for each other between a stage's rows and its product, unless they make the rows together: then
   nothing that is written may be what is read. */
static bool overlaps(const mt_cuda_chain_stage *s)
{
    bool does = s->out.data == s->pack.x.data || (s->made == MT_CUDA_GATED && s->out.data == s->up.data);
    for (uint32_t i = 0; i < s->count; i++)
        does = does || s->y[i].data == s->pack.x.data || (s->made == MT_CUDA_GATED && s->y[i].data == s->up.data);
    return does;
}

static size_t own_bytes(const mt_cuda_chain_stage *s)
{
    const size_t steps = s->pack.to.padded / MT_CUDA_STEP;
    return mt_cuda_up(s->pack.to.rows * steps * (144 + 128 / s->pack.group * 4), 16) +
           (s->made == MT_CUDA_NORMED ? s->pack.k * sizeof(float) : 0);
}

/* The ring takes what shared memory the rows leave; false where that is too little: a chunk for each warp, since a warp
   that waits for a slot's next chunk takes the last but one for it where the last has not come yet. */
static bool share_out(const mt_device *dev, mt_cuda_chain *c, size_t *shared)
{
    const mt_cuda_weight *w = &c->stage[0].w[0];
    const size_t chunk = is_plain(w) ? MT_CUDA_CHAIN_CHUNK : MT_CUDA_CHAIN_CHUNK / 2,
                 all = (size_t)dev->shared - STATIC;
    const size_t slot =
        chunk * ((is_wide(w) ? 2048 : 1024) + 128 / w->group * 16 * (w->pairs == MT_SCALE_F32 ? 8u : 4u));
    size_t own = 0;
    for (uint32_t i = 0; i < c->count; i++)
        own = own_bytes(&c->stage[i]) > own ? own_bytes(&c->stage[i]) : own;
    if (own + MT_CUDA_CHAIN_WARPS * slot > all)
        return false;
    const size_t slots = (all - own) / slot;
    c->slot = (uint32_t)slot;
    c->slots = (uint32_t)(slots < MT_CUDA_CHAIN_STAGES ? slots : MT_CUDA_CHAIN_STAGES);
    *shared = c->slots * slot + own;
    return true;
}

static mt_cuda_kernel kernel_of(const mt_cuda_chain *c)
{
    const mt_cuda_weight *w = &c->stage[0].w[0];
    return (mt_cuda_kernel)(MT_K_chain_4_1_64 + (is_plain(w) ? 0 : 4) + (is_wide(w) ? 2 : 0) +
                            (c->stage[0].pack.to.rows > 1));
}

/* Whether a stage can follow those of a chain. */
static bool follows(const mt_cuda_chain *c, const mt_cuda_chain_stage *s, size_t most)
{
    const mt_cuda_weight *a = &c->stage[0].w[0], *b = &s->w[0];
    return c->count < most && c->stage[0].pack.to.rows == s->pack.to.rows && a->kind == b->kind &&
           a->group == b->group && a->pairs == b->pairs && a->format == b->format && is_plain(a) == is_plain(b);
}

bool mt_cuda_chain_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, mt_cuda_mat x,
                          size_t m)
{
    mt_cuda_chain c = {.meetings = dev->meetings, .count = 1};
    mt_cuda_chain_stage *s = &c.stage[0];
    size_t shared;
    const uint32_t k = w[0]->d.k;
    s->pack = (mt_cuda_pack){
        .x = x, .to = dev->packed, .m = (uint32_t)m, .k = k, .group = w[0]->d.group, .wide = w[0]->mat.bits == 8};
    s->pack.to.rows = (uint32_t)m;
    s->pack.to.padded = (uint32_t)mt_cuda_up(k, MT_CUDA_STEP);
    s->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        s->w[i] = w[i]->d;
        s->y[i] = y[i]->m;
        s->first[i + 1] = s->first[i] + (w[i]->d.n + 15) / 16;
    }
    s->made = mt_cuda_last(dev, MT_K_norm, MT_K_norm) ? MT_CUDA_NORMED : MT_CUDA_AS_THEY_ARE; /* perhaps */
    if (dev->ways.chain == 0 || (dev->ways.row && m == 1) || !share_out(dev, &c, &shared))
        return false;
    s->made = MT_CUDA_AS_THEY_ARE;
    take_making(dev, s);
    s->together = overlaps(s) || m * k > OWN_ELEMENTS;
    const mt_cuda_chain *last = mt_cuda_last(dev, MT_K_chain_4_1_64, MT_K_chain_8_8_0);
    if (last && follows(last, s, dev->ways.chain)) {
        mt_cuda_chain both = *last;
        size_t more;
        both.stage[both.count++] = *s;
        if (share_out(dev, &both, &more)) {
            mt_cuda_drop(dev);
            c = both;
            shared = more;
        }
    }
    mt_cuda_launch(dev, kernel_of(&c), (size_t)dev->processors, 1, 1, 32 * (MT_CUDA_CHAIN_WARPS + 1), shared, &c);
    return true;
}

bool mt_cuda_chain_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m)
{
    mt_cuda_chain *c = mt_cuda_last(dev, MT_K_chain_4_1_64, MT_K_chain_8_8_0);
    mt_cuda_chain_stage *s = c ? &c->stage[c->count - 1] : NULL;
    if (!s || s->count != 1 || s->pack.to.rows != m || s->add.data || s->y[0].data != x.data ||
        s->y[0].cols != x.cols || y.data == x.data || s->w[0].n != y.cols || y.data == s->pack.x.data ||
        y.data == s->up.data)
        return false;
    s->add = y;
    return true;
}
