/* Positions of pictures in a prompt (picture.h). */
#include "models/picture.h"

/* The last span that begins at or before index; NULL: none. */
static const mt_media_span *span_before(const mt_media_span *spans, size_t count, size_t index)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (spans[middle].first <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &spans[low - 1] : NULL;
}

const mt_media_span *mt_media_span_at(const mt_media_span *spans, size_t count, size_t index)
{
    const mt_media_span *s = span_before(spans, count, index);
    return s && index - s->first < s->count ? s : NULL;
}

mt_position mt_media_position(const mt_media_span *spans, size_t count, size_t index)
{
    const mt_media_span *s = span_before(spans, count, index);
    uint32_t at = (uint32_t)index;
    if (s && index - s->first >= s->count)
        at = s->after + (uint32_t)(index - s->first - s->count);
    else if (s && !s->grid)
        at = s->begin + (uint32_t)(index - s->first);
    else if (s) {
        const uint32_t i = (uint32_t)(index - s->first), view = i / (s->height * s->width);
        return (mt_position){{s->begin + view * s->step, s->begin + i / s->width % s->height, s->begin + i % s->width}};
    }
    return (mt_position){{at, at, at}};
}
