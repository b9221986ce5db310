/* Keys and values in 8 and 4 bits: what is put is near what it was, and a number that is not finite is not lost;
   attention over them has equal bits on every level, and for a row alone and among others. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "kernels/attn.h"
#include "kernels/kvq.h"

void check_attnq(check *c);

enum { MAX_SEG = 3, MAX_POSITIONS = MAX_SEG * MT_SEGMENT };

typedef struct problem {
    mt_attn a;
    size_t seg, head_dim;
    check_data kind;
    uint8_t *memory;
    size_t pages_held;
    float *o;
    mt_attn_part *part;
    uint32_t pages[MAX_POSITIONS / 16];
} problem;

static void fill(check *c, float *x, size_t n, check_data kind)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = check_float(c, kind);
        x[i] = fabsf(x[i]) < 0x1.fep127f || kind == CHECK_SPECIAL ? x[i] : 1.0f;
    }
}

/* ---- what is put ---- */

/* Every channel is spread over all of them: an element errs by half a step, or what rounding the scale cuts off the
   largest, which is below 2^-8 of it. Scales of subnormal numbers are coarse. */
static void check_held(check *c, const float *x, size_t n, const float *y, size_t stride, float d, unsigned bits)
{
    const double step = (double)d * (bits == 8 ? 1 : 16), most = (double)d * (bits == 8 ? 127 : 112);
    bool sound = true, near = true, known = fabsf(d) <= FLT_MAX;
    for (size_t i = 0; i < n; i++)
        sound = sound && fabsf(x[i]) <= FLT_MAX;
    for (size_t i = 0; i < stride; i++)
        near = near && fabs((double)y[i] - (i < n ? (double)x[i] : 0)) <= step / 2 + most * 0x1p-8 + 0x1p-112;
    check_that(c, known ? sound && near : true, "bits=%u n=%zu of %zu: scale %g, element 0 is %g for %g", bits, n,
               stride, (double)d, (double)y[0], (double)x[0]);
}

static void put_one(check *c, size_t stride, size_t tokens, unsigned bits, check_data kind, bool value)
{
    const size_t n = stride - check_below(c, 32), slot = check_below(c, tokens);
    const size_t bytes = mt_kvq_block_bytes(tokens, stride, bits);
    uint8_t *want = check_alloc(c, bytes, 2), *got = check_alloc(c, bytes, 2);
    float *x = check_alloc(c, n * sizeof(*x), 4), *y = check_alloc(c, stride * sizeof(*y), 4),
          *z = check_alloc(c, stride * sizeof(*z), 4);
    fill(c, x, n, kind);
    memset(want, 0xff, bytes);
    memset(got, 0xff, bytes);
    c->ref->kv_put_q(want, tokens, slot, stride, bits, x, n, value);
    c->k->kv_put_q(got, tokens, slot, stride, bits, x, n, value);
    check_bytes(c, want, got, bytes, "put: bits=%u n=%zu slot=%zu of %zu data=%s", bits, n, slot, tokens,
                check_data_name(kind));
    c->k->kv_get_q(y, want, tokens, slot, stride, bits, value);
    c->ref->kv_get_q(z, want, tokens, slot, stride, bits, value);
    check_f32(c, z, y, 1, stride, stride, "get: bits=%u n=%zu slot=%zu of %zu data=%s", bits, n, slot, tokens,
              check_data_name(kind));
    check_held(c, x, n, y, stride, mt_kvq_scale(want, slot), bits);
    /* other positions are as they were */
    c->ref->kv_get_q(z, want, tokens, (slot + 1) % tokens, stride, bits, value);
    check_that(c, z[0] != z[0] && z[stride - 1] != z[stride - 1], "put: bits=%u n=%zu slot=%zu of %zu wrote another",
               bits, n, slot, tokens);
    check_release(c);
}

