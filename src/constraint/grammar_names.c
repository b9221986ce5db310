/* See grammar_names.h. */
#include "constraint/grammar_names.h"

#include <string.h>

#include "base/alloc.h"

/* The slot of a name; an empty one where it is not in the table. */
static uint32_t *slot_of(const mt_grammar_names *n, const char *name, size_t len)
{
    const size_t slots = 2 * n->cap;
    uint64_t hash = 0;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t at = (hash >> 32) % slots;; at = (at + 1) % slots) {
        const mt_grammar_name *s = n->slots[at] ? &n->at[n->slots[at] - 1] : NULL;

        if (!s || (s->len == len && memcmp(s->name, name, len) == 0))
            return &n->slots[at];
    }
}

static void grow(mt_grammar_names *n)
{
    const size_t cap = n->cap ? 2 * n->cap : 32;

    n->at = mt_realloc(n->at, n->cap * sizeof(*n->at), cap * sizeof(*n->at));
    n->cap = cap;
    mt_free(n->slots);
    n->slots = mt_alloc_array(2 * cap, sizeof(*n->slots));
    for (size_t i = 0; i < n->count; i++)
        *slot_of(n, n->at[i].name, n->at[i].len) = (uint32_t)i + 1;
}

mt_grammar_name *mt_grammar_names_find(mt_grammar_names *n, const char *name, size_t len)
{
    uint32_t *slot;

    if (n->count == n->cap)
        grow(n);
    slot = slot_of(n, name, len);
    if (*slot == 0) {
        n->at[n->count] = (mt_grammar_name){.name = name, .len = len, .rule = mt_grammar_rule(n->g)};
        *slot = (uint32_t)++n->count;
    }
    return &n->at[*slot - 1];
}

bool mt_grammar_names_check(const mt_grammar_names *n, mt_error *err)
{
    for (size_t i = 0; i < n->count; i++)
        if (!n->at[i].defined)
            return mt_fail(err, MT_E_INVALID, "the grammar uses the rule \"%.*s\" and does not define it",
                           (int)(n->at[i].len < 100 ? n->at[i].len : 100), n->at[i].name);
    return true;
}

bool mt_grammar_names_rule(const mt_grammar_names *n, const char *name, mt_rule *rule)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i].defined && n->at[i].len == strlen(name) && memcmp(n->at[i].name, name, n->at[i].len) == 0) {
            *rule = n->at[i].rule;
            return true;
        }
    return false;
}

void mt_grammar_names_free(mt_grammar_names *n)
{
    mt_free(n->at);
    mt_free(n->slots);
}

void mt_grammar_parts_add(mt_grammar_parts *p, mt_expr e)
{
    p->at = mt_grow(p->at, &p->cap, p->count + 1, sizeof(*p->at));
    p->at[p->count++] = e;
}

bool mt_grammar_fail(const char *subject, const char *what, const char *text, size_t at, mt_error *err)
{
    size_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return mt_fail(err, MT_E_INVALID, "%s %s in line %zu", subject, what, line);
}
