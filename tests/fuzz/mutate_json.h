/* A mutator for fuzzers whose input is JSON: most changes of bytes only break the JSON, so half of the time one value
   of the tree is replaced by a value of another size, sign or type, removed or doubled. */
#ifndef MT_FUZZ_MUTATE_JSON_H
#define MT_FUZZ_MUTATE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* What values are replaced by: JSON texts. */
typedef struct json_texts {
    const char *const *texts;
    size_t count;
} json_texts;

static inline json_t *mutate_pick(const json_texts *odd, unsigned seed)
{
    return json_loads(odd->texts[seed % odd->count], JSON_DECODE_ANY, NULL);
}

static inline void mutate_value(json_t *value, const json_texts *odd, unsigned seed);

static inline void mutate_array(json_t *array, size_t at, const json_texts *odd, unsigned seed)
{
    json_t *item = json_array_get(array, at);

    if ((json_is_object(item) || json_is_array(item)) && seed % 5)
        mutate_value(item, odd, seed / 3);
    else if (seed % 3 == 0)
        json_array_insert_new(array, at, json_deep_copy(item));
    else
        json_array_set_new(array, at, mutate_pick(odd, seed / 7));
}

static inline void mutate_object(json_t *object, size_t at, const json_texts *odd, unsigned seed)
{
    const char *key;
    json_t *item;

    json_object_foreach(object, key, item) {
        if (at-- > 0)
            continue;
        if ((json_is_object(item) || json_is_array(item)) && seed % 5)
            mutate_value(item, odd, seed / 3);
        else if (seed % 7 == 0)
            json_object_del(object, key);
        else
            json_object_set_new(object, key, mutate_pick(odd, seed / 11));
        return;
    }
}

static inline void mutate_value(json_t *value, const json_texts *odd, unsigned seed)
{
    if (json_array_size(value))
        mutate_array(value, seed % json_array_size(value), odd, seed);
    else if (json_is_array(value))
        json_array_append_new(value, mutate_pick(odd, seed));
    else if (json_object_size(value))
        mutate_object(value, seed % json_object_size(value), odd, seed);
}

/* What LLVMFuzzerCustomMutator returns. */
static inline size_t mutate_json(uint8_t *data, size_t size, size_t max_size, const json_texts *odd, unsigned seed)
{
    json_t *root = seed % 2 ? json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL) : NULL;
    size_t len = 0;

    if (json_is_object(root)) {
        mutate_value(root, odd, seed / 2);
        len = json_dumpb(root, (char *)data, max_size, JSON_COMPACT);
    }
    json_decref(root);
    return len > 0 && len <= max_size ? len : LLVMFuzzerMutate(data, size, max_size);
}

#endif
