/* See regex.h. PCRE2 compiles patterns to machine code where the system allows that (JIT) and interprets them
   otherwise, with the same result.
   A match first runs on PCRE2's own small stack. A pattern that must be able to return to each of many characters
   overflows it; then the match is tried again on a stack that may grow to MT_LIMIT_REGEX_STACK, which the matcher keeps
   from then on.
   The tokenizers library has the properties of Unicode 16. Where PCRE2's tables are older, a pattern is compiled a
   second time with the differences written out. That code is up to 50 % slower, so it is used only for texts with
   characters that differ. */
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/chars.h"
#include "text/limits.h"

enum { FIRST_STACK = 32 * 1024, MOST_SHOWN = 200 };

struct mt_tok_regex {
    const mt_tok_known *known; /* NULL for most patterns */
    pcre2_code *code;          /* for texts all of whose characters PCRE2's tables have right */
    pcre2_code *newer;         /* for other texts; NULL: same as code */
};

struct mt_tok_matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* NULL until a match needs it */
    const atomic_bool *stop;
};

/* Whether PCRE2's tables are older than Unicode 16. */
static bool is_old(void)
{
    char version[32] = "";

    return pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) <= (int)sizeof(version) &&
           pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) > 0 && strtol(version, NULL, 10) < 16;
}

static void *allocate(size_t size, void *unused)
{
    (void)unused;
    return mt_alloc(size);
}

static void release(void *ptr, void *unused)
{
    (void)unused;
    mt_free(ptr);
}

/* Never NULL: mt_alloc does not fail. */
static pcre2_general_context *memory(void)
{
    return pcre2_general_context_create(allocate, release, NULL);
}

static pcre2_code *compile(const char *pattern, size_t len, int *error)
{
    pcre2_general_context *general = memory();
    pcre2_compile_context *context = pcre2_compile_context_create(general);
    PCRE2_SIZE offset;
    pcre2_code *code;

    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    code = pcre2_compile((PCRE2_SPTR)pattern, len, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                         error, &offset, context);
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (code)
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without machine code matching is slower but not wrong */
    return code;
}

/* Compiles a pattern. `shown` is the pattern in the file, for the error message. */
static pcre2_code *build(const char *pattern, size_t len, const char *shown, size_t shown_len, mt_error *err)
{
    PCRE2_UCHAR reason[128];
    int error = 0;
    pcre2_code *code = compile(pattern, len, &error);

    if (!code) {
        pcre2_get_error_message(error, reason, sizeof(reason));
        mt_fail(err, MT_E_UNSUPPORTED,
                "it has a regular expression that motet cannot read, \"%.*s\": %s; use another file",
                (int)(shown_len < MOST_SHOWN ? shown_len : MOST_SHOWN), shown, (const char *)reason);
    }
    return code;
}

/* Owns the codes. NULL: `code` is NULL; then `newer` is freed. */
static mt_tok_regex *make(pcre2_code *code, pcre2_code *newer, const mt_tok_known *known)
{
    mt_tok_regex *regex = mt_alloc(sizeof(*regex));

    *regex = (mt_tok_regex){.known = known, .code = code, .newer = newer};
    if (code)
        return regex;
    mt_tok_regex_free(regex);
    return NULL;
}

static pcre2_code *translated(const char *pattern, size_t len, bool newer, mt_buf *native, mt_error *err)
{
    mt_buf_init(native, 64 * (size_t)MT_LIMIT_REGEX);
    if (!mt_tok_regex_translate(pattern, len, newer, native, err))
        return NULL;
    return build(native->data, native->len, pattern, len, err);
}

mt_tok_regex *mt_tok_regex_new(const char *pattern, size_t len, mt_error *err)
{
    pcre2_code *code, *newer = NULL;
    mt_buf native, other;

    code = translated(pattern, len, false, &native, err);
    if (code && is_old()) {
        newer = translated(pattern, len, true, &other, err);
        if (newer && other.len == native.len) { /* the translations are the same */
            pcre2_code_free(newer);
            newer = NULL;
        } else if (!newer) {
            pcre2_code_free(code);
            code = NULL;
        }
        mt_buf_free(&other);
    }
    mt_buf_free(&native);
    return make(code, newer, mt_tok_known_find(pattern, len));
}

mt_tok_regex *mt_tok_regex_native(const char *pattern, size_t len, mt_error *err)
{
    return make(build(pattern, len, pattern, len, err), NULL, NULL);
}

void mt_tok_regex_free(mt_tok_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_code_free(regex->newer);
    mt_free(regex);
}

