/* Block types of GGUF files: sizes, names, and the bits of decoded blocks. weights_gguf_blocks.inc has hashes of what
   dequantize of the gguf package (PyPI) makes of the same bytes. */
#include "weights_files.h"

#include "base/compiler.h"
#include "kernels/convert.h"
#include "kernels/kernels.h"
#include "kernels/levels.h"
#include "weights/bind_internal.h"
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
    assert_non_null(strstr(mt_gguf_type_refused(31), "one kind of processor"));
    static const uint32_t unknown[] = {4, 5, 43, 1000, 0xffffffffu};
    for (size_t i = 0; i < MT_COUNT(unknown); i++) {
        assert_int_equal(mt_gguf_block_bytes(unknown[i]), 0);
        assert_non_null(mt_gguf_type_refused(unknown[i]));
        assert_null(mt_gguf_layout_of(unknown[i]));
    }
}

/* ---- bound ---- */

enum { ROWS = 5, STACK = 3 };

typedef struct bound {
    mt_checkpoint *checkpoint;
    mt_arena *arena;
    mt_mat m;
    mt_bind_cost cost;
    mt_error error;
    bool ok;
} bound;

static const mt_tensor_fix *fix; /* of what is bound next; NULL: none */
static size_t claimed;           /* rows that the file says it has, of as many bytes; 0: the right number */

/* Binds "x.weight", whose bytes are blocks of the type, as `stack` matrices [ROWS, k]. */
static bound bind_blocks(uint32_t type, const uint8_t *blocks, size_t stack, size_t k, const uint32_t *order,
                         bool inspect)
{
    const size_t items = stack ? stack : 1, each = mt_gguf_block_elements(type);
    const size_t bytes = items * ROWS * (k / each) * mt_gguf_block_bytes(type);
    char shape[32];
    bound out = {.ok = false};
    snprintf(shape, sizeof(shape), "%zu", bytes);
    put_text("config.json", "{\"model_type\":\"llama\"}");
    static const float factors[STACK] = {0.5f, 3.0f, -0.25f};
    PUT_TENSORS("model.safetensors", {"x.scale", "F32", stack ? "3" : "1", stack ? 12 : 4, factors},
                {"x.weight", "U8", shape, bytes, blocks});
    out.checkpoint = inspect ? mt_checkpoint_inspect(folder, &out.error) : mt_checkpoint_open(folder, &out.error);
    assert_string_equal(out.error.text, "");
    mt_tensor_info *t = (mt_tensor_info *)(uintptr_t)mt_checkpoint_find(out.checkpoint, "x.weight");
    t->dtype = MT_DTYPE_BLOCKS;
    t->ggml_type = type;
    t->dtype_name = mt_gguf_type_name(type);
    t->dims = stack ? 3 : 2;
    t->shape[0] = stack;
    t->shape[t->dims - 2] = claimed ? claimed : ROWS;
    t->shape[t->dims - 1] = (claimed ? ROWS * k / claimed : k) / each * each;
    t->fix = fix;
    out.arena = mt_arena_new(0);
    mt_binder *b = mt_binder_new(out.checkpoint, out.arena);
    const bool bound_it = mt_gguf_blocks_bind(b, t, stack, ROWS, k, order, &out.m);
    out.ok = mt_binder_finish(b, &out.cost, &out.error);
    assert_true(out.ok == bound_it);
    return out;
}

static void drop(bound *b)
{
    mt_arena_free(b->arena);
    mt_checkpoint_close(b->checkpoint);
}

/* Rows of a bound matrix decode to the bits of the file's rows. */
static void expect_rows(const blocks_of *of, size_t stack, size_t k, const uint32_t *order)
{
    static const float factors[STACK] = {0.5f, 3.0f, -0.25f};
    const size_t each = mt_gguf_block_elements(of->type), row_bytes = k / each * mt_gguf_block_bytes(of->type);
    mt_kernels kernels;
    uint8_t *blocks = random_blocks(of);
    float want[768], got[768];
    mt_kernels_init(&kernels, mt_cpu_detect());
    if (of->type == MT_GGML_MXFP4) /* 255 is no number */
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i * 17] = blocks[i * 17] == 255 ? 254 : blocks[i * 17];
    bound b = bind_blocks(of->type, blocks, stack, k, order, false);
    assert_string_equal(b.error.text, "");
    for (size_t i = 0; i < (stack ? stack : 1); i++) {
        const mt_mat m = mt_mat_item(&b.m, i);
        for (size_t r = 0; r < ROWS; r++) {
            const size_t from = i * ROWS + (order ? order[r] : r);
            mt_gguf_block_floats(of->type, blocks + from * row_bytes, k, want);
            for (size_t j = 0; of->type == MT_GGML_NVFP4 && j < k; j++)
                want[j] *= factors[i];
            kernels.row_f32(got, &m, r);
            if (memcmp(want, got, k * sizeof(*got)) != 0)
                fail_msg("%s: row %zu of %zu differs", mt_gguf_type_name(of->type), r, i);
        }
    }
    drop(&b);
    free(blocks);
}

