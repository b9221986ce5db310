/* Products in the arithmetic `native` (device/native.h) on the host's side: how rows are packed, which kernel runs on
   how many blocks, and which operations become part of it. */
#include <assert.h>

#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define WARPS (MT_NATIVE_GROUP / MT_NATIVE_CHUNK) /* of a block that packs: a chunk each */

/* A kernel of native_few.cuh. */
typedef struct few_kernel {
    mt_cuda_kernel kernel;
    uint32_t bits, groups, rows, tiles, blocks, threads, stage;
} few_kernel;

static const few_kernel few_kernels[] = {
#define FEW_KERNEL(bits, groups, rows, tiles, blocks)      \
    {MT_K_native_few_##bits##_##groups##_##rows##_##tiles, \
     bits,                                                 \
     groups,                                               \
     rows,                                                 \
     tiles,                                                \
     blocks,                                               \
     MT_CUDA_NATIVE_FEW_THREADS(rows, tiles),              \
     MT_CUDA_NATIVE_FEW_STAGE(bits, groups, rows, tiles)},
    MT_CUDA_NATIVE_FEW(FEW_KERNEL)
#undef FEW_KERNEL
};
#define FIRST_FEW MT_K_native_few_4_1_8_1
#define LAST_FEW MT_K_native_few_8_4_64_2

/* A kernel of native_row.cu. */
typedef struct row_kernel {
    mt_cuda_kernel kernel;
    uint32_t bits, groups, tiles, stage, blocks;
} row_kernel;

static const row_kernel row_kernels[] = {
#define ROW_KERNEL(bits, groups, tiles)             \
    {MT_K_native_row_##bits##_##groups##_##tiles,   \
     bits,                                          \
     groups,                                        \
     tiles,                                         \
     MT_CUDA_NATIVE_ROW_STAGE(bits, groups, tiles), \
     MT_CUDA_NATIVE_ROW_BLOCKS(tiles)},
    MT_CUDA_NATIVE_ROW(ROW_KERNEL)
#undef ROW_KERNEL
};
#define LAST_ROW MT_K_native_row_8_4_2 /* they follow those of few rows */

/* Groups of k that tensor cores sum up. */
static uint32_t groups_of(const mt_cuda_weight *w)
{
    return (uint32_t)((w->k + MT_NATIVE_GROUP - 1) / MT_NATIVE_GROUP);
}

static uint32_t bits_of(const mt_cuda_weight *w)
{
    return w->kind == MT_CUDA_NATIVE4 ? 4 : 8;
}

bool mt_cuda_native_alike(const mt_weight *a, const mt_weight *b)
{
    return a->class == MT_CLASS_N && b->class == MT_CLASS_N && a->d.k == b->d.k && a->d.kind == b->d.kind &&
           a->d.groups == b->d.groups;
}

/* ---- rows ---- */

/* Tiles of 64 columns of weights that are multiplied together, times the groups of k. */
static size_t blocks_of(const mt_weight *const *w, size_t count)
{
    size_t blocks = 0;
    for (size_t i = 0; i < count; i++)
        blocks += mt_cuda_up(w[i]->d.n, MT_CUDA_NATIVE_TILE) / MT_CUDA_NATIVE_TILE * groups_of(&w[i]->d);
    return blocks;
}

/* Rows of a tile of packed rows: the fewest that products of few rows take at once, or those of many. Where weights are
   so small that multiprocessors would be idle, few rows become several tiles. */
static uint32_t tile_rows(const mt_device *dev, const mt_weight *const *w, size_t count, size_t m)
{
    const size_t blocks = blocks_of(w, count);
    uint32_t rows = 8;
    while (rows < m && rows < MT_CUDA_NATIVE_ROWS)
        rows *= 2;
    while (m <= MT_CUDA_FEW_ROWS && rows > 8 && (m + rows / 2 - 1) / (rows / 2) * blocks <= (size_t)dev->processors)
        rows /= 2;
    return rows;
}

