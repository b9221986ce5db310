/* Numbers within bounds, as a grammar of their decimal spelling. */
#ifndef MT_CONSTRAINT_JSON_NUMBER_H
#define MT_CONSTRAINT_JSON_NUMBER_H

#include "base/compiler.h"
#include "constraint/grammar.h"

#define MT_DECIMAL_DIGITS 40 /* most digits of a bound before the point, and behind it */
#define MT_NUMBER_BOUNDS 8

/* An exact decimal: digits before the point without leading zeros, behind it without trailing zeros. */
typedef struct mt_decimal {
    bool negative; /* never set for zero */
    uint8_t whole_count, fraction_count;
    char whole[MT_DECIMAL_DIGITS], fraction[MT_DECIMAL_DIGITS];
} mt_decimal;

/* Reads a JSON number. False where it has too many digits. */
bool mt_decimal_read(const char *text, mt_decimal *out) MT_NODISCARD;
int mt_decimal_compare(const mt_decimal *a, const mt_decimal *b);

/* at least, at most, not equal */
typedef enum mt_number_kind { MT_NUMBER_LEAST, MT_NUMBER_MOST, MT_NUMBER_NOT } mt_number_kind;

typedef struct mt_number_bound {
    mt_number_kind kind;
    bool exclusive; /* the bound itself is not allowed */
    mt_decimal value;
} mt_number_bound;

typedef struct mt_number {
    mt_number_bound bounds[MT_NUMBER_BOUNDS];
    size_t bound_count;
    bool fractions;   /* may have a fraction; else it is written without a point */
    bool broken;      /* must have a fraction other than zero */
    uint8_t digits;   /* most digits before the point */
    uint32_t divisor; /* the number times 10^scale is a multiple of it; 0: no condition */
    uint8_t scale;
} mt_number;

/* Numbers are written without exponents. False where it takes too many states. */
bool mt_number_expr(mt_grammar *g, const mt_number *number, mt_expr *out) MT_NODISCARD;

#endif