static void test_bound(void **state)
{
    static const uint32_t order[ROWS] = {3, 0, 4, 1, 2};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(recorded); i++) {
        if (!mt_gguf_layout_of(recorded[i].type))
            continue;
        const size_t each = mt_gguf_block_elements(recorded[i].type);
        expect_rows(&recorded[i], 0, 3 * each, NULL);
        expect_rows(&recorded[i], 0, 2 * each, order);
        expect_rows(&recorded[i], STACK, each, order);
    }
}

/* Columns in another order, in pieces that are smaller than some types' blocks. */
static void test_columns(void **state)
{
    static const uint32_t order[] = {2, 0, 3, 1};
    const mt_tensor_fix moved = {.columns = order, .piece = 128};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(recorded); i++) {
        const blocks_of *of = &recorded[i];
        if (!mt_gguf_layout_of(of->type) || of->type == MT_GGML_MXFP4 || of->type == MT_GGML_NVFP4)
            continue;
        const size_t k = 512, row = k / mt_gguf_block_elements(of->type) * mt_gguf_block_bytes(of->type);
        uint8_t *blocks = random_blocks(of);
        float want[512], got[512];
        fix = &moved;
        bound b = bind_blocks(of->type, blocks, 0, k, NULL, false);
        fix = NULL;
        assert_string_equal(b.error.text, "");
        for (size_t r = 0; r < ROWS; r++) {
            mt_gguf_block_floats(of->type, blocks + r * row, k, want);
            mt_row_f32_portable(got, &b.m, r);
            for (size_t j = 0; j < 4; j++)
                if (memcmp(got + 128 * j, want + 128 * order[j], 128 * sizeof(*got)) != 0)
                    fail_msg("%s: row %zu, piece %zu differs", mt_gguf_type_name(of->type), r, j);
        }
        drop(&b);
        free(blocks);
    }
}

/* Costs are told without reading anything; bytes of a weight stay near the file's. */
static void test_costs(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(recorded); i++) {
        if (!mt_gguf_layout_of(recorded[i].type))
            continue;
        const size_t bytes =
            ROWS * mt_gguf_block_bytes(recorded[i].type) * 512 / mt_gguf_block_elements(recorded[i].type);
        uint8_t *blocks = random_blocks(&recorded[i]);
        bound inspected = bind_blocks(recorded[i].type, blocks, 0, 512, NULL, true);
        bound b = bind_blocks(recorded[i].type, blocks, 0, 512, NULL, false);
        assert_true(b.ok && inspected.ok);
        assert_int_equal(b.cost.copied_bytes, inspected.cost.copied_bytes);
        assert_true((double)b.cost.copied_bytes <
                    (double)bytes * (recorded[i].type == MT_GGML_Q2_K ? 1.2 : 1.04) + 132);
        drop(&b);
        drop(&inspected);
        free(blocks);
    }
}

static void expect_refused(uint32_t type, size_t k, const char *sentence)
{
    static const uint8_t zeros[1 << 14] = {0};
    bound b = bind_blocks(type, zeros, 0, k, NULL, false);
    assert_false(b.ok);
    if (!strstr(b.error.text, sentence))
        fail_msg("%s", b.error.text);
    drop(&b);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused(19, 256, "\"x.weight\" wanted [5, 256], found type IQ1_S, whose weights are entries of a codebook;");
    expect_refused(34, 256, "found type TQ1_0, whose weights have three values;");
    expect_refused(MT_GGML_Q4_K, 300, "\"x.weight\" wanted [5, 300], found Q4_K [5, 256]");
    claimed = 25; /* as many bytes, but other rows than those that a permutation has been made for */
    expect_refused(MT_GGML_Q8_0, 160, "\"x.weight\" wanted [5, 160], found Q8_0 [25, 32]");
    claimed = 0;
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_floats),
                                          IN_FOLDER(test_bound),        IN_FOLDER(test_columns),
                                          IN_FOLDER(test_costs),        IN_FOLDER(test_refused)};

UNIT_MAIN(tests)