/* Replaces the last kernel in the list, if it norms or gates these rows, by one that packs them as well; else false. */
static bool pack_normed(mt_device *dev, const mt_cuda_pack *p)
{
    const mt_cuda_made *few = mt_cuda_last(dev, MT_K_norm, MT_K_norm);
    const mt_cuda_made *norm = few ? few : mt_cuda_last(dev, MT_K_norm_many, MT_K_norm_many);
    const mt_cuda_made *glu = mt_cuda_last(dev, MT_K_glu_many, MT_K_glu_many);
    const mt_cuda_rows *glu_few = mt_cuda_last(dev, MT_K_glu, MT_K_glu);
    const mt_cuda_rows *last = norm ? &norm->rows : glu ? &glu->rows : glu_few;
    const bool packs = (norm && norm->pack.to.q) || (glu && glu->pack.to.q);
    if (!last || packs || last->y.data != p->x.data || last->y.cols != p->k || last->m != p->m)
        return false;
    const mt_cuda_made both = {.rows = *last, .pack = *p};
    const size_t padded = p->to.padded, chunks = padded / MT_NATIVE_CHUNK;
    mt_cuda_drop(dev);
    if (norm)
        mt_cuda_launch(dev, MT_K_native_norm, p->m, 1, 1, 32 * MT_MIN(chunks, (size_t)32),
                       padded / 8 * 9 * sizeof(float), &both);
    else
        mt_cuda_launch(dev, MT_K_native_glu, (chunks + WARPS - 1) / WARPS, p->m, 1, 32 * WARPS, 0, &both);
    return true;
}

/* Where m rows go that a product has gated, which reads packed rows itself. */
static mt_cuda_packed beside(const mt_device *dev, mt_cuda_packed packed, size_t m)
{
    packed.q = dev->packed_gated;
    packed.turns = dev->packed_gated + mt_cuda_up(m, packed.rows) * packed.padded * sizeof(mt_f16);
    return packed;
}

/* Has the last kernel in the list, if it is a product that gates these rows, also pack them; else false. */
static bool pack_gated(mt_device *dev, const mt_cuda_pack *p)
{
    mt_cuda_native *last = mt_cuda_last(dev, FIRST_FEW, LAST_FEW);
    if (!last || !last->gates || last->gated.q || last->glu.data != p->x.data || last->glu.cols != p->k ||
        last->m != p->m || p->k % MT_NATIVE_CHUNK || last->from.q == dev->packed_gated)
        return false;
    last->gated = dev->packed = beside(dev, p->to, p->m);
    return true;
}

/* The same for attention of few rows. */
static bool pack_attended(mt_device *dev, const mt_cuda_pack *p)
{
    mt_cuda_attention *few = mt_cuda_last(dev, MT_K_attention_few_64, MT_K_attention_few_64);
    mt_cuda_attention *wide = mt_cuda_last(dev, MT_K_attention_few_128, MT_K_attention_few_128);
    mt_cuda_asked *asked = mt_cuda_last(dev, MT_K_attention_asked_64, MT_K_attention_asked_128);
    mt_cuda_attention *last = few ? few : wide ? wide : asked ? &asked->attention : NULL;
    if (!last || last->packed.q || last->y.data != p->x.data || last->y.cols != p->k || last->step.rows != p->m ||
        last->kv.head_dim != last->kv.head_stride || p->k % MT_NATIVE_CHUNK)
        return false;
    last->packed = p->to;
    return true;
}

void mt_cuda_native_pack(mt_device *dev, const mt_weight *const *w, size_t count, mt_cuda_mat x, size_t m)
{
    dev->packed = dev->packed_any;
    dev->packed.rows = tile_rows(dev, w, count, m);
    dev->packed.padded = (uint32_t)mt_native_padded(w[0]->d.k);
    const mt_cuda_native_packing all = {.p = {.x = x, .to = dev->packed, .m = (uint32_t)m, .k = w[0]->d.k}};
    if (!pack_normed(dev, &all.p) && !pack_gated(dev, &all.p) && !pack_attended(dev, &all.p))
        mt_cuda_launch(dev, MT_K_native_pack, m, groups_of(&w[0]->d), 1, 32 * WARPS, 0, &all);
}

