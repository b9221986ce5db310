/* Cuts a piece at matches (mt_tok_split). Matches and the text between them come from left to right as parts; the
   behaviour decides which neighbouring parts are joined to one piece. */
#include <string.h>

#include "base/utf8.h"
#include "text/pretokenizer.h"

/* The state of one mt_tok_split. */
typedef struct fold {
    const mt_tok_cutter *cutter;
    mt_tok_sink out;
    bool ended;               /* the sink wants no more pieces */
    size_t origin;            /* offset of the piece in its text */
    bool head;                /* the piece is the start of the whole text */
    mt_range open;            /* the last part, to which the next may be joined */
    bool is_open, open_match; /* `open` is used; it is a match */
} fold;

static void emit(fold *f, mt_range part)
{
    const mt_tok_piece piece = {f->origin + part.begin, f->origin + part.end, f->head && part.begin == 0};

    f->ended = f->ended || (part.begin < part.end && !f->out.take(f->out.ctx, piece));
}

static void close_open(fold *f)
{
    if (f->is_open)
        emit(f, f->open);
    f->is_open = false;
}

/* Whether the next part is joined to the open one. Merging joins a match and the text before or behind it, and never
   two matches that stand side by side. */
static bool joins(const fold *f, bool match)
{
    if (!f->is_open)
        return false;
    switch (f->cutter->behavior) {
    case MT_TOK_CONTIGUOUS: return match == f->open_match;
    case MT_TOK_MERGED_WITH_PREVIOUS: return match && !f->open_match;
    case MT_TOK_MERGED_WITH_NEXT: return !match && f->open_match;
    default: return false;
    }
}

static void add_part(fold *f, size_t begin, size_t end, bool match)
{
    match = match != f->cutter->invert;
    if (f->cutter->behavior == MT_TOK_ISOLATED) {
        emit(f, (mt_range){begin, end});
    } else if (f->cutter->behavior == MT_TOK_REMOVED) {
        if (!match)
            emit(f, (mt_range){begin, end});
    } else if (joins(f, match)) {
        f->open.end = end;
        f->open_match = match;
    } else {
        close_open(f);
        f->open = (mt_range){begin, end};
        f->is_open = true;
        f->open_match = match;
    }
}

/* Adds the text since *done, where the last match ended, and the match [begin, end). */
static void add_match(fold *f, size_t *done, size_t begin, size_t end)
{
    if (*done < begin)
        add_part(f, *done, begin, false);
    add_part(f, begin, end, true);
    *done = end;
}

static void split_class(fold *f, const char *text, size_t len, size_t *done)
{
    for (size_t at = 0, size; at < len && !f->ended; at += size) {
        size = mt_utf8_size(text[at]);
        if (f->cutter->matches(mt_utf8_at(text + at)))
            add_match(f, done, at, at + size);
    }
}

/* Comes to an end since the string is not empty (mt_tok_cutter). */
static void split_string(fold *f, const char *text, size_t len, size_t *done)
{
    const mt_tok_cutter *c = f->cutter;
    const char *found;

    while (!f->ended && (found = memmem(text + *done, len - *done, c->string, c->string_len))) {
        size_t begin = (size_t)(found - text);

        add_match(f, done, begin, begin + c->string_len);
    }
}

bool mt_tok_split(const mt_tok_cutter *cutter, const char *text, mt_tok_piece piece, mt_tok_sink out,
                  mt_tok_matcher *matcher, mt_error *err)
{
    fold f = {.cutter = cutter, .out = out, .origin = piece.begin, .head = piece.head};
    size_t len = piece.end - piece.begin, done = 0;

    text += piece.begin;
    if (cutter->regex) {
        mt_tok_finder finder = {.regex = cutter->regex, .matcher = matcher, .text = text, .len = len};
        mt_range found;

        while (!f.ended && mt_tok_finder_next(&finder, &found, err))
            add_match(&f, &done, found.begin, found.end);
        if (finder.failed)
            return false;
    } else if (cutter->matches) {
        split_class(&f, text, len, &done);
    } else {
        split_string(&f, text, len, &done);
    }
    if (done < len)
        add_part(&f, done, len, false);
    close_open(&f);
    return !f.ended;
}
