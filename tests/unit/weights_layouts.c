/* Layouts of other quantisers, each held to its rule: random tensors are bound, and every element is compared with what
   the rule makes of the file's bytes. */
#include "weights_files.h"

#include <math.h>

#include "kernels/convert.h"
#include "kernels/levels.h"
#include "weights/bind.h"

static uint64_t seed;
static mt_arena *arena;
static mt_checkpoint *checkpoint;
static mt_binder *binder;

static void fill(void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)to)[i] = (uint8_t)(seed >> 56);
    }
}

/* Scales between 2^-6 and 2^-4, as f16. */
static void fill_f16(uint16_t *to, size_t count)
{
    fill(to, count * sizeof(*to));
    for (size_t i = 0; i < count; i++)
        to[i] = (uint16_t)(0x2400 + (to[i] & 0x07ff));
}

static void fill_f32(float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        fill_f16(&half, 1);
        to[i] = mt_f32_from_f16(half) / 3;
    }
}

static void start(const char *quantization, bool exact, bool inspect)
{
    mt_error err = {0};
    char config[1024];

    snprintf(config, sizeof(config), "{\"quantization_config\":%s}", quantization);
    put_text("config.json", config);
    checkpoint = inspect ? mt_checkpoint_inspect(folder, &err) : mt_checkpoint_open(folder, &err);
    assert_string_equal(err.text, "");
    if (exact)
        mt_checkpoint_exact(checkpoint);
    arena = mt_arena_new(0);
    binder = mt_binder_new(checkpoint, arena);
}

static void stop(mt_bind_cost *cost)
{
    mt_error err = {0};

    assert_true(mt_binder_finish(binder, cost, &err));
    mt_arena_free(arena);
    mt_checkpoint_close(checkpoint);
}

typedef float value_fn(const void *of, size_t row, size_t column);

/* Binds "m" [n, k] and compares all its elements; returns its format. */
static mt_format expect(const char *quantization, size_t n, size_t k, value_fn *value, const void *of)
{
    mt_bind_cost cost, seen;
    mt_mat mat;
    float *row = test_calloc(k, sizeof(*row));

    start(quantization, true, false);
    assert_true(mt_bind_matrix(binder, "/m", n, k, &mat));
    for (size_t r = 0; r < n; r++) {
        mt_row_f32_portable(row, &mat, r);
        for (size_t i = 0; i < k; i++) {
            const float wanted = value(of, r, i);
            if (fabsf(row[i] - wanted) > 1e-6f * fabsf(wanted) + 4e-7f) /* f32 scales times zeros are rounded */
                fail_msg("row %zu column %zu of [%zu, %zu]: %g, wanted %g", r, i, n, k, (double)row[i], (double)wanted);
        }
    }
    const mt_format format = mat.format;
    test_free(row);
    stop(&cost);
    assert_int_equal(cost.unused_tensors, 0);
    start(quantization, true, true);
    assert_true(mt_bind_matrix(binder, "/m", n, k, &mat));
    assert_int_equal(mat.format, format);
    stop(&seen);
    /* what is read to find the order of columns is not known before */
    assert_in_range(cost.copied_bytes, seen.copied_bytes, seen.copied_bytes + 4 * k);
    return format;
}

/* Element i of a stream of bits. */
static unsigned field(const uint32_t *words, size_t i, unsigned bits)
{
    unsigned code = 0;
    for (unsigned b = 0; b < bits; b++)
        code |= (words[(i * bits + b) / 32] >> (i * bits + b) % 32 & 1) << b;
    return code;
}

enum { N = 32, K = 96 };

/* ---- GPTQ and AWQ ---- */

typedef struct integers {
    unsigned bits;
    size_t groups;
    uint32_t codes[N * K], zeros[N * K];
    uint16_t scales[N * K];
    uint32_t group_of[K];
    int add;        /* to zeros */
    bool symmetric; /* zeros do not count */
} integers;

static integers q;

static float gptq(const void *of, size_t row, size_t column)
{
    const size_t g = q.group_of[column];
    uint32_t stream[K];
    (void)of;
    for (size_t i = 0; i < K * q.bits / 32; i++)
        stream[i] = q.codes[i * N + row];
    const unsigned zero = (field(q.zeros + g * N * q.bits / 32, row, q.bits) + (unsigned)q.add) % (1u << q.bits);
    const float z = q.symmetric ? (float)(1u << (q.bits - 1)) : (float)zero;
    return mt_f32_from_f16(q.scales[g * N + row]) * ((float)field(stream, column, q.bits) - z);
}

