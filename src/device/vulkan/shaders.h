/* The shaders: each is a file shaders/NAME.comp, compiled when motet is built. */
#ifndef MT_DEVICE_VULKAN_SHADERS_H
#define MT_DEVICE_VULKAN_SHADERS_H

#include <stddef.h>
#include <stdint.h>

#define MT_VULKAN_EACH(X) \
    X(add)                \
    X(attention)          \
    X(copy)               \
    X(embed)              \
    X(finite)             \
    X(glu)                \
    X(kv_write)           \
    X(matmul_codes)       \
    X(matmul_floats)      \
    X(norm)               \
    X(pack)               \
    X(rope)               \
    X(scale)

typedef enum mt_vulkan_shader {
#define MT_VULKAN_NAME(name) MT_VULKAN_##name,
    MT_VULKAN_EACH(MT_VULKAN_NAME)
#undef MT_VULKAN_NAME
        MT_VULKAN_SHADERS
} mt_vulkan_shader;

typedef struct mt_vulkan_code {
    const uint32_t *words;
    size_t bytes;
} mt_vulkan_code;

extern const mt_vulkan_code mt_vulkan_codes[MT_VULKAN_SHADERS];

#endif