void mt_cuda_native_spend(mt_device *dev, mt_cuda_mat x)
{
    mt_cuda_kernel kernel;
    void *p;
    for (size_t back = 0; (p = mt_cuda_listed(dev, back, &kernel)) != NULL; back++) {
        mt_cuda_native *few = kernel >= FIRST_FEW && kernel <= LAST_ROW ? p : NULL;
        if (few && back == 0 && few->out.data == x.data)
            few->out = (mt_cuda_mat){0};
        if (few && few->gated.q && few->glu.data == x.data)
            few->packed_only = true;
        for (uint32_t i = 0; few && few->gates && i < 2; i++)
            if (few->y[i].data == x.data)
                few->y[i] = (mt_cuda_mat){0};
        if (!few || few->gates)
            break;
    }
    mt_cuda_attention *a = NULL;
    if (p && (kernel == MT_K_attention_few_64 || kernel == MT_K_attention_few_128))
        a = p;
    else if (p && kernel >= MT_K_attention_asked_64 && kernel <= MT_K_attention_asked_128)
        a = &((mt_cuda_asked *)p)->attention;
    if (a && a->packed.q && a->y.data == x.data)
        a->packed_only = true;
}

/* ---- products ---- */

/* Stages of a ring with which `blocks` blocks run at once, or `most` of them on a multiprocessor; 0: not even two.
   beside: bytes of shared memory that a block has beside its ring. */
static uint32_t ring_stages(const mt_device *dev, size_t blocks, size_t most, size_t beside, size_t stage)
{
    enum { LEAST = 2, MOST = MT_NATIVE_GROUP / MT_NATIVE_CHUNK, STATIC = 256, RESERVED = 1024 };
    const size_t all = (size_t)dev->processors, each = MT_MIN((blocks + all - 1) / all, most);
    const size_t room = ((size_t)dev->shared + RESERVED) / each - RESERVED - STATIC;
    const size_t stages = room > beside ? (room - beside) / stage : 0;
    return stages < LEAST ? 0 : (uint32_t)MT_MIN(stages, (size_t)MOST);
}

/* Clusters that a weight's columns are dealt out to, in blocks of so many tiles; where they gate, half of these are
   tiles of up. */
static size_t clusters_of_weight(const mt_cuda_native *p, size_t i, uint32_t tiles)
{
    const size_t columns = (p->gates ? tiles / 2 : tiles) * (size_t)MT_CUDA_NATIVE_TILE;
    return (p->w[i].n + columns - 1) / columns;
}

static size_t clusters_of(const mt_cuda_native *p, uint32_t tiles)
{
    size_t clusters = 0;
    for (size_t i = 0; i < (p->gates ? 1 : p->count); i++)
        clusters += clusters_of_weight(p, i, tiles);
    return clusters;
}

/* Says which weight's columns each cluster has; returns the number of clusters. */
static size_t deal_columns(mt_cuda_native *p, uint32_t tiles)
{
    const size_t count = p->gates ? 1 : p->count;
    for (size_t i = 0; i < MT_CUDA_TOGETHER; i++)
        p->first[i + 1] = p->first[i] + (uint32_t)(i < count ? clusters_of_weight(p, i, tiles) : 0);
    return p->first[count];
}

/* The kernel with which all blocks run at once; of several, or where there is none, the one with which the busiest
   multiprocessor copies the fewest bytes: every block copies all rows of its tile beside its weights. Blocks of six
   tiles gate, and their rows are not sorted: others are faster with two. */