/* Zeros that no 1 less or more carries beyond. */
static void fill_zeros(void)
{
    memset(q.zeros, 0, sizeof(q.zeros));
    for (size_t i = 0; i < q.groups * N; i++) {
        uint8_t byte;
        fill(&byte, 1);
        const unsigned zero = byte % ((1u << q.bits) - 1);
        for (unsigned b = 0; b < q.bits; b++)
            q.zeros[(i * q.bits + b) / 32] |= (zero >> b & 1) << (i * q.bits + b) % 32;
    }
}

static mt_format gptq_of(unsigned bits, size_t groups, bool order, const char *more)
{
    char shapes[3][32], config[256];
    q.bits = bits;
    q.groups = groups;
    fill(q.codes, sizeof(q.codes));
    fill_zeros();
    fill_f16(q.scales, groups * N);
    for (size_t i = 0; i < K; i++)
        q.group_of[i] = (uint32_t)(order ? i * 7 % K : i) / (uint32_t)(K / groups);
    snprintf(shapes[0], sizeof(shapes[0]), "%d, %d", (int)(K * bits / 32), N);
    snprintf(shapes[1], sizeof(shapes[1]), "%zu, %d", groups, (int)(N * bits / 32));
    snprintf(shapes[2], sizeof(shapes[2]), "%zu, %d", groups, N);
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", shapes[0], K * bits / 8 * N, q.codes},
                {"m.qzeros", "I32", shapes[1], groups * N * bits / 8, q.zeros},
                {"m.scales", "F16", shapes[2], groups * N * 2, q.scales}, {"m.g_idx", "I32", "96", 4 * K, q.group_of});
    snprintf(config, sizeof(config), "{\"quant_method\":\"gptq\",\"bits\":%u,\"desc_act\":%s%s}", bits,
             order ? "true" : "false", more);
    return expect(config, N, K, gptq, NULL);
}

static void gptq_binds(void **state)
{
    static const unsigned bits[] = {2, 3, 4, 8};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        q.add = 1;
        assert_int_equal(gptq_of(bits[i], 3, false, ""), MT_FORMAT_AFFINE);
        assert_int_equal(gptq_of(bits[i], 1, false, ""), MT_FORMAT_AFFINE);
        assert_int_equal(gptq_of(bits[i], 3, true, ""), MT_FORMAT_F32);
        assert_int_equal(gptq_of(bits[i], 6, false, ""), MT_FORMAT_F32); /* groups of 16 */
        q.add = 0;
        assert_int_equal(gptq_of(bits[i], 3, false, ",\"checkpoint_format\":\"gptq_v2\""), MT_FORMAT_AFFINE);
        q.symmetric = true;
        assert_int_equal(gptq_of(bits[i], 3, false, ",\"sym\":true"), MT_FORMAT_AFFINE);
        q.symmetric = false;
    }
}

/* GPTQModel subtracts other words of 3 bits than those of a 1 for each element. */
static void gptqmodel_has_its_own_three_bits(void **state)
{
    static const uint32_t wrong[] = {0x24924924, 0x92492492, 0x49249249};
    integers *whole = &q;
    char config[] = "{\"quant_method\":\"gptq\",\"bits\":3,\"meta\":{\"quantizer\":\"gptqmodel:5.0\"}}";

    (void)state;
    whole->add = 0;
    gptq_of(3, 3, false, ",\"checkpoint_format\":\"gptq_v2\"");
    uint32_t stored[3 * N * 3 / 32];
    for (size_t i = 0; i < MT_COUNT(stored); i++)
        stored[i] = q.zeros[i] - wrong[i % 3];
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "9, 32", 9 * N * 4, q.codes},
                {"m.qzeros", "I32", "3, 3", sizeof(stored), stored}, {"m.scales", "F16", "3, 32", 3 * N * 2, q.scales},
                {"m.g_idx", "I32", "96", 4 * K, q.group_of});
    expect(config, N, K, gptq, NULL);
}

