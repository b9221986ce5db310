/* Attention over one segment: head sizes, page sizes, windows, rows that see nothing. What lies at positions that none
   sees is NaN, and pages nobody needs do not exist. Equal bits on every level but BFMMLA's (R5 level 1), which has a
   bound against double; on every level a row has the same bits alone and among others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/convert.h"

void check_attn(check *c);

enum { MAX_SEG = 3, MAX_POSITIONS = MAX_SEG * MT_SEGMENT, WIDEST = 576 };

typedef struct problem {
    mt_attn a;
    size_t seg, element, head_dim; /* element: bytes, 2 or 4 */
    check_data kind;
    bool plain;                   /* attn_plain, with keys that are values, too */
    uint8_t *memory, *ref_memory; /* the same pages, as each level orders them */
    float *k, *v;                 /* [MT_SEGMENT][head_stride]: what was written */
    float *o;
    mt_attn_part *part;
    uint32_t pages[MAX_POSITIONS / 16];
} problem;

static size_t max_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A vector of finite numbers of the pages' type, zeros from head_dim on */
static void fill(check *c, const problem *p, float *x)
{
    for (size_t i = 0; i < p->a.head_stride; i++) {
        x[i] = i < p->head_dim ? check_float(c, p->kind) : 0.0f;
        x[i] = fabsf(x[i]) < 0x1.fep127f ? x[i] : 1.0f;
        mt_bf16 h;
        c->ref->to_bf16(&h, &x[i], 1);
        x[i] = p->element == 2 ? mt_f32_from_bf16(h) : x[i];
    }
}

static void put(const problem *p, const mt_kernels *k, uint8_t *memory, size_t position, bool value, const float *x)
{
    const mt_attn *a = &p->a;
    uint8_t *block =
        memory + a->pages[position / a->page_tokens] * a->page_stride + (value ? a->v_offset : a->k_offset);
    size_t slot = position % a->page_tokens;
    if (p->element == 2)
        k->kv_put_bf16(block, slot, a->head_stride, x, p->head_dim, value);
    else
        memcpy(block + slot * a->head_stride * sizeof(*x), x, a->head_stride * sizeof(*x));
}

