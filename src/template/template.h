/* Chat templates: the Jinja language as transformers configures it (docs/templates.md says which parts).

   A template is compiled once and rendered often, by any number of threads. Rendering is bounded in steps, depth,
   memory and output; a template that goes beyond ends with an error.

   The rendered text is a prompt, so it matters who wrote which part: a marker such as <|im_start|> must become a
   control token where the template writes it, and plain text where a user does. So every byte of the result is either
   trusted (the template's own) or untrusted (from a string of the context), through all that a template can do with
   text. The tokenizer must treat a match of a special token as one only where it has no untrusted byte. */
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

/* The output of one round of a loop over the watched list. */
typedef struct mt_mark {
    size_t item; /* index in the list */
    mt_range bytes;
} mt_mark;

typedef struct mt_template_options {
    /* The time that strftime_now tells; NULL: the local time. */
    const struct tm *now;

    /* The name of a variable that is a list of objects: rendering.marks tells where loops over it wrote. NULL: none. */
    const char *watch;

    const atomic_bool *stop; /* once it is true, rendering fails; may be NULL */

    /* Bounds; 0: that of limits.h. */
    uint64_t steps;
    size_t memory, output;
} mt_template_options;

typedef struct mt_rendering {
    mt_buf text;
    mt_range *untrusted; /* ranges of text: ascending, not empty, not adjacent */
    size_t untrusted_count;
    mt_mark *marks; /* in the order in which the rounds began */
    size_t mark_count;
    /* It failed since the template called raise_exception: the error is the template's own sentence */
    bool raised;
} mt_rendering;

/* NULL: *err, which begins with "line L, column C: "; the text is no template. Free with mt_template_free. */
mt_template *mt_template_compile(const char *text, size_t len, mt_error *err) MT_NODISCARD;
void mt_template_free(mt_template *tpl); /* NULL is fine */

/* Whether the template looks up a variable of that name in the context. */
bool mt_template_reads(const mt_template *tpl, const char *name);

/* Sets the variables of a rendering (context.h, value.h). False: the run has failed. */
struct mt_tpl_run;
struct mt_tpl_dict;
typedef bool mt_template_fill(const void *ctx, struct mt_tpl_run *run, struct mt_tpl_dict *variables);

/* Renders a template. fill is called with ctx during the call, and what it borrows must live until the end of the call.
   options may be NULL. out needs no initialisation; free it with mt_rendering_free in any case. False: *err. */
bool mt_template_render(const mt_template *tpl, mt_template_fill *fill, const void *ctx,
                        const mt_template_options *options, mt_rendering *out, mt_error *err) MT_NODISCARD;

/* The same with a JSON object as the variables; all its strings are untrusted. */
bool mt_template_render_json(const mt_template *tpl, const json_t *context, const mt_template_options *options,
                             mt_rendering *out, mt_error *err) MT_NODISCARD;
void mt_rendering_free(mt_rendering *out);

#endif
