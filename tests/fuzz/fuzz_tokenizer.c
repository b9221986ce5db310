/* A tokenizer.json of arbitrary bytes and a text to use it on: the bytes before the first 0xFF, which no JSON has, and
   those behind it. Whatever loads must encode the text or say why not, give ids of its own, and decode them to the same
   text at once and one by one. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

enum { MOST_TEXT = 512, MOST_DECODED = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_utf8(const char *s, size_t len)
{
    for (size_t at = 0, step; at < len; at += step) {
        step = mt_utf8_length(s + at, len - at);
        assert(step > 0);
    }
}

static void decode(const mt_tokenizer *t, const mt_ids *ids, bool skip)
{
    mt_buf whole, parts;
    mt_detokenizer d;
    bool fits;

    mt_buf_init(&whole, MOST_DECODED);
    mt_buf_init(&parts, MOST_DECODED);
    fits = mt_tokenizer_decode(t, ids->data, ids->count, skip, &whole);
    mt_detokenizer_init(&d, t, skip);
    for (size_t i = 0; fits && i < ids->count; i++) {
        mt_detokenizer kept = d;
        size_t before = parts.len;

        assert(mt_detokenizer_add(&d, ids->data[ids->count - 1 - i], &parts)); /* a draft that is taken back */
        d = kept;
        parts.len = before;
        assert(mt_detokenizer_add(&d, ids->data[i], &parts));
        if (parts.len > before)
            check_utf8(parts.data + before, parts.len - before);
    }
    if (fits) {
        assert(mt_detokenizer_finish(&d, &parts));
        assert(parts.len == whole.len && (whole.len == 0 || memcmp(parts.data, whole.data, whole.len) == 0));
    }
    mt_buf_free(&whole);
    mt_buf_free(&parts);
}

/* As many tokens as there are may be there, and no fewer. */
static void encode_within(const mt_tokenizer *t, const char *text, size_t len, mt_encode_options options, size_t count)
{
    mt_ids ids = {0};
    mt_error err = {0};

    options.most = count;
    assert(count == 0 || (mt_tokenizer_encode(t, text, len, &options, &ids, &err) && ids.count == count));
    options.most = count - 1;
    assert(count < 2 || (!mt_tokenizer_encode(t, text, len, &options, &ids, &err) && err.code == MT_E_TOO_LONG));
    mt_ids_free(&ids);
}

static void encode(const mt_tokenizer *t, const char *text, size_t len, const mt_encode_options *options)
{
    mt_ids ids = {0}, again = {0};
    mt_error err = {0};

    if (!mt_tokenizer_encode(t, text, len, options, &ids, &err)) {
        assert(err.code != MT_OK && strlen(err.text) > 0 && ids.count == 0);
        mt_ids_free(&ids);
        return;
    }
    assert(mt_tokenizer_encode(t, text, len, options, &again, &err)); /* what was remembered changes nothing */
    assert(again.count == ids.count);
    assert(ids.count == 0 || memcmp(again.data, ids.data, ids.count * sizeof(*ids.data)) == 0);
    for (size_t i = 0; i < ids.count; i++) /* a post-processor may name what is not there */
        assert(ids.data[i] < mt_tokenizer_size(t) || options->add_special);
    encode_within(t, text, len, *options, ids.count);
    decode(t, &ids, false);
    decode(t, &ids, true);
    mt_ids_free(&ids);
    mt_ids_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *border = size ? memchr(data, 0xFF, size) : NULL;
    size_t json_len = border ? (size_t)(border - data) : size, len = border ? size - json_len - 1 : 0;
    mt_range plain = {len / 3, len - len / 3};
    mt_encode_options options = {.add_special = true};
    mt_error err = {0};
    mt_tokenizer *t = mt_tokenizer_parse((const char *)data, json_len, &err);

    if (!t) {
        assert(err.code != MT_OK && strlen(err.text) > 0);
        return 0;
    }
    len = len < MOST_TEXT ? len : MOST_TEXT;
    encode(t, border ? (const char *)border + 1 : "", len, &options);
    options = (mt_encode_options){.plain = &plain, .plain_count = 1};
    encode(t, border ? (const char *)border + 1 : "", len, &options);
    mt_tokenizer_free(t);
    return 0;
}