static float awq(const void *of, size_t row, size_t column)
{
    static const unsigned shift[] = {0, 16, 4, 20, 8, 24, 12, 28};
    const size_t g = column / (K / q.groups);
    const unsigned code = q.codes[column * (N / 8) + row / 8] >> shift[row % 8] & 15,
                   zero = q.zeros[g * (N / 8) + row / 8] >> shift[row % 8] & 15;
    (void)of;
    return mt_f32_from_f16(q.scales[g * N + row]) * ((float)code - (float)zero);
}

static void awq_binds(void **state)
{
    (void)state;
    q.groups = 3;
    fill(q.codes, sizeof(q.codes));
    fill(q.zeros, sizeof(q.zeros));
    fill_f16(q.scales, 3 * N);
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "96, 4", K * 16, q.codes},
                {"m.qzeros", "I32", "3, 4", 48, q.zeros}, {"m.scales", "F16", "3, 32", 6 * N, q.scales});
    assert_int_equal(expect("{\"quant_method\":\"awq\",\"group_size\":32}", N, K, awq, NULL), MT_FORMAT_AFFINE);
}

/* ---- compressed-tensors ---- */

static float compressed(const void *of, size_t row, size_t column)
{
    const size_t each = 32 / q.bits, words = (K + each - 1) / each, g = q.group_of[column];
    const unsigned mask = (1u << q.bits) - 1;
    const unsigned code = q.codes[row * words + column / each] >> column % each * q.bits & mask;
    unsigned zero = q.zeros[row / each * q.groups + g] >> row % each * q.bits & mask;
    (void)of;
    if (q.symmetric)
        zero = 1u << (q.bits - 1);
    return mt_f32_from_f16(q.scales[row * q.groups + g]) * ((float)code - (float)zero);
}

static mt_format compressed_of(unsigned bits, size_t groups, bool zeros, bool order)
{
    const size_t each = 32 / bits, words = (K + each - 1) / each, down = (N + each - 1) / each;
    char shapes[3][32], config[256];
    q.bits = bits;
    q.groups = groups;
    q.symmetric = !zeros;
    fill(q.codes, sizeof(q.codes));
    fill(q.zeros, sizeof(q.zeros));
    fill_f16(q.scales, groups * N);
    for (size_t i = 0; i < K; i++)
        q.group_of[i] = (uint32_t)(order ? i * 5 % K : i) / (uint32_t)(K / groups);
    snprintf(shapes[0], sizeof(shapes[0]), "%d, %zu", N, words);
    snprintf(shapes[1], sizeof(shapes[1]), "%d, %zu", N, groups);
    snprintf(shapes[2], sizeof(shapes[2]), "%zu, %zu", down, groups);
    const tensor_row rows[] = {{"m.weight_packed", "I32", shapes[0], N * words * 4, q.codes},
                               {"m.weight_scale", "F16", shapes[1], N * groups * 2, q.scales},
                               {"m.weight_shape", "I64", "2", 16, NULL},
                               {"m.weight_g_idx", "I32", "96", 4 * K, q.group_of},
                               {"m.weight_zero_point", "I32", shapes[2], down * groups * 4, q.zeros}};
    put_tensors("model.safetensors", rows, zeros ? 5 : 4);
    snprintf(
        config, sizeof(config),
        "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":%u%s}}}}",
        bits, order ? ",\"actorder\":\"group\"" : "");
    return expect(config, N, K, compressed, NULL);
}

static void packed_integers_bind(void **state)
{
    static const unsigned bits[] = {2, 3, 4, 5, 6, 8};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(compressed_of(bits[i], 3, false, false), MT_FORMAT_AFFINE);
        assert_int_equal(compressed_of(bits[i], 3, true, false), MT_FORMAT_AFFINE);
        assert_int_equal(compressed_of(bits[i], 1, true, false), MT_FORMAT_AFFINE);
        assert_int_equal(compressed_of(bits[i], 12, false, false), MT_FORMAT_F32);
        assert_int_equal(compressed_of(bits[i], 3, true, true), MT_FORMAT_F32);
    }
}

static int8_t bytes[N * K], byte_zeros[N];
static float scales[N * K];

static float int8_row(const void *of, size_t row, size_t column)
{
    const bool zeros = of != NULL;
    return scales[row] * ((float)bytes[row * K + column] - (zeros ? (float)byte_zeros[row] : 0));
}

