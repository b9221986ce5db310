/* The step's rows, and attention over pages of 16 or 32 bits; other pages are the fallback's. */
#include "device/vulkan/operations.h"

#include <string.h>

#include "base/alloc.h"
#include "device/limits.h"

enum { THREADS = 64, FLAG_BF16 = 1, FLAG_CAUSAL = 2, FLAG_SINKS = 4, FIRST_TABLE = 4 };

/* Of a span: the pages of all its positions and of those it sees. */
static size_t pages_of(const mt_batch *b, const mt_span *s)
{
    size_t end = s->position + s->rows;
    for (size_t r = s->row; b->seen && r < s->row + s->rows; r++)
        end = b->seen[r] > end ? b->seen[r] : end;
    return mt_vulkan_groups(end, MT_PAGE_TOKENS);
}

static size_t words_of(const mt_batch *b)
{
    size_t words = b->rows * MT_VULKAN_ROW_WORDS;
    for (size_t i = 0; i < b->spans; i++)
        words += MT_KV_GROUPS * pages_of(b, &b->span[i]);
    return words;
}

bool mt_vulkan_step_plan(mt_device *dev, size_t words)
{
    if (dev->step && words <= dev->step_words)
        return true;
    if (dev->step)
        mt_vulkan_memory_free(dev, dev->step);
    mt_free(dev->step_host);
    dev->step_words = words;
    dev->step_host = mt_alloc_array(words, sizeof(*dev->step_host));
    dev->step = mt_vulkan_memory_new(dev, words * sizeof(*dev->step_host));
    return dev->step != NULL;
}

void mt_vulkan_step_begin(mt_device *dev, const mt_batch *b)
{
    const size_t words = words_of(b);
    if (!mt_vulkan_step_plan(dev, words > dev->step_words ? 2 * words : words)) {
        (void)mt_vulkan_ok(dev, VK_ERROR_OUT_OF_DEVICE_MEMORY, "hold the pages of a step");
        return;
    }
    dev->batch_rows = b->rows;
    dev->follows = b->chooser != NULL;
    uint32_t *rows = dev->step_host;
    size_t used = b->rows * MT_VULKAN_ROW_WORDS;
    for (size_t i = 0; i < b->spans; i++) {
        const mt_span *s = &b->span[i];
        const size_t pages = pages_of(b, s);
        uint32_t table[MT_KV_GROUPS] = {0};
        for (size_t g = 0; g < MT_KV_GROUPS; g++) {
            table[g] = (uint32_t)used;
            if (!s->pages[g])
                continue;
            memcpy(rows + used, s->pages[g], pages * sizeof(*rows));
            used += pages;
        }
        for (size_t r = s->row; r < s->row + s->rows; r++) {
            uint32_t *to = rows + r * MT_VULKAN_ROW_WORDS;
            to[0] = b->tokens ? b->tokens[r] : 0;
            to[1] = b->seen_from ? b->seen_from[r] : 0;
            to[2] = b->seen ? b->seen[r] : UINT32_MAX;
            to[3] = s->position + (uint32_t)(r - s->row) + 1;
            memcpy(to + FIRST_TABLE, table, sizeof(table));
        }
    }
    mt_vulkan_memory_write(dev, dev->step, 0, rows, used * sizeof(*rows));
}

/* Whether shaders take such pages. */
static bool plain_pages(const mt_kv_shape *shape)
{
    return (shape->type == MT_KV_BF16 || shape->type == MT_KV_F32) && !shape->latent &&
           shape->page_tokens == MT_PAGE_TOKENS;
}

static const mt_plain_kv *plain_kv(const mt_kv *kv)
{
    return (const mt_plain_kv *)(const void *)kv;
}

static void write_half(mt_device *dev, const mt_kv *kv, const mt_kv_shape *shape, size_t first, const mt_tensor *x)
{
    const struct {
        mt_vulkan_rows x;
        VkDeviceAddress step, pages;
        uint64_t page_bytes;
        uint32_t step_words, table, page_tokens, head_dim, head_stride, block, first, bf16, heads, none;
    } a = {.x = mt_vulkan_rows_of(x),
           .step = mt_vulkan_address(dev->step),
           .pages = mt_vulkan_address(plain_kv(kv)->memory),
           .page_bytes = mt_kv_page_bytes(dev, shape),
           .step_words = MT_VULKAN_ROW_WORDS,
           .table = (uint32_t)(FIRST_TABLE + shape->group),
           .page_tokens = (uint32_t)shape->page_tokens,
           .head_dim = (uint32_t)shape->head_dim,
           .head_stride = (uint32_t)mt_rules_kv_stride(shape),
           .block = (uint32_t)mt_rules_kv_block(shape),
           .first = (uint32_t)first,
           .bf16 = shape->type == MT_KV_BF16,
           .heads = (uint32_t)shape->heads};
    MT_VULKAN_RUN(dev, kv_write, a, mt_vulkan_groups((size_t)a.heads * a.head_stride / 2, THREADS), dev->batch_rows);
}

void mt_vulkan_op_kv_write(mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v)
{
    const mt_kv_shape *shape = mt_kv_shape_of(dev, kv);
    if (!plain_pages(shape)) {
        mt_fallback_host(dev)->op_kv_write(dev, kv, layer, k, v);
        return;
    }
    write_half(dev, kv, shape, layer * 2 * shape->heads, k);
    write_half(dev, kv, shape, (layer * 2 + 1) * shape->heads, v);
}

void mt_vulkan_op_attention(mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer, mt_attention how)
{
    const mt_kv_shape *shape = mt_kv_shape_of(dev, kv);
    const size_t heads = mt_vulkan_plain(q)->cols / shape->head_dim;
    const struct {
        mt_vulkan_rows y, q;
        VkDeviceAddress step, sinks, pages;
        uint64_t page_bytes;
        uint32_t step_words_table, page_tokens, head_dim, head_stride, block, keys, values, group, window, chunk, flags;
        float scale, softcap;
        uint32_t none;
    } a = {.y = mt_vulkan_rows_of(y),
           .q = mt_vulkan_rows_of(q),
           .step = mt_vulkan_address(dev->step),
           .sinks = mt_vulkan_rows_of(how.sinks).data,
           .pages = mt_vulkan_address(plain_kv(kv)->memory),
           .page_bytes = mt_kv_page_bytes(dev, shape),
           .step_words_table = (uint32_t)(MT_VULKAN_ROW_WORDS | (FIRST_TABLE + shape->group) << 8),
           .page_tokens = (uint32_t)shape->page_tokens,
           .head_dim = (uint32_t)shape->head_dim,
           .head_stride = (uint32_t)mt_rules_kv_stride(shape),
           .block = (uint32_t)mt_rules_kv_block(shape),
           .keys = (uint32_t)(layer * 2 * shape->heads),
           .values = (uint32_t)((layer * 2 + 1) * shape->heads),
           .group = (uint32_t)(heads / shape->heads),
           .window = how.window,
           .chunk = how.chunk,
           .flags = (shape->type == MT_KV_BF16 ? FLAG_BF16 : 0u) | (how.causal ? FLAG_CAUSAL : 0u) |
                    (how.sinks ? FLAG_SINKS : 0u),
           .scale = how.scale,
           .softcap = how.softcap};
    if (plain_pages(shape))
        MT_VULKAN_RUN(dev, attention, a, heads, dev->batch_rows);
    else
        mt_fallback_host(dev)->op_attention(dev, y, q, kv, layer, how);
}
