/* See pretokenizer.h. */
#include "text/pretokenizer.h"

#include <stdio.h>
#include <string.h>

#include "text/bytelevel.h"
#include "text/chars.h"
#include "text/limits.h"

#define WHITESPACE_PATTERN "[\\w\\x{200c}\\x{200d}]+|[^\\w\\s\\x{200c}\\x{200d}]+"

enum { MOST_FIXED = 65535 }; /* the largest repeat count of PCRE2 */

static const char *const behaviors[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous", NULL};

static mt_tok_cutter *add_cutter(mt_tok_pretokenizer *pre, mt_tok_cut cut, mt_error *err)
{
    if (pre->count == MT_LIMIT_TOKENIZER_STAGES) {
        mt_fail(err, MT_E_TOO_LARGE, "its pre_tokenizer has more than %d stages", MT_LIMIT_TOKENIZER_STAGES);
        return NULL;
    }
    pre->cutters[pre->count] = (mt_tok_cutter){.cut = cut};
    return &pre->cutters[pre->count++];
}

static bool add_pattern(mt_tok_pretokenizer *pre, const char *pattern, mt_tok_behavior behavior, bool invert,
                        mt_error *err)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_SPLIT, err);

    if (!c)
        return false;
    c->behavior = behavior;
    c->invert = invert;
    c->regex = mt_tok_regex_new(pattern, strlen(pattern), err);
    return c->regex != NULL;
}

static bool add_class(mt_tok_pretokenizer *pre, bool (*matches)(uint32_t c), mt_tok_behavior behavior, mt_error *err)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_SPLIT, err);

    if (!c)
        return false;
    c->matches = matches;
    c->behavior = behavior;
    return true;
}

static bool read_behavior(const mt_tok_part *part, mt_tok_behavior *behavior)
{
    int choice;

    if (!mt_tok_part_choice(part, "behavior", behaviors, &choice))
        return false;
    *behavior = (mt_tok_behavior)choice;
    return true;
}

static bool add_split(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_SPLIT, part->err);
    bool regex;

    if (!c || !mt_tok_part_pattern(part, &c->string, &c->string_len, &regex) || !read_behavior(part, &c->behavior) ||
        !mt_tok_part_bool(part, "invert", &c->invert))
        return false;
    if (regex || c->string_len == 0)
        c->regex = mt_tok_regex_new(c->string, c->string_len, part->err);
    return c->regex || (!regex && c->string_len > 0);
}

static bool add_byte_level(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    bool prefix, regex;

    if (!mt_tok_part_bool(part, "add_prefix_space", &prefix) || !mt_tok_part_bool_or(part, "use_regex", true, &regex))
        return false;
    if (prefix && !add_cutter(pre, MT_TOK_PREFIX_SPACE, part->err))
        return false;
    if (regex && !add_pattern(pre, MT_TOK_GPT2_PATTERN, MT_TOK_ISOLATED, false, part->err))
        return false;
    return add_cutter(pre, MT_TOK_TO_BYTE_CHARS, part->err) != NULL;
}

bool mt_tok_metaspace_read(const mt_tok_part *part, const char **string, size_t *len, mt_tok_scheme *scheme,
                           bool *split)
{
    static const char *const schemes[] = {"first", "never", "always", NULL};
    int choice = MT_TOK_ALWAYS;
    bool prefix;
    uint32_t c;

    if (!mt_tok_part_char(part, "replacement", &c) || !mt_tok_part_string(part, "replacement", string, len) ||
        !mt_tok_part_bool_or(part, "add_prefix_space", true, &prefix) ||
        !mt_tok_part_bool_or(part, "split", true, split))
        return false;
    if (mt_tok_node_get(part->node, "prepend_scheme") && !mt_tok_part_choice(part, "prepend_scheme", schemes, &choice))
        return false;
    *scheme = prefix ? (mt_tok_scheme)choice : MT_TOK_NEVER;
    return true;
}

static bool add_metaspace(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_METASPACE, part->err), *cut;
    bool split;

    if (!c || !mt_tok_metaspace_read(part, &c->string, &c->string_len, &c->scheme, &split))
        return false;
    if (!split)
        return true;
    cut = add_cutter(pre, MT_TOK_SPLIT, part->err);
    if (!cut)
        return false;
    cut->string = c->string;
    cut->string_len = c->string_len;
    cut->behavior = MT_TOK_MERGED_WITH_NEXT;
    return true;
}

