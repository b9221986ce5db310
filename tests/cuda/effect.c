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

/* The best of each row is one token. */
static void one_token(const mt_cuda_short *p, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        const uint64_t at = (uint64_t)p->out + (uint64_t)i * MT_CUDA_SHORT_WORDS * sizeof(uint32_t);
        const float logit = 1;
        uint32_t *list = (uint32_t *)(uintptr_t)at;
        if (!fake_memory_has(at, MT_CUDA_SHORT_WORDS * sizeof(uint32_t)))
            fake_broken("mtk_shortlist", "row %u lies outside of its list", i);
        fake_memory_written(at);
        list[0] = 1;
        list[2] = 40 + i % 8;
        memcpy(&list[3], &logit, sizeof(logit));
    }
}

/* The same where the best of each row is all that is asked for. */
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
    if (strcmp(launch->kernel, "mtk_shortlist") == 0 && launch->size == sizeof(mt_cuda_short)) {
        mt_cuda_short p;
        memcpy(&p, launch->parameter, sizeof(p));
        one_token(&p, launch->grid[0]);
    }
    if (strcmp(launch->kernel, "mtk_finite") == 0 && launch->size == sizeof(mt_cuda_rows)) {
        mt_cuda_rows p;
        memcpy(&p, launch->parameter, sizeof(p));
        all_finite(&p);
    }
}
