/* The pull reader on arbitrary bytes. Reading, skipping and jansson must agree on whether a document is well formed;
   only nesting differs, where jansson's limit is higher. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json_reader.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_utf8(const char *s, size_t len)
{
    size_t step;

    for (; len > 0; s += step, len -= step) {
        step = mt_utf8_length(s, len);
        if (step == 0)
            return false;
    }
    return true;
}

static bool read_whole(const char *data, size_t size)
{
    mt_json_reader r;
    mt_json_event event;

    mt_json_reader_init(&r, data, size);
    do {
        event = mt_json_next(&r);
        if (event == MT_JSON_STRING || event == MT_JSON_KEY)
            assert(is_utf8(r.str, r.len));
        if (event == MT_JSON_NUMBER && r.is_int)
            assert(r.num == (double)r.integer);
    } while (event != MT_JSON_END && event != MT_JSON_ERROR);
    assert(event == MT_JSON_END || strlen(r.error.text) > 0);
    mt_json_reader_free(&r);
    return event == MT_JSON_END;
}

static bool skip_whole(const char *data, size_t size)
{
    mt_json_reader r;
    bool ok;

    mt_json_reader_init(&r, data, size);
    ok = mt_json_skip(&r) && mt_json_next(&r) == MT_JSON_END;
    mt_json_reader_free(&r);
    return ok;
}

static bool too_deep(const char *data, size_t size)
{
    mt_json_reader r;
    bool deep;

    mt_json_reader_init(&r, data, size);
    while (mt_json_next(&r) != MT_JSON_ERROR)
        ;
    deep = strstr(r.error.text, "containers inside one another") != NULL;
    mt_json_reader_free(&r);
    return deep;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    bool ok = read_whole(text, size);
    json_t *tree;

    assert(skip_whole(text, size) == ok);
    if (size > 0 && memchr(data, 0, size)) /* jansson takes a NUL for the end */
        return 0;
    tree = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    assert(ok ? tree != NULL : tree == NULL || too_deep(text, size));
    json_decref(tree);
    return 0;
}