static void check_turn(check *c)
{
    for (size_t stride = 32; stride <= 1024; stride += stride < 256 ? 32 : 256)
        for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++) {
            float *x = check_alloc(c, stride * sizeof(*x), 4), *want = check_alloc(c, stride * sizeof(*x), 4),
                  *got = check_alloc(c, stride * sizeof(*x), 4);
            bool ok = true;
            fill(c, x, stride, kind);
            memcpy(want, x, stride * sizeof(*x));
            memcpy(got, x, stride * sizeof(*x));
            for (size_t back = 0; back < 2; back++) {
                c->ref->kv_turn(want, stride, back);
                c->k->kv_turn(got, stride, back);
                check_f32(c, want, got, 1, stride, stride, "n=%zu back=%zu data=%s", stride, back,
                          check_data_name(kind));
            }
            for (size_t i = 0; i < stride && kind == CHECK_NORMAL; i++)
                ok = ok && fabsf(got[i] - x[i]) < 1e-4f;
            check_that(c, ok, "n=%zu: not what it was", stride);
            check_release(c);
        }
}

static void check_put(check *c)
{
    for (unsigned bits = 4; bits <= 8; bits += 4)
        for (size_t stride = 32; stride <= 256; stride += 32)
            for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
                for (size_t i = 0; i < 4; i++)
                    put_one(c, stride, 16u << check_below(c, 4), bits, kind, i % 2);
}

static void check_query(check *c)
{
    for (size_t stride = 32; stride <= 256; stride += 32)
        for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
            for (size_t i = 0; i < 4; i++) {
                const size_t n = stride - check_below(c, 32), bytes = mt_kvq_query_bytes(stride);
                float *x = check_alloc(c, n * sizeof(*x), 4);
                uint8_t *want = check_alloc(c, bytes, 4), *got = check_alloc(c, bytes, 4);
                fill(c, x, n, kind);
                c->ref->kv_query(want, x, n, stride);
                c->k->kv_query(got, x, n, stride);
                check_bytes(c, want, got, stride, "n=%zu data=%s", n, check_data_name(kind));
                check_f32(c, (const float *)(const void *)(want + stride), (const float *)(const void *)(got + stride),
                          1, 1, 1, "scale: n=%zu data=%s", n, check_data_name(kind));
                check_release(c);
            }
}

/* ---- attention ---- */

/* Windows: causal, sliding, ranges within the segment, nothing at all. */
static void choose_rows(check *c, problem *p, uint32_t *lo, uint32_t *hi, bool mixed)
{
    const uint32_t first = (uint32_t)(p->seg * MT_SEGMENT), base = first + (uint32_t)check_below(c, MT_SEGMENT);
    const uint32_t window = check_below(c, 2) ? 0 : 1 + (uint32_t)check_below(c, 400);
    for (size_t r = 0; r < p->a.rows; r++) {
        hi[r] = base + 1 + (uint32_t)(r / 4);
        if (mixed && check_below(c, 3) == 0)
            hi[r] = (uint32_t)check_below(c, MAX_POSITIONS);
        hi[r] = hi[r] < MAX_POSITIONS ? hi[r] : MAX_POSITIONS;
        lo[r] = window && hi[r] > window ? hi[r] - window : 0;
        if (mixed && check_below(c, 8) == 0)
            lo[r] = hi[r];
    }
}

/* Only what lies between the first and the last position that rows see is written, and only the pages around that
   exist; the rest is NaN. */
static void write_pages(check *c, problem *p)
{
    const mt_attn *a = &p->a;
    const size_t first = p->seg * MT_SEGMENT, tokens = a->page_tokens;
    float *x = check_alloc(c, p->head_dim * sizeof(*x), 4);
    memset(p->memory, 0xff, p->pages_held * a->page_stride);
    for (size_t i = 0; i < MAX_POSITIONS / 16; i++)
        p->pages[i] = 0xfffffff0u;
    size_t next = 0;
    const mt_attn_range all = mt_attn_seen_by(a, p->seg, 0, a->rows);
    for (size_t t = first + all.begin; t < first + all.end; t++) {
        if (p->pages[t / tokens] == 0xfffffff0u)
            p->pages[t / tokens] = (uint32_t)(p->pages_held - ++next);
        uint8_t *page = p->memory + p->pages[t / tokens] * a->page_stride;
        fill(c, x, p->head_dim, p->kind);
        c->ref->kv_put_q(page + a->k_offset, tokens, t % tokens, a->head_stride, a->bits, x, p->head_dim, false);
        fill(c, x, p->head_dim, p->kind);
        c->ref->kv_put_q(page + a->v_offset, tokens, t % tokens, a->head_stride, a->bits, x, p->head_dim, true);
    }
}

