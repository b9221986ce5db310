/* Turns a text into tokens (mt_tokenizer_encode). Added tokens that are matched in the original text are cut out first.
   The text between them is normalized, cut at the other added tokens, then cut into pieces by the pre-tokenizer; the
   model turns each piece into tokens.
   All memory of a call is freed before it returns. */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/chars.h"
#include "text/limits.h"
#include "text/tokenizer_parts.h"
#include "weights/limits.h"

/* One call of mt_tokenizer_encode. */
typedef struct encoder {
    const mt_tokenizer *t;
    mt_tok_matcher *matcher;
    mt_tok_text normal[2]; /* memory for mt_tok_normalize */
    mt_tok_cutting cutting;
    mt_tok_words_work words;
    mt_ids *out;
    size_t first; /* number of tokens in `out` before the call */
    size_t most;  /* most tokens that may be added */
    const char *text;
    size_t *places; /* mt_encode_options.places that have no token number yet */
    size_t place_count;
    mt_error *err;
} encoder;

/* Gives all places before `end` the number of the next token. */
static void settle_places(encoder *e, size_t end)
{
    for (; e->place_count > 0 && *e->places < end; e->place_count--)
        *e->places++ = e->out->count - e->first;
}

/* Gives the places in text[begin, end) token numbers. That text became the tokens from `token` on; their lengths
   decide. */
static void settle_places_within(encoder *e, size_t begin, size_t end, size_t token)
{
    size_t at = begin;
    mt_buf bytes;

    mt_buf_init(&bytes, MT_LIMIT_TOKEN_BYTES);
    for (; token < e->out->count && e->place_count > 0 && *e->places < end; token++) {
        bytes.len = 0;
        if (mt_tokenizer_bytes(e->t, e->out->data[token], &bytes))
            at += bytes.len;
        for (; e->place_count > 0 && *e->places < at && *e->places < end; e->place_count--)
            *e->places++ = token - e->first;
    }
    mt_buf_free(&bytes);
    settle_places(e, end);
}

/* Copies the text with U+FFFD for what is not UTF-8, and marks the bytes of the plain ranges. */
static void repair(const char *text, size_t len, const mt_encode_options *options, mt_tok_text *out)
{
    size_t range = 0;

    for (size_t at = 0; at < len;) {
        size_t size = mt_utf8_length(text + at, len - at), open = size ? 0 : mt_tok_char_open(text + at, len - at);
        size_t end = at + (size ? size : open ? open : 1);

        while (range < options->plain_count && options->plain[range].end <= at)
            range++;
        mt_tok_text_put(out, size ? text + at : MT_TOK_REPLACEMENT, size ? size : strlen(MT_TOK_REPLACEMENT),
                        range < options->plain_count && options->plain[range].begin < end);
        at = end;
    }
}

/* The marks for a text that is used as it is. */
static unsigned char *mark(size_t len, const mt_encode_options *options)
{
    unsigned char *marks = mt_alloc(len + 1);

    for (size_t i = 0; i < options->plain_count; i++) {
        size_t begin = options->plain[i].begin < len ? options->plain[i].begin : len;
        size_t end = options->plain[i].end < len ? options->plain[i].end : len;

        if (begin < end)
            memset(marks + begin, 1, end - begin);
    }
    return marks;
}

/* Whether `more` further tokens are allowed. False: *err. */
static bool fits(const encoder *e, size_t more)
{
    const size_t have = e->out->count - e->first;

    return (have <= e->most && more <= e->most - have) ||
           mt_fail(e->err, MT_E_TOO_LONG, "the text has more than %zu tokens; shorten it", e->most);
}

static bool encode_piece(void *ctx, const char *piece, size_t len)
{
    encoder *e = ctx;

    return fits(e, mt_tok_words_least(&e->t->words, len)) &&
           mt_tok_words_encode(&e->t->words, &e->words, piece, len, e->out, e->err) &&
           mt_tok_matcher_goes_on(e->matcher, e->err) && fits(e, 0);
}

/* Encodes normalized text without added tokens. */
static bool encode_pieces(encoder *e, mt_tok_view text)
{
    return mt_tok_pretokenize(&e->t->pre, &text, &e->cutting, e->matcher, encode_piece, e, e->err);
}

