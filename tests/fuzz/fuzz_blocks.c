/* Blocks of GGUF files of arbitrary bytes: the first byte is their type, the rest as many blocks as there are. Every
   type that is not refused decodes whole blocks, reads no byte beyond them, and writes a float for each element. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weights/gguf_blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const uint32_t type = data[0];
    const size_t each = mt_gguf_block_elements(type), bytes = mt_gguf_block_bytes(type);
    assert(mt_gguf_type_name(type)[0] != '\0' && (each == 0) == (bytes == 0) && each <= MT_GGUF_BLOCK_MOST);
    if (mt_gguf_type_refused(type) || size - 1 < bytes)
        return 0;
    const size_t blocks = (size - 1) / bytes;
    uint8_t *from = malloc(blocks * bytes); /* of its own, so that a read beyond it shows */
    float *to = malloc(blocks * each * sizeof(*to));
    assert(from && to);
    memcpy(from, data + 1, blocks * bytes);
    mt_gguf_block_floats(type, from, blocks * each, to);
    free(from);
    free(to);
    return 0;
}