static const few_kernel *choose_few(const mt_device *dev, const mt_cuda_native_few *few)
{
    const mt_cuda_native *p = &few->p;
    const size_t all = (size_t)dev->processors;
    const uint32_t most = p->gates && !few->shares[0].experts ? 6 : 2;
    const few_kernel *best = NULL;
    size_t best_bytes = 0;
    bool best_at_once = false;
    for (size_t i = 0; i < MT_COUNT(few_kernels); i++) {
        const few_kernel *k = &few_kernels[i];
        if (k->bits != bits_of(&p->w[0]) || k->groups != p->w[0].groups || k->rows != p->from.rows || k->tiles > most ||
            (p->gates && k->tiles % 2))
            continue;
        const size_t row_tiles = (p->m + k->rows - 1) / k->rows;
        const size_t blocks = clusters_of(p, k->tiles) * groups_of(&p->w[0]) * row_tiles;
        const size_t bytes = (blocks + all - 1) / all * k->stage;
        const bool at_once = blocks <= k->blocks * all;
        if (!best || (at_once == best_at_once ? bytes < best_bytes : at_once)) {
            best = k;
            best_bytes = bytes;
            best_at_once = at_once;
        }
    }
    return best;
}

static void launch_few(mt_device *dev, mt_cuda_native_few *few)
{
    enum { ALIGNED = 1024 }; /* where the ring begins */
    const few_kernel *k = choose_few(dev, few);
    mt_cuda_native *p = &few->p;
    const size_t groups = groups_of(&p->w[0]), blocks = deal_columns(p, k->tiles) * groups;
    const size_t row_tiles = (p->m + k->rows - 1) / k->rows;
    /* after the products, the memory of the ring holds the block's sums and those that other blocks send to it */
    const size_t sums = 2 * k->rows * (k->tiles * (size_t)MT_CUDA_NATIVE_TILE + 4) * sizeof(float);
    p->stages = 0;
    for (uint32_t most = k->blocks; most > 0 && !p->stages; most--) /* more than one only where its ring has room */
        p->stages = ring_stages(dev, blocks * row_tiles, most, ALIGNED, k->stage);
    mt_cuda_launch_cluster(dev, k->kernel, blocks, row_tiles, groups, k->threads,
                           ALIGNED + MT_MAX(p->stages * k->stage, sums), few);
}

static void multiply_few(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    mt_cuda_native_few few = {.p = {.from = dev->packed, .m = (uint32_t)m, .count = (uint32_t)count}};
    for (size_t i = 0; i < count; i++) {
        few.p.w[i] = w[i]->d;
        few.p.y[i] = y[i]->m;
    }
    launch_few(dev, &few);
}

static mt_cuda_kernel decoder_of(const mt_cuda_weight *w)
{
    if (w->kind == MT_CUDA_NATIVE4)
        return w->groups == 1   ? MT_K_native_decode_4_1
               : w->groups == 2 ? MT_K_native_decode_4_2
                                : MT_K_native_decode_4_4;
    return w->groups == 1 ? MT_K_native_decode_8_1 : w->groups == 2 ? MT_K_native_decode_8_2 : MT_K_native_decode_8_4;
}

/* Strips of columns, as many at a time as there is room for once they are decoded. */
static void multiply_many(mt_device *dev, mt_tensor *y, const mt_weight *w, size_t m)
{
    const size_t padded = mt_native_padded(w->d.k);
    const size_t most =
        dev->decoded_bytes / (padded * sizeof(mt_f16)) / MT_CUDA_NATIVE_COLUMNS * MT_CUDA_NATIVE_COLUMNS;
    const size_t all = mt_cuda_up(w->d.n, MT_CUDA_NATIVE_COLUMNS);
    const size_t row_tiles =
        (m + MT_CUDA_NATIVE_GROUPS * MT_CUDA_NATIVE_ROWS - 1) / (MT_CUDA_NATIVE_GROUPS * MT_CUDA_NATIVE_ROWS);
    assert(most > 0); /* mt_cuda_device_plan has seen every weight */
    for (size_t column = 0; most > 0 && column < all; column += most) {
        const size_t columns = MT_MIN(most, all - column), tiles = columns / MT_CUDA_NATIVE_COLUMNS * row_tiles;
        const mt_cuda_native_prompt p = {.w = w->d,
                                         .y = y->m,
                                         .from = dev->packed,
                                         .decoded = dev->decoded,
                                         .column = (uint32_t)column,
                                         .columns = (uint32_t)columns,
                                         .m = (uint32_t)m};
        mt_cuda_launch(dev, decoder_of(&w->d), w->d.steps, columns / MT_CUDA_NATIVE_TILE, 1, 128, 0, &p);
        mt_cuda_launch(dev, MT_K_native_prompt, MT_MIN(tiles, (size_t)dev->processors), 1, 1, MT_CUDA_NATIVE_THREADS,
                       MT_CUDA_NATIVE_STAGES * MT_CUDA_NATIVE_STAGE + 1024, &p);
    }
}

