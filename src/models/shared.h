/* A tensor whose columns ranks compute together: all of them, and those that are this one's. Where nothing is cut, both
   are the same tensor. */
#ifndef MT_MODELS_SHARED_H
#define MT_MODELS_SHARED_H

#include "device/device.h"

typedef struct mt_shared {
    mt_tensor *all, *own;
    size_t slices; /* as mt_op_share has it; 0: nothing is cut */
} mt_shared;

/* Of a tensor there is, or of a new one where `all` is NULL. */
mt_shared mt_shared_new(mt_set *set, mt_device *dev, mt_tensor *all, size_t rows, size_t cols, size_t slices);

/* Every rank gets all columns of m rows. */
static inline void mt_shared_unite(mt_device *dev, const mt_shared *t, size_t m)
{
    if (t->slices)
        mt_op_share(dev, t->all, t->slices, m, true);
}

/* y = w x, and every rank gets all of it */
static inline void mt_shared_product(mt_device *dev, const mt_shared *y, const mt_weight *w, const mt_tensor *x,
                                     size_t m)
{
    mt_op_matmul(dev, (mt_tensor *[]){y->own}, (const mt_weight *[]){w}, 1, x, m);
    mt_shared_unite(dev, y, m);
}

#endif