static float int8_whole(const void *of, size_t row, size_t column)
{
    (void)of;
    return scales[0] * (float)bytes[row * K + column];
}

static float bnb8(const void *of, size_t row, size_t column)
{
    (void)of;
    return scales[row] * (float)bytes[row * K + column] / 127;
}

static void int8_binds(void **state)
{
    static const char config[] = "{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\"}";

    (void)state;
    fill(bytes, sizeof(bytes));
    fill(byte_zeros, sizeof(byte_zeros));
    fill_f32(scales, N);
    PUT_TENSORS("model.safetensors", {"m.weight", "I8", "32, 96", sizeof(bytes), bytes},
                {"m.weight_scale", "F32", "32, 1", 4 * N, scales});
    assert_int_equal(expect(config, N, K, int8_row, NULL), MT_FORMAT_AFFINE);
    PUT_TENSORS("model.safetensors", {"m.weight", "I8", "32, 96", sizeof(bytes), bytes},
                {"m.weight_scale", "F32", "32, 1", 4 * N, scales},
                {"m.weight_zero_point", "I8", "32, 1", N, byte_zeros});
    assert_int_equal(expect(config, N, K, int8_row, scales), MT_FORMAT_AFFINE);
    PUT_TENSORS("model.safetensors", {"m.weight", "I8", "32, 96", sizeof(bytes), bytes},
                {"m.weight_scale", "F32", "1", 4, scales});
    assert_int_equal(expect(config, N, K, int8_whole, NULL), MT_FORMAT_AFFINE);
    PUT_TENSORS("model.safetensors", {"m.weight", "I8", "32, 96", sizeof(bytes), bytes},
                {"m.SCB", "F32", "32", 4 * N, scales}, {"m.weight_format", "U8", "", 1, NULL});
    assert_int_equal(expect("{\"quant_method\":\"bitsandbytes\"}", N, K, bnb8, NULL), MT_FORMAT_AFFINE);
}

/* Four bits of floating point, and what is around it. */
static uint8_t nibbles[N * K / 2], small[N * K / 16];

static float float4(const void *of, size_t row, size_t column)
{
    const float global = *(const float *)of;
    const unsigned code = nibbles[(row * K + column) / 2] >> column % 2 * 4 & 15;
    const float scale = global > 0 ? mt_f32_from_e4m3(small[row * (K / 16) + column / 16]) * global
                                   : mt_f32_from_e8m0(small[row * (K / 32) + column / 32]);
    return 0.5f * (float)mt_e2m1_doubled(code) * scale;
}

static void float4_binds(void **state)
{
    static const char config[] = "{\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\"}";
    const float global = 0.25f, by = 4, none = 0;

    (void)state;
    fill(nibbles, sizeof(nibbles));
    fill(small, sizeof(small));
    for (size_t i = 0; i < sizeof(small); i++)
        small[i] = (uint8_t)(small[i] % 0x70 + 8);
    PUT_TENSORS("model.safetensors", {"m.weight_packed", "U8", "32, 48", sizeof(nibbles), nibbles},
                {"m.weight_scale", "F8_E4M3", "32, 6", sizeof(small), small},
                {"m.weight_global_scale", "F32", "1", 4, &by}, {"m.input_global_scale", "F32", "1", 4, &by});
    assert_int_equal(expect(config, N, K, float4, &global), MT_FORMAT_NVFP4);
    PUT_TENSORS("model.safetensors", {"m.weight", "U8", "32, 48", sizeof(nibbles), nibbles},
                {"m.weight_scale", "F8_E4M3", "32, 6", sizeof(small), small},
                {"m.weight_scale_2", "F32", "", 4, &global}, {"m.input_scale", "F32", "", 4, &by});
    assert_int_equal(expect("{\"quant_method\":\"modelopt\"}", N, K, float4, &global), MT_FORMAT_NVFP4);
    PUT_TENSORS("model.safetensors", {"m.weight_packed", "U8", "32, 48", sizeof(nibbles), nibbles},
                {"m.weight_scale", "U8", "32, 3", N * 3, small});
    assert_int_equal(expect(config, N, K, float4, &none), MT_FORMAT_MXFP4);
}

