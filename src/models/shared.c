/* Tensors whose columns ranks compute together (shared.h). */
#include "models/shared.h"
#include "ranks/ranks.h"

/* Also reserves the exchange buffer for all rows of this tensor. */
mt_shared mt_shared_new(mt_set *set, mt_device *dev, mt_tensor *all, size_t rows, size_t cols, size_t slices)
{
    mt_ranks *ranks = mt_device_ranks(dev);
    mt_shared t = {.all = all ? all : mt_tensor_new(set, rows, cols), .slices = slices};
    t.own = t.all;
    if (slices) {
        const size_t each = cols / slices, own = mt_ranks_own(ranks), count = mt_ranks_count(ranks);
        const size_t first = mt_ranks_first(slices, own, count), end = mt_ranks_first(slices, own + 1, count);
        t.own = mt_tensor_part(set, t.all, 0, rows, first * each, (end - first) * each);
        mt_ranks_reserve(ranks, rows * cols);
    }
    return t;
}
