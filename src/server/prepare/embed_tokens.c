/* Truncation keeps the special tokens that the tokenizer puts around a text, such as [CLS] and [SEP], which the model
   was trained with. Of a pair the longer one is cut first, as the tokenizers library does it ("longest_first"). */
#include "server/prepare/embed_tokens.h"

#include <string.h>

#include "base/compiler.h"
#include "server/limits.h"

/* Where the tokens of a text stand, without the special tokens around it. */
typedef struct content {
    size_t begin, count;
} content;

size_t mt_embed_context(const mt_ask *ask, const mt_target *target)
{
    return ask->context ? MT_MIN((size_t)ask->context, target->context) : target->context;
}

/* Most tokens that the whole may have. */
static size_t limit_of(const mt_embed_text *e)
{
    if (e->ask->truncate == MT_TRUNCATE_NONE)
        return SIZE_MAX;
    return e->ask->truncate == MT_TRUNCATE_FIT ? mt_embed_context(e->ask, e->target) : (size_t)e->ask->truncate;
}

/* Whether anything may be truncated. */
static bool cuts(const mt_embed_text *e)
{
    return e->most || e->ask->max_query || e->ask->truncate != MT_TRUNCATE_NONE;
}

/* special: with special tokens. Encoding stops early with an error where the text is far too long and must not be
   cut. */
static bool encode(const mt_embed_text *e, mt_chat_text text, bool special, mt_ids *ids, mt_failure *why)
{
    const mt_target *t = e->target;
    const char *field = e->ask->text_field;
    const mt_encode_options options = {
        .add_special = special, .stop = e->stop, .most = cuts(e) ? 0 : MT_LIMIT_COUNTED * t->context};
    mt_error err;

    if (!t->tokenizer)
        return mt_failure_set(why, 400, "no_tokenizer", field, "the model \"%s\" has no tokenizer: send token ids",
                              t->name);
    if (mt_tokenizer_encode(t->tokenizer, text.data, text.len, &options, ids, &err))
        return true;
    if (err.code == MT_E_TOO_LONG)
        return mt_failure_set(why, 400, "context_length_exceeded", field,
                              "this model's maximum context length is %zu tokens, and a text of \"%s\" has more "
                              "than %zu: shorten it",
                              t->context, field, options.most);
    return mt_failure_from(why, &err, NULL);
}

/* Finds the tokens of the text itself in ids, which were encoded with special tokens: encodes it without, and
   compares. */
static bool find_content(const mt_embed_text *e, mt_chat_text text, const mt_ids *ids, content *out, mt_failure *why)
{
    mt_ids plain = {0};
    const bool ok = encode(e, text, false, &plain, why);
    size_t around = plain.count < ids->count ? ids->count - plain.count : 0, begin = 0;

    while (begin < around && plain.count &&
           memcmp(ids->data + begin, plain.data, plain.count * sizeof(*plain.data)) != 0)
        begin++;
    *out = (content){.begin = begin, .count = ids->count - around};
    mt_ids_free(&plain);
    return ok;
}

/* Cuts a text to `count` tokens at the side the call names. */
static void truncate_to(const mt_embed_text *e, mt_ids *ids, content *c, size_t count)
{
    const size_t gone = c->count > count ? c->count - count : 0;
    const size_t from = e->ask->side == MT_TRUNCATE_LEFT ? c->begin : c->begin + c->count - gone;

    if (gone == 0)
        return;
    memmove(ids->data + from, ids->data + from + gone, (ids->count - from - gone) * sizeof(*ids->data));
    ids->count -= gone;
    c->count -= gone;
}

/* a - b, or 0 where b is greater. */
static size_t minus(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

bool mt_embed_tokens(const mt_embed_text *e, mt_ids *ids, mt_failure *why)
{
    const mt_ask_prompt *from = e->prompt;
    const size_t limit = limit_of(e), most = e->most ? e->most : SIZE_MAX;
    content c = {0};

    if (!from->text.data) {
        for (size_t i = 0; i < from->count; i++)
            mt_ids_add(ids, from->ids[i]);
        c.count = ids->count;
        truncate_to(e, ids, &c, MT_MIN(limit, most));
        return true;
    }
    if (!encode(e, from->text, e->ask->add_special_tokens, ids, why))
        return false;
    if (ids->count <= MT_MIN(limit, most))
        return true;
    if (!find_content(e, from->text, ids, &c, why))
        return false;
    if (c.count > 0 && limit <= ids->count - c.count)
        return mt_failure_set(why, 400, "context_length_exceeded", e->ask->text_field,
                              "a context of %zu tokens has no room for a text of \"%s\" beside the model's %zu special "
                              "tokens: allow more",
                              limit, e->ask->text_field, ids->count - c.count);
    truncate_to(e, ids, &c, MT_MIN(minus(limit, ids->count - c.count), most));
    return true;
}

/* Lowers the lengths of two texts until both together have at most `room`: the longer one first, then both alike. */
static void share(size_t room, size_t *a, size_t *b)
{
    size_t *small = *a <= *b ? a : b, *large = *a <= *b ? b : a;

    if (*a + *b <= room)
        return;
    *large = *small > room ? *small : minus(room, *small) > *small ? room - *small : *small;
    if (*a + *b > room) {
        *small = room / 2;
        *large = room - *small;
    }
}

static void cut_pair(const mt_embed_text *e, mt_ids *ids, content *query, content *text, size_t *second)
{
    const size_t before = query->count, max_query = (size_t)e->ask->max_query;
    size_t kept[2] = {max_query ? MT_MIN(query->count, max_query) : query->count,
                      e->most ? MT_MIN(text->count, e->most) : text->count};

    share(minus(limit_of(e), ids->count - query->count - text->count), &kept[0], &kept[1]);
    truncate_to(e, ids, text, kept[1]); /* first the text, which stands behind: cutting it does not move the query */
    truncate_to(e, ids, query, kept[0]);
    *second -= before - query->count;
}

bool mt_embed_pair(const mt_embed_text *e, mt_ids *ids, size_t *second, mt_failure *why)
{
    const mt_chat_text query = e->prompt->query;
    content first = {0}, behind;
    uint32_t end;

    if (!encode(e, query, true, ids, why))
        return false;
    if (ids->count == 0)
        return mt_failure_set(why, 400, "invalid_value", "query", "the query has no tokens: send some text");
    if (cuts(e) && !find_content(e, query, ids, &first, why))
        return false;
    end = ids->data[ids->count - 1];
    if (e->target->twice)
        mt_ids_add(ids, end);
    *second = ids->count;
    if (!encode(e, e->prompt->text, false, ids, why))
        return false;
    behind = (content){.begin = *second, .count = ids->count - *second};
    mt_ids_add(ids, end);
    if (cuts(e))
        cut_pair(e, ids, &first, &behind, second);
    return true;
}
