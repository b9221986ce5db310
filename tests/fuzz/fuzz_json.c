/* The pull reader and the tree on arbitrary bytes. Reading and skipping must agree on whether a document is well
   formed, and what jansson reads must be the same tree, unless it nests too deep; numbers of any size, half of a
   surrogate pair and a byte order mark are beyond jansson. A tree that is written and read is the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json_reader.h"
#include "base/json_tree.h"
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

static void write_again(const json_t *tree)
{
    json_t *other;
    mt_buf first, second;

    mt_buf_init(&first, SIZE_MAX / 2);
    mt_buf_init(&second, SIZE_MAX / 2);
    assert(mt_json_tree_write(&first, tree));
    other = mt_json_tree_try(first.data, first.len);
    assert(other && mt_json_tree_write(&second, other));
    assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    json_decref(other);
    mt_buf_free(&first);
    mt_buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const bool ok = read_whole(text, size);
    json_t *ours = mt_json_tree_try(text, size), *theirs = NULL;

    assert(skip_whole(text, size) == ok);
    assert(!ours || ok); /* only a name with a NUL in it is read, but is no tree */
    if (ours)
        write_again(ours);
    if (size == 0 || !memchr(data, 0, size)) /* jansson takes a NUL for the end */
        theirs = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (theirs)
        assert(ours ? json_equal(ours, theirs) : !ok && too_deep(text, size));
    json_decref(theirs);
    json_decref(ours);
    return 0;
}