void mt_cuda_native_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    if (m <= MT_CUDA_FEW_ROWS)
        multiply_few(dev, y, w, count, m);
    for (size_t i = 0; m > MT_CUDA_FEW_ROWS && i < count; i++)
        multiply_many(dev, y[i], w[i], m);
}

/* ---- products of one row ---- */

static const row_kernel *find_row(const mt_cuda_weight *w, uint32_t tiles)
{
    const row_kernel *k = row_kernels;
    while (k->bits != bits_of(w) || k->groups != w->groups || k->tiles != tiles)
        k++;
    return k;
}

/* Bytes of shared memory beside the ring: the row, packed, and before it is normed; sums that come to a block. */
static size_t beside_ring(const mt_cuda_native *p, const row_kernel *k)
{
    const size_t sums = groups_of(&p->w[0]) * k->tiles * MT_CUDA_NATIVE_TILE * sizeof(float);
    return MT_CUDA_NATIVE_ROW_OWN + (p->norm ? p->w[0].k * sizeof(float) : 0) + sums;
}

/* Deals the columns out to blocks of the kernel; returns the number of these. */
static size_t row_blocks(mt_cuda_native *p, const row_kernel *k)
{
    return deal_columns(p, k->tiles) * groups_of(&p->w[0]);
}

static uint32_t row_stages(const mt_device *dev, mt_cuda_native *p, const row_kernel *k)
{
    return ring_stages(dev, row_blocks(p, k), k->blocks, beside_ring(p, k), k->stage);
}

/* 64 columns a block where all blocks run at once, else 128; false where there is too little shared memory. */
static bool launch_row(mt_device *dev, mt_cuda_native *p)
{
    const row_kernel *k = find_row(&p->w[0], 1);
    p->stages = p->gates || row_blocks(p, k) > (size_t)dev->processors * k->blocks ? 0 : row_stages(dev, p, k);
    if (!p->stages) {
        k = find_row(&p->w[0], 2);
        p->stages = row_stages(dev, p, k);
    }
    if (!p->stages)
        return false;
    mt_cuda_launch_cluster(dev, k->kernel, row_blocks(p, k), 1, groups_of(&p->w[0]),
                           MT_CUDA_NATIVE_ROW_THREADS(k->tiles), beside_ring(p, k) + p->stages * k->stage, p);
    return true;
}

bool mt_cuda_native_row(mt_device *dev, const mt_cuda_products *from)
{
    mt_cuda_native p = {.x = from->x, .m = 1, .count = (uint32_t)from->count};
    p.from.padded = (uint32_t)mt_native_padded(from->w[0]->d.k);
    for (size_t i = 0; i < from->count; i++) {
        if (from->y[i]->m.data == from->x.data)
            return false;
        p.w[i] = from->w[i]->d;
        p.y[i] = from->y[i]->m;
    }
    return launch_row(dev, &p);
}

