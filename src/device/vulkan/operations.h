/* Functions of the Vulkan device's table, by file. */
#ifndef MT_DEVICE_VULKAN_OPERATIONS_H
#define MT_DEVICE_VULKAN_OPERATIONS_H

#include "device/vulkan/vulkan.h"

/* The operations that have shaders. Where one of them meets what its shader does not take, the fallback computes. */
#define MT_VULKAN_OPERATIONS(X) \
    X(op_copy_row)              \
    X(op_gather)                \
    X(op_embed)                 \
    X(op_norm)                  \
    X(op_add)                   \
    X(op_matmul)                \
    X(op_heads)                 \
    X(op_kv_write)              \
    X(op_attention)             \
    X(op_glu)                   \
    X(op_scale)                 \
    X(op_finite)

#define MT_VULKAN_DECLARE(result, name, parameters, arguments) result mt_vulkan_##name parameters;
MT_DEVICE_OPERATIONS(MT_VULKAN_DECLARE)
#undef MT_VULKAN_DECLARE

mt_weight *mt_vulkan_weight_new(mt_set *set, const mt_mat *mat, const float *bias, bool exact);
bool mt_vulkan_device_plan(mt_device *dev, size_t rows, mt_error *err);
bool mt_vulkan_step_plan(mt_device *dev, size_t words); /* makes room for them; false: there is no memory */
void mt_vulkan_step_begin(mt_device *dev, const mt_batch *batch);

/* How a weight lies in memory: shaders/weight.glsl. */
typedef enum mt_vulkan_kind {
    MT_VULKAN_NIBBLES,
    MT_VULKAN_BYTES,
    MT_VULKAN_UNSIGNED,
    MT_VULKAN_HALVES,
    MT_VULKAN_F16,
    MT_VULKAN_FLOATS,
    MT_VULKAN_ON_HOST /* it has no copy on the device, and is multiplied by the CPU */
} mt_vulkan_kind;

struct mt_weight {
    mt_plain_weight plain;
    mt_vulkan_kind kind;
    mt_class class;
    bool wide; /* codes of 8 bits */
    uint32_t n, k, row_words, group, groups;
    mt_memory *codes, *scales, *biases, *bias; /* NULL: there are none */
};

/* A tensor, as shaders take it. */
typedef struct mt_vulkan_rows {
    VkDeviceAddress data;
    uint32_t stride, cols;
} mt_vulkan_rows;

static inline const mt_plain_tensor *mt_vulkan_plain(const mt_tensor *t)
{
    return (const mt_plain_tensor *)(const void *)t;
}

static inline mt_vulkan_rows mt_vulkan_rows_of(const mt_tensor *tensor)
{
    const mt_plain_tensor *t = mt_vulkan_plain(tensor);
    return t ? (mt_vulkan_rows){.data = mt_vulkan_address(t->memory) + t->offset * sizeof(float),
                                .stride = (uint32_t)t->stride,
                                .cols = (uint32_t)t->cols}
             : (mt_vulkan_rows){0};
}

static inline size_t mt_vulkan_groups(size_t n, size_t each)
{
    return (n + each - 1) / each;
}

/* Runs a shader for m rows of so many elements. */
#define MT_VULKAN_RUN(dev, name, arguments, x, y) \
    mt_vulkan_run(dev, MT_VULKAN_##name, &(arguments), sizeof(arguments), x, y, 1)

#endif
