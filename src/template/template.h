/* Chat templates: the Jinja language as transformers configures it (docs/templates.md says what there is).

   A template is compiled once and rendered often, by any number of threads. Rendering is bounded in steps, depth,
   memory and output; a template that goes beyond ends with an error.

   The text rendered is a prompt, so it matters who wrote which part of it: markers such as <|im_start|> must be control
   tokens when the template writes them and plain text when a user does. Therefore every byte of the result is either
   trusted (the template's own) or untrusted (from a string of the context), and stays so through all that a template
   can do with text. Whoever tokenizes must take a match of a special token for one only where it has no untrusted
   byte. */
#ifndef MT_TEMPLATE_TEMPLATE_H
#define MT_TEMPLATE_TEMPLATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/range.h"

typedef struct mt_template mt_template;

/* What a round of a loop wrote for an item of the watched list. */
typedef struct mt_mark {
    size_t item;
    mt_range bytes;
} mt_mark;

typedef struct mt_template_options {
    /* What strftime_now tells; NULL: the local time. */
    const struct tm *now;

    /* A variable that is a list of objects: marks tells where loops wrote them. NULL: none. */
    const char *watch;

    const atomic_bool *stop; /* may be NULL: once another thread sets it, rendering fails */

    /* Bounds; 0 stands for that of limits.h. */
    uint64_t steps;
    size_t memory, output;
} mt_template_options;

typedef struct mt_rendering {
    mt_buf text;
    mt_range *untrusted; /* bytes of text: ascending, not empty, not touching one another */
    size_t untrusted_count;
    mt_mark *marks; /* in the order in which the rounds began */
    size_t mark_count;
    bool raised; /* it failed because the template called raise_exception: the error is the template's own sentence */
} mt_rendering;

/* NULL, with a sentence that begins "line L, column C: ", when the text is no template. Free with mt_template_free. */
mt_template *mt_template_compile(const char *text, size_t len, mt_error *err) MT_NODISCARD;
void mt_template_free(mt_template *tpl); /* NULL is fine */

/* Whether the template looks for a variable of that name in the context. */
bool mt_template_reads(const mt_template *tpl, const char *name);

/* Sets the variables of a rendering (context.h, value.h). False only where the run has failed. */
struct mt_tpl_run;
struct mt_tpl_dict;
typedef bool mt_template_fill(const void *ctx, struct mt_tpl_run *run, struct mt_tpl_dict *variables);

/* fill may be called with ctx during the call, and what it borrows is not needed afterwards. options may be NULL. out
   needs no initialisation; free it with mt_rendering_free in any case. */
bool mt_template_render(const mt_template *tpl, mt_template_fill *fill, const void *ctx,
                        const mt_template_options *options, mt_rendering *out, mt_error *err) MT_NODISCARD;

/* Renders with a JSON object for the variables. All strings in it are untrusted. */
bool mt_template_render_json(const mt_template *tpl, const json_t *context, const mt_template_options *options,
                             mt_rendering *out, mt_error *err) MT_NODISCARD;
void mt_rendering_free(mt_rendering *out);

#endif