/* ---- FP8 ---- */

enum { ROWS = 160, COLUMNS = 320 };
static uint8_t fp8[ROWS * COLUMNS];
static float fp8_scales[ROWS * COLUMNS];

typedef struct blocks {
    size_t rows, cols;
} blocks;

static float fp8_value(const void *of, size_t row, size_t column)
{
    const blocks *b = of;
    const size_t across = (COLUMNS + b->cols - 1) / b->cols;
    return mt_f32_from_fp8(fp8[row * COLUMNS + column]) * fp8_scales[row / b->rows * across + column / b->cols];
}

static void fp8_binds(void **state)
{
    static const struct {
        const char *shape, *block;
        blocks of;
        mt_format format;
    } cases[] = {{"2, 3", "128,128", {128, 128}, MT_FORMAT_FP8}, {"160, 3", "1,128", {1, 128}, MT_FORMAT_FP8},
                 {"160, 1", "", {1, COLUMNS}, MT_FORMAT_FP8},    {"160", "", {1, COLUMNS}, MT_FORMAT_FP8},
                 {"1", "", {ROWS, COLUMNS}, MT_FORMAT_FP8},      {"", "", {ROWS, COLUMNS}, MT_FORMAT_FP8},
                 {"1, 1", "", {ROWS, COLUMNS}, MT_FORMAT_FP8},   {"2, 1, 3, 1", "", {128, 128}, MT_FORMAT_FP8},
                 {"1, 3", "", {ROWS, 128}, MT_FORMAT_FP8},       {"5, 2", "32,256", {32, 256}, MT_FORMAT_FP8},
                 {"3, 5", "64,64", {64, 64}, MT_FORMAT_F32}};

    (void)state;
    fill(fp8, sizeof(fp8));
    for (size_t i = 0; i < sizeof(fp8); i++)
        fp8[i] = (fp8[i] & 0x7f) == 0x7f ? 0 : fp8[i];
    fill_f32(fp8_scales, MT_COUNT(fp8_scales));
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const blocks *b = &cases[i].of;
        const size_t count = ((ROWS + b->rows - 1) / b->rows) * ((COLUMNS + b->cols - 1) / b->cols);
        char config[128];
        PUT_TENSORS("model.safetensors", {"m.weight", "F8_E4M3", "160, 320", sizeof(fp8), fp8},
                    {"m.weight_scale", "F32", cases[i].shape, 4 * count, fp8_scales},
                    {"m.input_scale", "F32", "", 4, NULL});
        snprintf(config, sizeof(config), "{\"quant_method\":\"fp8\"%s%s%s}",
                 cases[i].block[0] ? ",\"weight_block_size\":[" : "", cases[i].block, cases[i].block[0] ? "]" : "");
        assert_int_equal(expect(config, ROWS, COLUMNS, fp8_value, b), cases[i].format);
    }
}

/* Rows in another order: those that share one scale with all others can have it, those of blocks cannot. */
static void fp8_is_reordered(void **state)
{
    uint32_t order[ROWS];
    float row[COLUMNS];
    mt_bind_cost cost;
    mt_error err;
    mt_mat mat;

    (void)state;
    fill(fp8, sizeof(fp8));
    for (size_t i = 0; i < sizeof(fp8); i++)
        fp8[i] = (fp8[i] & 0x7f) == 0x7f ? 0 : fp8[i];
    fill_f32(fp8_scales, MT_COUNT(fp8_scales));
    for (uint32_t i = 0; i < ROWS; i++)
        order[i] = i * 7 % ROWS;
    PUT_TENSORS("model.safetensors", {"m.weight", "F8_E4M3", "160, 320", sizeof(fp8), fp8},
                {"m.weight_scale", "F32", "1", 4, fp8_scales});
    start("{\"quant_method\":\"fp8\"}", true, false);
    assert_true(mt_bind_ordered(binder, "/m", ROWS, COLUMNS, order, &mat));
    assert_int_equal(mat.format, MT_FORMAT_FP8);
    for (size_t r = 0; r < ROWS; r++) {
        mt_row_f32_portable(row, &mat, r);
        for (size_t i = 0; i < COLUMNS; i++)
            assert_true(row[i] == mt_f32_from_fp8(fp8[order[r] * COLUMNS + i]) * fp8_scales[0]);
    }
    stop(&cost);
    PUT_TENSORS("model.safetensors", {"m.weight", "F8_E4M3", "160, 320", sizeof(fp8), fp8},
                {"m.weight_scale", "F32", "2, 3", 24, fp8_scales});
    start("{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}", true, false);
    assert_false(mt_bind_ordered(binder, "/m", ROWS, COLUMNS, order, &mat));
    assert_false(mt_binder_finish(binder, &cost, &err));
    assert_non_null(strstr(err.text, "blocks of FP8"));
    mt_arena_free(arena);
    mt_checkpoint_close(checkpoint);
}