static bool add_delimiter(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_SPLIT, part->err);
    uint32_t delimiter;

    return c && mt_tok_part_char(part, "delimiter", &delimiter) &&
           mt_tok_part_string(part, "delimiter", &c->string, &c->string_len);
}

static bool add_digits(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    bool single;

    return mt_tok_part_bool(part, "individual_digits", &single) &&
           add_class(pre, mt_tok_is_numeric, single ? MT_TOK_ISOLATED : MT_TOK_CONTIGUOUS, part->err);
}

static bool add_punctuation(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    mt_tok_behavior behavior = MT_TOK_ISOLATED;

    if (mt_tok_node_get(part->node, "behavior") && !read_behavior(part, &behavior))
        return false;
    return add_class(pre, mt_tok_is_punct, behavior, part->err);
}

static bool add_scripts(mt_tok_pretokenizer *pre, mt_error *err)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_SPLIT, err);

    if (!c)
        return false;
    c->invert = true;
    c->regex = mt_tok_regex_of_scripts(err);
    return c->regex != NULL;
}

/* Adds a stage that cuts after every `length` characters. */
static bool add_fixed(mt_tok_pretokenizer *pre, const mt_tok_part *part)
{
    mt_tok_cutter *c = add_cutter(pre, MT_TOK_SPLIT, part->err);
    size_t length = 5;
    char pattern[32];

    if (!c || (mt_tok_node_get(part->node, "length") && !mt_tok_part_count(part, "length", &length)))
        return false;
    if (length == 0 || length > MOST_FIXED)
        return mt_fail(part->err, MT_E_UNSUPPORTED, "\"length\" of its pre_tokenizer is not one of 1 to %d",
                       MOST_FIXED);
    snprintf(pattern, sizeof(pattern), "(?s).{1,%zu}", length);
    c->behavior = MT_TOK_ISOLATED;
    c->regex = mt_tok_regex_native(pattern, strlen(pattern), part->err);
    return c->regex != NULL;
}

static bool add_part(void *to, const mt_tok_part *part)
{
    mt_tok_pretokenizer *pre = to;

    if (mt_tok_part_is(part, "Split"))
        return add_split(pre, part);
    if (mt_tok_part_is(part, "ByteLevel"))
        return add_byte_level(pre, part);
    if (mt_tok_part_is(part, "Metaspace"))
        return add_metaspace(pre, part);
    if (mt_tok_part_is(part, "Digits"))
        return add_digits(pre, part);
    if (mt_tok_part_is(part, "Punctuation"))
        return add_punctuation(pre, part);
    if (mt_tok_part_is(part, "CharDelimiterSplit"))
        return add_delimiter(pre, part);
    if (mt_tok_part_is(part, "UnicodeScripts"))
        return add_scripts(pre, part->err);
    if (mt_tok_part_is(part, "FixedLength"))
        return add_fixed(pre, part);
    if (mt_tok_part_is(part, "Whitespace"))
        return add_pattern(pre, WHITESPACE_PATTERN, MT_TOK_REMOVED, true, part->err);
    if (mt_tok_part_is(part, "WhitespaceSplit"))
        return add_class(pre, mt_tok_is_space, MT_TOK_REMOVED, part->err);
    if (mt_tok_part_is(part, "BertPreTokenizer"))
        return add_class(pre, mt_tok_is_space, MT_TOK_REMOVED, part->err) &&
               add_class(pre, mt_tok_is_punct, MT_TOK_ISOLATED, part->err);
    return mt_tok_part_unknown(part);
}

bool mt_tok_pretokenizer_init(mt_tok_pretokenizer *pre, const mt_tok_node *node, bool takes_bytes, mt_error *err)
{
    *pre = (mt_tok_pretokenizer){0};
    if (node && node->kind != MT_JSON_NULL &&
        !mt_tok_parts_read(node, "pre_tokenizer", "pretokenizers", add_part, pre, err))
        return false;
    if (takes_bytes && pre->count > 0 && pre->cutters[pre->count - 1].cut == MT_TOK_TO_BYTE_CHARS) {
        pre->byte_level = true;
        pre->count--;
    }
    return true;
}

void mt_tok_pretokenizer_free(mt_tok_pretokenizer *pre)
{
    for (size_t i = 0; i < pre->count; i++)
        mt_tok_regex_free(pre->cutters[i].regex);
    pre->count = 0;
}

void mt_tok_cutting_init(mt_tok_cutting *work, size_t limit)
{
    for (size_t i = 0; i < MT_LIMIT_TOKENIZER_STAGES; i++)
        mt_tok_text_init(&work->texts[i], false, limit);
}

