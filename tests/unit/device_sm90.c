/* The rule of a tensor-core step of sm_90: against sums of a card, against another way to compute it, in doubles, and
   by hand. */
#include "unit.h"

#include <math.h>

#include "device/sm90_lanes.h"

enum { K = MT_SM90_K, ROUNDS = 200000, SEEN = 800 };

enum kind {
    EVEN,
    WIDE,
    CANCELLING,
    SUBNORMAL,
    POWERS,
    OUTLIER,
    KINDS,
    ANY = KINDS /* bits, NaN and infinities, too */
};

/* One of the two operand formats: bits of its fraction, its exponents' bias, and its step. */
typedef struct operands {
    int fraction, bias;
    float (*dot)(float c, const uint16_t *a, const uint16_t *b);
} operands;

static const operands f16 = {10, 15, mt_sm90_dot_f16}, bf16 = {7, 127, mt_sm90_dot_bf16};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t next(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ---- the same rule in doubles, which hold every addend and every sum exactly ---- */

static int field_of(const operands *o, uint16_t h)
{
    return h >> o->fraction & ((1 << (15 - o->fraction)) - 1);
}

static int exponent_of(const operands *o, uint16_t h)
{
    const int field = field_of(o, h);
    return (field ? field : 1) - o->bias;
}

static double value_of(const operands *o, uint16_t h)
{
    const int fraction = h & ((1 << o->fraction) - 1), leading = field_of(o, h) ? 1 << o->fraction : 0;
    return ldexp(h >> 15 ? -(fraction + leading) : fraction + leading, exponent_of(o, h) - o->fraction);
}

static double cut(double x, int lowest)
{
    return ldexp(trunc(ldexp(x, -lowest)), lowest);
}

static float reference(const operands *o, float c, const uint16_t *a, const uint16_t *b)
{
    int top = -1000, exponent;
    double sum = 0;
    if (c != 0)
        top = (bits_of(c) >> 23 & 0xff ? (int)(bits_of(c) >> 23 & 0xff) : 1) - 127;
    for (size_t i = 0; i < K; i++)
        if (value_of(o, a[i]) * value_of(o, b[i]) != 0)
            top = (int)fmax(top, exponent_of(o, a[i]) + exponent_of(o, b[i]));
    sum = cut(c, top - 25);
    for (size_t i = 0; i < K; i++)
        sum += cut(value_of(o, a[i]) * value_of(o, b[i]), top - 25);
    frexp(sum, &exponent);
    sum = cut(sum, (int)fmax(exponent - 24, -149));
    return sum == 0 ? 0 : (float)sum; /* +0 */
}

/* ---- inputs ---- */

static uint16_t operand(const operands *o, enum kind kind, uint64_t r)
{
    const int most = (1 << (15 - o->fraction)) - 2, middle = o->bias;
    const int wide = o->fraction == 10 ? most : most / 4; /* so that sums stay finite */
    const uint32_t fraction = (uint32_t)(r & ((1u << o->fraction) - 1)), sign = (uint32_t)(r >> 20 & 1) << 15;
    int field = middle - (int)(r >> 24 & 3);
    if (kind == WIDE)
        field = middle - wide / 2 + (int)((r >> 24 & 0xffff) % (uint64_t)wide);
    if (kind == SUBNORMAL)
        field = (int)(r >> 24 & 7) < 6 ? 0 : (int)(r >> 28 & 15);
    if (kind == OUTLIER && (r >> 32 & 15) == 0)
        field += 9;
    return (uint16_t)(sign | (uint32_t)field << o->fraction | (kind == POWERS ? 0 : fraction));
}

static float summand(enum kind kind, uint64_t r)
{
    uint32_t field = 127 - 4 + (uint32_t)(r >> 32 & 7);
    if (kind == WIDE)
        field = 1 + (uint32_t)(r >> 32 & 0xff) % 200;
    if (kind == SUBNORMAL)
        field = (uint32_t)(r >> 32 & 3);
    if ((r >> 44 & 7) == 0)
        return 0;
    return float_of(((uint32_t)r & 0x807fffffu) | field << 23);
}

static float draw(const operands *o, enum kind kind, uint64_t *seed, uint16_t *a, uint16_t *b)
{
    for (size_t i = 0; i < K; i++) {
        a[i] = operand(o, kind, next(seed));
        b[i] = operand(o, kind, next(seed));
        if (kind == CANCELLING && i % 2) {
            a[i] = a[i - 1] ^ 0x8000;
            b[i] = (uint16_t)(b[i - 1] + (next(seed) % 3 == 0));
        }
    }
    return summand(kind, next(seed));
}

static void equal_in_doubles(const operands *o)
{
    const int rounds = unit_quick() ? ROUNDS / 20 : ROUNDS;
    uint64_t seed = 1;
    uint16_t a[K], b[K];
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < rounds; i++) {
            const float c = draw(o, kind, &seed, a, b), got = o->dot(c, a, b), want = reference(o, c, a, b);
            if (bits_of(got) != bits_of(want))
                fail_msg("kind %d, round %d: %a, in doubles %a", (int)kind, i, got, want);
        }
}