/* ---- bitsandbytes ---- */

static float table[16], absmax[N * K / 16], nested_map[256], nested[2];
static uint8_t absmax_codes[N * K / 16];

static float bnb4(const void *of, size_t row, size_t column)
{
    const size_t at = row * K + column, block = at / 16;
    const unsigned code = nibbles[at / 2] >> (at % 2 ? 0 : 4) & 15;
    const float factor = of ? nested_map[absmax_codes[block]] * nested[block / 128] + 0.5f : absmax[block];
    return table[code] * factor;
}

static void bnb4_binds(void **state)
{
    static const char once[] = "{\"blocksize\":16,\"shape\":[32,96],\"dtype\":\"bfloat16\"}",
                      twice[] = "{\"blocksize\":16,\"nested_blocksize\":128,\"nested_offset\":0.5}",
                      config[] = "{\"quant_method\":\"bitsandbytes\"}";

    (void)state;
    fill(nibbles, sizeof(nibbles));
    fill(absmax_codes, sizeof(absmax_codes));
    fill_f32(table, 16);
    fill_f32(absmax, MT_COUNT(absmax));
    fill_f32(nested_map, 256);
    fill_f32(nested, 2);
    PUT_TENSORS("model.safetensors", {"m.weight", "U8", "1536, 1", sizeof(nibbles), nibbles},
                {"m.weight.absmax", "F32", "192", sizeof(absmax), absmax},
                {"m.weight.quant_map", "F32", "16", sizeof(table), table},
                {"m.weight.quant_state.bitsandbytes__fp4", "U8", "51", sizeof(once) - 1, once});
    assert_int_equal(sizeof(once) - 1, 51);
    assert_int_equal(expect(config, N, K, bnb4, NULL), MT_FORMAT_F32);
    PUT_TENSORS("model.safetensors", {"m.weight", "U8", "1536, 1", sizeof(nibbles), nibbles},
                {"m.weight.absmax", "U8", "192", sizeof(absmax_codes), absmax_codes},
                {"m.weight.quant_map", "F32", "16", sizeof(table), table},
                {"m.weight.nested_absmax", "F32", "2", sizeof(nested), nested},
                {"m.weight.nested_quant_map", "F32", "256", sizeof(nested_map), nested_map},
                {"m.weight.quant_state.bitsandbytes__nf4", "U8", "59", sizeof(twice) - 1, twice});
    assert_int_equal(sizeof(twice) - 1, 59);
    assert_int_equal(expect(config, N, K, bnb4, table), MT_FORMAT_F32);
    /* in fast precision, bf16 */
    mt_mat mat;
    float row[K];
    start(config, false, false);
    assert_true(mt_bind_matrix(binder, "/m", N, K, &mat));
    assert_int_equal(mat.format, MT_FORMAT_BF16);
    mt_row_f32_portable(row, &mat, 7);
    assert_true(fabsf(row[9] - bnb4(table, 7, 9)) <= fabsf(row[9]) / 256);
    stop(NULL);
}

/* ---- stacked experts ---- */

enum { EXPERTS = 2, INNER = 64, HIDDEN = 96 };

