/* See normalizer.h. */
#include "text/normalizer.h"

#include <string.h>

#include "base/utf8.h"
#include "text/chars.h"
#include "text/limits.h"

static mt_tok_stage *add_stage(mt_tok_normalizer *normalizer, mt_tok_change change, mt_error *err)
{
    if (normalizer->count == MT_LIMIT_TOKENIZER_STAGES) {
        mt_fail(err, MT_E_TOO_LARGE, "its normalizer has more than %d stages", MT_LIMIT_TOKENIZER_STAGES);
        return NULL;
    }
    normalizer->stages[normalizer->count] = (mt_tok_stage){.change = change};
    return &normalizer->stages[normalizer->count++];
}

static bool add_bert(mt_tok_normalizer *normalizer, const mt_tok_part *part)
{
    bool clean, apart, lower, accents;

    if (!mt_tok_part_bool(part, "clean_text", &clean) || !mt_tok_part_bool(part, "handle_chinese_chars", &apart) ||
        !mt_tok_part_bool(part, "lowercase", &lower) || !mt_tok_part_bool_or(part, "strip_accents", lower, &accents))
        return false;
    return (!clean || add_stage(normalizer, MT_TOK_CLEAN, part->err)) &&
           (!apart || add_stage(normalizer, MT_TOK_SET_APART, part->err)) &&
           (!accents || (add_stage(normalizer, MT_TOK_NFD, part->err) &&
                         add_stage(normalizer, MT_TOK_STRIP_OVERLAYS, part->err))) &&
           (!lower || add_stage(normalizer, MT_TOK_LOWERCASE, part->err));
}

static bool add_replace(mt_tok_normalizer *normalizer, const mt_tok_part *part)
{
    mt_tok_stage *s = add_stage(normalizer, MT_TOK_REPLACE, part->err);
    bool regex;

    if (!s || !mt_tok_part_pattern(part, &s->from, &s->from_len, &regex) ||
        !mt_tok_part_string(part, "content", &s->to, &s->to_len))
        return false;
    if (regex || s->from_len == 0)
        s->regex = mt_tok_regex_new(s->from, s->from_len, part->err);
    return s->regex || (!regex && s->from_len > 0);
}

static bool add_strip(mt_tok_normalizer *normalizer, const mt_tok_part *part)
{
    mt_tok_stage *s = add_stage(normalizer, MT_TOK_STRIP, part->err);

    return s && mt_tok_part_bool(part, "strip_left", &s->left) && mt_tok_part_bool(part, "strip_right", &s->right);
}

static bool add_prepend(mt_tok_normalizer *normalizer, const mt_tok_part *part)
{
    mt_tok_stage *s = add_stage(normalizer, MT_TOK_PREPEND, part->err);

    return s && mt_tok_part_string(part, "prepend", &s->to, &s->to_len);
}

static bool add_charsmap(mt_tok_normalizer *normalizer, const mt_tok_part *part)
{
    mt_tok_stage *s = add_stage(normalizer, MT_TOK_CHARSMAP, part->err);
    const char *base64;
    size_t len;

    if (!s || !mt_tok_part_string(part, "precompiled_charsmap", &base64, &len))
        return false;
    s->charsmap = mt_tok_charsmap_new(base64, len, part->err);
    return s->charsmap != NULL;
}

/* Adds a stage that has no settings. */
static bool add_plain(mt_tok_normalizer *normalizer, const mt_tok_part *part)
{
    static const struct {
        const char *type;
        mt_tok_change change;
    } rows[] = {
        {"NFC", MT_TOK_NFC},
        {"NFD", MT_TOK_NFD},
        {"NFKC", MT_TOK_NFKC},
        {"NFKD", MT_TOK_NFKD},
        {"Lowercase", MT_TOK_LOWERCASE},
        {"StripAccents", MT_TOK_STRIP_MARKS},
        {"Nmt", MT_TOK_NMT},
        {"ByteLevel", MT_TOK_BYTE_CHARS},
    };

    for (size_t i = 0; i < MT_COUNT(rows); i++)
        if (mt_tok_part_is(part, rows[i].type))
            return add_stage(normalizer, rows[i].change, part->err) != NULL;
    return mt_tok_part_unknown(part);
}

static bool add_part(void *to, const mt_tok_part *part)
{
    mt_tok_normalizer *normalizer = to;

    if (mt_tok_part_is(part, "BertNormalizer"))
        return add_bert(normalizer, part);
    if (mt_tok_part_is(part, "Replace"))
        return add_replace(normalizer, part);
    if (mt_tok_part_is(part, "Strip"))
        return add_strip(normalizer, part);
    if (mt_tok_part_is(part, "Prepend"))
        return add_prepend(normalizer, part);
    if (mt_tok_part_is(part, "Precompiled"))
        return add_charsmap(normalizer, part);
    return add_plain(normalizer, part);
}

