/* What kernels do here. Nearly all do nothing: what they would write stays as it is. But an answer whose numbers are
   not finite ends at once, so that kernel says that all are; and one without a token that is likelier than others has
   none, so there is one. What kernels index by must be within bounds, which zeros are. */
#include <string.h>

#include "device/cuda/params.h"
#include "fake.h"

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

void fake_effect(const fake_launch *launch)
{
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
