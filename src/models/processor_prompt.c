/* Placeholders: the text that stands for a picture, and the tokens it becomes. */
#include "models/processor_inside.h"

const char *mt_processor_marker(const mt_processor *p, bool video)
{
    return video ? p->video_marker : p->image_marker;
}

/* Whether each view has a run of tokens of its own. */
static bool apart(const mt_processor *p, const mt_picture *picture)
{
    return p->names == MT_VISION_SIGLIP || (p->names == MT_VISION_QWEN3 && picture->video);
}

static bool put(mt_buf *out, const char *text)
{
    return mt_buf_printf(out, "%s", text);
}

static bool gemma_view(const mt_processor *p, mt_buf *out)
{
    return mt_buf_printf(out, "\n\n%s%s%s\n\n", p->opening, p->image_pad, p->closing);
}

static bool gemma_text(const mt_processor *p, const mt_picture *picture, mt_buf *out)
{
    if (picture->views == 1)
        return gemma_view(p, out);
    bool ok = put(out, "Here is the original image ") && gemma_view(p, out) &&
              put(out, " and here are some crops to help you see better ");
    for (uint32_t i = 1; ok && i < picture->views; i++)
        ok = (i == 1 || put(out, " ")) && gemma_view(p, out);
    return ok;
}

bool mt_processor_text(const mt_processor *p, const mt_picture *picture, mt_buf *out)
{
    if (p->names == MT_VISION_SIGLIP)
        return gemma_text(p, picture, out);
    if (!apart(p, picture))
        return put(out, picture->video ? p->video_pad : p->image_pad);
    bool ok = true;
    for (uint32_t i = 0; ok && i < picture->views; i++)
        ok = mt_buf_printf(out, "<%.1f seconds>%s%s%s", picture->times[i], p->opening, p->video_pad, p->closing);
    return ok;
}

/* Where in the pictures the next pad token belongs. */
typedef struct walk {
    const mt_processor *p;
    const mt_picture *const *pictures;
    size_t count, picture;
    uint32_t view;
} walk;

static bool is_pad(const mt_processor *p, uint32_t id)
{
    return id == p->image_id || (p->video_pad && id == p->video_id);
}

/* How many tokens the next pad token stands for; 0: there is no picture for it. */
static uint32_t run_length(const walk *w, uint32_t id)
{
    if (w->picture == w->count)
        return 0;
    const mt_picture *picture = w->pictures[w->picture];
    if (id != (picture->video ? w->p->video_id : w->p->image_id))
        return 0;
    return apart(w->p, picture) ? picture->tokens / picture->views : picture->tokens;
}

static void step(walk *w)
{
    const mt_picture *picture = w->pictures[w->picture];
    w->view += apart(w->p, picture) ? 1 : picture->views;
    if (w->view < picture->views)
        return;
    w->view = 0;
    w->picture++;
}

static bool measure(walk w, const uint32_t *ids, size_t count, size_t *tokens, size_t *runs, mt_error *err)
{
    *tokens = count;
    *runs = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_pad(w.p, ids[i]))
            continue;
        const uint32_t length = run_length(&w, ids[i]);
        if (length == 0)
            return mt_fail(err, MT_E_INVALID, "the prompt has more places for pictures than there are pictures");
        *tokens += length - 1;
        ++*runs;
        step(&w);
    }
    if (w.picture < w.count)
        return mt_fail(err, MT_E_INVALID, "the prompt has no place for %zu of its pictures", w.count - w.picture);
    if (*tokens > MT_LIMIT_CONTEXT)
        return mt_fail(err, MT_E_TOO_LARGE, "a prompt of %zu tokens is longer than any context", *tokens);
    return true;
}

static mt_media_span make_span(const walk *w, size_t first, uint32_t length, uint32_t begin)
{
    const mt_picture *picture = w->pictures[w->picture];
    const uint32_t height = picture->height / w->p->merge, width = picture->width / w->p->merge;
    const bool block = w->p->names == MT_VISION_SIGLIP;
    return (mt_media_span){.first = (uint32_t)first,
                           .count = length,
                           .picture = (uint32_t)w->picture,
                           .row = w->view * (picture->tokens / picture->views),
                           .grid = !block,
                           .block = block,
                           .height = height,
                           .width = width,
                           .step = picture->step,
                           .begin = begin,
                           .after = begin + (block            ? length
                                             : height > width ? height
                                                              : width)};
}

bool mt_processor_expand(const mt_processor *p, const uint32_t *ids, size_t count, const mt_picture *const *pictures,
                         size_t picture_count, mt_arena *arena, mt_expanded *out, mt_error *err)
{
    walk w = {.p = p, .pictures = pictures, .count = picture_count};
    size_t tokens, runs;
    if (!measure(w, ids, count, &tokens, &runs, err))
        return false;
    *out = (mt_expanded){.ids = mt_arena_alloc(arena, tokens * sizeof *out->ids),
                         .origin = mt_arena_alloc(arena, tokens * sizeof *out->origin),
                         .spans = mt_arena_alloc(arena, (runs + 1) * sizeof *out->spans)};
    if (!out->ids || !out->origin || !out->spans)
        return mt_fail(err, MT_E_TOO_LARGE, "the prompt takes more memory than a request may");
    for (size_t i = 0; i < count; i++) {
        uint32_t length = 1;
        if (is_pad(p, ids[i])) {
            length = run_length(&w, ids[i]);
            const uint32_t begin = mt_media_position(out->spans, out->span_count, out->count).axis[0];
            out->spans[out->span_count++] = make_span(&w, out->count, length, begin);
            step(&w);
        }
        for (uint32_t j = 0; j < length; j++, out->count++) {
            out->ids[out->count] = ids[i];
            out->origin[out->count] = (uint32_t)i;
        }
    }
    return true;
}