/* gate_up_proj as FP8 with a scale for each row, down_proj as packed integers with zero points. */
static void stacked_experts_bind(void **state)
{
    enum { WORDS = INNER / 8, GROUPS = INNER / 32, DOWN = HIDDEN / 8 };
    static uint8_t codes[EXPERTS * 2 * INNER * HIDDEN];
    static float row_scales[EXPERTS * 2 * INNER];
    static uint32_t words[EXPERTS * HIDDEN * WORDS], zeros[EXPERTS * DOWN * GROUPS];
    static uint16_t halves[EXPERTS * HIDDEN * GROUPS];
    mt_mat gate[EXPERTS], up[EXPERTS], down[EXPERTS];
    float row[HIDDEN];

    (void)state;
    fill(codes, sizeof(codes));
    for (size_t i = 0; i < sizeof(codes); i++)
        codes[i] &= 0xbf; /* no NaN */
    fill(words, sizeof(words));
    fill(zeros, sizeof(zeros));
    fill_f32(row_scales, MT_COUNT(row_scales));
    fill_f16(halves, MT_COUNT(halves));
    PUT_TENSORS("model.safetensors", {"model.mlp.experts.gate_up_proj", "F8_E4M3", "2, 128, 96", sizeof(codes), codes},
                {"model.mlp.experts.gate_up_proj_scale", "F32", "2, 128, 1", sizeof(row_scales), row_scales},
                {"model.mlp.experts.down_proj.weight_packed", "I32", "2, 96, 8", sizeof(words), words},
                {"model.mlp.experts.down_proj.weight_scale", "F16", "2, 96, 2", sizeof(halves), halves},
                {"model.mlp.experts.down_proj.weight_zero_point", "I32", "2, 12, 2", sizeof(zeros), zeros});
    start("{\"quant_method\":\"compressed-tensors\"}", true, false);
    assert_true(mt_bind_experts(binder, "mlp", EXPERTS, HIDDEN, INNER, false, gate, up, down));
    for (size_t e = 0; e < EXPERTS; e++) {
        const size_t at = e * 2 * INNER + INNER + 5; /* row 5 of up */
        mt_row_f32_portable(row, &up[e], 5);
        for (size_t i = 0; i < HIDDEN; i++)
            assert_true(row[i] == row_scales[at] * mt_f32_from_fp8(codes[at * HIDDEN + i]));
        mt_row_f32_portable(row, &down[e], 13);
        for (size_t i = 0; i < INNER; i++) {
            const size_t r = e * HIDDEN + 13, g = i / 32;
            const unsigned code = words[r * WORDS + i / 8] >> i % 8 * 4 & 15,
                           zero = zeros[(e * DOWN + 13 / 8) * GROUPS + g] >> 13 % 8 * 4 & 15;
            assert_true(row[i] == mt_f32_from_f16(halves[r * GROUPS + g]) * ((float)code - (float)zero));
        }
    }
    stop(NULL);
}

/* ---- what is wrong ---- */

static void expect_wrong(const char *quantization, const char *sentence)
{
    mt_error err = {0};
    mt_mat mat;

    start(quantization, false, false);
    assert_false(mt_bind_matrix(binder, "/m", N, K, &mat));
    assert_int_equal(mat.n, 0);
    assert_false(mt_binder_finish(binder, NULL, &err));
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, err.text);
    mt_arena_free(arena);
    mt_checkpoint_close(checkpoint);
}