static void sums_are_those_in_doubles(void **state)
{
    (void)state;
    equal_in_doubles(&f16);
    equal_in_doubles(&bf16);
}

/* ---- sums of a card ---- */

static void read_operands(const char *hex, uint16_t *h)
{
    for (size_t i = 0; i < K; i++) {
        unsigned bits;
        assert_int_equal(sscanf(hex + 4 * i, "%4x", &bits), 1);
        h[i] = (uint16_t)bits;
    }
}

/* Each line of the file has a sum of a card: it says how. */
static void sums_are_those_of_a_card(void **state)
{
    (void)state;
    FILE *file = fopen("tests/unit/device_sm90.txt", "r");
    char line[256], format[8], kind[32], a_hex[4 * K + 1], b_hex[4 * K + 1];
    size_t seen = 0;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        unsigned c, sum;
        uint16_t a[K], b[K];
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%7s %31s %8x %8x %64s %64s", format, kind, &c, &sum, a_hex, b_hex), 6);
        read_operands(a_hex, a);
        read_operands(b_hex, b);
        const uint32_t got = bits_of((strcmp(format, "f16") == 0 ? &f16 : &bf16)->dot(float_of(c), a, b));
        if (got != sum)
            fail_msg("%s, %s, c %08x: %08x, the card has %08x", format, kind, c, got, sum);
        seen++;
    }
    fclose(file);
    assert_int_equal(seen, SEEN);
}

/* ---- columns side by side ---- */

enum { LANES = MT_SM90_LANES };

/* Operands of one row and of all columns; kinds of columns are mixed, so that most steps have one that takes long. */
typedef struct columns {
    uint16_t row[K], column[LANES][K];
    float c[LANES];
} columns;

static void draw_columns(columns *d, const operands *o, enum kind kind, uint64_t *seed)
{
    uint16_t row[K];
    for (size_t l = 0; l < LANES; l++)
        d->c[l] = draw(o, kind == ANY ? EVEN : kind, seed, d->column[l], l ? row : d->row);
    for (size_t i = 0; kind == ANY && i < K; i++)
        d->column[next(seed) % LANES][i] = (uint16_t)next(seed);
}

static void equal_side_by_side(const operands *o, mt_sm90_type type)
{
    const int rounds = unit_quick() ? ROUNDS / 400 : ROUNDS / 40;
    uint64_t seed = 3;
    columns d;
    for (enum kind kind = 0; kind <= ANY; kind++)
        for (int i = 0; i < rounds; i++) {
            float value[K][LANES], power[K][LANES], x[K], x_power[K], sum[LANES];
            draw_columns(&d, o, kind, &seed);
            bool finite = mt_sm90_widen(x, x_power, d.row, K, type);
            for (size_t l = 0; l < LANES; l++)
                for (size_t k = 0; k < K; k++)
                    finite &= mt_sm90_widen(&value[k][l], &power[k][l], &d.column[l][k], 1, type);
            memcpy(sum, d.c, sizeof(sum));
            mt_sm90_step(sum, value[0], power[0], LANES, x, x_power, type, finite);
            for (size_t l = 0; l < LANES; l++) {
                const float want = o->dot(d.c[l], d.column[l], d.row);
                if (bits_of(sum[l]) != bits_of(want))
                    fail_msg("kind %d, round %d: %a, alone %a", (int)kind, i, (double)sum[l], (double)want);
            }
        }
}

