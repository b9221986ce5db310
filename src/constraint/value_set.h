/* A hash set of JSON values: enums may have a million of them. */
#ifndef MT_CONSTRAINT_VALUE_SET_H
#define MT_CONSTRAINT_VALUE_SET_H

#include <jansson.h>
#include <stdbool.h>

typedef struct mt_value_set mt_value_set;

/* The values of an array, which is borrowed; none yet, with room for so many. Free with mt_value_set_free. */
mt_value_set *mt_value_set_new(const json_t *array);
mt_value_set *mt_value_set_empty(size_t room);
bool mt_value_set_add(mt_value_set *s, const json_t *value); /* borrows it; false: it was there already */
void mt_value_set_free(mt_value_set *s);                     /* NULL is fine */
bool mt_value_set_has(const mt_value_set *s, const json_t *value);

/* Equality of JSON values; numbers are compared by value, whether integer or real, also within arrays and objects:
   equal values have equal hashes, and only these do, so that sets stay quick. */
bool mt_value_equal(const json_t *a, const json_t *b);

#endif
