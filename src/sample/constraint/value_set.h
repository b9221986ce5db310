/* A hash set of JSON values: enums may have a million of them. */
#ifndef MT_SAMPLE_CONSTRAINT_VALUE_SET_H
#define MT_SAMPLE_CONSTRAINT_VALUE_SET_H

#include <jansson.h>
#include <stdbool.h>

typedef struct mt_value_set mt_value_set;

/* Borrows the array. Free with mt_value_set_free. */
mt_value_set *mt_value_set_new(const json_t *array);
void mt_value_set_free(mt_value_set *s); /* NULL is fine */
bool mt_value_set_has(const mt_value_set *s, const json_t *value);

/* Equality of JSON values; numbers are compared by value, whether integer or real. */
bool mt_value_equal(const json_t *a, const json_t *b);

#endif
