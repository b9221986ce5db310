/* Block types of GGUF files: sizes, names, and the bits of decoded blocks. weights_gguf_blocks.inc has hashes of what
   dequantize of the gguf package (PyPI) makes of the same bytes. */
#include "unit.h"

#include "base/compiler.h"
#include "kernels/convert.h"
#include "weights/gguf_blocks.h"

enum { BLOCKS = 512 };

/* Bytes of blocks: any, but f16 numbers are finite. */
typedef struct blocks_of {
    uint32_t type;
    int f16[2]; /* where in a block; -1: none */
    uint64_t hash;
} blocks_of;

static const blocks_of recorded[] = {
#include "weights_gguf_blocks.inc"
};

static uint8_t *random_blocks(const blocks_of *of)
{
    const size_t bytes = mt_gguf_block_bytes(of->type), all = BLOCKS * bytes;
    uint8_t *p = malloc(all);
    uint32_t state = 2463534242u + of->type;
    assert_non_null(p);
    for (size_t i = 0; i < all; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (uint8_t)(state >> 24);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t f = 0; f < 2; f++)
            if (of->f16[f] >= 0 && (p[i * bytes + (size_t)of->f16[f] + 1] & 0x7c) == 0x7c)
                p[i * bytes + (size_t)of->f16[f] + 1] &= 0xbf;
    return p;
}

/* FNV-1a over the bits of the floats */
static uint64_t hash_of(const float *x, size_t n)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = mt_f32_bits(x[i]);
        for (unsigned b = 0; b < 32; b += 8)
            hash = (hash ^ (bits >> b & 255)) * 1099511628211u;
    }
    return hash;
}

static void test_floats(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(recorded); i++) {
        const blocks_of *of = &recorded[i];
        const size_t n = BLOCKS * mt_gguf_block_elements(of->type);
        uint8_t *blocks = random_blocks(of);
        float *x = malloc(n * sizeof(*x));
        assert_non_null(x);
        mt_gguf_block_floats(of->type, blocks, n, x);
        if (hash_of(x, n) != of->hash)
            fail_msg("%s: %016llx", mt_gguf_type_name(of->type), (unsigned long long)hash_of(x, n));
        free(x);
        free(blocks);
    }
}

static void test_table(void **state)
{
    (void)state;
    assert_int_equal(mt_gguf_block_elements(MT_GGML_Q4_K), 256);
    assert_int_equal(mt_gguf_block_bytes(MT_GGML_Q4_K), 144);
    assert_string_equal(mt_gguf_type_name(MT_GGML_IQ4_XS), "IQ4_XS");
    assert_null(mt_gguf_type_refused(MT_GGML_F16));
    assert_null(mt_gguf_type_refused(MT_GGML_NVFP4));
    assert_int_equal(mt_gguf_block_bytes(19), 50);
    assert_non_null(strstr(mt_gguf_type_refused(19), "codebook"));
    assert_non_null(strstr(mt_gguf_type_refused(34), "three values"));
    static const uint32_t unknown[] = {4, 5, 31, 36, 43, 1000, 0xffffffffu};
    for (size_t i = 0; i < MT_COUNT(unknown); i++) {
        assert_int_equal(mt_gguf_block_bytes(unknown[i]), 0);
        assert_non_null(mt_gguf_type_refused(unknown[i]));
        assert_null(mt_gguf_layout_of(unknown[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