static void wrong_tensors_are_named(void **state)
{
    static const char gptq_config[] = "{\"quant_method\":\"gptq\"}", ct[] = "{\"quant_method\":\"compressed-tensors\"}";
    uint32_t beyond[K] = {[5] = 3};

    (void)state;
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "12, 32", 12 * N * 4, NULL},
                {"m.qzeros", "I32", "3, 4", 48, NULL});
    expect_wrong(gptq_config, "\"m.qweight\" wanted [32, 96], found I32 [12, 32] without scales");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "12, 32", 12 * N * 4, NULL},
                {"m.scales", "F16", "3, 32", 6 * N, NULL});
    expect_wrong(gptq_config, "found I32 [12, 32] without qzeros");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "12, 32", 12 * N * 4, NULL},
                {"m.qzeros", "I32", "3, 4", 48, NULL}, {"m.scales", "F16", "5, 32", 10 * N, NULL});
    expect_wrong(gptq_config, "found I32 [12, 32] with scales F16 [5, 32]");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "12, 32", 12 * N * 4, NULL},
                {"m.qzeros", "I32", "3, 3", 36, NULL}, {"m.scales", "F16", "3, 32", 6 * N, NULL});
    expect_wrong(gptq_config, "with qzeros I32 [3, 3]");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "12, 32", 12 * N * 4, NULL},
                {"m.qzeros", "I32", "3, 4", 48, NULL}, {"m.scales", "F16", "0, 32", 0, NULL});
    expect_wrong(gptq_config, "with scales F16 [0, 32]");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "12, 32", 12 * N * 4, NULL},
                {"m.qzeros", "I32", "3, 4", 48, NULL}, {"m.scales", "F16", "3, 32", 6 * N, NULL},
                {"m.g_idx", "I32", "96", sizeof(beyond), beyond});
    expect_wrong(gptq_config, "\"m.g_idx\" wanted groups of columns, found group 3 of 3 at column 5");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "13, 32", 13 * N * 4, NULL});
    expect_wrong(gptq_config, "wanted [32, 96], found I32 [13, 32]");
    PUT_TENSORS("model.safetensors", {"m.qweight", "I32", "96, 4", K * 16, NULL},
                {"m.scales", "F16", "3, 32", 6 * N, NULL}, {"m.qzeros", "I32", "2, 4", 32, NULL});
    expect_wrong("{\"quant_method\":\"awq\"}", "with qzeros I32 [2, 4]");
    PUT_TENSORS("model.safetensors", {"m.weight_packed", "I32", "32, 12", N * 48, NULL});
    expect_wrong(ct, "found I32 [32, 12] without weight_scale");
    PUT_TENSORS("model.safetensors", {"m.weight_packed", "I32", "32, 12", N * 48, NULL},
                {"m.weight_scale", "F16", "32, 7", N * 14, NULL});
    expect_wrong(ct, "with weight_scale F16 [32, 7]");
    PUT_TENSORS("model.safetensors", {"m.weight_packed", "I32", "32, 12", N * 48, NULL},
                {"m.weight_scale", "F16", "32, 3", N * 6, NULL}, {"m.weight_zero_point", "I32", "3, 3", 36, NULL});
    expect_wrong(ct, "with weight_zero_point I32 [3, 3]");
    PUT_TENSORS("model.safetensors", {"m.weight_packed", "U8", "32, 48", sizeof(nibbles), NULL},
                {"m.weight_scale", "F8_E4M3", "32, 6", sizeof(small), NULL});
    expect_wrong(ct, "without weight_scale_2 or weight_global_scale");
    PUT_TENSORS("model.safetensors", {"m.weight", "U8", "1536, 1", sizeof(nibbles), NULL},
                {"m.weight.absmax", "F32", "192", sizeof(absmax), NULL},
                {"m.weight.quant_map", "F32", "16", sizeof(table), NULL});
    expect_wrong("{\"quant_method\":\"bitsandbytes\"}", "without quant_state");
    PUT_TENSORS("model.safetensors", {"m.weight", "U8", "1536, 1", sizeof(nibbles), NULL},
                {"m.weight.absmax", "F32", "192", sizeof(absmax), NULL},
                {"m.weight.quant_map", "F32", "16", sizeof(table), NULL},
                {"m.weight.quant_state.bitsandbytes__nf4", "U8", "15", 15, "{\"blocksize\":0}"});
    expect_wrong("{\"quant_method\":\"bitsandbytes\"}", "with a quant_state that is no JSON of sizes");
    PUT_TENSORS("model.safetensors", {"m.weight", "U8", "1536, 1", sizeof(nibbles), NULL},
                {"m.weight.absmax", "F32", "192", sizeof(absmax), NULL},
                {"m.weight.quant_map", "F32", "16", sizeof(table), NULL},
                {"m.weight.quant_state.bitsandbytes__nf4", "U8", "16", 16, "{\"blocksize\":64}"});
    expect_wrong("{\"quant_method\":\"bitsandbytes\"}", "with absmax F32 [192]");
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(gptq_binds),
    IN_FOLDER(gptqmodel_has_its_own_three_bits),
    IN_FOLDER(awq_binds),
    IN_FOLDER(packed_integers_bind),
    IN_FOLDER(int8_binds),
    IN_FOLDER(float4_binds),
    IN_FOLDER(fp8_binds),
    IN_FOLDER(fp8_is_reordered),
    IN_FOLDER(bnb4_binds),
    IN_FOLDER(stacked_experts_bind),
    IN_FOLDER(wrong_tensors_are_named),
};
UNIT_MAIN(tests)