static mt_tok_view part_of(const mt_tok_view *text, size_t begin, size_t end)
{
    return (mt_tok_view){text->data + begin, text->marks ? text->marks + begin : NULL, end - begin,
                         text->head && begin == 0};
}

/* Finds the added tokens of a trie in a text, adds them, and calls `rest` for the text between them. */
static bool cut_out(encoder *e, const mt_tok_trie *trie, const mt_tok_view *text, bool (*rest)(encoder *, mt_tok_view))
{
    size_t at = 0, after = 0;
    mt_tok_match match;

    while (mt_tok_added_find(&e->t->added, trie, text, &at, after, e->words.stop, &match)) {
        if (after < match.begin && !rest(e, part_of(text, after, match.begin)))
            return false;
        if (trie == &e->t->added.raw)
            settle_places(e, match.end);
        mt_ids_add(e->out, match.token->id);
        if (!fits(e, 0) || !mt_tok_matcher_goes_on(e->matcher, e->err))
            return false;
        after = match.end;
    }
    if (!mt_tok_matcher_goes_on(e->matcher, e->err))
        return false;
    return after >= text->len || rest(e, part_of(text, after, text->len));
}

static bool encode_between(encoder *e, mt_tok_view text)
{
    const size_t begin = (size_t)(text.data - e->text), end = begin + text.len, token = e->out->count;

    settle_places(e, begin + 1);
    if (!mt_tok_normalize(&e->t->normalizer, &text, e->normal, e->matcher, e->err) ||
        !cut_out(e, &e->t->added.formed, &text, encode_pieces))
        return false;
    settle_places_within(e, begin, end, token);
    return true;
}

static bool encode_text(encoder *e, const char *text, size_t len, const mt_encode_options *options)
{
    mt_tok_view view = {.data = text, .len = len, .head = true};
    unsigned char *marks = NULL;
    mt_tok_text repaired;
    bool ok;

    mt_tok_text_init(&repaired, options->plain_count > 0, MT_LIMIT_TOKENIZER_TEXT);
    if (mt_tok_valid(text, len) < len) {
        repair(text, len, options, &repaired);
        view.data = repaired.data;
        view.len = repaired.len;
        view.marks = repaired.marks;
    } else if (options->plain_count > 0) {
        view.marks = marks = mark(len, options);
    }
    e->text = view.data;
    ok = cut_out(e, &e->t->added.raw, &view, encode_between);
    settle_places(e, SIZE_MAX);
    mt_tok_text_free(&repaired);
    mt_free(marks);
    return ok;
}

static void add_all(mt_ids *out, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mt_ids_add(out, ids[i]);
}

bool mt_tokenizer_encode(const mt_tokenizer *tokenizer, const char *text, size_t len, const mt_encode_options *options,
                         mt_ids *out, mt_error *err)
{
    static const mt_encode_options none = {0};
    encoder e = {.t = tokenizer, .out = out, .err = err};
    size_t count = out->count;
    bool ok, marked;

    if (len > MT_LIMIT_ENCODE_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "the text has %zu bytes; at most %u can be tokenized at once", len,
                       MT_LIMIT_ENCODE_BYTES);
    text = len > 0 ? text : "";
    options = options ? options : &none;
    marked = options->plain_count > 0 && tokenizer->added.has_formed_special;
    mt_tok_text_init(&e.normal[0], marked, mt_tok_text_limit(len));
    mt_tok_text_init(&e.normal[1], marked, mt_tok_text_limit(len));
    mt_tok_cutting_init(&e.cutting, mt_tok_text_limit(len));
    e.matcher = mt_tok_matcher_new(options->stop);
    e.words.stop = e.words.bpe.stop = e.words.unigram.stop = options->stop;
    e.first = count;
    e.most = options->most ? options->most : SIZE_MAX;
    e.places = options->places;
    e.place_count = options->place_count;
    if (options->add_special)
        add_all(out, tokenizer->post.before, tokenizer->post.before_count);
    ok = encode_text(&e, text, len, options);
    if (options->add_special)
        add_all(out, tokenizer->post.after, tokenizer->post.after_count);
    ok = ok && fits(&e, 0);
    mt_tok_matcher_free(e.matcher);
    mt_tok_text_free(&e.normal[0]);
    mt_tok_text_free(&e.normal[1]);
    mt_tok_cutting_free(&e.cutting);
    mt_tok_words_work_free(&e.words);
    if (!ok)
        out->count = count;
    return ok;
}
