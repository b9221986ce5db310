/* What a step will take, learned from the steps before it. Predictions decide how much goes into a step, never what
   comes out of it. */
#ifndef MT_ENGINE_COST_H
#define MT_ENGINE_COST_H

#include <stddef.h>

#define MT_COST_TERMS 3

/* Seconds: of any step; of a row; of a row and 1024 positions before it. The encoder's work is measured by itself. */
typedef struct mt_cost {
    double term[MT_COST_TERMS];
    double encode; /* seconds of a unit of the encoder's work */
    /* private: the first guess, and what was measured, older steps counting less */
    double guess[MT_COST_TERMS];
    double xx[MT_COST_TERMS][MT_COST_TERMS], xy[MT_COST_TERMS];
    double encode_xx, encode_xy;
} mt_cost;

/* A first guess from the bytes of weights that a step reads and the products of a row. */
void mt_cost_init(mt_cost *cost, double weight_bytes, double row_products);

/* positions: the sum over all rows of the positions before each. */
double mt_cost_predict(const mt_cost *cost, size_t rows, double positions);

void mt_cost_learn(mt_cost *cost, size_t rows, double positions, double seconds);
void mt_cost_learn_encode(mt_cost *cost, double work, double seconds);

#endif