static void columns_side_by_side_have_the_same_sums(void **state)
{
    (void)state;
    equal_side_by_side(&f16, MT_SM90_F16);
    equal_side_by_side(&bf16, MT_SM90_BF16);
}

/* ---- by hand ---- */

enum { ONE = 0x3c00, TWO = 0x4000, LEAST = 0x0001, MOST = 0x7bff, INF = 0x7c00, QNAN = 0x7e00, MINUS = 0x8000 };

typedef struct hand {
    float c;
    uint16_t a[3], b[3]; /* the others are zero */
    uint32_t want;
} hand;

/* 2^-24 of fp16 times 1 is 2^-24; 1.5 is 0x3e00. */
static const hand by_hand[] = {
    {1, {ONE}, {TWO}, 0x40400000},                                      /* 1 + 2 = 3 */
    {1, {LEAST}, {ONE}, 0x3f800000},                                    /* 1 + 2^-24: cut, not rounded */
    {-1, {LEAST}, {ONE}, 0xbf7fffff},                                   /* -1 + 2^-24 is an fp32 */
    {1, {LEAST, LEAST}, {ONE, ONE}, 0x3f800001},                        /* two bits below fp32's last add up to it */
    {8, {LEAST, LEAST}, {ONE, ONE}, 0x41000000},                        /* 2^(3 - 25) = 2^-22 is the least addend */
    {0x1p-24f, {ONE, ONE | MINUS}, {TWO, TWO}, 0x33800000},             /* top is 1: 2^-24 is kept */
    {0x1p-25f, {ONE, ONE | MINUS}, {TWO, TWO}, 0},                      /* and 2^-25 is not */
    {0x1p-24f, {0x3e00, 0x3e00 | MINUS}, {0x3e00, 0x3e00}, 0x33800000}, /* 1.5 * 1.5 has exponent 0, not 1 */
    {0x1p-25f, {0x3e00, 0x3e00 | MINUS}, {0x3e00, 0x3e00}, 0x33000000},
    {0, {LEAST, LEAST}, {LEAST, LEAST}, 0x28000000}, /* 2^-48 + 2^-48: top is -28, so 2^-53 counts */
    {0x1.fffffep-126f, {ONE}, {0}, 0x00ffffff},      /* zero products leave c as it is */
    {0x1p-149f, {0}, {0}, 1},
    {0, {MOST, MOST, MOST}, {MOST, MOST, MOST}, 0x503fd003},
    {-1, {ONE}, {ONE}, 0},
    {-0.0f, {0}, {0}, 0},
    {0, {INF}, {ONE}, 0x7f800000},
    {0, {INF | MINUS}, {ONE}, 0xff800000},
    {0, {INF}, {0}, 0x7fffffff},
    {0, {INF, INF}, {ONE, ONE | MINUS}, 0x7fffffff},
    {-INFINITY, {INF}, {ONE}, 0x7fffffff},
    {INFINITY, {ONE}, {ONE}, 0x7f800000},
    {0, {QNAN}, {0}, 0x7fffffff},
};

static void cases_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
        const hand *h = &by_hand[i];
        uint16_t a[K] = {0}, b[K] = {0};
        memcpy(a, h->a, sizeof(h->a));
        memcpy(b, h->b, sizeof(h->b));
        const uint32_t got = bits_of(mt_sm90_dot_f16(h->c, a, b));
        if (got != h->want)
            fail_msg("case %zu: %08x instead of %08x", i, got, h->want);
    }
}

static void bf16_reaches_below_and_beyond_fp32(void **state)
{
    (void)state;
    /* 2^-126 * 2^-23 is fp32's least number; a bit below it is cut. 2^127 * 2 overflows. */
    const uint16_t least[K] = {0x0080, 0x0080}, factor[K] = {0x3400, 0x3380};
    const uint16_t most[K] = {0x7f00}, two[K] = {0x4000};
    assert_int_equal(bits_of(mt_sm90_dot_bf16(0, least, factor)), 1);
    assert_int_equal(bits_of(mt_sm90_dot_bf16(0, most, two)), 0x7f800000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_are_those_of_a_card),
    cmocka_unit_test(sums_are_those_in_doubles),
    cmocka_unit_test(columns_side_by_side_have_the_same_sums),
    cmocka_unit_test(cases_by_hand),
    cmocka_unit_test(bf16_reaches_below_and_beyond_fp32),
};
UNIT_MAIN(tests)
