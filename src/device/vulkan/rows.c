/* Operations that treat each row by itself. */

#include "device/vulkan/operations.h"

enum { ELEMENTS = 128, THREADS = 64 }; /* elements of a group of shaders for elements; threads of the others */

void mt_vulkan_op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    const struct {
        mt_vulkan_rows y, x;
    } a = {mt_vulkan_rows_of(y), mt_vulkan_rows_of(x)};
    MT_VULKAN_RUN(dev, add, a, mt_vulkan_groups(a.y.cols, ELEMENTS), m);
}

void mt_vulkan_op_scale(mt_device *dev, mt_tensor *x, size_t m, float factor)
{
    const struct {
        mt_vulkan_rows y;
        float factor;
        uint32_t none;
    } a = {.y = mt_vulkan_rows_of(x), .factor = factor};
    MT_VULKAN_RUN(dev, scale, a, mt_vulkan_groups(a.y.cols, ELEMENTS), m);
}

typedef struct copying {
    mt_vulkan_rows y, x;
    VkDeviceAddress index;
    uint32_t by_index, none;
} copying;

void mt_vulkan_op_gather(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_index *index, size_t m)
{
    const mt_plain_index *list = (const mt_plain_index *)(const void *)index;
    const copying a = {
        .y = mt_vulkan_rows_of(y), .x = mt_vulkan_rows_of(x), .index = mt_vulkan_address(list->memory), .by_index = 1};
    MT_VULKAN_RUN(dev, copy, a, mt_vulkan_groups(a.y.cols, ELEMENTS), m);
}

void mt_vulkan_op_copy_row(mt_device *dev, mt_tensor *y, size_t to, const mt_tensor *x, size_t from)
{
    copying a = {.y = mt_vulkan_rows_of(y), .x = mt_vulkan_rows_of(x)};
    a.y.data += to * a.y.stride * sizeof(float);
    a.x.data += from * a.x.stride * sizeof(float);
    MT_VULKAN_RUN(dev, copy, a, mt_vulkan_groups(a.y.cols, ELEMENTS), 1);
}

typedef struct norming {
    mt_vulkan_rows y, x;
    VkDeviceAddress w;
    uint32_t n;
    float eps, offset, count;
} norming;

/* Norms heads of n elements. */
static void norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, size_t n, float eps,
                 float offset)
{
    const norming a = {.y = mt_vulkan_rows_of(y),
                       .x = mt_vulkan_rows_of(x),
                       .w = mt_vulkan_rows_of(w).data,
                       .n = (uint32_t)n,
                       .eps = eps,
                       .offset = offset,
                       .count = (float)n};
    MT_VULKAN_RUN(dev, norm, a, a.x.cols / n, m);
}

void mt_vulkan_op_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps,
                       float offset)
{
    norm(dev, y, x, m, w, mt_vulkan_plain(x)->cols, eps, offset);
}

void mt_vulkan_op_heads(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, size_t head_dim, const mt_tensor *w,
                        float eps, float offset, const mt_tensor *table, bool pairs)
{
    if (w) {
        norm(dev, y, x, m, w, head_dim, eps, offset);
    } else if (y != x) {
        const copying c = {.y = mt_vulkan_rows_of(y), .x = mt_vulkan_rows_of(x)};
        MT_VULKAN_RUN(dev, copy, c, mt_vulkan_groups(c.y.cols, ELEMENTS), m);
    }
    if (!table)
        return;
    const struct {
        mt_vulkan_rows y, table;
        uint32_t head_dim, half, heads, pairs;
    } a = {.y = mt_vulkan_rows_of(y),
           .table = mt_vulkan_rows_of(table),
           .head_dim = (uint32_t)head_dim,
           .half = (uint32_t)mt_vulkan_plain(table)->cols / 2,
           .heads = (uint32_t)(mt_vulkan_plain(y)->cols / head_dim),
           .pairs = pairs};
    MT_VULKAN_RUN(dev, rope, a, mt_vulkan_groups((size_t)a.half * a.heads, THREADS), m);
}

void mt_vulkan_op_glu(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m, mt_glu glu)
{
    const bool plain = glu.limit == 0 && glu.offset == 0;
    const struct {
        mt_vulkan_rows y, gate, up;
        uint32_t kind, none;
    } a = {.y = mt_vulkan_rows_of(y),
           .gate = mt_vulkan_rows_of(gate),
           .up = mt_vulkan_rows_of(up),
           .kind = glu.act == MT_ACT_SILU        ? 0
                   : glu.act == MT_ACT_GELU_TANH ? 1
                                                 : 2};
    if (plain && (a.kind < 2 || glu.act == MT_ACT_NONE))
        MT_VULKAN_RUN(dev, glu, a, mt_vulkan_groups(a.y.cols, THREADS), m);
    else
        mt_fallback_host(dev)->op_glu(dev, y, gate, up, m, glu);
}

void mt_vulkan_op_finite(mt_device *dev, mt_tensor *ok, const mt_tensor *x, size_t m)
{
    const struct {
        mt_vulkan_rows y, x;
    } a = {mt_vulkan_rows_of(ok), mt_vulkan_rows_of(x)};
    MT_VULKAN_RUN(dev, finite, a, m, 1);
}