/* Windows: causal, sliding, ranges within the segment, nothing at all. */
static void choose_rows(check *c, problem *p, uint32_t *lo, uint32_t *hi, bool mixed)
{
    uint32_t first = (uint32_t)(p->seg * MT_SEGMENT), base = first + (uint32_t)check_below(c, MT_SEGMENT);
    uint32_t window = check_below(c, 2) ? 0 : 1 + (uint32_t)check_below(c, 400);
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

/* The positions of the segment that some row sees, of the whole pages around them. */
static void write_pages(check *c, problem *p, size_t page_count)
{
    size_t first = p->seg * MT_SEGMENT, begin = first + MT_SEGMENT, end = 0, tokens = p->a.page_tokens;
    for (size_t r = 0; r < p->a.rows; r++) {
        size_t lo = max_of(p->a.lo[r], first), hi = p->a.hi[r] < first + MT_SEGMENT ? p->a.hi[r] : first + MT_SEGMENT;
        begin = lo < hi && lo < begin ? lo : begin;
        end = lo < hi ? max_of(end, hi) : end;
    }
    memset(p->memory, 0xff, page_count * p->a.page_stride); /* NaN in both types */
    memset(p->ref_memory, 0xff, page_count * p->a.page_stride);
    for (size_t i = 0; i < MAX_POSITIONS / 16; i++)
        p->pages[i] = 0xfffffff0u;
    size_t spare = check_below(c, 2), next = spare;
    for (size_t page = begin / tokens; page * tokens < end; page++)
        p->pages[page] = (uint32_t)(next = next ? next - 1 : page_count - 1);
    for (size_t t = begin / tokens * tokens; t < end; t++) {
        size_t at = (t - first) * p->a.head_stride;
        fill(c, p, p->k + at);
        fill(c, p, p->v + at);
        if (p->plain)
            memcpy(p->v + at, p->k + at, p->a.head_stride * sizeof(*p->v));
        put(p, p->plain ? c->ref : c->k, p->memory, t, false, p->k + at);
        put(p, p->plain ? c->ref : c->k, p->memory, t, true, p->v + at);
        put(p, c->ref, p->ref_memory, t, false, p->k + at);
        put(p, c->ref, p->ref_memory, t, true, p->v + at);
    }
}

static void setup(check *c, problem *p, bool plain, size_t rows, size_t stride, size_t tokens, size_t element,
                  check_data kind, bool mixed)
{
    *p = (problem){.seg = check_below(c, MAX_SEG), .element = element, .kind = kind, .plain = plain};
    mt_attn *a = &p->a;
    a->head_stride = stride;
    a->page_tokens = tokens;
    a->rows = rows;
    a->scale = 1.0f / sqrtf((float)stride);
    a->softcap = check_below(c, 3) ? 0.0f : 10.0f;
    a->pages = p->pages;
    size_t half = tokens * stride * element, count = MT_SEGMENT / tokens + 1;
    a->page_stride = 2 * half + 2 * check_below(c, 40);
    a->k_offset = check_below(c, 2) ? half : 0;
    a->v_offset = plain ? a->k_offset : half - a->k_offset;
    p->head_dim = stride - check_below(c, 16);
    p->memory = check_alloc(c, count * a->page_stride, 2);
    p->ref_memory = check_alloc(c, count * a->page_stride, 2);
    p->k = check_alloc(c, MT_SEGMENT * stride * sizeof(float), 4);
    p->v = check_alloc(c, MT_SEGMENT * stride * sizeof(float), 4);
    uint8_t *q = check_alloc(c, rows * stride * element, element);
    float *x = check_alloc(c, stride * sizeof(*x), 4);
    uint32_t *lo = check_alloc(c, rows * sizeof(*lo), 4), *hi = check_alloc(c, rows * sizeof(*hi), 4);
    a->lo = lo;
    a->hi = hi;
    choose_rows(c, p, lo, hi, mixed);
    write_pages(c, p, count);
    for (size_t r = 0; r < rows; r++) {
        fill(c, p, x);
        if (element == 4)
            memcpy(q + r * stride * element, x, stride * element);
        else
            c->ref->to_bf16((mt_bf16 *)(void *)q + r * stride, x, stride);
    }
    if (kind == CHECK_SPECIAL && check_below(c, 2))
        memset(q + check_below(c, rows) * stride * element, 0xff, stride * element); /* one row of NaN */
    a->q = q;
    p->o = check_alloc(c, rows * stride * sizeof(float), 4);
    p->part = check_alloc(c, rows * sizeof(*p->part), 4);
}

static void run(check *c, const mt_kernels *k, const problem *p, float *o, mt_attn_part *part, size_t r0, size_t n)
{
    mt_attn a = p->a;
    a.base = k == c->ref ? p->ref_memory : p->memory;
    a.rows = n;
    a.q = (const uint8_t *)a.q + r0 * a.head_stride * p->element;
    a.lo += r0;
    a.hi += r0;
    uint8_t *scratch = check_alloc(c, k->attn_scratch_bytes(n, a.head_stride), 64);
    (p->plain ? k->attn_plain : p->element == 2 ? k->attn_bf16 : k->attn_f32)(o, part, &a, p->seg, scratch);
}

static void same(check *c, const problem *p, size_t r0, size_t n, const float *o, const mt_attn_part *part,
                 const char *how)
{
    size_t stride = p->a.head_stride;
#define PARAMETERS                                                                                                 \
    "%s: element=%zu rows=%zu [%zu, %zu) stride=%zu page=%zu seg=%zu lo=%u hi=%u cap=%g data=%s", how, p->element, \
        p->a.rows, r0, r0 + n, stride, p->a.page_tokens, p->seg, p->a.lo[r0], p->a.hi[r0], (double)p->a.softcap,   \
        check_data_name(p->kind)
    check_f32(c, p->o + r0 * stride, o, n, stride, stride, PARAMETERS);
    check_f32(c, &p->part[r0].m, &part->m, n, 2, 2, PARAMETERS);
#undef PARAMETERS
}

static double query(const problem *p, size_t r, size_t d)
{
    const uint8_t *at = (const uint8_t *)p->a.q + (r * p->a.head_stride + d) * p->element;
    float x;
    mt_bf16 h;
    memcpy(p->element == 2 ? (void *)&h : (void *)&x, at, p->element);
    return p->element == 2 ? (double)mt_f32_from_bf16(h) : (double)x;
}

/* One row in double. s errs by its k / 2 additions, p by its rounding to bf16. */
static void near(check *c, const problem *p, size_t r)
{
    const mt_attn *a = &p->a;
    size_t first = p->seg * MT_SEGMENT, lo = max_of(a->lo[r], first);
    size_t hi = a->hi[r] < first + MT_SEGMENT ? a->hi[r] : first + MT_SEGMENT;
    double s[MT_SEGMENT], m = -INFINITY, slack = 1e-5, l = 0, o[WIDEST] = {0}, size[WIDEST] = {0};
    for (size_t t = lo; t < hi; t++) {
        const float *k = p->k + (t - first) * a->head_stride;
        double sum = 0, magnitude = 0;
        for (size_t d = 0; d < a->head_stride; d++) {
            double x = query(p, r, d) * (double)k[d];
            sum += x;
            magnitude += fabs(x);
        }
        s[t - lo] = sum * (double)a->scale;
        if (a->softcap != 0.0f)
            s[t - lo] = (double)a->softcap * tanh(s[t - lo] / (double)a->softcap);
        m = s[t - lo] > m ? s[t - lo] : m;
        double e = magnitude * (double)a->scale * ((double)a->head_stride / 2 + 8) * 0x1p-23 + 1e-5;
        slack = e > slack ? e : slack;
    }
    for (size_t t = lo; t < hi; t++) {
        const float *v = p->v + (t - first) * a->head_stride;
        double e = exp(s[t - lo] - m);
        l += e;
        for (size_t d = 0; d < a->head_stride; d++) {
            o[d] += e * (double)v[d];
            size[d] += e * fabs((double)v[d]);
        }
    }
    double relative = 0x1p-8 + 3 * slack;
    bool ok = lo >= hi ? p->part[r].m == -INFINITY && p->part[r].l == 0.0f
                       : fabs((double)p->part[r].m - m) <= slack && fabs((double)p->part[r].l - l) <= l * relative;
    for (size_t d = 0; d < a->head_stride; d++)
        ok = ok && fabs((double)p->o[r * a->head_stride + d] - o[d]) <= size[d] * relative + 1e-30;
    check_that(c, ok, "bound: row %zu of %zu stride=%zu page=%zu seg=%zu lo=%u hi=%u cap=%g", r, a->rows,
               a->head_stride, a->page_tokens, p->seg, a->lo[r], a->hi[r], (double)a->softcap);
}

static void one(check *c, bool plain, size_t rows, size_t stride, size_t tokens, size_t element, check_data kind,
                bool mixed)
{
    problem p;
    setup(c, &p, plain, rows, stride, tokens, element, kind, mixed);
    run(c, c->k, &p, p.o, p.part, 0, rows);
    float *o = check_alloc(c, rows * stride * sizeof(*o), 4);
    mt_attn_part *part = check_alloc(c, rows * sizeof(*part), 4);
    if (element == 4 || p.plain || mt_kernels_r5_level(c->k) == 0) {
        run(c, c->ref, &p, o, part, 0, rows);
        same(c, &p, 0, rows, o, part, "all");
    }
    for (size_t r = 0; r < rows && kind == CHECK_NORMAL; r += 1 + rows / 8)
        near(c, &p, r);
    for (size_t i = 0; i < 3; i++) {
        size_t n = i == 0 ? 1 : 1 + check_below(c, rows), r0 = check_below(c, rows - n + 1);
        run(c, c->k, &p, o, part, r0, n);
        same(c, &p, r0, n, o, part, "some");
    }
    check_release(c);
}

static void each(check *c, size_t element, bool plain)
{
    static const size_t tokens[] = {16, 32, 64, 128, 256};
    for (size_t stride = 16; stride <= 256; stride += 16)
        for (size_t i = 0; i < 3; i++)
            one(c, plain, 1 + check_below(c, 24), stride, tokens[i], element, CHECK_NORMAL, i == 2);
    for (size_t rows = 1; rows <= 40; rows++)
        for (size_t i = 0; i < 3; i++)
            one(c, plain, rows, 32, tokens[check_below(c, 5)], element, i ? CHECK_NORMAL : CHECK_WIDE, i == 2);
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
        for (size_t rows = 1; rows <= 20; rows += 2)
            one(c, plain, rows, 64, 16, element, kind, true);
    one(c, plain, 128, 128, 64, element, CHECK_NORMAL, false);
    one(c, plain, 100, 64, 16, element, CHECK_NORMAL, true);
    if (plain)
        one(c, plain, 40, WIDEST, 32, element, CHECK_NORMAL, true);
}

static void check_merge(check *c)
{
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++) {
        for (size_t n = 0; n <= 40; n++) {
            float *o = check_alloc(c, n * sizeof(*o), 4), *want = check_alloc(c, n * sizeof(*want), 4),
                  *got = check_alloc(c, n * sizeof(*got), 4);
            mt_attn_part a = {-INFINITY, 0.0f}, b = a;
            for (size_t i = 0; i < 4; i++) {
                mt_attn_part part = {check_float(c, kind), check_float(c, kind)};
                check_fill_f32(c, o, n, kind);
                if (check_below(c, 5) == 0)
                    part = (mt_attn_part){-INFINITY, 0.0f};
                c->ref->attn_merge(want, &a, o, &part, n);
                c->k->attn_merge(got, &b, o, &part, n);
                check_f32(c, want, got, 1, n, n, "n=%zu data=%s", n, check_data_name(kind));
                check_f32(c, &a.m, &b.m, 1, 2, 2, "m, l: n=%zu data=%s", n, check_data_name(kind));
            }
            check_release(c);
        }
    }
}

void check_attn(check *c)
{
    if (check_begin(c, CHECK_NEW(c, attn_bf16), "attn_bf16")) {
        each(c, 2, false);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, attn_f32), "attn_f32")) {
        each(c, 4, false);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, attn_plain), "attn_plain")) {
        each(c, 2, true);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, attn_merge), "attn_merge")) {
        check_merge(c);
        check_end(c);
    }
}
