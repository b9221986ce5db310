/* How one row is multiplied with its experts, by the kernels of codes_row1.cu. */
#include "device/cuda/cuda.h"

static bool fits(const mt_weight *w)
{
    return w->class == MT_CLASS_Q && w->d.group == 64 && w->d.k % MT_CUDA_STEP == 0 && w->d.pairs == MT_SCALE_BF16 &&
           (w->d.kind == MT_CUDA_CODES4 || w->d.kind == MT_CUDA_CODES8);
}

static size_t bits_of(const mt_cuda_weight *w)
{
    return w->kind == MT_CUDA_CODES8 ? 8 : 4;
}

/* Bytes of shared memory of both kernels. */
static size_t shared_up(const mt_experts *e)
{
    const mt_cuda_weight *w = &e->part[0]->d;
    return 2 * MT_CUDA_CHOSEN_TILES * MT_CUDA_CHOSEN_TILE(w->steps, bits_of(w)) + MT_CUDA_CHOSEN_ROW(w->steps) +
           2 * MT_CUDA_CHOSEN_POINTERS * sizeof(uint64_t) * e->count;
}

static size_t shared_down(const mt_experts *e)
{
    const mt_cuda_weight *w = &e->part[2]->d;
    return e->top_k * (MT_CUDA_CHOSEN_TILE(w->steps, bits_of(w)) + mt_cuda_up(MT_CUDA_CHOSEN_ROW(w->steps), 16));
}

bool mt_cuda_chosen_can(const mt_device *dev, const mt_experts *e)
{
    const mt_weight *gate = e->part[0], *up = e->part[1], *down = e->part[2];
    return dev->code >= 90 && dev->ways.row && fits(gate) && fits(up) && fits(down) && mt_cuda_same_rows(gate, up) &&
           gate->d.kind == up->d.kind && gate->d.n == up->d.n && gate->d.format == up->d.format &&
           gate->d.n == down->d.k;
}

static bool can(const mt_device *dev, const mt_experts *e)
{
    const size_t most = (size_t)dev->shared - 4096; /* the rest is what the kernels use besides */
    return mt_cuda_chosen_can(dev, e) && e->top_k <= MT_CUDA_CHOSEN_MOST && shared_up(e) <= most &&
           shared_down(e) <= most;
}

bool mt_cuda_row_experts(mt_device *dev, const mt_cuda_route *route, mt_cuda_mat x, const mt_experts *e)
{
    if (route->m != 1 || !can(dev, e))
        return false;
    mt_cuda_launch(dev, MT_K_route, 1, 1, 1, 32, MT_CUDA_ROUTE_ROOM(e->count) * sizeof(uint32_t), route);
    mt_cuda_pack_rows(dev, e->part[0], x, 0, 1);
    const mt_cuda_weight *gate = &e->part[0]->d, *down = &e->part[2]->d;
    const size_t places = e->top_k * down->steps;
    /* what is between both kernels lies where values of pairs lie otherwise, which take more */
    const mt_cuda_packed between = {.q = dev->gate.data,
                                    .turns = dev->gate.data + places * 128,
                                    .sums = dev->gate.data + places * (128 + 16),
                                    .rows = 1,
                                    .padded = down->k};
    mt_cuda_chosen p = {.experts = {e->device[0], e->device[1]},
                        .w = *gate,
                        .expert = route->expert,
                        .weight = route->weight,
                        .from = dev->packed,
                        .to = between,
                        .count = (uint32_t)e->count,
                        .top_k = (uint32_t)e->top_k,
                        .act = e->glu.act,
                        .wide = e->part[2]->mat.bits == 8,
                        .limit = e->glu.limit,
                        .offset = e->glu.offset};
    mt_cuda_launch(dev, bits_of(gate) == 8 ? MT_K_experts_up_w8_g64_row1 : MT_K_experts_up_w4_g64_row1,
                   gate->n / (MT_CUDA_CHOSEN_TILES * MT_CUDA_TILE), e->top_k, 1, 64 * MT_CUDA_CHOSEN_TILES,
                   shared_up(e), &p);
    p.experts[0] = e->device[2];
    p.w = *down;
    p.from = between;
    p.y = route->y;
    mt_cuda_launch(dev, bits_of(down) == 8 ? MT_K_experts_down_w8_g64_row1 : MT_K_experts_down_w4_g64_row1,
                   (down->n + MT_CUDA_TILE - 1) / MT_CUDA_TILE, 1, 1, 32 * e->top_k, shared_down(e), &p);
    return true;
}