void mt_tok_cutting_free(mt_tok_cutting *work)
{
    for (size_t i = 0; i < MT_LIMIT_TOKENIZER_STAGES; i++)
        mt_tok_text_free(&work->texts[i]);
}

static bool starts_with(const char *text, mt_tok_piece piece, const char *s, size_t len)
{
    return piece.end - piece.begin >= len && memcmp(text + piece.begin, s, len) == 0;
}

static void put_blanks_visible(const mt_tok_cutter *c, const mt_tok_view *text, mt_tok_piece piece, mt_tok_text *out)
{
    bool first = text->data[piece.begin] == ' ' || starts_with(text->data, piece, c->string, c->string_len);
    size_t at = piece.begin;

    if (!first && (c->scheme == MT_TOK_ALWAYS || (c->scheme == MT_TOK_FIRST && piece.head)))
        mt_tok_text_put(out, c->string, c->string_len, 0);
    while (at < piece.end) {
        const char *blank = memchr(text->data + at, ' ', piece.end - at);
        size_t end = blank ? (size_t)(blank - text->data) : piece.end;

        mt_tok_text_copy(out, text, at, end);
        if (blank)
            mt_tok_text_put(out, c->string, c->string_len, 0);
        at = end + 1;
    }
}

static void put_byte_chars(const mt_tok_view *text, mt_tok_piece piece, mt_tok_text *out)
{
    for (size_t at = piece.begin; at < piece.end; at++) {
        char c[MT_TOK_BYTE_CHAR_MAX];

        mt_tok_text_put(out, c, mt_tok_byte_char((unsigned char)text->data[at], c), 0);
    }
}

/* Runs a stage that changes the text of a piece. */
static void rewrite(const mt_tok_cutter *c, const mt_tok_view *text, mt_tok_piece piece, mt_tok_text *out)
{
    mt_tok_text_clear(out);
    if (c->cut == MT_TOK_METASPACE) {
        put_blanks_visible(c, text, piece, out);
    } else if (c->cut == MT_TOK_TO_BYTE_CHARS) {
        put_byte_chars(text, piece, out);
    } else {
        if (text->data[piece.begin] != ' ')
            mt_tok_text_put(out, " ", 1, 0);
        mt_tok_text_copy(out, text, piece.begin, piece.end);
    }
}

/* One call of mt_tok_pretokenize. */
typedef struct cutting {
    const mt_tok_pretokenizer *pre;
    mt_tok_cutting *work;
    mt_tok_matcher *matcher;
    mt_tok_taker *take;
    void *ctx;
    mt_error *err;
} cutting;

/* Receives the pieces of one stage: runs stage `index` on them, or gives them to the caller after the last. */
typedef struct stage {
    const cutting *job;
    size_t index;
    mt_tok_view text;
} stage;

/* Sends a piece through all remaining stages, before the next piece is cut. */
static bool pass(void *ctx, mt_tok_piece piece)
{
    const stage *s = ctx;
    const cutting *job = s->job;
    stage next = {.job = job, .index = s->index + 1, .text = s->text};

    if (s->index == job->pre->count)
        return job->take(job->ctx, s->text.data + piece.begin, piece.end - piece.begin);
    const mt_tok_cutter *c = &job->pre->cutters[s->index];
    if (c->cut == MT_TOK_SPLIT)
        return mt_tok_split(c, s->text.data, piece, (mt_tok_sink){pass, &next}, job->matcher, job->err);
    mt_tok_text *out = &job->work->texts[s->index];
    if (!mt_tok_matcher_goes_on(job->matcher, job->err))
        return false;
    rewrite(c, &s->text, piece, out);
    if (out->full)
        return mt_fail(job->err, MT_E_TOO_LARGE,
                       "the tokenizer makes more than %zu bytes of the text when it is cut; send it in parts, or use "
                       "another model",
                       out->limit);
    next.text = (mt_tok_view){.data = out->data, .len = out->len, .head = piece.head};
    return out->len == 0 || pass(&next, (mt_tok_piece){0, out->len, piece.head});
}

bool mt_tok_pretokenize(const mt_tok_pretokenizer *pre, const mt_tok_view *text, mt_tok_cutting *work,
                        mt_tok_matcher *matcher, mt_tok_taker *take, void *ctx, mt_error *err)
{
    const cutting job = {.pre = pre, .work = work, .matcher = matcher, .take = take, .ctx = ctx, .err = err};
    stage first = {.job = &job, .text = *text};

    return text->len == 0 || pass(&first, (mt_tok_piece){0, text->len, text->head});
}
