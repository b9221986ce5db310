/* What kernels do here. Nearly all do nothing: what they would write stays as it is. But an answer whose numbers are
   not finite ends at once, so that kernel says that all are; and one without a token that is likelier than others has
   none, so there is one. What kernels index by must be within bounds, which zeros are. */
#include <string.h>

#include "device/cuda/params.h"
#include "fake.h"
#include "sample/chain.h"

/* y[i] = 1 */
static void all_finite(const mt_cuda_rows *p)
{
    for (uint32_t i = 0; i < p->m; i++) {
        const uint64_t at = p->y.data + i * p->y.stride * sizeof(float);
        if (!fake_memory_has(at, sizeof(float)))
            fake_broken("mtk_finite", "row %u lies outside of its tensor", i);
        fake_memory_written(at);
        *(float *)(uintptr_t)at = 1;
    }
}

/* Whether all that an order names is where the GPU can read it. */
static bool has_all(const mt_cuda_choose *p, const mt_cuda_order *o, uint32_t row)
{
    const size_t words = (p->vocab + 31) / 32, mask = words * sizeof(uint32_t), seen = sizeof(mt_cuda_seen);
    return fake_memory_has((uint64_t)p->out + row * sizeof(mt_best), sizeof(mt_best)) &&
           fake_memory_has((uint64_t)p->tops + row * sizeof(mt_tops), sizeof(mt_tops)) &&
           (!o->mask || fake_pinned_has((const uint8_t *)(uintptr_t)p->masks + (o->mask - 1) * mask, mask)) &&
           (!o->seen_count ||
            (fake_pinned_has((const uint8_t *)(uintptr_t)p->seen + o->seen_first * seen, o->seen_count * seen) &&
             fake_memory_has((uint64_t)p->penalised + o->seen_first * sizeof(float), o->seen_count * sizeof(float))));
}

/* A token that depends on what is drawn by, so that who reads another order gets another one. */
static void chosen_tokens(const mt_cuda_choose *p, uint32_t rows)
{
    const mt_cuda_order *order = (const mt_cuda_order *)(uintptr_t)p->orders;
    if (!fake_pinned_has(order, rows * sizeof(*order)))
        fake_broken("mtk_choose", "there are no orders for %u rows", rows);
    for (uint32_t i = 0; i < rows; i++) {
        const mt_cuda_order *o = &order[i];
        if (!o->wanted)
            continue;
        if (!has_all(p, o, i))
            fake_broken("mtk_choose", "the order of row %u has what the GPU does not", i);
        const uint64_t best = (uint64_t)p->out + i * sizeof(mt_best), tops = (uint64_t)p->tops + i * sizeof(mt_tops);
        fake_memory_written(best);
        fake_memory_written(tops);
        *(mt_best *)(uintptr_t)best =
            (mt_best){.id = 40 + (o->inverse > 0 ? (uint32_t)(o->random % 8) : i % 8), .logit = 1};
        *(mt_tops *)(uintptr_t)tops = (mt_tops){.logprob = -1, .count = o->logprobs > 0 ? (uint32_t)o->logprobs : 0};
    }
}

/* The best of each row is one token. */
static void best_token(const mt_cuda_choice *p, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        const uint64_t at = (uint64_t)p->out + (uint64_t)i * sizeof(mt_best);
        if (!fake_memory_has(at, sizeof(mt_best)))
            fake_broken("mtk_best", "row %u lies outside of what is chosen", i);
        fake_memory_written(at);
        *(mt_best *)(uintptr_t)at = (mt_best){.id = 40 + i % 8, .logit = 1};
    }
}

/* Tokens that the host does not know. */
static void follow(const mt_cuda_follow *p)
{
    const uint64_t tokens = (uint64_t)p->tokens, chosen = (uint64_t)p->chosen, from = (uint64_t)p->from;
    if (!fake_memory_has(tokens, p->m * sizeof(uint32_t)) || !fake_memory_has(from, p->m * sizeof(uint32_t)))
        fake_broken("mtk_follow", "the step has no room for %u tokens", p->m);
    for (uint32_t i = 0; i < p->m; i++) {
        const uint32_t row = ((const uint32_t *)(uintptr_t)from)[i];
        if (row == UINT32_MAX)
            continue;
        const uint64_t at = chosen + row * sizeof(mt_best);
        if (!fake_memory_has(at, sizeof(mt_best)))
            fake_broken("mtk_follow", "row %u follows what was not chosen", i);
        ((uint32_t *)(uintptr_t)tokens)[i] = ((const mt_best *)(uintptr_t)at)->id;
    }
    fake_memory_written(tokens);
}

void fake_effect(const fake_launch *launch)
{
    if (strcmp(launch->kernel, "mtk_best") == 0 && launch->size == sizeof(mt_cuda_choice)) {
        mt_cuda_choice p;
        memcpy(&p, launch->parameter, sizeof(p));
        best_token(&p, launch->grid[0]);
    }
    if (strcmp(launch->kernel, "mtk_follow") == 0 && launch->size == sizeof(mt_cuda_follow)) {
        mt_cuda_follow p;
        memcpy(&p, launch->parameter, sizeof(p));
        follow(&p);
    }
    if (strcmp(launch->kernel, "mtk_choose") == 0 && launch->size == sizeof(mt_cuda_choose)) {
        mt_cuda_choose p;
        memcpy(&p, launch->parameter, sizeof(p));
        chosen_tokens(&p, launch->grid[0]);
    }
    if (strcmp(launch->kernel, "mtk_finite") == 0 && launch->size == sizeof(mt_cuda_rows)) {
        mt_cuda_rows p;
        memcpy(&p, launch->parameter, sizeof(p));
        all_finite(&p);
    }
}