bool mt_cuda_native_norm(mt_device *dev, const mt_cuda_rows *norm, const mt_cuda_native *product)
{
    mt_cuda_native p = *product;
    if (p.norm || norm->y.data != p.x.data || norm->y.cols != p.w[0].k || norm->m != 1 ||
        norm->y.data == norm->x.data || p.w[0].k % 16 || norm->x.data % 16 || norm->y.data % 16)
        return false;
    for (uint32_t i = 0; i < p.count; i++)
        if (p.y[i].data == norm->x.data || p.y[i].data == norm->y.data)
            return false;
    p.x = norm->x;
    p.out = norm->y;
    p.norm = norm->w.data;
    p.eps = norm->eps;
    p.offset = norm->offset;
    if (!row_stages(dev, &p, find_row(&p.w[0], 2)))
        return false;
    mt_cuda_drop(dev);
    return launch_row(dev, &p);
}

/* ---- rows sorted by expert ---- */

size_t mt_cuda_native_places(size_t pairs, size_t experts)
{
    return pairs + (MT_CUDA_NATIVE_ROWS - 1) * MT_MIN(experts, pairs);
}

/* About half as many again as an expert has on average, so that few experts have two shares. */
uint32_t mt_cuda_native_share(size_t pairs, size_t experts)
{
    uint32_t rows = 8;
    while (rows < MT_CUDA_NATIVE_ROWS && 2 * rows * experts < 3 * pairs)
        rows *= 2;
    return rows;
}

void mt_cuda_native_pack_shares(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr index, size_t m,
                                uint32_t rows, size_t most)
{
    dev->packed = dev->packed_any;
    dev->packed.rows = rows;
    dev->packed.padded = (uint32_t)mt_native_padded(w->d.k);
    const mt_cuda_native_packing p = {.p = {.x = x, .index = index, .to = dev->packed, .m = (uint32_t)m, .k = w->d.k},
                                      .share = {.share = dev->share, .count = dev->share_count}};
    mt_cuda_launch(dev, MT_K_native_pack, most * rows, groups_of(&w->d), 1, 32 * WARPS, 0, &p);
}

void mt_cuda_native_experts(mt_device *dev, mt_cuda_native_few *few, size_t most)
{
    mt_cuda_native *p = &few->p;
    p->m = (uint32_t)most * p->from.rows;
    launch_few(dev, few);
}

mt_cuda_packed mt_cuda_native_beside(const mt_device *dev, const mt_weight *w, uint32_t rows, size_t most)
{
    return beside(dev, (mt_cuda_packed){.rows = rows, .padded = (uint32_t)mt_native_padded(w->d.k)}, most * rows);
}

/* ---- what becomes part of a product ---- */

bool mt_cuda_native_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m)
{
    mt_cuda_native *p = mt_cuda_last(dev, FIRST_FEW, LAST_ROW);
    if (!p || p->x.data == y.data || p->out.data == y.data || p->count != 1 || p->m != m || p->add.data ||
        p->y[0].data != x.data || p->y[0].cols != x.cols || y.data == x.data || p->w[0].n != y.cols)
        return false;
    p->add = y;
    return true;
}

bool mt_cuda_native_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu)
{
    const mt_cuda_native *last = mt_cuda_last(dev, FIRST_FEW, LAST_ROW);
    if (!last || last->gates || last->x.data == y.data || last->out.data == y.data || last->count != 2 ||
        last->m != m || last->y[0].data != gate.data || last->y[1].data != up.data || last->w[0].n != last->w[1].n ||
        last->w[0].n != y.cols || y.data == up.data)
        return false;
    mt_cuda_native p = *last;
    p.gates = 1;
    if (y.data == gate.data)
        p.y[0] = (mt_cuda_mat){0};
    p.glu = y;
    p.glu_limit = glu->limit;
    p.glu_offset = glu->offset;
    p.act = glu->act;
    if (p.x.data && !row_stages(dev, &p, find_row(&p.w[0], 2)))
        return false;
    mt_cuda_drop(dev);
    if (p.x.data)
        return launch_row(dev, &p);
    launch_few(dev, &(mt_cuda_native_few){.p = p});
    return true;
}