static void setup(check *c, problem *p, size_t rows, size_t stride, size_t tokens, unsigned bits, check_data kind,
                  bool mixed)
{
    *p = (problem){.seg = check_below(c, MAX_SEG), .kind = kind, .pages_held = MT_SEGMENT / tokens};
    mt_attn *a = &p->a;
    a->head_stride = stride;
    a->page_tokens = tokens;
    a->rows = rows;
    a->bits = bits;
    a->scale = 1.0f / sqrtf((float)stride);
    a->softcap = check_below(c, 3) ? 0.0f : 10.0f;
    a->pages = p->pages;
    const size_t block = mt_kvq_block_bytes(tokens, stride, bits), query = mt_kvq_query_bytes(stride);
    a->page_stride = 2 * block + 2 * check_below(c, 40);
    a->k_offset = check_below(c, 2) ? block : 0;
    a->v_offset = block - a->k_offset;
    p->head_dim = stride - check_below(c, 32);
    p->memory = check_alloc(c, p->pages_held * a->page_stride, 2);
    a->base = p->memory;
    uint32_t *lo = check_alloc(c, rows * sizeof(*lo), 4), *hi = check_alloc(c, rows * sizeof(*hi), 4);
    uint8_t *q = check_alloc(c, rows * query, 4);
    float *x = check_alloc(c, p->head_dim * sizeof(*x), 4);
    a->lo = lo;
    a->hi = hi;
    a->q = q;
    choose_rows(c, p, lo, hi, mixed);
    write_pages(c, p);
    for (size_t r = 0; r < rows; r++) {
        fill(c, x, p->head_dim, kind);
        c->ref->kv_query(q + r * query, x, p->head_dim, stride);
    }
    p->o = check_alloc(c, rows * stride * sizeof(float), 4);
    p->part = check_alloc(c, rows * sizeof(*p->part), 4);
}

static void run(check *c, const mt_kernels *k, const problem *p, float *o, mt_attn_part *part, size_t r0, size_t n)
{
    mt_attn a = p->a;
    a.rows = n;
    a.q = (const uint8_t *)a.q + r0 * mt_kvq_query_bytes(a.head_stride);
    a.lo += r0;
    a.hi += r0;
    uint8_t *scratch = check_alloc(c, k->attn_q_scratch_bytes(n, a.head_stride), 64);
    k->attn_q(o, part, &a, p->seg, scratch);
}

static void same(check *c, const problem *p, size_t r0, size_t n, const float *o, const mt_attn_part *part,
                 const char *how)
{
    const size_t stride = p->a.head_stride;
#define PARAMETERS                                                                                               \
    "%s: bits=%u rows=%zu [%zu, %zu) stride=%zu page=%zu seg=%zu lo=%u hi=%u cap=%g data=%s", how, p->a.bits,    \
        p->a.rows, r0, r0 + n, stride, p->a.page_tokens, p->seg, p->a.lo[r0], p->a.hi[r0], (double)p->a.softcap, \
        check_data_name(p->kind)
    check_f32(c, p->o + r0 * stride, o, n, stride, stride, PARAMETERS);
    check_f32(c, &p->part[r0].m, &part->m, n, 2, 2, PARAMETERS);
#undef PARAMETERS
}

/* What was put, turned as it is held, in double. */
static void held(const problem *p, size_t t, bool value, double *y)
{
    const mt_attn *a = &p->a;
    const uint8_t *block =
        p->memory + a->pages[t / a->page_tokens] * a->page_stride + (value ? a->v_offset : a->k_offset);
    int8_t q[MT_KVQ_STRIDE];
    mt_kvq_integers(q, block, a->page_tokens, a->head_stride, a->bits, t % a->page_tokens, value);
    for (size_t i = 0; i < a->head_stride; i++)
        y[i] = (double)mt_kvq_scale(block, t % a->page_tokens) * q[i];
}

