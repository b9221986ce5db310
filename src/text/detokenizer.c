/* See detokenizer.h. The spelling of a token is appended to the output and changed there by the steps of decoder.h, so
   that no further memory is needed.
   Bytes wait in `pending` until they are a character or cannot become one. The number of U+FFFD for invalid bytes
   depends on the decoder: one for each longest beginning of a character (ByteLevel), or one for each byte
   (ByteFallback).
   One difference from the tokenizers library: there, a run of byte tokens with an invalid character anywhere becomes
   U+FFFD as a whole, which depends on later tokens. Here the valid characters in it stay. */
#include "text/detokenizer.h"

#include <string.h>

#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/chars.h"
#include "text/tokenizer_parts.h"

void mt_detokenizer_init(mt_detokenizer *d, const mt_tokenizer *tokenizer, bool skip_special)
{
    *d = (mt_detokenizer){.tokenizer = tokenizer, .skip_special = skip_special};
}

/* Inserts count copies of s at `at`. */
static void insert(mt_buf *out, size_t at, const char *s, size_t len, size_t count)
{
    size_t tail = out->len - at;

    for (size_t i = 0; i < count; i++)
        mt_buf_add(out, s, len);
    if (out->full || count == 0)
        return;
    memmove(out->data + at + count * len, out->data + at, tail);
    for (size_t i = 0; i < count; i++)
        memcpy(out->data + at + i * len, s, len);
}

static void shorten(mt_buf *out, size_t len)
{
    out->len = len;
    if (out->data)
        out->data[len] = '\0';
}

static size_t replacements(const mt_detokenizer *d, size_t bytes)
{
    return d->tokenizer->decoder.bytes == MT_TOK_BYTES_LEVEL ? 1 : bytes;
}

/* Adds one byte: appends the characters that are complete, or U+FFFD for bytes that cannot become one. */
static void add_byte(mt_detokenizer *d, char byte, mt_buf *out)
{
    d->pending[d->pending_len++] = byte;
    while (d->pending_len > 0) {
        size_t len = d->pending_len, whole = mt_utf8_length(d->pending, len), open;

        if (whole == len) {
            mt_buf_add(out, d->pending, len);
            d->pending_len = 0;
            return;
        }
        open = mt_tok_char_open(d->pending, len);
        if (open == len)
            return;
        open = open ? open : 1;
        insert(out, out->len, MT_TOK_REPLACEMENT, strlen(MT_TOK_REPLACEMENT), replacements(d, open));
        d->pending_len = (uint8_t)(len - open);
        memmove(d->pending, d->pending + open, d->pending_len);
    }
}

/* Inserts U+FFFD for the pending bytes at `at`. */
static void give_up(mt_detokenizer *d, mt_buf *out, size_t at)
{
    if (d->pending_len > 0)
        insert(out, at, MT_TOK_REPLACEMENT, strlen(MT_TOK_REPLACEMENT), replacements(d, d->pending_len));
    d->pending_len = 0;
}

/* Replaces the spelling out[begin..] by the bytes that it stands for; leaves it if one of its characters stands for
   none. */
static void spell_bytes(mt_buf *out, size_t begin)
{
    size_t written = begin;

    for (size_t at = begin; at < out->len; at += mt_utf8_size(out->data[at]))
        if (mt_tok_char_byte(mt_utf8_at(out->data + at)) < 0)
            return;
    for (size_t at = begin, size; at < out->len; at += size) {
        size = mt_utf8_size(out->data[at]);
        out->data[written++] = (char)mt_tok_char_byte(mt_utf8_at(out->data + at));
    }
    shorten(out, written);
}

static void decode_level(mt_detokenizer *d, mt_buf *out, size_t begin)
{
    size_t end, len;

    spell_bytes(out, begin);
    end = out->len;
    for (size_t at = begin; at < end && !out->full; at++)
        add_byte(d, out->data[at], out);
    if (out->full)
        return;
    len = out->len - end;
    memmove(out->data + begin, out->data + end, len);
    shorten(out, begin + len);
}

static void begin_element(mt_detokenizer *d)
{
    d->first = !d->element;
    d->element = true;
}

static void decode_fallback(mt_detokenizer *d, mt_buf *out, size_t begin)
{
    const mt_tok_decoder *decoder = &d->tokenizer->decoder;
    int byte = mt_tok_fallback_byte(out->data + begin, out->len - begin);

    if (byte >= 0) {
        if (!d->in_run)
            begin_element(d);
        d->in_run = true;
        shorten(out, begin);
        add_byte(d, (char)byte, out);
    } else {
        size_t end = out->len;

        give_up(d, out, begin);
        begin += out->len - end;
        d->in_run = false;
        begin_element(d);
    }
    mt_tok_steps_apply(decoder->element, decoder->element_count, d->first, out, begin);
}