bool mt_tok_normalizer_init(mt_tok_normalizer *normalizer, const mt_tok_node *node, mt_error *err)
{
    *normalizer = (mt_tok_normalizer){0};
    return !node || node->kind == MT_JSON_NULL ||
           mt_tok_parts_read(node, "normalizer", "normalizers", add_part, normalizer, err);
}

void mt_tok_normalizer_free(mt_tok_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        mt_tok_regex_free(normalizer->stages[i].regex);
        mt_tok_charsmap_free(normalizer->stages[i].charsmap);
    }
    normalizer->count = 0;
}

/* Replaces in[begin, end). The replacement is marked if any replaced byte was. */
static void replace(const mt_tok_stage *s, const mt_tok_view *in, size_t begin, size_t end, mt_tok_text *out)
{
    if (begin == 0 && end > 0 && (s->to_len == 0 || end > mt_utf8_size(in->data[0])))
        out->beheaded = true;
    mt_tok_text_put(out, s->to, s->to_len, mt_tok_mark_of(in, begin, end));
}

static bool change_string(const mt_tok_stage *s, const mt_tok_view *in, mt_tok_text *out)
{
    size_t done = 0;
    const char *found;

    while ((found = memmem(in->data + done, in->len - done, s->from, s->from_len))) {
        size_t begin = (size_t)(found - in->data);

        mt_tok_text_copy(out, in, done, begin);
        done = begin + s->from_len;
        replace(s, in, begin, done, out);
    }
    mt_tok_text_copy(out, in, done, in->len);
    return done > 0;
}

/* Replaces matches of the regular expression. False: *err. */
static bool change_matches(const mt_tok_stage *s, const mt_tok_view *in, mt_tok_text *out, mt_tok_matcher *matcher,
                           bool *changed, mt_error *err)
{
    mt_tok_finder finder = {.regex = s->regex, .matcher = matcher, .text = in->data, .len = in->len};
    size_t done = 0;
    mt_range found;

    *changed = false;
    while (mt_tok_finder_next(&finder, &found, err)) {
        mt_tok_text_copy(out, in, done, found.begin);
        replace(s, in, found.begin, found.end, out);
        done = found.end;
        *changed = true;
    }
    mt_tok_text_copy(out, in, done, in->len);
    return !finder.failed;
}

/* Removes white space at the ends: shrinks the view instead of a copy. */
static void strip(const mt_tok_stage *s, mt_tok_view *text)
{
    size_t begin = 0, end = text->len;

    while (s->left && begin < end && mt_tok_is_space(mt_utf8_at(text->data + begin)))
        begin += mt_utf8_size(text->data[begin]);
    while (s->right && end > begin) {
        size_t before = mt_utf8_before(text->data, end);

        if (!mt_tok_is_space(mt_utf8_at(text->data + before)))
            break;
        end = before;
    }
    text->data += begin;
    text->marks = text->marks ? text->marks + begin : NULL;
    text->len = end - begin;
    text->head = text->head && begin == 0;
}

/* Runs one stage. *changed: the result is in `out`, not in *text. False: *err. */
static bool change(const mt_tok_stage *s, mt_tok_view *text, mt_tok_text *out, mt_tok_matcher *matcher, bool *changed,
                   mt_error *err)
{
    switch (s->change) {
    case MT_TOK_STRIP: strip(s, text); break;
    case MT_TOK_NFC:
    case MT_TOK_NFD:
    case MT_TOK_NFKC:
    case MT_TOK_NFKD: *changed = mt_tok_change_form(s->change, text, out); break;
    case MT_TOK_REPLACE:
        if (s->regex)
            return change_matches(s, text, out, matcher, changed, err);
        *changed = change_string(s, text, out);
        break;
    case MT_TOK_PREPEND:
        *changed = text->len > 0;
        if (*changed) {
            mt_tok_text_put(out, s->to, s->to_len, mt_tok_mark(text, 0));
            mt_tok_text_copy(out, text, 0, text->len);
        }
        break;
    case MT_TOK_CHARSMAP: *changed = mt_tok_charsmap_apply(s->charsmap, text, out); break;
    default: *changed = mt_tok_change_chars(s, text, out); break;
    }
    return true;
}

bool mt_tok_normalize(const mt_tok_normalizer *normalizer, mt_tok_view *text, mt_tok_text spare[2],
                      mt_tok_matcher *matcher, mt_error *err)
{
    size_t next = 0;

    for (size_t i = 0; i < normalizer->count; i++) {
        mt_tok_text *out = &spare[next];
        bool changed = false;

        mt_tok_text_clear(out);
        if (!mt_tok_matcher_goes_on(matcher, err) || !change(&normalizer->stages[i], text, out, matcher, &changed, err))
            return false;
        if (out->full)
            return mt_fail(err, MT_E_TOO_LARGE,
                           "the tokenizer makes more than %zu bytes of the text when it is normalized; send it in "
                           "parts, or use another model",
                           out->limit);
        if (!changed)
            continue;
        *text = (mt_tok_view){out->data, out->marked ? out->marks : NULL, out->len, text->head && !out->beheaded};
        next = 1 - next;
    }
    return true;
}
