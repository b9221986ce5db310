/* A tensor whose columns several ranks compute together: the tensor with all columns, and the part with this rank's.
   Where there is one rank, or each computes everything, both are the same tensor. */
#ifndef MT_MODELS_SHARED_H
#define MT_MODELS_SHARED_H

#include "device/device.h"

typedef struct mt_shared {
    mt_tensor *all, *own;
    size_t slices; /* as for mt_op_share; 0: every rank computes all columns */
} mt_shared;

/* Makes the pair for an existing tensor, or for a new one where `all` is NULL. */
mt_shared mt_shared_new(mt_set *set, mt_device *dev, mt_tensor *all, size_t rows, size_t cols, size_t slices);

/* Exchanges m rows, so that every rank has all columns. */
static inline void mt_shared_unite(mt_device *dev, const mt_shared *t, size_t m)
{
    if (t->slices)
        mt_op_share(dev, t->all, t->slices, m, true);
}

/* y = w * x for m rows; every rank gets all columns. */
static inline void mt_shared_product(mt_device *dev, const mt_shared *y, const mt_weight *w, const mt_tensor *x,
                                     size_t m)
{
    mt_op_matmul(dev, (mt_tensor *[]){y->own}, (const mt_weight *[]){w}, 1, x, m);
    mt_shared_unite(dev, y, m);
}

#endif
