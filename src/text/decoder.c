/* See decoder.h. */
#include "text/decoder.h"

#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "text/limits.h"
#include "text/pretokenizer.h"

static mt_tok_step *add_step(mt_tok_decoder *d, mt_tok_step_kind kind, const mt_tok_part *part)
{
    size_t *count = &d->token_count;
    mt_tok_step *steps = d->token;

    if (d->joined) {
        count = &d->text_count;
        steps = d->text;
    } else if (d->bytes == MT_TOK_BYTES_FALLBACK) {
        count = &d->element_count;
        steps = d->element;
    }
    if (*count == MT_LIMIT_DECODER_STEPS) {
        mt_fail(part->err, MT_E_TOO_LARGE, "its decoder has more than %d steps", MT_LIMIT_DECODER_STEPS);
        return NULL;
    }
    steps[*count] = (mt_tok_step){.kind = kind};
    return &steps[(*count)++];
}

static bool fail_order(const mt_tok_part *part)
{
    return mt_fail(part->err, MT_E_UNSUPPORTED,
                   "its decoder \"%.80s\" stands where tokens cannot be decoded one by one; see docs/tokenizers.md",
                   part->type);
}

/* Whether s is a single character. Text is only cut between characters, so a step that looks for one can work on each
   part alone. */
static bool one_char(const char *s, size_t len)
{
    return len > 0 && len == mt_utf8_size(s[0]);
}

static bool add_replace(mt_tok_decoder *d, const mt_tok_part *part)
{
    bool regex, late = d->joined || d->bytes == MT_TOK_BYTES_FALLBACK;
    mt_tok_step *s = add_step(d, MT_TOK_STEP_REPLACE, part);

    if (!s || !mt_tok_part_pattern(part, &s->from, &s->from_len, &regex) ||
        !mt_tok_part_string(part, "content", &s->to, &s->to_len))
        return false;
    return (!regex && s->from_len > 0 && (!late || one_char(s->from, s->from_len))) || fail_order(part);
}

static bool add_strip(mt_tok_decoder *d, const mt_tok_part *part)
{
    mt_tok_step *s;
    uint32_t c;

    if (!d->joined && d->bytes == MT_TOK_BYTES_FALLBACK)
        return fail_order(part);
    s = add_step(d, MT_TOK_STEP_STRIP, part);
    if (!s || !mt_tok_part_char(part, "content", &c) || !mt_tok_part_string(part, "content", &s->from, &s->from_len) ||
        !mt_tok_part_count(part, "start", &s->start) || !mt_tok_part_count(part, "stop", &s->stop))
        return false;
    /* What may have to be stripped is held back, and looked at again with each token */
    return (s->start <= MT_LIMIT_TOKEN_AFFIX && s->stop <= MT_LIMIT_TOKEN_AFFIX) ||
           mt_fail(part->err, MT_E_TOO_LARGE, "its decoder \"Strip\" strips more than %d characters; use another file",
                   MT_LIMIT_TOKEN_AFFIX);
}

static bool add_metaspace(mt_tok_decoder *d, const mt_tok_part *part)
{
    mt_tok_step *s = add_step(d, MT_TOK_STEP_METASPACE, part);
    mt_tok_scheme scheme;
    bool split;

    if (!s || !mt_tok_metaspace_read(part, &s->from, &s->from_len, &scheme, &split))
        return false;
    s->drop = scheme != MT_TOK_NEVER;
    return true;
}

static bool add_wordpiece(mt_tok_decoder *d, const mt_tok_part *part)
{
    mt_tok_step *s;

    if (d->joined || d->bytes != MT_TOK_BYTES_NONE)
        return fail_order(part);
    s = add_step(d, MT_TOK_STEP_WORDPIECE, part);
    return s && mt_tok_part_string(part, "prefix", &s->from, &s->from_len) &&
           mt_tok_part_bool(part, "cleanup", &s->cleanup);
}

static bool set_bytes(mt_tok_decoder *d, mt_tok_bytes bytes, const mt_tok_part *part)
{
    if (d->joined || d->bytes != MT_TOK_BYTES_NONE)
        return fail_order(part);
    d->bytes = bytes;
    d->joined = bytes == MT_TOK_BYTES_LEVEL;
    return true;
}

static bool add_part(void *to, const mt_tok_part *part)
{
    mt_tok_decoder *d = to;

    if (mt_tok_part_is(part, "ByteLevel"))
        return set_bytes(d, MT_TOK_BYTES_LEVEL, part);
    if (mt_tok_part_is(part, "ByteFallback"))
        return set_bytes(d, MT_TOK_BYTES_FALLBACK, part);
    if (mt_tok_part_is(part, "Replace"))
        return add_replace(d, part);
    if (mt_tok_part_is(part, "Strip"))
        return add_strip(d, part);
    if (mt_tok_part_is(part, "Metaspace"))
        return add_metaspace(d, part);
    if (mt_tok_part_is(part, "WordPiece"))
        return add_wordpiece(d, part);
    if (mt_tok_part_is(part, "Fuse")) {
        d->joined = true;
        return true;
    }
    return mt_tok_part_unknown(part);
}

