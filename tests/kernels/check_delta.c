/* conv and delta: equal bits on every level; a run of tokens is the same in one piece and in two. */
#include <string.h>

#include "check.h"

void check_delta(check *c);

enum { COLUMNS = MT_DELTA_COLUMNS };

static float *filled(check *c, size_t n, check_data kind)
{
    float *x = check_alloc(c, n * sizeof(*x), sizeof(*x));
    check_fill_f32(c, x, n, kind);
    return x;
}

static void conv_case(check *c, size_t taps, size_t n, check_data kind)
{
    const float *x[5], *w = filled(c, (taps - 1) * (n + 3) + n, kind);
    float *want = filled(c, n, kind), *got = filled(c, n, kind);
    for (size_t j = 0; j < taps; j++)
        x[j] = filled(c, n, kind);
    c->ref->conv(want, x, w, n + 3, taps, n);
    c->k->conv(got, x, w, n + 3, taps, n);
    check_f32(c, want, got, 1, n, n, "taps=%zu n=%zu data=%s", taps, n, check_data_name(kind));
    check_release(c);
}

static void check_conv(check *c)
{
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
        for (size_t taps = 2; taps <= 5; taps++)
            for (size_t n = 1; n <= 70; n++)
                conv_case(c, taps, n, kind);
}

/* Keys of length one and decays below one keep the state from growing without bound. */
static mt_delta delta_data(check *c, size_t tokens, size_t dk, size_t n, check_data kind, bool plain)
{
    const size_t stride = 2 * dk + n + 3;
    float *rows = filled(c, tokens * stride, kind),
          *gates = check_alloc(c, 2 * tokens * sizeof(*gates), sizeof(*gates));
    for (size_t i = 0; i < 2 * tokens; i++)
        gates[i] = (float)check_below(c, 1025) / 1024;
    for (size_t t = 0; t < tokens; t++)
        c->ref->scale(rows + t * stride + dk, 0.5f / (float)dk, rows + t * stride + dk, dk);
    return (mt_delta){.plain = plain,
                      .tokens = tokens,
                      .dk = dk,
                      .n = n,
                      .q = rows,
                      .k = rows + dk,
                      .v = rows + 2 * dk,
                      .stride = stride,
                      .decay = gates,
                      .beta = gates + 1,
                      .gate_stride = 2,
                      .o_stride = n + 1};
}

static mt_delta rest(const mt_delta *d, size_t begin)
{
    mt_delta r = *d;
    r.tokens = d->tokens - begin;
    r.q += begin * d->stride;
    r.k += begin * d->stride;
    r.v += begin * d->stride;
    r.decay += begin * d->gate_stride;
    r.beta += begin * d->gate_stride;
    r.o += begin * d->o_stride;
    return r;
}

static void delta_case(check *c, size_t tokens, size_t dk, size_t n, check_data kind, bool from_zeros, bool plain)
{
    const size_t size = dk * COLUMNS, out = tokens * (n + 1), cut = check_below(c, tokens + 1);
    mt_delta d = delta_data(c, tokens, dk, n, kind, plain);
    float *from = filled(c, size, kind), *want = filled(c, size, kind), *got = filled(c, size, kind);
    float *want_o = check_alloc(c, out * sizeof(*want_o), 4), *got_o = check_alloc(c, out * sizeof(*got_o), 4);
    for (size_t i = 0; i < dk; i++)
        memset(from + i * COLUMNS + n, 0, (COLUMNS - n) * sizeof(*from));
    d.o = want_o;
    c->ref->delta(want, from_zeros ? NULL : from, &d);
    d.o = got_o;
    mt_delta first = d, second = rest(&d, cut);
    first.tokens = cut;
    memcpy(got, from, size * sizeof(*got));
    if (from_zeros || cut > 0)
        c->k->delta(got, from_zeros ? NULL : got, &first);
    c->k->delta(got, got, &second);
    check_f32(c, want_o, got_o, tokens, n, n + 1, "tokens=%zu cut=%zu dk=%zu n=%zu data=%s plain=%d", tokens, cut, dk,
              n, check_data_name(kind), plain);
    check_f32(c, want, got, dk, COLUMNS, COLUMNS, "state tokens=%zu cut=%zu dk=%zu n=%zu data=%s", tokens, cut, dk, n,
              check_data_name(kind));
    check_release(c);
}

static void check_recurrence(check *c)
{
    static const size_t keys[] = {1, 3, 8, 24, 64, 128}, columns[] = {1, 8, 31, 32, 32}, tokens[] = {1, 2, 3, 9};
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
            for (size_t n = 0; n < sizeof(columns) / sizeof(*columns); n++)
                for (size_t t = 0; t < sizeof(tokens) / sizeof(*tokens); t++)
                    for (int plain = 0; plain < 2; plain++)
                        delta_case(c, tokens[t], keys[k], columns[n], kind, (n + t) % 3 == 0, plain);
}

void check_delta(check *c)
{
    if (check_begin(c, CHECK_NEW(c, conv), "conv")) {
        check_conv(c);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, delta), "delta")) {
        check_recurrence(c);
        check_end(c);
    }
}
