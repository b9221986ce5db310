/* Binds tensors of GGUF's block types (gguf_blocks.h). */
#include <string.h>

#include "base/clock.h"
#include "weights/bind_internal.h"
#include "weights/gguf_blocks.h"

bool mt_gguf_blocks_bind(mt_binder *b, const mt_tensor_info *t, size_t stack, size_t n, size_t k,
                         const uint32_t *row_order, mt_mat *out)
{
    const size_t each = mt_gguf_block_elements(t->ggml_type), bytes = mt_gguf_block_bytes(t->ggml_type);
    const size_t items = stack ? stack : 1;
    const char *refused = mt_gguf_type_refused(t->ggml_type);
    char wanted[MT_SHAPE_TEXT];
    mt_shape_text(wanted, (const uint64_t[]){items, n, k}, 3);
    if (refused)
        return mt_binder_miss(b, t->name, wanted, "found type %s, %s", t->dtype_name, refused);
    if (each == 0 || k % each != 0 || t->bytes != items * n * (k / each) * bytes)
        return mt_binder_miss(b, t->name, wanted, "found another size");
    float *to = mt_binder_copy(b, items * n * k * sizeof(*to));
    mt_binder_copied(b, t);
    for (size_t r = 0; to && !b->headers_only && r < items * n; r++) {
        const size_t from = row_order ? r / n * n + row_order[r % n] : r;
        mt_gguf_block_floats(t->ggml_type, t->data + from * (k / each) * bytes, k, to + r * k);
    }
    *out = mt_mat_plain(MT_DTYPE_F32, (const uint8_t *)to, n, k);
    return to != NULL;
}
