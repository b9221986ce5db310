/* A GGUF model with its projector, both of arbitrary bytes: four bytes with the length of the model, little end first,
   the model, the projector. Whatever is made of them must be sound: JSON, and tensors whose rows and columns are taken
   from their own data. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "models/spec.h"
#include "weights/gguf_projector.h"
#include "weights/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned checksum; /* keeps the reads */

static uint64_t elements(const mt_tensor_info *t)
{
    uint64_t count = 1;

    for (unsigned i = 0; i < t->dims; i++)
        count *= t->shape[i];
    return count;
}

static void check_tensor(const mt_gguf *p, const mt_tensor_info *t)
{
    const mt_tensor_info *from = NULL;

    for (size_t i = 0; i < mt_gguf_tensors(p) && !from; i++)
        from = mt_gguf_tensor(p, i)->data == t->data ? mt_gguf_tensor(p, i) : NULL;
    assert(from && t->bytes == from->bytes && t->dims <= MT_LIMIT_TENSOR_DIMS && elements(t) == elements(from));
    for (size_t i = 0; t->fix && t->fix->rows && i < t->shape[0]; i++)
        assert(t->fix->rows[i] < t->shape[0]);
    for (size_t i = 0; t->fix && t->fix->columns && i < t->shape[1] / t->fix->piece; i++)
        assert(t->dims == 2 && t->fix->columns[i] < t->shape[1] / t->fix->piece);
}

static void check_names(const mt_gguf *p)
{
    mt_arena *arena = mt_arena_new(0);
    mt_tensor_info *tensors;
    mt_error err = {0};
    size_t count = 0;

    if (!mt_gguf_projector_names(p, arena, &tensors, &count, &err)) {
        assert(err.code != MT_OK && strlen(err.text) > 0);
        count = 0;
    }
    for (size_t i = 0; i < count; i++)
        check_tensor(p, &tensors[i]);
    mt_arena_free(arena);
}

typedef bool maker(const mt_gguf *text, const mt_gguf *projector, mt_buf *out, mt_error *err);

static void check_text(const mt_gguf *text, const mt_gguf *p, maker *make)
{
    mt_arena *arena = mt_arena_new(0);
    mt_buf out = {.limit = MT_LIMIT_CONFIG_BYTES};
    mt_error err = {0};
    mt_model_spec spec;

    if (make(text, p, &out, &err)) {
        mt_config *config = mt_config_parse(out.data, out.len, &err);

        assert(config);
        checksum += mt_model_spec_read(&spec, config, NULL, arena, &err);
        mt_config_free(config);
    } else {
        assert(err.code != MT_OK && strlen(err.text) > 0);
    }
    mt_buf_free(&out);
    mt_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_error err = {0};
    size_t len = 0;

    for (size_t i = 0; i < 4 && i < size; i++)
        len |= (size_t)data[i] << 8 * i;
    if (size < 4 || len > size - 4)
        return 0;
    mt_gguf *text = mt_gguf_parse(data + 4, len, &err);
    mt_gguf *p = text ? mt_gguf_parse(data + 4 + len, size - 4 - len, &err) : NULL;

    if (p) {
        check_names(p);
        check_text(text, p, mt_gguf_projector_config);
        check_text(text, p, mt_gguf_projector_images);
        check_text(text, p, mt_gguf_projector_videos);
    }
    mt_gguf_close(p);
    mt_gguf_close(text);
    return 0;
}
