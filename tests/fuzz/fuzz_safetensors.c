/* A safetensors file of arbitrary bytes. Whatever is accepted must be true: every tensor inside the file, sizes that
   agree, names unique and in order. The same bytes are then read as a header alone, and as an index of shards. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "weights/limits.h"
#include "weights/quant.h"
#include "weights/safetensors.h"
#include "weights/shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned checksum; /* keeps the reads */

static void check_tensor(const mt_tensor_info *t, const uint8_t *data, size_t size)
{
    size_t len = strlen(t->name);

    assert(len > 0 && len <= MT_LIMIT_TENSOR_NAME && t->dims <= MT_LIMIT_TENSOR_DIMS);
    assert(t->data >= data + 8 && t->bytes <= size && t->data + t->bytes <= data + size);
    if (t->bytes > 0)
        checksum += t->data[0] + t->data[t->bytes - 1];
    checksum += (unsigned char)t->dtype_name[0] + (t->dims ? (unsigned)t->shape[t->dims - 1] : 0);
}

static void check_quant(const mt_safetensors *file)
{
    mt_quant none = {.params = {.format = MT_FORMAT_AFFINE, .bits = 4, .group = 64}};
    mt_quant_params p;

    for (size_t i = 0; i + 1 < mt_safetensors_count(file) && i < 16; i++) {
        const mt_tensor_info *a = mt_safetensors_at(file, i), *b = mt_safetensors_at(file, i + 1);

        checksum += mt_quant_resolve(&none, a->name, a, b, 0, &p) + mt_quant_resolve(&none, a->name, b, a, 64, &p);
    }
}

static void read_index(const uint8_t *data, size_t size)
{
    mt_arena *arena = mt_arena_new(0);
    mt_shards shards = {0};
    mt_error err = {0};

    if (mt_shard_index_parse(&shards, (const char *)data, size, arena, &err)) {
        for (size_t i = 0; i < shards.entry_count; i++)
            assert(shards.entries[i].shard < shards.count);
        for (size_t i = 0; i < shards.count; i++)
            assert(shards.names[i][0] != '.' && !strchr(shards.names[i], '/'));
    } else {
        assert(err.code != MT_OK && strlen(err.text) > 0);
    }
    mt_arena_free(arena);
}

static void read_file(const uint8_t *data, size_t size)
{
    mt_error err = {0};
    mt_safetensors *file = mt_safetensors_parse(data, size, &err);

    if (!file) {
        assert(err.code != MT_OK && strlen(err.text) > 0);
        return;
    }
    for (size_t i = 0; i < mt_safetensors_count(file); i++) {
        const mt_tensor_info *t = mt_safetensors_at(file, i);

        check_tensor(t, data, size);
        assert(mt_safetensors_find(file, t->name) == t);
        assert(i == 0 || strcmp(mt_safetensors_at(file, i - 1)->name, t->name) < 0);
    }
    check_quant(file);
    mt_safetensors_close(file);
}

/* The input as a header with a length that is right: mutations of the text then reach the checks behind it. */
static void read_header(const uint8_t *data, size_t size)
{
    enum { DATA = 96 };
    uint8_t *image = calloc(8 + size + DATA, 1);

    assert(image);
    for (size_t i = 0; i < 8; i++)
        image[i] = (uint8_t)((uint64_t)size >> (8 * i));
    if (size > 0)
        memcpy(image + 8, data, size);
    read_file(image, 8 + size + DATA);
    free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_file(data, size);
    read_header(data, size);
    read_index(data, size);
    return 0;
}