/* How many times as long as they were texts may be after these steps; growth: the same before them. */
static size_t growth_of(const mt_tok_step *steps, size_t count, size_t growth)
{
    for (size_t i = 0; i < count && growth <= MT_LIMIT_TOKENIZER_GROWTH; i++)
        if (steps[i].kind == MT_TOK_STEP_REPLACE && steps[i].to_len > steps[i].from_len)
            growth *= (steps[i].to_len + steps[i].from_len - 1) / steps[i].from_len;
    return growth;
}

/* A decoder that makes a megabyte of each token would fill memory, and the time of all requests. */
static bool check_growth(const mt_tok_decoder *d, mt_error *err)
{
    size_t growth = growth_of(d->token, d->token_count, 1);

    growth = growth_of(d->text, d->text_count, growth_of(d->element, d->element_count, growth));
    return growth <= MT_LIMIT_TOKENIZER_GROWTH ||
           mt_fail(
               err, MT_E_TOO_LARGE,
               "its decoder makes texts more than %d times as long, which no real tokenizer does; download the file "
               "again",
               MT_LIMIT_TOKENIZER_GROWTH);
}

bool mt_tok_decoder_init(mt_tok_decoder *decoder, const mt_tok_node *node, mt_error *err)
{
    *decoder = (mt_tok_decoder){0};
    if (!node || node->kind == MT_JSON_NULL) {
        decoder->spaced = true;
        return true;
    }
    return mt_tok_parts_read(node, "decoder", "decoders", add_part, decoder, err) && check_growth(decoder, err);
}

int mt_tok_fallback_byte(const char *s, size_t len)
{
    int byte = 0;

    if (len != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>')
        return -1;
    for (size_t i = 3; i < 5; i++) {
        const int digit = mt_hex_digit(s[i]);

        if (digit < 0)
            return -1;
        byte = byte * 16 + digit;
    }
    return byte;
}

/* Replaces in out[begin..]. Where the text becomes longer, it is first moved to the end of the room that it needs, so
   that writing from the left does not overtake reading. */
static void replace(mt_buf *out, size_t begin, const char *from, size_t from_len, const char *to, size_t to_len)
{
    size_t end = out->len, read = begin, grown = 0;
    const char *found;

    while (end - read >= from_len && (found = memmem(out->data + read, end - read, from, from_len))) {
        read = (size_t)(found - out->data) + from_len;
        grown += to_len > from_len ? to_len - from_len : 0;
    }
    if (read == begin)
        return;
    for (size_t added = 0; added < grown; added += to_len - from_len)
        if (!mt_buf_add(out, to, to_len - from_len))
            return;
    memmove(out->data + begin + grown, out->data + begin, end - begin);
    read = begin + grown;
    end += grown;
    while ((found = memmem(out->data + read, end - read, from, from_len))) {
        size_t kept = (size_t)(found - out->data) - read;

        memmove(out->data + begin, out->data + read, kept);
        memcpy(out->data + begin + kept, to, to_len);
        begin += kept + to_len;
        read += kept + from_len;
    }
    memmove(out->data + begin, out->data + read, end - read);
    out->len = begin + end - read;
    out->data[out->len] = '\0';
}

static void strip(const mt_tok_step *s, mt_buf *out, size_t begin)
{
    size_t end = out->len, first = begin, last = end;

    for (size_t i = 0; i < s->start && end - first >= s->from_len; i++, first += s->from_len)
        if (memcmp(out->data + first, s->from, s->from_len) != 0)
            break;
    for (size_t i = 0; i < s->stop && last - first >= s->from_len; i++, last -= s->from_len)
        if (memcmp(out->data + last - s->from_len, s->from, s->from_len) != 0)
            break;
    memmove(out->data + begin, out->data + first, last - first);
    out->len = begin + last - first;
    out->data[out->len] = '\0';
}

static void clean_up(mt_buf *out, size_t begin)
{
    static const char *const rows[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };

    for (size_t i = 0; i < MT_COUNT(rows); i++)
        replace(out, begin, rows[i][0], strlen(rows[i][0]), rows[i][1], strlen(rows[i][1]));
}

static void wordpiece(const mt_tok_step *s, bool first, mt_buf *out, size_t begin)
{
    size_t len = out->len - begin;

    if (!first && len >= s->from_len && memcmp(out->data + begin, s->from, s->from_len) == 0) {
        memmove(out->data + begin, out->data + begin + s->from_len, len - s->from_len);
        out->len -= s->from_len;
        out->data[out->len] = '\0';
    } else if (!first && mt_buf_add(out, " ", 1)) {
        memmove(out->data + begin + 1, out->data + begin, len);
        out->data[begin] = ' ';
    }
    if (s->cleanup)
        clean_up(out, begin);
}

void mt_tok_steps_apply(const mt_tok_step *steps, size_t count, bool first, mt_buf *out, size_t begin)
{
    for (size_t i = 0; i < count && !out->full; i++) {
        const mt_tok_step *s = &steps[i];

        switch (s->kind) {
        case MT_TOK_STEP_REPLACE: replace(out, begin, s->from, s->from_len, s->to, s->to_len); break;
        case MT_TOK_STEP_STRIP: strip(s, out, begin); break;
        case MT_TOK_STEP_METASPACE: replace(out, begin, s->from, s->from_len, " ", s->drop && first ? 0 : 1); break;
        case MT_TOK_STEP_WORDPIECE: wordpiece(s, first, out, begin); break;
        }
    }
}
