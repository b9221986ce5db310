/* Placeholders of pictures: the text that stands for one, and the tokens this becomes (processor.h). */
#include "models/vision_family.h"
#include "sample/limits.h"

const char *mt_processor_marker(const mt_processor *p, bool video)
{
    return video ? p->video_marker : p->image_marker;
}

const char *mt_processor_video_template(const mt_processor *p)
{
    return p->family->video_template;
}

uint32_t mt_processor_pad(const mt_processor *p)
{
    return p->image_id;
}

/* A function for mt_vision_family.run. */
uint32_t mt_picture_view_tokens(const mt_processor *p, const mt_picture *picture)
{
    (void)p;
    return picture->tokens / picture->views;
}

size_t mt_processor_runs(const mt_processor *p, const mt_picture *picture)
{
    return p->family->run ? picture->tokens / p->family->run(p, picture) : 1;
}

bool mt_processor_text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    if (p->family->text)
        return p->family->text(p, picture, number, out);
    return mt_buf_printf(out, "%s", picture->video ? p->video_pad : p->image_pad);
}

/* How far the pictures have been matched with pad tokens. */
typedef struct walk {
    const mt_processor *p;
    const mt_picture *pictures;
    size_t count;   /* of pictures */
    size_t picture; /* number of the present one */
    uint32_t row;   /* rows of its features that are matched */
} walk;

/* video_id counts only where the family has pad tokens for videos. */
static bool is_pad(const mt_processor *p, uint32_t id)
{
    return id == p->image_id || (p->video_pad && id == p->video_id);
}

/* How many tokens the next pad token, of this id, stands for; 0: the present picture has another kind of pad token, or
   there is none left. */
static uint32_t run_length(const walk *w, uint32_t id)
{
    const mt_picture *picture = w->picture < w->count ? &w->pictures[w->picture] : NULL;
    if (!picture || id != (picture->video ? w->p->video_id : w->p->image_id))
        return 0;
    const uint32_t left = picture->tokens - w->row, run = w->p->family->run ? w->p->family->run(w->p, picture) : left;
    return run < left ? run : left;
}

/* The span of a run of `length` tokens that begins at position `first` of the prompt; begin: its first rotary position.
   Behind a grid, rotary positions go on after its longer side, else after as many as there are tokens. */
static mt_media_span make_span(const walk *w, size_t first, uint32_t length, uint32_t begin)
{
    const mt_picture *picture = &w->pictures[w->picture];
    const uint32_t height = picture->height / w->p->merge, width = picture->width / w->p->merge;
    const bool grid = w->p->family->grid;
    return (mt_media_span){.first = (uint32_t)first,
                           .count = length,
                           .picture = (uint32_t)w->picture,
                           .row = w->row,
                           .grid = grid,
                           .block = w->p->block > 0,
                           .height = height,
                           .width = width,
                           .step = picture->step,
                           .begin = begin,
                           .after = begin + (!grid            ? length
                                             : height > width ? height
                                                              : width)};
}

/* Allocates as many tokens and spans as there are if all pad tokens and pictures match. */
static bool reserve(const walk *w, const uint32_t *ids, size_t count, mt_arena *arena, mt_expanded *out, mt_error *err)
{
    size_t tokens = count, runs = 0;
    for (size_t i = 0; i < w->count; i++)
        tokens += w->pictures[i].tokens;
    for (size_t i = 0; i < count; i++)
        runs += is_pad(w->p, ids[i]);
    if (tokens - runs > MT_LIMIT_CONTEXT)
        return mt_fail(err, MT_E_TOO_LARGE, "a prompt of %zu tokens is longer than any context", tokens - runs);
    *out = (mt_expanded){.ids = mt_arena_alloc(arena, tokens * sizeof(*out->ids)),
                         .origin = mt_arena_alloc(arena, tokens * sizeof(*out->origin)),
                         .spans = mt_arena_alloc(arena, runs * sizeof(*out->spans))};
    return (out->ids && out->origin && out->spans) ||
           mt_fail(err, MT_E_TOO_LARGE, "the prompt takes more memory than a request may");
}

bool mt_processor_expand(const mt_processor *p, const uint32_t *ids, size_t count, const mt_picture *pictures,
                         size_t picture_count, mt_arena *arena, mt_expanded *out, mt_error *err)
{
    walk w = {.p = p, .pictures = pictures, .count = picture_count};
    if (!reserve(&w, ids, count, arena, out, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        const bool pad = is_pad(p, ids[i]);
        const uint32_t length = pad ? run_length(&w, ids[i]) : 1;
        if (length == 0)
            return mt_fail(err, MT_E_INVALID, "the prompt has more places for pictures than there are pictures");
        if (pad) {
            const uint32_t begin = mt_media_position(out->spans, out->span_count, out->count).axis[0];
            out->spans[out->span_count++] = make_span(&w, out->count, length, begin);
            w.row += length;
        }
        for (uint32_t j = 0; j < length; j++, out->count++) {
            out->ids[out->count] = ids[i];
            out->origin[out->count] = (uint32_t)i;
        }
        if (pad && w.row == pictures[w.picture].tokens) {
            w.picture++;
            w.row = 0;
        }
    }
    if (w.picture < picture_count)
        return mt_fail(err, MT_E_INVALID, "the prompt has no place for %zu of its pictures", picture_count - w.picture);
    return true;
}
