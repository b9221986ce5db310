/* Images of GGUF files for tests: keys and tensors are added one after another, and gguf_image joins them. */
#ifndef MT_TESTS_GGUF_FILES_H
#define MT_TESTS_GGUF_FILES_H

#include "unit.h"

#include "base/buf.h"
#include "weights/gguf.h"

typedef struct gguf_writer {
    mt_buf keys, infos, data; /* what the file has of each */
    uint64_t key_count, tensor_count;
    uint32_t version;   /* 0: 3 */
    uint32_t alignment; /* 0: 32 */
} gguf_writer;

static inline void gguf_add(mt_buf *buf, const void *data, size_t len)
{
    if (buf->limit == 0)
        mt_buf_init(buf, 1u << 28);
    assert_true(mt_buf_add(buf, data, len));
}

static inline void gguf_add_u32(mt_buf *buf, uint32_t value)
{
    gguf_add(buf, &value, sizeof(value));
}

static inline void gguf_add_u64(mt_buf *buf, uint64_t value)
{
    gguf_add(buf, &value, sizeof(value));
}

static inline void gguf_add_text(mt_buf *buf, const char *s)
{
    gguf_add_u64(buf, strlen(s));
    gguf_add(buf, s, strlen(s));
}

/* A key and the type of its value, whose bytes follow. */
static inline void gguf_key(gguf_writer *w, const char *key, uint32_t type)
{
    gguf_add_text(&w->keys, key);
    gguf_add_u32(&w->keys, type);
    w->key_count++;
}

static inline void gguf_put_string(gguf_writer *w, const char *key, const char *value)
{
    gguf_key(w, key, MT_GGUF_STRING);
    gguf_add_text(&w->keys, value);
}

static inline void gguf_put_u32(gguf_writer *w, const char *key, uint32_t value)
{
    gguf_key(w, key, MT_GGUF_U32);
    gguf_add_u32(&w->keys, value);
}

static inline void gguf_put_f32(gguf_writer *w, const char *key, float value)
{
    gguf_key(w, key, MT_GGUF_F32);
    gguf_add(&w->keys, &value, sizeof(value));
}

static inline void gguf_put_bool(gguf_writer *w, const char *key, bool value)
{
    gguf_key(w, key, MT_GGUF_BOOL);
    gguf_add(&w->keys, &(uint8_t){value}, 1);
}

/* An array whose elements the caller adds to w->keys. */
static inline void gguf_put_array(gguf_writer *w, const char *key, uint32_t type, uint64_t count)
{
    gguf_key(w, key, MT_GGUF_ARRAY);
    gguf_add_u32(&w->keys, type);
    gguf_add_u64(&w->keys, count);
}

/* An entry of the table of tensors; the fastest dimension comes first. */
static inline void gguf_info(gguf_writer *w, const char *name, uint32_t type, unsigned dims, const uint64_t *shape,
                             uint64_t offset)
{
    gguf_add_text(&w->infos, name);
    gguf_add_u32(&w->infos, dims);
    gguf_add(&w->infos, shape, dims * sizeof(*shape));
    gguf_add_u32(&w->infos, type);
    gguf_add_u64(&w->infos, offset);
    w->tensor_count++;
}

static inline void gguf_pad(mt_buf *buf, uint32_t alignment)
{
    while (buf->len % (alignment ? alignment : 32) != 0)
        gguf_add(buf, "", 1);
}

/* A matrix [n, k] with its bytes. */
static inline void gguf_put_matrix(gguf_writer *w, const char *name, uint32_t type, uint64_t n, uint64_t k,
                                   const void *data, size_t bytes)
{
    gguf_pad(&w->data, w->alignment);
    gguf_info(w, name, type, 2, (uint64_t[]){k, n}, w->data.len);
    gguf_add(&w->data, data, bytes);
}

/* The whole file; leaves w empty. Free with mt_buf_free. */
static inline mt_buf gguf_image(gguf_writer *w)
{
    mt_buf image = {0};

    gguf_add(&image, "GGUF", 4);
    gguf_add_u32(&image, w->version ? w->version : 3);
    gguf_add_u64(&image, w->tensor_count);
    gguf_add_u64(&image, w->key_count);
    gguf_add(&image, w->keys.data, w->keys.len);
    gguf_add(&image, w->infos.data, w->infos.len);
    if (w->data.len > 0) {
        gguf_pad(&image, w->alignment);
        gguf_add(&image, w->data.data, w->data.len);
    }
    mt_buf_free(&w->keys);
    mt_buf_free(&w->infos);
    mt_buf_free(&w->data);
    *w = (gguf_writer){0};
    return image;
}

#endif
