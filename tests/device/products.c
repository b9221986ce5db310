/* Operations with weights. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"

static const size_t depths[] = {1, 7, 32, 40, 64, 96, 128, 160, 256, 384, 640};

static void matmul(run *r)
{
    const size_t k = pick(r, depths, MT_COUNT(depths)), count = 1 + below(r, 3);
    mt_tensor *x = unit_rows(r, 1, k), *y[3];
    const mt_weight *w[3];
    size_t n[3];
    char names[100] = "";
    for (size_t j = 0; j < count; j++) {
        float bias[200];
        n[j] = 1 + below(r, 150);
        const mt_mat mat = matrix(r, draw_format(r, k), n[j], k);
        float *kept = below(r, 2) ? check_alloc(r->memory, n[j] * sizeof *kept, 4) : NULL;
        fill(r, 5 + (unsigned)j, 0, bias, n[j]);
        if (kept)
            memcpy(kept, bias, n[j] * sizeof *kept);
        const bool exact = below(r, 5) == 0;
        w[j] = mt_weight_new(r->set, &mat, kept, exact);
        y[j] = mt_tensor_new(r->set, r->units, n[j]);
        snprintf(names + strlen(names), sizeof names - strlen(names), " [%s %zu%s%s]", check_matrix_name(&mat), n[j],
                 kept ? " bias" : "", exact ? " exact" : "");
    }
    say(r, "k %zu,%s", k, names);
    plan(r, MOST_UNITS);
    mt_op_matmul(r->dev, y, w, count, x, r->units);
    mt_reading *reading = mt_reading_new(r->set, 200 * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t j = 0; j < count; j++) {
            mt_read_rows(r->dev, reading, y[j], i, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), n[j]);
        }
}

/* The token of a unit is its number. */
static void embed(run *r)
{
    const size_t k = pick(r, depths, MT_COUNT(depths));
    const mt_mat mat = matrix(r, draw_format(r, k), MOST_UNITS, k);
    mt_tensor *x = mt_tensor_new(r->set, r->units, k);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, false);
    mt_batch batch;
    r->rule = BITS; /* a row of a matrix is what it is */
    begin_rows(r, &batch);
    mt_step_begin(r->dev, &batch);
    say(r, "%s, %zu columns", check_matrix_name(&mat), k);
    mt_op_embed(r->dev, x, w, below(r, 2) ? 1 : real(r, 0.1f, 40));
    give(r, x, 1, k);
}

static void add_rows(run *r)
{
    const size_t k = pick(r, depths, MT_COUNT(depths)), count = 1 + below(r, 4), rows = 20;
    const mt_mat mat = matrix(r, draw_format(r, k), rows, k);
    mt_tensor *x = unit_rows(r, 1, k), *factor = below(r, 2) ? unit_rows(r, 2, count) : NULL;
    uint32_t which[4 * MOST_UNITS];
    r->rule = BITS;
    for (size_t i = 0; i < r->units * count; i++)
        which[i] = (uint32_t)((r->unit[i / count] * 7 + i % count * 3) % rows);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, false);
    say(r, "%s, %zu rows of %zu columns%s", check_matrix_name(&mat), count, k, factor ? " with factors" : "");
    plan(r, MOST_UNITS);
    mt_op_add_rows(r->dev, x, w, mt_index_of(r->set, which, r->units * count), factor, count, r->units);
    give(r, x, 1, k);
}

/* Floats that live as long as the trial. */
static const float *vector(run *r, unsigned thing, size_t n)
{
    float *x = check_alloc(r->memory, n * sizeof *x, 4);
    fill(r, thing, 0, x, n);
    return x;
}

static void draw_routing(run *r, mt_experts_params *p)
{
    p->routing = (mt_routing){
        .kind = (mt_route)below(r, 3), .renormalise = below(r, 2), .scaling = below(r, 2) ? real(r, 0.5f, 3) : 0};
    if (below(r, 2)) { /* as many groups as leave enough experts */
        const uint32_t groups = (uint32_t)(1 + below(r, 4)), open = (uint32_t)(1 + below(r, groups));
        if (p->count % groups == 0 && open * (p->count / groups) >= p->top_k) {
            p->routing.groups = groups;
            p->routing.top_groups = open;
        }
    }
    p->correction = below(r, 3) == 0 ? vector(r, 6, p->count) : NULL;
    p->scale = below(r, 3) == 0 ? vector(r, 7, p->count) : NULL;
}

/* Some routers have equal numbers: the lower expert comes first (R9). */
static void moe(run *r)
{
    static const size_t hiddens[] = {32, 64, 128, 192}, inners[] = {32, 64, 96};
    const size_t hidden = pick(r, hiddens, MT_COUNT(hiddens)), inner = pick(r, inners, MT_COUNT(inners));
    const size_t experts = 2 + below(r, 15), top_k = 1 + below(r, experts < 8 ? experts : 8);
    mt_mat *mats = mt_alloc_array(3 * experts, sizeof *mats);
    const mt_format format = draw_format(r, 32);
    const uint64_t before = r->rng;
    for (size_t e = 0; e < 3 * experts; e++) { /* all of one format, bits and group */
        r->rng = before;
        mats[e] = matrix(r, format, e < 2 * experts ? inner : hidden, e < 2 * experts ? hidden : inner);
    }
    mt_tensor *x = unit_rows(r, 1, hidden), *y = mt_tensor_new(r->set, r->units, hidden);
    mt_tensor *router = mt_tensor_new(r->set, r->units, experts);
    for (size_t i = 0; i < r->units; i++) {
        float row[32];
        fill(r, 2, 1 + r->unit[i], row, experts);
        for (size_t e = 0; r->unit[i] % 3 == 0 && e < experts; e++)
            row[e] = (float)(int)row[e];
        mt_tensor_write(r->dev, router, i, row);
    }
    mt_experts_params params = {.count = experts,
                                .top_k = top_k,
                                .gate = mats,
                                .up = mats + experts,
                                .down = mats + 2 * experts,
                                .glu = draw_glu(r)};
    draw_routing(r, &params);
    if (below(r, 3) == 0) {
        params.gate_bias = vector(r, 3, experts * inner);
        params.up_bias = vector(r, 4, experts * inner);
        params.down_bias = vector(r, 5, experts * hidden);
    }
    const mt_experts *all = mt_experts_new(r->set, &params);
    say(r, "%s, %zu of %zu experts, %zu to %zu, activation %d, routing %d%s, %u of %u groups%s%s%s",
        check_matrix_name(&mats[0]), top_k, experts, hidden, inner, (int)params.glu.act, (int)params.routing.kind,
        params.routing.renormalise ? " renormalised" : "", params.routing.top_groups, params.routing.groups,
        params.gate_bias ? ", biases" : "", params.correction ? ", corrected" : "", params.scale ? ", scaled" : "");
    plan(r, MOST_UNITS);
    mt_op_moe(r->dev, y, x, router, r->units, all);
    give(r, y, 1, hidden);
    mt_free(mats);
}

const device_check product_checks[] = {{.name = "op_matmul", .fn = matmul},
                                       {.name = "op_embed", .fn = embed},
                                       {.name = "op_add_rows", .fn = add_rows},
                                       {.name = "op_moe", .fn = moe},
                                       {0}};
