/* See source_text.h. */
#include "constraint/source_text.h"

#include "base/arena.h"
#include "constraint/gbnf.h"
#include "constraint/lark.h"
#include "constraint/regex.h"

bool mt_regex_text_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err)
{
    mt_arena *arena = mt_arena_new(0);
    const mt_regex *read = mt_regex_read(arena, text, len, false, err);
    const mt_regex_query query = {.all = &read, .all_count = 1, .most = MT_GRAMMAR_UNLIMITED};
    bool ok = read != NULL;

    if (read && !read->aware)
        *out = mt_regex_expr(read, g, mt_grammar_chars);
    else if (read && !mt_regex_query_expr(&query, g, mt_grammar_chars, out))
        ok = mt_grammar_stopped(g)
                 ? mt_grammar_say_stopped(g->patience, err)
                 : mt_fail(err, MT_E_INVALID, "the regular expression takes too many states; simplify it");
    mt_arena_free(arena);
    return ok;
}

bool mt_grammar_text_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err)
{
    static const mt_lark_text how = {.write = mt_grammar_chars};

    return mt_lark_is(text, len) ? mt_lark_expr(g, &how, text, len, out, err) : mt_gbnf_expr(g, text, len, out, err);
}
