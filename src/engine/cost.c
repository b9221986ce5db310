/* Fits the cost model by least squares over the past steps; each step weighs KEEP times as much as the next one. Steps
   are also weighted by the inverse square of their duration, so that relative errors count and long steps do not
   outweigh short ones. */
#include "engine/cost.h"

#include <math.h>
#include <string.h>

#define KEEP 0.98            /* factor on the weight of all earlier steps when one is added */
#define GUESS_BANDWIDTH 20e9 /* first guess of the memory's speed, in bytes a second */
#define GUESS_RATE 200e9     /* first guess of the speed of products, in multiplications a second */
/* first guess for jobs: seconds of a multiplication; too long rather than too short, so that answers do not wait */
#define GUESS_WORK 20e-12
#define GUESS_WEIGHT 0.05        /* how strongly the terms are pulled to the first guess, see stay */
#define STAY_WEIGHT 1e-4         /* how strongly they are pulled to their present values */
#define DEPTH_UNIT 1024.0        /* positions that a unit of x[3] stands for */
#define JUMP (MT_COST_TERMS - 1) /* the term of a step beyond the knee */
#define LEAST 1e-8               /* seconds: the least value of a term */

static double blocks(size_t rows)
{
    return (double)((rows + MT_COST_BLOCK - 1) / MT_COST_BLOCK * MT_COST_BLOCK);
}

/* x[i] is what term i is multiplied by, in a step of `rows` rows. */
static void features(const mt_cost *c, double x[MT_COST_TERMS], size_t rows, double positions)
{
    const size_t few = rows < MT_COST_FEW ? rows : MT_COST_FEW;
    const size_t beyond = c->knee > 0 && rows > c->knee ? rows - c->knee : 0;
    x[0] = 1;
    x[1] = (double)few;
    x[2] = blocks(rows - few - beyond);
    x[3] = positions / DEPTH_UNIT;
    x[4] = blocks(beyond);
    x[JUMP] = beyond > 0;
}

/* Sets the terms: solves the normal equations by Gaussian elimination. */
static void solve(mt_cost *c)
{
    double a[MT_COST_TERMS][MT_COST_TERMS + 1];
    for (size_t i = 0; i < MT_COST_TERMS; i++) {
        memcpy(a[i], c->xx[i], sizeof(c->xx[i]));
        a[i][MT_COST_TERMS] = c->xy[i];
    }
    for (size_t i = 0; i < MT_COST_TERMS; i++) {
        if (fabs(a[i][i]) < 1e-300)
            return;
        for (size_t r = 0; r < MT_COST_TERMS; r++) {
            const double f = a[r][i] / a[i][i];
            for (size_t k = i; r != i && k <= MT_COST_TERMS; k++)
                a[r][k] -= f * a[i][k];
        }
    }
    for (size_t i = 0; i < MT_COST_TERMS; i++) {
        const double t = a[i][MT_COST_TERMS] / a[i][i];
        if (isfinite(t))
            c->term[i] = t > LEAST ? t : LEAST;
    }
}

/* Adds a measured step to the sums. */
static void take(mt_cost *c, const double x[MT_COST_TERMS], double y, double weight)
{
    for (size_t i = 0; i < MT_COST_TERMS; i++) {
        for (size_t k = 0; k < MT_COST_TERMS; k++)
            c->xx[i][k] += weight * x[i] * x[k];
        c->xy[i] += weight * x[i] * y;
    }
}

/* Pulls each term towards its present value: where all steps are alike, several solutions fit, and the terms would
   drift. */
static void stay(mt_cost *c, double strength)
{
    for (size_t i = 0; i < MT_COST_TERMS; i++) {
        const double weight = strength / (c->guess[i] * c->guess[i]);
        c->xx[i][i] += weight;
        c->xy[i] += weight * c->term[i];
    }
}

void mt_cost_init(mt_cost *c, double weight_bytes, double row_products, size_t knee)
{
    memset(c, 0, sizeof(*c));
    c->knee = knee;
    c->term[0] = 20e-6 + weight_bytes / GUESS_BANDWIDTH;
    c->term[1] = 1e-6 + row_products / GUESS_RATE;
    c->term[2] = c->term[1];
    c->term[3] = 0.2 * c->term[1];
    c->term[4] = c->term[1];
    c->term[JUMP] = c->term[0];
    memcpy(c->guess, c->term, sizeof(c->guess));
    stay(c, GUESS_WEIGHT);
}

double mt_cost_predict(const mt_cost *c, size_t rows, double positions)
{
    double x[MT_COST_TERMS], sum = 0;
    features(c, x, rows, positions);
    for (size_t i = 0; i < MT_COST_TERMS; i++)
        sum += c->term[i] * x[i];
    return sum;
}

double mt_cost_row(const mt_cost *c, size_t rows, size_t depth)
{
    double before[MT_COST_TERMS], after[MT_COST_TERMS], sum = 0;
    features(c, before, rows, 0);
    features(c, after, rows + MT_COST_BLOCK, (double)MT_COST_BLOCK * (double)depth);
    for (size_t i = 0; i < JUMP; i++)
        sum += c->term[i] * (after[i] - before[i]);
    return sum / MT_COST_BLOCK;
}

void mt_cost_learn(mt_cost *c, size_t rows, double positions, double seconds)
{
    double x[MT_COST_TERMS];
    features(c, x, rows, positions);
    if (!(seconds > 0))
        return;
    for (size_t i = 0; i < MT_COST_TERMS; i++) {
        for (size_t k = 0; k < MT_COST_TERMS; k++)
            c->xx[i][k] *= KEEP;
        c->xy[i] *= KEEP;
    }
    take(c, x, seconds, 1 / (seconds * seconds));
    stay(c, STAY_WEIGHT);
    solve(c);
}

void mt_rate_init(mt_rate *r)
{
    *r = (mt_rate){.seconds = GUESS_WORK};
}

void mt_rate_learn(mt_rate *r, double work, double seconds)
{
    if (!(seconds > 0) || !(work > 0))
        return;
    r->xx = r->xx * KEEP + work / seconds * work / seconds;
    r->xy = r->xy * KEEP + work / seconds;
    r->seconds = r->xy / r->xx;
}
