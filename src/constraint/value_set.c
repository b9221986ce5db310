/* A hash set of JSON values (value_set.h). */
#include "constraint/value_set.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_tree.h"

struct mt_value_set {
    const json_t **slots; /* NULL: the slot is free */
    size_t mask;
    uint64_t seed; /* random, so that clients cannot choose values that collide */
};

/* Recurses as deep as the JSON nests. */
bool mt_value_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *item;

    if (mt_json_wide(a) && mt_json_wide(b))
        return strcmp(mt_json_wide(a), mt_json_wide(b)) == 0;
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (json_array_size(a) != json_array_size(b) || json_object_size(a) != json_object_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!mt_value_equal(json_array_get(a, i), json_array_get(b, i)))
            return false;
    json_object_foreach((json_t *)a, key, item)
        if (!json_object_get(b, key) || !mt_value_equal(item, json_object_get(b, key)))
            return false;
    return json_array_size(a) || json_object_size(a) || json_equal((json_t *)a, (json_t *)b);
}

/* Mixes all bits, as small numbers stored as doubles differ in few, high bits. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) + UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static uint64_t hash_text(uint64_t seed, const char *text, size_t len)
{
    uint64_t hash = mix(seed, len);

    for (size_t i = 0; i < len; i++)
        hash = mix(hash, (unsigned char)text[i]);
    return hash;
}

static uint64_t hash_number(uint64_t seed, double number)
{
    uint64_t bits;

    number += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &number, sizeof(bits));
    return mix(seed, bits);
}

/* Equal values have equal hashes. Recurses as deep as the JSON nests. */
static uint64_t hash_of(uint64_t seed, const json_t *value)
{
    uint64_t hash = mix(seed, (uint64_t)json_typeof(value) + 2);
    const char *key;
    json_t *item;

    switch (json_typeof(value)) {
    case JSON_INTEGER:
    case JSON_REAL:
        key = mt_json_wide(value);
        return key ? hash_text(seed, key, strlen(key)) : hash_number(seed, json_number_value(value));
    case JSON_STRING: return mix(hash, hash_text(seed, json_string_value(value), json_string_length(value)));
    case JSON_ARRAY:
        for (size_t i = 0; i < json_array_size(value); i++)
            hash = mix(hash, hash_of(seed, json_array_get(value, i)));
        return hash;
    case JSON_OBJECT: /* independent of the order */
        json_object_foreach((json_t *)value, key, item)
            hash += mix(hash_text(seed, key, strlen(key)), hash_of(seed, item));
        return hash;
    default: return hash;
    }
}

/* The slot of the value, or the free one where it would be. */
static const json_t **slot_of(const mt_value_set *s, const json_t *value)
{
    size_t at = (size_t)hash_of(s->seed, value) & s->mask;

    while (s->slots[at] && !mt_value_equal(s->slots[at], value))
        at = (at + 1) & s->mask;
    return &s->slots[at];
}

mt_value_set *mt_value_set_empty(size_t room)
{
    mt_value_set *s = mt_alloc(sizeof(*s));

    s->seed = mix(mt_clock_ns(), (uintptr_t)s);
    for (s->mask = 1; s->mask < 2 * room;)
        s->mask *= 2;
    s->slots = mt_alloc_array(s->mask--, sizeof(*s->slots));
    return s;
}

bool mt_value_set_add(mt_value_set *s, const json_t *value)
{
    const json_t **slot = slot_of(s, value);

    if (*slot)
        return false;
    *slot = value;
    return true;
}

mt_value_set *mt_value_set_new(const json_t *array)
{
    mt_value_set *s = mt_value_set_empty(json_array_size(array));

    for (size_t i = 0; i < json_array_size(array); i++)
        mt_value_set_add(s, json_array_get(array, i));
    return s;
}

void mt_value_set_free(mt_value_set *s)
{
    if (!s)
        return;
    mt_free(s->slots);
    mt_free(s);
}

bool mt_value_set_has(const mt_value_set *s, const json_t *value)
{
    return *slot_of(s, value) != NULL;
}