/* One row in double: products err by few roundings, weights by half of 1 / 65535 of the largest. */
static void near(check *c, const problem *p, size_t r)
{
    const mt_attn *a = &p->a;
    const size_t first = p->seg * MT_SEGMENT, lo = a->lo[r] > first ? a->lo[r] : first;
    const size_t hi = a->hi[r] < first + MT_SEGMENT ? a->hi[r] : first + MT_SEGMENT;
    const uint8_t *q = (const uint8_t *)a->q + r * mt_kvq_query_bytes(a->head_stride);
    double s[MT_SEGMENT], x[MT_KVQ_STRIDE], o[MT_KVQ_STRIDE] = {0}, m = -INFINITY, l = 0, top = 0;
    float qd;
    memcpy(&qd, q + a->head_stride, sizeof(qd));
    for (size_t t = lo; t < hi; t++) {
        double sum = 0;
        held(p, t, false, x);
        for (size_t d = 0; d < a->head_stride; d++)
            sum += x[d] * (int8_t)q[d];
        s[t - lo] = sum * (double)qd * (double)a->scale;
        if (a->softcap != 0.0f)
            s[t - lo] = (double)a->softcap * tanh(s[t - lo] / (double)a->softcap);
        m = s[t - lo] > m ? s[t - lo] : m;
    }
    for (size_t t = lo; t < hi; t++) {
        const double e = exp(s[t - lo] - m);
        held(p, t, true, x);
        l += e;
        for (size_t d = 0; d < a->head_stride; d++) {
            o[d] += e * x[d];
            top = e * fabs(x[d]) > top ? e * fabs(x[d]) : top;
        }
    }
    bool ok = lo >= hi ? p->part[r].m == -INFINITY && p->part[r].l == 0.0f
                       : fabs((double)p->part[r].m - m) <= 1e-4 && fabs((double)p->part[r].l - l) <= l * 1e-4;
    /* the largest element of a vector is at least 7 / 8 of what its scale can hold */
    for (size_t d = 0; d < a->head_stride; d++)
        ok = ok && fabs((double)p->o[r * a->head_stride + d] - o[d]) <= (double)(hi - lo) * top * (1e-5 + 1e-4);
    check_that(c, ok, "bound: bits=%u row %zu of %zu stride=%zu page=%zu seg=%zu lo=%u hi=%u cap=%g", a->bits, r,
               a->rows, a->head_stride, a->page_tokens, p->seg, a->lo[r], a->hi[r], (double)a->softcap);
}

static void one(check *c, size_t rows, size_t stride, size_t tokens, unsigned bits, check_data kind, bool mixed)
{
    problem p;
    setup(c, &p, rows, stride, tokens, bits, kind, mixed);
    run(c, c->k, &p, p.o, p.part, 0, rows);
    float *o = check_alloc(c, rows * stride * sizeof(*o), 4);
    mt_attn_part *part = check_alloc(c, rows * sizeof(*part), 4);
    run(c, c->ref, &p, o, part, 0, rows);
    same(c, &p, 0, rows, o, part, "all");
    for (size_t r = 0; r < rows && kind == CHECK_NORMAL && c->lower == NULL; r += 1 + rows / 4)
        near(c, &p, r);
    for (size_t i = 0; i < 3; i++) {
        const size_t n = i == 0 ? 1 : 1 + check_below(c, rows), r0 = check_below(c, rows - n + 1);
        run(c, c->k, &p, o, part, r0, n);
        same(c, &p, r0, n, o, part, "some");
    }
    check_release(c);
}

static void check_bits(check *c, unsigned bits)
{
    static const size_t tokens[] = {16, 32, 64, 128, 256};
    for (size_t stride = 32; stride <= 256; stride += 32)
        for (size_t i = 0; i < 3; i++)
            one(c, 1 + check_below(c, 20), stride, tokens[i], bits, CHECK_NORMAL, i == 2);
    for (size_t rows = 1; rows <= 20; rows++)
        for (size_t i = 0; i < 3; i++)
            one(c, rows, 32, tokens[check_below(c, 5)], bits, i ? CHECK_NORMAL : CHECK_WIDE, i == 2);
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
        for (size_t rows = 1; rows <= 12; rows += 2)
            one(c, rows, 64, 16, bits, kind, true);
    one(c, 64, 128, 32, bits, CHECK_NORMAL, true);
}

void check_attnq(check *c)
{
    if (check_begin(c, CHECK_NEW(c, kv_turn), "kv_turn")) {
        check_turn(c);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, kv_put_q) || CHECK_NEW(c, kv_get_q), "kv_put_q")) {
        check_put(c);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, kv_query), "kv_query")) {
        check_query(c);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, attn_q), "attn_q")) {
        check_bits(c, 8);
        check_bits(c, 4);
        check_end(c);
    }
}