mt_tok_matcher *mt_tok_matcher_new(const atomic_bool *stop)
{
    pcre2_general_context *general = memory();
    mt_tok_matcher *matcher = mt_alloc(sizeof(*matcher));

    matcher->stop = stop;
    matcher->data = pcre2_match_data_create(1, general);
    matcher->context = pcre2_match_context_create(general);
    pcre2_set_heap_limit(matcher->context, MT_LIMIT_REGEX_STACK / 1024);
    pcre2_general_context_free(general);
    return matcher;
}

void mt_tok_matcher_free(mt_tok_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    if (matcher->stack)
        pcre2_jit_stack_free(matcher->stack);
    mt_free(matcher);
}

bool mt_tok_matcher_goes_on(const mt_tok_matcher *matcher, mt_error *err)
{
    /* relaxed: the flag is read again and again, and no data depends on it */
    return !matcher->stop || !atomic_load_explicit(matcher->stop, memory_order_relaxed) ||
           mt_fail(err, MT_E_INVALID, "the request was cancelled while its text was read; send it again");
}

static int run(const pcre2_code *code, mt_tok_matcher *matcher, const char *text, size_t len, size_t from)
{
    return pcre2_match(code, (PCRE2_SPTR)text, len, from, PCRE2_NO_UTF_CHECK, matcher->data, matcher->context);
}

static bool grow_stack(mt_tok_matcher *matcher)
{
    if (matcher->stack)
        return false;
    matcher->stack = pcre2_jit_stack_create(FIRST_STACK, MT_LIMIT_REGEX_STACK, NULL);
    if (matcher->stack)
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return matcher->stack != NULL;
}

/* Whether the text has characters that changed from Unicode 14 to 16. Fast: those are in U+0340..U+037F or have three
   or more bytes, and none is in U+4000..U+9FFF or U+B000..U+FFFF. */
static bool has_new(const char *text, size_t len)
{
    for (size_t at = 0; at < len; at += mt_utf8_size(text[at])) {
        const unsigned char first = (unsigned char)text[at];

        if ((first == 0xCD || (first >= 0xE0 && first <= 0xE3) || first == 0xEA || first >= 0xF0) &&
            mt_tok_is_new(mt_utf8_at(text + at)))
            return true;
    }
    return false;
}

static const pcre2_code *code_for(mt_tok_finder *finder)
{
    if (!finder->begun)
        finder->plain = !finder->regex->newer || !has_new(finder->text, finder->len);
    finder->begun = true;
    return finder->plain ? finder->regex->code : finder->regex->newer;
}

static mt_tok_found find(mt_tok_finder *finder, mt_range *found, mt_error *err)
{
    mt_tok_matcher *matcher = finder->matcher;
    const pcre2_code *code;
    const PCRE2_SIZE *bounds;
    size_t end;
    int result;

    if (!mt_tok_matcher_goes_on(matcher, err))
        return MT_TOK_FOUND_ERROR;
    end = finder->regex->known ? mt_tok_known_match(finder->regex->known, finder->text, finder->len, finder->at) : 0;
    if (end > 0) {
        *found = (mt_range){finder->at, end};
        return MT_TOK_FOUND;
    }
    code = code_for(finder);
    result = run(code, matcher, finder->text, finder->len, finder->at);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && grow_stack(matcher))
        result = run(code, matcher, finder->text, finder->len, finder->at);
    if (result == PCRE2_ERROR_NOMATCH)
        return MT_TOK_FOUND_NOTHING;
    if (result < 0) {
        mt_fail(err, MT_E_TOO_LARGE, "the text is too long for the tokenizer's regular expression; send it in parts");
        return MT_TOK_FOUND_ERROR;
    }
    bounds = pcre2_get_ovector_pointer(matcher->data);
    *found = (mt_range){bounds[0], bounds[1]};
    return MT_TOK_FOUND;
}

bool mt_tok_finder_next(mt_tok_finder *finder, mt_range *found, mt_error *err)
{
    while (finder->at <= finder->len) {
        mt_tok_found result = find(finder, found, err);

        finder->failed = result == MT_TOK_FOUND_ERROR;
        if (result != MT_TOK_FOUND)
            break;
        if (found->begin < found->end || !finder->matched || found->end != finder->at) {
            finder->at = found->end;
            finder->matched = true;
            return true;
        }
        finder->at += finder->at < finder->len ? mt_utf8_size(finder->text[finder->at]) : 1;
        finder->matched = false;
    }
    finder->at = finder->len + 1;
    return false;
}
