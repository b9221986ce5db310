/* Numbers within bounds, as a grammar of how they are written. */
#ifndef MT_SAMPLE_CONSTRAINT_JSON_NUMBER_H
#define MT_SAMPLE_CONSTRAINT_JSON_NUMBER_H

#include "base/compiler.h"
#include "sample/constraint/grammar.h"

#define MT_DECIMAL_DIGITS 40 /* of a bound, before and behind the point */
#define MT_NUMBER_BOUNDS 8

/* A number as it is written out, exactly: digits before the point without leading, behind it without trailing zeros. */
typedef struct mt_decimal {
    bool negative; /* never of zero */
    uint8_t whole_count, fraction_count;
    char whole[MT_DECIMAL_DIGITS], fraction[MT_DECIMAL_DIGITS];
} mt_decimal;

/* Of a number in JSON. False when it has too many digits. */
bool mt_decimal_read(const char *text, mt_decimal *out) MT_NODISCARD;
int mt_decimal_compare(const mt_decimal *a, const mt_decimal *b);

typedef enum mt_number_kind { MT_NUMBER_LEAST, MT_NUMBER_MOST, MT_NUMBER_NOT } mt_number_kind;

typedef struct mt_number_bound {
    mt_number_kind kind;
    bool exclusive;
    mt_decimal value;
} mt_number_bound;

typedef struct mt_number {
    mt_number_bound bounds[MT_NUMBER_BOUNDS];
    size_t bound_count;
    bool fractions;   /* may have one; else a whole number without a point */
    bool broken;      /* must have one that is not zero */
    uint8_t digits;   /* before the point, at most */
    uint32_t divisor; /* 0: none. The number times 10^scale is a multiple of it */
    uint8_t scale;
} mt_number;

/* No exponents are written. False when that takes too many states. */
bool mt_number_expr(mt_grammar *g, const mt_number *number, mt_expr *out) MT_NODISCARD;

#endif