/* The step Strip on the whole text. Strings that may be at the end are held back; they are all the same, so that their
   number is enough. */
static void strip_text(const mt_tok_step *s, mt_detokenizer *d, size_t which, mt_buf *out, size_t begin)
{
    size_t at = begin, last;
    uint32_t held = 0;

    while (!d->strips[which].begun && out->len > at) {
        bool same = out->len - at >= s->from_len && memcmp(out->data + at, s->from, s->from_len) == 0;

        d->strips[which].begun = !same || d->strips[which].taken == s->start;
        if (!d->strips[which].begun) {
            d->strips[which].taken++;
            at += s->from_len;
        }
    }
    memmove(out->data + begin, out->data + at, out->len - at);
    shorten(out, out->len - (at - begin));
    if (out->len == begin)
        return;
    insert(out, begin, s->from, s->from_len, d->strips[which].held);
    for (last = out->len; held < s->stop && last - begin >= s->from_len; held++, last -= s->from_len)
        if (memcmp(out->data + last - s->from_len, s->from, s->from_len) != 0)
            break;
    d->strips[which].held = held;
    shorten(out, last);
}

static void finish_text(mt_detokenizer *d, mt_buf *out, size_t begin)
{
    const mt_tok_decoder *decoder = &d->tokenizer->decoder;

    for (size_t i = 0; i < decoder->text_count && out->len > begin && !out->full; i++) {
        if (decoder->text[i].kind == MT_TOK_STEP_STRIP)
            strip_text(&decoder->text[i], d, i, out, begin);
        else
            mt_tok_steps_apply(&decoder->text[i], 1, true, out, begin);
    }
}

bool mt_detokenizer_add(mt_detokenizer *d, uint32_t id, mt_buf *out)
{
    const mt_tok_decoder *decoder = &d->tokenizer->decoder;
    const mt_tok_token *token = id < d->tokenizer->size ? &d->tokenizer->tokens[id] : NULL;
    size_t begin = out->len;

    if (!token || !token->text || (d->skip_special && token->special))
        return !out->full;
    if (decoder->spaced && d->begun)
        mt_buf_add(out, " ", 1);
    mt_buf_add(out, token->text, token->len);
    mt_tok_steps_apply(decoder->token, decoder->token_count, !d->begun, out, begin);
    d->begun = true;
    if (out->full)
        return false;
    if (decoder->bytes == MT_TOK_BYTES_LEVEL)
        decode_level(d, out, begin);
    else if (decoder->bytes == MT_TOK_BYTES_FALLBACK)
        decode_fallback(d, out, begin);
    finish_text(d, out, begin);
    return !out->full;
}

bool mt_detokenizer_finish(mt_detokenizer *d, mt_buf *out)
{
    size_t begin = out->len;

    give_up(d, out, begin);
    finish_text(d, out, begin);
    return !out->full;
}

bool mt_tokenizer_bytes(const mt_tokenizer *tokenizer, uint32_t id, mt_buf *out)
{
    const mt_tok_decoder *decoder = &tokenizer->decoder;
    size_t begin = out->len, len;
    const char *text = mt_tokenizer_token(tokenizer, id, &len);
    int byte;

    if (!text)
        return !out->full;
    if (decoder->spaced)
        mt_buf_add(out, " ", 1);
    mt_buf_add(out, text, len);
    mt_tok_steps_apply(decoder->token, decoder->token_count, false, out, begin);
    if (out->full)
        return false;
    byte = decoder->bytes == MT_TOK_BYTES_FALLBACK ? mt_tok_fallback_byte(out->data + begin, out->len - begin) : -1;
    if (byte >= 0) {
        shorten(out, begin);
        mt_buf_add(out, &(char){(char)byte}, 1);
    } else {
        if (decoder->bytes == MT_TOK_BYTES_LEVEL)
            spell_bytes(out, begin);
        mt_tok_steps_apply(decoder->element, decoder->element_count, false, out, begin);
        for (size_t i = 0; i < decoder->text_count; i++)
            if (decoder->text[i].kind != MT_TOK_STEP_STRIP)
                mt_tok_steps_apply(&decoder->text[i], 1, true, out, begin);
    }
    return !out->full;
}

bool mt_tokenizer_decode(const mt_tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special,
                         mt_buf *out)
{
    mt_detokenizer d;

    mt_detokenizer_init(&d, tokenizer, skip_special);
    for (size_t i = 0; i < count; i++)
        if (!mt_detokenizer_add(&d, ids[i], out))
            return false;
    return mt_detokenizer_finish(&d, out);
}
